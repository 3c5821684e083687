// Quantisation, as the arithmetic that ONNX defines it by.
#include "engine/frontend/onnx/onnx_operators.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

/// The numbers that a quantised type holds; nothing for types that are none.
std::optional<std::pair<double, double>> limitsOf(DataType type)
{
    switch (type) {
    case DataType::UInt8:
        return std::pair{0.0, 255.0};
    case DataType::Int8:
        return std::pair{-128.0, 127.0};
    case DataType::Int16:
        return std::pair{-32768.0, 32767.0};
    default:
        return std::nullopt;
    }
}

Result<TensorId> castFor(Context &context, TensorId x, DataType type, const char *suffix)
{
    const TensorType own = context.graph().typeOf(x);
    if (own.dataType == type)
        return x;
    return context.make(OperatorKind::Cast, {x}, {}, TensorType{type, own.shape}, suffix);
}

/// A scale or zero point in a shape that broadcasts against the input [`shape`]: one number for all, one for
/// each element of dimension `axis`, or one for each block of `block` elements along it.
Result<TensorId> spread(
    Context &context, TensorId x, const Shape &shape, std::int64_t block, const std::string &suffix)
{
    const TensorType own = context.graph().typeOf(x);
    if (elementCount(own.shape) == 1)
        return context.reshape(x, {}, suffix);
    TRY(const std::int64_t written, context.integer("axis", 1));
    TRY(const std::int64_t axis, context.axis(written, static_cast<std::int64_t>(shape.size())));
    const auto along = static_cast<std::size_t>(axis);
    if (block == 0) {
        if (own.shape != Shape{shape[along]})
            return context.invalid("its scale or zero point has the shape " + toString(own.shape)
                + ", where one number, or one for each of " + std::to_string(shape[along]) + " was expected");
        Shape line(shape.size(), 1);
        line[along] = shape[along];
        return context.reshape(x, std::move(line), suffix);
    }
    if (block < 0 || block > (std::int64_t{1} << 31) || own.shape.size() != shape.size()
        || (shape[along] + block - 1) / block != own.shape[along])
        return context.invalid("its scale or zero point has the shape " + toString(own.shape)
            + " for blocks of " + std::to_string(block) + " in an input of shape " + toString(shape));
    Shape apart = own.shape;
    apart.insert(apart.begin() + axis + 1, 1);
    TRY(const TensorId single, context.reshape(x, apart, suffix + "_apart"));
    apart[along + 1] = block;
    TRY(const TensorId copies,
        context.make(
            OperatorKind::Expand, {single}, {}, TensorType{own.dataType, apart}, suffix + "_copies"));
    Shape joined = own.shape;
    joined[along] *= block;
    TRY(const TensorId each, context.reshape(copies, joined, suffix + "_each"));
    if (joined[along] == shape[along])
        return each;
    joined[along] = shape[along];
    return context.make(OperatorKind::Slice, {each},
        attributesFrom({{"starts", std::vector<std::int64_t>(shape.size(), 0)},
            {"steps", std::vector<std::int64_t>(shape.size(), 1)}}),
        TensorType{own.dataType, joined}, suffix + "_cut");
}

/// (x - zero point) * scale, in floats, which hold integers that halves do not.
Result<void> importDequantizeLinear(Context &context)
{
    TRY(const std::int64_t block, context.integer("block_size", 0));
    TRY(const std::int64_t written, context.integer("output_dtype", 0));
    const Shape shape = context.shape(0);
    const DataType type = DataType::Float32;
    const DataType made = onnxElementType(written).value_or(context.type(1).dataType);
    TRY(TensorId scale, castFor(context, context.input(1), type, "scale_wide"));
    TRY(scale, spread(context, scale, shape, block, "scale"));
    TRY(TensorId x, castFor(context, context.input(0), type, "wide"));
    if (context.has(2)) {
        TRY(TensorId zero, castFor(context, context.input(2), type, "zero_wide"));
        TRY(zero, spread(context, zero, shape, block, "zero"));
        TRY(x, context.make(OperatorKind::Sub, {x, zero}, {}, {}, "moved"));
    }
    if (made == type)
        return context.finish(OperatorKind::Mul, {x, scale});
    TRY(const TensorId y, context.make(OperatorKind::Mul, {x, scale}, {}, {}, "scaled"));
    return context.finish(OperatorKind::Cast, {y}, {}, TensorType{made, shape});
}

