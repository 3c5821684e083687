#include "widgets/timeline/timeline_colours.h"

#include "engine/analyse/statistics.h"

#include <algorithm>

namespace planloom {

namespace {

/// How much paler odd micro-batches are, so that neighbours can be told apart.
constexpr double kOddShade = 0.28;

QColor shaded(const Palette &palette, QColor colour, std::int32_t microBatch)
{
    return microBatch % 2 == 0 ? colour : mixed(colour, palette.surface, kOddShade);
}

/// Updates belong to no micro-batch.
QColor microBatchColourOf(const Palette &palette, SegmentKind kind, std::int32_t microBatch)
{
    return directionOf(kind) == Direction::Optimizer ? passColour(palette, kind)
                                                     : microBatchColour(palette, microBatch);
}

/// The colours of rows [begin, end) in proportion to their time: of all of them, or of some evenly among them
/// where they are many.
QColor mixedOf(const Palette &palette, const TimelineScene &scene, TimelineColouring colouring,
    std::size_t begin, std::size_t end)
{
    constexpr std::size_t kMostLooked =
        6; // a stretch is a few pixels, of which there are thousands in a frame
    const std::size_t count = end - begin;
    const std::size_t looked = std::min(count, kMostLooked);
    double red = 0;
    double green = 0;
    double blue = 0;
    double sum = 0;
    for (std::size_t i = 0; i < looked; ++i) {
        const std::size_t row = begin + (2 * i + 1) * count / (2 * looked);
        const auto weight = static_cast<double>(scene.timeline->spans.duration[row]);
        const QColor colour = computeColour(palette, scene, colouring, row);
        red += weight * colour.redF();
        green += weight * colour.greenF();
        blue += weight * colour.blueF();
        sum += weight;
    }
    if (sum <= 0)
        return computeColour(palette, scene, colouring, begin + count / 2);
    return QColor::fromRgbF(
        static_cast<float>(red / sum), static_cast<float>(green / sum), static_cast<float>(blue / sum));
}

} // namespace

QColor computeColour(
    const Palette &palette, const TimelineScene &scene, TimelineColouring colouring, std::size_t row)
{
    const SpanColumns &spans = scene.timeline->spans;
    const Segment *segment = scene.findSegment(row);
    switch (colouring) {
    case TimelineColouring::Direction:
        return shaded(palette, passColour(palette, segment ? segment->kind : SegmentKind::Forward),
            spans.microBatch[row]);
    case TimelineColouring::MicroBatch:
        return microBatchColourOf(
            palette, segment ? segment->kind : SegmentKind::Forward, spans.microBatch[row]);
    case TimelineColouring::Stage:
        return segment && segment->stage.valid() ? stageColour(palette, segment->stage) : palette.neutral;
    case TimelineColouring::Device:
        return deviceColour(palette, DeviceId{spans.device[row]});
    case TimelineColouring::Kind: {
        const Instruction *instruction = scene.findInstruction(row);
        if (instruction && instruction->kind == InstructionKind::Kernel && instruction->op.valid())
            return categoryColour(palette, categoryOf(scene.graph().at(instruction->op).kind));
        return palette.neutral;
    }
    case TimelineColouring::Time:
        return heatColour(palette,
            static_cast<double>(spans.duration[row])
                / static_cast<double>(std::max<std::int64_t>(scene.longestSpan, 1)));
    case TimelineColouring::DecidedBy:
        return decidedByColour(palette, scene.decidedByOf(row));
    }
    return palette.neutral;
}

QColor runColour(
    const Palette &palette, const TimelineScene &scene, TimelineColouring colouring, const DrawRecord &record)
{
    const std::size_t end = record.row + static_cast<std::size_t>(record.count);
    const std::size_t middle = record.row + static_cast<std::size_t>(record.count) / 2;
    if (colouring != TimelineColouring::Direction)
        return mixedOf(palette, scene, colouring, record.row, end);
    const BusyBefore &a = scene.before[record.row];
    const BusyBefore &b = scene.before[end];
    const auto busy = static_cast<double>(std::max<std::int64_t>(b.busy - a.busy, 1));
    const double backward = static_cast<double>(b.backward - a.backward) / busy;
    const double optimizer = static_cast<double>(b.optimizer - a.optimizer) / busy;
    QColor colour = directionColour(palette, Direction::Forward);
    if (backward > 0)
        colour = mixed(
            colour, directionColour(palette, Direction::Backward), backward / std::max(1 - optimizer, 1e-9));
    if (optimizer > 0)
        colour = mixed(colour, directionColour(palette, Direction::Optimizer), optimizer);
    return shaded(palette, colour, scene.timeline->spans.microBatch[middle]);
}

QColor blockColour(
    const Palette &palette, const DeviceLane &lane, TimelineColouring colouring, const TimelineBlock &block)
{
    switch (colouring) {
    case TimelineColouring::MicroBatch:
        return microBatchColourOf(palette, block.kind, block.microBatch);
    case TimelineColouring::Stage:
        return block.stage.valid() ? stageColour(palette, block.stage) : palette.neutral;
    case TimelineColouring::Device:
        return deviceColour(palette, lane.device);
    case TimelineColouring::DecidedBy:
        return decidedByColour(palette, block.decidedBy);
    case TimelineColouring::Direction:
    case TimelineColouring::Kind:
    case TimelineColouring::Time:
        break;
    }
    return shaded(palette, passColour(palette, block.kind), block.microBatch);
}

} // namespace planloom
