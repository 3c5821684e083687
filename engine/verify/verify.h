#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace planloom {

/// Where a plan stops being what its graph says.
struct VerifyFailure {
    DeviceId device{};
    std::int32_t segment = -1; ///< Index into the device's segments; -1 for the plan as a whole.
    std::int32_t instruction = -1; ///< Index into the segment's instructions.
    std::int32_t microBatch = -1;
    std::string reason{}; ///< One sentence: what was expected, what was found.
};

/// What was proved, or where the proof broke.
struct VerifyReport {
    std::int64_t instructions = 0; ///< Checked, over all devices and micro-batches.
    /// Of which step it is the proof: one whose micro-batches cut the batch, together the model's step; or,
    /// if true, one whose `microBatches` are each a whole batch, whose loss and gradients are their means
    /// (gradient accumulation).
    bool wholeBatches = false;
    std::int32_t microBatches = 1;
    std::optional<VerifyFailure> failure{};
    bool ok() const { return !failure.has_value(); }
};

/// Proves from masks alone, without running anything, that `plan` computes what its graph says: every
/// operator's every part runs exactly once per micro-batch (or once per step), every consumer reads the box
/// it needs with all summands present exactly once, gradients hold every micro-batch and replica exactly once
/// when the optimizer reads them, every persistent weight is updated everywhere it is used, outputs reach the
/// host exactly once, no buffer is read before it is written or after it died, and the devices' orders cannot
/// deadlock (rendezvous semantics on every stream).
///
/// Trusts no field that follows from others: annotations and types follow from the graph's operators, roles
/// of the batch from the graph, and both are derived anew; of the batch only the choice between cut and whole
/// batches is taken from the plan, and the report says which it was. What only labels (origin, the operator
/// that a communication serves, the stage of a segment) has to name something that exists and proves nothing.
///
/// Shares no code with lowering beyond the types: it derives views anew from annotations and partitions.
/// Time linear in instructions; 64 devices x 32 micro-batches of GPT-3 175B in <= 5 s.
/// @return Cancelled if stopped; a plan that is wrong is a report with a failure, not an error
Result<VerifyReport> verify(const ExecutionPlan &plan, std::stop_token stop = {});

} // namespace planloom
