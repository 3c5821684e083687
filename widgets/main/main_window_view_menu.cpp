// Menus: View and Select.

#include "widgets/main/main_window.h"

#include <QtGui/QActionGroup>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QInputDialog>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSplitter>

#include "engine/gesture/selection.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/dock_board.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/locator.h"
#include "widgets/main/player.h"

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;

using Keys = QList<QKeySequence>;

} // namespace

void MainWindow::buildViewMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&View"));
    const auto add = [this, menu](const char *id, const QString &text, const Keys &keys, auto &&act) {
        QAction *action = m_commands->add(id, text, keys, nullptr, this, act);
        menu->addAction(action);
        return action;
    };
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto ctrl = [](Qt::Key key) { return Keys{QKeySequence(Qt::CTRL | key)}; };
    m_commands->enableWhile(
        add("view.dag", tr("&DAG"), ctrl(Qt::Key_1), [this] { m_dag->setFocus(Qt::ShortcutFocusReason); }),
        hasModel);
    m_commands->enableWhile(add("view.timeline", tr("&Timeline"), ctrl(Qt::Key_2),
                                [this] { m_timeline->setFocus(Qt::ShortcutFocusReason); }),
        hasModel);
    int further = 0;
    for (const auto &[dock, key] : {std::pair{"constraints", Qt::Key_3}, {"inspector", Qt::Key_4},
             {"memory", Qt::Key_5}, {"problems", Qt::Key_6}, {"model", Qt::Key_7}, {"plans", Qt::Key_8},
             {"run", Qt::Key_9}, {"whatif", Qt::Key_unknown}}) {
        const QDockWidget *found = m_docks->find(QLatin1String(dock));
        if (!found)
            continue;
        ++further;
        QAction *action = add((std::string("view.") + dock).c_str(), found->windowTitle(),
            key == Qt::Key_unknown ? Keys{} : ctrl(key),
            [this, name = QLatin1String(dock)] { m_docks->reveal(name); });
        m_commands->enableWhile(action, hasModel);
        action->setProperty(
            "carriedOutBy", QStringList{found->toggleViewAction()->objectName()}); // listed once
    }
    QMenu *docks = menu->addMenu(tr("D&ocks"));
    for (const QDockWidget *dock : m_docks->docks()) {
        QAction *toggle = dock->toggleViewAction();
        m_commands->enableWhile(toggle, hasModel);
        docks->addAction(toggle);
    }
    buildPerspectiveMenu(menu->addMenu(tr("&Perspective")));
    m_commands->enableWhile(add("view.resetLayout", tr("Reset La&yout"), {},
                                [this] {
                                    m_beside->setChecked(false);
                                    m_splitter->setSizes({500, 500});
                                    m_docks->reset();
                                }),
        hasModel);
    m_commands->enableWhile(
        m_beside = add("view.beside", tr("DAG Be&side Timeline"), ctrl(Qt::Key_Backslash), [] {}), hasModel);
    m_beside->setCheckable(true);
    connect(m_beside, &QAction::toggled, this, &MainWindow::showDagBeside);
    menu->addSeparator();
    m_commands->enableWhile(
        add("view.zoomIn", tr("Zoom I&n"),
            {QKeySequence(Qt::CTRL | Qt::Key_Plus), QKeySequence(Qt::CTRL | Qt::Key_Equal)},
            [this] { zoom(kZoomStep); }),
        hasModel);
    m_commands->enableWhile(
        add("view.zoomOut", tr("Zoom &Out"), ctrl(Qt::Key_Minus), [this] { zoom(1 / kZoomStep); }), hasModel);
    m_commands->enableWhile(add("view.fitAll", tr("&Fit All"), ctrl(Qt::Key_0),
                                [this] {
                                    m_dag->fitAll();
                                    m_timeline->fitAll();
                                }),
        hasModel);
    m_commands->enableWhile(
        add("view.focusSelection", tr("Focus Sele&ction"), {},
            [this] {
                const std::vector<OperatorId> selected = m_selection.selected();
                if (selected.size() == 1) {
                    m_dag->showOperator(selected.front());
                    m_selection.select(selected); // the box shown may stand for its backward operators too
                } else {
                    m_dag->fitSelection();
                }
                m_timeline->focusSelection();
            }),
        [this] { return !m_selection.selected().empty(); });
    addCommands(menu, {QStringLiteral("dag.back"), QStringLiteral("dag.forward")});
    menu->addSeparator();
    m_commands->enableWhile(
        add("view.expandLevel", tr("Expand One &Level"), {}, [this] { m_dag->expandOneLevel(); }), hasModel);
    m_commands->enableWhile(
        add("view.expandAll", tr("&Expand All"), {QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_E)},
            [this] { m_dag->expandAll(); }),
        hasModel);
    m_commands->enableWhile(
        add("view.collapseAll", tr("Coll&apse All"), {QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_C)},
            [this] { m_dag->collapseAll(); }),
        hasModel);
    for (const auto &[id, twin] : {std::pair{"view.expandLevel", "dag.expandOneLevel"},
             {"view.expandAll", "dag.expandAll"}, {"view.collapseAll", "dag.collapseAll"},
             {"view.fitAll", "dag.fitAll"}, {"view.zoomIn", "dag.zoomIn"}, {"view.zoomOut", "dag.zoomOut"},
             {"view.focusSelection", "dag.focusSelection"}, {"edit.find", "dag.find"},
             {"edit.findNext", "dag.findNext"}, {"edit.findPrevious", "dag.findPrevious"}})
        m_commands->find(QLatin1String(id))->setProperty("carriedOutBy", QStringList{QLatin1String(twin)});
    addCommands(menu, {QStringLiteral("dag.toggle"), QStringLiteral("dag.relayout")});
    buildTools(menu->addMenu(tr("&Tools")));
    QMenu *bookmarks = menu->addMenu(tr("Boo&kmarks"));
    addCommands(bookmarks, {QStringLiteral("dag.bookmark")});
    for (int number = 1; number <= 9; ++number)
        addCommands(bookmarks, {QStringLiteral("dag.bookmark%1").arg(number)});
    QMenu *modes = menu->addMenu(tr("&Backward Pass"));
    m_modeActions = new QActionGroup(this);
    for (const auto &[id, text, mode] :
        {std::tuple{"view.forwardOnly", tr("Forward &Only"), DagMode::ForwardOnly},
            {"view.folded", tr("&Folded"), DagMode::Folded},
            {"view.unrolled", tr("&Unrolled"), DagMode::Unrolled}}) {
        QAction *action =
            m_commands->add(id, text, {}, nullptr, this, [this, chosen = mode] { m_dag->setMode(chosen); });
        action->setCheckable(true);
        action->setChecked(mode == m_dag->mode());
        action->setData(static_cast<int>(mode));
        m_modeActions->addAction(action);
        modes->addAction(action);
    }
    connect(m_dag, &DagView::modeChanged, this, [this](DagMode mode) {
        for (QAction *action : m_modeActions->actions())
            action->setChecked(action->data().toInt() == static_cast<int>(mode));
    });
    addCommands(menu,
        {QStringLiteral("dag.flow"), QStringLiteral("timeline.communication"),
            QStringLiteral("timeline.criticalPath")});
    connect(m_commands->find(QStringLiteral("timeline.communication")), &QAction::toggled, m_dag,
        &DagView::setCommunicationShown);
    m_player->fill(menu->addMenu(tr("Pla&y")));
    addCommands(menu->addMenu(tr("Lane &Height")),
        {QStringLiteral("timeline.lanesFull"), QStringLiteral("timeline.lanesCompact"),
            QStringLiteral("timeline.lanesFit")});
    addCommands(menu, {QStringLiteral("timeline.idleTimes")});
    QAction *each = add("view.symmetric", tr("Sy&mmetric Devices One by One"), {}, [] {});
    each->setCheckable(true);
    connect(each, &QAction::toggled, m_timeline, &TimelineView::expandAll);
    m_commands->enableWhile(each, hasModel);
    menu->addSeparator();
    buildColourMenu(menu->addMenu(tr("Colou&r By")));
    if (m_services.themes)
        buildThemeMenu(menu->addMenu(tr("T&heme")));
    addCommands(menu,
        {QStringLiteral("view.fullScreen"), QStringLiteral("view.present"), QStringLiteral("view.playScenes"),
            QStringLiteral("view.makeScene"), QStringLiteral("view.reducedMotion")});
}

