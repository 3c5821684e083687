#pragma once

#include "engine/search/partition_problem.h"
#include "engine/search/pipeline_time.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace planloom {

/// Weights of one size on a device.
struct WeightPiece {
    std::int64_t elements = 0; ///< Of each, on one device.
    std::int32_t count = 0;
    std::int64_t modelBytes = 0; ///< Of one, as the model reads it.
    std::int64_t reducedBytes = 0; ///< Of the gradient of one, as it is sent; 0 where it is not trained.
    bool overShards = false; ///< The devices of the axis make a summand of the gradient each.
    std::int64_t stateBytes = 0; ///< Of one: what the optimizer alone keeps, master and states.
    double update = 0; ///< Seconds of the optimizer for one.
};

/// What one stage's devices run, hold and send, per device, under a choice of partitions.
struct StageFigures {
    StageTime time{}; ///< Of one micro-batch, recomputation included.
    std::int64_t modelBytes = 0; ///< Weights as the model reads them.
    std::int64_t gradientBytes = 0; ///< Gradients, added up over micro-batches.
    std::vector<WeightPiece> weights{};
    /// Seconds in which the gradients of one micro-batch are put where they add up: of the first, which
    /// finds nothing there, and of others.
    double firstAccumulation = 0;
    double accumulation = 0;
    double castGradients = 0; ///< Seconds of casting them one by one instead, where they are reduced at once.
    /// By layer that has weights, those outside of any together as one: that with the largest gradient.
    std::vector<WeightPiece> largest{};
    std::int64_t keptBytes = 0; ///< Of one micro-batch, from its forward to its backward pass.
    std::int64_t passingBytes = 0; ///< The most that is held for a moment inside a pass.
};

/// By operator of the forward pass: its stage, whether the backward pass computes it again, and with which
/// others at a time (-1: alone).
struct StagePlan {
    std::vector<std::int32_t> stageOf{};
    std::int32_t stages = 1;
    std::vector<bool> recomputed{};
    std::vector<std::int32_t> recomputedWith{};
};

/// Seconds, by stage, of sending to the next stage and to the one before.
struct StageSends {
    std::vector<double> forward{};
    std::vector<double> backward{};
};
/// @param isWhole  whether each device sends all of a tensor, not its part; @param between  as `stageFigures`
/// O(tensors x stages).
StageSends stageSends(const PartitionProblem &problem, const StagePlan &plan, GroupShape between,
    const std::function<bool(const PartitionProblem::Meeting &)> &isWhole);

/// @param choice  by forward operator
/// @param times  `problem.timesOf(choice)`
/// @param between  two devices of neighbouring stages
/// O(operators + tensors).
std::vector<StageFigures> stageFigures(const PartitionProblem &problem,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times, const StagePlan &plan,
    GroupShape between);

} // namespace planloom
