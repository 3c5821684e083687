#include "engine/runtime/devices/cpu_board.h"

#include <cassert>
#include <utility>

namespace planloom {

void CpuBoard::begin()
{
    const std::lock_guard lock{m_mutex};
    assert(m_waiting.empty());
    m_done.clear();
}

bool CpuBoard::isDone(const DeviceEvent &event, std::function<void()> wake)
{
    const auto device = static_cast<std::size_t>(event.device);
    const auto at = static_cast<std::size_t>(event.event);
    const std::lock_guard lock{m_mutex};
    if (device < m_done.size() && at < m_done[device].size() && m_done[device][at])
        return true;
    m_waiting[event].push_back(std::move(wake));
    return false;
}

void CpuBoard::done(const DeviceEvent &event)
{
    std::vector<std::function<void()>> wakes;
    {
        const auto device = static_cast<std::size_t>(event.device);
        const auto at = static_cast<std::size_t>(event.event);
        const std::lock_guard lock{m_mutex};
        if (device >= m_done.size())
            m_done.resize(device + 1);
        if (at >= m_done[device].size())
            m_done[device].resize(at + 1, false);
        m_done[device][at] = true;
        if (const auto found = m_waiting.find(event); found != m_waiting.end()) {
            wakes = std::move(found->second);
            m_waiting.erase(found);
        }
    }
    for (const std::function<void()> &wake : wakes)
        wake();
}

} // namespace planloom
