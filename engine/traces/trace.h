#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

// Traces of training runs that other programs wrote: what every rank did and when, without a plan. All times
// are nanoseconds on the clock of the rank's machine; clocks.h says how far apart the clocks are.

/// What an event of a trace is.
enum class TraceKind : std::uint8_t {
    Compute, ///< A kernel; where a trace has no device, an operator on the host.
    Copy, ///< Memory that is copied or filled.
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    Send,
    Recv,
    Barrier,
    OtherCommunication, ///< Communication whose kind the trace does not say, or that plans have no word for.
    Annotation, ///< A range that the program has named; takes no time of its own.
    Step, ///< The range of one training step.
    Instruction, ///< An instruction of a plan: only the plan says of what kind (`RankTrace::instructions`).
};
constexpr std::size_t kTraceKindCount = static_cast<std::size_t>(TraceKind::Instruction) + 1;

const char *nameOf(TraceKind kind); ///< "compute", "all-reduce": as plans name the same.
bool isCommunication(TraceKind kind);
/// What plans call it; nothing for what no instruction is.
std::optional<InstructionKind> instructionKindOf(TraceKind kind);
/// The kind that a collective's or message's name says, in any spelling: "all_reduce", "_allgather_base",
/// "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"; OtherCommunication if none.
TraceKind communicationNamed(std::string_view name);

/// The number of a training step that the name of a range says: "ProfilerStep#3", "step 3", "iteration_3";
/// nothing for all others.
std::optional<std::uint32_t> stepNumberIn(std::string_view name);

/// No index.
constexpr std::uint32_t kNoLink = 0xffffffff;
/// No time.
constexpr std::int64_t kNoTime = INT64_MIN;

/// Something that took time. 40 bytes, of which millions are kept and written as they are.
struct TraceEvent {
    std::int64_t start = 0; ///< Nanoseconds.
    std::int64_t duration = 0; ///< Nanoseconds.
    std::int64_t launch = kNoTime; ///< When the host began to launch it; kNoTime if that is not known.
    std::uint32_t name = 0; ///< Index into `RankTrace::names`.
    std::uint32_t lane = 0; ///< Index into `RankTrace::lanes`.
    /// Index into `RankTrace::collectives` of communication, into `RankTrace::instructions` of an
    /// Instruction; the number of a Step; else kNoLink.
    std::uint32_t link = kNoLink;
    TraceKind kind = TraceKind::Compute;
    std::uint8_t unused[3]{}; ///< Zero, so that equal events are equal bytes.

    std::int64_t end() const { return start + duration; }
    friend bool operator==(const TraceEvent &, const TraceEvent &) = default;
};
static_assert(sizeof(TraceEvent) == 40);

/// A row of the picture: a stream of a device, a thread of the host, or the program's annotations.
struct TraceLane {
    std::string name{}; ///< "stream 7", "thread 2571".
    bool isHost = false;
    friend bool operator==(const TraceLane &, const TraceLane &) = default;
};

/// A process group, as one rank knows it.
struct TraceGroup {
    std::string name{}; ///< Of the group: a number, or what the program calls it.
    std::string description{}; ///< "tp", "default_pg"; empty if the trace does not say.
    std::vector<std::int32_t> ranks{}; ///< Empty where the trace does not list them all.
    std::int32_t size = 0; ///< 0 if unknown.
    friend bool operator==(const TraceGroup &, const TraceGroup &) = default;
};

/// What a communication event says of itself; -1 for what it does not say.
struct TraceCollective {
    std::uint32_t group = kNoLink; ///< Index into `RankTrace::groups`.
    std::int32_t source = -1; ///< Of messages: the rank that sends,
    std::int32_t target = -1; ///< and the one that receives.
    std::int64_t sequence = -1; ///< Number in its group.
    std::int64_t inBytes = -1;
    std::int64_t outBytes = -1;
    friend bool operator==(const TraceCollective &, const TraceCollective &) = default;
};

/// The instruction of a plan that ran: as `LiveSpan` without its time.
struct TraceInstruction {
    std::int32_t step = 0;
    std::int32_t segment = 0;
    std::int32_t instruction = 0;
    std::int32_t microBatch = 0;
    friend bool operator==(const TraceInstruction &, const TraceInstruction &) = default;
};

/// What was not read of a file, and why.
struct TraceRemark {
    std::string where{}; ///< "rank0.json@1024": the first place.
    std::string text{}; ///< A sentence's rest: "the duration is negative".
    std::int64_t count = 1; ///< How often.
    friend bool operator==(const TraceRemark &, const TraceRemark &) = default;
};

/// What one rank did.
struct RankTrace {
    std::int32_t rank = -1;
    std::int32_t world = 0; ///< How many ranks ran; 0 if unknown.
    bool isSample = false; ///< Only a part of its events: a first picture (open_trace.h).
    bool isOnHost = false; ///< It has no device: what it computes are operators on the host.
    std::string file{}; ///< That it was read from.
    std::string host{}; ///< The machine, whose ranks share a clock; empty if the trace does not say.
    std::vector<TraceEvent> events{}; ///< By lane, then by start; of one start the longer first.
    std::vector<std::size_t> laneBegin{}; ///< Of each lane its first event; one more entry at the end.
    std::vector<TraceLane> lanes{};
    std::vector<std::string> names{};
    std::vector<TraceGroup> groups{};
    std::vector<TraceCollective> collectives{};
    std::vector<TraceInstruction> instructions{};
    std::vector<TraceRemark> remarks{};

    const std::string &nameOfEvent(const TraceEvent &event) const { return names[event.name]; }
    friend bool operator==(const RankTrace &, const RankTrace &) = default;
};

/// A run as all its ranks saw it, by rank; no rank twice.
struct Trace {
    std::vector<RankTrace> ranks{};
    std::vector<TraceRemark> remarks{}; ///< About files that are not among them.

    std::size_t eventCount() const;
};

/// Start of the first and end of the last event, in nanoseconds; {0, 0} without events. O(events)
std::pair<std::int64_t, std::int64_t> extentOf(const RankTrace &trace);

} // namespace planloom
