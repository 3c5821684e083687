#pragma once

#include "engine/search/partition/layout_moves.h"
#include "engine/search/partition/operator_choices.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace planloom {

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
    std::int32_t firstReader() const { return std::min_element(readers.begin(), readers.end())->first; }
    std::vector<std::int32_t> scope() const; ///< The operators that meet there, ascending.
};

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

enum class CountedPasses : std::uint8_t { Both, Forward, Backward };

/// What it takes to bring tensors from where operators make them to where others read them. Consumers of one
/// tensor are taken together: what one of them has gathered the others have, and their gradients are added up
/// before they are reduced. For one thread.
class MeetingMoves
{
public:
    /// @param setting  must outlive it; @param groups  the axes' devices
    MeetingMoves(const AxisSetting &setting, const ShardGroups &groups);

    /// Seconds to bring a tensor from one layout to another; 0 where both are the same.
    double seconds(ShardLayout from, ShardLayout to, const MovedTensor &tensor) const
    {
        return hopsOf(tensor)(from, to);
    }

    using Readers = std::vector<const OperatorChoice *>; ///< As in `Meeting::readers`.
    /// What the readers of a tensor need, from how it is made; and its producer of its gradients.
    Moving forward(const Meeting &meeting, const Readers &readers, const OperatorChoice &producer) const;
    Moving backward(const Meeting &meeting, const Readers &readers, const OperatorChoice &producer) const;

    /// Seconds of communication for a tensor that devices wait for, if nothing else runs beside what they
    /// compute meanwhile; infinite where its readers cannot be together.
    /// @param producer  null for weights
    double seconds(const Meeting &meeting, const Readers &readers, const OperatorChoice *producer,
        CountedPasses passes = CountedPasses::Both) const;
    /// One reader's part of them if all read it alike. The parts of all are no more than those.
    double shareSeconds(const Meeting &meeting, std::size_t reader, const OperatorChoice &choice,
        const OperatorChoice *producer, CountedPasses passes = CountedPasses::Both) const;

private:
    /// Seconds of one tensor's moves.
    struct Hops {
        const MeetingMoves &moves;
        MovedTensor tensor{};
        const LayoutMoves::Table *table = nullptr; ///< Where there are two axes.

        double operator()(ShardLayout from, ShardLayout to) const;
        Moving moving(ShardLayout from, ShardLayout to) const;
    };
    Hops hopsOf(const MovedTensor &tensor) const
    {
        return {*this, tensor, m_setting.outerParts > 1 ? &m_moves.of(tensor) : nullptr};
    }
    Moving addedUp(const Meeting &meeting, const std::vector<ShardLayout> &made, ShardLayout read) const;
    Moving haloForward(
        const Meeting &meeting, std::size_t reader, const OperatorChoice &choice, ShardLayout made) const;
    Moving haloBackward(const Meeting &meeting, std::size_t reader, const OperatorChoice &choice) const;

    const AxisSetting &m_setting;
    const LayoutMoves m_moves; ///< Over both axes.
    const GroupShape m_group; ///< Of the axis, where it is the only one.
};

} // namespace planloom
