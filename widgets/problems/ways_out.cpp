#include "widgets/problems/ways_out.h"

#include "engine/design/explain/suggestions.h"
#include "engine/hardware/cluster.h"
#include "widgets/design/workspace.h"

#include <vector>

namespace planloom {

namespace {

std::string effectOfPlan(double seconds, std::int64_t peak)
{
    return effectOf({.holds = true, .stepSeconds = seconds, .peak = {peak}});
}

bool isWrong(const PlanUpdate &update)
{
    return update.error || update.errorCount() > 0 || exceedsLimits(update);
}

} // namespace

std::optional<OtherWay> wayBack(const History &history, double memory)
{
    std::int32_t steps = 0;
    for (StepId id = history.current(); const HistoryStep *step = history.find(id); id = step->parent) {
        ++steps;
        const StepFigures *figures = history.figuresOf(step->parent);
        if (!figures || static_cast<double>(figures->peakBytes) > memory)
            continue;
        const QString words = QString::fromStdString(step->words);
        return OtherWay{.kind = OtherWay::Kind::Back,
            .words = (steps == 1 ? WaysOut::tr("undo “%1”").arg(words)
                                 : WaysOut::tr("go back %n step(s), before “%1”", nullptr, steps).arg(words))
                         .toStdString(),
            .effect = effectOfPlan(figures->stepSeconds, figures->peakBytes),
            .step = step->parent};
    }
    return std::nullopt;
}

WaysOut::WaysOut(Workspace *workspace, ProblemsPanel *panel, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
    , m_panel(panel)
{
    connect(panel, &ProblemsPanel::shown, this, &WaysOut::refresh);
    connect(panel, &ProblemsPanel::otherWayChosen, this, &WaysOut::act);
    connect(&m_limits, &LimitWays::found, this, &WaysOut::take);
}

void WaysOut::refresh()
{
    const PlanUpdateSnapshot &latest = m_workspace->latest();
    if (!latest || !latest->final || !isWrong(*latest)) {
        m_limits.stop();
        return;
    }
    if (!m_panel->isVisible())
        return;
    if (!m_found || m_found->of != latest)
        take(std::make_shared<const LimitWaysFound>(LimitWaysFound{.of = latest}));
    if (auto request = m_workspace->planRequest())
        m_limits.ask(latest, *std::move(request), m_workspace->searchRequest());
}

void WaysOut::take(const LimitWaysSnapshot &found)
{
    m_found = found;
    std::vector<OtherWay> others;
    if (found->searched)
        others.push_back({.kind = OtherWay::Kind::Search,
            .words = tr("find best plan").toStdString(),
            .effect = effectOfPlan(
                found->searched->summary.stepSeconds, found->searched->summary.largestPeak.count)});
    if (auto back = wayBack(m_workspace->history(), leastMemory(found->of->cluster)))
        others.push_back(*std::move(back));
    m_panel->setWays(found->of, found->ways, others);
}

void WaysOut::act(const OtherWay &way)
{
    if (way.kind == OtherWay::Kind::Search)
        Q_EMIT searchAsked();
    else
        m_workspace->goTo(way.step);
}

} // namespace planloom

#include "moc_ways_out.cpp"
