#include "engine/graph/annotation/partition.h"

#include "engine/graph/annotation/inner_identifier.h"
#include "engine/graph/operators/attention.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <span>

namespace planloom {

namespace {

/// A partition beyond this many parts is a mistake, and would overflow the part numbers.
constexpr std::int64_t kMostParts = std::int64_t{1} << 24;

/// Ranges per identifier without touching the heap for annotations of usual size.
class RangeBuffer
{
public:
    explicit RangeBuffer(std::size_t count)
    {
        if (count > m_inline.size())
            m_heap.resize(count);
        m_ranges =
            count > m_inline.size() ? std::span<Range>(m_heap) : std::span<Range>(m_inline.data(), count);
    }
    RangeBuffer(const RangeBuffer &) = delete;
    RangeBuffer &operator=(const RangeBuffer &) = delete;

    std::span<Range> ranges() { return m_ranges; }

private:
    std::array<Range, 24> m_inline{};
    std::vector<Range> m_heap{};
    std::span<Range> m_ranges{};
};

/// Calls `visit(split, digit)` for every split, outermost first; `digit` is part's index within the split.
template<typename Visit> void forEachDigit(const Partition &partition, std::int32_t part, Visit visit)
{
    std::int32_t below = partCount(partition);
    assert(part >= 0 && part < below);
    for (const Split &split : partition.splits) {
        below /= split.parts;
        visit(split, part / below);
        part %= below;
    }
}

/// Where a cut goes on that has more parts than there are elements left: each of these is cut into `parts`
/// along the identifier behind it.
struct Continued {
    std::int32_t inner = -1; ///< -1: it does not.
    std::int32_t parts = 1;
};

Continued continued(const Annotation &annotation, const Partition &partition, const Split &split)
{
    std::int64_t left = annotation.dimensions[static_cast<std::size_t>(split.dimension)].size;
    for (const Split &before : partition.splits) {
        if (&before == &split)
            break;
        if (before.kind == SplitKind::Dimension && before.dimension == split.dimension)
            left = left % before.parts == 0 ? left / before.parts : 1;
    }
    if (left < 1 || left % split.parts == 0 || split.parts % left != 0 || !split.sizes.empty())
        return {};
    const std::int32_t inner = innerOf(annotation, split.dimension);
    return {inner, inner < 0 ? 1 : static_cast<std::int32_t>(split.parts / left)};
}

/// Part `digit` of `range`. Cutting at rounded fractions tiles the range whatever its size, so that a range
/// which micro-batches have made smaller is cut in the same proportions.
Range cut(const Split &split, std::int32_t digit, Range range)
{
    const std::int64_t size = range.size();
    if (split.sizes.empty())
        return {range.begin + size * digit / split.parts, range.begin + size * (digit + 1) / split.parts};
    std::int64_t before = 0;
    std::int64_t total = 0;
    for (std::size_t i = 0; i < split.sizes.size(); ++i) {
        if (static_cast<std::int32_t>(i) < digit)
            before += split.sizes[i];
        total += split.sizes[i];
    }
    const std::int64_t through = before + split.sizes[static_cast<std::size_t>(digit)];
    return {range.begin + size * before / total, range.begin + size * through / total};
}

/// Cuts off the keys that no query of a slice sees, once its queries are known.
void narrowToReach(const Operator &op, std::span<Range> ranges)
{
    const auto axes = attentionAxes(op);
    if (!axes)
        return;
    const AttentionReach reach = attentionReach(op.attributes);
    const Range &queries = ranges[static_cast<std::size_t>(axes->query)];
    Range &keys = ranges[static_cast<std::size_t>(axes->key)];
    if (reach.causal && queries.size() > 0)
        keys.end = std::max(keys.begin, std::min(keys.end, reach.keysOf(queries.end - 1, keys.end).end));
}

void fillRanges(const Operator &op, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer, std::span<Range> ranges)
{
    const Annotation &annotation = op.annotation;
    assert(outer.empty() || outer.size() == ranges.size());
    if (outer.empty()) {
        for (std::size_t i = 0; i < ranges.size(); ++i)
            ranges[i] = {0, annotation.dimensions[i].size};
    } else {
        std::copy(outer.begin(), outer.end(), ranges.begin());
    }
    forEachDigit(partition, part, [&](const Split &split, std::int32_t digit) {
        if (split.kind == SplitKind::Dimension) {
            const Continued more = continued(annotation, partition, split);
            Range &range = ranges[static_cast<std::size_t>(split.dimension)];
            if (more.inner >= 0) {
                Range &behind = ranges[static_cast<std::size_t>(more.inner)];
                behind = cut({.parts = more.parts}, digit % more.parts, behind);
            }
            range = cut({.parts = split.parts / more.parts, .sizes = split.sizes}, digit / more.parts, range);
        }
        if (split.over == SplitOver::Slices)
            narrowToReach(op, ranges);
    });
}

IndexMask maskFrom(
    const Annotation &annotation, const TensorTerms &terms, const Shape &shape, std::span<const Range> ranges)
{
    IndexMask mask;
    mask.ranges.resize(shape.size());
    assert(terms.opaque || terms.terms.size() == shape.size());
    for (std::size_t i = 0; i < shape.size(); ++i) {
        mask.ranges[i] = {0, shape[i]};
        if (terms.opaque)
            continue;
        if (terms.terms[i].reach != WindowReach::Own) {
            const std::int32_t factor = terms.terms[i].factors[0];
            mask.ranges[i] = reached(*findWindow(annotation, factor),
                annotation.dimensions[static_cast<std::size_t>(factor)].size,
                ranges[static_cast<std::size_t>(factor)], terms.terms[i].reach);
            continue;
        }
        std::int64_t rest = shape[i];
        std::int64_t begin = 0;
        for (const std::int32_t factor : terms.terms[i].factors) { // on behind what a part has one of
            const std::int64_t size = annotation.dimensions[static_cast<std::size_t>(factor)].size;
            rest = size == 0 ? 0 : rest / size;
            const Range &range = ranges[static_cast<std::size_t>(factor)];
            mask.ranges[i] = {begin + range.begin * rest, begin + range.end * rest};
            begin = mask.ranges[i].begin;
            if (range.size() != 1)
                break;
        }
    }
    return mask;
}

bool isLinear(const Annotation &annotation, std::size_t slot)
{
    const auto &linear = annotation.linearInputs;
    return std::find(linear.begin(), linear.end(), static_cast<std::int32_t>(slot)) != linear.end();
}

void appendDigit(ValueMask &value, std::int32_t parts, std::int32_t digit)
{
    value.index = value.index * parts + digit;
    value.count *= parts;
}

/// `inputView` of the part whose identifiers have `ranges`.
TensorView inputViewOver(const Graph &graph, const Operator &op, const Partition &partition,
    std::int32_t part, std::size_t slot, std::span<const Range> ranges)
{
    const TensorId tensor = op.inputs[slot];
    if (!tensor.valid())
        return {};
    const Annotation &annotation = op.annotation;
    TensorView view{
        tensor, maskFrom(annotation, annotation.inputs[slot], graph.at(tensor).type.shape, ranges), {}};
    if (isLinear(annotation, slot)) {
        forEachDigit(partition, part, [&](const Split &split, std::int32_t digit) {
            if (split.kind == SplitKind::Value)
                appendDigit(view.value, split.parts, digit);
        });
    }
    return view;
}

/// `outputView` of the part whose identifiers have `ranges`.
TensorView outputViewOver(const Graph &graph, const Operator &op, const Partition &partition,
    std::int32_t part, std::size_t slot, std::span<const Range> ranges)
{
    const TensorId tensor = op.outputs[slot];
    if (!tensor.valid())
        return {};
    const Annotation &annotation = op.annotation;
    const TensorTerms &terms = annotation.outputs[slot];
    TensorView view{tensor, maskFrom(annotation, terms, graph.at(tensor).type.shape, ranges), {}};
    bool summands = true; // under a Value split
    if (op.direction == Direction::Backward) {
        // Slots: gradients of the forward's outputs, then its inputs, then its outputs. The gradient of a
        // linear input does not depend on that input, so every part makes all of it.
        const std::size_t forwardOutputs = (op.inputs.size() - op.outputs.size()) / 2;
        summands = !isLinear(annotation, forwardOutputs + slot);
    }
    forEachDigit(partition, part, [&](const Split &split, std::int32_t digit) {
        if (split.over == SplitOver::Units)
            return; // what units add up is no summand of one of them (execution_plan.h, UnitShare::Partial)
        if (split.kind == SplitKind::Value && summands)
            appendDigit(view.value, split.parts, digit);
        if (split.kind != SplitKind::Dimension)
            return;
        const Continued more = continued(annotation, partition, split);
        if (annotation.dimensions[static_cast<std::size_t>(split.dimension)].mark == DimensionMark::Reduce
            && !mentions(terms, split.dimension))
            appendDigit(view.value, split.parts / more.parts, digit / more.parts);
        if (more.inner >= 0 && !mentions(terms, more.inner)) // a key head's gradient, of some of its queries
            appendDigit(view.value, more.parts, digit % more.parts);
    });
    return view;
}

Error illegal(const Operator &op, const std::string &identifier, std::string message, std::string advice)
{
    return {ErrorCode::InvalidInput, "operator '" + op.name + "': " + message, std::move(advice),
        "operator:" + op.name + (identifier.empty() ? "" : "/" + identifier)};
}

std::string sumText(const std::vector<std::int64_t> &sizes)
{
    std::string text;
    for (const std::int64_t size : sizes)
        text += (text.empty() ? "" : " + ") + std::to_string(size);
    return text;
}

/// Checks one cut of an identifier of `whole` elements whose parts so far have `extents`, and replaces these
/// by those after it.
Result<void> checkCut(
    const Operator &op, const Split &split, std::int64_t whole, std::vector<std::int64_t> &extents)
{
    const Dimension &dimension = op.annotation.dimensions[static_cast<std::size_t>(split.dimension)];
    if (split.sizes.empty()) {
        for (std::int64_t &extent : extents) {
            if (extent % split.parts != 0) {
                return illegal(op, dimension.name,
                    "cannot cut '" + dimension.name + "' of size " + std::to_string(extent) + " into "
                        + std::to_string(split.parts) + " equal parts",
                    "choose a number of parts that divides " + std::to_string(extent)
                        + ", or give the sizes of the parts");
            }
            extent /= split.parts;
        }
        return {};
    }
    if (static_cast<std::int64_t>(split.sizes.size()) != split.parts) {
        return illegal(op, dimension.name,
            "'" + dimension.name + "' is cut into " + std::to_string(split.parts) + " parts, but "
                + std::to_string(split.sizes.size()) + " sizes are given",
            "give one size per part");
    }
    std::int64_t total = 0;
    const std::int64_t least = split.over == SplitOver::Units ? 0 : 1; // of what is padded, some get nothing
    for (const std::int64_t size : split.sizes) {
        if (size < least || size > whole) {
            return illegal(op, dimension.name,
                "a part of '" + dimension.name + "' has size " + std::to_string(size) + ", expected "
                    + std::to_string(least) + " to " + std::to_string(whole),
                "");
        }
        total += size;
    }
    for (const std::int64_t extent : extents) {
        if (extent != total) {
            return illegal(op, dimension.name,
                "the parts of '" + dimension.name + "' add up to " + sumText(split.sizes) + " = "
                    + std::to_string(total) + ", but its size is " + std::to_string(extent),
                "make the sizes add up to " + std::to_string(extent));
        }
    }
    extents = split.sizes;
    std::sort(extents.begin(), extents.end());
    extents.erase(std::unique(extents.begin(), extents.end()), extents.end());
    return {};
}

/// The split over slices; null if there is none.
const Split *slicesOf(const Partition &partition)
{
    const auto lanes = static_cast<std::size_t>(
        !partition.splits.empty() && partition.splits.front().over == SplitOver::Lanes);
    return partition.splits.size() > lanes && partition.splits[lanes].over == SplitOver::Slices
        ? &partition.splits[lanes]
        : nullptr;
}

} // namespace

std::vector<std::int64_t> roundedShares(std::int64_t size, std::int32_t parts)
{
    if (parts < 2 || size < parts || size % parts == 0)
        return {};
    const std::int64_t most = (size + parts - 1) / parts;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), most);
    if (const std::int64_t last = size - most * (parts - 1); last > 0) {
        sizes.back() = last;
        return sizes;
    }
    for (auto i = static_cast<std::size_t>(size % parts); i < sizes.size(); ++i)
        sizes[i] = most - 1;
    return sizes;
}

