#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/infer_call.h"
#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

namespace planloom {

namespace {

/// Extents and attributes beyond this are no model's; products of two still fit 64 bits.
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 31;
constexpr std::int64_t kMostElements = std::int64_t{1} << 48;

bool isSane(const Shape &shape)
{
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0 || extent > kMostElements
            || __builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product)
            || product > kMostElements)
            return false;
    }
    return true;
}

/// How many inputs a kind takes: the first `required` must be present.
struct Arity {
    std::size_t required = 1;
    std::size_t most = 1;
};

Arity arityOf(OperatorKind kind)
{
    using enum OperatorKind;
    constexpr std::size_t kAny = std::numeric_limits<std::size_t>::max();
    switch (kind) {
    case Where:
    case Rotary:
    case ScatterElements:
    case ScatterND:
        return {3, 3};
    case MatMul:
    case BatchVariance:
    case Gather:
    case Embedding:
    case GatherElements:
    case GatherND:
    case ReverseSequence:
    case GridSample:
        return {2, 2};
    case Linear:
    case Conv:
    case ConvTranspose:
    case CrossEntropy:
    case NegativeLogLikelihood:
        return {2, 3};
    case ClassStatistics:
        return {2, 2};
    case ClassLoss:
        return {3, 4};
    case Attention:
        return {3, kAny};
    case Einsum:
    case Concat:
        return {1, kAny};
    case BatchNormalize:
        return {5, 5};
    case InstanceNorm:
        return {3, 3};
    case LayerNorm:
        return {1, 3};
    case RmsNorm:
    case CountValid:
        return {1, 2};
    case Range:
    case Fill:
        return {0, 0};
    case Lstm: // W may be absent
        return {1, 8};
    case Gru:
    case Rnn:
        return {1, 6};
    case SgdStep:
        return {2, 4};
    case AdamWStep:
        return {4, 5};
    case Custom:
    case Unknown:
        return {0, kAny};
    default:
        if (kind >= Add && kind <= PRelu)
            return {2, 2};
        return {1, 1};
    }
}

/// NumPy broadcasting of two shapes, if they fit.
std::optional<Shape> broadcast(const Shape &a, const Shape &b)
{
    Shape result(std::max(a.size(), b.size()), 1);
    for (std::size_t i = 0; i < result.size(); ++i) {
        const std::int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
        const std::int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (left != right && left != 1 && right != 1)
            return std::nullopt;
        result[result.size() - 1 - i] = left == 1 ? right : left;
    }
    return result;
}

/// `a` in rows and columns must be floating, unless the kind is meaningful for integers as well.
bool takesIntegers(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case Abs:
    case Identity:
    case Neg:
    case Sign:
    case Relu:
    case Clip:
    case Cast:
    case ReduceSum:
    case ReduceMean:
    case ReduceMax:
    case ReduceMin:
    case ReduceProd:
    case ReduceL1:
    case ReduceL2:
    case ReduceSumSquare:
    case MaxPool:
        return true;
    default:
        return false;
    }
}

