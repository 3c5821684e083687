// Menus: File, Edit, Window, Help. What docks and canvases can do, they say themselves.

#include "widgets/main/main_window.h"

#include <QtWidgets/QApplication>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>

#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/glossary/glossary_help.h"
#include "widgets/glossary/plan_tip.h"
#include "widgets/history/history_panel.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/locator.h"
#include "widgets/main/outline_panel.h"
#include "widgets/main/preferences_dialog.h"
#include "widgets/main/shortcut_sheet.h"
#include "widgets/main/start_page.h"
#include "widgets/trace/trace_panel.h"

namespace planloom {

namespace {

using Keys = QList<QKeySequence>;

} // namespace

void MainWindow::buildMenus()
{
    buildPresent();
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
    shareCanvasKeys();
}

void MainWindow::addCommands(QMenu *menu, const QStringList &ids)
{
    m_commands->rescan();
    for (const QString &id : ids) {
        if (QAction *action = m_commands->find(id))
            menu->addAction(action);
    }
}

void MainWindow::openTrace(const QStringList &paths)
{
    m_docks->reveal(QStringLiteral("trace"), false);
    findChild<TracePanel *>()->open(paths);
}

void MainWindow::buildFileMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&File"));
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto hasPlan = [this] { return m_workspace.lastGood() != nullptr; };
    const auto add = [this, menu](const char *id, const QString &text, const Keys &keys, auto &&act,
                         const char *icon = nullptr) {
        QAction *action = m_commands->add(id, text, keys, icon, this, act);
        menu->addAction(action);
        return action;
    };
    add("file.newWindow", tr("&New Session"), {QKeySequence::New}, [this] { openWindow(); });
    add(
        "file.open", tr("&Open…"), {QKeySequence::Open}, [this] { openDialog(); }, "open");
    add("file.importModel", tr("&Import Model…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O)},
        [this] { importModelDialog(); });
    add("file.openTrace", tr("Open &Trace…"), {}, [this] {
        const QStringList paths = QFileDialog::getOpenFileNames(
            this, tr("Open Trace"), {}, tr("Traces of ranks (*.json *.json.gz *.sqlite *.jsonl)"));
        if (!paths.isEmpty())
            openTrace(paths);
    });
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
    checkpoint->setProperty("carriedOutBy", QStringList{QStringLiteral("history.nameCheckpoint")});
    m_commands->enableWhile(add("file.saveCopyAs", tr("Save Copy &As…"),
                                {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S)}, [this] { saveCopyAs(); }),
        hasModel);
    m_commands->enableWhile(add("file.move", tr("&Move Session To…"), {}, [this] { moveSession(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    QMenu *out = menu->addMenu(tr("&Export"));
    const auto addOut = [this, out](const char *id, const QString &text, const Keys &keys, auto &&act,
                            auto &&possible) {
        QAction *action = m_commands->add(id, text, keys, nullptr, this, act);
        m_commands->enableWhile(action, possible);
        out->addAction(action);
    };
    addOut(
        "file.exportPicture", tr("P&icture…"), Keys{QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E)},
        [this] { exportPicture(); }, hasModel);
    addOut(
        "file.exportReport", tr("Rep&ort…"), Keys{}, [this] { exportReport(); }, hasPlan);
    addOut(
        "file.exportPerfetto", tr("Timeline as &Perfetto…"), Keys{}, [this] { exportPerfetto(); }, hasPlan);
    addOut(
        "file.exportTables", tr("&Tables as CSV…"), Keys{}, [this] { exportTables(); }, hasPlan);
    addOut(
        "file.exportPlan", tr("P&lan as JSON…"), Keys{}, [this] { exportPlanJson(); }, hasPlan);
    addOut(
        "file.exportRows", tr("&Rows as JSON…"), Keys{}, [this] { exportRowsJson(); }, hasModel);
    addOut(
        "file.exportAutodist", tr("Rows as &YAML of autodist…"), Keys{}, [this] { exportAutodist(); },
        hasModel);
    addOut(
        "file.exportCluster", tr("Cl&uster as JSON…"), Keys{}, [this] { exportCluster(); }, hasPlan);
    addCommands(out, {QStringLiteral("file.exportTalk"), QStringLiteral("file.exportAnimation")});
    buildConfigCommands(out);
    addCommands(out, {QStringLiteral("rows.copyPlan")});
    addCommands(menu, {QStringLiteral("file.importConfig"), QStringLiteral("file.pasteConfig")});
    m_commands->enableWhile(add("file.importRows", tr("Import Ro&ws…"), {}, [this] { importRowsDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(add("file.cluster", tr("C&luster from a File…"), {}, [this] { clusterDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(
        add("file.measuredCluster", tr("Cluster from Meas&urements…"), {}, [this] { measurementsDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(
        add("file.topologyCluster", tr("Cluster from Topolog&y…"), {}, [this] { topologyDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(
        add("file.modelOptions", tr("Mo&del Options…"), {}, [this] { modelOptionsDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(add("file.sizes", tr("Si&zes of the Inputs…"), {}, [this] { sizesDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(
        add("file.operatorFile", tr("O&perator Files…"), {}, [this] { operatorFileDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    m_commands->enableWhile(
        add("file.storedTensors", tr("Para&meters and Constants…"), {}, [this] { storedTensorsDialog(); }),
        [this, hasModel] { return hasModel() && !m_workspace.isReadOnly(); });
    menu->addSeparator();
    add("file.close", tr("&Close"), {QKeySequence(Qt::CTRL | Qt::Key_W)}, [this] { close(); });
    add("file.quit", tr("&Quit"), {QKeySequence(Qt::CTRL | Qt::Key_Q)},
        [] { QApplication::closeAllWindows(); });
}

void MainWindow::buildEditMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Edit"));
    m_undo = m_commands->add("edit.undo", tr("&Undo"), {QKeySequence(Qt::CTRL | Qt::Key_Z)}, "undo",
        &m_workspace, &Workspace::undo);
    m_redo = m_commands->add("edit.redo", tr("&Redo"),
        {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QKeySequence(Qt::CTRL | Qt::Key_Y)}, "redo",
        &m_workspace, &Workspace::redo);
    m_commands->enableWhile(m_undo, [this] { return m_workspace.canUndo(); });
    m_commands->enableWhile(m_redo, [this] { return m_workspace.canRedo(); });
    menu->addActions({m_undo, m_redo});
    for (const QAction *action :
        {m_undo, m_redo}) // what was asked about belongs to what is left, even where the plan stays
        connect(action, &QAction::triggered, m_timeline, &TimelineView::hidePanel);
    if (m_docks->find(QStringLiteral("history")))
        menu->addAction(
            m_commands->add("edit.history", tr("&History"), {QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_Z)},
                nullptr, this, [this] { m_docks->reveal(QStringLiteral("history")); }));
    menu->addSeparator();
    addCommands(menu,
        {QStringLiteral("rows.cut"), QStringLiteral("rows.copy"), QStringLiteral("rows.paste"),
            QStringLiteral("rows.new"), QStringLiteral("rows.duplicate"), QStringLiteral("rows.switch"),
            QStringLiteral("rows.edit"), QStringLiteral("rows.remove")});
    canvasDelegate(menu, "edit.removeRowsHere", tr("Remove Ro&ws Acting Here"), "remove", "removeRows");
    menu->addSeparator();
    const auto hasModel = [this] { return m_workspace.model() != nullptr; };
    const auto add = [&](const char *id, const QString &text, const Keys &keys, auto &&act,
                         const char *icon = nullptr) {
        QAction *action = m_commands->add(id, text, keys, icon, this, act);
        m_commands->enableWhile(action, hasModel);
        menu->addAction(action);
    };
    add(
        "edit.find", tr("&Find…"), {QKeySequence::Find}, [this] { m_dag->openFind(); }, "search");
    add("edit.findNext", tr("Find &Next"), {QKeySequence(Qt::Key_F3)}, [this] { m_dag->findNext(); });
    add("edit.findPrevious", tr("Find &Previous"), {QKeySequence(Qt::SHIFT | Qt::Key_F3)},
        [this] { m_dag->findPrevious(); });
    add("edit.findInModel", tr("Find in &Model"), {}, [this] {
        m_docks->reveal(QStringLiteral("model"), false);
        m_outline->findLine()->setFocus(Qt::ShortcutFocusReason);
    });
    menu->addSeparator();
    menu->addAction(m_commands->add("edit.preferences", tr("Pr&eferences…"),
        {QKeySequence(Qt::CTRL | Qt::Key_Comma)}, nullptr, this, [this] {
            if (!m_preferences) {
                m_preferences = new PreferencesDialog(m_commands.get(), m_services.themes, this);
                m_preferences->setAttribute(Qt::WA_DeleteOnClose);
            }
            m_preferences->show();
            m_preferences->raise();
        }));
}

void MainWindow::buildWindowMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Window"));
    menu->addAction(m_commands->add("window.new", tr("&New Window"),
        {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_N)}, nullptr, this, [this] { openWindow(); }));
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
    menu->addAction(m_commands->add("help.shortcuts", tr("&Shortcuts"), {QKeySequence(Qt::Key_Question)},
        nullptr, this, [this] { m_sheet->open(); }));
    menu->addAction(m_commands->add("help.palette", tr("Command &Palette"),
        {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P)}, "command", this,
        [this] { m_locator->open(true); }));
    menu->addAction(m_commands->add("help.goTo", tr("&Go to Anything"), {QKeySequence(Qt::CTRL | Qt::Key_K)},
        "search", this, [this] { m_locator->open(false); }));
    auto *glossary = new GlossaryHelp(this);
    menu->addAction(m_commands->add(
        "help.glossary", tr("Glossar&y"), {}, nullptr, glossary, [glossary] { glossary->open(); }));
    menu->addAction(m_commands->add("help.focus", tr("&What Is This?"), {QKeySequence(Qt::Key_F1)}, nullptr,
        glossary, [glossary] { glossary->openForFocus(); }));
    new PlanTip(&m_workspace, m_pill);
    buildLessonCommands(menu);
    QMenu *list = menu->addMenu(tr("Sa&mple Plans"));
    for (const Sample &sample : samples()) {
        list->addAction(m_commands->add(("help.sample-" + sample.name).c_str(),
            tr("Sample: %1").arg(QString::fromStdString(sample.title)), {}, nullptr, this,
            [this, sample] { openSample(sample); }));
    }
    menu->addAction(m_commands->add(
        "help.accuracy", tr("&How Good Are These Numbers?"), {}, nullptr, this, [this] { showAccuracy(); }));
    menu->addAction(m_commands->add(
        "help.pytorch", tr("Model from &PyTorch"), {}, nullptr, this, [this] { exportHelp(); }));
    menu->addAction(
        m_commands->add("help.about", tr("&About Planloom"), {}, "info", this, [this] { about(); }));
}

} // namespace planloom
