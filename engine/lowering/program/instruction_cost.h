#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/execution_plan.h"

#include <optional>

namespace planloom {

/// The collective an instruction takes part in; nothing for compute.
std::optional<CollectiveKind> collectiveOf(InstructionKind kind);

/// Bytes of a communication instruction as `collectiveSeconds` takes them.
Bytes collectiveBytes(const DeviceProgram &program, const Instruction &instruction);

/// The all-reduce of maxima that comes before a collective which combines logarithms (`reductionSeconds`).
bool needsLargestFirst(const Instruction &instruction);

/// How often `instruction` sends what its collective sends once: an all-reduce of maxima sends as much as
/// another all-reduce, twice as much as a reduce-scatter.
std::int32_t timesSent(const Instruction &instruction);

/// Bytes that member `position` of `ranks` sends in one collective, by the ring algorithm.
Bytes ringBytesSent(CollectiveKind kind, Bytes bytes, std::int32_t ranks, std::int32_t position);

/// By instruction: bytes that it neither reads nor writes, because the launch that it shares with its
/// neighbours keeps them in registers: what a joined neighbour before it made, and what dies in one behind
/// it. O(n log n), n = slots of all: an optimizer's updates are one launch.
std::vector<Bytes> sparedBytes(const DeviceProgram &program, const std::vector<Instruction> &instructions);

/// How many of its keys a query of a part of an attention sees on average, by causality and window; below 0
/// for all other instructions, and where every part sees as many as any of its shape.
double seenKeysOf(const ExecutionPlan &plan, const Instruction &instruction);
/// Likewise of part `part` of an operator.
/// @param outer  of a micro-batch
double seenKeysOf(const Graph &graph, OperatorId op, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer);

/// Durations of instructions that involve one device alone.
struct LocalDuration {
    Nanoseconds usual{};
    Nanoseconds first{}; ///< Accumulate that finds nothing yet copies instead of adding.
};
/// @param deviceClass  of the device that runs it
LocalDuration localDuration(const ExecutionPlan &plan, const DeviceProgram &program,
    const Instruction &instruction, const CostModel &costs, Bytes spared = {}, std::int32_t deviceClass = 0);

} // namespace planloom
