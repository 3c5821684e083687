#include "engine/frontend/writer/fold_operator.h"

#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/kernels/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace planloom {

namespace {

using Inputs = std::vector<std::shared_ptr<const TensorData>>;
using Outputs = std::optional<std::vector<TensorData>>;

constexpr double kMostKernelWork = 2e7; ///< Floating-point operations a kernel may spend on one constant.

TensorData allocated(const TensorType &type)
{
    return TensorData{type,
        std::vector<std::byte>(static_cast<std::size_t>(elementCount(type.shape) * sizeOf(type.dataType)))};
}

std::vector<std::int64_t> stridesOf(const Shape &shape)
{
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t i = shape.size(); i-- > 1;)
        strides[i - 1] = strides[i] * shape[i];
    return strides;
}

/// Calls `visit(out, offset)` for the elements of `shape` in order, where offset follows the given strides.
template<typename Visit>
void walk(const Shape &shape, const std::vector<std::int64_t> &strides, std::int64_t base, Visit visit)
{
    const std::int64_t count = elementCount(shape);
    std::vector<std::int64_t> index(shape.size(), 0);
    std::int64_t offset = base;
    for (std::int64_t out = 0; out < count; ++out) {
        visit(out, offset);
        for (std::size_t i = shape.size(); i-- > 0;) {
            offset += strides[i];
            if (++index[i] < shape[i])
                break;
            offset -= strides[i] * shape[i];
            index[i] = 0;
        }
    }
}

/// Elements of `source` picked by a strided walk over `walked`, whose elements in order fill `type`.
TensorData strided(const TensorData &source, const TensorType &type, const Shape &walked,
    const std::vector<std::int64_t> &strides, std::int64_t base)
{
    TensorData result = allocated(type);
    const auto size = static_cast<std::size_t>(sizeOf(type.dataType));
    walk(walked, strides, base, [&](std::int64_t out, std::int64_t offset) {
        std::memcpy(result.bytes.data() + static_cast<std::size_t>(out) * size,
            source.bytes.data() + static_cast<std::size_t>(offset) * size, size);
    });
    return result;
}

/// Strides with which `from` is read when broadcast to `to`.
std::vector<std::int64_t> broadcastStrides(const Shape &from, const Shape &to)
{
    const auto own = stridesOf(from);
    std::vector<std::int64_t> strides(to.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) {
        if (from[i] != 1)
            strides[to.size() - from.size() + i] = own[i];
    }
    return strides;
}

std::vector<TensorData> one(TensorData data)
{
    std::vector<TensorData> list;
    list.push_back(std::move(data));
    return list;
}

// --- moving elements ---------------------------------------------------------------------------------------

Outputs foldTranspose(const Attributes &attributes, const TensorData &x, const TensorType &type)
{
    const auto permutation = attributes.integers("permutation");
    const auto own = stridesOf(x.type.shape);
    std::vector<std::int64_t> strides;
    for (const std::int64_t axis : permutation)
        strides.push_back(own[static_cast<std::size_t>(axis)]);
    return one(strided(x, type, type.shape, strides, 0));
}

Outputs foldTile(const TensorData &x, const TensorType &type)
{
    // Each dimension becomes (repeats, extent); the repeats read the same elements again.
    const auto own = stridesOf(x.type.shape);
    Shape walked;
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < x.type.shape.size(); ++i) {
        const std::int64_t extent = x.type.shape[i];
        walked.push_back(extent == 0 ? 0 : type.shape[i] / extent);
        walked.push_back(extent);
        strides.push_back(0);
        strides.push_back(own[i]);
    }
    return one(strided(x, type, walked, strides, 0));
}

Outputs foldSlice(const Attributes &attributes, const TensorData &x, const TensorType &type)
{
    const auto starts = attributes.integers("starts");
    const auto steps = attributes.integers("steps");
    const auto own = stridesOf(x.type.shape);
    std::int64_t base = 0;
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < own.size(); ++i) {
        base += starts[i] * own[i];
        strides.push_back(steps[i] * own[i]);
    }
    return one(strided(x, type, type.shape, strides, base));
}

Outputs foldSplit(const Attributes &attributes, const TensorData &x, const std::vector<TensorType> &types)
{
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    const auto own = stridesOf(x.type.shape);
    std::vector<TensorData> parts;
    std::int64_t begin = 0;
    for (const TensorType &type : types) {
        parts.push_back(strided(x, type, type.shape, own, begin * own[axis]));
        begin += type.shape[axis];
    }
    return parts;
}

