#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/table/kinds/schedule.h"

#include <cstdint>
#include <span>
#include <vector>

namespace planloom {

enum class Pass : std::uint8_t { Forward, Backward };

/// A block of a pipeline: what one stage does in one pass.
struct BlockKey {
    StageId stage{};
    Pass pass = Pass::Forward;
    friend auto operator<=>(const BlockKey &, const BlockKey &) = default;
};

/// A block of one micro-batch.
struct ScheduledBlock {
    BlockKey block{};
    std::int32_t microBatch = 0;
    friend auto operator<=>(const ScheduledBlock &, const ScheduledBlock &) = default;
};

/// A pipeline schedule as a value: what every rank runs, in order. A rank is a set of devices that run the
/// same stages.
struct Schedule {
    std::vector<std::vector<ScheduledBlock>> ranks{};
    friend bool operator==(const Schedule &, const Schedule &) = default;
};

/// What a template makes a schedule for.
struct ScheduleSetting {
    std::vector<std::int32_t>
        rankOf{}; ///< By stage; ranks are numbered from 0 in the order of their first stages.
    std::int32_t rankCount = 1;
    std::int32_t microBatches = 1;
    bool backward = true; ///< There is a backward pass.
};

/// A named schedule.
struct ScheduleTemplate {
    ScheduleKind kind{};
    const char *meaning = ""; ///< One line for a person.
    const char *paper = ""; ///< Where it comes from.
    /// The schedule of a setting; null for templates that only say what goes first among blocks that could
    /// start (see `orderBlocks`).
    /// @return InvalidInput with what the template needs
    Result<Schedule> (*make)(const ScheduleSetting &setting) = nullptr;
};

/// All templates, in the order of `ScheduleKind`.
std::span<const ScheduleTemplate> scheduleTemplates();

/// Megatron-LM's interleaved 1F1B (arXiv:2104.04473, section 2.2). With p ranks and v stages on each, stage s
/// lies on rank s mod p. Rank r runs its v chunks in turn for p micro-batches at a time:
///
///     forward    number k is chunk (k / p) mod v of micro-batch (k / (p v)) p + k mod p
///     backward   the same, chunks from the last to the first
///
/// min(2 (p - r - 1) + (v - 1) p, m v) forward blocks come first, then one forward and one backward block in
/// turn.
/// @return InvalidInput if stages do not lie so, or p does not divide the micro-batches
Result<Schedule> interleavedSchedule(const ScheduleSetting &setting);

} // namespace planloom
