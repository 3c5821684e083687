// Commands and menus: everything the window itself can do. What docks and canvases can do, they say themselves.

#include "widgets/main/main_window.h"

#include <QtGui/QActionGroup>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QInputDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>

#include "widgets/common/themed_icon.h"
#include "widgets/history/history_panel.h"
#include "widgets/main/application_style.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/dock_board.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/locator.h"
#include "widgets/main/outline_panel.h"
#include "widgets/main/preferences_dialog.h"
#include "widgets/main/problems_panel.h"
#include "widgets/main/selection_commands.h"
#include "widgets/main/settings.h"
#include "widgets/main/shortcut_sheet.h"
#include "widgets/main/start_page.h"
#include "widgets/main/status_pill.h"

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;

using Keys = QList<QKeySequence>;

} // namespace

void MainWindow::buildMenus()
{
    buildFileMenu();
    buildEditMenu();
    buildViewMenu();
    buildSelectMenu();
    buildPlanMenu();
    buildSolveMenu();
    buildCompareMenu();
    buildRunMenu();
    buildWindowMenu();
    buildHelpMenu();

    // The tool bar of ux.md 4.1.
    const auto labelled = [this](const QString &text, QWidget *widget) {
        auto *label = new QLabel(text, m_toolBar);
        label->setBuddy(widget);
        label->setContentsMargins(fontMetrics().height() / 2, 0, 2, 0);
        m_toolBar->addWidget(label);
        m_toolBar->addWidget(widget);
    };
    m_toolBar->addAction(m_undo);
    m_toolBar->addAction(m_redo);
    for (QAction *action : {m_undo, m_redo}) { // their words belong to the menu
        if (auto *button = qobject_cast<QToolButton *>(m_toolBar->widgetForAction(action)))
            button->setToolButtonStyle(Qt::ToolButtonIconOnly);
    }
    m_toolBar->addSeparator();
    for (const char *id : {"plan.split", "plan.place", "plan.order"}) {
        if (QAction *action = m_commands->find(QLatin1String(id)))
            m_toolBar->addAction(action);
    }
    m_toolBar->addSeparator();
    labelled(tr("&Devices"), m_devices);
    labelled(tr("C&luster"), m_cluster);
    labelled(tr("Colour &by"), m_colour);
    m_toolBar->addSeparator();
    m_toolBar->addAction(m_live);
    auto *spacer = new QWidget(m_toolBar);
    spacer->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    m_toolBar->addWidget(spacer);
    m_toolBar->addWidget(m_pill);
    if (QAction *run = m_commands->find(QStringLiteral("run.run")))
        m_toolBar->addAction(run);
}

QAction *MainWindow::canvasCommand(
    const char *id, const QString &text, const Keys &shortcuts, std::function<void()> act, const char *dagAction)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QLatin1String(id));
    action->setShortcuts(shortcuts);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, [act = std::move(act)] { act(); });
    m_timeline->addAction(action);
    if (dagAction)
        action->setProperty("carriedOutBy", QStringList{QLatin1String(dagAction)});
    else
        m_dag->addAction(action);
    return action;
}