std::int32_t partCount(const Partition &partition)
{
    std::int32_t count = 1;
    for (const Split &split : partition.splits)
        count *= split.parts;
    return count;
}

std::int32_t unitParts(const Partition &partition)
{
    const bool shards = !partition.splits.empty() && partition.splits.back().over == SplitOver::Units;
    return shards ? partition.splits.back().parts : 1;
}

std::int32_t laneCount(const Partition &partition)
{
    const bool lanes = !partition.splits.empty() && partition.splits.front().over == SplitOver::Lanes;
    return lanes ? partition.splits.front().parts : 1;
}

std::int32_t laneOf(const Partition &partition, std::int32_t part)
{
    return part / (partCount(partition) / laneCount(partition));
}

std::int32_t sliceCount(const Partition &partition)
{
    const Split *slices = slicesOf(partition);
    return slices ? slices->parts : 1;
}

std::int32_t sliceOf(const Partition &partition, std::int32_t part)
{
    const std::int32_t slices = sliceCount(partition);
    return part / (partCount(partition) / (laneCount(partition) * slices)) % slices;
}

std::size_t blockSplits(const Partition &partition)
{
    const auto over = [](const Split &split) {
        return split.over == SplitOver::Lanes || split.over == SplitOver::Slices;
    };
    return static_cast<std::size_t>(
        std::find_if_not(partition.splits.begin(), partition.splits.end(), over) - partition.splits.begin());
}

