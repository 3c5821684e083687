#pragma once

#include "engine/runtime/devices/memory_plan.h"
#include "engine/runtime/devices/step_order.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// The step of devices that share their process, with all that several of them compute alike computed once.
struct SharedStep {
    /// By device. Operands may lie in blocks of other devices (`PlannedBlock::owner`), those of an
    /// instruction that another device runs in its place have `OperandUse::Shared`.
    std::vector<MemoryPlan> memory{};
    std::vector<StepWaits> waits{}; ///< By device.
    /// By device and instruction of its setup: those that fill buffers which it shares.
    std::vector<std::vector<std::vector<DeviceEvent>>> setupWaits{};
};

/// Finds what devices of one process need not compute, because another one does.
///
/// Every value gets a number: that of what makes it and of the values that this reads (value numbering:
/// Alpern, Wegman and Zadeck, Detecting Equality of Variables in Programs, POPL '88). Since a kernel makes
/// the same bits of the same bits, values of one number are equal, and one device's memory can stand for
/// them all. Nothing is taken from what the plan should compute: where a plan computes the wrong thing, so
/// do its devices here.
///
/// Weights and states are one value on several devices if they begin as one and are one at the end of every
/// step. What a device computes a second time, it computes a second time. A device that would write, in
/// place, over what others still read, keeps it to itself; so does one that adds to it.
///
/// @param memory  of all devices of `plan`, which has one scale unit and steps that are laid out alike
/// @return nothing where nothing is shared
/// O(instructions) a round; each round but the last finds memory that cannot be shared
std::optional<SharedStep> shareValues(
    const ExecutionPlan &plan, const std::vector<MemoryPlan> &memory, std::int64_t alignment);

} // namespace planloom
