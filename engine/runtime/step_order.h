#pragma once

#include "engine/runtime/device_backend.h"
#include "engine/runtime/memory_plan.h"

#include <vector>

namespace planloom {

/// By instruction of a step: instructions of other queues of the device that must be done before it starts,
/// at most one of each queue, since queues keep their order. Two instructions wait for each other where both
/// touch memory that one of them writes, be it for its value or because the place is used again; and where
/// the plan says so (`Instruction::waits`). O(instructions log blocks).
std::vector<std::vector<EventId>> stepOrder(const DeviceProgram &program, const MemoryPlan &memory);

} // namespace planloom