TypesOutcome inferElementwise(const InferCall &call)
{
    using enum OperatorKind;
    const TensorType &x = call.type(0);
    if (call.kind == Where) {
        if (x.dataType != DataType::Bool)
            return call.misfit(0, "a bool condition");
        if (call.type(1).dataType != call.type(2).dataType)
            return call.misfit(
                2, std::string("the element type of input 1, ") + nameOf(call.type(1).dataType));
        const auto values = broadcast(call.in(1), call.in(2));
        if (!values)
            return call.misfit(2, "a shape that broadcasts with input 1's " + toString(call.in(1)));
        auto shape = broadcast(x.shape, *values);
        if (!shape)
            return call.misfit(0, "a shape that broadcasts with " + toString(*values));
        return one(call.type(1).dataType, *std::move(shape));
    }
    if (call.kind >= Add) { // two inputs
        const TensorType &other = call.type(1);
        if (call.kind != Pow && x.dataType != other.dataType)
            return call.misfit(1, std::string("the element type of input 0, ") + nameOf(x.dataType));
        auto shape = broadcast(x.shape, other.shape);
        if (!shape || (call.kind == PRelu && *shape != x.shape))
            return call.misfit(1, "a shape that broadcasts with input 0's " + toString(x.shape));
        switch (call.kind) {
        case And:
        case Or:
        case Xor:
            if (x.dataType != DataType::Bool)
                return call.misfit(0, "bool");
            break;
        case Equal:
        case Greater:
        case GreaterOrEqual:
        case Less:
        case LessOrEqual:
            return one(DataType::Bool, *std::move(shape));
        case BitShift:
        case BitwiseAnd:
        case BitwiseOr:
        case BitwiseXor:
            if (isFloating(x.dataType) || x.dataType == DataType::Bool)
                return call.misfit(0, "integers");
            break;
        case PRelu:
            if (!isFloating(x.dataType))
                return call.misfit(0, "a floating element type");
            break;
        default:
            if (x.dataType == DataType::Bool)
                return call.misfit(0, "numbers");
            break;
        }
        return one(x.dataType, *std::move(shape));
    }
    switch (call.kind) {
    case Not:
        if (x.dataType != DataType::Bool)
            return call.misfit(0, "bool");
        return one(x.dataType, x.shape);
    case IsInf:
    case IsNaN:
        if (!isFloating(x.dataType))
            return call.misfit(0, "a floating element type");
        return one(DataType::Bool, x.shape);
    case Cast:
        if (call.declared.empty())
            return call.badOutput("a declared element type");
        return one(call.declared[0].dataType, x.shape);
    default:
        if (!isFloating(x.dataType) && !takesIntegers(call.kind))
            return call.misfit(0, "a floating element type");
        return one(x.dataType, x.shape);
    }
}

/// All present inputs have input 0's element type, which must be floating where the kind takes no integers.
Result<void> checkElementTypes(const InferCall &call, std::size_t count)
{
    using enum OperatorKind;
    if (!isFloating(call.type(0).dataType) && !takesIntegers(call.kind) && call.kind != MatMul
        && call.kind != Einsum)
        return call.misfit(0, "a floating element type");
    for (std::size_t slot = 1; slot < count && slot < call.inputs.size(); ++slot) {
        if (call.has(slot) && call.type(slot).dataType != call.type(0).dataType)
            return call.misfit(
                slot, std::string("the element type of input 0, ") + nameOf(call.type(0).dataType));
    }
    return {};
}

TypesOutcome inferMatMul(const InferCall &call)
{
    const Shape &a = call.in(0);
    const Shape &b = call.in(1);
    if (a.empty())
        return call.misfit(0, "at least one dimension");
    if (b.empty())
        return call.misfit(1, "at least one dimension");
    TRY_VOID(checkElementTypes(call, 2));
    const std::int64_t inner = b.size() == 1 ? b[0] : b[b.size() - 2];
    if (inner != a.back()) {
        return call.misfit(
            1, std::to_string(a.back()) + " rows, as many as input 0, " + toString(a) + ", has columns");
    }
    const auto batchOf = [](const Shape &shape) {
        return shape.size() > 2 ? Shape(shape.begin(), shape.end() - 2) : Shape{};
    };
    auto y = broadcast(batchOf(a), batchOf(b));
    if (!y)
        return call.misfit(1, "leading dimensions that broadcast with input 0's " + toString(a));
    if (a.size() > 1)
        y->push_back(a[a.size() - 2]);
    if (b.size() > 1)
        y->push_back(b.back());
    return one(call.type(0).dataType, *std::move(y));
}

