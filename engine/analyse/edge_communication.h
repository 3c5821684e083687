#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// What is communicated of one tensor between the operator that makes it and one that uses it: all
/// instructions of a kind that serve the same operator, on all devices of a scale unit, in one step.
struct EdgeCommunication {
    OperatorId op{}; ///< That is served: `from` or `to`; invalid where it is not known.
    TensorId tensor{};
    InstructionKind kind{}; ///< Send stands for both ends.
    OperatorId from{}; ///< Who makes the tensor (of several, the first); invalid for weights and inputs.
    OperatorId to{}; ///< Invalid where it is for all who use it, or for nobody.
    Bytes bytes{}; ///< Sent, by the ring algorithm for collectives.
    std::int64_t count = 0; ///< Sends, or ends of collectives.
    friend bool operator==(const EdgeCommunication &, const EdgeCommunication &) = default;
};

/// By (op, tensor, kind), ascending. All together they send what `communicationMatrix` says.
/// O(instructions + schedule entries); empty if stopped.
std::vector<EdgeCommunication> communicationOnEdges(const ExecutionPlan &plan, std::stop_token stop = {});

/// The tensor that an instruction of `program` is about: of what it reads, else of what it writes; invalid if
/// it does neither.
TensorId tensorOf(const DeviceProgram &program, const Instruction &instruction);

/// The one of `edges` that serves `op` with `tensor`, by whatever kind: the first; null if there is none.
/// O(log edges)
const EdgeCommunication *findEdge(
    const std::vector<EdgeCommunication> &edges, OperatorId op, TensorId tensor);

} // namespace planloom