Outputs foldConcat(const Attributes &attributes, const Inputs &inputs, const TensorType &type)
{
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    TensorData result = allocated(type);
    const auto size = static_cast<std::size_t>(sizeOf(type.dataType));
    const auto outerEnd = type.shape.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto outer = static_cast<std::size_t>(elementCount(Shape(type.shape.begin(), outerEnd)));
    const auto inner = static_cast<std::size_t>(elementCount(Shape(outerEnd + 1, type.shape.end()))) * size;
    std::size_t at = 0;
    for (std::size_t o = 0; o < outer; ++o) {
        for (const auto &input : inputs) {
            const std::size_t block = static_cast<std::size_t>(input->type.shape[axis]) * inner;
            if (block > 0)
                std::memcpy(result.bytes.data() + at, input->bytes.data() + o * block, block);
            at += block;
        }
    }
    return one(std::move(result));
}

/// Index tuples name the first dimensions of x behind the batch.
Outputs foldGatherND(
    const Attributes &attributes, const TensorData &x, const TensorData &indices, const TensorType &type)
{
    const auto batchDims = static_cast<std::size_t>(attributes.integer("batch_dims"));
    const auto wanted = integersOf(indices);
    const auto named = static_cast<std::size_t>(indices.type.shape.back());
    const std::vector<std::int64_t> strides = stridesOf(x.type.shape);
    std::int64_t samples = 1;
    for (std::size_t d = 0; d < batchDims; ++d)
        samples *= x.type.shape[d];
    std::int64_t run = 1;
    for (std::size_t d = batchDims + named; d < x.type.shape.size(); ++d)
        run *= x.type.shape[d];
    const std::int64_t ofSample = samples == 0 ? 0 : elementCount(x.type.shape) / samples;
    const std::size_t tuples = named == 0 ? 0 : wanted.size() / named;
    if (tuples == 0)
        return std::nullopt;
    TensorData result = allocated(type);
    const std::size_t bytes = static_cast<std::size_t>(run * sizeOf(type.dataType));
    for (std::size_t tuple = 0; tuple < tuples; ++tuple) {
        std::int64_t from =
            static_cast<std::int64_t>(tuple) / (static_cast<std::int64_t>(tuples) / samples) * ofSample;
        for (std::size_t i = 0; i < named; ++i) {
            const std::int64_t extent = x.type.shape[batchDims + i];
            std::int64_t index = wanted[tuple * named + i];
            index = index < 0 ? index + extent : index;
            if (index < 0 || index >= extent)
                return std::nullopt;
            from += index * strides[batchDims + i];
        }
        std::memcpy(result.bytes.data() + tuple * bytes,
            x.bytes.data() + static_cast<std::size_t>(from * sizeOf(type.dataType)), bytes);
    }
    return one(std::move(result));
}

Outputs foldGather(std::size_t axis, const TensorData &x, const TensorData &indices, const TensorType &type)
{
    const auto wanted = integersOf(indices);
    const std::int64_t extent = x.type.shape[axis];
    TensorData result = allocated(type);
    const auto size = static_cast<std::size_t>(sizeOf(type.dataType));
    const auto outerEnd = x.type.shape.begin() + static_cast<std::ptrdiff_t>(axis);
    const auto outer = static_cast<std::size_t>(elementCount(Shape(x.type.shape.begin(), outerEnd)));
    const auto inner = static_cast<std::size_t>(elementCount(Shape(outerEnd + 1, x.type.shape.end()))) * size;
    std::size_t at = 0;
    for (std::size_t o = 0; o < outer; ++o) {
        for (std::int64_t index : wanted) {
            index = index < 0 ? index + extent : index;
            if (index < 0 || index >= extent)
                return std::nullopt;
            const std::size_t from =
                (o * static_cast<std::size_t>(extent) + static_cast<std::size_t>(index)) * inner;
            if (inner > 0)
                std::memcpy(result.bytes.data() + at, x.bytes.data() + from, inner);
            at += inner;
        }
    }
    return one(std::move(result));
}

// --- element-wise ------------------------------------------------------------------------------------------

