#include "widgets/status/pill_state.h"

#include <QtCore/QCoreApplication>

#include "engine/analyse/limits.h"
#include "engine/measured/predicted_run.h"
#include "widgets/accuracy/nearest_runs.h"
#include "widgets/common/delta.h"
#include "widgets/common/format.h"
#include "widgets/design/workspace.h"
#include "widgets/target/framework_chooser.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct StatusTexts {
    Q_DECLARE_TR_FUNCTIONS(Status)
};

constexpr qint64 kQuietMilliseconds = 100; ///< Work shorter than this is not announced.

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

/// How much better a plan could be, where a search has said so, and which devices have nothing to do.
QString howGood(const PlanAnswer &answer)
{
    QString text;
    if (answer.search && answer.search->isOfOthers())
        text += answer.search->best.isBeside ? StatusTexts::tr(" · beside what was priced")
                                             : StatusTexts::tr(" · unequal stages");
    else if (answer.search)
        text += StatusTexts::tr(" · gap ≈ %1%").arg(std::ceil(100 * answer.search->gap()), 0, 'f', 0);
    const auto idle = std::count_if(answer.summary.devices.begin(), answer.summary.devices.end(),
        [](const DeviceSummary &device) { return device.busySeconds <= 0; });
    if (idle > 0)
        text +=
            idle == 1 ? StatusTexts::tr(" · 1 device idle") : StatusTexts::tr(" · %1 devices idle").arg(idle);
    return text;
}

} // namespace

std::optional<PillState> pillStateOf(const Workspace &workspace, qint64 busyMilliseconds)
{
    using Mood = StatusPill::Mood;
    const PlanUpdateSnapshot &latest = workspace.latest();
    const QString clock =
        StatusTexts::tr("%1 s").arg(static_cast<double>(busyMilliseconds) / 1000, 0, 'f', 1);
    if (workspace.isOpening())
        return PillState{Mood::Busy, StatusTexts::tr("Opening %1").arg(clock)};
    if (!workspace.model())
        return PillState{Mood::Quiet, StatusTexts::tr("No model")};
    if (!workspace.isLive() && workspace.unsolvedEdits() > 0 && !workspace.isPlanning()) {
        return PillState{Mood::Paused,
            workspace.unsolvedEdits() == 1
                ? StatusTexts::tr("Paused: 1 edit not solved")
                : StatusTexts::tr("Paused: %1 edits not solved").arg(workspace.unsolvedEdits())};
    }
    if (workspace.isSearching()) {
        const auto &best = workspace.searchProgress();
        if (!best)
            return PillState{Mood::Busy, StatusTexts::tr("Searching %1").arg(clock)};
        return PillState{Mood::Busy,
            best->fits ? StatusTexts::tr("Searching %1 · best %2, gap ≈ %3%")
                             .arg(clock, seconds(best->stepSeconds))
                             .arg(std::ceil(100 * best->gap), 0, 'f', 0)
                       : StatusTexts::tr("Searching %1 · none fits yet").arg(clock)};
    }
    if (workspace.isPlanning() && (!latest || latest->grade < PlanGrade::Simulated || workspace.isStale())) {
        if (busyMilliseconds < kQuietMilliseconds && latest)
            return std::nullopt;
        return PillState{Mood::Busy,
            latest && latest->grade >= PlanGrade::Planned ? StatusTexts::tr("Solving %1").arg(clock)
                                                          : StatusTexts::tr("Checking %1").arg(clock)};
    }
    const std::size_t broken = latest ? latest->brokenLimitCount() : 0;
    const std::size_t wrong = latest ? latest->errorCount() - broken : 0;
    if (wrong > 0)
        return PillState{Mood::Wrong,
            wrong == 1 ? StatusTexts::tr("1 row in conflict")
                       : StatusTexts::tr("%1 rows in conflict").arg(wrong)};
    if (latest && latest->error)
        return PillState{Mood::Wrong, StatusTexts::tr("No plan")};
    if (!latest || !latest->scene)
        return PillState{Mood::Quiet, StatusTexts::tr("Stopped")};
    const QString step = seconds(latest->summary.stepSeconds);
    if (latest->verdict && !latest->verdict->ok())
        return PillState{Mood::Wrong, StatusTexts::tr("Plan refuted")};
    if (memoryUse(latest->summary, latest->cluster, latest->scene->plan->units).over > 0)
        return PillState{Mood::Wrong, StatusTexts::tr("Out of memory · %1").arg(step)};
    if (broken > 0)
        return PillState{Mood::Wrong,
            broken == 1 ? StatusTexts::tr("1 limit exceeded · %1").arg(step)
                        : StatusTexts::tr("%1 limits exceeded · %2").arg(broken).arg(step)};
    // Whose time it is: a run beside it shows those of this machine.
    const QString figures =
        StatusTexts::tr("%1 on %2 · %3")
            .arg(step, QString::fromStdString(workspace.cluster()), bytes(latest->summary.largestPeak.count));
    if (latest->verdict)
        return PillState{Mood::Proven, StatusTexts::tr("Valid %1%2").arg(figures, howGood(*latest))};
    return PillState{Mood::Good,
        workspace.isPlanning() ? StatusTexts::tr("Feasible %1 · verifying").arg(figures)
                               : StatusTexts::tr("Feasible %1").arg(figures)};
}

