#include "engine/frontend/torch/aten/aten_operators.h"

#include "engine/frontend/onnx/onnx_external.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// What an operator of ONNX that stands for (a part of) an ATen operator sees: all its results are read.
class PartScope final : public OnnxScope
{
public:
    explicit PartScope(const OnnxValue *declared)
        : m_declared(declared)
    {
    }
    bool isUsed(const std::string &) const override { return true; }
    bool isOutput(const std::string &) const override { return false; }
    std::optional<Classification> storedByNode(const OnnxTensor &) const override { return std::nullopt; }
    const OnnxValue *declared(const std::string &) const override { return m_declared; }
    Result<std::vector<TensorId>> inlineGraph(const OnnxGraph &, const std::vector<TensorId> &) override
    {
        return Error{ErrorCode::Internal, "an ATen operator became control flow", {}, {}};
    }
    Result<void> bind(const std::string &value, TensorId tensor) override
    {
        bound[value] = tensor;
        return {};
    }

    std::map<std::string, TensorId> bound{};

private:
    const OnnxValue *m_declared;
};

/// 0 Bool, 1 integral, 2 floating: types of higher categories win.
int categoryOfType(DataType type)
{
    return type == DataType::Bool ? 0 : isFloating(type) ? 2 : 1;
}

/// The type of arithmetic between two of the same category.
DataType widerType(DataType a, DataType b)
{
    if (a == b)
        return a;
    if (isFloating(a)) {
        if (a == DataType::Float64 || b == DataType::Float64)
            return DataType::Float64;
        return DataType::Float32; // also of float16 and bfloat16
    }
    constexpr std::array kOrder{
        DataType::Bool, DataType::UInt8, DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64};
    const auto rank = [&](DataType type) { return std::find(kOrder.begin(), kOrder.end(), type); };
    const auto wider = std::max(rank(a), rank(b)); // the list has all types but floating ones
    const auto narrower = std::min(rank(a), rank(b));
    // Between uint8 and int8, int16 holds both.
    return *wider == DataType::Int8 && *narrower == DataType::UInt8 ? DataType::Int16 : *wider;
}

} // namespace

std::vector<TensorId> tensorsAmong(const AtenArguments &arguments)
{
    std::vector<TensorId> tensors;
    const auto addComplex = [&](const AtenComplex &value) {
        tensors.push_back(value.real);
        tensors.push_back(value.imaginary);
    };
    for (const auto &[name, value] : arguments) {
        if (const auto *id = std::get_if<TensorId>(&value))
            tensors.push_back(*id);
        else if (const auto *ids = std::get_if<std::vector<TensorId>>(&value))
            tensors.insert(tensors.end(), ids->begin(), ids->end());
        else if (const auto *complex = std::get_if<AtenComplex>(&value))
            addComplex(*complex);
        else if (const auto *list = std::get_if<std::vector<AtenComplex>>(&value))
            std::for_each(list->begin(), list->end(), addComplex);
    }
    return tensors;
}

AtenContext::AtenContext(std::string target, std::string name, AtenArguments arguments, OnnxNodeContext &node,
    std::vector<const OnnxValue *> declared)
    : m_target(std::move(target))
    , m_name(std::move(name))
    , m_arguments(std::move(arguments))
    , m_node(node)
    , m_declared(std::move(declared))
{
}

const AtenValue &AtenContext::value(std::string_view name) const
{
    static const AtenValue kNone;
    const auto found = m_arguments.find(std::string(name));
    return found == m_arguments.end() ? kNone : found->second;
}

bool AtenContext::given(std::string_view name) const
{
    return !std::holds_alternative<std::monostate>(value(name));
}

Error AtenContext::wrongArgument(std::string_view name, const char *expected) const
{
    return invalid("argument '" + std::string(name) + "' should be " + expected
        + (given(name) ? ", but is something else" : ", but is missing"));
}

