#pragma once

#include "engine/base/result.h"
#include "engine/runtime/run.h"

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// How far two right runs may be apart whose sums are in another order, before anything is known of what
/// rounding does to the model. Relative to max(max|b|, `least` G), b a reference tensor and G the largest
/// value of its group (outputs, gradients, weights); of a loss, to the loss alone.
struct CheckTolerances {
    double loss = 1e-5; ///< Of the first step.
    double laterLosses = 1e-3; ///< Of the steps after it.
    double outputs = 1e-4;
    double gradients = 1e-3;
    double weights = 1e-3;
    double least = 1e-3; ///< What is smaller than this share of the largest value of its group is noise.
};

/// A few steps of the coarsest number format in `plan`.
CheckTolerances tolerancesOf(const ExecutionPlan &plan);

/// How far rounding alone moves what a model computes: the largest distance of an element that was seen
/// between runs of the unpartitioned model that differ in nothing else.
struct Movement {
    std::vector<double> losses{}; ///< By step.
    std::map<std::string, double> tensors{}; ///< By "out/logits", "grad/h.0.attn.weight" ...
    /// The plan is known to be right in Float64, so that rounding explains more: outputs and gradients may be
    /// moved by as large a share of their size as any other of their group, and weights as far, and all of
    /// them further beyond what was seen. A few runs see only some of the kinks (ReLU, the largest of a pool)
    /// that rounding pushes numbers over.
    bool shared = false;
};

/// @return InvalidInput if the two have different steps, names or shapes; types may differ
Result<Movement> movementBetween(const RunOutcome &a, const RunOutcome &b);

/// Compares losses of all steps, outputs, gradients and updated weights: each may be off by its tolerance and
/// by a few times what rounding moves it.
///
/// Elements of a weight whose reference gradient is below what rounding makes of a zero, or moves it by, are
/// left out: AdamW
/// turns any such gradient into a full step, so that its sign is chance. The gradients themselves are
/// compared everywhere.
/// @return InvalidInput if the two have different steps, names or shapes
Result<CheckReport> compareOutcomes(const RunOutcome &got, const RunOutcome &reference,
    const CheckTolerances &tolerances = {}, const Movement &movement = {});

/// Name of the first operator, in graph order, one of whose outputs differs between two runs with `keepAll`;
/// empty if none does. Tensors that only one of the runs has are passed by.
std::string firstDifference(
    const Graph &graph, const RunOutcome &got, const RunOutcome &reference, double tolerance = 1e-4);

/// What a check needs at its fullest, held against `free` before the run that it is of begins: the
/// reference's devices, and what both runs hand back.
/// @return ResourceLimit saying what is needed and what is free
Result<void> requireMemoryOfCheck(
    const ExecutionPlan &reference, const ExecutionPlan &plan, const std::optional<Bytes> &free);

/// Judges whether a run of `plan` computed what its model does.
///
/// 1. `reference`, the unpartitioned model, is run as `plan` was. Where all are within a few steps of
///    Float32, the run is right, unless the model is small: then 2 costs next to nothing, and finds what is
///    wrong by less than Float32 shows.
/// 2. Else rounding may be what sets them apart, or the plan. Both are run in Float64: there a right plan
///    agrees to 9 digits, and what is off is the plan.
/// 3. What it computed in its own number formats may be off by a few times what rounding alone does to the
///    reference: between it and itself in Float64, and between it and itself with inputs and weights moved by
///    one unit in the last place, once or a few times, until that explains the difference, or cannot; and by
///    what the two differed by in 2, in units of Float32. Behind 2, what is seen of one tensor counts for the
///    others (`Movement::shared`).
///
/// Without room for 2, or a kernel, 3 alone decides. If something differs one step of both is run again
/// with `keepAll` to name the first operator that does.
/// @param got  outcome of `plan` under `options`, which had `keepGradients`
Result<CheckReport> checkAgainst(const ExecutionPlan &reference, const ExecutionPlan &plan,
    const RunOutcome &got, const RunOptions &options, std::stop_token stop = {});

} // namespace planloom
