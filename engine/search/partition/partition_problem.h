#pragma once

#include "engine/search/memory/held_moments.h"
#include "engine/search/partition/cost_network.h"
#include "engine/search/partition/layout_moves.h"
#include "engine/search/partition/operator_choices.h"

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// What one micro-batch takes of the devices of an axis, operator by operator (forward ones, by index).
/// Communication counts for the operator that waits for it: forward for the first reader, backward for the
/// operator whose outputs' gradients are brought together.
struct OperatorTimes {
    std::vector<double> forward{}; ///< Seconds, with communication.
    std::vector<double> backward{};
    double communication = 0; ///< Of both passes.
};

/// A collective for one weight by itself.
struct OwnLaunch {
    CollectiveKind kind = CollectiveKind::AllReduce;
    GroupShape over{}; ///< One device: there is none.
    bool ofModel = false; ///< Of the weight as the model reads it; else of its gradient, as it is sent.

    friend bool operator==(const OwnLaunch &, const OwnLaunch &) = default;
    friend std::strong_ordering operator<=>(const OwnLaunch &a, const OwnLaunch &b)
    {
        const auto key = [](const OwnLaunch &each) {
            return std::tie(each.kind, each.over.ranks, each.over.nodes, each.over.outer, each.over.classes,
                each.ofModel);
        };
        return key(a) <=> key(b);
    }
};

/// Seconds that communication for one weight takes at least.
struct WeightTraffic {
    double fixed = 0;
    double perReducedByte = 0; ///< Of its gradient, as it is sent.
    double perModelByte = 0; ///< Of the weight, as the model reads it.
    /// Where a device has at least so many bytes of its gradient these are made for it alone, in place of the
    /// former.
    double launchedFrom = std::numeric_limits<double>::infinity();
    std::array<OwnLaunch, 3> launches{};
    double launchLess = 0; ///< Seconds taken off these: what others may have saved that go along.
    friend auto operator<=>(const WeightTraffic &, const WeightTraffic &) = default;
};

/// By the axes over which the gradients of a weight are summed up, beside replicas: `indexOf(ShardAxes)`.
template<typename Value> using BySums = std::array<Value, kShardAxisSets>;

struct StagePlan; // stage_figures.h

/// What bytes that devices hold cost, as far as operators decide of them one by one: no more of them than a
/// stage holds as its rank is fullest.
struct HeldPricing {
    std::shared_ptr<const StagePlan> plan{}; ///< Not null.
    struct Stage {
        double secondsPerByte = 0;
        MixedHeld held{};
        /// Bytes that may pass (`PartitionProblem::passingBytes`): no other choices are looked at.
        double mostPassing = std::numeric_limits<double>::infinity();
    };
    std::vector<Stage> stages{};
    std::vector<std::int32_t> keepers{}; ///< As `PartitionProblem::keepersOf`,
    std::vector<std::int32_t> deferrers{}; ///< and `deferrers`.
    /// As `PartitionProblem::readersByStage`.
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> readers{};
    double model = 1; ///< How much of a weight, as the model reads it, a replica has.
    BySums<double> states{1, 1, 1, 1}; ///< Likewise of what the optimizer keeps of it.
};

/// What counts as the cost of a partition beside the time of its operators and what they communicate.
struct PartitionPricing {
    std::shared_ptr<const HeldPricing> held{}; ///< Null: memory costs nothing.
    bool accumulates = true; ///< Gradients of weights are added up over micro-batches.
    /// How much of the optimizer's work a device does for the weights that it has, by the axes over which
    /// gradients are summed up; as those below.
    BySums<double> updates{1, 1, 1, 1};
    /// Gradients of weights, what adds them up and updates do not count: what is left no split of the
    /// backward pass takes off the way of a micro-batch.
    bool withoutWeights = false;
    /// Of the time in which gradients of weights are reduced how much counts (0 to 1); as much of the
    /// backward pass, behind which it may be hidden, is taken off: the dual of max(0, reductions - backward).
    double reductions = 0;
    double hiddenBehind = 1; ///< Backward passes of so many micro-batches, once a step.
    /// Reduced after every one of them (ZeRO-2 and 3), behind its own pass; but for what several operators
    /// read where stages may share it.
    bool everyMicroBatch = false;
    bool mayShare = false;
    /// Of what `reductions` is a price of: of weights whose gradients are reduced over replicas, and over
    /// axes whose devices sum them up.
    BySums<WeightTraffic> reduced{};
    /// Of what follows the updates, once a step, and nothing hides.
    BySums<WeightTraffic> behind{};
    friend auto operator<=>(const PartitionPricing &, const PartitionPricing &) = default;
};

