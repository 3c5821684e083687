#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Spans of one kind in a step, or one span, measured against predicted.
struct SpanError {
    std::string what{}; ///< "kernel", "all-reduce"; with its operator and micro-batch, of one span.
    std::int32_t device = -1; ///< -1: all.
    OperatorId op{}; ///< Of one span.
    std::int64_t count = 1;
    double predicted = 0; ///< Seconds,
    double measured = 0; ///< of all of them together.
    friend bool operator==(const SpanError &, const SpanError &) = default;
};

/// What a prediction is wrong by, instruction by instruction.
struct SpanErrors {
    std::vector<SpanError> kinds{}; ///< Totals by kind, the longest first.
    std::vector<SpanError> worst{}; ///< Single spans whose time is furthest off, first the furthest.
    friend bool operator==(const SpanErrors &, const SpanErrors &) = default;
};

/// Both timelines are of `plan`; spans are the same where device, segment, instruction and micro-batch are.
/// Those that only one of the two has count with the totals alone. O(spans log spans).
/// @param most  how many single spans are wanted
SpanErrors spanErrors(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured, std::size_t most = 10);

/// Collectives and sends of one kind, number of members and size.
struct CollectiveFigures {
    InstructionKind kind{};
    std::int32_t members = 0; ///< Devices that take part.
    std::int64_t bytes = 0; ///< Of the whole value on one member, before or after, whichever is larger.
    std::int64_t moved = 0; ///< Bytes that one member sends, by the ring algorithm.
    std::int64_t count = 0; ///< Of spans that were measured, over all members.
    double predicted = 0; ///< Mean seconds of one; 0 if unknown.
    double measured = 0; ///< Mean seconds of one, waiting for the others included.
    double best = 0; ///< The shortest: nearly without waiting.
    /// Bytes per second that left a member while the shortest ran; 0 if unknown.
    double bandwidth() const { return best > 0 ? static_cast<double>(moved) / best : 0; }
    friend bool operator==(const CollectiveFigures &, const CollectiveFigures &) = default;
};

/// By kind, then by size, the largest first. O(spans); both timelines are of `plan`.
std::vector<CollectiveFigures> collectivesBySize(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured);

/// What ran, for people: "all-reduce of h.0.attn, micro-batch 2".
std::string spanWords(const ExecutionPlan &plan, const Instruction &instruction, std::int32_t microBatch);

/// Bytes of the whole value on one member of a collective, before or after, whichever is larger; of a
/// message, what is sent.
std::int64_t communicatedBytes(const DeviceProgram &program, const Instruction &instruction);

} // namespace planloom
