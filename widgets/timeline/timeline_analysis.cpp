#include "widgets/timeline/timeline_analysis.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>

namespace planloom {

LaneRows TimelineAnalysis::pathIn(double begin, double end) const
{
    const SpanColumns &spans = scene->timeline->spans;
    const auto startOf = [&spans](std::int32_t row) { return spans.start[static_cast<std::size_t>(row)]; };
    const auto first = std::partition_point(path.span.begin(), path.span.end(), [&](std::int32_t row) {
        return static_cast<double>(startOf(row) + spans.duration[static_cast<std::size_t>(row)]) <= begin;
    });
    const auto last = std::partition_point(
        first, path.span.end(), [&](std::int32_t row) { return static_cast<double>(startOf(row)) < end; });
    return {static_cast<std::size_t>(first - path.span.begin()),
        static_cast<std::size_t>(last - path.span.begin())};
}

TimelineAnalysisSnapshot analyse(
    TimelineSceneSnapshot scene, bool deep, const std::shared_ptr<const Plan> &plan, std::stop_token stop)
{
    auto analysis = std::make_shared<TimelineAnalysis>();
    analysis->scene = std::move(scene);
    const Timeline &timeline = *analysis->scene->timeline;
    const ExecutionPlan &execution = *analysis->scene->plan;
    if (execution.stageCount > 1 && execution.microBatches > 1)
        analysis->steady = steadyStateOf(execution, timeline, 0.02);
    if (deep && !stop.stop_requested()) {
        auto dependencies = dependenciesOf(execution, timeline, stop);
        if (dependencies) {
            analysis->dependencies = *std::move(dependencies);
            analysis->path = criticalPath(timeline, analysis->dependencies, stop);
            analysis->slack = slackOf(timeline, analysis->dependencies, stop);
            auto idle = idleTimes(execution, plan.get(), timeline, analysis->dependencies, stop);
            analysis->deep = idle && analysis->slack.size() == timeline.spans.size();
            if (idle)
                analysis->idle = *std::move(idle);
        }
    }
    return stop.stop_requested() ? nullptr : TimelineAnalysisSnapshot(std::move(analysis));
}

TimelineAnalyst::TimelineAnalyst(QObject *parent)
    : QObject(parent)
{
    m_pool.setMaxThreadCount(1);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &TimelineAnalyst::take);
}

TimelineAnalyst::~TimelineAnalyst()
{
    m_stop.request_stop();
    m_pool.waitForDone();
}

void TimelineAnalyst::setScene(TimelineSceneSnapshot scene)
{
    if (m_scene == scene)
        return;
    m_stop.request_stop();
    m_scene = std::move(scene);
    m_analysis.reset();
    m_plan.reset();
    m_asked = false;
    if (m_scene)
        start(false);
}

void TimelineAnalyst::needDeep(std::shared_ptr<const Plan> plan)
{
    if (!m_scene || m_asked)
        return;
    m_asked = true;
    m_plan = std::move(plan);
    m_stop.request_stop();
    start(true);
}

void TimelineAnalyst::start(bool deep)
{
    m_stop = {};
    m_watcher.setFuture(
        QtConcurrent::run(&m_pool, [scene = m_scene, plan = m_plan, deep, stop = m_stop.get_token()] {
            return analyse(scene, deep, plan, stop);
        }));
}

void TimelineAnalyst::take()
{
    if (m_watcher.future().resultCount() == 0)
        return;
    const TimelineAnalysisSnapshot analysis = m_watcher.result();
    if (!analysis || analysis->scene != m_scene)
        return;
    m_analysis = analysis;
    Q_EMIT ready();
}

} // namespace planloom

#include "moc_timeline_analysis.cpp"
