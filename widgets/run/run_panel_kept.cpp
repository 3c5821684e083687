// How runs go into the session, and come back.

#include "widgets/run/run_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtWidgets/QLabel>

#include <string>

namespace planloom {

void RunPanel::finished()
{
    const RunRecord &record = m_service.record();
    refreshRecord();
    if (m_run == 0)
        return;
    for (const SessionRun &kept : m_workspace->runs()) {
        if (kept.id != m_run)
            continue;
        SessionRun run = kept;
        run.state = nameOf(record.state);
        run.details = record.toJson();
        if (!record.measured()) {
            m_workspace->updateRun(run);
            break;
        }
        // Megabytes of text: made on a pool thread.
        auto *watcher = new QFutureWatcher<std::string>(this);
        connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, run]() mutable {
            run.timeline = watcher->result();
            m_workspace->updateRun(run);
            watcher->deleteLater();
        });
        watcher->setFuture(
            QtConcurrent::run([measured = record.measured()] { return measuredJson(*measured); }));
        break;
    }
}

void RunPanel::showStored(std::int64_t run)
{
    if (m_service.isRunning())
        return;
    for (const SessionRun &kept : m_workspace->runs()) {
        if (kept.id != run)
            continue;
        m_awaited = run;
        m_run = 0;
        m_step = kept.step;
        m_hasSpans = false;
        m_awaitedSpans.clear();
        m_awaitedPlan = m_workspace->planOfStep(kept.step);
        m_workspace->loadRunTimeline(run);
        return;
    }
}

void RunPanel::takeStored(std::int64_t run, const QByteArray &timeline)
{
    if (run != m_awaited || run == 0)
        return;
    m_awaitedSpans = timeline;
    m_hasSpans = true;
    showAwaited();
}

void RunPanel::showAwaited()
{
    if (m_awaited == 0 || !m_awaitedPlan || !m_hasSpans)
        return;
    const std::int64_t run = m_awaited;
    for (const SessionRun &kept : m_workspace->runs()) {
        if (kept.id != run)
            continue;
        auto record = RunRecord::fromJson(kept.details);
        if (!record) {
            m_state->setText(QString::fromStdString(record.error().message));
        } else {
            if (!isOver(record->state)) // the program ended while it ran
                record->state = RunState::Interrupted;
            m_service.show(*record, m_awaitedSpans, m_awaitedPlan);
            Q_EMIT runShown();
        }
    }
    m_awaited = 0;
}

} // namespace planloom
