#pragma once

#include "engine/base/work_pool.h"
#include "engine/runtime/devices/cpu_board.h"
#include "engine/runtime/devices/device_backend.h"
#include "engine/runtime/devices/memory_pool.h"

#include <memory>

namespace planloom {

/// A device that is a share of this process's threads: tasks run on `pool` as soon as they are first in their
/// queue and what they wait for is done.
/// @param communicator  this device's end; both must outlive the backend
/// @param memory  where the device's memory comes from; by default the operating system
/// @param board  of all devices that use each other's memory, outlives them; without it tasks do not wait for
/// those of other devices
std::unique_ptr<DeviceBackend> cpuBackend(WorkPool &pool, std::unique_ptr<Communicator> communicator,
    MemoryPool::Source memory = {}, CpuBoard *board = nullptr);

} // namespace planloom
