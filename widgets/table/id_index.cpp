#include "widgets/table/id_index.h"

#include <algorithm>
#include <cstddef>

namespace planloom {

namespace {

/// Places in the array that may stay empty for each that is taken.
constexpr std::size_t kSpread = 16;
constexpr std::size_t kLeastSpread = 1024;

} // namespace

IdIndex::IdIndex(const std::vector<std::uint64_t> &ids)
{
    if (ids.empty())
        return;
    // A few ids may lie far off the others (headings, the new row): the array begins at the smallest but
    // zero.
    m_base = ~std::uint64_t{0};
    for (const std::uint64_t id : ids)
        m_base = id == 0 ? m_base : std::min(m_base, id);
    const std::uint64_t reach = ids.size() * kSpread + kLeastSpread;
    std::uint64_t most = 0;
    for (const std::uint64_t id : ids)
        most = id >= m_base && id - m_base < reach ? std::max(most, id - m_base + 1) : most;
    m_places.assign(static_cast<std::size_t>(most), -1);
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < m_base || ids[i] - m_base >= m_places.size())
            m_others.emplace(ids[i], static_cast<int>(i));
        else if (int &place = m_places[static_cast<std::size_t>(ids[i] - m_base)]; place < 0)
            place = static_cast<int>(i);
    }
}

int IdIndex::find(std::uint64_t id) const
{
    if (id >= m_base && id - m_base < m_places.size())
        return m_places[static_cast<std::size_t>(id - m_base)];
    const auto found = m_others.find(id);
    return found == m_others.end() ? -1 : found->second;
}

} // namespace planloom
