#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/traces/trace_analysis.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

/// A communication of a plan's device in its order, or of a trace's rank.
struct CommunicationStep {
    TraceKind kind{};
    /// Ascending; of a message sender and receiver. Empty where a trace does not say: it may be of any
    /// members.
    std::vector<std::int32_t> members{};
    std::int64_t stream = 0; ///< Queue, or process group: what is in order among itself.
    std::int64_t bytes = -1; ///< -1 if unknown.
    std::int64_t id = 0; ///< The caller's.
};

/// Pairs of ids, of the plan's and the trace's.
using CommunicationPairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Matches what has the same members, stream by stream, each in order: as many as possible, of the same kind
/// and bytes before those that differ. A backend may do one kind by another one: reduce-scatters by
/// all-to-alls, as gloo's.
CommunicationPairs matchCommunication(
    const std::vector<CommunicationStep> &plan, const std::vector<CommunicationStep> &trace);

} // namespace planloom
