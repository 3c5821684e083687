#pragma once

#include "engine/lowering/layout/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

namespace planloom {

/// A complete value in a buffer, and the block that brought it there.
struct Available {
    Holding holding{};
    std::int32_t block = -1;
};

/// What is complete of one tensor somewhere, by device: thousands of devices ask for their own only. Within a
/// device in the order of arrival. One piece of memory for all of it, since every tensor has such a list.
class AvailableList
{
    struct Entry {
        Available available{};
        std::int32_t next = -1; ///< The same device's next one.
    };

public:
    /// What one device has. Valid until something is added or erased.
    class Own
    {
    public:
        class Iterator
        {
        public:
            using iterator_category = std::forward_iterator_tag;
            using value_type = Available;
            using difference_type = std::ptrdiff_t;
            using pointer = const Available *;
            using reference = const Available &;

            Iterator() = default;
            Iterator(const Entry *entries, std::int32_t at)
                : m_entries(entries)
                , m_at(at)
            {
            }
            reference operator*() const { return m_entries[m_at].available; }
            pointer operator->() const { return &m_entries[m_at].available; }
            Iterator &operator++()
            {
                m_at = m_entries[m_at].next;
                return *this;
            }
            Iterator operator++(int)
            {
                const Iterator old = *this;
                ++*this;
                return old;
            }
            friend bool operator==(const Iterator &a, const Iterator &b) { return a.m_at == b.m_at; }

        private:
            const Entry *m_entries = nullptr;
            std::int32_t m_at = -1;
        };

        Own(const Entry *entries, std::int32_t first)
            : m_entries(entries)
            , m_first(first)
        {
        }
        Iterator begin() const { return {m_entries, m_first}; }
        Iterator end() const { return {m_entries, -1}; }

    private:
        const Entry *m_entries;
        std::int32_t m_first;
    };

    /// O(log devices), but for a device that comes after one with a higher index: O(devices).
    void add(Available entry)
    {
        const std::int32_t device = entry.holding.device.index;
        const auto place = static_cast<std::int32_t>(m_entries.size());
        if (m_entries.capacity() == 0) { // most tensors lie on a few devices
            m_entries.reserve(kFew);
            m_lists.reserve(kFew);
        }
        m_entries.push_back({std::move(entry), -1});
        const auto list = lowerBound(device);
        if (list == m_lists.end() || list->device != device) {
            m_lists.insert(list, {device, place, place});
            return;
        }
        m_entries[static_cast<std::size_t>(list->last)].next = place;
        m_lists[static_cast<std::size_t>(list - m_lists.begin())].last = place;
    }

    Own of(DeviceId device) const
    {
        const auto list = lowerBound(device.index);
        const bool has = list != m_lists.end() && list->device == device.index;
        return {m_entries.data(), has ? list->first : -1};
    }

    /// Calls `visit` with what each device has.
    template<typename Visit> void forEach(Visit visit) const
    {
        for (const List &list : m_lists)
            visit(Own{m_entries.data(), list.first});
    }

    template<typename Predicate> void eraseIf(Predicate predicate)
    {
        if (std::none_of(m_entries.begin(), m_entries.end(),
                [&](const Entry &entry) { return predicate(entry.available); }))
            return;
        std::vector<Entry> old = std::move(m_entries);
        m_entries.clear();
        m_lists.clear();
        for (Entry &entry : old)
            if (!predicate(std::as_const(entry.available)))
                add(std::move(entry.available));
    }

private:
    static constexpr std::size_t kFew = 8;

    struct List {
        std::int32_t device = 0;
        std::int32_t first = -1;
        std::int32_t last = -1;
    };

    std::vector<List>::const_iterator lowerBound(std::int32_t device) const
    {
        return std::lower_bound(m_lists.begin(), m_lists.end(), device,
            [](const List &list, std::int32_t index) { return list.device < index; });
    }

    std::vector<Entry> m_entries{}; ///< In the order of arrival.
    std::vector<List> m_lists{}; ///< By device, ascending.
};

} // namespace planloom
