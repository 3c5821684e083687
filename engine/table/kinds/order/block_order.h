#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/table/kinds/order/interleave.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// A block of a pipeline: what one stage does in one pass, of one lane and slice where it has several
/// (plan/block_places.h).
struct BlockKey {
    StageId stage{};
    SegmentKind pass = SegmentKind::Forward;
    std::int32_t slice = 0;
    std::int32_t lane = 0;
    friend auto operator<=>(const BlockKey &, const BlockKey &) = default;
};

/// A block of one micro-batch.
struct ScheduledBlock {
    BlockKey block{};
    std::int32_t microBatch = 0;
    friend auto operator<=>(const ScheduledBlock &, const ScheduledBlock &) = default;
};

/// A pipeline schedule as a value: what every rank runs, in order. A rank is a set of devices that run the
/// same stages, or the same lanes of stages; blocks of stages on all ranks stand in the order of each.
struct Schedule {
    std::vector<std::vector<ScheduledBlock>> ranks{};
    /// Neighbours in the order of one rank that run side by side: each is cut where it has communicated, and
    /// their slices run in turn, so that one computes while the other waits for what it communicates.
    std::vector<std::pair<ScheduledBlock, ScheduledBlock>> interleaved{};
    friend bool operator==(const Schedule &, const Schedule &) = default;
};

/// "0F0 0F1 0B0 / 1F0 1B0|1F1": blocks as stage, pass (F, B; I and W for gradients of inputs and of weights)
/// and micro-batch, ".2" for a slice and "@1" for a lane that is not the first; ranks behind one another, and
/// a bar between two that run side by side.
std::string toString(const Schedule &schedule);
std::string toString(const ScheduledBlock &block);

/// What `toString` writes. @return InvalidInput with the block that is none
Result<Schedule> scheduleFromText(std::string_view text);

} // namespace planloom