QString shownPlanText(const Workspace &workspace, qint64 busyMilliseconds)
{
    constexpr qint64 kSoonOver = 300; ///< Nobody reads what stands for less than that.
    const PlanUpdateSnapshot &shown = workspace.lastGood();
    if (!shown || !workspace.isPlanning())
        return {};
    if (!workspace.showsBestSoFar())
        return busyMilliseconds < kSoonOver ? QString()
            : workspace.isStale()           ? StatusTexts::tr("the plan of the rows before")
            : workspace.isSearching()       ? StatusTexts::tr("the plan before the search")
                                            : QString();
    const SearchResult &search = *shown->search;
    QString text = StatusTexts::tr("the best plan so far: %1 · %2")
                       .arg(QString::fromStdString(toString(search.best.configuration)),
                           seconds(search.best.simulatedSeconds));
    if (!search.fits)
        text += StatusTexts::tr(" · needs more memory than there is");
    else if (!search.isOfOthers())
        text += StatusTexts::tr(" · about %1% from the best at most")
                    .arg(std::ceil(100 * search.gap()), 0, 'f', 0);
    const auto &best = workspace.searchProgress();
    return text
        + (best && best->stepSeconds < search.best.simulatedSeconds
                ? StatusTexts::tr(" · %1 found since").arg(seconds(best->stepSeconds))
                : StatusTexts::tr(" · still searching"));
}