QAction *MainWindow::canvasDelegate(QMenu *menu, const char *id, const QString &text, const char *action, const char *timelineAction)
{
    m_commands->rescan();
    const QString dag = QStringLiteral("dag.%1").arg(QLatin1String(action));
    const QString timeline = QStringLiteral("timeline.%1").arg(QLatin1String(timelineAction ? timelineAction : action));
    QAction *first = m_commands->find(dag) ? m_commands->find(dag) : m_commands->find(timeline);
    if (!first)
        return nullptr;
    QAction *command = m_commands->add(id, text);
    command->setProperty("carriedOutBy", QStringList{dag, timeline});
    if (iconNames().contains(QLatin1String(action)))
        command->setIcon(themedIcon(QLatin1String(action)));
    // The key belongs to the canvases; here it is only shown.
    const auto showKey = [command, first, text] {
        const QString keys = first->shortcut().toString(QKeySequence::NativeText);
        command->setText(keys.isEmpty() ? text : text + QLatin1Char('\t') + keys);
        command->setIconText(QString(text).remove(QLatin1Char('&')));
        command->setToolTip(QString(text).remove(QLatin1Char('&')) + (keys.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(keys)));
    };
    connect(m_commands.get(), &CommandRegistry::shortcutsChanged, command, showKey);
    showKey();
    connect(command, &QAction::triggered, this, [this, dag, timeline] {
        const bool there = m_canvas == m_timeline && m_commands->find(timeline);
        QAction *chosen = m_commands->find(there || !m_commands->find(dag) ? timeline : dag);
        (there || !m_commands->find(dag) ? static_cast<QWidget *>(m_timeline) : m_dag)->setFocus(Qt::OtherFocusReason);
        if (chosen)
            chosen->trigger();
    });
    m_commands->enableWhile(command, [this, dag, timeline] {
        const QAction *here = m_commands->find(m_canvas == m_timeline ? timeline : dag);
        const QAction *other = m_commands->find(m_canvas == m_timeline ? dag : timeline);
        return m_workspace.model() && ((here && here->isEnabled()) || (!here && other && other->isEnabled()));
    });
    if (menu)
        menu->addAction(command);
    return command;
}

void MainWindow::addCommands(QMenu *menu, const QStringList &ids)
{
    m_commands->rescan();
    for (const QString &id : ids) {
        if (QAction *action = m_commands->find(id))
            menu->addAction(action);
    }
}

