#include "widgets/scene/colouring.h"

#include <QtCore/QCoreApplication>

#include "engine/analyse/statistics.h"
#include "engine/hardware/device_word.h"
#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"

#include <algorithm>

namespace planloom {

namespace {

QString said(const char *text)
{
    return QCoreApplication::translate("planloom::Timeline", text);
}

/// Whether some backward pass makes gradients of weights on their own.
bool splitsBackward(const ExecutionPlan &plan)
{
    return std::any_of(plan.devices.begin(), plan.devices.end(), [](const DeviceProgram &program) {
        return std::any_of(program.segments.begin(), program.segments.end(),
            [](const Segment &segment) { return segment.kind == SegmentKind::WeightGradient; });
    });
}

/// "stage 0", "1", "2" ... as far as there are different colours.
template<typename Colour>
std::vector<ColourWord> numbered(const QString &what, int count, const Colour &colourOf)
{
    constexpr int kMostNumbers = 8; // then colours repeat
    std::vector<ColourWord> entries;
    for (int i = 0; i < std::min(count, kMostNumbers); ++i)
        entries.push_back({i == 0 ? QStringLiteral("%1 0").arg(what)
                                  : QString::number(i)
                    + (i + 1 == kMostNumbers && count > kMostNumbers ? QStringLiteral(" …") : QString()),
            colourOf(i)});
    return entries;
}

} // namespace

QColor passColour(const Palette &palette, SegmentKind kind)
{
    const QColor colour = directionColour(palette, directionOf(kind));
    return kind == SegmentKind::WeightGradient
        ? mixed(colour, directionColour(palette, Direction::Optimizer), 0.5)
        : colour;
}

std::vector<ColourWord> legendOf(
    const Palette &palette, const TimelineScene &scene, TimelineColouring colouring)
{
    std::vector<ColourWord> entries;
    switch (colouring) {
    case TimelineColouring::Direction:
        for (const Direction direction : {Direction::Forward, Direction::Backward, Direction::Optimizer})
            entries.push_back({nameOfDirection(direction), directionColour(palette, direction)});
        if (splitsBackward(*scene.plan))
            entries.push_back(
                {said("Gradients of weights"), passColour(palette, SegmentKind::WeightGradient)});
        break;
    case TimelineColouring::Kind:
        for (const OperatorCategory category :
            {OperatorCategory::Product, OperatorCategory::Attention, OperatorCategory::Normalization,
                OperatorCategory::Activation, OperatorCategory::Elementwise, OperatorCategory::Reduction,
                OperatorCategory::Movement, OperatorCategory::Loss, OperatorCategory::Optimizer})
            entries.push_back({nameOfCategory(category), categoryColour(palette, category)});
        break;
    case TimelineColouring::MicroBatch:
        entries = numbered(said("micro-batch"), scene.plan->microBatches,
            [&](int i) { return microBatchColour(palette, i); });
        entries.push_back(
            {nameOfDirection(Direction::Optimizer), directionColour(palette, Direction::Optimizer)});
        break;
    case TimelineColouring::Stage:
        return numbered(
            said("stage"), scene.plan->stageCount, [&](int i) { return stageColour(palette, StageId{i}); });
    case TimelineColouring::Device:
        return numbered(toQString(deviceWord(scene.cluster)), static_cast<int>(scene.lanes.size()),
            [&](int i) { return deviceColour(palette, DeviceId{i}); });
    case TimelineColouring::Time:
        return {{said("short"), heatColour(palette, 0)},
            {said("longest: %1").arg(toQString(formatNanoseconds(scene.longestSpan))),
                heatColour(palette, 1)}};
    case TimelineColouring::DecidedBy:
        for (const DecidedBy decidedBy : {DecidedBy::Default, DecidedBy::Implied, DecidedBy::Row})
            entries.push_back({nameOfDecidedBy(decidedBy), decidedByColour(palette, decidedBy)});
    }
    return entries;
}

} // namespace planloom