/// x / scale, rounded to even, moved by the zero point and cut to what the type holds.
Result<TensorId> quantized(Context &context, TensorId x, TensorId scale, TensorId zero, DataType type)
{
    const auto limits = limitsOf(type);
    if (!limits)
        return context.unsupported(
            std::string("it quantises to ") + nameOf(type) + ", where uint8, int8 or int16 was expected");
    TRY(x, context.make(OperatorKind::Div, {x, scale}, {}, {}, "scaled"));
    if (context.graph().typeOf(x).dataType != DataType::Float64) {
        TRY(x, castFor(context, x, DataType::Float32, "scaled_wide")); // halves do not hold what is moved
    }
    TRY(x, context.make(OperatorKind::Round, {x}, {}, {}, "rounded"));
    if (zero) {
        TRY(x, context.make(OperatorKind::Add, {x, zero}, {}, {}, "moved"));
    }
    TRY(x,
        context.make(OperatorKind::Clip, {x},
            attributesFrom({{"min", limits->first}, {"max", limits->second}}), {}, "cut"));
    const Shape shape = context.graph().typeOf(x).shape;
    return context.make(OperatorKind::Cast, {x}, {}, TensorType{type, shape});
}

Result<void> importQuantizeLinear(Context &context)
{
    TRY(const std::int64_t block, context.integer("block_size", 0));
    TRY(const std::int64_t written, context.integer("output_dtype", 0));
    TRY(const std::int64_t precision, context.integer("precision", 0));
    const Shape shape = context.shape(0);
    const DataType type = onnxElementType(precision).value_or(context.type(1).dataType);
    const DataType made =
        context.has(2) ? context.type(2).dataType : onnxElementType(written).value_or(DataType::UInt8);
    TRY(const TensorId x, castFor(context, context.input(0), type, "wide"));
    TRY(TensorId scale, castFor(context, context.input(1), type, "scale_wide"));
    TRY(scale, spread(context, scale, shape, block, "scale"));
    TensorId zero;
    if (context.has(2)) {
        TRY(zero, castFor(context, context.input(2), DataType::Float32, "zero_wide"));
        TRY(zero, spread(context, zero, shape, block, "zero"));
    }
    TRY(const TensorId y, quantized(context, x, scale, zero, made));
    return context.bind(0, y);
}

/// Quantises to uint8 by the range of the values, 0 among them.
Result<void> importDynamicQuantizeLinear(Context &context)
{
    using enum OperatorKind;
    TRY_VOID(context.require(1));
    const TensorId x = context.input(0);
    const DataType type = context.type(0).dataType;
    const TensorId none = context.scalar(type, 0);
    std::vector<std::int64_t> axes;
    for (std::int64_t axis = 0; axis < context.rank(0); ++axis)
        axes.push_back(axis);
    const Attributes all = attributesFrom({{"axes", axes}, {"keepdims", std::int64_t{0}}});
    TRY(const TensorId largest, context.make(ReduceMax, {x}, all, {}, "largest"));
    TRY(const TensorId high, context.make(Max, {largest, none}, {}, {}, "high"));
    TRY(const TensorId smallest, context.make(ReduceMin, {x}, all, {}, "smallest"));
    TRY(const TensorId low, context.make(Min, {smallest, none}, {}, {}, "low"));
    TRY(const TensorId range, context.make(Sub, {high, low}, {}, {}, "range"));
    TRY(const TensorId scale, context.make(Div, {range, context.scalar(type, 255)}, {}, {}, "scale"));
    TRY(const TensorId below, context.make(Sub, {none, low}, {}, {}, "below"));
    TRY(const TensorId place, context.make(Div, {below, scale}, {}, {}, "place"));
    TRY(const TensorId cut,
        context.make(Clip, {place}, attributesFrom({{"min", 0.0}, {"max", 255.0}}), {}, "place_cut"));
    TRY(const TensorId zero, context.make(Round, {cut}, {}, {}, "zero"));
    TRY(const TensorId y, quantized(context, x, scale, zero, DataType::UInt8));
    TRY_VOID(context.bind(0, y));
    TRY_VOID(context.bind(1, scale));
    TRY(const TensorId point, castFor(context, zero, DataType::UInt8, "zero_point"));
    return context.bind(2, point);
}

// --- products
// -----------------------------------------------------------------------------------------------

