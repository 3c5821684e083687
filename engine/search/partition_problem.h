#pragma once

#include "engine/search/cost_network.h"
#include "engine/search/operator_choices.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What one micro-batch takes of the devices of an axis, operator by operator (forward ones, by index).
/// Communication counts for the operator that waits for it: forward for the first reader, backward for the
/// operator whose outputs' gradients are brought together.
struct OperatorTimes {
    std::vector<double> forward{}; ///< Seconds, with communication.
    std::vector<double> backward{};
    std::vector<double> forwardKernels{}; ///< Without.
    double communication = 0; ///< Of both passes.
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

    /// @param secondsPerByte  price of a byte held on a device: of weights with their states, and of what is
    ///   kept for the backward pass of so many micro-batches
    /// @param keptMicroBatches  held at the same time
    /// @param reductions  how much of the time counts in which gradients of weights are reduced over the
    /// axis,
    ///   once a step: 0 where that is hidden behind the backward pass, 1 where it is not
    CostNetwork network(double secondsPerByte, double keptMicroBatches, double reductions) const;

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
        const OperatorChoice *producer, double reductions) const;

    const AxisSetting m_setting;
    const Graph &m_graph;
    GroupShape m_group{};
    ChoiceFinder m_finder;
    std::vector<const OperatorChoices *> m_choices{}; ///< By forward operator.
    std::vector<Meeting> m_meetings{};
    std::vector<double> m_weightBytes{}; ///< By tensor: with gradient and states; 0 for others.
    std::vector<std::int32_t> m_keepers{}; ///< By tensor: backward operators that read it again.
    OperatorId m_impossible{};
};

} // namespace planloom
