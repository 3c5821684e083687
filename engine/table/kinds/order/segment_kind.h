#pragma once

#include <array>
#include <cstdint>

namespace planloom {

/// What a block, or a device's share of it, is for. Blocks that schedules and rows name are of `kPasses`:
/// what a stage does with a micro-batch in one go.
enum class SegmentKind : std::uint8_t {
    Prologue, ///< Once per step, first: what is needed whole from the whole batch.
    Forward, ///< Once per micro-batch.
    Backward, ///< In a schedule: of a stage whose backward pass is split, what InputGradient is.
    /// Of a stage whose backward pass is split: all of it but what a WeightGradient runs. In a schedule: of
    /// other stages, all of it.
    InputGradient,
    WeightGradient, ///< Gradients of weights, and of what is made of weights alone; behind the InputGradient.
    Transfer, ///< Once per micro-batch: sends and receives between stages.
    Reduce, ///< Once per update: gradients over replicas.
    Optimizer, ///< Once per update: optimizer operators and the new weights' way to where they are used.
};
const char *nameOf(SegmentKind kind); ///< "input-gradient"

inline constexpr std::array kPasses{
    SegmentKind::Forward, SegmentKind::Backward, SegmentKind::InputGradient, SegmentKind::WeightGradient};

/// Backward, or one half of it.
constexpr bool isBackward(SegmentKind kind)
{
    return kind == SegmentKind::Backward || kind == SegmentKind::InputGradient
        || kind == SegmentKind::WeightGradient;
}
/// Computes in every micro-batch: a block that schedules order.
constexpr bool isPass(SegmentKind kind)
{
    return kind == SegmentKind::Forward || isBackward(kind);
}
/// Runs once per update: Reduce, Optimizer.
constexpr bool isOfUpdate(SegmentKind kind)
{
    return kind == SegmentKind::Reduce || kind == SegmentKind::Optimizer;
}

} // namespace planloom