/// Integers moved by their zero point, in double precision, which holds sums of their products exactly.
Result<TensorId> movedWide(
    Context &context, std::size_t slot, std::size_t zeroSlot, const char *name, const Shape &zeroShape)
{
    TRY(const TensorId wide, castFor(context, context.input(slot), DataType::Float64, name));
    if (!context.has(zeroSlot))
        return wide;
    const std::string prefix = name;
    TRY(TensorId zero,
        castFor(context, context.input(zeroSlot), DataType::Float64, (prefix + "_zero").c_str()));
    const std::int64_t count = elementCount(context.graph().typeOf(zero).shape);
    if (count == 1) {
        TRY(zero, context.reshape(zero, {}, prefix + "_zero_single"));
    } else if (count == elementCount(zeroShape)) {
        TRY(zero, context.reshape(zero, zeroShape, prefix + "_zero_each"));
    }
    return context.make(OperatorKind::Sub, {wide, zero}, {}, {}, prefix + "_moved");
}

Result<void> finishInteger(Context &context, TensorId y)
{
    const Shape shape = context.graph().typeOf(y).shape;
    return context.finish(OperatorKind::Cast, {y}, {}, TensorType{DataType::Int32, shape});
}

/// (a, b, [zero of a], [zero of b]) -> int32
Result<void> importMatMulInteger(Context &context)
{
    // Zero points of single numbers, or one for each row of a and each column of b.
    Shape rows = context.shape(0);
    Shape columns = context.shape(1);
    if (rows.size() < 2 || columns.size() < 2)
        return context.invalid("its factors have the shapes " + toString(rows) + " and " + toString(columns)
            + ", where at least two dimensions of each were expected");
    rows.back() = 1;
    columns[columns.size() - 2] = 1;
    TRY(const TensorId a, movedWide(context, 0, 2, "a", rows));
    TRY(const TensorId b, movedWide(context, 1, 3, "b", columns));
    TRY(const TensorId y, context.make(OperatorKind::MatMul, {a, b}, {}, {}, "product"));
    return finishInteger(context, y);
}

/// A quantised factor as numbers: (x - zero) * scale, of slots one behind another.
Result<TensorId> dequantized(Context &context, std::size_t slot, const char *name, const Shape &shape)
{
    const std::string prefix = name;
    const DataType type = context.type(slot + 1).dataType;
    TRY(TensorId x, castFor(context, context.input(slot), type, name));
    for (const std::size_t parameter : {slot + 2, slot + 1}) {
        const bool zero = parameter == slot + 2;
        const std::string suffix = prefix + (zero ? "_zero" : "_scale");
        TRY(TensorId value, castFor(context, context.input(parameter), type, suffix.c_str()));
        const std::int64_t count = elementCount(context.graph().typeOf(value).shape);
        TRY(value,
            context.reshape(
                value, count == elementCount(shape) && count > 1 ? shape : Shape{}, suffix + "_each"));
        TRY(x, context.make(zero ? OperatorKind::Sub : OperatorKind::Mul, {x, value}, {}, {}, suffix + "d"));
    }
    return x;
}

/// (a, scale, zero, b, scale, zero, scale of y, zero of y)
Result<void> importQLinearMatMul(Context &context)
{
    Shape rows = context.shape(0);
    Shape columns = context.shape(3);
    if (rows.size() < 2 || columns.size() < 2)
        return context.invalid("its factors have the shapes " + toString(rows) + " and " + toString(columns)
            + ", where at least two dimensions of each were expected");
    rows.back() = 1;
    columns[columns.size() - 2] = 1;
    TRY(const TensorId a, dequantized(context, 0, "a", rows));
    TRY(const TensorId b, dequantized(context, 3, "b", columns));
    TRY(const TensorId product, context.make(OperatorKind::MatMul, {a, b}, {}, {}, "product"));
    TRY(TensorId zero, castFor(context, context.input(7), DataType::Float32, "zero"));
    TRY(zero, context.reshape(zero, {}, "zero_single"));
    TRY(const TensorId scale, context.reshape(context.input(6), {}, "scale_single"));
    TRY(const TensorId y, quantized(context, product, scale, zero, context.type(7).dataType));
    return context.bind(0, y);
}

} // namespace

const OnnxHandlers &onnxQuantizeHandlers()
{
    static const OnnxHandlers kHandlers = {{"DequantizeLinear", needs<2, importDequantizeLinear>},
        {"QuantizeLinear", needs<2, importQuantizeLinear>},
        {"DynamicQuantizeLinear", importDynamicQuantizeLinear},
        {"MatMulInteger", needs<2, importMatMulInteger>}, {"QLinearMatMul", needs<8, importQLinearMatMul>}};
    return kHandlers;
}

} // namespace planloom
