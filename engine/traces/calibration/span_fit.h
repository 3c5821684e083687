#pragma once

#include "engine/base/result.h"
#include "engine/hardware/kernel_fit.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// A cluster whose figures are those that a run of a plan showed.
struct SpanFit {
    Cluster cluster{};
    std::vector<FitError> before{}; ///< How far the cluster that the fit began with was from the spans,
    std::vector<FitError> errors{}; ///< and how far this one is; the same kinds in the same order.
    double predictedBefore = 0; ///< Seconds of a step, of the one
    double predicted = 0; ///< and of the other.
    double measured = 0;
};

/// `base` with the rates that the spans of a run show: the same figures as `fittedCluster` finds, and those
/// of kernels that move memory (achieved share of its bandwidth, time of a launch), by what a simulation
/// asks. What spans can't give (peaks, memory, multiprocessors ...) and what nothing ran of stays as it is.
/// Each figure's source says of what spans it is, and how far off.
/// @param base  of devices of one kind, for all of the plan's
/// @param plan  written out for all devices
/// @param measured  of `plan`
/// @param source  of the spans, for people: a file, a run
/// @param runsAlone  every operator was launched by itself, as exported PyTorch code does
/// @return NotSupported for a mixed cluster; InvalidInput where products are faster than the peak of `base`,
/// or nothing was measured; Cancelled
/// O(distinct kernels), about 10 ms for each
Result<SpanFit> fittedToSpans(Cluster base, const ExecutionPlan &plan, const Timeline &measured,
    const std::string &source, bool runsAlone, const std::stop_token &stop = {});

} // namespace planloom