Result<TensorId> AtenContext::tensor(std::string_view name) const
{
    if (const auto *id = std::get_if<TensorId>(&value(name)))
        return *id;
    return wrongArgument(name, "a tensor");
}

Result<TensorId> AtenContext::optionalTensor(std::string_view name) const
{
    return given(name) ? tensor(name) : Result<TensorId>(TensorId{});
}

Result<std::vector<TensorId>> AtenContext::tensors(std::string_view name) const
{
    if (const auto *ids = std::get_if<std::vector<TensorId>>(&value(name)))
        return *ids;
    return wrongArgument(name, "a list of tensors");
}

Result<std::int64_t> AtenContext::integer(std::string_view name) const
{
    if (const auto *number = std::get_if<std::int64_t>(&value(name)))
        return *number;
    if (const auto *flag = std::get_if<bool>(&value(name)))
        return std::int64_t{*flag ? 1 : 0};
    return wrongArgument(name, "an integer");
}

Result<std::int64_t> AtenContext::integer(std::string_view name, std::int64_t fallback) const
{
    return given(name) ? integer(name) : Result<std::int64_t>(fallback);
}

Result<double> AtenContext::real(std::string_view name, double fallback) const
{
    if (!given(name))
        return fallback;
    if (const auto *number = std::get_if<double>(&value(name)))
        return *number;
    TRY(const std::int64_t number, integer(name));
    return static_cast<double>(number);
}

Result<bool> AtenContext::flag(std::string_view name, bool fallback) const
{
    TRY(const std::int64_t number, integer(name, fallback ? 1 : 0));
    return number != 0;
}

Result<std::string> AtenContext::text(std::string_view name, std::string_view fallback) const
{
    if (!given(name))
        return std::string(fallback);
    if (const auto *text = std::get_if<std::string>(&value(name)))
        return *text;
    return wrongArgument(name, "a text");
}

Result<Integers> AtenContext::integers(std::string_view name) const
{
    if (const auto *list = std::get_if<Integers>(&value(name)))
        return *list;
    // An empty list of numbers says of no kind that it is.
    if (const auto *reals = std::get_if<std::vector<double>>(&value(name));
        reals != nullptr && reals->empty())
        return Integers{};
    if (const auto *number = std::get_if<std::int64_t>(&value(name)))
        return Integers{*number};
    return wrongArgument(name, "a list of integers");
}

Result<Integers> AtenContext::integers(std::string_view name, const Integers &fallback) const
{
    return given(name) ? integers(name) : Result<Integers>(fallback);
}

Result<Integers> AtenContext::perDimension(
    std::string_view name, std::size_t count, std::int64_t fallback) const
{
    TRY(Integers list, integers(name, {}));
    if (list.empty())
        list = {fallback};
    if (list.size() == 1)
        list.assign(count, list.front());
    if (list.size() != count)
        return invalid("argument '" + std::string(name) + "' is " + toString(list) + ", where "
            + std::to_string(count) + " numbers were expected");
    return list;
}

Result<DataType> AtenContext::dataType(DataType fallback) const
{
    if (!given("dtype"))
        return fallback;
    const auto *type = std::get_if<Pt2DataType>(&value("dtype"));
    if (type == nullptr)
        return wrongArgument("dtype", "an element type");
    if (!type->type)
        return unsupported("it makes " + type->name + ", which Planloom does not compute with",
            "use float or integer types that Planloom has");
    return *type->type;
}

Result<TensorId> AtenContext::operand(std::string_view name, DataType type) const
{
    const AtenValue &given = value(name);
    if (const auto *id = std::get_if<TensorId>(&given))
        return *id;
    OnnxBuilder &builder = m_node.builder();
    if (const auto *number = std::get_if<std::int64_t>(&given)) {
        if (type == DataType::Int64)
            return builder.addConstant(integerTensor({*number}, {}));
        return builder.addConstant(scalarTensor(type, static_cast<double>(*number)));
    }
    if (const auto *number = std::get_if<double>(&given))
        return builder.addConstant(scalarTensor(type, *number));
    if (const auto *flag = std::get_if<bool>(&given))
        return builder.addConstant(scalarTensor(type, *flag ? 1 : 0));
    return wrongArgument(name, "a tensor or a number");
}

