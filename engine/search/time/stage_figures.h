#pragma once

#include "engine/search/partition/operator_times.h"
#include "engine/search/time/pipeline_time.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace planloom {

/// Weights of one size on a device.
struct WeightPiece {
    std::int64_t elements = 0; ///< Of each, on one device.
    std::int32_t count = 0;
    std::int64_t modelBytes = 0; ///< Of one, as the model reads it.
    std::int64_t reducedBytes = 0; ///< Of the gradient of one, as it is sent; 0 where it is not trained.
    ShardAxes sums = ShardAxes::None; ///< Whose devices make a summand of the gradient each.
    std::int64_t stateBytes = 0; ///< Of one: what the optimizer alone keeps, master and states.
    double update = 0; ///< Seconds of the optimizer for one.
};

/// Weights of one layer, or that one operator outside of any is the first to read, whose gradients a stage's
/// last backward pass completes at nearly the same time.
struct StageWeights {
    /// A gradient that no other stage makes, too.
    struct Gradient {
        ShardAxes sums = ShardAxes::None; ///< As `WeightPiece`.
        std::int64_t reducedBytes = 0; ///< Not 0.
        double update = 0;
    };
    std::int32_t reader = -1; ///< The first operator that reads one of them,
    std::int32_t lastReader = -1; ///< and the last that is the first to read one.
    double left = 0; ///< Of the time of that pass: what comes behind; 0 to 1.
    double leftApart = 0; ///< Likewise where gradients of weights are made in a pass of their own, of that.
    double rest = 0; ///< Seconds of a forward pass from their first reader on, it included.
    /// Bytes of gradients as they are sent, by the axes whose devices make a summand each; without those
    /// that other stages make, too.
    BySums<std::int64_t> reducedBytes{};
    BySums<std::int64_t> modelBytes{}; ///< Of all as the model reads them,
    BySums<std::int64_t> ownModelBytes{}; ///< and of those that no other stage reads.
    std::vector<Gradient> gradients{}; ///< One by one, in the order in which the weights are read.
};

/// A weight that several stages read.
struct SharedWeight {
    std::vector<std::int32_t> stages{}; ///< Ascending.
    std::int64_t reducedBytes = 0;
    ShardAxes sums = ShardAxes::None; ///< As `WeightPiece`, as the next.
    double update = 0;
};

/// Weights of a stage that are gathered for the layer, or the operator outside of any, that reads them first.
class GatheredWeights
{
public:
    /// @param reader  the first in the stage; @param layer  of it, negative outside of any
    void add(OperatorId reader, std::int32_t layer, double bytes);
    /// Bytes that are there at once: while one layer runs, the next one's weights come.
    double most() const;

private:
    struct Layer {
        OperatorId first{};
        double bytes = 0;
    };
    std::map<std::int32_t, Layer> m_layers{};
};

/// What one stage's devices run, hold and send, per device, under a choice of partitions.
struct StageFigures {
    StageTime time{}; ///< Of one micro-batch, recomputation included.
    double splitMore = 0; ///< As `OperatorChoice::splitMore`.
    std::int64_t modelBytes = 0; ///< Weights as the model reads them.
    std::int64_t gradientBytes = 0; ///< Gradients, added up over micro-batches.
    std::vector<WeightPiece> weights{};
    /// Seconds in which the gradients of one micro-batch are put where they add up.
    struct Accumulation {
        double first = 0; ///< Of the first, which finds nothing there,
        double more = 0; ///< and of others.
        double cast = 0; ///< Of casting them one by one instead, where they are reduced at once.
        double mean(double microBatches) const { return (first + more * (microBatches - 1)) / microBatches; }
    };
    Accumulation accumulation{}; ///< Of what products make: with all gradients of weights;
    Accumulation withInputs{}; ///< of the rest: with the gradients of inputs.
    std::vector<StageWeights> inOrder{}; ///< In the order in which they are read.
    std::vector<SharedWeight> shared{}; ///< That it is the first to read.
    std::int64_t keptBytes = 0; ///< Of one micro-batch, from its forward to its backward pass.
    std::int64_t deferredBytes = 0; ///< As `StageTime::deferred`.
    std::int64_t passingBytes = 0; ///< The most that is held for a moment inside a pass,
    /// with the gradient of a weight before it is added up or reduced, as it is made: the largest,
    std::int64_t madeBytes = 0;
    std::int64_t castBytes = 0; ///< likewise as it is reduced,
    std::int64_t gatheredBytes = 0; ///< and weights of two layers that follow one another, whole.
};

