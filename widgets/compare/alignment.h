#pragma once

#include "engine/base/ids.h"
#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <optional>

namespace planloom {

/// The event at which two timelines are laid over each other.
enum class AlignAt : std::uint8_t {
    Start, ///< Of the step.
    End,
    FirstBackward, ///< Where the first backward pass begins on any device.
    Gradients, ///< Where the first gradients are reduced, or the optimizer begins.
    Operator, ///< The first span of a chosen operator.
};
constexpr int kAlignAtCount = 5;

/// When the event is in a timeline, in nanoseconds; nothing if there is none.
/// O(blocks), of an operator O(its spans)
std::optional<std::int64_t> timeOf(AlignAt event, const TimelineScene &scene, OperatorId op = {});

} // namespace planloom