TypesOutcome inferLinear(const InferCall &call)
{
    const Shape &x = call.in(0);
    const Shape &w = call.in(1);
    TRY_VOID(checkElementTypes(call, 3));
    if (x.empty())
        return call.misfit(0, "at least one dimension");
    const bool transposed = call.attributes.integer("transposed") != 0;
    if (w.size() < 2 || w.size() > 3 || (transposed ? w.back() : w.front()) != x.back()) {
        return call.misfit(1,
            std::string("two dimensions, or three, ") + (transposed ? "the last" : "the first") + " of them "
                + std::to_string(x.back()));
    }
    const Shape columns = transposed ? Shape(w.begin(), w.end() - 1) : Shape(w.begin() + 1, w.end());
    Shape y(x.begin(), x.end() - 1);
    y.insert(y.end(), columns.begin(), columns.end());
    if (call.has(2) && call.in(2) != columns)
        return call.misfit(2, toString(columns));
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferEinsum(const InferCall &call)
{
    TRY_VOID(checkElementTypes(call, call.inputs.size()));
    std::string equation;
    for (const char c : call.attributes.text("equation")) {
        if (c != ' ')
            equation += c;
    }
    const std::size_t arrow = equation.find("->");
    if (arrow == std::string::npos)
        return call.badAttribute("equation", "letters, commas and '->', found '" + equation + "'");
    std::int64_t sizes[128];
    std::fill(std::begin(sizes), std::end(sizes), -1);
    std::size_t slot = 0;
    std::size_t position = 0;
    for (std::size_t i = 0; i <= arrow; ++i) {
        const char c = equation[i];
        if (c == ',' || i == arrow) {
            if (slot >= call.inputs.size() || !call.has(slot))
                return call.badAttribute("equation", "as many operands as inputs");
            if (position != call.rank(slot))
                return call.misfit(slot, std::to_string(position) + " dimensions by '" + equation + "'");
            ++slot;
            position = 0;
            continue;
        }
        const auto letter = static_cast<unsigned char>(c);
        if (!((letter | 32) >= 'a' && (letter | 32) <= 'z'))
            return call.badAttribute("equation", "letters, commas and '->', found '" + equation + "'");
        if (slot >= call.inputs.size() || position >= call.rank(slot))
            return call.badAttribute(
                "equation", "as many letters as the inputs have dimensions: '" + equation + "'");
        const std::int64_t extent = call.in(slot)[position++];
        if (sizes[letter] > 1 && extent != 1 && extent != sizes[letter]) {
            return call.misfit(slot,
                "'" + std::string(1, c) + "' to be " + std::to_string(sizes[letter]) + " in '" + equation
                    + "'");
        }
        if (sizes[letter] < 0 || sizes[letter] == 1)
            sizes[letter] = extent;
    }
    if (slot != call.inputs.size())
        return call.badAttribute("equation", "as many operands as inputs");
    Shape y;
    for (std::size_t i = arrow + 2; i < equation.size(); ++i) {
        const auto letter = static_cast<unsigned char>(equation[i]);
        if (letter >= 128 || sizes[letter] < 0 || equation.find(equation[i], arrow) != i)
            return call.badAttribute(
                "equation", "output letters that occur in an input, once each: '" + equation + "'");
        y.push_back(sizes[letter]);
    }
    return one(call.type(0).dataType, std::move(y));
}

/// Attributes of a sliding window, with their defaults, checked.
struct WindowCount {
    std::vector<std::int64_t> strides{};
    std::vector<std::int64_t> pads{};
    std::vector<std::int64_t> dilations{};
};

Result<WindowCount> windowOf(const InferCall &call, std::size_t count)
{
    const auto read = [&](const char *name, std::size_t size, std::int64_t fallback, std::int64_t least,
                          std::vector<std::int64_t> &into) -> Result<void> {
        into = call.attributes.has(name) ? call.attributes.integers(name)
                                         : std::vector<std::int64_t>(size, fallback);
        if (into.size() != size)
            return call.badAttribute(name, std::to_string(size) + " numbers");
        for (const std::int64_t value : into) {
            if (value < least || value >= kLargestExtent)
                return call.badAttribute(
                    name, "numbers from " + std::to_string(least) + ", found " + std::to_string(value));
        }
        return {};
    };
    WindowCount window;
    TRY_VOID(read("strides", count, 1, 1, window.strides));
    TRY_VOID(read("pads", 2 * count, 0, 0, window.pads));
    TRY_VOID(read("dilations", count, 1, 1, window.dilations));
    return window;
}

/// Places of a window of extent `kernel` along dimension `i` of `count`.
std::int64_t placesOf(const WindowCount &window, std::size_t i, std::size_t count, std::int64_t extent,
    std::int64_t kernel, bool ceiling)
{
    const std::int64_t before = window.pads[i];
    const std::int64_t span = window.dilations[i] * (kernel - 1) + 1;
    const std::int64_t room = extent + before + window.pads[i + count] - span;
    if (room < 0)
        return 0;
    const std::int64_t stride = window.strides[i];
    std::int64_t places = room / stride + 1;
    // A last window that would start behind the input and its left padding is dropped.
    if (ceiling && room % stride != 0 && places * stride < extent + before)
        ++places;
    return places;
}

TypesOutcome inferConvolution(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkElementTypes(call, 3));
    const Shape &x = call.in(0);
    const Shape &w = call.in(1);
    if (x.size() < 3)
        return call.misfit(0, "at least three dimensions");
    if (w.size() != x.size())
        return call.misfit(1, "as many dimensions as input 0, " + toString(x));
    const std::size_t count = x.size() - 2;
    TRY(const WindowCount window, windowOf(call, count));
    const std::int64_t groups = call.attributes.integer("group", 1);
    if (groups < 1 || groups > x[1] || x[1] % groups != 0)
        return call.badAttribute("group", "a divisor of the " + std::to_string(x[1]) + " input channels");
    const bool transposed = call.kind == ConvTranspose;
    for (std::size_t i = 2; i < w.size(); ++i) {
        if (w[i] < 1 || w[i] >= kLargestExtent)
            return call.misfit(1, "a kernel of at least one element");
    }
    if (transposed ? w[0] != x[1] : w[1] != x[1] / groups || w[0] % groups != 0) {
        return call.misfit(
            1, "channels that fit input 0, " + toString(x) + ", in " + std::to_string(groups) + " groups");
    }
    std::vector<std::int64_t> padding(count, 0);
    if (transposed && call.attributes.has("output_padding"))
        padding = call.attributes.integers("output_padding");
    if (padding.size() != count
        || std::any_of(padding.begin(), padding.end(), [](auto p) { return p < 0 || p >= kLargestExtent; }))
        return call.badAttribute("output_padding", "one number per spatial dimension");
    Shape y{x[0], transposed ? w[1] * groups : w[0]};
    for (std::size_t i = 0; i < count; ++i) {
        if (!transposed) {
            y.push_back(placesOf(window, i, count, x[i + 2], w[i + 2], false));
            continue;
        }
        std::int64_t extent = 0;
        if (__builtin_mul_overflow(window.strides[i], x[i + 2] - 1, &extent) || extent > kMostElements)
            return call.badAttribute("strides", "a smaller stride");
        extent +=
            padding[i] + (w[i + 2] - 1) * window.dilations[i] + 1 - window.pads[i] - window.pads[i + count];
        y.push_back(extent);
    }
    if (std::any_of(y.begin() + 2, y.end(), [](std::int64_t extent) { return extent < 1; }))
        return call.misfit(1, "a kernel that fits into the padded input " + toString(x));
    if (call.has(2) && call.in(2) != Shape{y[1]})
        return call.misfit(2, toString(Shape{y[1]}));
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferPooling(const InferCall &call)
{
    TRY_VOID(checkElementTypes(call, 1));
    const Shape &x = call.in(0);
    if (x.size() < 3)
        return call.misfit(0, "at least three dimensions");
    const std::size_t count = x.size() - 2;
    TRY(const WindowCount window, windowOf(call, count));
    const auto kernel = call.attributes.integers("kernel_shape");
    if (kernel.size() != count
        || std::any_of(kernel.begin(), kernel.end(), [](auto k) { return k < 1 || k >= kLargestExtent; }))
        return call.badAttribute("kernel_shape", std::to_string(count) + " positive numbers");
    Shape y{x[0], x[1]};
    for (std::size_t i = 0; i < count; ++i)
        y.push_back(
            placesOf(window, i, count, x[i + 2], kernel[i], call.attributes.integer("ceil_mode") != 0));
    if (std::any_of(y.begin() + 2, y.end(), [](std::int64_t extent) { return extent < 1; }))
        return call.misfit(0, "a padded input into which the kernel fits");
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferNormalization(const InferCall &call)
{
    using enum OperatorKind;
    // Statistics and affine parameters may be float32 beside a half-precision input.
    if (!isFloating(call.type(0).dataType))
        return call.misfit(0, "a floating element type");
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (call.has(slot) && !isFloating(call.type(slot).dataType))
            return call.misfit(slot, "a floating element type");
    }
    const Shape &x = call.in(0);
    switch (call.kind) {
    case Softmax:
    case LogSoftmax:
    case LpNormalize: {
        TRY_VOID(call.axis(x.size()));
        return one(call.type(0).dataType, x);
    }
    case LayerNorm:
    case RmsNorm: {
        TRY(const std::size_t axis, call.axis(x.size()));
        const Shape normalized(x.begin() + static_cast<std::ptrdiff_t>(axis), x.end());
        for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
            if (call.has(slot) && broadcast(normalized, call.in(slot)) != normalized)
                return call.misfit(slot, "the normalised shape " + toString(normalized));
        }
        return one(call.type(0).dataType, x);
    }
    default: // statistics per channel
        break;
    }
    if (x.size() < 2)
        return call.misfit(0, "at least two dimensions");
    const bool batch = call.kind == BatchMean || call.kind == BatchVariance || call.kind == BatchNormalize;
    const std::int64_t groups = batch ? call.attributes.integer("groups") : 0;
    if (groups < 0 || (groups > 0 && x[1] % groups != 0))
        return call.badAttribute("groups", "a divisor of the channels, found " + std::to_string(groups));
    const Shape statistics = groups > 0 ? Shape{x[0], groups} : Shape{x[1]};
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        const bool ofGroups = groups > 0 && slot <= 2;
        if (call.has(slot) && call.in(slot) != (ofGroups ? statistics : Shape{x[1]}))
            return call.misfit(slot,
                ofGroups ? "one element per sample and group, " + toString(statistics)
                         : "one element per channel, " + toString(Shape{x[1]}));
    }
    const bool statistic = call.kind == BatchMean || call.kind == BatchVariance;
    return one(call.type(0).dataType, statistic ? statistics : x);
}

