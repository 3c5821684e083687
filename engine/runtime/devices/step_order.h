#pragma once

#include "engine/runtime/devices/device_backend.h"
#include "engine/runtime/devices/joint_order.h"
#include "engine/runtime/devices/memory_plan.h"

#include <span>
#include <vector>

namespace planloom {

/// What the instructions of a device's step have to wait for.
struct StepWaits {
    std::vector<std::vector<EventId>> own{}; ///< By instruction: as `DeviceTask::waits`.
    std::vector<std::vector<DeviceEvent>> elsewhere{}; ///< As `DeviceTask::waitsElsewhere`.
};

/// By instruction of a step: instructions of other queues of the device that must be done before it starts,
/// at most one of each queue, since queues keep their order. Two instructions wait for each other where both
/// touch memory that one of them writes, be it for its value or because the place is used again; and where
/// the plan says so (`Instruction::waits`). O(instructions log blocks).
std::vector<std::vector<EventId>> stepOrder(const DeviceProgram &program, const MemoryPlan &memory);

/// By instruction of a step: blocks (`MemoryPlan::blocks`) that nothing uses behind it, and that instructions
/// of its queue alone have used. Of those that live across steps, none. O(operands)
std::vector<std::vector<std::int32_t>> endingBlocks(const DeviceProgram &program, const MemoryPlan &memory);

/// `stepOrder` for devices that use each other's memory, by device. Whatever waits for another instruction
/// stands behind it in `order`, so that nothing waits in a circle.
std::vector<StepWaits> jointWaits(
    const ExecutionPlan &plan, std::span<const MemoryPlan> memory, const JointOrder &order);

} // namespace planloom
