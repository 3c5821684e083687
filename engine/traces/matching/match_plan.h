#pragma once

#include "engine/analyse/span_errors.h"
#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/run.h"
#include "engine/simulate/timeline.h"
#include "engine/traces/trace_analysis.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What of one kind of instruction plan and trace have.
struct MatchCount {
    InstructionKind kind{};
    std::int64_t matched = 0; ///< Instructions of the plan that have their event,
    std::int64_t onlyPlan = 0; ///< and that have none.
    std::int64_t onlyTrace = 0; ///< Events that are none of the plan's.
    friend bool operator==(const MatchCount &, const MatchCount &) = default;
};

/// What one side has and the other has not.
struct UnmatchedSpan {
    std::int32_t device = 0;
    bool isPlanned = false; ///< The plan has it; else the trace.
    std::string what{}; ///< As `spanWords`; of the trace, what its event says.
    std::int64_t start = 0; ///< Of the trace: nanoseconds from the start of the step.
    friend bool operator==(const UnmatchedSpan &, const UnmatchedSpan &) = default;
};
constexpr std::size_t kMostUnmatched = 10'000; ///< That are listed; `MatchCount` counts them all.

/// One step of a trace as the plan's own instructions.
struct MatchedTrace {
    std::vector<std::vector<LiveSpan>> spans{}; ///< By device, which is the rank; in order of time.
    Timeline measured{}; ///< The same. Of devices whose rank has no trace it has no spans.
    std::vector<UnmatchedSpan> unmatched{}; ///< By device; of a run's log, which says what ran, all kinds.
    std::int64_t begin = 0; ///< Where the step begins on the trace's common clock, nanoseconds.
    std::vector<MatchCount> counts{}; ///< By kind, in the order of `InstructionKind`.
    bool isExact = false; ///< The trace names the instructions itself (a run's log).
    std::optional<std::uint32_t> step{}; ///< Number of the step that was taken; nothing: the whole trace.
    std::int32_t ranks = 0; ///< Devices that have a trace.
    /// Nanoseconds of compute on all devices: of events that are one kernel each, and of the others, whose
    /// time is shared out among the kernels between them as predicted.
    std::int64_t matchedCompute = 0;
    std::int64_t sharedCompute = 0;
};

/// Matches one step of each rank with the program of its device. Collectives by the members of their group,
/// in order, by kind and bytes; messages by sender and receiver, in order; products and attentions by order
/// and time, as kernels' names say what they are; what is computed between two of them is shared out among
/// the plan's operators there by their predicted times. Of several steps that with the median length is
/// taken.
/// @param plan       written out for all ranks (`expandUnits`)
/// @param predicted  of `plan`, with spans
/// @return InvalidInput if no rank of the trace is a device of the plan; Cancelled
/// O(instructions + events; pairs of products of one rank, at most 4 million)
Result<MatchedTrace> matchPlan(const Trace &trace, const TraceAnalysis &analysis, const ExecutionPlan &plan,
    const Timeline &predicted, const std::stop_token &stop = {});

} // namespace planloom
