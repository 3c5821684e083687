#include "engine/plan/followed_split.h"

#include "engine/graph/annotation/inner_identifier.h"

#include <algorithm>

namespace planloom {

namespace {

bool contains(const Term &term, std::int32_t dimension)
{
    return std::find(term.factors.begin(), term.factors.end(), dimension) != term.factors.end();
}

/// Where the parts of `split`, of an identifier of `led` elements, end along the dimension of `extent` that
/// it cuts.
std::vector<std::int64_t> endsOf(const Split &split, std::int64_t led, std::int64_t extent)
{
    std::vector<std::int64_t> ends;
    std::int64_t end = 0;
    for (std::int32_t part = 0; part < split.parts; ++part) {
        end = split.sizes.empty() ? led * (part + 1) / split.parts
                                  : end + split.sizes[static_cast<std::size_t>(part)];
        ends.push_back(end * extent / led);
    }
    return ends;
}

/// The cut of an identifier that counts windows over a dimension whose parts end at `ends`: a window is of
/// the part that its middle is in. Nothing where a part would have too few.
std::optional<Split> alongWindows(Split split, const Window &window, std::int64_t count, WindowReach reach,
    const std::vector<std::int64_t> &ends)
{
    split.sizes.clear();
    std::int64_t begin = 0;
    for (std::size_t part = 0; part < ends.size(); ++part) {
        const std::int64_t end = ends[part];
        const std::int64_t middle = end + window.pad - (window.kernel - 1) * window.dilation / 2;
        const std::int64_t before = reach == WindowReach::Met ? end
            : middle <= 0                                     ? 0
                                                              : (middle + window.stride - 1) / window.stride;
        const std::int64_t last = part + 1 == ends.size() ? count : std::min(before, count);
        if (last - begin < fewestWindows(window, count))
            return std::nullopt;
        split.sizes.push_back(last - begin);
        begin = last;
    }
    if (std::all_of(split.sizes.begin(), split.sizes.end(),
            [&](std::int64_t size) { return size == split.sizes.front(); }))
        split.sizes.clear();
    return split;
}

} // namespace

std::int64_t partsAlong(const std::vector<Split> &splits, std::int32_t dimension)
{
    std::int64_t parts = 1;
    for (const Split &split : splits) {
        if (split.kind != SplitKind::Dimension || split.dimension != dimension)
            continue;
        parts = split.sizes.empty() ? parts * split.parts : 0;
    }
    return parts;
}

std::optional<Split> followed(const Graph &graph, const Leader &leader, const Operator &op,
    const Split &split, const std::vector<Split> &taken)
{
    Split mine = split;
    if (split.kind == SplitKind::Replicate)
        return mine;
    if (split.kind == SplitKind::Value)
        return std::nullopt;
    const Operator &producer = graph.at(leader.op);
    const TensorTerms &out = producer.annotation.outputs[leader.output];
    const TensorTerms &in = op.annotation.inputs[leader.input];
    if (out.opaque)
        return std::nullopt;
    std::size_t t = 0;
    while (t < out.terms.size() && splittableFactor(producer.annotation, out.terms[t]) != split.dimension)
        ++t;
    if (t == out.terms.size()) {
        const bool mentioned = std::any_of(out.terms.begin(), out.terms.end(),
            [&](const Term &term) { return contains(term, split.dimension); });
        const auto mark = producer.annotation.dimensions[static_cast<std::size_t>(split.dimension)].mark;
        if (mentioned || mark != DimensionMark::Spatial)
            return std::nullopt; // summands
        return Split{.kind = SplitKind::Replicate, .parts = split.parts, .axis = split.axis};
    }
    if (in.opaque || t >= in.terms.size())
        return std::nullopt;
    const auto factor = splittableFactor(op.annotation, in.terms[t]);
    if (!factor || (op.mirror && isLargestOver(op.annotation, *factor)))
        return std::nullopt;
    const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(*factor)].size;
    const std::int64_t before = partsAlong(taken, *factor);
    mine.dimension = *factor;
    if (before == 0 || (!split.sizes.empty() && before != 1))
        return std::nullopt;
    if (split.sizes.empty() && dividesInto(op.annotation, *factor, before * split.parts))
        return mine;
    const std::int64_t extent = graph.at(op.inputs[leader.input]).type.shape[t];
    const std::int64_t led = producer.annotation.dimensions[static_cast<std::size_t>(split.dimension)].size;
    if (const Window *window = findWindow(op.annotation, *factor); window && before == 1)
        return alongWindows(mine, *window, size, in.terms[t].reach, endsOf(split, led, extent));
    if (split.sizes.empty() || extent % led != 0 || extent % size != 0)
        return std::nullopt;
    const std::int64_t theirs = extent / led;
    const std::int64_t ours = extent / size;
    for (std::int64_t &part : mine.sizes) {
        if (part * theirs % ours != 0)
            return std::nullopt;
        part = part * theirs / ours;
    }
    return mine;
}

} // namespace planloom