Result<std::int64_t> AtenContext::dimension(
    std::string_view name, std::int64_t rank, std::int64_t fallback) const
{
    TRY(const std::int64_t written, integer(name, fallback));
    // A scalar has one dimension to name.
    return m_node.axis(written, std::max<std::int64_t>(rank, 1));
}

Result<Integers> AtenContext::dimensions(
    std::string_view name, std::int64_t rank, const Integers &fallback) const
{
    TRY(const Integers written, integers(name, {}));
    if (written.empty())
        return fallback;
    Integers result;
    for (const std::int64_t value : written) {
        TRY(const std::int64_t axis, m_node.axis(value, std::max<std::int64_t>(rank, 1)));
        if (rank > 0 && std::find(result.begin(), result.end(), axis) == result.end())
            result.push_back(axis);
    }
    return result;
}

Result<DataType> AtenContext::promotedType(std::initializer_list<std::string_view> names) const
{
    // By priority: tensors with dimensions, tensors without, numbers.
    std::array<std::optional<DataType>, 3> types{};
    const auto join = [&](std::size_t priority, DataType type) {
        auto &joined = types[priority];
        if (!joined || categoryOfType(type) > categoryOfType(*joined))
            joined = type;
        else if (categoryOfType(type) == categoryOfType(*joined))
            joined = widerType(*joined, type);
    };
    for (const std::string_view name : names) {
        const AtenValue &argument = value(name);
        if (const auto *id = std::get_if<TensorId>(&argument)) {
            const TensorType &type = m_node.builder().typeOf(*id);
            join(type.shape.empty() ? 1 : 0, type.dataType);
        } else if (std::holds_alternative<double>(argument)) {
            join(2, DataType::Float32);
        } else if (std::holds_alternative<std::int64_t>(argument)) {
            join(2, DataType::Int64);
        } else if (std::holds_alternative<bool>(argument)) {
            join(2, DataType::Bool);
        } else {
            return wrongArgument(name, "a tensor or a number");
        }
    }
    std::optional<DataType> result;
    for (const auto &type : types) {
        if (type && (!result || categoryOfType(*type) > categoryOfType(*result)))
            result = type;
    }
    return *result;
}

Result<std::vector<TensorId>> AtenContext::operands(
    std::initializer_list<std::string_view> names, DataType type)
{
    std::vector<TensorId> result;
    for (const std::string_view name : names) {
        TRY(const TensorId plain, operand(name, type));
        TRY(const TensorId typed, cast(plain, type, name));
        result.push_back(typed);
    }
    return result;
}

Shape AtenContext::broadcastShape(const std::vector<TensorId> &tensors)
{
    Shape shape;
    for (const TensorId x : tensors) {
        const Shape &own = shapeOf(x);
        if (own.size() > shape.size())
            shape.insert(shape.begin(), own.size() - shape.size(), 1);
        for (std::size_t i = 0; i < own.size(); ++i) {
            std::int64_t &extent = shape[shape.size() - own.size() + i];
            extent = extent == 1 ? own[i] : extent;
        }
    }
    return shape;
}