std::optional<Operator> operatorOfSlice(const Operator &op, const Partition &partition, std::int32_t part)
{
    const Split *slices = slicesOf(partition);
    const auto axes = slices && slices->parts > 1 ? attentionAxes(op) : std::nullopt;
    if (!axes || slices->dimension != axes->query)
        return std::nullopt;
    Operator local = op;
    const Range queries =
        partBox(op, {{*slices}}, sliceOf(partition, part)).ranges[static_cast<std::size_t>(axes->query)];
    local.attributes.set("offset", op.attributes.integer("offset") + queries.begin);
    return local;
}

Result<void> checkPartition(const Operator &op, const Partition &partition, const std::vector<Range> &outer)
{
    const Annotation &annotation = op.annotation;
    assert(outer.empty() || outer.size() == annotation.dimensions.size());
    if (partition.splits.empty())
        return {};
    std::vector<std::vector<std::int64_t>> extents(annotation.dimensions.size());
    std::int64_t count = 1;
    for (const Split &split : partition.splits) {
        if (split.parts < 1)
            return illegal(
                op, "", "a split into " + std::to_string(split.parts) + " parts", "use 1 part or more");
        count *= split.parts;
        if (count > kMostParts)
            return illegal(op, "", "more than " + std::to_string(kMostParts) + " parts", "use fewer parts");
        if (split.over == SplitOver::Slices
            && (&split != slicesOf(partition) || split.kind != SplitKind::Dimension || !split.sizes.empty()))
            return illegal(op, "", "its slices are not an even cut of a dimension before all others", "");
        if (split.over == SplitOver::Lanes
            && (&split != &partition.splits.front() || split.kind == SplitKind::Value
                || !split.sizes.empty()))
            return illegal(op, "", "its lanes are no even cut, and no replicas, before all others", "");
        if (split.kind != SplitKind::Dimension) {
            if (!split.sizes.empty())
                return illegal(op, "", "only a cut of a dimension takes the sizes of its parts", "");
            if (split.kind == SplitKind::Value && annotation.linearInputs.empty() && split.parts > 1) {
                return illegal(op, "", "its value cannot be split, because no input enters linearly",
                    "cut a dimension or replicate it instead");
            }
            continue;
        }
        if (split.dimension < 0
            || static_cast<std::size_t>(split.dimension) >= annotation.dimensions.size()) {
            return illegal(op, "",
                "has " + std::to_string(annotation.dimensions.size()) + " dimensions, so none of number "
                    + std::to_string(split.dimension),
                "");
        }
        const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(split.dimension)];
        const std::int64_t whole =
            outer.empty() ? dimension.size : outer[static_cast<std::size_t>(split.dimension)].size();
        if (dimension.mark == DimensionMark::Frozen && split.parts > 1) {
            return illegal(op, dimension.name,
                "'" + dimension.name + "' of size " + std::to_string(whole) + " may not be split (asked for "
                    + std::to_string(split.parts) + " parts)",
                op.annotationProblem);
        }
        if (split.parts > 1 && op.mirror && isLargestOver(annotation, split.dimension)) {
            return illegal(op, dimension.name,
                "'" + dimension.name
                    + "' may not be split in training: equal largest elements share the gradient, which "
                      "takes "
                      "all of them to count",
                "cut another dimension or replicate it instead");
        }
        if (split.parts > 1 && split.over != SplitOver::Devices && findWindow(annotation, split.dimension)) {
            return illegal(op, dimension.name,
                "'" + dimension.name
                    + "' counts windows that overlap, so its parts need one another: they cannot be slices, "
                      "lanes or units",
                "split it over devices");
        }
        auto &parts = extents[static_cast<std::size_t>(split.dimension)];
        if (parts.empty())
            parts.push_back(whole);
        if (const Continued more = continued(annotation, partition, split); more.inner >= 0) {
            auto &behind = extents[static_cast<std::size_t>(more.inner)];
            if (behind.empty())
                behind.push_back(annotation.dimensions[static_cast<std::size_t>(more.inner)].size);
            TRY_VOID(checkCut(op, {.dimension = more.inner, .parts = more.parts}, behind.front(), behind));
            parts = {1};
            continue;
        }
        TRY_VOID(checkCut(op, split, whole, parts));
        if (parts.back() < 1)
            return illegal(op, dimension.name, "'" + dimension.name + "' has no elements to cut", "");
        const Window *window = findWindow(annotation, split.dimension);
        if (window && split.parts > 1 && parts.front() < fewestWindows(*window, dimension.size))
            return illegal(op, dimension.name,
                "parts of '" + dimension.name + "' with one window would have no share of the "
                    + std::to_string(window->extent) + " elements",
                "use fewer parts");
    }
    return {};
}

