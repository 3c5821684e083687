// What follows from changes of the workspace.

#include "widgets/main/main_window.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QDateTime>
#include <QtCore/QFileInfo>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLayout>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>

#include "engine/analyse/bound.h"
#include "engine/base/place.h"
#include "engine/design/explain/free_decisions.h"
#include "engine/design/explain/suggestions.h"
#include "widgets/common/format.h"
#include "widgets/design/row_sentences.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/tool_bars.h"
#include "widgets/inspector/sharding_view.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/lesson_window.h"
#include "widgets/main/locator_search.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/outline_panel.h"
#include "widgets/main/recent_list.h"
#include "widgets/main/start_page.h"
#include "widgets/problems/problems_panel.h"
#include "widgets/problems/ways_out.h"
#include "widgets/schedule/schedule_chooser.h"
#include "widgets/status/pill_state.h"
#include "widgets/status/status_pill.h"

#include <algorithm>
#include <array>
#include <utility>

namespace planloom {

namespace {

constexpr qint64 kSilentOpening = 300; ///< ms that opening may take without a word.
constexpr int kSentenceMilliseconds = 6000;

} // namespace

void MainWindow::onModelChanged()
{
    const ModelSnapshot &model = m_workspace.model();
    m_selection.clear();
    m_problems->clearProblems();
    m_notices->dismiss(QStringLiteral("model"));
    m_gallery->ask(); // what it said is of the model before
    m_shownScene.reset();
    m_schedules->setPlan(nullptr);
    for (const char *piece : {"dag", "bound", "inspector", "sharding"})
        m_chores.drop(piece); // of the model before
    m_sharding->setPlan(nullptr);
    m_timeline->setScene(nullptr);
    m_dag->setGraph(model->graph);
    m_outline->setGraph(model->graph);
    m_inspector->setModel(model);
    if (m_stack->currentWidget() == m_start) {
        m_stack->setCurrentWidget(m_splitter);
        m_toolBars->setShown(true);
        statusBar()->show();
        m_docks->setShown(true);
        m_dag->setFocus(Qt::OtherFocusReason);
    }
    QString said = tr("%1: %2 operators, %3 parameters")
                       .arg(QString::fromStdString(model->name),
                           QString::fromStdString(
                               formatCount(static_cast<std::int64_t>(model->graph->operators.size()))),
                           QString::fromStdString(formatQuantity(static_cast<double>(model->parameters))));
    showObstacles();
    if (!model->remark.empty())
        said += QStringLiteral("; ") + QString::fromStdString(model->remark);
    m_log->model()->add(LogKind::Model, tr("Opened %1").arg(said));
}

/// A model that can't be planned says so across the window, with what is missing and the ways out.
void MainWindow::showObstacles()
{
    const QString id = QStringLiteral("obstacles");
    const ModelSnapshot &model = m_workspace.model();
    if (!model->planProblem) {
        m_notices->dismiss(id);
        return;
    }
    constexpr std::size_t kMostNamed = 3;
    const std::vector<Obstacle> &obstacles = model->graph->obstacles;
    QStringList lines;
    for (std::size_t i = 0; i < std::min(obstacles.size(), kMostNamed); ++i)
        lines << sentences({obstacles[i].message, obstacles[i].advice});
    if (obstacles.size() > kMostNamed)
        lines << tr("%1 more operators are marked on the graph.").arg(obstacles.size() - kMostNamed);
    std::vector<NoticeAction> actions;
    const auto found = std::find_if(model->graph->operators.begin(), model->graph->operators.end(),
        [&](const Operator &op) { return op.name == obstacles.front().op; });
    if (found != model->graph->operators.end()) {
        const OperatorId op{static_cast<std::int32_t>(found - model->graph->operators.begin())};
        actions.push_back({tr("Show"),
            [this, op] {
                LocatorEntry entry;
                entry.kind = LocatorKind::Operator;
                entry.op = op;
                goTo(entry);
            },
            true});
    }
    m_notices->show({id, NoticeKind::Warning,
        tr("This model is open to be looked at: it cannot be planned. %1").arg(lines.join(QLatin1Char('\n'))),
        std::move(actions), true});
}

void MainWindow::onSessionChanged()
{
    for (const char *id : {"readonly", "remark", "save", "open", "drop"})
        m_notices->dismiss(QLatin1String(id));
    m_logged.reset();
    m_problemShown = -1;
    takeValues();
    restoreView();
    if (m_workspace.isReadOnly()) {
        m_notices->show({QStringLiteral("readonly"), NoticeKind::Warning,
            tr("This session is read-only: %1").arg(m_workspace.remark()),
            {{tr("Save Copy As…"), [this] { saveCopyAs(); }, true}}, true});
    } else if (!m_workspace.remark().isEmpty()) {
        m_notices->show({QStringLiteral("remark"), NoticeKind::Info, m_workspace.remark(), {}, true});
    }
    if (!m_workspace.path().isEmpty())
        m_log->model()->add(LogKind::Session, tr("Opened the session %1").arg(m_workspace.path()));
    noteRecent();
    onState();
}

/// Marks what rows that cannot hold together are about: operators on the graph, and devices on the timeline,
/// those that the rows name, or where the last plan has the operators.
void MainWindow::markConflicts()
{
    std::set<OperatorId> operators;
    std::set<DeviceId> devices;
    const PlanUpdateSnapshot &latest = m_workspace.latest();
    const PlanUpdateSnapshot &good = m_workspace.lastGood();
    const std::size_t forward = latest && latest->model ? latest->model->index->forwardCount() : 0;
    for (const RowConflict &conflict : latest ? latest->conflicts : std::vector<RowConflict>{}) {
        devices.insert(conflict.devices.begin(), conflict.devices.end());
        if (conflict.operators.size() >= forward)
            continue; // about all of them: nothing stands out
        operators.insert(conflict.operators.begin(), conflict.operators.end());
        if (!conflict.devices.empty() || !good || !good->plan || good->model != latest->model)
            continue;
        for (const OperatorId op : conflict.operators) {
            const auto &theirs = good->plan->decisions[at(op)].devices;
            devices.insert(theirs.begin(), theirs.end());
        }
    }
    if (good && devices.size() >= static_cast<std::size_t>(good->deviceCount))
        devices.clear();
    m_dag->setConflicts({operators.begin(), operators.end()});
    m_timeline->setConflicts(std::move(devices));
}

void MainWindow::onPlanChanged()
{
    const PlanUpdateSnapshot &latest = m_workspace.latest();
    const PlanUpdateSnapshot &good = m_workspace.lastGood();
    m_problems->setUpdate(latest);
    m_waysOut->refresh();
    markConflicts();
    QString why;
    if (latest && latest->error) {
        why = tr("No plan: %1").arg(QString::fromStdString(latest->error->message));
        if (!latest->error->advice.empty())
            why += QLatin1Char('\n') + QString::fromStdString(latest->error->advice);
    } else if (latest && latest->errorCount() > latest->brokenLimitCount()) {
        why = tr("No plan yet: rows of the table are in conflict.");
    }
    m_timeline->setEmptyText(why);
    m_gallery->setNow(good && good->isTimed() ? &good->summary : nullptr);
    if (good && good->scene != m_shownScene) {
        m_shownScene = good->scene;
        showOverlay(nullptr); // what was measured is of another plan
        m_timeline->setScene(good->scene);
        m_chores.add("dag", [this, good] { m_dag->setUpdate(good); });
        m_chores.add("bound", [this] { findBound(); });
        m_chores.add("inspector", [this, good] { m_inspector->setPlan(good); });
        m_chores.add("sharding", [this, good] { m_sharding->setPlan(good); });
    }
    if (latest && latest->final) {
        logPlan();
        if (latest->scene)
            m_thumbnailTimer.start();
        m_schedules->setPlan(good);
        updateSearchNotice();
    }
    onState();
}

void MainWindow::logPlan()
{
    const PlanUpdateSnapshot latest = m_workspace.latest();
    if (latest == m_logged)
        return;
    m_logged = latest;
    const auto broken = static_cast<int>(latest->brokenLimitCount());
    const int wrong = static_cast<int>(latest->errorCount()) - broken;
    if (latest->error) {
        m_log->model()->add(
            LogKind::Plan, tr("No plan: %1").arg(QString::fromStdString(latest->error->message)));
    } else if (wrong > 0) {
        m_log->model()->add(LogKind::Plan,
            wrong == 1 ? tr("1 row in conflict: the last plan stays")
                       : tr("%1 rows in conflict: the last plan stays").arg(wrong));
    } else if (latest->scene) {
        const QString proof = !latest->verdict ? tr("not verified")
            : latest->verdict->ok()            ? tr("verified")
                                               : tr("refuted");
        m_log->model()->add(LogKind::Plan,
            tr("%1 devices, step %2, peak %3, %4")
                    .arg(m_workspace.deviceCount())
                    .arg(QString::fromStdString(formatSeconds(latest->summary.stepSeconds)),
                        QString::fromStdString(formatBytes(latest->summary.largestPeak)), proof)
                + (broken == 0        ? QString()
                        : broken == 1 ? tr(", 1 limit exceeded")
                                      : tr(", %1 limits exceeded").arg(broken)));
    }
}

void MainWindow::onState()
{
    const bool busy = m_workspace.isOpening() || m_workspace.isPlanning();
    if (busy && !m_busyTimer.isActive()) {
        m_busySince.start();
        m_busyTimer.start();
    } else if (!busy) {
        m_busyTimer.stop();
    }
    m_timeline->setStale(m_workspace.isStale() && !m_workspace.isPlanning());
    // The keys of the next moment are right at once; words may come a little later, and once for many
    // changes.
    m_undo->setEnabled(m_workspace.canUndo());
    m_redo->setEnabled(m_workspace.canRedo());
    refreshPill();
    m_chores.add("state", [this] { refreshCommands(); });
    m_chores.add("words", [this] {
        refreshOpeningNotice();
        refreshStatusBar();
        refreshTitle();
    });
}

void MainWindow::onSaveState()
{
    const QString id = QStringLiteral("save");
    if (m_workspace.saveState() == SaveState::Failed) {
        m_notices->show({id, NoticeKind::Error,
            tr("What you do is not saved: %1. It is tried again by itself; nothing is lost while this window "
               "is open.")
                .arg(m_workspace.saveRemark()),
            {{tr("Save Copy As…"), [this] { saveCopyAs(); }, true}}, true});
    } else if (m_workspace.saveState() == SaveState::Saved && m_notices->isShown(id)) {
        m_notices->dismiss(id);
        m_log->model()->add(
            LogKind::Session, tr("Saving works again: everything is in %1").arg(m_workspace.path()));
    }
    if (m_workspace.saveState() == SaveState::Saved && m_recentPath != m_workspace.path())
        noteRecent();
    refreshStatusBar();
    refreshTitle();
}

void MainWindow::onMinorProblem(const Error &error)
{
    m_log->model()->add(LogKind::Problem, QString::fromStdString(describe(error)));
}

void MainWindow::onProblem(const Error &error)
{
    if (placeOf(error)
        == Place(
            NamedPlace{"gallery"})) { // a plan that does not fit is no problem of the one that stands: it is
        // said where it was asked for
        const QString reason = sentences({error.message, error.advice});
        m_gallery->setRefusal(tr("Not applied. %1").arg(reason));
        m_log->model()->add(LogKind::Problem, tr("Gallery plan not applied. %1").arg(reason));
        m_docks->reveal(QStringLiteral("gallery"), false);
        onState();
        return;
    }
    const QString text = QString::fromStdString(describe(error));
    m_log->model()->add(LogKind::Problem, text);
    m_problems->addProblem(error);
    if (m_stack->currentWidget() == m_start)
        m_notices->show({QStringLiteral("open"), NoticeKind::Error, text, {}, true});
    else
        m_docks->reveal(QStringLiteral("problems"), false);
    onState();
}

void MainWindow::onModelFileChanged(const QString &path)
{
    m_notices->show({QStringLiteral("model"), NoticeKind::Warning,
        QFileInfo::exists(path) ? tr("The model's file has changed: %1").arg(QFileInfo(path).fileName())
                                : tr("The model's file is gone: %1. The session keeps the model.")
                                      .arg(QFileInfo(path).fileName()),
        QFileInfo::exists(path)
            ? std::vector<NoticeAction>{{tr("Reload"),
                                            [this] {
                                                // Rows are bound anew by name; what that meant is said when
                                                // it is done.
                                                ModelSource source = m_workspace.model()->source;
                                                source.content.clear();
                                                auto *once = new QObject(this);
                                                connect(&m_workspace, &Workspace::planChanged, once,
                                                    [this, once] {
                                                        if (!m_workspace.latest()
                                                            || !m_workspace.latest()->final)
                                                            return;
                                                        once->deleteLater();
                                                        m_notices->show(
                                                            {QStringLiteral("remark"), NoticeKind::Info,
                                                                m_workspace.remark(), {}, true});
                                                    });
                                                m_workspace.openModel(source, true);
                                            }},
                {tr("Keep"), {}}}
            : std::vector<NoticeAction>{{tr("Keep"), {}}},
        true});
}

void MainWindow::refreshOpeningNotice()
{
    const QString id = QStringLiteral("opening");
    if (!m_workspace.isOpening()) {
        m_notices->dismiss(id);
        return;
    }
    if (!m_busyTimer.isActive() || m_busySince.elapsed() < kSilentOpening)
        return;
    const QString clock = tr("%1 s").arg(static_cast<double>(m_busySince.elapsed()) / 1000, 0, 'f', 1);
    m_notices->show({id, NoticeKind::Info,
        m_openingName.isEmpty() ? tr("Opening… %1").arg(clock)
                                : tr("Opening %1 … %2").arg(m_openingName, clock),
        {{tr("Cancel"), [this] { m_workspace.cancelOpening(); }}}, false});
}

void MainWindow::refreshPill()
{
    const qint64 since = m_busyTimer.isActive() ? m_busySince.elapsed() : 0;
    if (const auto state = pillStateOf(m_workspace, since))
        m_pill->setState(state->mood, state->text);
    m_shownPlan->setText(shownPlanText(m_workspace, since));
    m_toolBars->fitState();
}

void MainWindow::refreshStatusBar()
{
    for (int part = 0; part < kStatusParts; ++part) {
        QLabel *label = m_status[static_cast<std::size_t>(part)];
        const QString text = statusText(m_workspace, m_facts, static_cast<StatusPart>(part));
        label->setText(text.isEmpty() ? text
                : part == kFreePart   ? QStringLiteral("<a href=\"#\">%1</a>").arg(text.toHtmlEscaped())
                : part == kStepPart
                ? tr("%1 <a href=\"#\">%2</a>").arg(text.toHtmlEscaped(), likeRunsText(m_workspace))
                : text);
        label->setToolTip(statusTipOf(m_workspace, static_cast<StatusPart>(part)));
    }
    fitStatusBar();
}

/// Where there is no room for all of it, what can be read elsewhere steps aside; nothing is cut off.
void MainWindow::fitStatusBar()
{
    constexpr StatusPart kFirstToGo[] = {
        kProofPart, kBubblePart, kGapPart, kFreePart, kZoomPart, kPeakPart, kRowsPart, kStepPart};
    const int between = statusBar()->layout() ? std::max(statusBar()->layout()->spacing(), 0) : 0;
    std::array<bool, kStatusParts> shown{};
    int needed = statusBar()->fontMetrics().averageCharWidth();
    for (std::size_t part = 0; part < shown.size(); ++part) {
        shown[part] = !m_status[part]->text().isEmpty();
        needed += shown[part] ? m_status[part]->sizeHint().width() + between : 0;
    }
    for (const StatusPart part : kFirstToGo) {
        if (needed <= statusBar()->width())
            break;
        if (std::exchange(shown[part], false))
            needed -= m_status[part]->sizeHint().width() + between;
    }
    // Under a message fields stay hidden, as the bar has hidden them: it would be painted over them.
    const bool isCovered = !statusBar()->currentMessage().isEmpty();
    for (std::size_t part = 0; part < shown.size(); ++part)
        if (!isCovered || part == kSavePart || part == kZoomPart)
            m_status[part]->setVisible(shown[part]);
}

void MainWindow::refreshZoom()
{
    m_facts.zoom = 0;
    if (m_canvas == m_timeline && m_timeline->scene()) {
        const double wide = std::max(1, m_timeline->viewport()->width() - m_timeline->axisLeft());
        const auto step = static_cast<double>(m_timeline->scene()->timeline->step.count());
        m_facts.zoom = step / std::max(1.0, m_timeline->axis().nanosecondsPerPixel * wide);
    } else if (m_canvas == m_dag && m_dag->picture()) {
        m_facts.zoom = m_dag->camera().scale;
    }
    QLabel *label = m_status[kZoomPart];
    label->setText(statusText(m_workspace, m_facts, kZoomPart));
    fitStatusBar();
}

/// How short a step of this kind could be at all, found on a worker.
void MainWindow::findBound()
{
    const PlanUpdateSnapshot &good = m_workspace.lastGood();
    m_facts.bound.reset();
    m_facts.freeDecisions.reset();
    if (!good || !good->scene || !good->scene->plan)
        return;
    if (good->plan)
        m_facts.freeDecisions = countFree(*good->plan, good->table.table());
    updateAdvice();
    if (m_boundWatcher.isRunning())
        return; // it is asked for again when that one is known
    m_boundWatcher.setFuture(QtConcurrent::run(
        [good] { return std::pair(good, stepBound(*good->scene->plan, costModelOf(good->cluster))); }));
}

void MainWindow::say(const QString &sentence)
{
    statusBar()->showMessage(sentence, kSentenceMilliseconds);
}

void MainWindow::refreshTitle()
{
    const QString title = m_workspace.title();
    setWindowTitle(title.isEmpty() ? QStringLiteral("Planloom") : tr("%1 – Planloom").arg(title));
}

void MainWindow::refreshCommands()
{
    const auto worded = [](const QString &verb, const std::string &words) {
        QString text = QString::fromStdString(elided(words, 60));
        text.replace(QLatin1Char('&'), QLatin1String("&&"));
        return words.empty() ? verb : verb + QLatin1Char(' ') + text;
    };
    m_undo->setText(worded(tr("&Undo"), m_workspace.history().undoWords()));
    m_redo->setText(worded(tr("&Redo"), m_workspace.history().redoWords()));
    m_live->setChecked(m_workspace.isLive());
    m_gallery->setUsable(isPlannable());
    const QString why = m_workspace.model() && !isPlannable()
        ? tr("This model is open to be looked at: it cannot be planned")
        : QString();
    for (const char *id : {"plan.gallery", "plan.deviceCount", "solve.now", "solve.live", "run.setup"}) {
        if (QAction *action = m_commands->find(QLatin1String(id)))
            action->setStatusTip(why);
    }
    m_commands->refresh();
    refreshSearchTool();
}

void MainWindow::noteRecent()
{
    m_recentPath = m_workspace.model() ? m_workspace.path() : QString();
    if (m_recentPath.isEmpty() || !m_workspace.model())
        return;
    const QString lessons = this->lessons()->folder(); // their list says how far one is
    if (!lessons.isEmpty() && m_recentPath.startsWith(lessons + QLatin1Char('/')))
        return;
    RecentSession session;
    session.path = m_recentPath.toStdString();
    session.model = m_workspace.model()->name;
    session.opened = QDateTime::currentMSecsSinceEpoch();
    m_recent->add(session);
}

} // namespace planloom
