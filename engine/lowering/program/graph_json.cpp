#include "engine/lowering/program/graph_json.h"

#include "engine/graph/operator_files/operator_file.h"
#include "engine/graph/operators/catalogue.h"

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

[[noreturn]] void fail(const std::string &where, const std::string &message)
{
    throw Error{
        ErrorCode::InvalidInput, message, "write the plan again with planloom-cli solve --out", where};
}

const json &at(const json &object, const char *name, const std::string &where)
{
    if (!object.is_object())
        fail(where, "expected an object");
    const auto it = object.find(name);
    if (it == object.end())
        fail(where + "/" + name, "is missing");
    return *it;
}

const json &list(const json &value, const std::string &where)
{
    if (!value.is_array())
        fail(where, "expected a list");
    return value;
}

std::int64_t integer(const json &value, const std::string &where, std::int64_t least, std::int64_t most)
{
    if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
        || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
        fail(where, "expected an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return value.get<std::int64_t>();
}

std::string text(const json &value, const std::string &where)
{
    if (!value.is_string())
        fail(where, "expected a text");
    return value;
}

std::size_t named(const json &value, const std::string &where, const char *const *names, std::size_t count)
{
    const std::string name = text(value, where);
    for (std::size_t i = 0; i < count; ++i)
        if (name == names[i])
            return i;
    fail(where, "expected a known name, found \"" + name + "\"");
}

double realFromJson(const json &value, const std::string &where)
{
    if (value.is_number())
        return value.get<double>();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static const std::map<std::string, double, std::less<>> kWords = {
        {"inf", kInfinity}, {"-inf", -kInfinity}, {"nan", std::numeric_limits<double>::quiet_NaN()}};
    const auto known = value.is_string() ? kWords.find(value.get<std::string>()) : kWords.end();
    if (known == kWords.end())
        fail(where, "expected a number, \"inf\", \"-inf\" or \"nan\"");
    return known->second;
}

/// An attribute that says its type: see `attributeToJson`.
Attribute typedAttributeFromJson(const json &value, const std::string &where)
{
    if (value.size() == 1 && value.contains("real"))
        return realFromJson(value["real"], where + "/real");
    if (value.size() == 1 && value.contains("reals")) {
        std::vector<double> reals;
        for (const json &item : list(value["reals"], where + "/reals"))
            reals.push_back(realFromJson(item, where + "/reals"));
        return reals;
    }
    if (value.size() == 1 && value.contains("texts")) {
        std::vector<std::string> texts;
        for (const json &item : list(value["texts"], where + "/texts"))
            texts.push_back(text(item, where + "/texts"));
        return texts;
    }
    fail(where, "expected real, reals or texts");
}

Attribute attributeFromJson(const json &value, const std::string &where)
{
    if (value.is_object())
        return typedAttributeFromJson(value, where);
    if (value.is_number_integer())
        return value.get<std::int64_t>();
    if (value.is_number_float())
        return value.get<double>();
    if (value.is_string())
        return value.get<std::string>();
    const json &items = list(value, where);
    if (!items.empty() && items[0].is_string()) {
        std::vector<std::string> texts;
        for (const json &item : items)
            texts.push_back(text(item, where));
        return texts;
    }
    if (!items.empty() && items[0].is_number_float()) {
        std::vector<double> reals;
        for (const json &item : items) {
            if (!item.is_number())
                fail(where, "expected numbers");
            reals.push_back(item);
        }
        return reals;
    }
    std::vector<std::int64_t> integers;
    for (const json &item : items)
        integers.push_back(integer(item, where, INT64_MIN, INT64_MAX));
    return integers;
}

std::vector<TensorTerms> termsFromJson(const json &value, const std::string &where, std::size_t dimensions)
{
    std::vector<TensorTerms> tensors;
    for (const json &item : list(value, where)) {
        TensorTerms &tensor = tensors.emplace_back();
        if (item.is_null()) {
            tensor.opaque = true;
            continue;
        }
        for (const json &term : list(item, where)) {
            Term &factors = tensor.terms.emplace_back();
            for (const json &factor : list(term, where)) {
                if (factor.is_string() && &factor == &term.back())
                    factors.reach =
                        static_cast<WindowReach>(named(factor, where, kReaches.data(), kReaches.size()));
                else
                    factors.factors.push_back(static_cast<std::int32_t>(
                        integer(factor, where, 0, static_cast<std::int64_t>(dimensions) - 1)));
            }
        }
    }
    return tensors;
}

std::vector<TensorId> idsFromJson(const json &value, const std::string &where, std::size_t tensors)
{
    std::vector<TensorId> ids;
    for (const json &item : list(value, where))
        ids.push_back(TensorId{
            static_cast<std::int32_t>(integer(item, where, -1, static_cast<std::int64_t>(tensors) - 1))});
    return ids;
}

Tensor tensorFromJson(const json &item, const std::string &where, std::size_t count)
{
    Tensor tensor;
    tensor.name = text(at(item, "name", where), where + "/name");
    const std::string type = text(at(item, "type", where), where + "/type");
    bool known = false;
    for (const DataType dataType : kDataTypes)
        if (type == nameOf(dataType)) {
            tensor.type.dataType = dataType;
            known = true;
        }
    if (!known)
        fail(where + "/type", "expected an element type, found \"" + type + "\"");
    std::int64_t elements = 1;
    for (const json &extent : list(at(item, "shape", where), where + "/shape")) {
        tensor.type.shape.push_back(integer(extent, where + "/shape", 0, std::int64_t{1} << 40));
        if (__builtin_mul_overflow(elements, std::max<std::int64_t>(tensor.type.shape.back(), 1), &elements)
            || elements > (std::int64_t{1} << 56))
            fail(where + "/shape", "too many elements");
    }
    tensor.role = static_cast<TensorRole>(
        named(at(item, "role", where), where + "/role", kRoles.data(), kRoles.size()));
    if (item.contains("of"))
        tensor.of.index = static_cast<std::int32_t>(
            integer(item["of"], where + "/of", -1, static_cast<std::int64_t>(count) - 1));
    if (item.contains("file_shape")) {
        for (const json &extent : list(item["file_shape"], where + "/file_shape"))
            tensor.fileShape.push_back(
                integer(extent, where + "/file_shape", 1, std::max<std::int64_t>(elements, 1)));
        std::int64_t left = elements;
        for (const std::int64_t extent : tensor.fileShape) {
            if (left % extent != 0)
                fail(where + "/file_shape", "other elements than in the shape");
            left /= extent;
        }
        if (left != 1)
            fail(where + "/file_shape", "other elements than in the shape");
    }
    if (item.contains("file_part")) {
        const json &value = item["file_part"];
        const std::string place = where + "/file_part";
        FilePart part;
        part.name = text(at(value, "name", place), place + "/name");
        for (const json &extent : list(at(value, "shape", place), place + "/shape"))
            part.shape.push_back(integer(extent, place + "/shape", 0, std::int64_t{1} << 40));
        part.axis = static_cast<std::int32_t>(integer(
            at(value, "axis", place), place + "/axis", 0, static_cast<std::int64_t>(part.shape.size()) - 1));
        part.begin = integer(
            at(value, "begin", place), place + "/begin", 0, part.shape[static_cast<std::size_t>(part.axis)]);
        tensor.filePart = std::move(part);
        if (!fitsFilePart(tensor))
            fail(place, "a tensor of this shape cannot be that part");
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

Definitions definitionsFromJson(const json &value)
{
    Definitions definitions;
    for (const json &item : list(value, "/graph/definitions")) {
        const std::string where = "/graph/definitions/" + std::to_string(definitions.size());
        auto read = readOperatorFile(text(at(item, "text", where), where + "/text"), "text");
        if (!read)
            fail(where + "/text", read.error().where + ": " + read.error().message);
        if (read->empty())
            fail(where + "/text", "expected an operator");
        auto definition = std::make_shared<OperatorDefinition>(*read->front());
        definition->file = text(at(item, "file", where), where + "/file");
        definition->line =
            static_cast<std::int32_t>(integer(at(item, "line", where), where + "/line", 0, INT32_MAX));
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

Operator operatorFromJson(const json &item, const std::string &where, const Graph &graph, std::size_t count,
    const Definitions &definitions)
{
    Operator op;
    op.name = text(at(item, "name", where), where + "/name");
    const std::string kind = text(at(item, "kind", where), where + "/kind");
    const auto known = operatorKindNamed(kind);
    if (!known)
        fail(where + "/kind", "expected an operator kind, found \"" + kind + "\"");
    op.kind = *known;
    op.direction = static_cast<Direction>(
        named(at(item, "direction", where), where + "/direction", kDirections.data(), kDirections.size()));
    const json &attributes = at(item, "attributes", where);
    if (!attributes.is_object())
        fail(where + "/attributes", "expected an object");
    for (const auto &[name, value] : attributes.items())
        op.attributes.set(name, attributeFromJson(value, where + "/attributes/" + name));
    if (op.kind == OperatorKind::Custom)
        op.attributes.setDefinition(
            definitions[static_cast<std::size_t>(integer(at(item, "definition", where), where + "/definition",
                0, static_cast<std::int64_t>(definitions.size()) - 1))]);
    op.inputs = idsFromJson(at(item, "inputs", where), where + "/inputs", graph.tensors.size());
    op.outputs = idsFromJson(at(item, "outputs", where), where + "/outputs", graph.tensors.size());
    const std::string place = where + "/annotation";
    const json &annotation = at(item, "annotation", where);
    static constexpr std::array<const char *, 3> kMarks{"", "+", "^"};
    for (const json &entry : list(at(annotation, "dimensions", place), place + "/dimensions")) {
        if (!entry.is_array() || entry.size() != 3)
            fail(place + "/dimensions", "expected [name, size, mark]");
        op.annotation.dimensions.push_back(
            {text(entry[0], place), integer(entry[1], place, 0, std::int64_t{1} << 56),
                static_cast<DimensionMark>(named(entry[2], place, kMarks.data(), kMarks.size()))});
    }
    const std::size_t dimensions = op.annotation.dimensions.size();
    op.annotation.inputs = termsFromJson(at(annotation, "inputs", place), place + "/inputs", dimensions);
    op.annotation.outputs = termsFromJson(at(annotation, "outputs", place), place + "/outputs", dimensions);
    for (const json &slot : list(at(annotation, "linear", place), place + "/linear"))
        op.annotation.linearInputs.push_back(static_cast<std::int32_t>(
            integer(slot, place + "/linear", 0, static_cast<std::int64_t>(op.inputs.size()) - 1)));
    if (annotation.contains("windows"))
        for (const json &entry : list(annotation["windows"], place + "/windows")) {
            if (!entry.is_array() || entry.size() != 6)
                fail(place + "/windows", "expected [dimension, extent, kernel, stride, dilation, pad]");
            const auto number = [&](std::size_t at, std::int64_t least) {
                return integer(entry[at], place + "/windows", least, kFarthestWindow);
            };
            op.annotation.windows.push_back({static_cast<std::int32_t>(number(0, 0)), number(1, 1),
                number(2, 1), number(3, 1), number(4, 1), number(5, -kFarthestWindow)});
        }
    if (annotation.contains("combinations"))
        for (const json &entry : list(annotation["combinations"], place + "/combinations")) {
            const auto known = combinationNamed(text(entry, place + "/combinations"));
            if (!known)
                fail(place + "/combinations", "expected sum, max or log-sum-exp");
            op.annotation.combinations.push_back(*known);
        }
    if (item.contains("mirror"))
        op.mirror.index = static_cast<std::int32_t>(
            integer(item["mirror"], where + "/mirror", 0, static_cast<std::int64_t>(count) - 1));
    op.scope.index = static_cast<std::int32_t>(integer(
        at(item, "scope", where), where + "/scope", -1, static_cast<std::int64_t>(graph.scopes.size()) - 1));
    if (item.contains("annotation_problem"))
        op.annotationProblem = text(item["annotation_problem"], where + "/annotation_problem");
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
    static constexpr std::array<const char *, 3> kMarks{"", "+", "^"};
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
        Graph graph;
        graph.name = text(at(value, "name", "/graph"), "/graph/name");
        const json &tensors = list(at(value, "tensors", "/graph"), "/graph/tensors");
        for (std::size_t t = 0; t < tensors.size(); ++t)
            graph.tensors.push_back(
                tensorFromJson(tensors[t], "/graph/tensors/" + std::to_string(t), tensors.size()));
        graph.scopes.clear();
        const json &scopes = list(at(value, "scopes", "/graph"), "/graph/scopes");
        for (std::size_t s = 0; s < scopes.size(); ++s) {
            const std::string where = "/graph/scopes/" + std::to_string(s);
            if (!scopes[s].is_array() || scopes[s].size() != 3)
                fail(where, "expected [name, parent, copy class]");
            graph.scopes.push_back({text(scopes[s][0], where),
                ScopeId{static_cast<std::int32_t>(
                    integer(scopes[s][1], where, -1, static_cast<std::int64_t>(s) - 1))},
                static_cast<std::int32_t>(integer(scopes[s][2], where, -1, 1 << 30))});
        }
        const Definitions definitions =
            value.contains("definitions") ? definitionsFromJson(value["definitions"]) : Definitions{};
        const json &operators = list(at(value, "operators", "/graph"), "/graph/operators");
        for (std::size_t o = 0; o < operators.size(); ++o)
            graph.operators.push_back(operatorFromJson(
                operators[o], "/graph/operators/" + std::to_string(o), graph, operators.size(), definitions));
        graph.inputs = idsFromJson(at(value, "inputs", "/graph"), "/graph/inputs", graph.tensors.size());
        graph.outputs = idsFromJson(at(value, "outputs", "/graph"), "/graph/outputs", graph.tensors.size());
        graph.loss.index = static_cast<std::int32_t>(integer(at(value, "loss", "/graph"), "/graph/loss", -1,
            static_cast<std::int64_t>(graph.tensors.size()) - 1));
        loosenAnnotations(graph);
        if (auto valid = validate(graph); !valid)
            fail("/graph", valid.error().where + ": " + valid.error().message);
        return graph;
    } catch (Error &error) {
        return std::move(error);
    } catch (const json::exception &error) {
        return Error{ErrorCode::InvalidInput, std::string("a value has the wrong type: ") + error.what(),
            "write the plan again with planloom-cli solve --out", "/graph"};
    }
}

} // namespace planloom
