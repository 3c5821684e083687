#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/compiled_program.h"

#include <memory>
#include <vector>

namespace planloom {

/// What a simulation found out of a plan's programs that is the same in whatever order they run: readings,
/// durations, sizes. Plans that differ in the order alone share their programs, and a hand that drags a block
/// asks for many of those. Immutable once made; holds on to the programs that it is about.
struct KnownPrograms {
    struct Device {
        SharedVector<BufferInfo> buffers{};
        SharedVector<Segment> segments{};
        std::shared_ptr<const CompiledProgram>
            compiled{}; ///< Without its schedule; null if it was not needed.
    };
    GraphSnapshot graph{};
    std::vector<std::vector<DeviceId>> groups{};
    ScaleUnits units{};
    std::int32_t microBatches = 1;
    std::int32_t updates = 1;
    ProgramReadings readings{};
    std::vector<Device> devices{};
    std::vector<CommunicationLoad> loads{}; ///< By the numbers in the compiled programs.
};

/// Whether the plan's programs are the very ones that are known. O(devices + members of groups)
bool isOf(const KnownPrograms &known, const ExecutionPlan &plan);

/// About the plan, with nothing known of it yet.
KnownPrograms nothingKnown(const ExecutionPlan &plan);

} // namespace planloom
