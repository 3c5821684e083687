// Schedules of the pipeline: chosen by name, held side by side, found.

#include "widgets/main/main_window.h"

#include <QtWidgets/QMenu>

#include "engine/schedule/schedule.h"
#include "widgets/compare/compare_choice.h"
#include "widgets/frame/dock_board.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/schedule/schedule_board.h"
#include "widgets/schedule/schedule_chooser.h"

namespace planloom {

void MainWindow::buildScheduleMenu(QMenu *menu)
{
    m_schedules = new ScheduleChooser(this);
    QMenu *own = menu->addMenu(tr("Sched&ule"));
    own->setToolTipsVisible(true);
    const auto editable = [this] { return isPlannable() && !m_workspace.isReadOnly(); };
    for (const ScheduleTemplate &each : scheduleTemplates()) {
        const ScheduleKind kind = each.kind;
        const QString name = QString::fromLatin1(nameOf(kind));
        QAction *action = m_commands->add(QStringLiteral("schedule.%1").arg(name).toLatin1().constData(),
            tr("Schedule %1").arg(name), {}, nullptr, this, [this, kind] { chooseSchedule(kind); });
        action->setToolTip(ScheduleChooser::tipOf(kind));
        action->setStatusTip(ScheduleChooser::meaningOf(kind));
        m_commands->enableWhile(
            action, [this, editable, kind] { return editable() && m_schedules->isPossible(kind); });
        own->addAction(action);
    }
    own->addSeparator();
    const auto planned = [this] { return isPlannable() && m_workspace.lastGood() != nullptr; };
    QAction *all = m_commands->add(
        "schedule.all", tr("&All Schedules That Fit…"), {}, nullptr, this, [this] { showSchedules(false); });
    m_commands->enableWhile(all, planned);
    own->addAction(all);
    QAction *best = m_commands->add("schedule.best", tr("Find Best Sche&dule…"),
        {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F5)}, nullptr, this, [this] { showSchedules(true); });
    m_commands->enableWhile(best, [planned, editable] { return planned() && editable(); });
    own->addAction(best);
    connect(&m_workspace, &Workspace::limitBroken, this, [this](const Error &error) {
        m_log->model()->add(LogKind::Problem, QString::fromStdString(describe(error)));
        say(tr("Not moved: %1").arg(QString::fromStdString(error.message)));
    });
    connect(m_schedules, &ScheduleChooser::chosen, this, &MainWindow::chooseSchedule);
    connect(m_schedules, &ScheduleChooser::keptChosen, this, [this](int line) {
        const GestureContextSnapshot context = m_workspace.gestureContext();
        if (context && !m_workspace.isReadOnly())
            m_workspace.commit(proposeKeptSchedule(*context, line));
        m_schedules->setPlan(m_workspace.lastGood());
    });
    connect(m_schedules, &ScheduleChooser::allAsked, this, [this] { showSchedules(false); });
    connect(m_schedules, &ScheduleChooser::bestAsked, this, [this] { showSchedules(true); });
    connect(m_schedules, &ScheduleChooser::possibleChanged, this,
        [this] { m_chores.add("state", [this] { refreshCommands(); }); });
}

void MainWindow::chooseSchedule(ScheduleKind kind)
{
    const GestureContextSnapshot context = m_workspace.gestureContext();
    if (context && !m_workspace.isReadOnly())
        m_workspace.commit(proposeSchedule(*context, {kind, {}}, {}, m_schedules->stageRows(kind)));
    m_schedules->setPlan(m_workspace.lastGood());
}

void MainWindow::showSchedules(bool search)
{
    if (!m_board) {
        m_board = new ScheduleBoard(&m_workspace, &m_selection, this);
        connect(m_board, &ScheduleBoard::found, this, [this](const QString &sentence) {
            m_log->model()->add(LogKind::Plan, (sentence + QLatin1Char('\n') + m_board->proof()).trimmed());
            m_notices->show({QStringLiteral("searched"), NoticeKind::Info, sentence, {}, true});
        });
        connect(m_board, &ScheduleBoard::compareAsked, this, [this](const std::vector<StepId> &steps) {
            m_choice->setPlans(steps);
            m_docks->apply(QStringLiteral("compare"));
            m_board->hide();
        });
    }
    m_board->show();
    m_board->raise();
    m_board->activateWindow();
    if (search)
        m_board->findBest();
    else
        m_board->tryAll();
}

} // namespace planloom