/// What a whole weight, or buffer, takes of memory.
struct WeightBytes {
    std::int64_t model = 0; ///< As the model reads it.
    std::int64_t state = 0; ///< What the optimizer alone keeps: master and states.
    std::int64_t gradient = 0; ///< Of its gradient, added up over micro-batches.
    std::int64_t all() const { return model + state + gradient; }
};

class MeetingTables;

/// How every forward operator is to be partitioned over one mesh axis, or two, as a network of costs (seconds
/// of a micro-batch on one device, and bytes at a price): a variable for each operator, a table for what it
/// costs itself, and one for each tensor that is made in one way and read in others, or whose gradients come
/// in several forms. Consumers of one tensor are taken together: what one of them has gathered the others
/// have, and their gradients are added up before they are reduced. For one thread.
class PartitionProblem
{
public:
    /// @param groups  the axes' devices
    PartitionProblem(const AxisSetting &setting, const ShardGroups &groups);
    ~PartitionProblem();

    /// Some operator has no choice that its rows allow.
    OperatorId impossible() const { return m_impossible; }

    /// The choices that cut every operator as `splits` says, and over the outer axis as `outer` says; nothing
    /// where one of them has none.
    /// @param outer  empty without an outer axis
    std::optional<std::vector<std::int32_t>> choiceFor(
        const std::vector<Split> &splits, const std::vector<Split> &outer = {}) const;

    /// Whether no operator has more than one choice.
    bool isDecided() const;

    /// The backward operator, if there is one, makes gradients of weights alone, or of what is made of them:
    /// a pass for those runs it, and what it waits for, where the backward pass is split.
    bool makesWeightsAlone(std::size_t op) const { return m_makesWeightsAlone[op]; }
    /// Whether that pass keeps what an operator reads, by input slot, until then.
    bool defers(std::size_t op, const OperatorChoice &choice, std::size_t slot) const;
    /// Likewise the gradient of what it makes, by output slot.
    bool defersGradient(std::size_t op, std::size_t slot) const;

    /// Bytes that an operator's weights and what it keeps take of the devices of its stage.
    double heldBytes(std::size_t op, const OperatorChoice &choice, const HeldPricing &held) const;
    /// What they cost; infinite where too much passes.
    double heldSeconds(std::size_t op, const OperatorChoice &choice, const HeldPricing &held) const;

    /// Where something lies that the backward pass reads of an operator's inputs and outputs, or that it is
    /// computed again from.
    struct KeptPlace {
        TensorId storage{}; ///< Invalid where nothing is kept, whatever the choice.
        bool again = false; ///< It is not kept but computed again in the stage that reads it.
        bool isReadAgain = false; ///< By the operator as it runs again.
    };
    /// @param slot  of its inputs, then outputs @param plan  as `leastKeptBytes`
    KeptPlace keptPlace(std::size_t op, std::size_t slot, const StagePlan &plan) const;
    /// Bytes of a device, for a micro-batch; 0 where nothing is read.
    std::int64_t keptBytes(
        std::size_t op, const OperatorChoice &choice, std::size_t slot, const KeptPlace &place) const;
    /// By tensor: inputs and outputs of operators, under any choice, of which it is kept.
    std::vector<std::int32_t> keepersOf(const StagePlan &plan) const;
    /// Of weights that several stages read: how many operators of a stage do. Each of them holds it.
    std::map<std::pair<TensorId, std::int32_t>, std::int32_t> readersByStage(const StagePlan &plan) const;
    /// Likewise inputs of operators that may read it again to make gradients of their weights.
    std::vector<std::int32_t> deferrers() const;
    /// Bytes of gradients that an operator's backward one reads and makes, which no pass keeps; 0 where it
    /// has none to run.
    std::int64_t passingBytes(std::size_t op, const OperatorChoice &choice) const;
    /// What of a micro-batch's tensor, or its gradient, matters where it is moved.
    MovedTensor moved(TensorId tensor, bool gradient) const;
    /// Of a micro-batch's tensor in some layout, on a device.
    std::int64_t localBytes(TensorId tensor, ShardLayout layout) const;

