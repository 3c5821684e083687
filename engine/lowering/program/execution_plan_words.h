#pragma once

#include <array>

namespace planloom {

// What the readers and the writer of execution plans share (execution_plan_json.h).

// Versions of the document: the first is of plans that are Float32 throughout, which older readers
// understand.
inline constexpr int kPlanVersion = 1;
inline constexpr int kPrecisionVersion = 2; ///< With precisions and types of buffers.
inline constexpr int kCombinationVersion = 3; ///< With summands that are not summed.
inline constexpr int kUpdatesVersion = 4; ///< With versions of weights, or several updates in a step.
inline constexpr int kDirectionsVersion = 5; ///< With a queue of its own for what stages send back.
inline constexpr int kNumbersVersion = 6; ///< With attributes that are infinite, no number, or empty lists.

/// By `SplitOver`.
inline constexpr std::array<const char *, 4> kSplitOver{"devices", "units", "slices", "lanes"};

} // namespace planloom
