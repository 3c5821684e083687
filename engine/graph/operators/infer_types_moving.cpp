#include "engine/graph/operators/infer_call.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

TypesOutcome inferReshape(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    const Shape &y = call.declared[0].shape;
    const bool negative = std::any_of(y.begin(), y.end(), [](std::int64_t extent) { return extent < 0; });
    std::int64_t product = 1;
    bool overflow = negative;
    for (const std::int64_t extent : y)
        overflow = overflow || __builtin_mul_overflow(product, extent, &product);
    if (overflow || product != elementCount(call.in(0)))
        return call.badOutput("as many elements as input 0 has, " + std::to_string(elementCount(call.in(0))));
    return one(call.type(0).dataType, y);
}

TypesOutcome inferTranspose(const InferCall &call)
{
    const auto permutation = call.attributes.integers("permutation");
    const Shape &x = call.in(0);
    std::vector<std::int64_t> sorted = permutation;
    std::sort(sorted.begin(), sorted.end());
    bool valid = sorted.size() == x.size();
    for (std::size_t i = 0; valid && i < sorted.size(); ++i)
        valid = sorted[i] == static_cast<std::int64_t>(i);
    if (!valid)
        return call.badAttribute("permutation", "each dimension of " + toString(x) + " once");
    Shape y;
    for (const std::int64_t axis : permutation)
        y.push_back(x[static_cast<std::size_t>(axis)]);
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferExpand(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    const Shape &x = call.in(0);
    const Shape &y = call.declared[0].shape;
    bool fits = y.size() >= x.size();
    for (std::size_t i = 0; fits && i < x.size(); ++i) {
        const std::int64_t from = x[x.size() - 1 - i];
        fits = from == 1 || from == y[y.size() - 1 - i];
    }
    if (!fits)
        return call.badOutput("a shape to which input 0's " + toString(x) + " broadcasts");
    return one(call.type(0).dataType, y);
}

TypesOutcome inferTile(const InferCall &call)
{
    const auto repeats = call.attributes.integers("repeats");
    Shape y = call.in(0);
    if (repeats.size() != y.size())
        return call.badAttribute("repeats", std::to_string(y.size()) + " numbers, one per dimension");
    for (std::size_t i = 0; i < y.size(); ++i) {
        if (repeats[i] < 0 || __builtin_mul_overflow(y[i], repeats[i], &y[i]))
            return call.badAttribute("repeats", "numbers that are not negative, and not so large");
    }
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferConcat(const InferCall &call)
{
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    Shape y = call.in(0);
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            return call.misfit(slot, "a tensor, found none");
        Shape expected = call.in(0);
        if (call.rank(slot) == expected.size())
            expected[axis] = call.in(slot)[axis];
        if (call.in(slot) != expected)
            return call.misfit(
                slot, "input 0's shape, " + toString(y) + ", but for dimension " + std::to_string(axis));
        if (call.type(slot).dataType != call.type(0).dataType)
            return call.misfit(
                slot, std::string("the element type of input 0, ") + nameOf(call.type(0).dataType));
        y[axis] += call.in(slot)[axis];
    }
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferSplit(const InferCall &call)
{
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    const auto sizes = call.attributes.integers("sizes");
    std::int64_t left = call.in(0)[axis];
    std::vector<TensorType> types;
    for (const std::int64_t size : sizes) {
        if (size < 0 || size > left)
            return call.badAttribute("sizes", "sizes that add up to " + std::to_string(call.in(0)[axis]));
        left -= size;
        types.push_back(call.type(0));
        types.back().shape[axis] = size;
    }
    if (left != 0 || types.empty())
        return call.badAttribute("sizes", "sizes that add up to " + std::to_string(call.in(0)[axis]));
    return types;
}

TypesOutcome inferSlice(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    const Shape &x = call.in(0);
    const Shape &y = call.declared[0].shape;
    const auto starts = call.attributes.integers("starts");
    const auto steps = call.attributes.integers("steps");
    if (y.size() != x.size())
        return call.badOutput("as many dimensions as input 0 has, " + toString(x));
    if (starts.size() != x.size())
        return call.badAttribute("starts", "one number per dimension of " + toString(x));
    if (steps.size() != x.size())
        return call.badAttribute("steps", "one number per dimension of " + toString(x));
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (y[i] == 0)
            continue;
        std::int64_t last = 0;
        const bool overflow = __builtin_mul_overflow(y[i] - 1, steps[i], &last)
            || __builtin_add_overflow(last, starts[i], &last);
        if (y[i] < 0 || steps[i] == 0 || overflow || starts[i] < 0 || starts[i] >= x[i] || last < 0
            || last >= x[i])
            return call.badOutput(
                "a slice that lies inside dimension " + std::to_string(i) + " of " + toString(x));
    }
    return one(call.type(0).dataType, y);
}

TypesOutcome inferPad(const InferCall &call)
{
    const auto pads = call.attributes.integers("pads");
    Shape y = call.in(0);
    if (pads.size() != 2 * y.size())
        return call.badAttribute("pads", "two numbers per dimension of " + toString(y));
    const std::string mode = call.attributes.text("mode", "constant");
    if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
        return call.badAttribute(
            "mode", "\"constant\", \"reflect\", \"edge\" or \"wrap\", found \"" + mode + "\"");
    for (std::size_t i = 0; i < y.size(); ++i) {
        const std::int64_t extent = y[i];
        const std::int64_t most = std::max(pads[i], pads[i + y.size()]);
        if ((mode == "reflect" && most >= std::max<std::int64_t>(extent, 1))
            || ((mode == "edge" || mode == "wrap") && extent == 0 && most > 0))
            return call.badAttribute("pads",
                "no more than dimension " + std::to_string(i) + " of " + toString(call.in(0)) + " can give");
        y[i] += pads[i] + pads[i + y.size()];
        if (y[i] < 0)
            return call.badAttribute("pads", "to leave something of dimension " + std::to_string(i));
    }
    return one(call.type(0).dataType, std::move(y));
}

Result<void> checkIndices(const InferCall &call)
{
    if (!isIndexType(call.type(1).dataType))
        return call.misfit(1, "int32 or int64 indices");
    return {};
}

/// Of indices that are places: `groups` divides dimension `axis` of x and dimension `grouped` of the indices.
Result<void> checkGroups(const InferCall &call, std::size_t axis)
{
    if (!hasPlaces(call.attributes))
        return {};
    const std::int64_t groups = call.attributes.integer("groups");
    TRY(const std::size_t grouped, call.axis(call.rank(1), "grouped"));
    if (groups < 1 || axis >= call.rank(0) || call.in(0)[axis] % groups != 0
        || call.in(1)[grouped] % groups != 0)
        return call.badAttribute("groups",
            "a divisor of the dimension of " + toString(call.in(0))
                + " that is picked from, and of dimension " + std::to_string(grouped) + " of "
                + toString(call.in(1)));
    return {};
}

TypesOutcome inferGather(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkIndices(call));
    const Shape &x = call.in(0);
    if (call.kind == Embedding && x.size() != 2)
        return call.misfit(0, "a table of two dimensions");
    std::size_t axis = 0;
    if (call.kind == Gather) {
        TRY(const std::size_t given, call.axis(x.size()));
        axis = given;
        TRY_VOID(checkGroups(call, axis));
    }
    Shape y(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
    y.insert(y.end(), call.in(1).begin(), call.in(1).end());
    y.insert(y.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferElements(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkIndices(call));
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    bool fits = call.rank(1) == call.rank(0);
    for (std::size_t i = 0; fits && i < call.rank(0); ++i)
        fits = i == axis || call.in(1)[i] <= call.in(0)[i];
    if (!fits)
        return call.misfit(
            1, "extents no larger than input 0's " + toString(call.in(0)) + " but along the axis");
    if (call.kind == GatherElements)
        return one(call.type(0).dataType, call.in(1));
    if (call.in(2) != call.in(1) || call.type(2).dataType != call.type(0).dataType)
        return call.misfit(2, "input 0's element type and the indices' shape, " + toString(call.in(1)));
    return one(call.type(0).dataType, call.in(0));
}

TypesOutcome inferND(const InferCall &call)
{
    using enum OperatorKind;
    TRY_VOID(checkIndices(call));
    const Shape &x = call.in(0);
    const Shape &indices = call.in(1);
    const std::int64_t batch = call.kind == GatherND ? call.attributes.integer("batch_dims") : 0;
    if (indices.empty() || batch < 0 || static_cast<std::size_t>(batch) >= indices.size()
        || static_cast<std::size_t>(batch) > x.size()
        || indices.back() > static_cast<std::int64_t>(x.size()) - batch
        || !std::equal(x.begin(), x.begin() + batch, indices.begin()))
        return call.misfit(1,
            "indices into input 0, " + toString(x) + ", with " + std::to_string(batch) + " batch dimensions");
    TRY_VOID(checkGroups(call, 0));
    if (hasPlaces(call.attributes)
        && (batch != 0 || indices.back() < 1
            || call.attributes.integer("grouped") + 1 >= static_cast<std::int64_t>(indices.size())))
        return call.badAttribute("grouped", "a dimension of the indices before the last");
    Shape picked(indices.begin(), indices.end() - 1);
    picked.insert(picked.end(), x.begin() + batch + indices.back(), x.end());
    if (call.kind == GatherND)
        return one(call.type(0).dataType, std::move(picked));
    if (call.in(2) != picked || call.type(2).dataType != call.type(0).dataType)
        return call.misfit(2, "input 0's element type and shape " + toString(picked));
    return one(call.type(0).dataType, x);
}

TypesOutcome inferOneHot(const InferCall &call)
{
    const std::int64_t depth = call.attributes.integer("depth");
    if (depth < 1)
        return call.badAttribute("depth", "a positive number");
    TRY(const std::size_t axis, call.axis(call.rank(0) + 1));
    Shape y = call.in(0);
    y.insert(y.begin() + static_cast<std::ptrdiff_t>(axis), depth);
    return one(call.declared.empty() ? DataType::Float32 : call.declared[0].dataType, std::move(y));
}

TypesOutcome inferTopK(const InferCall &call)
{
    TRY(const std::size_t axis, call.axis(call.rank(0)));
    const std::int64_t k = call.attributes.integer("k");
    if (k < 0 || k > call.in(0)[axis])
        return call.badAttribute(
            "k", "at most " + std::to_string(call.in(0)[axis]) + ", found " + std::to_string(k));
    TensorType values = call.type(0);
    values.shape[axis] = k;
    TensorType indices{DataType::Int64, values.shape};
    return std::vector<TensorType>{std::move(values), std::move(indices)};
}

TypesOutcome inferNonZero(const InferCall &call)
{
    const Shape &x = call.in(0);
    const std::int64_t kept = call.attributes.integer("kept");
    const std::int64_t groups = call.attributes.integer("groups", 1);
    const std::int64_t capacity = call.attributes.integer("capacity");
    if (kept < 0 || static_cast<std::size_t>(kept) >= x.size())
        return call.badAttribute("kept", "fewer dimensions than input 0 has, " + toString(x));
    TRY(const std::size_t axis, call.axis(x.size(), "group_axis"));
    if (groups < 1 || x[axis] % groups != 0 || axis < static_cast<std::size_t>(kept))
        return call.badAttribute(
            "groups", "a divisor of dimension " + std::to_string(axis) + " of " + toString(x));
    if (capacity < 1 || capacity % groups != 0)
        return call.badAttribute("capacity", "a multiple of the number of groups");
    Shape y(x.begin(), x.begin() + kept);
    y.push_back(static_cast<std::int64_t>(x.size()) - kept);
    y.push_back(capacity);
    return one(DataType::Int64, std::move(y));
}

TypesOutcome inferResize(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("a declared shape");
    if (call.declared[0].shape.size() != call.rank(0))
        return call.badOutput("as many dimensions as input 0 has, " + toString(call.in(0)));
    return one(call.type(0).dataType, call.declared[0].shape);
}

TypesOutcome inferGridSample(const InferCall &call)
{
    const Shape &x = call.in(0);
    const Shape &grid = call.in(1);
    if (x.size() < 3 || !isFloating(call.type(0).dataType))
        return call.misfit(0, "a sample, channel and at least one more dimension of floating numbers");
    if (x.size() != grid.size() || grid[0] != x[0] || call.type(1).dataType != call.type(0).dataType
        || grid.back() != static_cast<std::int64_t>(x.size()) - 2)
        return call.misfit(1,
            "places for each of " + std::to_string(x[0]) + " samples, of " + std::to_string(x.size() - 2)
                + " numbers of the element type of input 0 each");
    const std::string mode = call.attributes.text("mode", "linear");
    if (mode != "linear" && mode != "nearest" && mode != "cubic")
        return call.badAttribute("mode", "linear, nearest or cubic, found " + mode);
    const std::string padding = call.attributes.text("padding_mode", "zeros");
    if (padding != "zeros" && padding != "border" && padding != "reflection")
        return call.badAttribute("padding_mode", "zeros, border or reflection, found " + padding);
    Shape y{x[0], x[1]};
    y.insert(y.end(), grid.begin() + 1, grid.end() - 1);
    return one(call.type(0).dataType, std::move(y));
}

TypesOutcome inferBlocks(const InferCall &call)
{
    using enum OperatorKind;
    const std::int64_t size = call.attributes.integer("blocksize");
    const Shape &x = call.in(0);
    if (x.size() != 4)
        return call.misfit(0, "four dimensions");
    if (size < 1 || size > (std::int64_t{1} << 15))
        return call.badAttribute("blocksize", "a small positive number");
    if (call.kind == DepthToSpace) {
        if (x[1] % (size * size) != 0)
            return call.misfit(0, "a multiple of " + std::to_string(size * size) + " channels");
        return one(call.type(0).dataType, {x[0], x[1] / (size * size), x[2] * size, x[3] * size});
    }
    if (x[2] % size != 0 || x[3] % size != 0)
        return call.misfit(0, "heights and widths that are multiples of " + std::to_string(size));
    return one(call.type(0).dataType, {x[0], x[1] * size * size, x[2] / size, x[3] / size});
}

TypesOutcome inferReverseSequence(const InferCall &call)
{
    TRY(const std::size_t batch, call.axis(call.rank(0), "batch_axis"));
    TRY(const std::size_t time, call.axis(call.rank(0), "time_axis"));
    if (batch == time)
        return call.badAttribute("time_axis", "another dimension than 'batch_axis'");
    if (!isIndexType(call.type(1).dataType) || call.in(1) != Shape{call.in(0)[batch]})
        return call.misfit(1, "one integer per sequence, " + toString(Shape{call.in(0)[batch]}));
    return one(call.type(0).dataType, call.in(0));
}

} // namespace

TypesOutcome inferMoving(const InferCall &call)
{
    using enum OperatorKind;
    switch (call.kind) {
    case Reshape:
        return inferReshape(call);
    case Transpose:
        return inferTranspose(call);
    case Expand:
        return inferExpand(call);
    case Tile:
        return inferTile(call);
    case Concat:
        return inferConcat(call);
    case Split:
        return inferSplit(call);
    case Slice:
        return inferSlice(call);
    case Pad:
        return inferPad(call);
    case Gather:
    case Embedding:
        return inferGather(call);
    case GatherElements:
    case ScatterElements:
        return inferElements(call);
    case GatherND:
    case ScatterND:
        return inferND(call);
    case OneHot:
        return inferOneHot(call);
    case TopK:
        return inferTopK(call);
    case NonZero:
        return inferNonZero(call);
    case CumSum:
        TRY_VOID(call.axis(call.rank(0)));
        return one(call.type(0).dataType, call.in(0));
    case Trilu:
        if (call.rank(0) < 2)
            return call.misfit(0, "at least two dimensions");
        return one(call.type(0).dataType, call.in(0));
    case Resize:
        return inferResize(call);
    case GridSample:
        return inferGridSample(call);
    case DepthToSpace:
    case SpaceToDepth:
        return inferBlocks(call);
    case ReverseSequence:
        return inferReverseSequence(call);
    case EyeLike:
        if (call.rank(0) != 2)
            return call.misfit(0, "two dimensions");
        return one(call.declared.empty() ? call.type(0).dataType : call.declared[0].dataType, call.in(0));
    case OperatorKind::Range:
        if (call.declared.empty() || call.declared[0].shape.size() != 1)
            return call.badOutput("a declared type of one dimension");
        return one(call.declared[0].dataType, call.declared[0].shape);
    case Fill:
        if (call.declared.empty())
            return call.badOutput("a declared type");
        return one(call.declared[0].dataType, call.declared[0].shape);
    default:
        return Error{ErrorCode::Internal, std::string(nameOf(call.kind)) + " has no type rule"};
    }
}

TypesOutcome inferRecurrent(const InferCall &call)
{
    using enum OperatorKind;
    // Per ONNX: x [t b i], w [d g*h i], r [d g*h h], bias [d 2*g*h], lengths [b], first states [d b h], and
    // for Lstm the peephole weights [d 3*h]; with `layout` 1 the batch comes first in x, states and outputs.
    const std::int64_t gates = call.kind == Lstm ? 4 : call.kind == Gru ? 3 : 1;
    const bool batchFirst = call.attributes.integer("layout") == 1;
    // Without w, x is [t b d g*h].
    const Shape &x = call.in(0);
    const DataType type = call.type(0).dataType;
    const std::size_t rank = call.has(1) ? 3 : 4;
    if (x.size() != rank || !isFloating(type))
        return call.misfit(0, std::to_string(rank) + " dimensions of a floating element type");
    if (!call.has(2) || call.rank(2) != 3)
        return Error{ErrorCode::InvalidInput,
            std::string(nameOf(call.kind)) + "'s recurrent weights have not three dimensions", {}, "input:2"};
    const std::int64_t directions = call.in(2)[0];
    const std::int64_t hidden = call.in(2)[2];
    const std::int64_t time = x[batchFirst ? 1 : 0];
    const std::int64_t batch = x[batchFirst ? 0 : 1];
    const std::string direction = call.attributes.text("direction", "forward");
    if (directions != (direction == "bidirectional" ? 2 : 1) || call.in(2)[1] != gates * hidden)
        return call.misfit(2, "[directions " + std::to_string(gates) + "*hidden hidden]");
    if (call.has(1) && call.in(1) != Shape{directions, gates * hidden, x[2]})
        return call.misfit(1, toString(Shape{directions, gates * hidden, x[2]}));
    if (!call.has(1) && (x[2] != directions || x[3] != gates * hidden))
        return call.misfit(
            0, std::to_string(directions) + " directions of " + std::to_string(gates * hidden) + " elements");
    if (call.has(3) && call.in(3) != Shape{directions, 2 * gates * hidden})
        return call.misfit(3, toString(Shape{directions, 2 * gates * hidden}));
    if (call.has(4) && (call.in(4) != Shape{batch} || !isIndexType(call.type(4).dataType)))
        return call.misfit(4, "one int32 length per sequence, " + toString(Shape{batch}));
    const Shape state = batchFirst ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
    for (const std::size_t slot : {5, 6}) {
        if (call.has(slot) && call.in(slot) != state)
            return call.misfit(slot, toString(state));
    }
    if (call.has(7) && call.in(7) != Shape{directions, 3 * hidden})
        return call.misfit(7, toString(Shape{directions, 3 * hidden}));
    std::vector<TensorType> types;
    types.push_back(
        {type, batchFirst ? Shape{batch, time, directions, hidden} : Shape{time, directions, batch, hidden}});
    types.push_back({type, state});
    if (call.kind == Lstm)
        types.push_back({type, state});
    return types;
}

} // namespace planloom