    /// Seconds of a step that communicating takes for all weights, and updating them, both of whole ones.
    double trafficSeconds(const WeightTraffic &traffic) const;
    /// Likewise of one of `readers` readers of a weight, for a part of it; 0 if it is not trained.
    double secondsOf(TensorId weight, const WeightTraffic &traffic, double share, double readers) const;
    double updateSeconds() const { return m_allWeights.update; }

    /// Costs are seconds of one micro-batch; those of a whole step count by their share. Where very many
    /// operators read one tensor, each of them has its part of what would be if all read it alike: the
    /// cheapest choice then costs no less than the network's bound, but perhaps more than its cost.
    CostNetwork network(const PartitionPricing &pricing) const;
    /// What a choice costs, without such approximation; infinite where it cannot be.
    double costOf(const PartitionPricing &pricing, const std::vector<std::int32_t> &choice) const;

    /// Seconds in which the gradients that one micro-batch gives of a weight are put where they add up.
    struct Accumulation {
        double first = 0; ///< Where nothing is there yet.
        double more = 0;
        double cast = 0; ///< Of casting them instead, where they are reduced at once.
        ShardAxes sums = ShardAxes::None; ///< The axes whose devices make a summand each.
    };
    /// Of the gradient that operator `op` makes of its input `slot`; nothing if it makes none.
    std::optional<Accumulation> accumulationOf(
        std::size_t op, std::size_t slot, const OperatorChoice &choice) const;
    /// Seconds of a pass, in the mean, in which an operator's gradients of weights are put where they add up;
    /// at least: one of several that make the same gradient finds nothing there.
    double accumulationSeconds(std::size_t op, const OperatorChoice &choice) const;
    /// Seconds of the optimizer for all of a weight on one device, with casting it for the model.
    double updateSeconds(TensorId weight) const { return m_updates[static_cast<std::size_t>(weight.index)]; }
    /// Likewise of one that only operators placed apart read, of which the former is 0.
    double updateSecondsAside(TensorId weight) const
    {
        return m_updatesAside[static_cast<std::size_t>(weight.index)];
    }
    /// Whether the optimizer updates more precise copies of some weights than the model reads.
    bool hasMasters() const { return m_hasMasters; }
    const WeightBytes &bytesOf(TensorId weight) const
    {
        return m_weightBytes[static_cast<std::size_t>(weight.index)];
    }
    struct LayerBytes { ///< Of weights that have a gradient, whole.
        double reducedBytes = 0; ///< Of their gradients, as they are sent.
        double modelBytes = 0; ///< As the model reads them.
    };
    /// Of that whose operators read a weight first; of what belongs to none, of all that one operator does.
    LayerBytes layerWith(TensorId weight) const
    {
        return m_layerWith[static_cast<std::size_t>(weight.index)];
    }
    /// None has more of either.
    LayerBytes largestLayer() const { return m_largestLayer; }
    /// Bytes of the largest gradient of one, as it is sent, whole.
    double largestReduced() const { return m_allWeights.largest; }
    /// What no choice goes below on one device: weights at the smallest shares that operators can read,
    /// states at any.
    WeightBytes leastWeightBytes() const;
    /// Likewise of what one micro-batch keeps for its backward pass, by forward operator.
    /// @param plan  without stages: as if all were one
    std::vector<double> leastKeptBytes(const StagePlan &plan) const;
    /// Seconds of the kernels of forward operators at their cheapest. @param runs  how often each runs
    double leastForwardSeconds(const std::vector<std::int32_t> &runs) const;
    /// Of all kernels of a micro-batch, both passes, each at its cheapest.
    double leastKernelSeconds() const;
    /// The tensor in whose memory a forward one lies: what a view shows, itself for others.
    TensorId storageOf(TensorId tensor) const { return m_storageOf[static_cast<std::size_t>(tensor.index)]; }
    /// The gradient of a tensor; invalid if it has none.
    TensorId gradientOf(TensorId tensor) const
    {
        return m_gradientOf[static_cast<std::size_t>(tensor.index)];
    }

