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

/// Same tensor, same version, same part of a Value split, on every content.
bool alike(const Content &a, const Content &b);
/// Scale units have the same of both.
bool sharedAlike(const Content &a, const Content &b);
/// The boxes that all units have of `content` together.
IndexMask ofAllUnits(const Content &content);

/// What rules of instructions are held against, and ask of it.
struct RuleContext {
    const ExecutionPlan &plan;
    const Specification &specification;

    std::string nameOfTensor(TensorId tensor) const; ///< "'x'", "no tensor".
    std::string textOf(const Content &content) const;
    BatchRole roleOf(TensorId tensor) const;
    /// Buffers of the tensor lie elsewhere in every micro-batch.
    bool moves(TensorId tensor) const;
    /// Every micro-batch has a value of its own: one buffer for the step holds none of them, or all together.
    bool differs(TensorId tensor) const;
    /// What is the same in all micro-batches may be brought together anew for each.
    bool stays(const Content &content) const;
};

/// The union of disjoint summand sets, in the form of `BufferInfo::summands`; nothing if they overlap.
std::optional<SummandSet> unionOf(const std::vector<const SummandSet *> &sets, std::int32_t count);
/// True if the boxes are disjoint and together are `whole`.
bool tiles(const std::vector<const IndexMask *> &boxes, const IndexMask &whole);

} // namespace planloom
