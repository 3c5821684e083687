#pragma once

#include "engine/analyse/critical_path.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// Why a device computes nothing, by what runs elsewhere in the meantime: the chain that it waits for.
///
/// Each moment of a bubble has one reason, the first of these that holds:
/// - NoWork: the device computes nothing in the whole step.
/// - Memory: a row that bounds the micro-batches in flight holds back a forward block that could run; or the
///   chain copies to or from the host, or waits until memory is free to be written over.
/// - Communication: the chain communicates.
/// - Fill, Drain: of a pipeline, before the device's first block and behind its last pass.
/// - Imbalance: the chain computes on a device that computes longer in the step than this one; in all no more
///   than by how much the busiest one does.
/// - Fill, Drain again: before the first backward block of the device's stages, and after their last forward
///   block (`StagePhases`), as where 1F1B waits for the first micro-batch to come back.
/// - Dependency: the chain computes elsewhere.
/// - Other: nothing that is known of; only in measured steps.
enum class IdleReason : std::uint8_t {
    Fill,
    Drain,
    Imbalance,
    Dependency,
    Memory,
    Communication,
    NoWork,
    Other,
};
constexpr std::size_t kIdleReasonCount = 8;
const char *nameOf(IdleReason reason); ///< "fill", "no work"
/// "waits for communication": what a tooltip says.
const char *sentenceOf(IdleReason reason);

/// Nanoseconds by IdleReason.
using IdleParts = std::array<std::int64_t, kIdleReasonCount>;

/// A stretch of time in which a device's compute queue does nothing, between two of its spans or an end of
/// the step.
struct IdleGap {
    std::int64_t begin = 0; ///< Nanoseconds.
    std::int64_t end = 0;
    IdleParts parts{}; ///< Add up to end - begin.
    friend bool operator==(const IdleGap &, const IdleGap &) = default;

    IdleReason largest() const; ///< The reason of most of it.
};

/// All bubbles of a step. For each device they add up to the step without what its compute queue runs; all
/// devices' together to `bubbleRatio` x devices x step.
struct IdleTimes {
    std::vector<std::vector<IdleGap>> gaps{}; ///< By device, in order of time.
    std::vector<IdleParts> devices{}; ///< By device: the sums over its gaps.
    IdleParts total{}; ///< Over all devices.

    /// The gap of `device` at `time`; null if it computes then. O(log gaps)
    const IdleGap *gapAt(DeviceId device, std::int64_t time) const;
};

/// @param plan  names the rows about micro-batches in flight; null takes none of them for a reason
/// @return nothing if stopped, or if the dependencies are of another timeline
/// O(spans + dependencies + devices of different timelines x spans of their chains).
std::optional<IdleTimes> idleTimes(const ExecutionPlan &execution, const Plan *plan, const Timeline &timeline,
    const TimelineDependencies &dependencies, std::stop_token stop = {});

} // namespace planloom