QString statusText(const Workspace &workspace, const StatusFacts &facts, StatusPart part)
{
    const ModelSnapshot &model = workspace.model();
    if (!model)
        return {};
    const PlanUpdateSnapshot &good = workspace.lastGood();
    switch (part) {
    case kModelPart:
        return StatusTexts::tr("%1 · %2 operators · %3 × %4")
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
        QString text = rows == 1 ? StatusTexts::tr("1 row") : StatusTexts::tr("%1 rows").arg(rows);
        if (on != rows)
            text += StatusTexts::tr(", %1 on").arg(on);
        if (wrong > 0)
            text += StatusTexts::tr(", %1 unreadable").arg(wrong);
        return text;
    }
    case kStepPart: {
        if (!good)
            return {};
        QString text = StatusTexts::tr("step %1").arg(seconds(good->summary.stepSeconds));
        if (!good->cluster.framework.empty())
            text += StatusTexts::tr(" with %1").arg(QString::fromStdString(good->cluster.framework));
        const StepFigures *before = figuresBefore(workspace.history());
        if (before && before->stepSeconds > 0 && !workspace.isStale())
            text += StatusTexts::tr(" (%1)").arg(
                QString::fromStdString(percentText(before->stepSeconds, good->summary.stepSeconds)));
        return text;
    }
    case kFreePart:
        return good && facts.freeDecisions && !workspace.isStale() ? (*facts.freeDecisions == 1
                       ? StatusTexts::tr("1 free decision")
                       : StatusTexts::tr("%1 free decisions")
                             .arg(QString::fromStdString(formatCount(*facts.freeDecisions))))
                                                                   : QString();
    case kGapPart: {
        if (!good || !facts.bound || workspace.isStale() || good->summary.stepSeconds <= 0)
            return {};
        // The least that the work takes is proven; what a search says of other plans is likely, and nearer.
        const double gap = 1 - *facts.bound / good->summary.stepSeconds;
        if (good->search && !good->search->isOfOthers() && good->search->gap() < gap)
            return StatusTexts::tr("gap ≈ %1%").arg(std::ceil(100 * good->search->gap()), 0, 'f', 0);
        return StatusTexts::tr("gap ≤ %1%").arg(std::ceil(100 * gap), 0, 'f', 0);
    }
    case kZoomPart:
        return facts.zoom > 0 ? StatusTexts::tr("%1%").arg(100 * facts.zoom, 0, 'f', facts.zoom < 0.1 ? 1 : 0)
                              : QString();
    case kPeakPart: {
        if (!good)
            return {};
        const ScaleUnits units = good->scene ? good->scene->plan->units : ScaleUnits{};
        const MemoryUse use = memoryUse(good->summary, good->cluster, units);
        return StatusTexts::tr("peak %1 / %2").arg(bytes(use.peak.count), bytes(use.memory.count));
    }
    case kBubblePart:
        return good ? StatusTexts::tr("bubble %1%").arg(100 * good->summary.bubble, 0, 'f', 1) : QString();
    case kProofPart:
        if (workspace.isStale() && !workspace.isPlanning())
            return StatusTexts::tr("figures are of the last plan");
        if (!good || !good->verdict)
            return {};
        return good->verdict->ok()
            ? StatusTexts::tr("verified, %1 instructions")
                  .arg(QString::fromStdString(formatCount(good->verdict->instructions)))
            : StatusTexts::tr("refuted");
    case kSavePart:
        switch (workspace.saveState()) {
        case SaveState::None:
            return StatusTexts::tr("○ nothing to save yet");
        case SaveState::Saving:
            return StatusTexts::tr("◌ saving…");
        case SaveState::Saved:
            return StatusTexts::tr("● saved");
        case SaveState::ReadOnly:
            return StatusTexts::tr("▣ read-only");
        case SaveState::Failed:
            return StatusTexts::tr("✖ not saved");
        }
        return {};
    case kStatusParts:
        break;
    }
    return {};
}

QString likeRunsText(const Workspace &workspace)
{
    const PlanUpdateSnapshot &good = workspace.lastGood();
    const QString text =
        good && good->model ? nearestRunsText(likenessOf(*good->model, good->cluster)) : QString();
    return text.isEmpty() ? StatusTexts::tr("how good?") : text;
}

QString statusTipOf(const Workspace &workspace, StatusPart part)
{
    if (part == kSavePart) {
        QString tip = workspace.path();
        if (!workspace.saveRemark().isEmpty())
            tip += (tip.isEmpty() ? QString() : QStringLiteral("\n")) + workspace.saveRemark();
        return tip;
    }
    if (part == kStepPart) {
        const PlanUpdateSnapshot &good = workspace.lastGood();
        return StatusTexts::tr("<p>Predicted time of one training step on %1; in brackets against the step "
                               "of the history before</p>")
                   .arg(QString::fromStdString(good ? good->cluster.name : workspace.cluster())
                            .toHtmlEscaped())
            + tipOfFramework(good ? good->cluster.framework : workspace.framework())
            + (good && good->model ? nearestRunsTip(likenessOf(*good->model, good->cluster)) : QString());
    }
    if (part == kPeakPart)
        return StatusTexts::tr("Largest memory of any device, and what a device has");
    if (part == kFreePart)
        return StatusTexts::tr("Operators that no row of yours decides: the search does, or the engine's "
                               "defaults; a click lists "
                               "them, to be kept as rows");
    if (part == kGapPart)
        return StatusTexts::tr(
            "No plan of this step on these devices can be shorter than by this share: they can't "
            "compute or move its data faster");
    if (part == kZoomPart)
        return StatusTexts::tr("Zoom of the canvas used last; on the timeline 100% is the whole step");
    if (part == kBubblePart)
        return StatusTexts::tr("Share of the devices' time in which they compute nothing");
    return {};
}

} // namespace planloom
