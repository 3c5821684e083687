#pragma once

#include "engine/search/memory/held_moments.h"
#include "engine/search/partition/partition_problem.h"
#include "engine/search/time/stage_figures.h"

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace planloom {

/// What bytes that devices hold cost, as far as operators decide of them one by one: no more of them than a
/// stage holds as its rank is fullest.
struct HeldPricing {
    HeldPricing() = default;
    HeldPricing(
        const PartitionProblem &problem, std::shared_ptr<const StagePlan> stagePlan, bool splitsBackward);

    std::shared_ptr<const StagePlan> plan{}; ///< Not null.
    struct Stage {
        double secondsPerByte = 0;
        MixedHeld held{};
        /// Bytes that may pass (`passingBytes`): no other choices are looked at.
        double mostPassing = std::numeric_limits<double>::infinity();
    };
    std::vector<Stage> stages{}; ///< None yet.
    /// By tensor: inputs and outputs of operators, under any choice, of which it is kept,
    std::vector<std::int32_t> keepers{};
    /// and inputs of those that may read it again to make gradients of their weights in a pass for these.
    std::vector<std::int32_t> deferrers{};
    /// Of weights that several stages read: how many operators of a stage do. Each of them holds it.
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> readers{};
    double model = 1; ///< How much of a weight, as the model reads it, a replica has.
    BySums<double> states{1, 1, 1, 1}; ///< Likewise of what the optimizer keeps of it.
};

/// Bytes that an operator's weights and what it keeps take of the devices of its stage.
double heldBytes(
    const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, const HeldPricing &held);
/// What they cost; infinite where too much passes.
double heldSeconds(
    const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, const HeldPricing &held);

/// Where something lies that the backward pass reads of an operator's inputs and outputs, or that it is
/// computed again from.
struct KeptPlace {
    TensorId storage{}; ///< Invalid where nothing is kept, whatever the choice.
    bool again = false; ///< It is not kept but computed again in the stage that reads it.
    bool isReadAgain = false; ///< By the operator as it runs again.
};
/// @param slot  of its inputs, then outputs @param plan  as `leastKeptBytes`
KeptPlace keptPlace(const PartitionProblem &problem, std::size_t op, std::size_t slot, const StagePlan &plan);
/// Bytes of a device, for a micro-batch; 0 where nothing is read.
std::int64_t keptBytes(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice,
    std::size_t slot, const KeptPlace &place);
/// Bytes of what one micro-batch keeps for its backward pass that no choice goes below on one device, by
/// forward operator.
/// @param plan  without stages: as if all were one
std::vector<double> leastKeptBytes(const PartitionProblem &problem, const StagePlan &plan);

/// Whether a pass for gradients of weights keeps what an operator reads, by input slot, until then.
bool defers(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, std::size_t slot);
/// Likewise the gradient of what it makes, by output slot.
bool defersGradient(const PartitionProblem &problem, std::size_t op, std::size_t slot);

/// Bytes of gradients that an operator's backward one reads and makes, which no pass keeps; 0 where it has
/// none to run.
std::int64_t passingBytes(const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice);

} // namespace planloom
