#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/verify/specification.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// What a buffer holds when an instruction reads it, or must hold when it has written it.
struct Content {
    DataType dataType{};
    TensorId tensor{}; ///< A persistent buffer holds the new tensor once it was updated.
    const IndexMask *box = nullptr; ///< In micro-batch 0.
    const SummandSet *summands = nullptr;
    ValueMask valuePart{};
    bool unweighed = false;
    bool perMicroBatch = true;
    bool persistent = false;
    bool inPlace = false; ///< Read and written by one update: `updatesInPlace`.
    UnitShare share = UnitShare::Same;
    std::int32_t shardDimension = -1;
    std::int64_t shardEnd = 0;
    std::int32_t staleness = 0; ///< Updates by which a weight is older than the newest version.
};

/// One device's side of an instruction.
struct Side {
    DeviceId device{};
    const Instruction *instruction = nullptr;
    std::vector<Content> inputs{}; ///< By position; `box` is null where the instruction has -1.
    std::vector<Content> outputs{};
};

/// Holds one instruction that no other device takes part in against the specification.
/// @return why it is wrong; empty if it is right
std::string checkLocal(const ExecutionPlan &plan, const Specification &specification, const Side &side);

/// Holds a collective, or a send with its receive, against what its kind means: `sides` in the order of the
/// group, or sender then receiver.
std::string checkCommunication(
    const ExecutionPlan &plan, const Specification &specification, const std::vector<Side> &sides);

} // namespace planloom
