#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <optional>
#include <string>

namespace planloom {

/// Which instruction of a run a device's counter stands for.
struct InstructionPlace {
    std::int32_t step = 0;
    std::int32_t segment = 0;
    std::int32_t instruction = 0; ///< Index into the segment's instructions.
    std::int32_t microBatch = 0;
    friend bool operator==(const InstructionPlace &, const InstructionPlace &) = default;
};

/// The instruction that `DeviceProgress::issued` = `count` says was issued last; nothing for 0 (still
/// loading) or a device without instructions. O(schedule).
std::optional<InstructionPlace> placeOf(const ExecutionPlan &plan, std::int32_t device, std::int64_t count);

/// "all-reduce of h.0.attn, micro-batch 2, step 0".
std::string describe(const ExecutionPlan &plan, std::int32_t device, const InstructionPlace &place);

} // namespace planloom
