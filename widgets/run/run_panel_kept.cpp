// How runs go into the session, and come back.

#include "widgets/run/run_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtWidgets/QLabel>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>

#include "widgets/common/qt_text.h"
#include "widgets/run/run_models.h"

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
        const bool isBad = record.state == RunState::Failed || (record.check && !record.check->ok);
        Q_EMIT said(tr("Run of %1: %2").arg(toQString(run.title), toQString(record.sentence())), isBad);
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

/// The runs of the session are known anew.
void RunPanel::takeRuns()
{
    const bool isFirst = m_list->rowCount() == 0;
    m_list->setRuns(m_workspace->runs());
    m_listView->resizeColumnsToContents();
    if (isFirst && m_list->rowCount() > 0 && !m_service.update())
        m_tabs->setCurrentWidget(m_listView); // they are what there is to see
    refreshRecord();
}

QString RunPanel::lastKept() const
{
    if (m_list->rowCount() == 0)
        return tr("Nothing has run yet. F9 runs the plan.");
    const auto text = [this](int column) { return m_list->index(0, column).data().toString(); };
    QString said =
        tr("The last run, %1: %2: %3")
            .arg(text(RunListModel::Started), text(RunListModel::Title), text(RunListModel::State));
    if (const QString step = text(RunListModel::Step); !step.isEmpty())
        said += tr(", %1 a step").arg(step);
    if (const QString loss = text(RunListModel::Loss); !loss.isEmpty())
        said += tr(", loss %1").arg(loss);
    return said + tr(". A double click on it shows it over its prediction.");
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
        m_awaitedSpans.reset();
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
    showAwaited();
}

void RunPanel::showAwaited()
{
    if (m_awaited == 0 || !m_awaitedPlan || !m_awaitedSpans)
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
            m_service.show(*record, *m_awaitedSpans, m_awaitedPlan);
            Q_EMIT runShown();
        }
    }
    m_awaited = 0;
}

} // namespace planloom