TypesOutcome inferLoss(const InferCall &call)
{
    using enum OperatorKind;
    if (call.kind == CountValid) {
        if (!isIndexType(call.type(0).dataType))
            return call.misfit(0, "int32 or int64 labels");
        return one(call.has(1) ? call.type(1).dataType : DataType::Float32, {});
    }
    const Shape &logits = call.in(0);
    if (!isFloating(call.type(0).dataType) || logits.empty())
        return call.misfit(0, "floating logits with a class dimension");
    if (!isIndexType(call.type(1).dataType))
        return call.misfit(1, "int32 or int64 labels");
    Shape items = logits;
    const std::size_t axis = logits.size() == 1 ? 0 : 1;
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(axis));
    if (call.in(1) != items)
        return call.misfit(1, toString(items) + ", the shape of the logits without their classes");
    if (call.kind == OperatorKind::ClassStatistics) {
        const TensorType statistic{call.type(0).dataType, items};
        return std::vector<TensorType>{statistic, statistic};
    }
    if (call.has(2) && call.in(2) != Shape{logits[axis]})
        return call.misfit(2, "one weight per class, " + toString(Shape{logits[axis]}));
    const std::string reduction = call.attributes.text("reduction", "sum");
    if (reduction != "sum" && reduction != "none")
        return call.badAttribute("reduction", "\"sum\" or \"none\", found \"" + reduction + "\"");
    return one(call.type(0).dataType, reduction == "sum" ? Shape{} : items);
}

