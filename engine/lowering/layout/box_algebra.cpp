#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>
#include <iterator>

namespace planloom {

namespace {

IndexMask boundsOf(const IndexMask &a, const IndexMask &b)
{
    IndexMask box = a;
    for (std::size_t d = 0; d < box.ranges.size(); ++d) {
        box.ranges[d].begin = std::min(box.ranges[d].begin, b.ranges[d].begin);
        box.ranges[d].end = std::max(box.ranges[d].end, b.ranges[d].end);
    }
    return box;
}

} // namespace

bool disjointSets(const SummandSet &a, const SummandSet &b)
{
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        if (a[i] == b[j])
            return false;
        a[i] < b[j] ? ++i : ++j;
    }
    return true;
}

SummandSet unionOf(const SummandSet &a, const SummandSet &b)
{
    SummandSet both;
    both.reserve(a.size() + b.size());
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
}

SummandSet summandsOf(const std::vector<Holding> &holdings)
{
    std::vector<std::int32_t> all;
    for (const Holding &h : holdings)
        all.insert(all.end(), h.summands.begin(), h.summands.end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

std::int64_t volumeOf(const IndexMask &box)
{
    std::int64_t volume = 1;
    for (const Range &range : box.ranges)
        volume *= range.size();
    return volume;
}

IndexMask boundingBox(const std::vector<Holding> &holdings)
{
    IndexMask bound = holdings.front().box;
    for (const Holding &holding : holdings)
        bound = boundsOf(bound, holding.box);
    return bound;
}

std::optional<IndexMask> tiledBox(const std::vector<IndexMask> &boxes)
{
    IndexMask bounds = boxes.front();
    std::int64_t volume = 0;
    for (const IndexMask &box : boxes) {
        bounds = boundsOf(bounds, box);
        volume += volumeOf(box);
    }
    if (volume != volumeOf(bounds))
        return std::nullopt;
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (std::size_t j = i + 1; j < boxes.size(); ++j)
            if (intersection(boxes[i], boxes[j]))
                return std::nullopt;
    return bounds;
}

void subtract(const IndexMask &box, const IndexMask &hole, std::vector<IndexMask> &rest)
{
    IndexMask core = box;
    for (std::size_t d = 0; d < box.ranges.size(); ++d) {
        if (core.ranges[d].begin < hole.ranges[d].begin) {
            IndexMask part = core;
            part.ranges[d].end = hole.ranges[d].begin;
            rest.push_back(std::move(part));
            core.ranges[d].begin = hole.ranges[d].begin;
        }
        if (hole.ranges[d].end < core.ranges[d].end) {
            IndexMask part = core;
            part.ranges[d].begin = hole.ranges[d].end;
            rest.push_back(std::move(part));
            core.ranges[d].end = hole.ranges[d].end;
        }
    }
}

bool byDevice(const Holding &a, const Holding &b)
{
    return a.device < b.device;
}

} // namespace planloom
