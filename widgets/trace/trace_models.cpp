#include "widgets/trace/trace_models.h"

#include <QtCore/QCoreApplication>

#include "engine/base/words.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct TraceTexts {
    Q_DECLARE_TR_FUNCTIONS(Trace)
};

QString timeText(std::int64_t nanoseconds)
{
    return toQString(formatNanoseconds(nanoseconds));
}

QString secondsText(double seconds)
{
    return toQString(formatSeconds(seconds));
}

QString shareText(std::int64_t part, std::int64_t whole)
{
    return whole > 0 ? QString::number(100.0 * static_cast<double>(part) / static_cast<double>(whole), 'f', 1)
            + QLatin1Char('%')
                     : QStringLiteral("-");
}

QString offText(double measured, double predicted)
{
    const double difference = measured - predicted;
    return (difference < 0 ? QStringLiteral("−") : QStringLiteral("+")) + secondsText(std::abs(difference));
}

} // namespace

QStringList rankColumns()
{
    return {TraceTexts::tr("Rank"), TraceTexts::tr("Window"), TraceTexts::tr("Compute"),
        TraceTexts::tr("Hidden"), TraceTexts::tr("Exposed"), TraceTexts::tr("Late peer"),
        TraceTexts::tr("Host"), TraceTexts::tr("Other"), TraceTexts::tr("Made wait")};
}

TraceLines rankLines(const TraceDocument &document)
{
    TraceLines made;
    for (std::size_t r = 0; r < document.trace.ranks.size(); ++r) {
        const RankTimes &times = document.analysis.ranks[r];
        const auto share = [&](std::int64_t part) { return shareText(part, times.window); };
        made.lines.push_back({QString::number(document.trace.ranks[r].rank), timeText(times.window),
            share(times.compute), share(times.hidden), share(times[TraceIdle::Communication]),
            share(times[TraceIdle::LatePeer]), share(times[TraceIdle::Host]), share(times[TraceIdle::Other]),
            timeText(times.madeWait)});
        const bool hasEvents = !document.trace.ranks[r].events.empty();
        made.places.push_back(hasEvents
                ? std::optional(std::pair(static_cast<std::uint32_t>(r), std::uint32_t{0}))
                : std::nullopt);
    }
    return made;
}

QStringList collectiveColumns()
{
    return {TraceTexts::tr("Collective"), TraceTexts::tr("Group"), TraceTexts::tr("Size"),
        TraceTexts::tr("At"), TraceTexts::tr("Took"), TraceTexts::tr("Waited"), TraceTexts::tr("Last"),
        TraceTexts::tr("Late by")};
}

TraceLines collectiveLines(const TraceDocument &document, std::size_t most)
{
    TraceLines made;
    const JoinedCollectives &joined = document.analysis.joined;
    for (const CollectiveTimes &times : document.analysis.collectives) {
        if (made.lines.size() >= most)
            break;
        const JoinedCollective &each = joined.collectives[times.collective];
        made.lines.push_back({QLatin1String(nameOf(each.kind)), toQString(joined.groups[each.group].words()),
            each.bytes >= 0 ? toQString(formatBytes(Bytes{each.bytes})) : QStringLiteral("-"),
            timeText(times.firstArrival - document.begin), timeText(times.duration()), timeText(times.waited),
            TraceTexts::tr("rank %1").arg(times.lastRank), timeText(times.lastArrival - times.firstArrival)});
        std::optional<std::pair<std::uint32_t, std::uint32_t>> place;
        for (std::uint32_t i = each.begin; i < each.end; ++i)
            if (const JoinedMember &member = joined.members[i];
                document.trace.ranks[member.rank].rank == times.lastRank)
                place = {member.rank, member.event};
        made.places.push_back(place);
    }
    return made;
}

QStringList matchColumns()
{
    return {TraceTexts::tr("Totals, and the worst spans"), TraceTexts::tr("Device"),
        TraceTexts::tr("Predicted"), TraceTexts::tr("Measured"), TraceTexts::tr("Off by"),
        TraceTexts::tr("Matched"), TraceTexts::tr("Only in plan"), TraceTexts::tr("Only in trace")};
}