/// A cross-entropy from the statistics of its classes.
TypesOutcome inferClassLoss(const InferCall &call)
{
    const Shape &items = call.in(0);
    if (!isFloating(call.type(0).dataType))
        return call.misfit(0, "floating statistics");
    if (call.type(1) != call.type(0))
        return call.misfit(1, std::string(nameOf(call.type(0).dataType)) + toString(items));
    if (!isIndexType(call.type(2).dataType) || call.in(2) != items)
        return call.misfit(2, "int32 or int64 labels of shape " + toString(items));
    if (call.has(3) && call.rank(3) != 1)
        return call.misfit(3, "one weight per class");
    const std::string reduction = call.attributes.text("reduction", "sum");
    if (reduction != "sum" && reduction != "none")
        return call.badAttribute("reduction", "\"sum\" or \"none\", found \"" + reduction + "\"");
    return one(call.type(0).dataType, reduction == "sum" ? Shape{} : items);
}

TypesOutcome inferReduction(const InferCall &call)
{
    using enum OperatorKind;
    const Shape &x = call.in(0);
    const bool arg = call.kind == ArgMax || call.kind == ArgMin;
    const bool extreme = call.kind == ReduceMax || call.kind == ReduceMin; // of booleans: any, all
    if (!arg && !isFloating(call.type(0).dataType)
        && (!takesIntegers(call.kind) || (call.type(0).dataType == DataType::Bool && !extreme)))
        return call.misfit(0, "numbers");
    std::vector<bool> reduced(x.size(), !arg && !call.attributes.has("axes"));
    if (arg) {
        TRY(const std::size_t axis, call.axis(x.size()));
        reduced[axis] = true;
    } else {
        for (const std::int64_t axis : call.attributes.integers("axes")) {
            if (axis < 0 || static_cast<std::size_t>(axis) >= x.size())
                return call.badAttribute(
                    "axes", "dimensions of input 0, " + toString(x) + ", found " + std::to_string(axis));
            reduced[static_cast<std::size_t>(axis)] = true;
        }
    }
    const bool keep = call.attributes.integer("keepdims", 1) != 0;
    Shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!reduced[i])
            y.push_back(x[i]);
        else if (keep)
            y.push_back(1);
    }
    return one(arg ? DataType::Int64 : call.type(0).dataType, std::move(y));
}

