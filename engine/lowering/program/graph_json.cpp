#include "engine/lowering/program/graph_json.h"

#include "engine/graph/operator_files/operator_file.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/lowering/program/plan_value.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace planloom {

namespace {

using nlohmann::json;

constexpr std::array<const char *, 6> kRoles{
    "input", "weight", "buffer", "activation", "gradient", "optimizer-state"};
constexpr std::array<const char *, 3> kDirections{"forward", "backward", "optimizer"};
constexpr std::array<DataType, 10> kDataTypes{DataType::Float32, DataType::Float16, DataType::BFloat16,
    DataType::Float64, DataType::Int64, DataType::Int32, DataType::Int16, DataType::Int8, DataType::UInt8,
    DataType::Bool};

constexpr std::array<const char *, 3> kMarks{"", "+", "^"}; ///< Of dimensions.
constexpr std::int64_t kMostExtent = std::int64_t{1} << 40;

constexpr std::array<const char *, kReachCount> kReaches{
    "own", "windows", "share", "met", "around", "covered"};

json termsToJson(const std::vector<TensorTerms> &tensors)
{
    json list = json::array();
    for (const TensorTerms &tensor : tensors) {
        if (tensor.opaque) {
            list.push_back(nullptr);
            continue;
        }
        json terms = json::array();
        for (const Term &term : tensor.terms) {
            terms.push_back(term.factors);
            if (term.reach != WindowReach::Own)
                terms.back().push_back(nameOf(term.reach));
        }
        list.push_back(std::move(terms));
    }
    return list;
}

/// JSON has no infinity and no NaN: these are words.
json realToJson(double value)
{
    if (std::isnan(value))
        return "nan";
    return std::isinf(value) ? json(value < 0 ? "-inf" : "inf") : json(value);
}

/// An attribute whose JSON alone would be read as of another type says which it has:
///     {"real": "-inf"}   {"reals": [1.0, "nan"]}   {"reals": []}   {"texts": []}
json attributeToJson(const Attribute &value)
{
    if (const auto *real = std::get_if<double>(&value); real != nullptr && !std::isfinite(*real))
        return {{"real", realToJson(*real)}};
    if (const auto *reals = std::get_if<std::vector<double>>(&value)) {
        json list = json::array();
        for (const double real : *reals)
            list.push_back(realToJson(real));
        const bool isPlain = !reals->empty()
            && std::all_of(reals->begin(), reals->end(), [](double real) { return std::isfinite(real); });
        return isPlain ? list : json{{"reals", std::move(list)}};
    }
    if (const auto *texts = std::get_if<std::vector<std::string>>(&value); texts != nullptr && texts->empty())
        return {{"texts", json::array()}};
    return std::visit([](const auto &plain) { return json(plain); }, value);
}

json attributesToJson(const Attributes &attributes)
{
    json object = json::object();
    for (const auto &[name, value] : attributes.all())
        object[name] = attributeToJson(value);
    return object;
}

json idsToJson(const std::vector<TensorId> &ids)
{
    json list = json::array();
    for (const TensorId id : ids)
        list.push_back(id.index);
    return list;
}

double realFromJson(const PlanValue &value)
{
    const json &real = value.json();
    if (real.is_number())
        return real.get<double>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static const std::map<std::string, double, std::less<>> kWords = {
        {"inf", kInfinity}, {"-inf", -kInfinity}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
    const auto known = real.is_string() ? kWords.find(real.get<std::string>()) : kWords.end();
    if (known == kWords.end())
        value.fail("expected a number, \"inf\", \"-inf\" or \"nan\"");
    return known->second;
}

std::vector<std::string> textsFromJson(const PlanValue &value)
{
    std::vector<std::string> texts;
    for (const PlanValue &item : value.items())
        texts.push_back(item.text());
    return texts;
}

/// An attribute that says its type: see `attributeToJson`.
Attribute typedAttributeFromJson(const PlanValue &value)
{
    const bool isOne = value.json().size() == 1;
    if (const auto real = value.find("real"); isOne && real)
        return realFromJson(*real);
    if (const auto list = value.find("reals"); isOne && list) {
        std::vector<double> reals;
        for (const PlanValue &item : list->items())
            reals.push_back(realFromJson(item));
        return reals;
    }
    if (const auto texts = value.find("texts"); isOne && texts)
        return textsFromJson(*texts);
    value.fail("expected real, reals or texts");
}

Attribute attributeFromJson(const PlanValue &value)
{
    const json &own = value.json();
    if (own.is_object())
        return typedAttributeFromJson(value);
    if (own.is_number_integer())
        return own.get<std::int64_t>();
    if (own.is_number_float())
        return own.get<double>();
    if (own.is_string())
        return own.get<std::string>();
    const std::vector<PlanValue> items = value.items();
    if (!items.empty() && own[0].is_string())
        return textsFromJson(value);
    if (!items.empty() && own[0].is_number_float()) {
        std::vector<double> reals;
        for (const json &item : own) {
            if (!item.is_number())
                value.fail("expected numbers");
            reals.push_back(item);
        }
        return reals;
    }
    return value.integers<std::int64_t>(INT64_MIN, INT64_MAX);
}

std::vector<TensorTerms> termsFromJson(const PlanValue &value, std::size_t dimensions)
{
    std::vector<TensorTerms> tensors;
    for (const PlanValue &item : value.items()) {
        TensorTerms &tensor = tensors.emplace_back();
        if (item.json().is_null()) {
            tensor.opaque = true;
            continue;
        }
        for (const PlanValue &term : item.items()) {
            Term &factors = tensor.terms.emplace_back();
            for (const PlanValue &factor : term.items()) {
                if (factor.json().is_string() && &factor.json() == &term.json().back())
                    factors.reach = static_cast<WindowReach>(factor.word(kReaches));
                else
                    factors.factors.push_back(factor.index(dimensions));
            }
        }
    }
    return tensors;
}

std::vector<TensorId> idsFromJson(const PlanValue &value, std::size_t tensors)
{
    std::vector<TensorId> ids;
    for (const PlanValue &item : value.items())
        ids.push_back(TensorId{item.index(tensors, -1)});
    return ids;
}

FilePart filePartFromJson(const PlanValue &value)
{
    FilePart part;
    part.name = value.at("name").text();
    part.shape = value.at("shape").integers<std::int64_t>(0, kMostExtent);
    part.axis = value.at("axis").index(part.shape.size());
    part.begin = value.at("begin").integer<std::int64_t>(0, part.shape[at(part.axis)]);
    return part;
}

Tensor tensorFromJson(const PlanValue &item, std::size_t count)
{
    Tensor tensor;
    tensor.name = item.at("name").text();
    const std::string type = item.at("type").text();
    const auto known = std::find_if(
        kDataTypes.begin(), kDataTypes.end(), [&](DataType dataType) { return type == nameOf(dataType); });
    if (known == kDataTypes.end())
        item.fail("expected an element type, found \"" + type + "\"", "/type");
    tensor.type.dataType = *known;
    std::int64_t elements = 1;
    for (const PlanValue &extent : item.at("shape").items()) {
        tensor.type.shape.push_back(extent.integer<std::int64_t>(0, kMostExtent));
        if (__builtin_mul_overflow(elements, std::max<std::int64_t>(tensor.type.shape.back(), 1), &elements)
            || elements > (std::int64_t{1} << 56))
            extent.fail("too many elements");
    }
    tensor.role = static_cast<TensorRole>(item.at("role").word(kRoles));
    if (const auto of = item.find("of"))
        tensor.of.index = of->index(count, -1);
    if (const auto shape = item.find("file_shape")) {
        tensor.fileShape = shape->integers<std::int64_t>(1, std::max<std::int64_t>(elements, 1));
        std::int64_t left = elements;
        for (const std::int64_t extent : tensor.fileShape) {
            if (left % extent != 0)
                shape->fail("other elements than in the shape");
            left /= extent;
        }
        if (left != 1)
            shape->fail("other elements than in the shape");
    }
    if (const auto part = item.find("file_part")) {
        tensor.filePart = filePartFromJson(*part);
        if (!fitsFilePart(tensor))
            part->fail("a tensor of this shape cannot be that part");
    }
    return tensor;
}

using Definitions = std::vector<std::shared_ptr<const OperatorDefinition>>;

/// What operators of files are, each once and in the words of an operator file, with the file that it came
/// from.
json definitionsToJson(const Definitions &definitions)
{
    json items = json::array();
    for (const auto &definition : definitions)
        items.push_back({{"file", definition->file}, {"line", definition->line},
            {"text", printOperatorFile({definition})}});
    return items;
}

Definitions definitionsFromJson(const PlanValue &value)
{
    Definitions definitions;
    for (const PlanValue &item : value.numbered()) {
        const PlanValue text = item.at("text");
        auto read = readOperatorFile(text.text(), "text");
        if (!read)
            text.fail(read.error().where + ": " + read.error().message);
        if (read->empty())
            text.fail("expected an operator");
        auto definition = std::make_shared<OperatorDefinition>(*read->front());
        definition->file = item.at("file").text();
        definition->line = item.at("line").integer(0, INT32_MAX);
        if (definition->derivative.definition) { // places of errors are those of the file
            auto gradient = std::make_shared<OperatorDefinition>(*definition->derivative.definition);
            gradient->file = definition->file;
            gradient->line = definition->line;
            definition->derivative.definition = std::move(gradient);
        }
        definitions.push_back(std::move(definition));
    }
    return definitions;
}

Annotation annotationFromJson(const PlanValue &value, std::size_t inputs)
{
    Annotation annotation;
    for (const PlanValue &entry : value.at("dimensions").items()) {
        entry.ofSize(3, "[name, size, mark]");
        annotation.dimensions.push_back(
            {entry[0].text(), entry[1].integer<std::int64_t>(0, std::int64_t{1} << 56),
                static_cast<DimensionMark>(entry[2].word(kMarks))});
    }
    annotation.inputs = termsFromJson(value.at("inputs"), annotation.dimensions.size());
    annotation.outputs = termsFromJson(value.at("outputs"), annotation.dimensions.size());
    for (const PlanValue &slot : value.at("linear").items())
        annotation.linearInputs.push_back(slot.index(inputs));
    if (const auto windows = value.find("windows"))
        for (const PlanValue &entry : windows->items()) {
            entry.ofSize(6, "[dimension, extent, kernel, stride, dilation, pad]");
            const auto number = [&](std::size_t at, std::int64_t least) {
                return entry[at].integer<std::int64_t>(least, kFarthestWindow);
            };
            annotation.windows.push_back({static_cast<std::int32_t>(number(0, 0)), number(1, 1), number(2, 1),
                number(3, 1), number(4, 1), number(5, -kFarthestWindow)});
        }
    if (const auto combinations = value.find("combinations"))
        for (const PlanValue &entry : combinations->items()) {
            const auto known = combinationNamed(entry.text());
            if (!known)
                entry.fail("expected sum, max or log-sum-exp");
            annotation.combinations.push_back(*known);
        }
    return annotation;
}

Operator operatorFromJson(
    const PlanValue &item, const Graph &graph, std::size_t count, const Definitions &definitions)
{
    Operator op;
    op.name = item.at("name").text();
    const std::string kind = item.at("kind").text();
    const auto known = operatorKindNamed(kind);
    if (!known)
        item.fail("expected an operator kind, found \"" + kind + "\"", "/kind");
    op.kind = *known;
    op.direction = static_cast<Direction>(item.at("direction").word(kDirections));
    const PlanValue attributes = item.at("attributes");
    if (!attributes.json().is_object())
        attributes.fail("expected an object");
    for (const auto &[name, value] : attributes.json().items())
        op.attributes.set(name, attributeFromJson(attributes.at(name)));
    if (op.kind == OperatorKind::Custom)
        op.attributes.setDefinition(definitions[at(item.at("definition").index(definitions.size()))]);
    op.inputs = idsFromJson(item.at("inputs"), graph.tensors.size());
    op.outputs = idsFromJson(item.at("outputs"), graph.tensors.size());
    op.annotation = annotationFromJson(item.at("annotation"), op.inputs.size());
    if (const auto mirror = item.find("mirror"))
        op.mirror.index = mirror->index(count);
    op.scope.index = item.at("scope").index(graph.scopes.size(), -1);
    if (const auto problem = item.find("annotation_problem"))
        op.annotationProblem = problem->text();
    return op;
}

/// Dimensions that once had to stay whole may be split now (what is combined otherwise than by summing): a
/// file from before says what its kinds and shapes said then. What it left whole, it may leave whole today.
void loosenAnnotations(Graph &graph)
{
    for (Operator &op : graph.operators) {
        Annotation today;
        if (op.direction == Direction::Backward) {
            if (!op.mirror || graph.at(op.mirror).direction != Direction::Forward)
                continue;
            today = backwardAnnotation(graph.at(op.mirror).annotation, op.outputs);
        } else {
            const std::vector<bool> present = presentAmong(op.inputs);
            const auto inputs = typesOf(graph, op.inputs);
            const auto outputs = typesOf(graph, op.outputs);
            if (!inferTypes(op.kind, op.attributes, inputs, present, outputs))
                continue;
            today = annotate(op.kind, op.attributes, inputs, present, outputs).annotation;
        }
        Annotation before = today;
        before.combinations = op.annotation.combinations;
        for (std::size_t d = 0; d < before.dimensions.size() && d < op.annotation.dimensions.size(); ++d)
            if (op.annotation.dimensions[d].mark == DimensionMark::Frozen)
                before.dimensions[d].mark = DimensionMark::Frozen;
        if (before == op.annotation)
            op.annotation = std::move(today);
    }
}

} // namespace

bool hasTypedAttributes(const Graph &graph)
{
    return std::any_of(graph.operators.begin(), graph.operators.end(), [](const Operator &op) {
        const auto &all = op.attributes.all();
        return std::any_of(all.begin(), all.end(),
            [](const auto &each) { return attributeToJson(each.second).is_object(); });
    });
}

json graphToJson(const Graph &graph)
{
    json tensors = json::array();
    for (const Tensor &tensor : graph.tensors) {
        json object{{"name", tensor.name}, {"type", nameOf(tensor.type.dataType)},
            {"shape", tensor.type.shape}, {"role", kRoles[static_cast<std::size_t>(tensor.role)]}};
        if (tensor.of)
            object["of"] = tensor.of.index;
        if (!tensor.fileShape.empty())
            object["file_shape"] = tensor.fileShape;
        if (tensor.filePart)
            object["file_part"] = {{"name", tensor.filePart->name}, {"shape", tensor.filePart->shape},
                {"axis", tensor.filePart->axis}, {"begin", tensor.filePart->begin}};
        tensors.push_back(std::move(object));
    }
    json operators = json::array();
    Definitions definitions;
    for (const Operator &op : graph.operators) {
        json dimensions = json::array();
        for (const Dimension &dimension : op.annotation.dimensions)
            dimensions.push_back(
                {dimension.name, dimension.size, kMarks[static_cast<std::size_t>(dimension.mark)]});
        json annotation{{"dimensions", std::move(dimensions)}, {"inputs", termsToJson(op.annotation.inputs)},
            {"outputs", termsToJson(op.annotation.outputs)}, {"linear", op.annotation.linearInputs}};
        for (const Window &window : op.annotation.windows)
            annotation["windows"].push_back(
                {window.dimension, window.extent, window.kernel, window.stride, window.dilation, window.pad});
        for (const Combination combination : op.annotation.combinations)
            annotation["combinations"].push_back(nameOf(combination));
        json object{{"name", op.name}, {"kind", nameOf(op.kind)},
            {"direction", kDirections[static_cast<std::size_t>(op.direction)]},
            {"attributes", attributesToJson(op.attributes)}, {"inputs", idsToJson(op.inputs)},
            {"outputs", idsToJson(op.outputs)}, {"annotation", std::move(annotation)},
            {"scope", op.scope.index}};
        if (const auto &definition = op.attributes.definition()) {
            const auto isSame = [&](const auto &known) {
                return known == definition || *known == *definition;
            };
            const auto found = std::find_if(definitions.begin(), definitions.end(), isSame);
            object["definition"] = found - definitions.begin();
            if (found == definitions.end())
                definitions.push_back(definition);
        }
        if (op.mirror)
            object["mirror"] = op.mirror.index;
        if (!op.annotationProblem.empty())
            object["annotation_problem"] = op.annotationProblem;
        operators.push_back(std::move(object));
    }
    json scopes = json::array();
    for (const Scope &scope : graph.scopes)
        scopes.push_back({scope.name, scope.parent.index, scope.copyClass});
    json document{{"name", graph.name}, {"tensors", std::move(tensors)}, {"operators", std::move(operators)},
        {"scopes", std::move(scopes)}, {"inputs", idsToJson(graph.inputs)},
        {"outputs", idsToJson(graph.outputs)}, {"loss", graph.loss.index}};
    if (!definitions.empty())
        document["definitions"] = definitionsToJson(definitions);
    return document;
}

Result<Graph> graphFromJson(const json &value)
{
    try {
        const PlanValue whole(value, "/graph");
        Graph graph;
        graph.name = whole.at("name").text();
        const auto tensors = whole.at("tensors").numbered();
        for (const PlanValue &tensor : tensors)
            graph.tensors.push_back(tensorFromJson(tensor, tensors.size()));
        graph.scopes.clear();
        for (const PlanValue &scope : whole.at("scopes").numbered()) {
            scope.ofSize(3, "[name, parent, copy class]");
            graph.scopes.push_back({scope[0].text(), ScopeId{scope[1].index(graph.scopes.size(), -1)},
                scope[2].integer(-1, 1 << 30)});
        }
        const auto written = whole.find("definitions");
        const Definitions definitions = written ? definitionsFromJson(*written) : Definitions{};
        const auto operators = whole.at("operators").numbered();
        for (const PlanValue &op : operators)
            graph.operators.push_back(operatorFromJson(op, graph, operators.size(), definitions));
        graph.inputs = idsFromJson(whole.at("inputs"), graph.tensors.size());
        graph.outputs = idsFromJson(whole.at("outputs"), graph.tensors.size());
        graph.loss.index = whole.at("loss").index(graph.tensors.size(), -1);
        loosenAnnotations(graph);
        if (auto valid = validate(graph); !valid)
            whole.fail(valid.error().where + ": " + valid.error().message);
        return graph;
    } catch (Error &error) {
        return std::move(error);
    } catch (const json::exception &error) {
        return Error{ErrorCode::InvalidInput, std::string("a value has the wrong type: ") + error.what(),
            "write the plan again with planloom-cli solve --out", "/graph"};
    }
}

} // namespace planloom
