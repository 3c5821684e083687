// Menus: Plan, Solve, Compare, Run.

#include "widgets/main/main_window.h"

#include <QtWidgets/QFileDialog>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSpinBox>

#include "widgets/frame/dock_board.h"
#include "widgets/main/advice_dialog.h"
#include "widgets/main/command_registry.h"
#include "widgets/problems/problems_panel.h"

namespace planloom {

namespace {

using Keys = QList<QKeySequence>;

} // namespace

void MainWindow::buildPlanMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Plan"));
    canvasDelegate(menu, "plan.split", tr("&Split…"), "split");
    canvasDelegate(menu, "plan.replicate", tr("&Replicate…"), "replicate");
    canvasDelegate(menu, "plan.place", tr("&Place…"), "place");
    canvasDelegate(menu, "plan.order", tr("&Order…"), "order");
    addCommands(menu, {QStringLiteral("timeline.keepOrder"), QStringLiteral("timeline.pinUnit")});
    canvasDelegate(menu, "plan.recompute", tr("Re&compute On/Off"), "recompute");
    canvasDelegate(menu, "plan.hold", tr("&Hold Solver's Decision"), "hold");
    canvasDelegate(menu, "plan.free", tr("&Free Selection"), "free");
    canvasDelegate(menu, "plan.stage", tr("Group as S&tage…"), "stage");
    menu->addSeparator();
    buildScheduleMenu(menu);
    const auto editable = [this] { return isPlannable() && !m_workspace.isReadOnly(); };
    QMenu *limits = menu->addMenu(tr("Add &Limit"));
    const auto limit = [&](const char *id, const QString &text, const QString &row, int from, int length) {
        QAction *action = m_commands->add(
            id, text, {}, nullptr, this, [this, row, from, length] { writeRow(row, from, length); });
        m_commands->enableWhile(action, editable);
        limits->addAction(action);
    };
    limit("plan.limitMemory", tr("&Memory…"), QStringLiteral("limit memory 40GiB"), 13, 2);
    limit("plan.limitTime", tr("&Time…"), QStringLiteral("limit time 50ms"), 11, 2);
    limit(
        "plan.limitTraffic", tr("T&raffic of Links…"), QStringLiteral("limit traffic 2GiB per link"), 14, 1);
    limit("plan.limitInFlight", tr("Micro-&batches in Flight…"), QStringLiteral("in-flight 3"), 10, 1);
    QAction *devices = m_commands->add("plan.deviceCount", tr("&Device Count…"), {}, nullptr, this, [this] {
        m_devices->setFocus(Qt::ShortcutFocusReason);
        m_devices->selectAll();
    });
    m_commands->enableWhile(devices, editable);
    limits->addAction(devices);
    QAction *gallery = m_commands->add("plan.gallery", tr("Apply &Gallery Plan…"), {}, nullptr, this,
        [this] { m_docks->reveal(QStringLiteral("gallery")); });
    m_commands->enableWhile(gallery, editable);
    menu->addAction(gallery);
    buildAssumptions(menu);
    addCommands(menu, {QStringLiteral("history.newBranch")});
}

