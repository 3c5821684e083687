#pragma once

#include "engine/search/cost_network.h"
#include "engine/search/operator_choices.h"

#include <compare>
#include <cstdint>
#include <optional>
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

/// What counts as the cost of a partition beside the time of its operators and what they communicate.
struct PartitionPricing {
    double secondsPerByte = 0; ///< Of a byte held on a device: weights with their states, and what is kept.
    double keptMicroBatches = 1; ///< Whose kept values are held at the same time.
    bool accumulates = true; ///< Gradients of weights are added up over micro-batches.
    double updates = 1; ///< How much of the optimizer's work a device does for the weights that it has.
    /// Of the time in which gradients of weights are reduced, how much counts (0 to 1); as much of the
    /// backward pass of one micro-batch, behind which it may be hidden, is taken off: the dual of max(0,
    /// reductions - backward).
    double reductions = 0;
    double replicaSecondsPerByte = 0; ///< Of a gradient reduced over replicas.
    double allSecondsPerByte = 0; ///< Of one reduced over replicas and the axis, whose devices sum it up.
    friend auto operator<=>(const PartitionPricing &, const PartitionPricing &) = default;
};

/// How every forward operator is to be partitioned over one mesh axis, as a network of costs (seconds of a
/// micro-batch on one device, and bytes at a price): a variable for each operator, a table for what it costs
/// itself, and one for each tensor that is made in one way and read in others, or whose gradients come in
/// several forms. Consumers of one tensor are taken together: what one of them has gathered the others have,
/// and their gradients are added up before they are reduced.
class PartitionProblem
{
public:
    /// @param group  the axis' devices
    PartitionProblem(const AxisSetting &setting, GroupShape group);

    /// Some operator has no choice that its rows allow.
    OperatorId impossible() const { return m_impossible; }

    /// Costs are seconds of one micro-batch; those of a whole step count by their share.
    CostNetwork network(const PartitionPricing &pricing) const;

    /// Seconds in which the gradients that one micro-batch gives of a weight are put where they add up.
    struct Accumulation {
        double first = 0; ///< Where nothing is there yet.
        double more = 0;
        double cast = 0; ///< Of casting them instead, where they are reduced at once.
        bool overShards = false; ///< The axis' devices make a summand each.
    };
    /// Of the gradient that operator `op` makes of its input `slot`; nothing if it makes none.
    std::optional<Accumulation> accumulationOf(
        std::size_t op, std::size_t slot, const OperatorChoice &choice) const;
    /// Seconds of the optimizer for all of a weight on one device, with casting it for the model.
    double updateSeconds(TensorId weight) const { return m_updates[static_cast<std::size_t>(weight.index)]; }
    /// The gradient of a tensor; invalid if it has none.
    TensorId gradientOf(TensorId tensor) const
    {
        return m_gradientOf[static_cast<std::size_t>(tensor.index)];
    }

    const OperatorChoice &choiceOf(std::size_t op, std::int32_t choice) const
    {
        return m_choices[op]->choices[static_cast<std::size_t>(choice)];
    }
    std::size_t operatorCount() const { return m_choices.size(); }
    const AxisSetting &setting() const { return m_setting; }

    /// @param choice  by forward operator
    /// @param shares  by tensor: how much of it a device has, where another axis cuts it too; may be empty
    OperatorTimes timesOf(
        const std::vector<std::int32_t> &choice, const std::vector<double> &shares = {}) const;
    /// By tensor: how much of it a device of the axis has where it is made, under `choice`; 1 for weights.
    std::vector<double> sharesOf(const std::vector<std::int32_t> &choice) const;

    /// Seconds to bring a tensor from one layout to another; 0 where both are the same.
    double moveSeconds(AxisLayout from, AxisLayout to, std::int64_t bytes, Combination combination) const;
    /// Which part of a weight a device of the axis holds under `choice`: all layouts in which it is read.
    double shareOf(TensorId weight, const std::vector<std::int32_t> &choice) const;

    /// A tensor whose layouts matter: by whom it is made and read.
    struct Meeting {
        TensorId tensor{};
        std::int32_t producer = -1; ///< Forward operator; -1 for weights.
        std::size_t output = 0;
        std::vector<std::pair<std::int32_t, std::size_t>> readers{}; ///< Forward operator and slot.
        std::int64_t bytes = 0; ///< Whole, of one micro-batch.
        std::int64_t gradientBytes = 0; ///< 0 where it has no gradient.
        Combination combination = Combination::Sum;
    };
    const std::vector<Meeting> &meetings() const { return m_meetings; }

private:
    void findMeetings();
    std::int64_t bytesOf(TensorId tensor, DataType type) const;
    double forwardSeconds(const Meeting &meeting, AxisLayout made, const std::vector<AxisLayout> &read) const;
    double backwardSeconds(
        const Meeting &meeting, const std::vector<AxisLayout> &made, AxisLayout read) const;
    double heldBytes(std::size_t op, const OperatorChoice &choice, double keptMicroBatches) const;
    double meetingSeconds(const Meeting &meeting, const std::vector<const OperatorChoice *> &readers,
        const OperatorChoice *producer) const;
    double ownSeconds(std::size_t op, const OperatorChoice &choice, const PartitionPricing &pricing) const;
    void findWeights();

    const AxisSetting m_setting;
    const Graph &m_graph;
    GroupShape m_group{};
    ChoiceFinder m_finder;
    std::vector<const OperatorChoices *> m_choices{}; ///< By forward operator.
    std::vector<Meeting> m_meetings{};
    std::vector<TensorId> m_gradientOf{}; ///< By tensor.
    std::vector<double> m_updates{}; ///< By tensor.
    std::vector<std::int32_t> m_readers{}; ///< By tensor: forward operators.
    std::vector<double> m_weightBytes{}; ///< By tensor: with gradient and states; 0 for others.
    std::vector<std::int32_t> m_keepers{}; ///< By tensor: backward operators that read it again.
    OperatorId m_impossible{};
};

} // namespace planloom
