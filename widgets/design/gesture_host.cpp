#include "widgets/design/gesture_host.h"

#include "widgets/common/format.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>

#include <map>

namespace planloom {

namespace {

QString words(const char *text)
{
    return QCoreApplication::translate("planloom::GestureHost", text);
}

/// Collectives and sends of one step, by kind: how many, and the bytes all devices send.
std::map<InstructionKind, std::pair<std::int64_t, std::int64_t>> trafficOf(const PlanUpdate &update)
{
    std::map<InstructionKind, std::pair<std::int64_t, std::int64_t>> sums;
    for (const Traffic &traffic : update.scene->timeline->traffic) {
        auto &[count, bytes] = sums[traffic.kind];
        count += traffic.count;
        bytes += traffic.bytes.count;
    }
    return sums;
}

} // namespace

QString tagOf(const Preview &preview)
{
    const Proposal &proposal = preview.proposal;
    QStringList parts{QString::fromStdString(proposal.words)};
    if (proposal.refusal) {
        parts << QString::fromStdString(proposal.refusal->message);
        return parts.join(QStringLiteral(" · "));
    }
    if (!proposal.operators.empty())
        parts << (proposal.operators.size() == 1 ? words("1 operator")
                                                 : words("%1 operators").arg(proposal.operators.size()));
    for (const std::string &yielding : proposal.yieldingWords)
        parts << QString::fromStdString(yielding);
    if (!proposal.accepted())
        return parts.join(QStringLiteral(" · "));
    const PlanUpdate *update = preview.update.get();
    const PlanUpdate *base = preview.baseline && preview.baseline->scene ? preview.baseline.get() : nullptr;
    if (!update || !update->scene) {
        if (update && preview.final) {
            QString reason = update->error ? QString::fromStdString(update->error->message) : QString();
            for (const RowLine &row : update->rows) {
                if (row.report.error && reason.isEmpty())
                    reason = QString::fromStdString(row.report.error->message);
            }
            parts << words("would not hold: %1").arg(reason);
        } else {
            parts << words("step %1").arg(QStringLiteral("…"));
        }
        return parts.join(QStringLiteral(" · "));
    }
    const auto arrow = [](const std::string &before, const std::string &after) {
        return before.empty() || before == after
            ? QString::fromStdString(after)
            : QString::fromStdString(before) + QStringLiteral(" → ") + QString::fromStdString(after);
    };
    parts << words("step %1").arg(arrow(base ? formatSeconds(base->summary.stepSeconds) : std::string{},
        formatSeconds(update->summary.stepSeconds)));
    parts << words("peak %1").arg(arrow(
        base ? formatBytes(base->summary.largestPeak) : std::string{}, formatBytes(update->summary.largestPeak)));
    if (base) {
        const auto before = trafficOf(*base);
        for (const auto &[kind, sums] : trafficOf(*update)) {
            const auto found = before.find(kind);
            const std::int64_t count = sums.first - (found == before.end() ? 0 : found->second.first);
            const std::int64_t bytes = sums.second - (found == before.end() ? 0 : found->second.second);
            if (count > 0 && bytes > 0)
                parts << words("adds %1 × %2, %3").arg(count).arg(QLatin1String(nameOf(kind)),
                    QString::fromStdString(formatBytes(Bytes{bytes})));
        }
    }
    for (const RowLine &row : update->rows) {
        if (row.report.error) {
            parts << words("breaks line %1: %2").arg(row.line + 1).arg(QString::fromStdString(row.report.error->message));
            return parts.join(QStringLiteral(" · "));
        }
    }
    parts << words("feasible");
    return parts.join(QStringLiteral(" · "));
}

} // namespace planloom