std::optional<double> unaryReal(OperatorKind kind, double x)
{
    using enum OperatorKind;
    switch (kind) {
    case Abs:
        return std::abs(x);
    case Ceil:
        return std::ceil(x);
    case Cos:
        return std::cos(x);
    case Erf:
        return std::erf(x);
    case Exp:
        return std::exp(x);
    case Floor:
        return std::floor(x);
    case Log:
        return std::log(x);
    case Neg:
        return -x;
    case Reciprocal:
        return 1.0 / x;
    case Relu:
        return x < 0 ? 0 : x; // NaN, too
    case Round:
        return std::nearbyint(x);
    case Sigmoid:
        return 1.0 / (1.0 + std::exp(-x));
    case Sign:
        return x > 0 ? 1.0 : x < 0 ? -1.0 : std::isnan(x) ? x : 0.0;
    case Sin:
        return std::sin(x);
    case Sqrt:
        return std::sqrt(x);
    case Tan:
        return std::tan(x);
    case Tanh:
        return std::tanh(x);
    default:
        return std::nullopt;
    }
}

std::optional<std::int64_t> unaryInteger(OperatorKind kind, std::int64_t x)
{
    using enum OperatorKind;
    const auto wrap = static_cast<std::uint64_t>(x);
    switch (kind) {
    case Abs:
        return x < 0 ? static_cast<std::int64_t>(0 - wrap) : x;
    case Neg:
        return static_cast<std::int64_t>(0 - wrap);
    case Not:
        return x == 0 ? 1 : 0;
    case Relu:
        return x > 0 ? x : 0;
    case Sign:
        return x > 0 ? 1 : (x < 0 ? -1 : 0);
    case Ceil:
    case Floor:
    case Round:
        return x;
    default:
        return std::nullopt;
    }
}

std::optional<Number> binary(OperatorKind kind, const Attributes &attributes, Number a, Number b)
{
    using enum OperatorKind;
    const auto truth = [](bool value) { return Number::ofInteger(value ? 1 : 0); };
    if (a.floating || b.floating) {
        const double x = a.asReal();
        const double y = b.asReal();
        switch (kind) {
        case Add:
            return Number::ofReal(x + y);
        case Sub:
            return Number::ofReal(x - y);
        case Mul:
            return Number::ofReal(x * y);
        case Div:
            return Number::ofReal(x / y);
        case Pow:
            return Number::ofReal(std::pow(x, y));
        case Mod:
            return Number::ofReal(
                attributes.integer("fmod") != 0 ? std::fmod(x, y) : x - std::floor(x / y) * y);
        case Min:
            return Number::ofReal(std::isnan(x) || x < y ? x : y);
        case Max:
            return Number::ofReal(std::isnan(x) || x > y ? x : y);
        case Equal:
            return truth(x == y);
        case Greater:
            return truth(x > y);
        case GreaterOrEqual:
            return truth(x >= y);
        case Less:
            return truth(x < y);
        case LessOrEqual:
            return truth(x <= y);
        default:
            return std::nullopt;
        }
    }
    const std::int64_t x = a.integer;
    const std::int64_t y = b.integer;
    const auto ux = static_cast<std::uint64_t>(x);
    const auto uy = static_cast<std::uint64_t>(y);
    const auto wrapped = [](std::uint64_t value) {
        return Number::ofInteger(static_cast<std::int64_t>(value));
    };
    switch (kind) {
    case Add:
        return wrapped(ux + uy);
    case Sub:
        return wrapped(ux - uy);
    case Mul:
        return wrapped(ux * uy);
    case Div:
        if (y == 0)
            return std::nullopt;
        return y == -1 ? wrapped(0 - ux) : Number::ofInteger(x / y);
    case Mod: {
        if (y == 0)
            return std::nullopt;
        if (y == -1)
            return Number::ofInteger(0);
        const std::int64_t rest = x % y;
        return Number::ofInteger(
            attributes.integer("fmod") == 0 && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
    }
    case Pow:
        return Number::ofReal(std::pow(static_cast<double>(x), static_cast<double>(y)));
    case Min:
        return Number::ofInteger(std::min(x, y));
    case Max:
        return Number::ofInteger(std::max(x, y));
    case And:
        return truth(x != 0 && y != 0);
    case Or:
        return truth(x != 0 || y != 0);
    case Xor:
        return truth((x != 0) != (y != 0));
    case Equal:
        return truth(x == y);
    case Greater:
        return truth(x > y);
    case GreaterOrEqual:
        return truth(x >= y);
    case Less:
        return truth(x < y);
    case LessOrEqual:
        return truth(x <= y);
    default:
        return std::nullopt;
    }
}

Outputs foldUnary(OperatorKind kind, const TensorData &x, const TensorType &type)
{
    TensorData result = allocated(type);
    const auto count = static_cast<std::size_t>(elementCount(type.shape));
    for (std::size_t i = 0; i < count; ++i) {
        const Number value = readNumber(x.type.dataType, x.bytes.data(), i);
        if (kind == OperatorKind::Cast || kind == OperatorKind::Identity) {
            writeNumber(type.dataType, result.bytes.data(), i, value);
        } else if (value.floating) {
            const auto y = unaryReal(kind, value.real);
            if (!y)
                return std::nullopt;
            writeNumber(type.dataType, result.bytes.data(), i, Number::ofReal(*y));
        } else {
            const auto y = unaryInteger(kind, value.integer);
            if (!y)
                return std::nullopt;
            writeNumber(type.dataType, result.bytes.data(), i, Number::ofInteger(*y));
        }
    }
    return one(std::move(result));
}

Outputs foldBinary(OperatorKind kind, const Attributes &attributes, const TensorData &a, const TensorData &b,
    const TensorType &type)
{
    TensorData result = allocated(type);
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(elementCount(type.shape)));
    walk(type.shape, broadcastStrides(a.type.shape, type.shape), 0,
        [&](std::int64_t out, std::int64_t offset) { offsets[static_cast<std::size_t>(out)] = offset; });
    bool fine = true;
    walk(type.shape, broadcastStrides(b.type.shape, type.shape), 0,
        [&](std::int64_t out, std::int64_t offset) {
            const auto position = static_cast<std::size_t>(out);
            const auto y = binary(kind, attributes,
                readNumber(a.type.dataType, a.bytes.data(), static_cast<std::size_t>(offsets[position])),
                readNumber(b.type.dataType, b.bytes.data(), static_cast<std::size_t>(offset)));
            if (y)
                writeNumber(type.dataType, result.bytes.data(), position, *y);
            fine = fine && y.has_value();
        });
    if (!fine)
        return std::nullopt;
    return one(std::move(result));
}