void MainWindow::buildFileMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&File"));
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto hasPlan = [this] { return m_workspace.lastGood() != nullptr; };
    const auto add = [this, menu](const char *id, const QString &text, const Keys &keys, auto &&act, const char *icon = nullptr) {
        QAction *action = m_commands->add(id, text, keys, icon, this, act);
        menu->addAction(action);
        return action;
    };
    add("file.newWindow", tr("&New Session"), {QKeySequence::New}, [this] { openWindow(); });
    add("file.open", tr("&Open…"), {QKeySequence::Open}, [this] { openDialog(); }, "open");
    add("file.importModel", tr("&Import Model…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O)}, [this] { importModelDialog(); });
    QMenu *recent = menu->addMenu(tr("Open &Recent"));
    connect(recent, &QMenu::aboutToShow, this, [this, recent] {
        recent->clear();
        for (const QString &path : m_start->recentSessions())
            recent->addAction(path, this, [this, path] { openHere(path); });
        if (recent->isEmpty())
            recent->addAction(tr("No session was open yet"))->setEnabled(false);
    });
    menu->addSeparator();
    QAction *checkpoint = add("file.checkpoint", tr("Name &Checkpoint…"), {QKeySequence::Save}, [this] {
        m_docks->reveal(QStringLiteral("history"), false);
        m_history->nameCheckpoint();
    });
    m_commands->enableWhile(checkpoint, hasModel);
    m_commands->enableWhile(add("file.saveCopyAs", tr("Save Copy &As…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S)}, [this] { saveCopyAs(); }),
        hasModel);
    m_commands->enableWhile(add("file.move", tr("&Move Session To…"), {}, [this] { moveSession(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    QMenu *out = menu->addMenu(tr("&Export"));
    const auto addOut = [this, out](const char *id, const QString &text, const Keys &keys, auto &&act, auto &&possible) {
        QAction *action = m_commands->add(id, text, keys, nullptr, this, act);
        m_commands->enableWhile(action, possible);
        out->addAction(action);
    };
    addOut("file.exportPicture", tr("P&icture…"), Keys{QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E)}, [this] { exportPicture(); }, hasModel);
    addOut("file.exportPerfetto", tr("Timeline as &Perfetto…"), Keys{}, [this] { exportPerfetto(); }, hasPlan);
    addOut("file.exportTables", tr("&Tables as CSV…"), Keys{}, [this] { exportTables(); }, hasPlan);
    addOut("file.exportPlan", tr("P&lan as JSON…"), Keys{}, [this] { exportPlanJson(); }, hasPlan);
    addOut("file.exportRows", tr("&Rows as JSON…"), Keys{}, [this] { exportRowsJson(); }, hasModel);
    addCommands(out, {QStringLiteral("rows.copyPlan")});
    m_commands->enableWhile(add("file.importRows", tr("Import Ro&ws…"), {}, [this] { importRowsDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    menu->addSeparator();
    add("file.close", tr("&Close"), {QKeySequence(Qt::CTRL | Qt::Key_W)}, [this] { close(); });
    add("file.quit", tr("&Quit"), {QKeySequence(Qt::CTRL | Qt::Key_Q)}, [] { QApplication::closeAllWindows(); });
}

void MainWindow::buildEditMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Edit"));
    m_undo = m_commands->add("edit.undo", tr("&Undo"), {QKeySequence(Qt::CTRL | Qt::Key_Z)}, "undo", &m_workspace, &Workspace::undo);
    m_redo = m_commands->add("edit.redo", tr("&Redo"),
        {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QKeySequence(Qt::CTRL | Qt::Key_Y)}, "redo", &m_workspace, &Workspace::redo);
    m_commands->enableWhile(m_undo, [this] { return m_workspace.canUndo(); });
    m_commands->enableWhile(m_redo, [this] { return m_workspace.canRedo(); });
    menu->addActions({m_undo, m_redo});
    if (m_docks->find(QStringLiteral("history")))
        menu->addAction(m_commands->add("edit.history", tr("&History"), {QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_Z)}, nullptr, this,
            [this] { m_docks->reveal(QStringLiteral("history")); }));
    menu->addSeparator();
    addCommands(menu, {QStringLiteral("rows.cut"), QStringLiteral("rows.copy"), QStringLiteral("rows.paste"), QStringLiteral("rows.new"),
                          QStringLiteral("rows.duplicate"), QStringLiteral("rows.switch"), QStringLiteral("rows.edit"), QStringLiteral("rows.remove")});
    canvasDelegate(menu, "edit.removeRowsHere", tr("Remove Ro&ws Acting Here"), "remove", "removeRows");
    menu->addSeparator();
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto add = [&](const char *id, const QString &text, const Keys &keys, auto &&act, const char *icon = nullptr) {
        QAction *action = m_commands->add(id, text, keys, icon, this, act);
        m_commands->enableWhile(action, hasModel);
        menu->addAction(action);
    };
    add("edit.find", tr("&Find…"), {QKeySequence::Find}, [this] { m_dag->openFind(); }, "search");
    add("edit.findNext", tr("Find &Next"), {QKeySequence(Qt::Key_F3)}, [this] { m_dag->findNext(); });
    add("edit.findPrevious", tr("Find &Previous"), {QKeySequence(Qt::SHIFT | Qt::Key_F3)}, [this] { m_dag->findPrevious(); });
    add("edit.findInModel", tr("Find in &Model"), {}, [this] {
        m_docks->reveal(QStringLiteral("model"), false);
        m_outline->findLine()->setFocus(Qt::ShortcutFocusReason);
    });
    menu->addSeparator();
    menu->addAction(m_commands->add("edit.preferences", tr("Pr&eferences…"), {QKeySequence(Qt::CTRL | Qt::Key_Comma)}, nullptr, this, [this] {
        if (!m_preferences) {
            m_preferences = new PreferencesDialog(m_commands.get(), m_services.themes, this);
            m_preferences->setAttribute(Qt::WA_DeleteOnClose);
        }
        m_preferences->show();
        m_preferences->raise();
    }));
}

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
    m_commands->enableWhile(add("view.dag", tr("&DAG"), ctrl(Qt::Key_1), [this] { m_dag->setFocus(Qt::ShortcutFocusReason); }), hasModel);
    m_commands->enableWhile(add("view.timeline", tr("&Timeline"), ctrl(Qt::Key_2), [this] { m_timeline->setFocus(Qt::ShortcutFocusReason); }), hasModel);
    int further = 0;
    for (const auto &[dock, key] : {std::pair{"constraints", Qt::Key_3}, {"inspector", Qt::Key_4}, {"memory", Qt::Key_5}, {"problems", Qt::Key_6},
             {"model", Qt::Key_7}, {"plans", Qt::Key_8}, {"run", Qt::Key_9}}) {
        const QDockWidget *found = m_docks->find(QLatin1String(dock));
        if (!found)
            continue;
        ++further;
        QAction *action = add((std::string("view.") + dock).c_str(), found->windowTitle(), ctrl(key),
            [this, name = QLatin1String(dock)] { m_docks->reveal(name); });
        m_commands->enableWhile(action, hasModel);
    }
    QMenu *docks = menu->addMenu(tr("D&ocks"));
    for (const QDockWidget *dock : m_docks->docks()) {
        QAction *toggle = dock->toggleViewAction();
        m_commands->enableWhile(toggle, hasModel);
        docks->addAction(toggle);
    }
    buildPerspectiveMenu(menu->addMenu(tr("&Perspective")));
    m_commands->enableWhile(add("view.resetLayout", tr("Reset La&yout"), {}, [this] {
        m_beside->setChecked(false);
        m_splitter->setSizes({500, 500});
        m_docks->reset();
    }), hasModel);
    m_commands->enableWhile(m_beside = add("view.beside", tr("DAG Be&side Timeline"), ctrl(Qt::Key_Backslash), [] {}), hasModel);
    m_beside->setCheckable(true);
    connect(m_beside, &QAction::toggled, this, &MainWindow::showDagBeside);
    menu->addSeparator();
    m_commands->enableWhile(add("view.zoomIn", tr("Zoom I&n"), {QKeySequence(Qt::CTRL | Qt::Key_Plus), QKeySequence(Qt::CTRL | Qt::Key_Equal)},
        [this] { zoom(kZoomStep); }), hasModel);
    m_commands->enableWhile(add("view.zoomOut", tr("Zoom &Out"), ctrl(Qt::Key_Minus), [this] { zoom(1 / kZoomStep); }), hasModel);
    m_commands->enableWhile(add("view.fitAll", tr("&Fit All"), ctrl(Qt::Key_0), [this] {
        m_dag->fitAll();
        m_timeline->fitAll();
    }), hasModel);
    m_commands->enableWhile(add("view.focusSelection", tr("Focus Sele&ction"), {}, [this] {
        const std::vector<OperatorId> selected = m_selection.selected();
        if (selected.size() == 1) {
            m_dag->showOperator(selected.front());
            m_selection.select(selected); // the box shown may stand for its backward operators too
        } else {
            m_dag->fitSelection();
        }
        m_timeline->focusSelection();
    }), [this] { return !m_selection.selected().empty(); });
    addCommands(menu, {QStringLiteral("dag.back"), QStringLiteral("dag.forward")});
    menu->addSeparator();
    m_commands->enableWhile(add("view.expandLevel", tr("Expand One &Level"), {}, [this] { m_dag->expandOneLevel(); }), hasModel);
    m_commands->enableWhile(add("view.expandAll", tr("&Expand All"), {QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_E)}, [this] { m_dag->expandAll(); }), hasModel);
    m_commands->enableWhile(add("view.collapseAll", tr("Coll&apse All"), {QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_C)}, [this] { m_dag->collapseAll(); }), hasModel);
    for (const auto &[id, twin] : {std::pair{"view.expandLevel", "dag.expandOneLevel"}, {"view.expandAll", "dag.expandAll"},
             {"view.collapseAll", "dag.collapseAll"}, {"view.fitAll", "dag.fitAll"}, {"view.zoomIn", "dag.zoomIn"}, {"view.zoomOut", "dag.zoomOut"},
             {"view.focusSelection", "dag.focusSelection"}, {"edit.find", "dag.find"}, {"edit.findNext", "dag.findNext"},
             {"edit.findPrevious", "dag.findPrevious"}})
        m_commands->find(QLatin1String(id))->setProperty("carriedOutBy", QStringList{QLatin1String(twin)});
    addCommands(menu, {QStringLiteral("dag.toggle"), QStringLiteral("dag.relayout")});
    QMenu *bookmarks = menu->addMenu(tr("Boo&kmarks"));
    addCommands(bookmarks, {QStringLiteral("dag.bookmark")});
    for (int number = 1; number <= 9; ++number)
        addCommands(bookmarks, {QStringLiteral("dag.bookmark%1").arg(number)});
    QMenu *modes = menu->addMenu(tr("&Backward Pass"));
    m_modeActions = new QActionGroup(this);
    for (const auto &[id, text, mode] : {std::tuple{"view.forwardOnly", tr("Forward &Only"), DagMode::ForwardOnly},
             {"view.folded", tr("&Folded"), DagMode::Folded}, {"view.unrolled", tr("&Unrolled"), DagMode::Unrolled}}) {
        QAction *action = m_commands->add(id, text, {}, nullptr, this, [this, chosen = mode] { m_dag->setMode(chosen); });
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
    addCommands(menu, {QStringLiteral("dag.flow"), QStringLiteral("timeline.communication"), QStringLiteral("timeline.criticalPath")});
    QAction *each = add("view.symmetric", tr("Sy&mmetric Devices One by One"), {}, [] {});
    each->setCheckable(true);
    connect(each, &QAction::toggled, m_timeline, &TimelineView::expandAll);
    m_commands->enableWhile(each, hasModel);
    menu->addSeparator();
    buildColourMenu(menu->addMenu(tr("Colou&r By")));
    if (m_services.themes)
        buildThemeMenu(menu->addMenu(tr("T&heme")));
    QAction *full = add("view.fullScreen", tr("F&ull Screen"), {QKeySequence(Qt::Key_F11)}, [] {});
    full->setCheckable(true);
    connect(full, &QAction::toggled, this, [this](bool on) { on ? showFullScreen() : showNormal(); });
}

void MainWindow::buildColourMenu(QMenu *menu)
{
    m_colourActions = new QActionGroup(this);
    for (const auto &[id, text, value] : {std::tuple{"view.colourDirection", tr("&Direction"), TimelineColouring::Direction},
             {"view.colourMicroBatch", tr("&Micro-batch"), TimelineColouring::MicroBatch}, {"view.colourStage", tr("&Stage"), TimelineColouring::Stage},
             {"view.colourDevice", tr("D&evice"), TimelineColouring::Device}, {"view.colourKind", tr("&Kind"), TimelineColouring::Kind},
             {"view.colourTime", tr("&Time"), TimelineColouring::Time}}) {
        QAction *action = m_commands->add(id, tr("Colour by %1").arg(QString(text).remove(QLatin1Char('&'))), {}, nullptr, this,
            [this, chosen = value] { setColouring(chosen); });
        action->setCheckable(true);
        action->setData(static_cast<int>(value));
        m_colourActions->addAction(action);
        menu->addAction(action);
    }
    // What only the DAG can show.
    QMenu *more = menu->addMenu(tr("&Operators in the DAG By"));
    for (const auto &[id, value] : {std::pair{"view.colourMemory", ColourBy::Memory}, {"view.colourCommunication", ColourBy::Communication},
             {"view.colourSlack", ColourBy::Slack}, {"view.colourDecidedBy", ColourBy::DecidedBy}, {"view.colourError", ColourBy::Error}}) {
        QAction *action = m_commands->add(id, tr("Colour Operators by %1").arg(nameOf(value)), {}, nullptr, this,
            [this, chosen = value] { m_dag->setColourBy(chosen); });
        action->setCheckable(true);
        connect(m_dag, &DagView::colourByChanged, action, [action, own = value](ColourBy now) { action->setChecked(now == own); });
        more->addAction(action);
    }
    menu->addSeparator();
    menu->addAction(canvasCommand("view.nextColour", tr("&Next Colouring"), {QKeySequence(Qt::Key_C)}, [this] {
        const auto actions = m_colourActions->actions();
        const auto now = actions.indexOf(m_colourActions->checkedAction());
        setColouring(static_cast<TimelineColouring>(actions[(now + 1) % actions.size()]->data().toInt()));
    }, "dag.nextColour"));
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
    add("view.perspectiveDesign", tr("&Design Perspective"), alt(Qt::Key_1), [this] { m_docks->apply(QStringLiteral("design")); });
    if (m_docks->find(QStringLiteral("plans")))
        add("view.perspectiveCompare", tr("&Compare Perspective"), alt(Qt::Key_2), [this] { m_docks->apply(QStringLiteral("compare")); });
    if (m_docks->find(QStringLiteral("run")))
        add("view.perspectiveRun", tr("&Run Perspective"), alt(Qt::Key_3), [this] { m_docks->apply(QStringLiteral("run")); });
    menu->addSeparator();
    add("view.savePerspective", tr("&Save Perspective…"), {}, [this] {
        auto *dialog = new QInputDialog(this);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setWindowTitle(tr("Save Perspective"));
        dialog->setLabelText(tr("Name of this arrangement of docks"));
        connect(dialog, &QInputDialog::textValueSelected, this, [this](const QString &name) { m_docks->saveOwn(name); });
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
        QAction *action = m_commands->add(id, text, {}, nullptr, this, [this, name] { m_services.themes->choose(name); });
        action->setCheckable(true);
        action->setData(name);
        group->addAction(action);
        menu->addAction(action);
    };
    add("view.themeSystem", tr("Theme: As the &Desktop"), QStringLiteral("system"));
    add("view.themeLight", tr("Theme: &Light"), nameForTheme(Theme::Light));
    add("view.themeDark", tr("Theme: Dar&k"), nameForTheme(Theme::Dark));
    add("view.themeHighContrast", tr("Theme: High &Contrast Light"), nameForTheme(Theme::HighContrastLight));
    add("view.themeHighContrastDark", tr("Theme: High C&ontrast Dark"), nameForTheme(Theme::HighContrastDark));
    const auto check = [this, group] {
        const QString now = m_services.themes->followsDesktop() ? QStringLiteral("system") : nameForTheme(m_services.themes->theme());
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
    const auto planned = [this, some] { return some() && m_workspace.lastGood() && m_workspace.lastGood()->plan; };
    // The DAG has these of its own, with the same keys; here they are for the timeline, and for the menu.
    const auto add = [&](const char *id, const QString &text, const Keys &keys, const char *dagAction, std::function<bool()> possible,
                         std::function<void()> act) {
        QAction *action = canvasCommand(id, text, keys, std::move(act), dagAction);
        m_commands->enableWhile(action, std::move(possible));
        menu->addAction(action);
    };
    add("select.all", tr("&All"), {QKeySequence(Qt::CTRL | Qt::Key_A)}, "dag.selectAll", hasModel,
        [this, graph] { m_selection.select(allForwardOperators(graph())); });
    add("select.similar", tr("&Similar"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_A)}, "dag.selectSimilar", some,
        [this, graph] { m_selection.select(similarOperators(graph(), m_selection.selected())); });
    add("select.sameDevice", tr("Same &Device"), {}, "dag.sameDevice", planned,
        [this] { m_selection.select(operatorsOnSameDevices(*m_workspace.lastGood()->plan, m_selection.selected())); });
    add("select.sameStage", tr("Same S&tage"), {}, "dag.sameStage", planned,
        [this] { m_selection.select(operatorsOfSameStages(*m_workspace.lastGood()->plan, m_selection.selected())); });
    add("select.predecessors", tr("&Predecessors"), {QKeySequence(Qt::SHIFT | Qt::Key_BracketLeft)}, "dag.predecessors", some,
        [this] { m_selection.select(predecessorsOf(*m_workspace.model()->index, m_selection.selected())); });
    add("select.successors", tr("S&uccessors"), {QKeySequence(Qt::SHIFT | Qt::Key_BracketRight)}, "dag.successors", some,
        [this] { m_selection.select(successorsOf(*m_workspace.model()->index, m_selection.selected())); });
    QAction *query = m_commands->add("select.byQuery", tr("By &Query…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F)}, nullptr, this,
        [this] { m_locator->open(false, QStringLiteral("=")); });
    m_commands->enableWhile(query, hasModel);
    menu->addAction(query);
    add("select.invert", tr("&Invert"), {QKeySequence(Qt::CTRL | Qt::Key_I)}, "dag.invert", hasModel,
        [this, graph] { m_selection.select(invertedSelection(graph(), m_selection.selected())); });
    add("select.none", tr("&None"), {}, "dag.selectNone", some, [this] { m_selection.clear(); });
}

void MainWindow::buildPlanMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Plan"));
    canvasDelegate(menu, "plan.split", tr("&Split…"), "split");
    canvasDelegate(menu, "plan.replicate", tr("&Replicate…"), "replicate");
    canvasDelegate(menu, "plan.place", tr("&Place…"), "place");
    canvasDelegate(menu, "plan.order", tr("&Order…"), "order");
    canvasDelegate(menu, "plan.recompute", tr("Re&compute On/Off"), "recompute");
    canvasDelegate(menu, "plan.hold", tr("&Hold Solver's Decision"), "hold");
    canvasDelegate(menu, "plan.free", tr("&Free Selection"), "free");
    canvasDelegate(menu, "plan.stage", tr("Group as S&tage…"), "stage");
    menu->addSeparator();
    const auto editable = [this] { return m_workspace.model() && !m_workspace.isReadOnly(); };
    QMenu *limits = menu->addMenu(tr("Add &Limit"));
    const auto limit = [&](const char *id, const QString &text, const QString &row, int from, int length) {
        QAction *action = m_commands->add(id, text, {}, nullptr, this, [this, row, from, length] { writeRow(row, from, length); });
        m_commands->enableWhile(action, editable);
        limits->addAction(action);
    };
    limit("plan.limitMemory", tr("&Memory…"), QStringLiteral("limit memory 40GiB"), 13, 2);
    limit("plan.limitTime", tr("&Time…"), QStringLiteral("limit time 50ms"), 11, 2);
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
    addCommands(menu, {QStringLiteral("history.newBranch")});
}

void MainWindow::buildSolveMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("S&olve"));
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto add = [&](const char *id, const QString &text, const Keys &keys, auto &&act, std::function<bool()> possible, const char *icon = nullptr) {
        QAction *action = m_commands->add(id, text, keys, icon, this, act);
        m_commands->enableWhile(action, std::move(possible));
        menu->addAction(action);
        return action;
    };
    add("solve.now", tr("Solve &Now"), {QKeySequence(Qt::Key_F5)}, [this] { m_workspace.replan(); }, hasModel);
    add("solve.stop", tr("&Stop"), {QKeySequence(Qt::SHIFT | Qt::Key_F5)}, [this] { m_workspace.stopPlanning(); },
        [this] { return m_workspace.isPlanning(); });
    m_live = m_commands->add("solve.live", tr("&Live"), {QKeySequence(Qt::Key_F6)}, "live");
    m_live->setCheckable(true);
    m_live->setChecked(true);
    m_live->setToolTip(tr("Solves after every edit (F6); off, edits gather until Solve Now (F5)"));
    connect(m_live, &QAction::toggled, &m_workspace, &Workspace::setLive);
    m_commands->enableWhile(m_live, hasModel);
    menu->addAction(m_live);
    add("solve.verify", tr("&Verify Plan"), {QKeySequence(Qt::Key_F7)}, [this] {
        // Every answer is proven as far as it gets; asking again begins anew and tells the outcome.
        m_docks->reveal(QStringLiteral("log"), false);
        m_workspace.replan();
    }, [this] { return m_workspace.lastGood() != nullptr; });
    menu->addSeparator();
    const auto problems = [this] { return m_problems->count() > 0; };
    add("solve.nextProblem", tr("Next &Problem"), {QKeySequence(Qt::Key_F8)}, [this] { showProblem(1); }, problems);
    add("solve.previousProblem", tr("Previous P&roblem"), {QKeySequence(Qt::SHIFT | Qt::Key_F8)}, [this] { showProblem(-1); }, problems);
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
}

void MainWindow::buildCompareMenu()
{
    if (!m_docks->find(QStringLiteral("plans")))
        return;
    QMenu *menu = menuBar()->addMenu(tr("&Compare"));
    addCommands(menu, {QStringLiteral("plans.setA"), QStringLiteral("plans.setB"), QStringLiteral("plans.compare"),
                          QStringLiteral("plans.compareWithPrevious"), QStringLiteral("plans.swap"), QStringLiteral("plans.name")});
    menu->addSeparator();
    // The comparison's own come with it.
    connect(menu, &QMenu::aboutToShow, this, [this, menu] {
        addCommands(menu, {QStringLiteral("compare.sideBySide"), QStringLiteral("compare.difference"), QStringLiteral("compare.butterfly"),
                              QStringLiteral("compare.blink"), QStringLiteral("compare.takeIntoCurrent"), QStringLiteral("compare.copyTable")});
    });
}

void MainWindow::buildRunMenu()
{
    if (!m_docks->find(QStringLiteral("run")))
        return;
    QMenu *menu = menuBar()->addMenu(tr("&Run"));
    addCommands(menu, {QStringLiteral("run.run"), QStringLiteral("run.stop"), QStringLiteral("run.again"), QStringLiteral("run.overlay"), QStringLiteral("run.remove")});
    QAction *setup = m_commands->add("run.setup", tr("Set-&up…"), {}, nullptr, this, [this] { m_docks->reveal(QStringLiteral("run")); });
    m_commands->enableWhile(setup, [this] { return m_workspace.model() != nullptr; });
    menu->addAction(setup);
}

void MainWindow::buildWindowMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Window"));
    menu->addAction(m_commands->add("window.new", tr("&New Window"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N)}, nullptr, this, [this] { openWindow(); }));
    menu->addAction(m_commands->add("window.next", tr("Next &Window"), {}, nullptr, this, [this] {
        QList<QWidget *> windows;
        for (QWidget *widget : QApplication::topLevelWidgets()) {
            if (qobject_cast<MainWindow *>(widget) && widget->isVisible())
                windows.append(widget);
        }
        QWidget *next = windows[(windows.indexOf(this) + 1) % windows.size()];
        next->raise();
        next->activateWindow();
    }));
}

void MainWindow::buildHelpMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Help"));
    menu->addAction(m_commands->add("help.shortcuts", tr("&Shortcuts"), {QKeySequence(Qt::Key_Question)}, nullptr, this, [this] { m_sheet->open(); }));
    menu->addAction(m_commands->add("help.palette", tr("Command &Palette"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P)}, "command", this,
        [this] { m_locator->open(true); }));
    menu->addAction(m_commands->add("help.goTo", tr("&Go to Anything"), {QKeySequence(Qt::CTRL | Qt::Key_K)}, "search", this,
        [this] { m_locator->open(false); }));
    QMenu *list = menu->addMenu(tr("Sa&mple Plans"));
    for (const Sample &sample : samples()) {
        list->addAction(m_commands->add(("help.sample-" + sample.name).c_str(), tr("Sample: %1").arg(QString::fromStdString(sample.title)), {}, nullptr,
            this, [this, sample] { openSample(sample); }));
    }
    menu->addAction(m_commands->add("help.about", tr("&About Planloom"), {}, "info", this, [this] { about(); }));
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

void MainWindow::showProblem(int step)
{
    const int count = m_problems->count();
    if (count == 0)
        return;
    m_problemShown = m_problemShown < 0 ? (step > 0 ? 0 : count - 1) : ((m_problemShown + step) % count + count) % count;
    m_docks->reveal(QStringLiteral("problems"), false);
    m_problems->show(m_problemShown);
}

} // namespace planloom
