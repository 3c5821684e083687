#pragma once

#include "engine/base/result.h"
#include "engine/runtime/run.h"

#include <stop_token>
#include <string>

namespace planloom {

/// How far a run may be from the reference. Relative to max(max|b|, 1e-3 G), b a reference tensor and G the
/// largest value of its group (outputs, gradients, weights).
struct CheckTolerances {
    /// Distances of whole groups in place of single elements: |a - b| / |b|, Euclidean over all tensors of a
    /// group. For plans that round: where a sum in another order rounds an activation to its neighbour, a
    /// ReLU may open or an attention shift, and single gradients are as far off as they are large.
    bool byNorm = false;
    double loss = 1e-5; ///< Of the first step, relative to the loss alone.
    double laterLosses =
        1e-3; ///< Of the steps after it: AdamW turns rounding noise into full steps of weights.
    double outputs = 1e-4;
    double gradients = 1e-3; ///< Batch norm amplifies float32 rounding to a few 1e-4.
    double weights = 1e-3;
};

/// What a plan may differ from the same model in the same precisions on one device. In Float32 the default.
/// With narrower types a sum in another order may round to a neighbour, e = 2^-9 (BFloat16) or 2^-12
/// (Float16, TensorFloat32) of its size away. A share e of the ReLUs and the like then opens or shuts, and
/// each counts whole: groups may be sqrt(e) apart, gradients, which have come twice as far, 2 sqrt(e).
/// Operands of 8 bits, 2^-3 apart, turn one activation in 2^6 that differs by 2^-9 into the next: e = 2^-6.
CheckTolerances tolerancesOf(const ExecutionPlan &plan);

/// Compares losses of all steps, outputs, gradients and updated weights.
///
/// Elements of a weight whose reference gradient is below what rounding makes of a zero are left out: AdamW
/// turns any such gradient into a full step, so that its sign is chance. The gradients themselves are
/// compared everywhere.
/// @return InvalidInput if the two have different steps, names or shapes
Result<CheckReport> compareOutcomes(
    const RunOutcome &got, const RunOutcome &reference, const CheckTolerances &tolerances = {});

/// Name of the first operator, in graph order, one of whose outputs differs between two runs with `keepAll`;
/// empty if none does. Tensors that only one of the runs has are passed by.
std::string firstDifference(
    const Graph &graph, const RunOutcome &got, const RunOutcome &reference, double tolerance = 1e-4);

/// Runs `reference`, the unpartitioned model in as many micro-batches, as `plan` was run, compares, and if
/// something differs runs one step of both again with `keepAll` to name the first operator that does.
///
/// Of a run of several steps the losses of all of them are compared; outputs, gradients and weights after its
/// first step, which is run once more: later ones start from weights in which AdamW has turned rounding noise
/// into full steps.
/// @param got  outcome of `plan` under `options`, which had `keepGradients`
/// @param tolerances  `tolerancesOf(plan)` where `reference` works in the same precisions
Result<CheckReport> checkAgainst(const ExecutionPlan &reference, const ExecutionPlan &plan,
    const RunOutcome &got, const RunOptions &options, const CheckTolerances &tolerances = {},
    std::stop_token stop = {});

} // namespace planloom