void MainWindow::buildColourMenu(QMenu *menu)
{
    m_colourActions = new QActionGroup(this);
    for (const auto &[id, text, value] :
        {std::tuple{"view.colourDirection", tr("&Direction"), TimelineColouring::Direction},
            {"view.colourMicroBatch", tr("&Micro-batch"), TimelineColouring::MicroBatch},
            {"view.colourStage", tr("&Stage"), TimelineColouring::Stage},
            {"view.colourDevice", tr("D&evice"), TimelineColouring::Device},
            {"view.colourKind", tr("&Kind"), TimelineColouring::Kind},
            {"view.colourTime", tr("&Time"), TimelineColouring::Time},
            {"view.colourDecidedBy", tr("Decided &By"), TimelineColouring::DecidedBy}}) {
        QAction *action = m_commands->add(id, tr("Colour by %1").arg(QString(text).remove(QLatin1Char('&'))),
            {}, nullptr, this, [this, chosen = value] { setColouring(chosen); });
        action->setCheckable(true);
        action->setData(static_cast<int>(value));
        m_colourActions->addAction(action);
        menu->addAction(action);
    }
    // What only the DAG can show.
    QMenu *more = menu->addMenu(tr("&Operators in the DAG By"));
    for (const auto &[id, value] : {std::pair{"view.colourMemory", ColourBy::Memory},
             {"view.colourCommunication", ColourBy::Communication}, {"view.colourSlack", ColourBy::Slack},
             {"view.colourError", ColourBy::Error}}) {
        QAction *action = m_commands->add(id, tr("Colour Operators by %1").arg(nameOf(value)), {}, nullptr,
            this, [this, chosen = value] { m_dag->setColourBy(chosen); });
        action->setCheckable(true);
        connect(m_dag, &DagView::colourByChanged, action,
            [action, own = value](ColourBy now) { action->setChecked(now == own); });
        more->addAction(action);
    }
    menu->addSeparator();
    menu->addAction(canvasCommand(
        "view.nextColour", tr("&Next Colouring"), {QKeySequence(Qt::Key_C)},
        [this] {
            const auto actions = m_colourActions->actions();
            const auto now = actions.indexOf(m_colourActions->checkedAction());
            setColouring(static_cast<TimelineColouring>(actions[(now + 1) % actions.size()]->data().toInt()));
        },
        "dag.nextColour"));
}

