#pragma once

#include "engine/base/ids.h"
#include "engine/base/shared_vector.h"
#include "engine/base/units.h"
#include "engine/lowering/program/execution_plan.h"

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Spans of one training step, predicted or measured, as columns: row i of every vector is one span. Sorted
/// by (device, queue, start).
struct SpanColumns {
    std::vector<std::int32_t> device{};
    std::vector<QueueKind> queue{};
    std::vector<std::int32_t> segment{}; ///< Index into the device's segments.
    std::vector<std::int32_t> instruction{}; ///< Index into the segment's instructions.
    std::vector<std::int32_t> microBatch{};
    std::vector<std::int64_t> start{}; ///< Nanoseconds from the start of the step.
    std::vector<std::int64_t> duration{}; ///< Nanoseconds.

    std::size_t size() const { return start.size(); }
};

/// Memory of one device by kind over one step: a step function. Sorted by time.
struct MemoryCurve {
    SharedVector<std::int64_t> time{}; ///< Nanoseconds.
    SharedVector<std::array<std::int64_t, kMemoryKindCount>> bytes{}; ///< From `time[i]` on.
    Bytes peak{}; ///< Of the sum over kinds.
    std::array<std::int64_t, kMemoryKindCount> atPeak{};
};

/// Bytes that left a device in one step.
struct Traffic {
    InstructionKind kind{};
    std::int32_t group = -1; ///< Collectives; -1 for sends.
    DeviceId from{};
    DeviceId to{}; ///< Sends; invalid for collectives.
    Bytes bytes{}; ///< Sent by `from`, by the ring algorithm for collectives.
    std::int64_t count = 0;
};

/// The most that one link of a level carries outwards in one step (link_traffic.h).
struct LevelTraffic {
    std::string links{}; ///< "device", "card", "node", or an outer level's name.
    Bytes most{};
    std::int32_t index = 0; ///< Of that device, card, node ... in the whole cluster.
    friend bool operator==(const LevelTraffic &, const LevelTraffic &) = default;
};

/// One training step, predicted or measured: the same type, so that an overlay is a join.
struct Timeline {
    std::int32_t units = 1; ///< So many scale units do the same; all else is about one of them.
    SpanColumns spans{};
    std::vector<std::size_t> deviceBegin{}; ///< Row of the first span of device d; one more entry at the end.
    std::vector<MemoryCurve> memory{}; ///< By device.
    std::vector<Bytes> hostPeak{}; ///< By device: the most that waits for it in host memory.
    std::vector<Traffic> traffic{};
    std::vector<LevelTraffic> links{}; ///< From the inside out; empty where it was measured.
    Nanoseconds step{}; ///< Makespan.
    std::vector<Nanoseconds> busy{}; ///< By device: time its compute queue runs.
    std::vector<Nanoseconds> exposedCommunication{}; ///< By device: communication with compute idle.
    bool blockingSends = false; ///< As `Cluster::blockingSends` was.
    std::vector<std::int32_t> symmetryClass{}; ///< By device: devices of one class have equal timelines.
};
using TimelineSnapshot = std::shared_ptr<const Timeline>;

/// A stretch of time, nanoseconds: [begin, end).
using Stretch = std::pair<std::int64_t, std::int64_t>;

/// How long something is communicated while nothing is computed.
/// @param communication  of all queues, in any order; may overlap
/// @param start, duration  of what is computed, in order, without overlap
std::int64_t exposedTime(std::vector<Stretch> communication, std::span<const std::int64_t> start,
    std::span<const std::int64_t> duration);

/// Rows [first, second) of queue `queue` of device `device`. O(log spans)
std::pair<std::size_t, std::size_t> rowsOf(const Timeline &timeline, std::size_t device, QueueKind queue);

/// Share of the devices' time that is idle: 1 - busy / (devices x makespan).
///
/// With p equal stages and m micro-batches, GPipe and 1F1B give (p - 1) / (m + p - 1) (GPipe,
/// arXiv:1811.06965, section 2.3). Megatron-LM's (p - 1) / m divides by the ideal time instead; do not
/// compare the two.
/// @return 0 for an empty timeline
double bubbleRatio(const Timeline &timeline);

} // namespace planloom