    const OperatorChoice &choiceOf(std::size_t op, std::int32_t choice) const
    {
        return m_choices[op]->choices[static_cast<std::size_t>(choice)];
    }
    /// Whether rows place an operator apart: see `AxisSetting::aside`.
    bool isAside(std::size_t op) const
    {
        return m_setting.aside && !m_setting.aside->empty() && (*m_setting.aside)[op];
    }
    /// As `ChoiceFinder::inTurns`.
    std::optional<OperatorInTurns> inTurns(std::size_t op, std::int32_t choice, const Split &turns) const
    {
        return m_finder.inTurns({static_cast<std::int32_t>(op)}, choiceOf(op, choice), turns);
    }
    std::size_t operatorCount() const { return m_choices.size(); }
    std::size_t choiceCount(std::size_t op) const { return m_choices[op]->choices.size(); }
    const AxisSetting &setting() const { return m_setting; }

    /// @param choice  by forward operator
    /// @param shares  by tensor: how much of it a device has, where replicas cut it too; may be empty
    OperatorTimes timesOf(
        const std::vector<std::int32_t> &choice, const std::vector<double> &shares = {}) const;
    /// By tensor: how much of it a device of the axes has where it is made, under `choice`; 1 for weights.
    std::vector<double> sharesOf(const std::vector<std::int32_t> &choice) const;

    /// Seconds to bring a tensor from one layout to another; 0 where both are the same.
    double moveSeconds(ShardLayout from, ShardLayout to, const MovedTensor &tensor) const
    {
        return movesOf(tensor)(from, to);
    }
    /// Which part of a weight a device of the axes holds under `choice`: all layouts in which it is read.
    double shareOf(TensorId weight, const std::vector<std::int32_t> &choice) const;
    /// Seconds of a backward pass for gradients of weights alone: what a pass of its own may do later, with
    /// what it waits for.
    double apartSeconds(std::size_t op, std::int32_t choice, const OperatorTimes &times) const
    {
        return makesWeightsAlone(op) ? times.backward[op] : choiceOf(op, choice).weightGradients;
    }
    /// Seconds of the optimizer for the parts of those weights on one device that `op` reads first.
    double updateSecondsOf(std::size_t op, const std::vector<std::int32_t> &choice) const;

    /// A tensor whose layouts matter: by whom it is made and read.
    struct Meeting {
        TensorId tensor{};
        std::int32_t producer = -1; ///< Forward operator; -1 for weights.
        std::size_t output = 0;
        std::vector<std::pair<std::int32_t, std::size_t>> readers{}; ///< Forward operator and slot.
        std::int64_t bytes = 0; ///< Whole, of one micro-batch.
        std::int64_t gradientBytes = 0; ///< 0 where it has no gradient.
        Combination combination = Combination::Sum;
        MovedTensor cuts{}; ///< The dimensions that the axes can cut.
        /// All layouts in which some choice of some reader reads it.
        std::vector<ShardLayout> layouts{};
        std::int64_t terms = 0; ///< Readers that make a gradient of it, whatever is chosen.
        /// Seconds that devices compute at least between making it and its first reader, whatever is chosen:
        /// communication for it runs beside that. Likewise between the last of its gradients and what reads
        /// them.
        double beforeRead = 0;
        double beforeReadBack = 0;

        MovedTensor forward() const; ///< As it is moved,
        MovedTensor backward() const; ///< and its gradient.
    };
    const std::vector<Meeting> &meetings() const { return m_meetings; }
    /// Of operators that rows have cut alike, or follow their producers: infinite where they do not.
    const std::vector<CostFactor> &ties() const { return m_ties; }
    /// What tensors communicate, as tables: the same at all prices.
    MeetingTables &tables() const;
    /// For networks about its operators.
    NetworkOptions networkOptions() const { return {.orders = &m_orders, .work = m_setting.work}; }
    /// The operators that meet there, ascending.
    static std::vector<std::int32_t> scopeOf(const Meeting &meeting);

