#include "widgets/design/gesture_host.h"

#include "engine/analyse/limits.h"
#include "engine/gesture/blocking.h"
#include "engine/hardware/device_word.h"
#include "widgets/common/format.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>

#include <algorithm>
#include <set>

namespace planloom {

namespace {

const KindTraffic *find(const std::vector<KindTraffic> &kinds, InstructionKind kind)
{
    const auto found = std::find_if(
        kinds.begin(), kinds.end(), [kind](const KindTraffic &each) { return each.kind == kind; });
    return found == kinds.end() ? nullptr : &*found;
}

} // namespace

GhostMood moodOf(const Preview &preview)
{
    if (!preview.proposal.accepted())
        return GhostMood::Refused;
    if (preview.update && preview.update->errorCount() > 0 && (preview.final || preview.feasible()))
        return GhostMood::Blocked;
    if (preview.feasible())
        return GhostMood::Holds;
    return preview.final ? GhostMood::Blocked : GhostMood::Waiting;
}

std::vector<std::int32_t> blockingLines(const Preview &preview)
{
    std::set<std::int32_t> lines;
    if (!preview.update || !preview.proposal.accepted())
        return {};
    for (const RowLine &row : preview.update->rows) {
        if (row.report.error)
            lines.insert(row.line);
    }
    for (const RowConflict &conflict : preview.update->conflicts)
        lines.insert(conflict.lines.begin(), conflict.lines.end());
    for (const std::int32_t own : linesWrittenBy(preview.proposal.edit, preview.linesBefore))
        lines.erase(own);
    return {lines.begin(), lines.end()};
}

QString tagOf(const Preview &preview)
{
    const Proposal &proposal = preview.proposal;
    QStringList parts{QString::fromStdString(proposal.words)};
    if (proposal.refusal) {
        parts << QString::fromStdString(proposal.refusal->message);
        return parts.join(QStringLiteral(" · "));
    }
    if (!proposal.operators.empty())
        parts << (proposal.operators.size() == 1
                ? GestureHost::tr("1 operator")
                : GestureHost::tr("%1 operators").arg(proposal.operators.size()));
    for (const std::string &yielding : proposal.yieldingWords)
        parts << QString::fromStdString(yielding);
    if (!proposal.accepted())
        return parts.join(QStringLiteral(" · "));
    const PlanUpdate *update = preview.update.get();
    const PlanUpdate *base =
        preview.baseline && preview.baseline->isTimed() ? preview.baseline.get() : nullptr;
    if (!preview.feasible()) {
        if (update && preview.final) {
            QString reason = update->error ? QString::fromStdString(update->error->message) : QString();
            for (const RowLine &row : update->rows) {
                if (row.report.error && reason.isEmpty())
                    reason = QString::fromStdString(row.report.error->message);
            }
            parts << GestureHost::tr("would not hold: %1").arg(reason);
        } else {
            parts << GestureHost::tr("step %1").arg(QStringLiteral("…"));
        }
        return parts.join(QStringLiteral(" · "));
    }
    const auto arrow = [](const std::string &before, const std::string &after) {
        return before.empty() || before == after
            ? QString::fromStdString(after)
            : QString::fromStdString(before) + QStringLiteral(" → ") + QString::fromStdString(after);
    };
    parts << GestureHost::tr("step %1").arg(
        arrow(base ? formatSeconds(base->summary.stepSeconds) : std::string{},
            formatSeconds(update->summary.stepSeconds)));
    const auto percent = [](double share) {
        return QString::number(100 * share, 'f', 1).toStdString() + "%";
    };
    if (const std::string before = base ? percent(base->summary.bubble) : std::string{};
        base && before != percent(update->summary.bubble))
        parts << GestureHost::tr("bubble %1").arg(arrow(before, percent(update->summary.bubble)));
    parts << GestureHost::tr("peak %1").arg(
        arrow(base ? formatBytes(base->summary.largestPeak) : std::string{},
            formatBytes(update->summary.largestPeak)));
    if (base) {
        for (const auto &[kind, wouldCount, wouldBytes] : update->summary.kinds) {
            const KindTraffic *before = find(base->summary.kinds, kind);
            const std::int64_t count = wouldCount - (before ? before->count : 0);
            const std::int64_t bytes = wouldBytes.count - (before ? before->bytes.count : 0);
            if (count > 0 && bytes > 0)
                parts << GestureHost::tr("adds %1 × %2, %3")
                             .arg(count)
                             .arg(QLatin1String(nameOf(kind)),
                                 QString::fromStdString(formatBytes(Bytes{bytes})));
        }
    }
    for (const RowLine &row : update->rows) {
        if (row.report.error) {
            parts << GestureHost::tr("breaks row %1: %2")
                         .arg(row.line + 1)
                         .arg(QString::fromStdString(row.report.error->message));
            return parts.join(QStringLiteral(" · "));
        }
    }
    const auto use = [](const PlanUpdate &plan) {
        return plan.execution ? memoryUse(plan.summary, plan.cluster, plan.execution->units) : MemoryUse{};
    };
    if (const MemoryUse would = use(*update); would.over > 0 && !(base && use(*base).over > 0))
        parts << GestureHost::tr("does not fit: %1 %2 has %3")
                     .arg(QString::fromStdString(deviceWord(update->cluster)))
                     .arg(would.device)
                     .arg(QString::fromStdString(formatBytes(would.memory)));
    else
        parts << GestureHost::tr("feasible");
    return parts.join(QStringLiteral(" · "));
}

} // namespace planloom

#include "moc_gesture_host.cpp"
