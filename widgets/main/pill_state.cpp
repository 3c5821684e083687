#include "widgets/main/pill_state.h"

#include <QtCore/QCoreApplication>

#include "widgets/common/delta.h"
#include "widgets/common/format.h"
#include "widgets/design/workspace.h"

namespace planloom {

namespace {

constexpr qint64 kQuietMilliseconds = 100; ///< Work shorter than this is not announced.

QString words(const char *text)
{
    return QCoreApplication::translate("Status", text);
}

QString seconds(double value)
{
    return QString::fromStdString(formatSeconds(value));
}

QString bytes(std::int64_t count)
{
    return QString::fromStdString(formatBytes({count}));
}

/// Figures of the step before the current one; null if they are not known.
const StepFigures *figuresBefore(const History &history)
{
    for (const HistoryStep *step = history.find(history.current()); step; step = history.find(step->parent)) {
        if (const StepFigures *before = history.figuresOf(step->parent))
            return before;
    }
    return nullptr;
}

} // namespace

std::optional<PillState> pillStateOf(const Workspace &workspace, qint64 busyMilliseconds)
{
    using Mood = StatusPill::Mood;
    const PlanUpdateSnapshot &latest = workspace.latest();
    const QString clock = words("%1 s").arg(static_cast<double>(busyMilliseconds) / 1000, 0, 'f', 1);
    if (workspace.isOpening())
        return PillState{Mood::Busy, words("Opening %1").arg(clock)};
    if (!workspace.model())
        return PillState{Mood::Quiet, words("No model")};
    if (!workspace.isLive() && workspace.unsolvedEdits() > 0 && !workspace.isPlanning()) {
        return PillState{Mood::Paused,
            workspace.unsolvedEdits() == 1
                ? words("Paused: 1 edit not solved")
                : words("Paused: %1 edits not solved").arg(workspace.unsolvedEdits())};
    }
    if (workspace.isPlanning() && (!latest || latest->grade < PlanGrade::Simulated || workspace.isStale())) {
        if (busyMilliseconds < kQuietMilliseconds && latest)
            return std::nullopt;
        return PillState{Mood::Busy,
            latest && latest->grade >= PlanGrade::Planned ? words("Solving %1").arg(clock)
                                                          : words("Checking %1").arg(clock)};
    }
    const std::size_t wrong = latest ? latest->errorCount() : 0;
    if (wrong > 0)
        return PillState{
            Mood::Wrong, wrong == 1 ? words("1 row in conflict") : words("%1 rows in conflict").arg(wrong)};
    if (latest && latest->error)
        return PillState{Mood::Wrong, words("No plan")};
    if (!latest || !latest->scene)
        return PillState{Mood::Quiet, words("Stopped")};
    const QString step = seconds(latest->summary.stepSeconds);
    if (latest->verdict && !latest->verdict->ok())
        return PillState{Mood::Wrong, words("Plan refuted")};
    if (latest->summary.largestPeak.count > static_cast<std::int64_t>(latest->cluster.device.memory.value))
        return PillState{Mood::Wrong, words("Out of memory · %1").arg(step)};
    const QString figures = words("%1 · %2").arg(step, bytes(latest->summary.largestPeak.count));
    if (latest->verdict)
        return PillState{Mood::Proven, words("Good %1 · verified").arg(figures)};
    return PillState{Mood::Good,
        workspace.isPlanning() ? words("Feasible %1 · verifying").arg(figures)
                               : words("Feasible %1").arg(figures)};
}

QString statusText(const Workspace &workspace, const StatusFacts &facts, StatusPart part)
{
    const ModelSnapshot &model = workspace.model();
    if (!model)
        return {};
    const PlanUpdateSnapshot &good = workspace.lastGood();
    switch (part) {
    case kModelPart:
        return words("%1 · %2 operators · %3 × %4")
            .arg(QString::fromStdString(elided(model->name, 36)),
                QString::fromStdString(
                    formatCount(static_cast<std::int64_t>(model->graph->operators.size()))),
                QString::fromStdString(formatCount(workspace.deviceCount())),
                QString::fromStdString(workspace.cluster()));
    case kRowsPart: {
        int rows = 0;
        int on = 0;
        int wrong = 0;
        for (const TableLineSnapshot &line : workspace.table().lines()) {
            rows += line->row ? 1 : 0;
            on += line->row && line->row->enabled ? 1 : 0;
            wrong += line->error ? 1 : 0;
        }
        QString text = rows == 1 ? words("1 row") : words("%1 rows").arg(rows);
        if (on != rows)
            text += words(", %1 on").arg(on);
        if (wrong > 0)
            text += words(", %1 unreadable").arg(wrong);
        return text;
    }
    case kStepPart: {
        if (!good)
            return {};
        QString text = words("step %1").arg(seconds(good->summary.stepSeconds));
        const StepFigures *before = figuresBefore(workspace.history());
        if (before && before->stepSeconds > 0 && !workspace.isStale())
            text += words(" (%1)").arg(
                QString::fromStdString(percentText(before->stepSeconds, good->summary.stepSeconds)));
        return text;
    }
    case kFreePart:
        return good && facts.freeDecisions && !workspace.isStale() ? (*facts.freeDecisions == 1
                       ? words("1 free decision")
                       : words("%1 free decisions")
                             .arg(QString::fromStdString(formatCount(*facts.freeDecisions))))
                                                                   : QString();
    case kGapPart: {
        if (!good || !facts.bound || workspace.isStale() || good->summary.stepSeconds <= 0)
            return {};
        return words("gap ≤ %1%").arg(100 * (1 - *facts.bound / good->summary.stepSeconds), 0, 'f', 0);
    }
    case kZoomPart:
        return facts.zoom > 0 ? words("%1%").arg(100 * facts.zoom, 0, 'f', facts.zoom < 0.1 ? 1 : 0)
                              : QString();
    case kPeakPart:
        return good ? words("peak %1 / %2")
                          .arg(bytes(good->summary.largestPeak.count),
                              bytes(static_cast<std::int64_t>(good->cluster.device.memory.value)))
                    : QString();
    case kBubblePart:
        return good ? words("bubble %1%").arg(100 * good->summary.bubble, 0, 'f', 1) : QString();
    case kProofPart:
        if (workspace.isStale() && !workspace.isPlanning())
            return words("figures are of the last plan");
        if (!good || !good->verdict)
            return {};
        return good->verdict->ok()
            ? words("verified, %1 instructions")
                  .arg(QString::fromStdString(formatCount(good->verdict->instructions)))
            : words("refuted");
    case kSavePart:
        switch (workspace.saveState()) {
        case SaveState::None:
            return words("○ nothing to save yet");
        case SaveState::Saving:
            return words("◌ saving…");
        case SaveState::Saved:
            return words("● saved");
        case SaveState::ReadOnly:
            return words("▣ read-only");
        case SaveState::Failed:
            return words("✖ not saved");
        }
        return {};
    case kStatusParts:
        break;
    }
    return {};
}

QString statusTipOf(const Workspace &workspace, StatusPart part)
{
    if (part == kSavePart) {
        QString tip = workspace.path();
        if (!workspace.saveRemark().isEmpty())
            tip += (tip.isEmpty() ? QString() : QStringLiteral("\n")) + workspace.saveRemark();
        return tip;
    }
    if (part == kStepPart)
        return words(
            "Predicted time of one training step; in brackets against the step of the history before");
    if (part == kPeakPart)
        return words("Largest memory of any device, and what a device has");
    if (part == kFreePart)
        return words(
            "Operators that no row decides: the engine's defaults do; Hold (P) turns them into rows");
    if (part == kGapPart)
        return words("No plan of this step on these devices can be shorter than by this share: they can't "
                     "compute or move its data faster");
    if (part == kZoomPart)
        return words("Zoom of the canvas used last; on the timeline 100% is the whole step");
    if (part == kBubblePart)
        return words("Share of the devices' time in which they compute nothing");
    return {};
}

} // namespace planloom
