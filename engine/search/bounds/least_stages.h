#pragma once

#include "engine/base/result.h"
#include "engine/search/time/stage_figures.h"

#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// A weight, and how its devices may hold it.
struct LeastWeight {
    TensorId weight{};
    double share = 1; ///< The least part of it that a device has.
    /// Likewise where these axes' devices make a summand of its gradient each; nothing where they never do.
    BySums<std::optional<double>> shares{};
    std::vector<std::int32_t> stages{}; ///< That read it, ascending.
    bool isFirst = false; ///< The first operator of the stage that takes time reads it.
};

/// What no partition makes a stage's devices take less than.
struct LeastStage {
    StageTime time{}; ///< Of one micro-batch, without what replicas wait for each other.
    std::vector<LeastWeight> weights{}; ///< That are trained.
    double modelBytes = 0; ///< Weights as the model reads them.
    double stateBytes = 0; ///< What the optimizer alone keeps, shared by devices that make summands.
    double gradientBytes = 0;
    double keptBytes = 0; ///< Of one micro-batch, from its forward to its backward pass.
    /// That are held for a moment: of the operator that passes on most, of the largest gradient of a weight,
    double passingBytes = 0;
    double madeBytes = 0; ///< as it is made, and
    double castBytes = 0; ///< as it is reduced, if that is another type, and of weights that are gathered.
    double gatheredBytes = 0;
};

/// Least times of the stages of `plan`, each for itself: of its operators alone the cheapest choice, with
/// what is communicated between them, as if what lies outside came in the form that is best for it (and
/// another form for every pass).
///
/// Since a schedule of given orders takes no less where its blocks take more, playing these is a bound of all
/// partitions with these stages.
/// @param splitsBackward  gradients of weights are a pass of their own
/// @param accumulates  they are added up over micro-batches
/// @return Cancelled if stopped
/// Three eliminations of the operators (cost_network.h), fewer where stages are equal.
Result<std::vector<LeastStage>> leastStages(const PartitionProblem &problem, const StagePlan &plan,
    bool splitsBackward, bool accumulates, const std::stop_token &stop = {});

/// The same without times: no more than what stages hold, whatever the partition.
std::vector<LeastStage> leastHeld(const PartitionProblem &problem, const StagePlan &plan);

/// Likewise seconds of a micro-batch, both passes, and what bytes that are held cost in addition; by stage.
/// One elimination, fewer where stages are equal.
Result<std::vector<double>> leastSecondsHolding(const PartitionProblem &problem, const StagePlan &plan,
    const HeldPricing &held, bool accumulates, const std::stop_token &stop = {});

/// The least that passes from stage to stage, whatever the partition; how long a pass has something else to
/// do before it reads it (`StageLink::Sent::before`) is then not known, but of what it begins with.
std::vector<StageLink> leastLinks(const PartitionProblem &problem, const StagePlan &plan);
/// Likewise, with `before` such that blocks of these times end no later than any that wait for what was sent;
/// they may begin later.
/// @param stages  and the next as `leastStages`
std::vector<StageLink> leastLinks(const PartitionProblem &problem, const StagePlan &plan,
    const std::vector<LeastStage> &stages, bool splitsBackward, bool accumulates);

/// Seconds, of one micro-batch, of putting an operator's gradients of weights where they add up or are sent.
double accumulationSeconds(
    const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, bool accumulates);

} // namespace planloom