Outputs foldWhere(
    const TensorData &condition, const TensorData &a, const TensorData &b, const TensorType &type)
{
    TensorData result = allocated(type);
    const auto size = static_cast<std::size_t>(sizeOf(type.dataType));
    std::vector<std::uint8_t> chosen(static_cast<std::size_t>(elementCount(type.shape)));
    walk(type.shape, broadcastStrides(condition.type.shape, type.shape), 0,
        [&](std::int64_t out, std::int64_t offset) {
            chosen[static_cast<std::size_t>(out)] =
                condition.bytes[static_cast<std::size_t>(offset)] != std::byte{0} ? 1 : 0;
        });
    for (const auto &[source, flag] : {std::pair(&a, 1), std::pair(&b, 0)}) {
        walk(type.shape, broadcastStrides(source->type.shape, type.shape), 0,
            [&, from = source, when = flag](std::int64_t out, std::int64_t offset) {
                if (chosen[static_cast<std::size_t>(out)] == when)
                    std::memcpy(result.bytes.data() + static_cast<std::size_t>(out) * size,
                        from->bytes.data() + static_cast<std::size_t>(offset) * size, size);
            });
    }
    return one(std::move(result));
}

// --- reductions and the rest -------------------------------------------------------------------------------

Outputs foldReduction(
    OperatorKind kind, const Attributes &attributes, const TensorData &x, const TensorType &type)
{
    using enum OperatorKind;
    const auto axes = attributes.integers("axes");
    const Shape &shape = x.type.shape;
    Shape kept = shape;
    for (const std::int64_t axis : axes)
        kept[static_cast<std::size_t>(axis)] = 1;
    const auto keptStrides = stridesOf(kept);
    std::vector<std::int64_t> strides(shape.size(), 0);
    for (std::size_t i = 0; i < shape.size(); ++i) {
        if (kept[i] != 1 || shape[i] == 1)
            strides[i] = keptStrides[i];
    }
    const auto count = static_cast<std::size_t>(elementCount(type.shape));
    const bool floating = isFloating(x.type.dataType);
    std::vector<Number> sums(count,
        floating ? Number::ofReal(kind == ReduceProd ? 1 : 0)
                 : Number::ofInteger(kind == ReduceProd ? 1 : 0));
    std::vector<bool> seen(count, false);
    walk(shape, strides, 0, [&](std::int64_t in, std::int64_t offset) {
        const auto out = static_cast<std::size_t>(offset);
        const Number value = readNumber(x.type.dataType, x.bytes.data(), static_cast<std::size_t>(in));
        const OperatorKind step = kind == ReduceProd ? Mul
            : kind == ReduceMax                      ? Max
            : kind == ReduceMin                      ? Min
                                                     : Add;
        const bool first = (kind == ReduceMax || kind == ReduceMin) && !seen[out];
        sums[out] = first ? value : binary(step, {}, sums[out], value).value_or(value);
        seen[out] = true;
    });
    TensorData result = allocated(type);
    const double divisor = kind == ReduceMean ? static_cast<double>(attributes.integer("count", 1)) : 1.0;
    for (std::size_t i = 0; i < count; ++i) {
        if ((kind == ReduceMax || kind == ReduceMin) && !seen[i])
            return std::nullopt;
        const Number sum = sums[i];
        writeNumber(type.dataType, result.bytes.data(), i,
            kind != ReduceMean ? sum
                : sum.floating
                ? Number::ofReal(sum.real / divisor)
                : Number::ofInteger(sum.integer / std::max<std::int64_t>(1, attributes.integer("count", 1))));
    }
    return one(std::move(result));
}