void MainWindow::buildPerspectiveMenu(QMenu *menu)
{
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto add = [&](const char *id, const QString &text, const Keys &keys, auto &&act) {
        QAction *action = m_commands->add(id, text, keys, nullptr, this, act);
        m_commands->enableWhile(action, hasModel);
        menu->addAction(action);
        return action;
    };
    const auto alt = [](Qt::Key key) { return Keys{QKeySequence(Qt::CTRL | Qt::ALT | key)}; };
    add("view.perspectiveDesign", tr("&Design Perspective"), alt(Qt::Key_1),
        [this] { m_docks->apply(QStringLiteral("design")); });
    if (m_docks->find(QStringLiteral("plans")))
        add("view.perspectiveCompare", tr("&Compare Perspective"), alt(Qt::Key_2),
            [this] { m_docks->apply(QStringLiteral("compare")); });
    if (m_docks->find(QStringLiteral("run")))
        add("view.perspectiveRun", tr("&Run Perspective"), alt(Qt::Key_3),
            [this] { m_docks->apply(QStringLiteral("run")); });
    menu->addSeparator();
    add("view.savePerspective", tr("&Save Perspective…"), {}, [this] {
        auto *dialog = new QInputDialog(this);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setWindowTitle(tr("Save Perspective"));
        dialog->setLabelText(tr("Name of this arrangement of docks"));
        connect(dialog, &QInputDialog::textValueSelected, this,
            [this](const QString &name) { m_docks->saveOwn(name); });
        dialog->open();
    });
    // Own ones come and go.
    connect(menu, &QMenu::aboutToShow, this, [this, menu] {
        for (QAction *old : menu->actions()) {
            if (old->property("own").toBool())
                old->deleteLater();
        }
        for (const QString &name : m_docks->ownPerspectives()) {
            QMenu *own = new QMenu(name, menu);
            own->addAction(tr("Use"), this, [this, name] { m_docks->apply(name); });
            own->addAction(tr("Remove"), this, [this, name] { m_docks->removeOwn(name); });
            menu->addMenu(own)->setProperty("own", true);
        }
    });
}