Result<std::vector<TensorId>> AtenContext::onnxMany(const std::string &type, std::vector<TensorId> inputs,
    std::map<std::string, OnnxAttribute, std::less<>> attributes, std::size_t results,
    std::string_view suffix)
{
    const OnnxNode &own = m_node.node();
    OnnxNode node;
    const std::string ending = suffix.empty() ? std::string() : "_" + std::string(suffix);
    node.name = own.name + ending;
    node.type = type;
    node.attributes = std::move(attributes);
    for (const TensorId input : inputs)
        node.inputs.push_back(input ? m_node.builder().at(input).name : std::string());
    for (std::size_t slot = 0; slot < results; ++slot) {
        const std::string base = slot < own.outputs.size() && !own.outputs[slot].empty()
            ? own.outputs[slot]
            : own.name + "." + std::to_string(slot);
        node.outputs.push_back(base + ending);
    }
    PartScope scope(m_declared.empty() ? nullptr : m_declared.front());
    OnnxNodeContext context(node, std::move(inputs), m_node.builder(), scope, SourceNode{own.name, m_target});
    TRY_VOID(importNode(context));
    std::vector<TensorId> made;
    for (const std::string &name : node.outputs) {
        const auto found = scope.bound.find(name);
        if (found == scope.bound.end())
            return unsupported("it is not computed");
        made.push_back(found->second);
    }
    return made;
}

Result<TensorId> AtenContext::onnx(const std::string &type, std::vector<TensorId> inputs,
    std::map<std::string, OnnxAttribute, std::less<>> attributes, std::string_view suffix)
{
    TRY(const auto made, onnxMany(type, std::move(inputs), std::move(attributes), 1, suffix));
    return made.front();
}

Result<void> AtenContext::finishOnnx(const std::string &type, std::vector<TensorId> inputs,
    std::map<std::string, OnnxAttribute, std::less<>> attributes)
{
    TRY(const TensorId made, onnx(type, std::move(inputs), std::move(attributes)));
    return bind(0, made);
}

bool AtenContext::isComplex() const
{
    return std::any_of(m_arguments.begin(), m_arguments.end(), [](const auto &argument) {
        const auto *type = std::get_if<Pt2DataType>(&argument.second);
        return std::holds_alternative<AtenComplex>(argument.second)
            || std::holds_alternative<std::vector<AtenComplex>>(argument.second)
            || std::holds_alternative<std::complex<double>>(argument.second)
            || (type != nullptr && type->partType.has_value());
    });
}

Result<std::vector<AtenValue>> AtenContext::otherMany(
    const std::string &name, AtenArguments arguments, std::size_t results, std::string_view suffix)
{
    const OnnxNode &own = m_node.node();
    OnnxNode node;
    node.name = own.name + "_" + std::string(suffix);
    node.type = "aten." + name;
    for (std::size_t slot = 0; slot < results; ++slot) {
        const std::string base = slot < own.outputs.size() && !own.outputs[slot].empty()
            ? own.outputs[slot]
            : own.name + "." + std::to_string(slot);
        node.outputs.push_back(base + "_" + std::string(suffix));
    }
    PartScope scope(nullptr);
    OnnxNodeContext inner(
        node, tensorsAmong(arguments), m_node.builder(), scope, SourceNode{own.name, m_target});
    AtenContext context(m_target, name, std::move(arguments), inner, std::vector<const OnnxValue *>(results));
    const AtenHandler handler = context.isComplex() ? findAtenComplex(name) : findAtenHandler(name);
    if (handler == nullptr)
        return unsupported(name + " of such values is not computed");
    TRY_VOID(handler(context));
    std::vector<AtenValue> made;
    for (std::size_t slot = 0; slot < results; ++slot) {
        const auto found = scope.bound.find(node.outputs[slot]);
        const auto complex = context.complexResults().find(slot);
        if (complex != context.complexResults().end())
            made.emplace_back(complex->second);
        else if (found != scope.bound.end())
            made.emplace_back(found->second);
        else
            return unsupported(name + " is not computed");
    }
    return made;
}

Result<TensorId> AtenContext::other(const std::string &name, AtenArguments arguments, std::string_view suffix)
{
    TRY(const auto made, otherMany(name, std::move(arguments), 1, suffix));
    if (const auto *id = std::get_if<TensorId>(&made.front()))
        return *id;
    return unsupported(name + " makes complex numbers");
}