Outputs foldTrilu(const Attributes &attributes, const TensorData &x, const TensorType &type)
{
    TensorData result{type, x.bytes};
    const auto size = static_cast<std::size_t>(sizeOf(type.dataType));
    const std::int64_t rows = type.shape[type.shape.size() - 2];
    const std::int64_t columns = type.shape.back();
    const std::int64_t k = attributes.integer("k");
    const bool upper = attributes.integer("upper", 1) != 0;
    const std::int64_t count = elementCount(type.shape);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t distance = i % columns - (i / columns) % rows - k;
        if (upper ? distance < 0 : distance > 0)
            std::memset(result.bytes.data() + static_cast<std::size_t>(i) * size, 0, size);
    }
    return one(std::move(result));
}

Outputs foldCumulativeSum(const Attributes &attributes, const TensorData &x, const TensorType &type)
{
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    const bool exclusive = attributes.integer("exclusive") != 0;
    const bool reverse = attributes.integer("reverse") != 0;
    const auto own = stridesOf(type.shape);
    const std::int64_t extent = type.shape[axis];
    Shape lines = type.shape;
    lines[axis] = extent == 0 ? 0 : 1;
    TensorData result = allocated(type);
    walk(lines, own, 0, [&](std::int64_t, std::int64_t base) {
        Number sum = isFloating(type.dataType) ? Number::ofReal(0) : Number::ofInteger(0);
        for (std::int64_t step = 0; step < extent; ++step) {
            const auto at = static_cast<std::size_t>(base + (reverse ? extent - 1 - step : step) * own[axis]);
            const Number next =
                binary(OperatorKind::Add, {}, sum, readNumber(type.dataType, x.bytes.data(), at))
                    .value_or(sum);
            writeNumber(type.dataType, result.bytes.data(), at, exclusive ? sum : next);
            sum = next;
        }
    });
    return one(std::move(result));
}

Outputs foldRange(const Attributes &attributes, const TensorType &type)
{
    TensorData result = allocated(type);
    const auto count = static_cast<std::size_t>(elementCount(type.shape));
    for (std::size_t i = 0; i < count; ++i) {
        const Number value = isFloating(type.dataType)
            ? Number::ofReal(attributes.real("start") + static_cast<double>(i) * attributes.real("delta"))
            : Number::ofInteger(
                attributes.integer("start") + static_cast<std::int64_t>(i) * attributes.integer("delta"));
        writeNumber(type.dataType, result.bytes.data(), i, value);
    }
    return one(std::move(result));
}

