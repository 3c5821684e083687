#pragma once

#include "engine/hardware/kernel_timings.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <string>
#include <vector>

namespace planloom {

/// What a device did alone in a run, with the time that it took: the median of all that are alike.
struct RunKernel {
    const DeviceProgram *program = nullptr; ///< Of the plan.
    const Instruction *instruction = nullptr;
    Bytes spared{}; ///< As `localDuration` takes them.
    OperatorCategory category = OperatorCategory::Other;
    Direction direction{};
    DataType format = DataType::Float32; ///< That it computes in.
    double flops = 0;
    double seconds = 0;
    std::size_t times = 1; ///< How often it ran.
};

/// The times of a run, each kind of thing once.
struct RunTimes {
    std::vector<RunKernel> kernels{}; ///< Each ran for longer than nothing.
    std::vector<CollectiveTiming> collectives{}; ///< From the last arrival to the end.
};

/// Takes the spans of a run apart. Left out is what no single time belongs to: communication that runs beside
/// a product, or in one launch with other communication, and what not all of its members have a span of.
/// @param plan      written out for all devices; kernels point into it
/// @param measured  of `plan`
/// @param cluster   says how devices lie on nodes
/// O(spans log spans)
RunTimes runTimesOf(const ExecutionPlan &plan, const Timeline &measured, const Cluster &cluster);

} // namespace planloom
