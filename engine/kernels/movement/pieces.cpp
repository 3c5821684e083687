// Slice, Concat, Split, Pad: of parts of their tensors, what these have in common.

#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/number_attribute.h"

#include <algorithm>

namespace planloom {

namespace {

// --- Slice
// -----------------------------------------------------------------------------------------------------

/// Copies between a slice and the place it has in the tensor it was cut from; of parts of both, what they
/// have in common.
Result<void> copySlice(const KernelCall &call, const Buffer &whole, const Buffer &slice, bool backward)
{
    auto starts = call.op->attributes.integers("starts");
    auto steps = call.op->attributes.integers("steps");
    starts.resize(whole.shape.size(), 0);
    steps.resize(whole.shape.size(), 1);
    Shape strides = denseStrides(whole.shape);
    const Shape sliceStrides = denseStrides(slice.shape);
    Shape extents = slice.shape;
    std::int64_t first = 0;
    std::int64_t sliceFirst = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) {
        const std::int64_t extent = wholeExtent(whole, d);
        const std::int64_t begin = starts[d] + firstOf(slice, d) * steps[d];
        const std::int64_t last = begin + (slice.shape[d] - 1) * steps[d];
        if (slice.shape[d] > 0 && (begin < 0 || begin >= extent || last < 0 || last >= extent))
            return indexOutOfRange(call, begin < 0 || begin >= extent ? begin : last, extent);
        // The slice's elements that this part of the tensor has: only those of positive steps are cut.
        std::int64_t skipped = 0;
        const std::int64_t low = firstOf(whole, d);
        if (steps[d] > 0 && begin < low)
            skipped = (low - begin + steps[d] - 1) / steps[d];
        std::int64_t end = slice.shape[d];
        if (steps[d] > 0 && last >= low + whole.shape[d])
            end -= (last - (low + whole.shape[d] - 1) + steps[d] - 1) / steps[d];
        extents[d] = std::max<std::int64_t>(0, end - skipped);
        first += (begin + skipped * steps[d] - low) * strides[d];
        sliceFirst += skipped * sliceStrides[d];
        strides[d] *= steps[d];
    }
    if (elementCount(extents) == 0)
        return {};
    return withElement(whole.dataType, [&]<typename T>(T) {
        if (backward)
            copyStrided(call, extents, elements<const T>(slice) + sliceFirst, sliceStrides,
                elements<T>(whole) + first, strides);
        else
            copyStrided(call, extents, elements<const T>(whole) + first, strides,
                elements<T>(slice) + sliceFirst, sliceStrides);
    });
}

Result<void> sliceForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    return copySlice(call, x, y, false);
}

Result<void> sliceBackward(const KernelCall &call, const Buffer &dy, const Buffer &dx)
{
    fillZero(call, dx);
    return copySlice(call, dx, dy, true);
}

// --- Concat, Split
// ---------------------------------------------------------------------------------------------

/// Copies `length` places along `axis` between `wide`, from `wideAt` on, and `narrow`, from `narrowAt` on;
/// all other dimensions are alike.
void copyAlong(const KernelCall &call, const Buffer &wide, std::int64_t wideAt, const Buffer &narrow,
    std::int64_t narrowAt, std::int64_t axis, std::int64_t length, bool intoWide)
{
    const AxisView outer = axisView(wide.shape, axis);
    const AxisView inner = axisView(narrow.shape, axis);
    const std::int64_t size = sizeOf(wide.dataType) * inner.inner;
    if (call.mover != nullptr) {
        const std::int64_t run = length * inner.inner;
        std::byte *const in = wide.data + wideAt * size;
        std::byte *const out = narrow.data + narrowAt * size;
        const Shape wideStrides{outer.extent * inner.inner, 1};
        const Shape narrowStrides{inner.extent * inner.inner, 1};
        call.mover->move(sizeOf(wide.dataType), {inner.outer, run}, intoWide ? out : in,
            intoWide ? narrowStrides : wideStrides, intoWide ? in : out,
            intoWide ? wideStrides : narrowStrides);
        return;
    }
    const auto run = static_cast<std::size_t>(length * size);
    for (std::int64_t i = 0; i < inner.outer; ++i) {
        std::byte *in = wide.data + (i * outer.extent + wideAt) * size;
        std::byte *out = narrow.data + (i * inner.extent + narrowAt) * size;
        std::memcpy(intoWide ? in : out, intoWide ? out : in, run);
    }
}