struct TurnUnits; // turn_units.h

/// By operator of the forward pass: its stage, whether what it makes is dropped and computed again, and with
/// which others at a time (-1: alone).
struct StagePlan {
    std::vector<std::int32_t> stageOf{};
    std::int32_t stages = 1;
    /// Each stage waits for the one before it, and gives gradients back, whether or not that sends to it
    /// (`StagesBeside`).
    bool isChain = true;
    std::vector<bool> recomputed{};
    std::vector<std::int32_t> recomputedWith{};
    /// How often the backward pass runs it again (`planloom::runsAgain`): not all that is dropped is read.
    std::vector<std::int32_t> runsAgain{};
    /// Those that can take turns where they would not fit else; null: none.
    std::shared_ptr<const TurnUnits> units{};
    std::vector<std::int32_t> turns{}; ///< That it takes; empty: all once.
    std::vector<std::int32_t> regionOf{}; ///< As `OperatorDecision::coshardRegion`; empty: in none.
};

/// The group that an operator's outputs are computed again with: a layer, or what stands for it alone.
inline std::int32_t againWith(const StagePlan &plan, std::int32_t op)
{
    const std::int32_t with = plan.recomputedWith[static_cast<std::size_t>(op)];
    return with < 0 ? -2 - op : with;
}

/// What one stage sends to a later one of a micro-batch, tensor by tensor, what is read first first: bytes of
/// one device.
struct StageLink {
    struct Sent {
        std::int64_t bytes = 0;
        std::size_t meeting = 0; ///< Of the tensor, in `PartitionProblem::meetings`.
        std::int32_t reader = -1; ///< The operator whose pass reads it first there.
        double before = 0; ///< Seconds of that pass that come before.
        /// Stages between the two that read it, too: a rank that has it is not sent it again. Of gradients
        /// none: each stage sends its own.
        std::vector<std::int32_t> earlier{};
    };
    std::int32_t from = 0;
    std::int32_t to = 0;
    bool isChain = false; ///< As `StagePlan::isChain`; perhaps nothing is sent.
    std::vector<Sent> forward{};
    std::vector<Sent> backward{}; ///< Gradients, the other way.
};
/// By forward operator: seconds of its stage's passes before they come to it.
struct PassedBefore {
    std::vector<double> forward{};
    std::vector<double> backward{}; ///< Without gradients of weights that products make.
};
/// @param parts  of how many parts of a tensor each device sends one; 1: all of it
/// O(tensors x their readers x log of those).
std::vector<StageLink> stageLinks(const PartitionProblem &problem, const StagePlan &plan,
    const std::function<std::int64_t(const Meeting &)> &parts, const PassedBefore &before);
/// Of what is sent one after the other, until the pass that reads it can begin: `StageSend::forwardAhead`.
struct SentAhead {
    double seconds = 0;
    std::int32_t by = -1; ///< By number: that which the pass could begin last for; -1: it needs not wait.
};
/// @param seconds  by number
SentAhead sentAhead(const std::vector<StageLink::Sent> &sent, const std::vector<double> &seconds);
/// Into how many parts what lies so is sent: over each axis as many as it has devices, unless all have it
/// whole.
std::int64_t partsSent(const PartitionProblem &problem, ShardLayout layout);
/// Likewise under a choice, by forward operator, and its times.
std::vector<StageLink> stageLinks(const PartitionProblem &problem, const StagePlan &plan,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times);

/// @param choice  by forward operator
/// @param times  `timesOf(problem, choice)`
/// O(operators + tensors).
std::vector<StageFigures> stageFigures(const PartitionProblem &problem,
    const std::vector<std::int32_t> &choice, const OperatorTimes &times, const StagePlan &plan);

} // namespace planloom