PartBox partBox(
    const Operator &op, const Partition &partition, std::int32_t part, const std::vector<Range> &outer)
{
    PartBox box;
    box.ranges.resize(op.annotation.dimensions.size());
    fillRanges(op, partition, part, outer, box.ranges);
    forEachDigit(partition, part, [&](const Split &split, std::int32_t digit) {
        if (split.kind == SplitKind::Value)
            appendDigit(box.value, split.parts, digit);
        else if (split.kind == SplitKind::Replicate)
            box.replica = box.replica * split.parts + digit;
    });
    return box;
}

IndexMask maskOf(const Annotation &annotation, const TensorTerms &terms, const Shape &shape,
    const std::vector<Range> &ranges)
{
    return maskFrom(annotation, terms, shape, ranges);
}

TensorView inputView(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    std::size_t slot, const std::vector<Range> &outer)
{
    RangeBuffer buffer(op.annotation.dimensions.size());
    fillRanges(op, partition, part, outer, buffer.ranges());
    return inputViewOver(graph, op, partition, part, slot, buffer.ranges());
}

TensorView outputView(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    std::size_t slot, const std::vector<Range> &outer)
{
    RangeBuffer buffer(op.annotation.dimensions.size());
    fillRanges(op, partition, part, outer, buffer.ranges());
    return outputViewOver(graph, op, partition, part, slot, buffer.ranges());
}

