#pragma once

#include "engine/lowering/layout.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// A complete value in a buffer, and the block that brought it there.
struct Available {
    Holding holding{};
    std::int32_t block = -1;
};

/// What is complete of one tensor somewhere, by device: thousands of devices ask for their own only. Within a
/// device in the order of arrival.
class AvailableList
{
public:
    void add(Available entry)
    {
        auto &own = m_byDevice[entry.holding.device.index];
        own.push_back(std::move(entry));
    }

    /// What `device` has; valid until something is added.
    const std::vector<Available> &of(DeviceId device) const
    {
        static const std::vector<Available> kNone;
        const auto it = m_byDevice.find(device.index);
        return it == m_byDevice.end() ? kNone : it->second;
    }

    /// Calls `visit` with what each device has.
    template<typename Visit> void forEach(Visit visit) const
    {
        for (const auto &[device, own] : m_byDevice)
            visit(own);
    }

    template<typename Predicate> void eraseIf(Predicate predicate)
    {
        for (auto &[device, own] : m_byDevice)
            std::erase_if(own, predicate);
    }

private:
    std::unordered_map<std::int32_t, std::vector<Available>> m_byDevice{}; ///< By index of the device.
};

} // namespace planloom