/// Copies between `part` and the place `offset` that it has along `axis` of `whole`.
void copyPart(const KernelCall &call, const Buffer &whole, const Buffer &part, std::int64_t axis,
    std::int64_t offset, bool intoWhole)
{
    copyAlong(call, whole, offset, part, 0, axis, part.shape[static_cast<std::size_t>(axis)], intoWhole);
}

/// Calls visit(part, offset along the split dimension) for every part of a Split that is there.
/// @param partAt  gives the part with a number, or null
template<typename PartAt, typename Visit>
void forEachPart(const KernelCall &call, std::size_t count, PartAt &&partAt, Visit &&visit)
{
    const auto axis = static_cast<std::size_t>(call.op->attributes.integer("axis"));
    const auto sizes = call.op->attributes.integers("sizes");
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const Buffer *part = partAt(i);
        if (part != nullptr)
            visit(*part, offset);
        offset += i < sizes.size() ? sizes[i] : part != nullptr ? part->shape[axis] : 0;
    }
}

/// True if parts have shares of a tensor along `axis`, rather than all of it.
bool isShareAlong(const TensorTerms &terms, std::int64_t axis)
{
    return static_cast<std::size_t>(axis) < terms.terms.size()
        && terms.terms[static_cast<std::size_t>(axis)].reach == WindowReach::Share;
}

/// Copies between a tensor that was joined of several, the `range` that there is of it, and one of them, that
/// begins at `offset` of the whole: what the parts of both have in common.
void copyJoined(const KernelCall &call, const Buffer &joined, Range range, const Buffer &one,
    std::int64_t axis, std::int64_t offset, bool intoJoined)
{
    const auto d = static_cast<std::size_t>(axis);
    const std::int64_t begin = std::max(range.begin, offset + firstOf(one, d));
    const std::int64_t end = std::min(range.end, offset + firstOf(one, d) + one.shape[d]);
    if (begin < end)
        copyAlong(call, joined, begin - firstOf(joined, d), one, begin - offset - firstOf(one, d), axis,
            end - begin, intoJoined);
}

/// Extent along `axis` that the annotation gives a tensor, for one that is not there to ask.
std::int64_t annotatedExtent(const KernelCall &call, const TensorTerms &terms, std::int64_t axis)
{
    std::int64_t extent = 1;
    if (static_cast<std::size_t>(axis) < terms.terms.size()) {
        if (isShareAlong(terms, axis))
            return findWindow(call.op->annotation, terms.terms[static_cast<std::size_t>(axis)].factors[0])
                ->extent;
        for (const std::int32_t factor : terms.terms[static_cast<std::size_t>(axis)].factors)
            extent *= call.op->annotation.dimensions[static_cast<std::size_t>(factor)].size;
    }
    return extent;
}

Result<void> concatForward(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    const std::int64_t axis = call.op->attributes.integer("axis");
    const auto d = static_cast<std::size_t>(axis);
    const Range made{firstOf(*y, d), firstOf(*y, d) + y->shape[d]};
    std::int64_t offset = 0;
    for (const Buffer &x : call.inputs) {
        if (x.data == nullptr || elementCount(x) == 0)
            continue;
        copyJoined(call, *y, made, x, axis, offset, true);
        offset += wholeExtent(x, d);
    }
    return {};
}

/// Of an input that the parts have whole, each makes what comes of its own places, and zeros.
Result<void> concatBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    const std::int64_t axis = call.op->attributes.integer("axis");
    const auto d = static_cast<std::size_t>(axis);
    const Range own = ownBox(call, 0).ranges[d];
    const Range all{firstOf(*dy, d), firstOf(*dy, d) + dy->shape[d]};
    const auto &terms = call.op->annotation.outputs;
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < back.forwardInputs(); ++i) {
        if (const Buffer *dx = back.wanted(i)) {
            const bool share = i < terms.size() && isShareAlong(terms[i], axis);
            fillZero(call, *dx);
            copyJoined(call, *dy, share ? all : own, *dx, axis, offset, false);
            offset += wholeExtent(*dx, d);
        } else if (const Buffer *x = back.input(i)) {
            offset += wholeExtent(*x, d);
        } else if (i < terms.size()) {
            offset += annotatedExtent(call, terms[i], axis);
        }
    }
    return {};
}

Result<void> splitForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    if (x == nullptr)
        return missingSlot(call, "its input");
    const std::int64_t axis = call.op->attributes.integer("axis");
    forEachPart(
        call, call.outputs.size(), [&](std::size_t i) { return findOutput(call, i); },
        [&](const Buffer &y, std::int64_t offset) { copyPart(call, *x, y, axis, offset, false); });
    return {};
}

