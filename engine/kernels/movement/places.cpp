#include "engine/graph/operators/places.h"

#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/kernel_table.h"

#include <algorithm>
#include <vector>

namespace planloom {

namespace {

/// The places of one NonZero: of every kept index and group, columns of their own.
class PlaceFinder
{
public:
    PlaceFinder(const KernelCall &call, const Buffer &x, const Buffer &y)
        : m_x(x)
        , m_y(y)
        , m_kept(static_cast<std::size_t>(call.op->attributes.integer("kept")))
        , m_axis(static_cast<std::size_t>(call.op->attributes.integer("group_axis")))
    {
        const std::int64_t groups = call.op->attributes.integer("groups", 1);
        m_inGroup = wholeExtent(x, m_axis) / groups;
        m_room = wholeExtent(y, y.shape.size() - 1) / groups;
        for (std::size_t d = 0; d < m_kept; ++d)
            m_sets *= x.shape[d];
        m_rank = y.shape[m_kept];
        m_columns = y.shape.back();
    }

    /// @return how many had no room
    template<typename T> std::int64_t run()
    {
        std::fill_n(elements<std::int64_t>(m_y), elementCount(m_y), kNoPlace);
        std::int64_t dropped = 0;
        const std::int64_t perSet = m_sets == 0 ? 0 : elementCount(m_x) / m_sets;
        for (std::int64_t set = 0; set < m_sets; ++set) {
            std::vector<std::int64_t> found(
                static_cast<std::size_t>(m_columns / std::max<std::int64_t>(m_room, 1)), 0);
            for (std::int64_t i = 0; i < perSet; ++i) {
                if (elements<const T>(m_x)[set * perSet + i] == T(0))
                    continue;
                const auto group = static_cast<std::size_t>(locate(i) / m_inGroup);
                if (group >= found.size() || found[group] == m_room)
                    ++dropped;
                else
                    write(set, static_cast<std::int64_t>(group) * m_room + found[group]++);
            }
        }
        return dropped;
    }

private:
    /// Works out the indices of element `i` of a set. @return that along the axis of groups, in this part
    std::int64_t locate(std::int64_t i)
    {
        m_index.resize(m_x.shape.size());
        for (std::size_t d = m_x.shape.size(); d-- > m_kept;) {
            m_index[d] = i % m_x.shape[d];
            i /= m_x.shape[d];
        }
        return m_index[m_axis];
    }
    void write(std::int64_t set, std::int64_t column)
    {
        for (std::int64_t r = 0; r < m_rank; ++r) {
            const std::size_t d = m_kept + static_cast<std::size_t>(r);
            elements<std::int64_t>(m_y)[(set * m_rank + r) * m_columns + column] =
                m_index[d] + firstOf(m_x, d);
        }
    }

    const Buffer &m_x;
    const Buffer &m_y;
    std::size_t m_kept;
    std::size_t m_axis;
    std::int64_t m_inGroup = 1; ///< Elements of the axis in one group,
    std::int64_t m_room = 1; ///< and columns for what is found there.
    std::int64_t m_sets = 1;
    std::int64_t m_rank = 0;
    std::int64_t m_columns = 0;
    std::vector<std::int64_t> m_index{}; ///< Of the element at hand, by dimension of x.
};

Result<void> nonZero(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    return withNumber(call, x.dataType, [&]<typename T>(T) {
        const std::int64_t dropped = PlaceFinder(call, x, y).run<T>();
        if (call.dropped != nullptr)
            *call.dropped += dropped;
    });
}

} // namespace

void addPlacesKernels(KernelTable &table)
{
    table.add(OperatorKind::NonZero, Direction::Forward, mapped<nonZero>);
}

} // namespace planloom