PartViews partViews(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer)
{
    PartViews views;
    views.inputs.resize(op.inputs.size());
    views.outputs.resize(op.outputs.size());
    fillPartViews(graph, op, partition, part, outer, views.inputs, views.outputs);
    return views;
}

void fillPartViews(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer, std::span<TensorView> inputs, std::span<TensorView> outputs)
{
    RangeBuffer buffer(op.annotation.dimensions.size());
    fillRanges(op, partition, part, outer, buffer.ranges());
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
        inputs[slot] = inputViewOver(graph, op, partition, part, slot, buffer.ranges());
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
        outputs[slot] = outputViewOver(graph, op, partition, part, slot, buffer.ranges());
}

Partition mirrored(const Operator &backward, const Partition &forward)
{
    // A backward annotation has its forward's identifiers under the same indices, so the splits carry over.
    assert(backward.direction == Direction::Backward);
    static_cast<void>(backward);
    return forward;
}

std::string toString(const Annotation &annotation, const Partition &partition)
{
    if (partition.splits.empty())
        return "whole";
    std::string text;
    for (const Split &split : partition.splits) {
        if (!text.empty())
            text += ' ';
        if (split.kind == SplitKind::Dimension) {
            const Dimension &dimension = annotation.dimensions[static_cast<std::size_t>(split.dimension)];
            text += dimension.name;
            if (dimension.mark == DimensionMark::Reduce)
                text += '+';
        } else {
            text += split.kind == SplitKind::Value ? "value" : "replicate";
        }
        text += ':';
        if (split.sizes.empty()) {
            text += std::to_string(split.parts);
            continue;
        }
        for (std::size_t i = 0; i < split.sizes.size(); ++i)
            text += (i == 0 ? "(" : " ") + std::to_string(split.sizes[i]);
        text += ')';
    }
    return text;
}

} // namespace planloom
