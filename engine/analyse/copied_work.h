#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/execution_plan.h"

#include <string>
#include <vector>

namespace planloom {

/// Why work is copied: an operator, and what it takes.
struct CopiedOperator {
    OperatorId op{};
    double share = 0; ///< Of the computing seconds: its own, and its backward operator's.
    std::string reason{}; ///< "needs dimension 0 of 'loss', which holds the batch, whole"; may be empty.
};

/// Work of the forward and backward passes that several devices do alike.
struct CopiedWork {
    double share = 0; ///< Of the computing seconds of both passes, in [0, 1].
    /// What is behind it: where the batch is cut, operators that need all of it, in the order of the model;
    /// else the operators that are copied, the longest first. Few.
    std::vector<CopiedOperator> operators{};
};

/// What replicas repeat: operators that run alike on several devices along the axes of the mesh which cut the
/// batch of others; along any axis where none does. Updates of weights are not counted: replicas repeat them
/// by what they are.
/// O(instructions). Thread-safe.
CopiedWork copiedWork(const ExecutionPlan &plan, const CostModel &costs);

/// "72% of the work is copied, because operator 'topk' needs ..."; empty where it is under `least`.
std::string copiedWords(const CopiedWork &copied, const Graph &graph, double least);

/// From which share on copied work is told of, and from which on a plan with replicas is none.
constexpr double kToldCopies = 0.05;
constexpr double kMostCopies = 0.5;

} // namespace planloom
