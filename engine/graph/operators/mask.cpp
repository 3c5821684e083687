#include "engine/graph/operators/mask.h"

#include <algorithm>
#include <cassert>

namespace planloom {

IndexMask wholeMask(const Shape &shape)
{
    IndexMask mask;
    mask.ranges.reserve(shape.size());
    for (const std::int64_t extent : shape)
        mask.ranges.push_back({0, extent});
    return mask;
}

Shape shapeOf(const IndexMask &mask)
{
    Shape shape;
    shape.reserve(mask.ranges.size());
    for (const Range &range : mask.ranges)
        shape.push_back(range.size());
    return shape;
}

std::optional<IndexMask> intersection(const IndexMask &a, const IndexMask &b)
{
    assert(a.ranges.size() == b.ranges.size());
    const std::size_t rank = a.ranges.size();
    // Most pairs of boxes are disjoint, so look before allocating.
    for (std::size_t i = 0; i < rank; ++i) {
        if (std::max(a.ranges[i].begin, b.ranges[i].begin) >= std::min(a.ranges[i].end, b.ranges[i].end))
            return std::nullopt;
    }
    IndexMask common;
    common.ranges.resize(rank);
    for (std::size_t i = 0; i < rank; ++i) {
        common.ranges[i].begin = std::max(a.ranges[i].begin, b.ranges[i].begin);
        common.ranges[i].end = std::min(a.ranges[i].end, b.ranges[i].end);
    }
    return common;
}

bool contains(const IndexMask &outer, const IndexMask &inner)
{
    assert(outer.ranges.size() == inner.ranges.size());
    for (std::size_t i = 0; i < outer.ranges.size(); ++i) {
        if (inner.ranges[i].begin < outer.ranges[i].begin || inner.ranges[i].end > outer.ranges[i].end)
            return false;
    }
    return true;
}

std::string toString(const IndexMask &mask)
{
    std::string text = "[";
    for (const Range &range : mask.ranges) {
        if (text.size() > 1)
            text += ' ';
        text += std::to_string(range.begin) + ':' + std::to_string(range.end);
    }
    return text + "]";
}

std::string toString(const TensorView &view)
{
    std::string text = toString(view.index);
    if (!view.value.complete())
        text += ' ' + std::to_string(view.value.index) + '/' + std::to_string(view.value.count);
    return text;
}

} // namespace planloom