void MainWindow::buildThemeMenu(QMenu *menu)
{
    auto *group = new QActionGroup(this);
    const auto add = [&](const char *id, const QString &text, const QString &name) {
        QAction *action =
            m_commands->add(id, text, {}, nullptr, this, [this, name] { m_services.themes->choose(name); });
        action->setCheckable(true);
        action->setData(name);
        group->addAction(action);
        menu->addAction(action);
    };
    add("view.themeSystem", tr("Theme: As the &Desktop"), QStringLiteral("system"));
    add("view.themeLight", tr("Theme: &Light"), nameForTheme(Theme::Light));
    add("view.themeDark", tr("Theme: Dar&k"), nameForTheme(Theme::Dark));
    add("view.themeHighContrast", tr("Theme: High &Contrast Light"), nameForTheme(Theme::HighContrastLight));
    add("view.themeHighContrastDark", tr("Theme: High C&ontrast Dark"),
        nameForTheme(Theme::HighContrastDark));
    const auto check = [this, group] {
        const QString now = m_services.themes->followsDesktop() ? QStringLiteral("system")
                                                                : nameForTheme(m_services.themes->theme());
        for (QAction *action : group->actions())
            action->setChecked(action->data().toString() == now);
    };
    connect(menu, &QMenu::aboutToShow, this, check);
    connect(m_services.themes, &ThemeKeeper::themeChanged, group, check);
    check();
}

void MainWindow::buildSelectMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Select"));
    const auto graph = [this]() -> const Graph & { return *m_workspace.model()->graph; };
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto some = [this] { return m_workspace.model() && !m_selection.selected().empty(); };
    const auto planned = [this, some] {
        return some() && m_workspace.lastGood() && m_workspace.lastGood()->plan;
    };
    // The DAG has these of its own, with the same keys; here they are for the timeline, and for the menu.
    const auto add = [&](const char *id, const QString &text, const Keys &keys, const char *dagAction,
                         std::function<bool()> possible, std::function<void()> act) {
        QAction *action = canvasCommand(id, text, keys, std::move(act), dagAction);
        m_commands->enableWhile(action, std::move(possible));
        menu->addAction(action);
    };
    add("select.all", tr("&All"), {QKeySequence(Qt::CTRL | Qt::Key_A)}, "dag.selectAll", hasModel,
        [this, graph] { m_selection.select(allOperators(graph())); });
    add("select.similar", tr("&Similar"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_A)},
        "dag.selectSimilar", some,
        [this, graph] { m_selection.select(similarOperators(graph(), m_selection.selected())); });
    add("select.sameDevice", tr("Same &Device"), {}, "dag.sameDevice", planned, [this] {
        m_selection.select(operatorsOnSameDevices(*m_workspace.lastGood()->plan, m_selection.selected()));
    });
    add("select.sameStage", tr("Same S&tage"), {}, "dag.sameStage", planned, [this] {
        m_selection.select(operatorsOfSameStages(*m_workspace.lastGood()->plan, m_selection.selected()));
    });
    add("select.predecessors", tr("&Predecessors"), {QKeySequence(Qt::SHIFT | Qt::Key_BracketLeft)},
        "dag.predecessors", some,
        [this] { m_selection.select(predecessorsOf(*m_workspace.model()->index, m_selection.selected())); });
    add("select.successors", tr("S&uccessors"), {QKeySequence(Qt::SHIFT | Qt::Key_BracketRight)},
        "dag.successors", some,
        [this] { m_selection.select(successorsOf(*m_workspace.model()->index, m_selection.selected())); });
    QAction *query =
        m_commands->add("select.byQuery", tr("By &Query…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F)},
            nullptr, this, [this] { m_locator->open(false, QStringLiteral("=")); });
    m_commands->enableWhile(query, hasModel);
    menu->addAction(query);
    add("select.invert", tr("&Invert"), {QKeySequence(Qt::CTRL | Qt::Key_I)}, "dag.invert", hasModel,
        [this, graph] { m_selection.select(invertedSelection(graph(), m_selection.selected())); });
    add("select.none", tr("&None"), {}, "dag.selectNone", some, [this] { m_selection.clear(); });
}

void MainWindow::zoom(double factor)
{
    if (m_canvas == m_timeline)
        factor > 1 ? m_timeline->zoomIn() : m_timeline->zoomOut();
    else
        m_dag->zoomBy(factor);
}

void MainWindow::showDagBeside(bool beside)
{
    m_splitter->setOrientation(beside ? Qt::Horizontal : Qt::Vertical);
    storeView();
}

} // namespace planloom