    enum class Passes : std::uint8_t { Both, Forward, Backward };
    /// Seconds of communication for a tensor that devices wait for, if nothing else runs beside what they
    /// compute meanwhile; infinite where its readers cannot be together.
    /// @param readers  as in `meeting`; @param producer  null for weights
    double meetingSeconds(const Meeting &meeting, const std::vector<const OperatorChoice *> &readers,
        const OperatorChoice *producer, Passes passes = Passes::Both) const;
    /// One reader's part of them if all read it alike. The parts of all are no more than `meetingSeconds`.
    double shareSeconds(const Meeting &meeting, std::size_t reader, const OperatorChoice &choice,
        const OperatorChoice *producer, Passes passes = Passes::Both) const;
    /// What operator `op` costs itself, its weights included.
    double ownSeconds(std::size_t op, const OperatorChoice &choice, const PartitionPricing &pricing) const;
    /// Number of what is alike: equal for operators that share their choices.
    std::int32_t kindOf(std::size_t op) const { return m_choices[op]->kind; }

private:
    /// What an operator holds back to make gradients of its weights later.
    double deferredBytes(
        std::size_t op, const OperatorChoice &choice, const std::vector<std::int32_t> &deferrers) const;
    /// `moveSeconds` of one tensor.
    struct Moves {
        const PartitionProblem &problem;
        MovedTensor tensor{};
        const LayoutMoves::Table *table = nullptr; ///< Where there are two axes.

        double operator()(ShardLayout from, ShardLayout to) const;
    };
    Moves movesOf(const MovedTensor &tensor) const
    {
        return {*this, tensor, m_setting.outerParts > 1 ? &m_moves.of(tensor) : nullptr};
    }

    /// Seconds of bringing a tensor where it is wanted.
    struct Moving {
        double sent = 0; ///< Between devices, beside what they compute.
        double copied = 0; ///< On each of them.
        double all() const { return sent + copied; }
        double exposed(double beside) const { return copied + std::max(0.0, sent - beside); }
        Moving &operator+=(const Moving &other)
        {
            sent += other.sent;
            copied += other.copied;
            return *this;
        }
    };
    Moving movingFrom(ShardLayout from, double seconds) const;

    void findMeetings();
    void findLeastBetween();
    std::vector<CostFactor> findTies() const;
    std::int64_t bytesOf(TensorId tensor, DataType type) const;
    MovedTensor cutsOf(TensorId tensor) const;
    Moving moveForward(const Meeting &meeting, ShardLayout made, const std::vector<ShardLayout> &read) const;
    Moving moveBackward(const Meeting &meeting, const std::vector<ShardLayout> &made, ShardLayout read) const;
    Moving haloForward(
        const Meeting &meeting, std::size_t reader, const OperatorChoice &choice, ShardLayout made) const;
    Moving haloBackward(const Meeting &meeting, std::size_t reader, const OperatorChoice &choice) const;
    /// By slot, what is kept and not computed again under some choice.
    std::vector<KeptPlace> keptPlaces(std::size_t op, const StagePlan &plan) const;
    void findWeights();
    void findLayers();
    void leaveOutWeightsAside();

    const AxisSetting m_setting;
    const Graph &m_graph;
    const LayoutMoves m_moves; ///< Over both axes.
    std::vector<bool> m_makesWeightsAlone{}; ///< By forward operator.
    GroupShape m_group{}; ///< Of the axis, where it is the only one.
    ChoiceFinder m_finder;
    std::vector<const OperatorChoices *> m_choices{}; ///< By forward operator.
    std::vector<Meeting> m_meetings{};
    std::vector<TensorId> m_gradientOf{}; ///< By tensor, as those below.
    std::vector<TensorId> m_storageOf{};
    std::vector<double> m_updates{}; ///< By tensor.
    std::vector<double> m_updatesAside{}; ///< By tensor.
    bool m_hasMasters = false;
    std::vector<double> m_reducedBytes{}; ///< By tensor: of its gradient, as it is sent.
    struct AllWeights { ///< That have a gradient.
        double count = 0;
        double reducedBytes = 0;
        double modelBytes = 0;
        double largest = 0; ///< See `largestReduced`.
        double update = 0; ///< Seconds.
    };
    AllWeights m_allWeights{};
    std::vector<LayerBytes> m_layerWith{}; ///< By tensor.
    LayerBytes m_largestLayer{};
    std::vector<std::int32_t> m_readers{}; ///< By tensor: forward operators.
    std::vector<WeightBytes> m_weightBytes{}; ///< By tensor.
    OperatorId m_impossible{};
    std::vector<CostFactor> m_ties{};
    mutable EliminationOrders m_orders{};
    mutable std::unique_ptr<MeetingTables> m_tables{}; ///< Made when they are first asked for.
};

} // namespace planloom
