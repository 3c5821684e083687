#include "engine/frontend/torch/aten/aten_formula.h"

#include <cmath>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// Makes `value` everywhere, as result 0.
Result<void> finishFilled(AtenContext &context, const TensorType &type, const AtenValue &value)
{
    TRY(const TensorId y, context.filled(type, value, ""));
    return context.bind(0, y);
}

/// Of the shape that is given: full, zeros, ones. PyTorch makes float32 unless the value says otherwise.
Result<void> filledBy(AtenContext &context, const AtenValue &value, DataType fallback)
{
    TRY(const DataType type, context.dataType(fallback));
    TRY(const Integers shape, context.integers("size", {}));
    return finishFilled(context, {type, shape}, value);
}

DataType typeOfNumber(const AtenValue &value)
{
    return std::holds_alternative<std::int64_t>(value) ? DataType::Int64
        : std::holds_alternative<bool>(value)          ? DataType::Bool
                                                       : DataType::Float32;
}

Result<void> atenFull(AtenContext &context)
{
    const AtenValue &value = context.value("fill_value");
    return filledBy(context, value, typeOfNumber(value));
}
Result<void> atenZeros(AtenContext &context)
{
    return filledBy(context, AtenValue(0.0), DataType::Float32);
}

/// Of another tensor's type, and of its shape unless another is given.
Result<void> filledLike(AtenContext &context, const AtenValue &value)
{
    TRY(const TensorId like, context.tensor("self"));
    const TensorType own = context.typeOf(like);
    TRY(const DataType type, context.dataType(own.dataType));
    TRY(const Integers shape, context.integers("size", own.shape));
    return finishFilled(context, {type, shape}, value);
}
Result<void> fullLike(AtenContext &context)
{
    return filledLike(context, context.value(context.given("fill_value") ? "fill_value" : "value"));
}
Result<void> zerosLike(AtenContext &context)
{
    return filledLike(context, AtenValue(0.0));
}
Result<void> onesLike(AtenContext &context)
{
    return filledLike(context, AtenValue(1.0));
}

/// In place: the tensor becomes a number, or a copy of another one.
Result<void> fillWith(AtenContext &context, TensorId x)
{
    if (!std::holds_alternative<TensorId>(context.value("value")))
        return fullLike(context);
    TRY(TensorId value, context.tensor("value"));
    TRY(value, context.cast(value, context.typeOf(x).dataType));
    TRY(const TensorId y, context.expand(value, Shape(context.shapeOf(x)), ""));
    return context.bind(0, y);
}
Result<void> copyOf(AtenContext &context, TensorId x)
{
    TRY(TensorId source, context.tensor("src"));
    TRY(source, context.cast(source, context.typeOf(x).dataType));
    TRY(const TensorId y, context.expand(source, Shape(context.shapeOf(x)), ""));
    return context.bind(0, y);
}

Result<void> scalarTensorOf(AtenContext &context)
{
    TRY(const DataType type, context.dataType(DataType::Float32));
    return finishFilled(context, {type, {}}, context.value("s"));
}

Result<void> atenRange(AtenContext &context)
{
    const AtenValue zero = std::int64_t{0};
    const AtenValue &first = context.given("start") ? context.value("start") : zero;
    const bool whole = !std::holds_alternative<double>(first)
        && !std::holds_alternative<double>(context.value("end"))
        && !std::holds_alternative<double>(context.value("step"));
    TRY(const DataType type, context.dataType(whole ? DataType::Int64 : DataType::Float32));
    TRY(const double start, context.real("start", 0));
    TRY(const double end, context.real("end", 0));
    TRY(const double step, context.real("step", 1));
    const double count = std::ceil((end - start) / step);
    if (step == 0 || !std::isfinite(count) || count > 1e12)
        return context.invalid("it would count from " + std::to_string(start) + " by " + std::to_string(step)
            + " to " + std::to_string(end));
    Attributes attributes = attributesFrom({{"start", start}, {"delta", step}});
    if (!isFloating(type))
        attributes = attributesFrom(
            {{"start", static_cast<std::int64_t>(start)}, {"delta", static_cast<std::int64_t>(step)}});
    return context.finish(OperatorKind::Range, {}, std::move(attributes),
        TensorType{type, {std::max<std::int64_t>(0, static_cast<std::int64_t>(count))}});
}

Result<void> atenEye(AtenContext &context)
{
    TRY(const std::int64_t rows, context.integer("n"));
    TRY(const std::int64_t columns, context.integer("m", rows));
    TRY(const DataType type, context.dataType(DataType::Float32));
    const TensorType whole{type, {rows, columns}};
    TRY(const TensorId shape, context.filled(whole, AtenValue(0.0), "shape"));
    return context.finish(OperatorKind::EyeLike, {shape}, attributesFrom({{"k", std::int64_t{0}}}), whole);
}

/// Checks of what tracing found: nothing is left to be computed.
Result<void> nothing(AtenContext &)
{
    return {};
}

Result<void> random(AtenContext &context)
{
    return context.unsupported("it draws random numbers anew in each step, which Planloom does not do",
        "draw them outside of the module and pass them as an input");
}

} // namespace

const AtenHandlers &atenFillingHandlers()
{
    static const AtenHandlers kHandlers = {{"full", atenFull}, {"zeros", atenZeros},
        {"ones", [](AtenContext &context) { return filledBy(context, AtenValue(1.0), DataType::Float32); }},
        {"empty", atenZeros}, {"full_like", fullLike}, {"new_full", fullLike}, {"zeros_like", zerosLike},
        {"new_zeros", zerosLike}, {"empty_like", zerosLike}, {"new_empty", zerosLike},
        {"ones_like", onesLike}, {"new_ones", onesLike}, {"fill", ofSelf<fillWith>}, {"zero", zerosLike},
        {"copy", ofSelf<copyOf>}, {"scalar_tensor", scalarTensorOf}, {"arange", atenRange}, {"eye", atenEye},
        {"_assert_tensor_metadata", nothing}, {"_assert_scalar", nothing}, {"_assert_async", nothing},
        {"sym_constrain_range", nothing}, {"sym_constrain_range_for_size", nothing},
        {"_functional_assert_async", nothing}, {"rand", random}, {"rand_like", random}, {"randn", random},
        {"randn_like", random}, {"randint", random}, {"bernoulli", random}, {"normal", random},
        {"uniform", random}, {"randperm", random}, {"multinomial", random}};
    return kHandlers;
}

} // namespace planloom
