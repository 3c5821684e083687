#include "engine/plan/part_counts.h"

#include "engine/plan/followed_split.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

class PartsSearch
{
public:
    PartsSearch(const Operator &op, const std::vector<PartsMeaning> &bounds, const std::vector<Split> &taken,
        const std::vector<FreeAxis> &free, const std::function<bool(const std::vector<Split> &)> &holds)
        : m_bounds(bounds)
        , m_free(free)
        , m_holds(holds)
        , m_splits(taken)
        , m_taken(taken.size())
    {
        const auto splittable = splittableDimensions(op.annotation);
        const bool anywhere = std::any_of(
            bounds.begin(), bounds.end(), [](const PartsMeaning &each) { return each.dimension < 0; });
        for (const std::int32_t dimension : splittable)
            if (anywhere || std::any_of(bounds.begin(), bounds.end(), [&](const PartsMeaning &each) {
                    return each.dimension == dimension;
                }))
                m_dimensions.push_back(dimension);
    }

    std::optional<std::vector<Split>> find()
    {
        choose(0, 0);
        return std::move(m_best);
    }

private:
    void choose(std::size_t axis, int changed)
    {
        if (changed >= m_fewest)
            return;
        if (axis == m_free.size()) {
            if (!keepTo(m_bounds, m_splits) || !m_holds(m_splits))
                return;
            m_fewest = changed;
            m_best.emplace(m_splits.begin() + static_cast<std::ptrdiff_t>(m_taken), m_splits.end());
            return;
        }
        const Split &byDefault = m_free[axis].byDefault;
        attempt(axis, byDefault, changed);
        if (byDefault.kind != SplitKind::Replicate)
            attempt(axis, {.kind = SplitKind::Replicate, .parts = byDefault.parts, .axis = byDefault.axis},
                changed + 1);
        for (const std::int32_t dimension : m_dimensions)
            if (byDefault.kind != SplitKind::Dimension || byDefault.dimension != dimension)
                attempt(axis,
                    {.kind = SplitKind::Dimension,
                        .dimension = dimension,
                        .parts = byDefault.parts,
                        .axis = byDefault.axis},
                    changed + 1);
    }

    void attempt(std::size_t axis, const Split &split, int changed)
    {
        const Allowed<Split> *allowed = m_free[axis].allowed;
        if (allowed && !allowed->contains(split))
            return;
        m_splits.push_back(split);
        choose(axis + 1, changed);
        m_splits.pop_back();
    }

    const std::vector<PartsMeaning> &m_bounds;
    const std::vector<FreeAxis> &m_free;
    const std::function<bool(const std::vector<Split> &)> &m_holds;
    std::vector<Split> m_splits;
    std::size_t m_taken;
    std::vector<std::int32_t> m_dimensions{};
    int m_fewest = std::numeric_limits<int>::max();
    std::optional<std::vector<Split>> m_best{};
};

} // namespace

std::optional<std::vector<Split>> splitsKeepingTo(const Operator &op, const std::vector<PartsMeaning> &bounds,
    const std::vector<Split> &taken, const std::vector<FreeAxis> &free,
    const std::function<bool(const std::vector<Split> &)> &holds)
{
    return PartsSearch(op, bounds, taken, free, holds).find();
}

std::vector<FreeAxis> axesOfList(std::int64_t devices)
{
    std::vector<FreeAxis> axes;
    for (std::int64_t factor = 2; devices > 1; ++factor) {
        if (factor * factor > devices)
            factor = devices;
        for (; devices % factor == 0; devices /= factor)
            axes.push_back(
                {.byDefault = {.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(factor)}});
    }
    return axes;
}

bool leavesBatchWhole(
    const Operator &op, std::int32_t batch, std::int64_t cuts, const std::vector<Split> &splits)
{
    if (cuts <= 1 || batch < 0)
        return true;
    const std::int64_t parts = partsAlong(splits, batch);
    const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(batch)].size;
    return parts == 1 || (parts > 0 && size % (cuts * parts) == 0);
}

} // namespace planloom
