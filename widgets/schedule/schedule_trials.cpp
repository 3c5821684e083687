#include "widgets/schedule/schedule_trials.h"

#include <QtConcurrent/QtConcurrentRun>

#include "widgets/scene/plan_thumbnail.h"
#include "widgets/scene/timeline_scene.h"

#include <utility>

namespace planloom {

ScheduleTrials::ScheduleTrials(QObject *parent)
    : QObject(parent)
{
    m_pool.setMaxThreadCount(1);
    connect(&m_watcher, &QFutureWatcherBase::resultsReadyAt, this, &ScheduleTrials::take);
}

ScheduleTrials::~ScheduleTrials()
{
    m_stop.request_stop();
}

void ScheduleTrials::start(PlanRequest request, double seconds, Theme theme, QSize picture, qreal ratio)
{
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_working = true;
    const auto work = [request = std::move(request), seconds, theme, picture, ratio,
                          token = m_stop.get_token()](QPromise<TrialReportSnapshot> &promise) {
        TrialReport known;
        const auto note = [&](const ScheduleChoice &choice, const PlanAnswerSnapshot &answer) {
            while (known.rows.size() < choice.tried.size()) {
                auto row = std::make_shared<TrialRow>(TrialRow{choice.tried[known.rows.size()], {}});
                if (answer && answer->timeline && known.rows.size() + 1 == choice.tried.size())
                    row->picture =
                        thumbnailOf(*makeTimelineScene(answer->timeline, answer->execution, answer->cluster),
                            paletteOf(theme), picture, ratio);
                known.rows.push_back(std::move(row));
            }
            known.searches = choice.searches;
            known.bentTo = choice.bentTo;
            promise.addResult(std::make_shared<const TrialReport>(known));
        };
        const auto choice =
            chooseSchedule(request, {.seconds = seconds, .spans = true, .report = note}, token);
        if (!choice && choice.error().code == ErrorCode::Cancelled)
            return;
        if (choice)
            known.searches = choice->searches;
        else
            known.error = choice.error();
        known.done = true;
        promise.addResult(std::make_shared<const TrialReport>(known));
    };
    m_watcher.setFuture(QtConcurrent::run(&m_pool, work));
}

void ScheduleTrials::stop()
{
    m_stop.request_stop();
    m_watcher.setFuture({});
    m_working = false;
}

void ScheduleTrials::take(int begin, int end)
{
    if (begin >= end || !m_working)
        return;
    const TrialReportSnapshot report = m_watcher.resultAt(end - 1);
    if (report->done)
        m_working = false;
    Q_EMIT reported(report);
}

} // namespace planloom

#include "moc_schedule_trials.cpp"