TraceLines matchLines(const TraceMatch &match)
{
    TraceLines made;
    made.lines.push_back({TraceTexts::tr("step"), QString(), secondsText(match.predictedSeconds),
        secondsText(match.measuredSeconds), offText(match.measuredSeconds, match.predictedSeconds)});
    for (const MatchCount &count : match.matched.counts) {
        const auto error = std::find_if(match.errors.kinds.begin(), match.errors.kinds.end(),
            [&](const SpanError &each) { return each.what == nameOf(count.kind); });
        const SpanError none;
        const SpanError &sum = error == match.errors.kinds.end() ? none : *error;
        made.lines.push_back({TraceTexts::tr("all %1").arg(QLatin1String(nameOf(count.kind))), QString(),
            secondsText(sum.predicted), secondsText(sum.measured), offText(sum.measured, sum.predicted),
            QString::number(count.matched), QString::number(count.onlyPlan),
            QString::number(count.onlyTrace)});
    }
    for (const SpanError &each : match.errors.worst)
        made.lines.push_back({toQString(each.what), QString::number(each.device), secondsText(each.predicted),
            secondsText(each.measured), offText(each.measured, each.predicted)});
    for (const UnmatchedSpan &each : match.matched.unmatched)
        made.lines.push_back(
            {each.isPlanned ? TraceTexts::tr("only in the plan: %1").arg(toQString(each.what))
                            : TraceTexts::tr("only in the run: %1").arg(toQString(each.what)),
                QString::number(each.device), QString(), each.isPlanned ? QString() : timeText(each.start)});
    made.places.resize(made.lines.size());
    return made;
}

QString matchSentence(const TraceMatch &match)
{
    std::int64_t matched = 0;
    std::int64_t onlyPlan = 0;
    std::int64_t onlyTrace = 0;
    for (const MatchCount &count : match.matched.counts) {
        matched += count.matched;
        onlyPlan += count.onlyPlan;
        onlyTrace += count.onlyTrace;
    }
    const auto number = [](std::int64_t count) { return toQString(formatCount(count)); };
    QString said = onlyPlan == 0 && onlyTrace == 0
        ? TraceTexts::tr("every span matched (%1)").arg(number(matched))
        : TraceTexts::tr("%1 spans matched, %2 only in the plan, %3 only in the run")
              .arg(number(matched), number(onlyPlan), number(onlyTrace));
    if (match.predictedSeconds > 0)
        said += TraceTexts::tr("; a step: %1 predicted, %2 measured (%3%)")
                    .arg(secondsText(match.predictedSeconds), secondsText(match.measuredSeconds),
                        (match.measuredSeconds < match.predictedSeconds ? QStringLiteral("−")
                                                                        : QStringLiteral("+"))
                            + QString::number(
                                100 * std::abs(match.measuredSeconds / match.predictedSeconds - 1), 'f', 0));
    return said;
}

QStringList fitColumns()
{
    return {TraceTexts::tr("Kind"), TraceTexts::tr("Times"), TraceTexts::tr("Error before"),
        TraceTexts::tr("Error now"), TraceTexts::tr("Largest error")};
}

TraceLines fitLines(const SpanFit &fit)
{
    const auto percent = [](double share) {
        return QString::number(100 * share, 'f', share < 0.1 ? 1 : 0) + QLatin1Char('%');
    };
    TraceLines made;
    for (std::size_t i = 0; i < fit.errors.size(); ++i) {
        const FitError &error = fit.errors[i];
        made.lines.push_back({toQString(error.kind), QString::number(error.rows),
            i < fit.before.size() ? percent(fit.before[i].median) : QString(), percent(error.median),
            percent(error.worst)});
    }
    made.lines.push_back({TraceTexts::tr("a step, %1 measured").arg(secondsText(fit.measured)), QString(),
        percent(std::abs(fit.predictedBefore / fit.measured - 1)),
        percent(std::abs(fit.predicted / fit.measured - 1))});
    made.places.resize(made.lines.size());
    return made;
}

QString fitSentence(const SpanFit &fit)
{
    return TraceTexts::tr("calibrated: a step is predicted to take %1, before %2; %3 measured")
        .arg(secondsText(fit.predicted), secondsText(fit.predictedBefore), secondsText(fit.measured));
}

TraceTableModel::TraceTableModel(QStringList columns, QObject *parent)
    : QAbstractTableModel(parent)
    , m_columns(std::move(columns))
{
}

void TraceTableModel::setLines(TraceLines lines)
{
    beginResetModel();
    m_lines = std::move(lines);
    endResetModel();
}

std::optional<std::pair<std::uint32_t, std::uint32_t>> TraceTableModel::placeAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_lines.places[static_cast<std::size_t>(row)] : std::nullopt;
}

int TraceTableModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.lines.size());
}

int TraceTableModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_columns.size());
}

QVariant TraceTableModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const QStringList &line = m_lines.lines[static_cast<std::size_t>(index.row())];
    return index.column() < line.size() ? line[index.column()] : QString();
}

QVariant TraceTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0
        || section >= m_columns.size())
        return {};
    return m_columns[section];
}

} // namespace planloom

#include "moc_trace_models.cpp"
