#include "engine/frontend/torch/aten/aten_operators.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

} // namespace

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

Result<std::vector<AtenValue>> AtenContext::otherMany(
    const std::string &name, AtenArguments arguments, std::size_t results, std::string_view suffix)
{
    NodeWriter part = writer().part(suffix, results);
    std::vector<TensorId> inputs = tensorsAmong(arguments);
    AtenContext context(name, std::move(arguments), std::move(inputs), part);
    const AtenHandler handler = context.isComplex() ? findAtenComplex(name) : findAtenHandler(name);
    if (handler == nullptr)
        return unsupported(name + " of such values is not computed");
    TRY_VOID(handler(context));
    std::vector<AtenValue> made;
    for (std::size_t slot = 0; slot < results; ++slot) {
        const auto found = part.bound().find(slot);
        const auto complex = context.complexResults().find(slot);
        if (complex != context.complexResults().end())
            made.emplace_back(complex->second);
        else if (found != part.bound().end())
            made.emplace_back(found->second);
        else
            return unsupported(name + " is not computed");
    }
    return made;
}

Result<TensorId> AtenContext::named(std::string_view suffix, Result<TensorId> made)
{
    if (made)
        graph().nameTensor(*made, writer().partName(suffix, 0));
    return made;
}

Result<std::vector<TensorId>> AtenContext::named(std::string_view suffix, Result<std::vector<TensorId>> made)
{
    for (std::size_t slot = 0; made && slot < made->size(); ++slot)
        graph().nameTensor((*made)[slot], writer().partName(suffix, slot));
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
    return writer().make(kind, std::move(inputs), std::move(attributes), std::move(declared), suffix);
}

Result<std::vector<TensorId>> AtenContext::makeMany(
    OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes, std::string_view suffix)
{
    return writer().makeMany(kind, std::move(inputs), std::move(attributes), {}, suffix);
}

Result<void> AtenContext::finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared)
{
    return finish(make(kind, std::move(inputs), std::move(attributes), std::move(declared)));
}

Result<void> AtenContext::finish(Result<TensorId> made)
{
    TRY(const TensorId y, made);
    return bind(0, y);
}

Result<void> AtenContext::finish(Result<std::vector<TensorId>> made)
{
    TRY(const auto results, made);
    return writer().bindAll(results);
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
    return writer().reshape(x, std::move(shape), suffix);
}

Result<TensorId> AtenContext::permute(TensorId x, Integers order, std::string_view suffix)
{
    return part(suffix, emitTranspose, x, order);
}

Result<void> AtenContext::finishPermuted(TensorId x, Integers order)
{
    return finish(permute(x, std::move(order), ""));
}

Result<std::vector<TensorId>> AtenContext::placesIn(TensorId mask)
{
    TRY(const TensorId places, part("places", emitNonZero, mask));
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
    return part(suffix, emitSlice, x, SliceBounds{{begin}, {end}, Integers{axis}, Integers{step}});
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
    return part(suffix, emitExpand, x, wanted);
}

Result<TensorId> AtenContext::concat(std::vector<TensorId> parts, std::int64_t axis, std::string_view suffix)
{
    return part(suffix, emitConcat, parts, axis);
}

TensorId AtenContext::scalar(DataType type, double value)
{
    return writer().scalar(type, value);
}

TensorId AtenContext::integerScalar(std::int64_t value)
{
    return graph().addConstant(integerTensor({value}, {}));
}

TensorId AtenContext::list(Integers values)
{
    const auto count = static_cast<std::int64_t>(values.size());
    return graph().addConstant(integerTensor(std::move(values), {count}));
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
    if (auto data = graph().constants().filled(type, number))
        return graph().addConstant(std::move(data));
    return make(OperatorKind::Fill, {}, attributesFrom({{"value", number.asReal()}}), type, suffix);
}

Result<void> AtenContext::makeDefined(const std::shared_ptr<const OperatorDefinition> &definition)
{
    Attributes attributes;
    for (const auto &[name, value] : arguments()) {
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
        inputs = m_inputs;
    }
    return writer().makeDefined(definition, std::move(inputs), attributes);
}

Result<void> AtenContext::keepUnknown(const std::string &reason)
{
    for (std::size_t slot = 0; slot < resultCount(); ++slot) {
        if (wants(slot) && !writer().declaredType(slot))
            return unsupported(reason + ", and the shape of its result depends on data or is not declared",
                "write the module without it, or with results of a fixed size");
    }
    return writer().keepUnknown(target(), m_inputs, {}, reason);
}

AtenHandler findIn(const AtenHandlers &handlers, std::string_view name)
{
    const auto found = handlers.find(name);
    return found == handlers.end() ? nullptr : found->second;
}

AtenHandler findAtenHandler(std::string_view name)
{
    for (const auto handlers : {atenElementwiseHandlers, atenActivationHandlers, atenShapeHandlers,
             atenMovementHandlers, atenIndexHandlers, atenNetworkHandlers, atenNormHandlers,
             atenReductionHandlers, atenFillingHandlers, atenLossHandlers, atenBagHandlers,
             atenDiagonalHandlers, atenDistanceHandlers, atenMarginHandlers, atenOrderHandlers,
             atenPoolHandlers, atenQuantizeHandlers, atenSequenceHandlers, atenSpecialHandlers,
             atenScatterHandlers, atenWindowHandlers, atenFourierHandlers, atenMakingComplexHandlers}) {
        if (const AtenHandler handler = findIn(handlers(), name))
            return handler;
    }
    return nullptr;
}

} // namespace planloom