void MainWindow::buildSolveMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("S&olve"));
    const auto plannable = [this] { return isPlannable(); };
    const auto add = [&](const char *id, const QString &text, const Keys &keys, auto &&act,
                         std::function<bool()> possible, const char *icon = nullptr) {
        QAction *action = m_commands->add(id, text, keys, icon, this, act);
        m_commands->enableWhile(action, std::move(possible));
        menu->addAction(action);
        return action;
    };
    add(
        "solve.now", tr("Solve &Now"), {QKeySequence(Qt::Key_F5)}, [this] { m_workspace.replan(); },
        plannable);
    QAction *best = add(
        "solve.best", tr("Find &Best Plan"), {QKeySequence(Qt::CTRL | Qt::Key_F5)},
        [this] { m_workspace.searchBest(); },
        [this] { return isPlannable() && !m_workspace.isReadOnly() && !m_workspace.isSearching(); },
        "search");
    best->setToolTip(
        tr("Searches for the fastest plan that fits within your rows, and says how much better any "
           "could be (Ctrl+F5)"));
    addCommands(menu, {QStringLiteral("solve.bestFor")});
    QAction *again = m_commands->add("solve.searchAgain", tr("Search &Again After Edits"), {}, nullptr);
    again->setCheckable(true);
    again->setChecked(m_workspace.searchesAgain());
    again->setToolTip(
        tr("While there are rows of the solver, it chooses them anew after every edit of yours"));
    connect(again, &QAction::toggled, &m_workspace, &Workspace::setSearchesAgain);
    m_commands->enableWhile(again, plannable);
    menu->addAction(again);
    add(
        "solve.keepSearched", tr("&Keep What Was Searched"), {}, [this] { keepSearched(); },
        [this] { return !m_workspace.isReadOnly() && m_workspace.hasSolverRows(); });
    const auto planned = [this] { return m_workspace.lastGood() != nullptr; };
    add(
        "solve.free", tr("&Free Decisions…"), {}, [this] { showAdvice(AdviceDialog::FreePage); }, planned);
    add(
        "solve.suggest", tr("S&uggestions…"), {}, [this] { showAdvice(AdviceDialog::SuggestionPage); },
        planned);
    add(
        "solve.stop", tr("&Stop"), {QKeySequence(Qt::CTRL | Qt::Key_Period)},
        [this] { m_workspace.isSearching() ? m_workspace.settleSearch() : m_workspace.stopPlanning(); },
        [this] { return m_workspace.isPlanning(); }, "stop")
        ->setToolTip(tr("Ends what is being solved; of a search, the best plan so far is kept (Ctrl+.)"));
    m_live = m_commands->add("solve.live", tr("&Live"), {QKeySequence(Qt::Key_F6)}, "live");
    m_live->setCheckable(true);
    m_live->setChecked(true);
    m_live->setToolTip(tr("Solves after every edit (F6); off, edits gather until Solve Now (F5)"));
    connect(m_live, &QAction::toggled, &m_workspace, &Workspace::setLive);
    m_commands->enableWhile(m_live, plannable);
    menu->addAction(m_live);
    add(
        "solve.verify", tr("&Verify Plan"), {QKeySequence(Qt::Key_F7)},
        [this] {
            // Every answer is proven as far as it gets; asking again begins anew and tells the outcome.
            m_docks->reveal(QStringLiteral("log"), false);
            m_workspace.replan();
        },
        [this] { return m_workspace.lastGood() != nullptr; });
    menu->addSeparator();
    const auto problems = [this] { return m_problems->count() > 0; };
    add(
        "solve.nextProblem", tr("Next &Problem"), {QKeySequence(Qt::Key_F8)}, [this] { showProblem(1); },
        problems);
    add(
        "solve.previousProblem", tr("Previous P&roblem"), {QKeySequence(Qt::SHIFT | Qt::Key_F8)},
        [this] { showProblem(-1); }, problems);
    // The timeline explains what is under its focus with the same key; elsewhere the inspector says why.
    auto *why = new QAction(tr("&Explain This (Why?)"), this);
    why->setObjectName(QStringLiteral("solve.why"));
    why->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_E));
    why->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    m_dag->addAction(why);
    menu->addAction(why);
    connect(why, &QAction::triggered, this, [this] {
        if (m_canvas != m_timeline || !trigger(QStringLiteral("timeline.whyIdle")))
            m_docks->reveal(QStringLiteral("inspector"));
    });
    m_commands->enableWhile(why, [this] { return !m_selection.selected().empty(); });
    // On the timeline the key asks about idle time first, which has an action of its own.
    auto *here = new QAction(why->text(), this);
    here->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    m_timeline->addAction(here);
    connect(here, &QAction::triggered, why, &QAction::trigger);
    const auto *whyIdle = m_timeline->findChild<QAction *>(QStringLiteral("timeline.whyIdle"));
    const auto follow = [here, why, whyIdle] {
        here->setShortcuts(why->shortcuts());
        here->setEnabled(why->isEnabled() && !whyIdle->isEnabled());
    };
    connect(why, &QAction::changed, here, follow);
    connect(whyIdle, &QAction::changed, here, follow);
    follow();
}

void MainWindow::buildCompareMenu()
{
    if (!m_docks->find(QStringLiteral("plans")))
        return;
    QMenu *menu = menuBar()->addMenu(tr("&Compare"));
    addCommands(menu,
        {QStringLiteral("plans.setA"), QStringLiteral("plans.setB"), QStringLiteral("plans.compare"),
            QStringLiteral("plans.compareWithPrevious"), QStringLiteral("plans.swap"),
            QStringLiteral("plans.name")});
    menu->addSeparator();
    // The comparison has the same; one of the two is enough to be found.
    if (QAction *swap = m_commands->find(QStringLiteral("plans.swap")))
        swap->setProperty("carriedOutBy", QStringList{QStringLiteral("compare.swap")});
    // The comparison's own come with it.
    connect(menu, &QMenu::aboutToShow, this, [this, menu] {
        addCommands(menu,
            {QStringLiteral("compare.sideBySide"), QStringLiteral("compare.difference"),
                QStringLiteral("compare.butterfly"), QStringLiteral("compare.blink"),
                QStringLiteral("compare.takeIntoCurrent"), QStringLiteral("compare.copyTable")});
    });
}

void MainWindow::buildRunMenu()
{
    if (!m_docks->find(QStringLiteral("run")))
        return;
    QMenu *menu = menuBar()->addMenu(tr("&Run"));
    addCommands(menu,
        {QStringLiteral("run.run"), QStringLiteral("run.stop"), QStringLiteral("run.continue"),
            QStringLiteral("run.again"), QStringLiteral("run.calibrate"), QStringLiteral("run.pauseView"),
            QStringLiteral("run.overlay"), QStringLiteral("run.remove")});
    QAction *setup = m_commands->add(
        "run.setup", tr("Set-&up…"), {}, nullptr, this, [this] { m_docks->reveal(QStringLiteral("run")); });
    m_commands->enableWhile(setup, [this] { return isPlannable(); });
    menu->addAction(setup);
    QAction *measured =
        m_commands->add("run.openMeasured", tr("Open &Measured Run…"), {}, nullptr, this, [this] {
            const QString folder = QFileDialog::getExistingDirectory(
                this, tr("Folder of What a Run Measured: Logs of train.py --spans, or Traces"));
            if (!folder.isEmpty())
                openTrace({folder});
        });
    measured->setToolTip(tr("Lays what the ranks of a run did over the prediction, rank by rank"));
    menu->addAction(measured);
    addCommands(menu, {QStringLiteral("trace.calibrate")});
}

void MainWindow::showProblem(int step)
{
    const int count = m_problems->count();
    if (count == 0)
        return;
    m_problemShown =
        m_problemShown < 0 ? (step > 0 ? 0 : count - 1) : ((m_problemShown + step) % count + count) % count;
    m_docks->reveal(QStringLiteral("problems"), false);
    m_problems->show(m_problemShown);
}

} // namespace planloom