Result<AtenComplex> AtenContext::otherComplex(
    const std::string &name, AtenArguments arguments, std::string_view suffix)
{
    TRY(const auto made, otherMany(name, std::move(arguments), 1, suffix));
    if (const auto *complex = std::get_if<AtenComplex>(&made.front()))
        return *complex;
    return unsupported(name + " makes real numbers");
}

Result<void> AtenContext::bindComplex(std::size_t slot, const AtenComplex &value)
{
    m_complex.insert_or_assign(slot, value);
    return {};
}

Result<void> AtenContext::bindValue(std::size_t slot, const AtenValue &value)
{
    if (const auto *complex = std::get_if<AtenComplex>(&value))
        return bindComplex(slot, *complex);
    if (const auto *id = std::get_if<TensorId>(&value))
        return bind(slot, *id);
    return unsupported("it makes no tensor");
}

Result<TensorId> AtenContext::make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared, std::string_view suffix)
{
    return m_node.make(kind, std::move(inputs), std::move(attributes), std::move(declared), suffix);
}

Result<std::vector<TensorId>> AtenContext::makeMany(
    OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes, std::string_view suffix)
{
    return m_node.makeMany(kind, std::move(inputs), std::move(attributes), {}, suffix);
}

Result<void> AtenContext::finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared)
{
    return m_node.finish(kind, std::move(inputs), std::move(attributes), std::move(declared));
}

Result<TensorId> AtenContext::cast(TensorId x, DataType type, std::string_view suffix)
{
    const TensorType from = typeOf(x);
    if (from.dataType == type)
        return x;
    return make(OperatorKind::Cast, {x}, {}, TensorType{type, from.shape}, suffix);
}

Result<TensorId> AtenContext::reshape(TensorId x, Shape shape, std::string_view suffix)
{
    if (elementCount(shape) != elementCount(shapeOf(x)))
        return invalid(
            "a value of shape " + toString(shapeOf(x)) + " cannot take the shape " + toString(shape));
    return m_node.reshape(x, std::move(shape), suffix);
}

Result<TensorId> AtenContext::permute(TensorId x, Integers order, std::string_view suffix)
{
    return onnx("Transpose", {x}, {{"perm", std::move(order)}}, suffix);
}

Result<void> AtenContext::finishPermuted(TensorId x, Integers order)
{
    TRY(const TensorId y, permute(x, std::move(order), ""));
    return bind(0, y);
}

Result<std::vector<TensorId>> AtenContext::placesIn(TensorId mask)
{
    TRY(const TensorId places, onnx("NonZero", {mask}, {}, "places"));
    const Shape shape = shapeOf(places);
    std::vector<TensorId> lists;
    for (std::int64_t r = 0; r < shape[0]; ++r) {
        const std::string suffix = "index_" + std::to_string(r);
        TRY(TensorId list, slice(places, 0, r, r + 1, 1, suffix));
        TRY(list, reshape(list, {shape[1]}, suffix));
        lists.push_back(list);
    }
    return lists;
}

Result<TensorId> AtenContext::slice(TensorId x, std::int64_t axis, std::int64_t begin, std::int64_t end,
    std::int64_t step, std::string_view suffix)
{
    return onnx("Slice", {x, list({begin}), list({end}), list({axis}), list({step})}, {}, suffix);
}

Result<TensorId> AtenContext::expand(TensorId x, const Shape &shape, std::string_view suffix)
{
    Shape wanted = shape;
    const Shape &from = shapeOf(x);
    if (wanted.size() < from.size())
        return invalid("a value of shape " + toString(from) + " does not broadcast to " + toString(shape));
    const std::size_t added = wanted.size() - from.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] == -1 && i >= added)
            wanted[i] = from[i - added];
    }
    return onnx("Expand", {x, list(wanted)}, {}, suffix);
}

