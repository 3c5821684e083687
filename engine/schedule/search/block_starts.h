#pragma once

#include "engine/schedule/search/placement.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// When a block of one micro-batch starts, or one that runs once (of micro-batch 0).
struct BlockStart {
    std::int32_t block = 0; ///< Index into `Placement::blocks`.
    std::int32_t microBatch = 0;
    std::int64_t start = 0;
    friend auto operator<=>(const BlockStart &, const BlockStart &) = default;
};

enum class ViolationKind : std::uint8_t {
    Missing, ///< A block of a micro-batch has no start, or several; or there is no such block.
    Dependency, ///< `second` starts before `first`, which it waits for, has ended.
    Overlap, ///< Both keep one queue of a device busy at once.
    /// `first` takes more memory than its device has left; `second`, the next that gives some back, would
    /// have to come before it (or is the last that took some, where none gives any back).
    Memory,
};

/// One thing that is wrong in a schedule, with its two blocks.
struct ScheduleViolation {
    ViolationKind kind = ViolationKind::Missing;
    BlockStart first{};
    BlockStart second{}; ///< As `first` where it takes one alone.
    std::int32_t device = -1; ///< Of overlaps and memory.
    std::string text{}; ///< A sentence for a person.
    friend bool operator==(const ScheduleViolation &, const ScheduleViolation &) = default;
};

/// Everything that is wrong in a schedule of `microBatches` micro-batches, by kind; empty if it is valid.
/// Knows nothing of how schedules are found: it looks at pairs of starts alone. Memory that is given back and
/// taken at the same moment is given back first. Of a valid placement. O(n log n + n edges / blocks).
std::vector<ScheduleViolation> violationsOf(
    const Placement &placement, std::int32_t microBatches, const std::vector<BlockStart> &starts);

/// What a valid schedule comes to.
struct ScheduleFigures {
    std::int64_t makespan = 0; ///< From the first start to the last end.
    std::vector<std::int64_t> peakMemory{}; ///< By device, at least 0.
    std::vector<std::int64_t> busy{}; ///< By device: on queue 0.
    std::int32_t inFlight = 0; ///< The most micro-batches that have begun and not ended at once.
    friend bool operator==(const ScheduleFigures &, const ScheduleFigures &) = default;
};

ScheduleFigures figuresOf(const Placement &placement, const std::vector<BlockStart> &starts);

} // namespace planloom
