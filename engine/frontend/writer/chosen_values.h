#pragma once

#include "engine/frontend/passes/mixture/chosen_rows.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// What is known of the values of a graph in the making in which data choose how many rows there are
/// (chosen_rows.h), and of numbers that were worked out from how many there are.
class ChosenValues
{
public:
    bool isEmpty() const { return m_rows.empty(); }
    /// What is known of a value's rows that data choose; null if it has none.
    const ChosenRows *rows(TensorId id) const
    {
        const auto found = m_rows.find(id.index);
        return found == m_rows.end() ? nullptr : &found->second;
    }
    void setRows(TensorId id, ChosenRows rows) { m_rows.insert_or_assign(id.index, std::move(rows)); }

    /// Masks and the places that were found in them, in order.
    const std::vector<std::pair<TensorId, TensorId>> &places() const { return m_places; }
    void setPlacesOf(TensorId mask, TensorId places) { m_places.emplace_back(mask, places); }

    /// Says that `counts` has how many elements of `of` are 0, 1, ..; and what was said so, or an invalid id.
    void setCounted(TensorId counts, TensorId of) { m_counted[counts.index] = of; }
    TensorId countedBy(TensorId counts) const
    {
        const auto found = m_counted.find(counts.index);
        return found == m_counted.end() ? TensorId{} : found->second;
    }

    /// Says of a known value that it has, or was computed from, a size that data choose; null of all others.
    void setSize(TensorId value, std::int64_t size) { m_sizes[value.index] = size; }
    const std::int64_t *sizeIn(TensorId value) const
    {
        const auto found = m_sizes.find(value.index);
        return found == m_sizes.end() ? nullptr : &found->second;
    }

private:
    std::unordered_map<std::int32_t, ChosenRows> m_rows{}; ///< By tensor.
    std::vector<std::pair<TensorId, TensorId>> m_places{};
    std::unordered_map<std::int32_t, TensorId> m_counted{}; ///< By tensor of counts.
    std::unordered_map<std::int32_t, std::int64_t> m_sizes{}; ///< By known tensor.
};

} // namespace planloom
