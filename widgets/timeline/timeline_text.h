#pragma once

#include "engine/analyse/block_label.h"
#include "widgets/scene/timeline_scene.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// One line of a tooltip: what, and how much.
struct FactLine {
    std::string name{}; ///< Empty for a heading.
    std::string value{};
    std::int32_t memoryKind = -1; ///< Index of MemoryKind for its swatch; -1 for none.
    friend bool operator==(const FactLine &, const FactLine &) = default;
};

/// "F0", "B3", "Optimizer", "Gradients", "Once": what is written on a block.
std::string labelOf(const TimelineBlock &block);
/// "data queue".
std::string wordsOf(QueueKind queue);

/// "c_attn", "all-reduce": what is written on a span.
std::string labelOf(const TimelineScene &scene, std::size_t row);

/// What is known of one span: operator, instruction, queue, what it is launched with, micro-batch, start,
/// duration, bytes.
std::vector<FactLine> factsOfSpan(const TimelineScene &scene, std::size_t row);

/// "×312 · 4.1 ms": what is written on a stretch of spans too small to draw.
std::string labelOfRun(const TimelineScene &scene, LaneRows rows);

/// By how many percent a device's measured busy time differs from the predicted one; nothing where either is
/// missing.
std::optional<double> busyErrorOf(
    const TimelineScene &predicted, const TimelineScene &measured, std::size_t device);

/// A measured span beside what was predicted for it; `row` is of the measured scene.
std::vector<FactLine> factsOfMeasured(
    const TimelineScene &predicted, const TimelineScene &measured, std::size_t row);

/// What is known of a block: stage, micro-batch, spans, times.
std::vector<FactLine> factsOfBlock(const TimelineScene &scene, const DeviceLane &lane, std::size_t block);

/// What a bracket says, and, where it can be changed, how.
std::vector<FactLine> factsOfWarmUp(const WarmUp &warmUp, bool editable);

/// "Slack: 1.20 ms", or that it is on the critical path.
FactLine factOfSlack(std::int64_t nanoseconds);

/// "forward of micro-batch 3, stage 0 on GPU 1, 2.3 ms": a block in one sentence, for screen readers.
std::string sentenceOf(const TimelineScene &scene, const DeviceLane &lane, std::size_t block);

/// "c_attn, forward of micro-batch 3, stage 0 on GPU 1, 2.3 ms"; of a communication with its queue behind.
std::string sentenceOf(const TimelineScene &scene, std::size_t row);

/// What lies in the memory of a lane at a time (the entry of its curve).
std::vector<FactLine> factsOfMemory(const TimelineScene &scene, const DeviceLane &lane, std::size_t entry);

/// An idle stretch of a compute queue.
std::vector<FactLine> factsOfBubble(const TimelineScene &scene, std::int64_t begin, std::int64_t end);

/// Bytes a communication instruction moves: those of its outputs, or inputs where it has none.
Bytes bytesOf(const TimelineScene &scene, std::size_t row);

} // namespace planloom
