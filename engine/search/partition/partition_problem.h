#pragma once

#include "engine/search/partition/cost_network.h"
#include "engine/search/partition/meeting_moves.h"
#include "engine/search/partition/model_weights.h"
#include "engine/search/partition/operator_choices.h"

#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace planloom {

struct HeldPricing; // operator_memory.h

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

class MeetingTables;

/// How every forward operator is to be partitioned over one mesh axis, or two, as a network of costs (seconds
/// of a micro-batch on one device, and bytes at a price): a variable for each operator, a table for what it
/// costs itself, and one for each tensor that is made in one way and read in others, or whose gradients come
/// in several forms (meeting_moves.h). For one thread.
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
    /// What of a micro-batch's tensor, or its gradient, matters where it is moved.
    MovedTensor moved(TensorId tensor, bool gradient) const;
    /// Of a micro-batch's tensor in some layout, on a device.
    std::int64_t localBytes(TensorId tensor, ShardLayout layout) const;

    /// Costs are seconds of one micro-batch; those of a whole step count by their share. Where very many
    /// operators read one tensor, each of them has its part of what would be if all read it alike: the
    /// cheapest choice then costs no less than the network's bound, but perhaps more than its cost.
    CostNetwork network(const PartitionPricing &pricing) const;
    /// Of its operators alone: what each costs. Those of one kind that cost the same share a table.
    CostNetwork networkOf(const std::function<double(std::size_t, const OperatorChoice &)> &costOf) const;
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
    /// What no choice goes below on one device: weights at the smallest shares that operators can read,
    /// states at any.
    WeightBytes leastWeightBytes() const;
    /// Seconds of the kernels of forward operators at their cheapest. @param runs  how often each runs
    double leastForwardSeconds(const std::vector<std::int32_t> &runs) const;
    /// Of all kernels of a micro-batch, both passes, each at its cheapest.
    double leastKernelSeconds() const;
    /// The tensor in whose memory a forward one lies: what a view shows, itself for others.
    TensorId storageOf(TensorId tensor) const { return m_storageOf[at(tensor)]; }
    const ModelWeights &weights() const { return m_weights; }
    /// The gradient of a tensor; invalid if it has none.
    TensorId gradientOf(TensorId tensor) const { return m_weights.gradientOf(tensor); }

    const std::vector<OperatorChoice> &choicesOf(std::size_t op) const { return m_choices[op]->choices; }
    const OperatorChoice &choiceOf(std::size_t op, std::int32_t choice) const
    {
        return choicesOf(op)[at(choice)];
    }
    /// Of an operator's choices; 0 where none can be.
    template<typename Seconds> double leastOf(std::size_t op, const Seconds &seconds) const
    {
        double least = std::numeric_limits<double>::infinity();
        for (const OperatorChoice &choice : choicesOf(op))
            least = std::min(least, seconds(choice));
        return std::isfinite(least) ? least : 0;
    }
    bool isAside(std::size_t op) const { return m_setting.isAside(op); }
    /// As `ChoiceFinder::inTurns`.
    std::optional<OperatorInTurns> inTurns(std::size_t op, std::int32_t choice, const Split &turns) const
    {
        return m_finder.inTurns({static_cast<std::int32_t>(op)}, choiceOf(op, choice), turns);
    }
    std::size_t operatorCount() const { return m_choices.size(); }
    std::size_t choiceCount(std::size_t op) const { return choicesOf(op).size(); }
    const AxisSetting &setting() const { return m_setting; }
    const Graph &graph() const { return m_graph; }

    /// By tensor: how much of it a device of the axes has where it is made, under `choice`; 1 for weights.
    std::vector<double> sharesOf(const std::vector<std::int32_t> &choice) const;

    /// Which part of a weight a device of the axes holds under `choice`: all layouts in which it is read.
    double shareOf(TensorId weight, const std::vector<std::int32_t> &choice) const;
    /// Seconds of the optimizer for the parts of those weights on one device that `op` reads first.
    double updateSecondsOf(std::size_t op, const std::vector<std::int32_t> &choice) const;

    const std::vector<Meeting> &meetings() const { return m_meetings; }
    const MeetingMoves &moves() const { return m_moves; }
    /// What the readers of a meeting's tensor chose, and who makes it: null for weights.
    MeetingMoves::Readers readersOf(const Meeting &meeting, const std::vector<std::int32_t> &choice) const;
    const OperatorChoice *producerOf(const Meeting &meeting, const std::vector<std::int32_t> &choice) const
    {
        return meeting.producer < 0 ? nullptr : &choiceOf(at(meeting.producer), choice[at(meeting.producer)]);
    }
    /// Of operators that rows have cut alike, or follow their producers: infinite where they do not.
    const std::vector<CostFactor> &ties() const { return m_ties; }
    /// What tensors communicate, as tables: the same at all prices.
    MeetingTables &tables() const;
    /// For networks about its operators.
    NetworkOptions networkOptions() const { return {.orders = &m_orders, .work = m_setting.work}; }
    /// What operator `op` costs itself, its weights included.
    double ownSeconds(std::size_t op, const OperatorChoice &choice, const PartitionPricing &pricing) const;
    /// Number of what is alike: equal for operators that share their choices.
    std::int32_t kindOf(std::size_t op) const { return m_choices[op]->kind; }

private:
    void findMeetings();
    void findLeastBetween();
    std::int64_t bytesOf(TensorId tensor, DataType type) const;
    MovedTensor cutsOf(TensorId tensor) const;

    const AxisSetting m_setting;
    const Graph &m_graph;
    const MeetingMoves m_moves;
    ChoiceFinder m_finder;
    std::vector<const OperatorChoices *> m_choices{}; ///< By forward operator, as the next.
    std::vector<bool> m_makesWeightsAlone{};
    std::vector<TensorId> m_storageOf{}; ///< By tensor.
    const ModelWeights m_weights;
    std::vector<Meeting> m_meetings{};
    OperatorId m_impossible{};
    std::vector<CostFactor> m_ties{};
    mutable EliminationOrders m_orders{};
    mutable std::unique_ptr<MeetingTables> m_tables{}; ///< Made when they are first asked for.
};

} // namespace planloom