TypesOutcome inferAttention(const InferCall &call)
{
    TRY_VOID(checkElementTypes(call, 3));
    const Shape &q = call.in(0);
    const Shape &k = call.in(1);
    const Shape &v = call.in(2);
    const std::size_t rank = q.size();
    if (rank < 3)
        return call.misfit(0, "at least three dimensions: heads, queries and the size of a head");
    const auto alike = [&](const Shape &a, const Shape &b, std::size_t count) {
        return a.size() == b.size()
            && std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin());
    };
    const std::int64_t heads = q[rank - 3];
    if (!alike(q, k, rank - 3) || k[rank - 3] < 1 || heads % k[rank - 3] != 0 || k[rank - 1] != q[rank - 1])
        return call.misfit(1, "keys for the queries " + toString(q) + ", of heads that divide theirs");
    if (!alike(k, v, rank - 1))
        return call.misfit(2, "values for the keys " + toString(k));
    Shape y(q.begin(), q.end() - 1);
    const TensorType sums{
        call.type(0).dataType == DataType::Float64 ? DataType::Float64 : DataType::Float32, y};
    Shape scores = y;
    scores.push_back(k[rank - 2]);
    y.push_back(v[rank - 1]);
    for (std::size_t slot = 3; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        if (call.type(slot).dataType != DataType::Bool && call.type(slot).dataType != call.type(0).dataType)
            return call.misfit(
                slot, std::string("bool, or the element type of input 0, ") + nameOf(call.type(0).dataType));
        if (broadcast(scores, call.in(slot)) != scores)
            return call.misfit(slot, "a shape that broadcasts against the scores " + toString(scores));
    }
    if (call.attributes.integer("window") < 0)
        return call.badAttribute("window", "0 or the number of keys that are seen");
    const double ratio = call.attributes.real("dropout");
    if (!(ratio >= 0 && ratio < 1))
        return call.badAttribute("dropout", "a ratio from 0 to below 1");
    if (const double cap = call.attributes.real("softcap"); !(cap >= 0) || !std::isfinite(cap))
        return call.badAttribute("softcap", "0 or the largest score");
    if (!std::isfinite(call.attributes.real("masked_score")))
        return call.badAttribute("masked_score", "a finite number");
    return std::vector<TensorType>{
        {call.type(0).dataType, std::move(y)}, sums, {call.type(0).dataType, std::move(scores)}};
}

TypesOutcome inferOptimizer(const InferCall &call)
{
    std::vector<TensorType> types{call.type(0)};
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        if (slot == factorSlotOf(call.kind)) {
            if (!call.in(slot).empty() || call.type(slot).dataType != DataType::Float32)
                return call.misfit(slot, "one Float32 number to multiply the gradient with");
            continue;
        }
        if (call.in(slot) != call.in(0))
            return call.misfit(slot, "the weight's shape, " + toString(call.in(0)));
        if (slot >= 2)
            types.push_back(call.type(slot));
    }
    return types;
}