/// Everything else, by the kernel that a run would use.
Outputs foldByKernel(OperatorKind kind, const Attributes &attributes, const Inputs &inputs,
    const std::vector<TensorType> &outputs)
{
    Operator op;
    op.name = "constant";
    op.kind = kind;
    op.attributes = attributes;
    std::vector<TensorType> types;
    std::vector<bool> present;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        op.inputs.push_back(inputs[i] ? TensorId{static_cast<std::int32_t>(i)} : TensorId{});
        types.push_back(inputs[i] ? inputs[i]->type : TensorType{});
        present.push_back(inputs[i] != nullptr);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i)
        op.outputs.push_back(TensorId{static_cast<std::int32_t>(inputs.size() + i)});
    if (!hasKernel(op) || workOf(op, types, outputs).flops > kMostKernelWork)
        return std::nullopt;
    op.annotation = annotate(kind, attributes, types, present, outputs).annotation;
    KernelCall call;
    call.op = &op;
    for (const Dimension &dimension : op.annotation.dimensions)
        call.ranges.push_back({0, dimension.size});
    std::vector<TensorData> copies; // kernels take memory they could write to, and constants are shared
    copies.reserve(inputs.size());
    for (const auto &input : inputs) {
        copies.push_back(input ? *input : TensorData{});
        TensorData &copy = copies.back();
        call.inputs.push_back(Buffer{input ? copy.bytes.data() : nullptr, copy.type.dataType, copy.type.shape,
            wholeMask(copy.type.shape), copy.type.shape});
    }
    std::vector<TensorData> results;
    results.reserve(outputs.size());
    for (const TensorType &type : outputs) {
        results.push_back(allocated(type));
        call.outputs.push_back(Buffer{
            results.back().bytes.data(), type.dataType, type.shape, wholeMask(type.shape), type.shape});
    }
    if (!runKernel(call))
        return std::nullopt;
    return results;
}

bool isReduction(OperatorKind kind)
{
    using enum OperatorKind;
    return kind == ReduceSum || kind == ReduceMean || kind == ReduceMax || kind == ReduceMin
        || kind == ReduceProd;
}

} // namespace

std::optional<std::vector<TensorData>> foldOperator(OperatorKind kind, const Attributes &attributes,
    const std::vector<std::shared_ptr<const TensorData>> &inputs, const std::vector<TensorType> &outputs)
{
    using enum OperatorKind;
    if (outputs.empty() || kind == Dropout || kind == Unknown)
        return std::nullopt;
    const TensorType &type = outputs.front();
    const bool complete =
        std::all_of(inputs.begin(), inputs.end(), [](const auto &input) { return input != nullptr; });
    if (kind == Fill) // whose value may be written as an integer or a real, whatever its type
        return one(filledTensor(type,
            isFloating(type.dataType) || !attributes.has("value") || attributes.integer("value") == 0
                ? Number::ofReal(attributes.real("value", static_cast<double>(attributes.integer("value"))))
                : Number::ofInteger(attributes.integer("value"))));
    if (kind == Range)
        return foldRange(attributes, type);
    if (!complete || inputs.empty())
        return inputs.empty() ? std::nullopt : foldByKernel(kind, attributes, inputs, outputs);
    const TensorData &x = *inputs.front();
    switch (kind) {
    case Reshape:
        return one(TensorData{type, x.bytes});
    case Expand:
        return one(strided(x, type, type.shape, broadcastStrides(x.type.shape, type.shape), 0));
    case Transpose:
        return foldTranspose(attributes, x, type);
    case Tile:
        return foldTile(x, type);
    case Slice:
        return foldSlice(attributes, x, type);
    case Split:
        return foldSplit(attributes, x, outputs);
    case Concat:
        return foldConcat(attributes, inputs, type);
    case Gather:
        return foldGather(static_cast<std::size_t>(attributes.integer("axis")), x, *inputs[1], type);
    case GatherND:
        return foldGatherND(attributes, x, *inputs[1], type);
    case Where:
        return foldWhere(x, *inputs[1], *inputs[2], type);
    case Trilu:
        return foldTrilu(attributes, x, type);
    case CumSum:
        return foldCumulativeSum(attributes, x, type);
    default:
        break;
    }
    Outputs result;
    if (isReduction(kind))
        result = foldReduction(kind, attributes, x, type);
    else if (inputs.size() == 1 && isElementwise(kind))
        result = foldUnary(kind, x, type);
    else if (inputs.size() == 2 && isElementwise(kind))
        result = foldBinary(kind, attributes, x, *inputs[1], type);
    return result ? result : foldByKernel(kind, attributes, inputs, outputs);
}

} // namespace planloom