Result<void> splitBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return {};
    const std::int64_t axis = call.op->attributes.integer("axis");
    fillZero(call, *dx); // Outputs on which nothing depends have no gradient.
    forEachPart(
        call, back.forwardOutputs(), [&](std::size_t i) { return back.gradient(i); },
        [&](const Buffer &dy, std::int64_t offset) { copyPart(call, *dx, dy, axis, offset, true); });
    return {};
}

// --- Pad
// -------------------------------------------------------------------------------------------------------

/// For every position along each dimension of y, the position in x that it shows, or -1 for the constant, or
/// for what this part of x does not have.
std::vector<Shape> padMaps(const KernelCall &call, const Buffer &xBuffer, const Buffer &yBuffer)
{
    Shape x;
    for (std::size_t d = 0; d < xBuffer.shape.size(); ++d)
        x.push_back(wholeExtent(xBuffer, d));
    const Shape &y = yBuffer.shape;
    const auto pads = call.op->attributes.integers("pads");
    const std::string mode = call.op->attributes.text("mode", "constant");
    std::vector<Shape> maps(x.size());
    for (std::size_t d = 0; d < x.size(); ++d) {
        const std::int64_t before = d < pads.size() ? pads[d] : 0;
        for (std::int64_t i = 0; i < y[d]; ++i) {
            std::int64_t at = firstOf(yBuffer, d) + i - before;
            if (at < 0 || at >= x[d]) {
                if (mode == "edge") {
                    at = std::clamp<std::int64_t>(at, 0, x[d] - 1);
                } else if (mode == "reflect" && x[d] > 1) {
                    const std::int64_t period = 2 * (x[d] - 1);
                    at = ((at % period) + period) % period;
                    at = at < x[d] ? at : period - at;
                } else if (mode == "reflect") {
                    at = 0;
                } else if (mode == "wrap" && x[d] > 0) {
                    at = ((at % x[d]) + x[d]) % x[d];
                } else {
                    at = -1;
                }
            }
            const std::int64_t own = at - firstOf(xBuffer, d);
            maps[d].push_back(at < 0 || own < 0 || own >= xBuffer.shape[d] ? -1 : own);
        }
    }
    return maps;
}

/// Calls visit(y offset, x offset) for every element of y; the x offset is -1 for the constant.
template<typename Visit>
void forEachMapped(const std::vector<Shape> &maps, const Shape &x, const Shape &y, Visit &&visit)
{
    const Shape strides = denseStrides(x);
    const std::int64_t count = elementCount(y);
    Shape counter(y.size(), 0);
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t from = 0;
        for (std::size_t d = 0; d < y.size(); ++d) {
            const std::int64_t at = maps[d][static_cast<std::size_t>(counter[d])];
            if (at < 0) {
                from = -1;
                break;
            }
            from += at * strides[d];
        }
        visit(i, from);
        for (std::size_t d = y.size(); d-- > 0;) {
            if (++counter[d] < y[d])
                break;
            counter[d] = 0;
        }
    }
}

Result<void> padForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    const auto maps = padMaps(call, x, y);
    const Attributes &attributes = call.op->attributes;
    return withNumber(call, x.dataType, [&]<typename T>(T) {
        const T constant = call.value.index != 0 ? T(0) : numberOf<T>(attributes, "value", T(0));
        const T *from = elements<const T>(x);
        T *to = elements<T>(y);
        forEachMapped(maps, x.shape, y.shape,
            [&](std::int64_t at, std::int64_t source) { to[at] = source < 0 ? constant : from[source]; });
    });
}

Result<void> padBackward(const KernelCall &call)
{
    return addUpGradient(call, [&](const auto *from, double *sums, const Buffer &dx, const Buffer &dy) {
        forEachMapped(padMaps(call, dx, dy), dx.shape, dy.shape, [&](std::int64_t at, std::int64_t target) {
            if (target >= 0)
                sums[target] += static_cast<double>(from[at]);
        });
    });
}

} // namespace

void addPieceKernels(KernelTable &table)
{
    table.add({OperatorKind::Slice}, moved<sliceForward>, mapped<sliceBackward>);
    table.add({OperatorKind::Concat}, concatForward, concatBackward);
    table.add({OperatorKind::Split}, splitForward, splitBackward);
    table.add({OperatorKind::Pad}, mapped<padForward>, padBackward);
}

} // namespace planloom
