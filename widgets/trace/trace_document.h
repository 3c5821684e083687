#pragma once

#include "engine/base/result.h"
#include "engine/design/make_plan.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/traces/matching/match_plan.h"
#include "engine/traces/reading/open_trace.h"
#include "engine/traces/trace_analysis.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// A trace as the panel shows it. Immutable.
struct TraceDocument {
    Trace trace{};
    TraceAnalysis analysis{};
    bool isSample = false; ///< A first picture; the whole follows.
    std::int64_t begin = 0; ///< Of all ranks, nanoseconds on the first one's clock.
    std::int64_t end = 0;
    /// By rank and name: what kind of operator a compute event is, as far as its name says.
    std::vector<std::vector<OperatorCategory>> categories{};
};
using TraceDocumentSnapshot = std::shared_ptr<const TraceDocument>;

/// A trace against a plan. Immutable.
struct TraceMatch {
    MatchedTrace matched{};
    SpanErrors errors{};
    double predictedSeconds = 0; ///< Of the step.
    double measuredSeconds = 0;
    std::shared_ptr<const ExecutionPlan> plan{}; ///< Written out for all ranks.
    /// What was predicted for each rank of the trace, by its index there, on the common clock: events are
    /// Instructions, in a lane for computation and one for communication. Without events of ranks that are no
    /// devices of the plan.
    std::vector<RankTrace> predicted{};
    std::int64_t end = 0; ///< Of all that was predicted, on that clock.
};
using TraceMatchSnapshot = std::shared_ptr<const TraceMatch>;

/// The instruction that an event of kind Instruction is; null if the plan has it not, or it is none.
const Instruction *instructionOf(const TraceMatch &match, const RankTrace &rank, const TraceEvent &event);
/// Nanoseconds that were predicted for an instruction of the rank with this index; nothing if it is not
/// planned. O(events of the rank)
std::optional<std::int64_t> predictedFor(
    const TraceMatch &match, std::size_t rank, const TraceInstruction &instruction);

/// Reads and analyses; for a worker. @return as `openTrace` and `sampleTrace`
Result<TraceDocumentSnapshot> openTraceDocument(
    const std::vector<std::filesystem::path> &paths, bool isSample, const std::stop_token &stop);

/// Writes the plan of `answer` out for all ranks, predicts it, and matches the trace with it; for a worker.
/// @return NotFound without a plan; as `matchPlan`
Result<TraceMatchSnapshot> matchTrace(
    const TraceDocument &document, const PlanAnswer &answer, const std::stop_token &stop);

} // namespace planloom