TypesOutcome inferClipFactor(const InferCall &call)
{
    if (!call.in(0).empty() || call.type(0).dataType != DataType::Float32)
        return call.misfit(0, "one Float32 number, the sum of squares");
    if (const double norm = call.attributes.real("clip_norm"); !(norm > 0) || !std::isfinite(norm))
        return call.badAttribute("clip_norm", "a number above 0");
    return one(DataType::Float32, {});
}

TypesOutcome inferKind(const InferCall &call)
{
    using enum OperatorKind;
    if (isElementwise(call.kind))
        return inferElementwise(call);
    switch (call.kind) {
    case MatMul:
        return inferMatMul(call);
    case Linear:
        return inferLinear(call);
    case Einsum:
        return inferEinsum(call);
    case Conv:
    case ConvTranspose:
        return inferConvolution(call);
    case MaxPool:
    case AveragePool:
    case LpPool:
        return inferPooling(call);
    case CrossEntropy:
    case NegativeLogLikelihood:
    case ClassStatistics:
    case CountValid:
        return inferLoss(call);
    case ClassLoss:
        return inferClassLoss(call);
    case Rotary:
        for (const std::size_t slot : {1, 2}) {
            if (broadcast(call.in(0), call.in(slot)) != call.in(0))
                return call.misfit(slot, "a shape that broadcasts against input 0's " + toString(call.in(0)));
        }
        if (call.in(0).empty() || call.in(0).back() % 2 != 0)
            return call.misfit(0, "an even last dimension");
        return one(call.type(0).dataType, call.in(0));
    case Attention:
        return inferAttention(call);
    case Lstm:
    case Gru:
    case Rnn:
        return inferRecurrent(call);
    case SgdStep:
    case AdamWStep:
        return inferOptimizer(call);
    case SquareSum:
        return one(DataType::Float32, {});
    case ClipFactor:
        return inferClipFactor(call);
    case Custom:
        return customTypes(call.attributes, call.inputs, call.present);
    case Unknown:
        if (call.declared.empty())
            return call.badOutput("declared output types, since Planloom does not know this operator");
        return call.declared;
    default:
        break;
    }
    const OperatorCategory category = categoryOf(call.kind);
    if (category == OperatorCategory::Normalization)
        return inferNormalization(call);
    if (call.kind >= ReduceSum && call.kind <= ArgMin)
        return inferReduction(call);
    return inferMoving(call);
}

Result<void> checkSane(const InferCall &call)
{
    const Arity arity = arityOf(call.kind);
    if (call.inputs.size() > arity.most) {
        return Error{ErrorCode::InvalidInput,
            std::string(nameOf(call.kind)) + " takes at most " + std::to_string(arity.most)
                + " inputs, found " + std::to_string(call.inputs.size())};
    }
    for (std::size_t slot = 0; slot < arity.required; ++slot) {
        if (!call.has(slot)) {
            return Error{ErrorCode::InvalidInput,
                std::string(nameOf(call.kind)) + " lacks its input " + std::to_string(slot), {},
                "input:" + std::to_string(slot)};
        }
    }
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (!isSane(call.in(slot)))
            return call.misfit(slot, "extents that are not negative and a product below 2^48");
    }
    for (const auto &[name, value] : call.attributes.all()) {
        const auto *list = std::get_if<std::vector<std::int64_t>>(&value);
        // Slices may name "to the end" by the largest number there is; the importer has resolved those.
        if (list != nullptr && std::any_of(list->begin(), list->end(), [](std::int64_t number) {
                return number > kMostElements || number < -kMostElements;
            }))
            return call.badAttribute(name, "numbers of magnitude below 2^48");
    }
    return {};
}

} // namespace

Result<std::vector<TensorType>> inferTypes(OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const std::vector<TensorType> &declared)
{
    const InferCall call{kind, attributes, inputs, present, declared};
    TRY_VOID(checkSane(call));
    TRY(auto types, inferKind(call));
    for (const TensorType &type : types) {
        if (!isSane(type.shape)) {
            return Error{ErrorCode::ResourceLimit,
                std::string(nameOf(kind)) + " would make a tensor of shape " + toString(type.shape)
                    + "; expected fewer than 2^48 elements",
                {}, "output:0"};
        }
    }
    return types;
}

} // namespace planloom
