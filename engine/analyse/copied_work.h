#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/execution_plan.h"

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
    bool alongBatch = false; ///< Along axes that cut the batch: else along any axis.
    /// What is behind it: where the batch is cut, operators that need all of it, in the order of the model;
    /// else the operators that are copied, the longest first. Few.
    std::vector<CopiedOperator> operators{};
};

/// What replicas repeat: operators that run alike on several devices along the axes of the mesh which cut the
/// batch of others; along any axis where none does. Updates of weights are not counted: replicas repeat them
/// by what they are.
/// O(instructions). Thread-safe.
CopiedWork copiedWork(const ExecutionPlan &plan, const CostModel &costs);

/// Above this share a gallery's plan with replicas is none.
constexpr double kMostCopies = 0.5;

/// "72% of the computing is the same on several devices, because operator 'topk' needs ..."; empty where that
/// is too little to tell of: under a twentieth along axes that cut the batch, or under half along others,
/// where a tensor parallel plan copies norms by what it is.
std::string copiedWords(const CopiedWork &copied, const Graph &graph);

} // namespace planloom