Result<TensorId> AtenContext::concat(std::vector<TensorId> parts, std::int64_t axis, std::string_view suffix)
{
    return onnx("Concat", std::move(parts), {{"axis", axis}}, suffix);
}

TensorId AtenContext::scalar(DataType type, double value)
{
    return m_node.scalar(type, value);
}

TensorId AtenContext::integerScalar(std::int64_t value)
{
    return builder().addConstant(integerTensor({value}, {}));
}

TensorId AtenContext::list(Integers values)
{
    const auto count = static_cast<std::int64_t>(values.size());
    return builder().addConstant(integerTensor(std::move(values), {count}));
}

Result<TensorId> AtenContext::filled(const TensorType &type, const AtenValue &value, std::string_view suffix)
{
    Number number = Number::ofReal(0);
    if (const auto *integer = std::get_if<std::int64_t>(&value))
        number = Number::ofInteger(*integer);
    else if (const auto *real = std::get_if<double>(&value))
        number = Number::ofReal(*real);
    else if (const auto *flag = std::get_if<bool>(&value))
        number = Number::ofInteger(*flag ? 1 : 0);
    else
        return wrongArgument("fill_value", "a number");
    if (!checkedElementCount(type.shape))
        return invalid("it would make a value of shape " + toString(type.shape));
    if (auto data = builder().filled(type, number))
        return builder().addConstant(std::move(data));
    return make(OperatorKind::Fill, {}, attributesFrom({{"value", number.asReal()}}), type, suffix);
}

Result<void> AtenContext::makeDefined(const std::shared_ptr<const OperatorDefinition> &definition)
{
    Attributes attributes;
    for (const auto &[name, value] : m_arguments) {
        if (const auto *integer = std::get_if<std::int64_t>(&value))
            attributes.set(name, *integer);
        else if (const auto *real = std::get_if<double>(&value))
            attributes.set(name, *real);
        else if (const auto *flag = std::get_if<bool>(&value))
            attributes.set(name, static_cast<std::int64_t>(*flag));
        else if (const auto *text = std::get_if<std::string>(&value))
            attributes.set(name, *text);
        else if (const auto *integers = std::get_if<std::vector<std::int64_t>>(&value))
            attributes.set(name, *integers);
        else if (const auto *reals = std::get_if<std::vector<double>>(&value))
            attributes.set(name, *reals);
    }
    const bool byName = std::all_of(definition->inputs.begin(), definition->inputs.end(),
        [this](const DefinedTensor &input) { return input.optional || given(input.name); });
    std::vector<TensorId> inputs;
    if (byName) {
        for (const DefinedTensor &input : definition->inputs) {
            TRY(const TensorId id, optionalTensor(input.name));
            inputs.push_back(id);
        }
    } else {
        inputs = m_node.inputs();
    }
    return m_node.makeDefined(definition, std::move(inputs), attributes);
}

Result<void> AtenContext::keepUnknown(const std::string &reason)
{
    for (std::size_t slot = 0; slot < resultCount(); ++slot) {
        if (wants(slot) && (slot >= m_declared.size() || m_declared[slot] == nullptr))
            return unsupported(reason + ", and the shape of its result depends on data or is not declared",
                "write the module without it, or with results of a fixed size");
    }
    return m_node.keepUnknown(reason);
}

AtenHandler findAtenHandler(std::string_view name)
{
    for (const auto find :
        {findAtenElementwise, findAtenActivation, findAtenShape, findAtenMovement, findAtenIndex,
            findAtenNetwork, findAtenNorm, findAtenReduction, findAtenFilling, findAtenLoss, findAtenBag,
            findAtenDistance, findAtenMargin, findAtenOrder, findAtenPool, findAtenQuantize, findAtenSequence,
            findAtenSpecial, findAtenScatter, findAtenWindow, findAtenFourier, findAtenMakingComplex}) {
        if (const AtenHandler handler = find(name))
            return handler;
    }
    return nullptr;
}

} // namespace planloom
