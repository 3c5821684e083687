#pragma once

#include "engine/runtime/devices/device_backend.h"

#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace planloom {

/// Which tasks are done, of CPU devices that use each other's memory. Thread-safe.
class CpuBoard
{
public:
    /// Forgets all: no task of the devices is there.
    void begin();

    /// Whether `event` is done; if it is not, `wake` is called once it is, on another thread.
    bool isDone(const DeviceEvent &event, std::function<void()> wake);

    void done(const DeviceEvent &event);

private:
    std::mutex m_mutex{};
    std::vector<std::vector<bool>> m_done{}; ///< By device and event.
    std::map<DeviceEvent, std::vector<std::function<void()>>> m_waiting{};
};

} // namespace planloom
