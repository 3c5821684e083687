#include "widgets/main/main_window.h"

#include <QtCore/QFileInfo>
#include <QtGui/QAction>
#include <QtGui/QActionGroup>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QSplitter>

#include "engine/simulate/perfetto.h"
#include "widgets/main/constraint_panel.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/outline_panel.h"
#include "widgets/main/problems_panel.h"
#include "widgets/main/status_pill.h"

#include <fstream>

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;
constexpr const char *kSessionSuffix = "planloom";

} // namespace

void MainWindow::buildMenus()
{
    buildFileMenu();
    buildEditMenu();
    buildViewMenu();
    buildSolveMenu();
    buildHelpMenu();
}

void MainWindow::buildFileMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&File"));
    menu->addAction(tr("&Open…"), QKeySequence::Open, this, &MainWindow::openDialog);
    QMenu *list = menu->addMenu(tr("Open Sa&mple"));
    for (const Sample &sample : samples())
        list->addAction(QString::fromStdString(sample.title), this, [this, sample] { openSample(sample); });
    menu->addSeparator();
    QAction *storeAs = menu->addAction(tr("Save Session &As…"), QKeySequence::SaveAs, this, &MainWindow::saveAs);
    QAction *trace = menu->addAction(tr("&Export Timeline as Perfetto…"), this, &MainWindow::exportPerfetto);
    menu->addSeparator();
    menu->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
    const auto enable = [this, storeAs, trace] {
        storeAs->setEnabled(m_workspace.model() != nullptr);
        trace->setEnabled(m_workspace.lastGood() != nullptr);
    };
    connect(menu, &QMenu::aboutToShow, this, enable);
}

void MainWindow::buildEditMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Edit"));
    ConstraintEditor *editor = m_constraints->editor();
    QAction *undo = menu->addAction(tr("&Undo in Constraints"), QKeySequence::Undo, editor, &QPlainTextEdit::undo);
    QAction *redo = menu->addAction(tr("&Redo in Constraints"), QKeySequence::Redo, editor, &QPlainTextEdit::redo);
    undo->setEnabled(false);
    redo->setEnabled(false);
    connect(editor, &QPlainTextEdit::undoAvailable, undo, &QAction::setEnabled);
    connect(editor, &QPlainTextEdit::redoAvailable, redo, &QAction::setEnabled);
    menu->addSeparator();
    menu->addAction(tr("&Find…"), QKeySequence::Find, m_dag, &DagView::openFind);
    menu->addAction(tr("Find &Next"), QKeySequence(Qt::Key_F3), m_dag, &DagView::findNext);
    menu->addAction(tr("Find &Previous"), QKeySequence(Qt::SHIFT | Qt::Key_F3), m_dag, &DagView::findPrevious);
    menu->addAction(tr("Find in &Outline"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_O), this,
        [this] { reveal(m_outlineDock, m_outline->findLine()); });
    menu->addSeparator();
    menu->addAction(tr("Select N&othing"), &m_selection, &SelectionModel::clear);
}

void MainWindow::buildViewMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&View"));
    menu->addAction(tr("&DAG"), QKeySequence(Qt::CTRL | Qt::Key_1), this, [this] { m_dag->setFocus(); });
    menu->addAction(tr("&Timeline"), QKeySequence(Qt::CTRL | Qt::Key_2), this, [this] { m_timeline->setFocus(); });
    menu->addAction(tr("&Constraints"), QKeySequence(Qt::CTRL | Qt::Key_3), this,
        [this] { reveal(m_constraintsDock, m_constraints->editor()); });
    menu->addAction(
        tr("&Inspector"), QKeySequence(Qt::CTRL | Qt::Key_4), this, [this] { reveal(m_inspectorDock, m_inspector); });
    menu->addAction(tr("&Problems"), QKeySequence(Qt::CTRL | Qt::Key_6), this,
        [this] { reveal(m_problemsDock, m_problems); });
    menu->addAction(
        tr("&Model"), QKeySequence(Qt::CTRL | Qt::Key_7), this, [this] { reveal(m_outlineDock, m_outline); });
    menu->addSeparator();
    menu->addAction(tr("Zoom I&n"), QKeySequence::ZoomIn, this, [this] { zoom(kZoomStep); });
    menu->addAction(tr("Zoom &Out"), QKeySequence::ZoomOut, this, [this] { zoom(1 / kZoomStep); });
    menu->addAction(tr("&Fit All"), QKeySequence(Qt::CTRL | Qt::Key_0), this, [this] {
        m_dag->fitAll();
        m_timeline->fitAll();
    });
    menu->addAction(tr("Focus &Selection"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_F), this, [this] {
        const std::vector<OperatorId> selected = m_selection.selected();
        if (selected.size() == 1) {
            m_dag->showOperator(selected.front());
            m_selection.select(selected); // the box shown may stand for its backward operators too
        } else {
            m_dag->fitSelection();
        }
        m_timeline->focusSelection();
    });
    menu->addSeparator();
    menu->addAction(tr("Expand One &Level"), m_dag, &DagView::expandOneLevel);
    menu->addAction(tr("&Expand All"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_E), m_dag, &DagView::expandAll);
    menu->addAction(tr("Co&llapse All"), QKeySequence(Qt::CTRL | Qt::ALT | Qt::Key_C), m_dag, &DagView::collapseAll);
    QMenu *modes = menu->addMenu(tr("&Backward Pass"));
    m_modeActions = new QActionGroup(this);
    for (const auto &[text, mode] : {std::pair{tr("Forward &Only"), DagMode::ForwardOnly},
             {tr("&Folded"), DagMode::Folded}, {tr("&Unrolled"), DagMode::Unrolled}}) {
        QAction *action = modes->addAction(text);
        action->setCheckable(true);
        action->setChecked(mode == m_dag->mode());
        action->setData(static_cast<int>(mode));
        m_modeActions->addAction(action);
        connect(action, &QAction::triggered, m_dag, [this, chosen = mode] { m_dag->setMode(chosen); });
    }
    connect(m_dag, &DagView::modeChanged, this, [this](DagMode mode) {
        for (QAction *action : m_modeActions->actions())
            action->setChecked(action->data().toInt() == static_cast<int>(mode));
    });
    QAction *each = menu->addAction(tr("S&ymmetric Devices One by One"));
    each->setCheckable(true);
    connect(each, &QAction::toggled, m_timeline, &TimelineView::expandAll);
    menu->addSeparator();

    QMenu *colours = menu->addMenu(tr("Colour B&y"));
    m_colourActions = new QActionGroup(this);
    for (const auto &[text, value] : {std::pair{tr("&Direction"), TimelineColouring::Direction},
             {tr("&Micro-batch"), TimelineColouring::MicroBatch}, {tr("&Stage"), TimelineColouring::Stage},
             {tr("D&evice"), TimelineColouring::Device}, {tr("&Kind"), TimelineColouring::Kind},
             {tr("&Time"), TimelineColouring::Time}}) {
        QAction *action = colours->addAction(text);
        action->setCheckable(true);
        action->setData(static_cast<int>(value));
        m_colourActions->addAction(action);
        connect(action, &QAction::triggered, this, [this, chosen = value] { setColouring(chosen); });
    }
    QMenu *themes = menu->addMenu(tr("T&heme"));
    themes->addAction(tr("&Light"), this, [this] { setDark(false); });
    themes->addAction(tr("&Dark"), this, [this] { setDark(true); });
    QAction *beside = menu->addAction(tr("DAG Beside Timeline"));
    beside->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Backslash));
    beside->setCheckable(true);
    connect(beside, &QAction::toggled, m_splitter,
        [this](bool on) { m_splitter->setOrientation(on ? Qt::Horizontal : Qt::Vertical); });
    QAction *full = menu->addAction(tr("Full Sc&reen"));
    full->setShortcut(QKeySequence(Qt::Key_F11));
    full->setCheckable(true);
    connect(full, &QAction::toggled, this, [this](bool on) { on ? showFullScreen() : showNormal(); });
    menu->addAction(tr("Reset La&yout"), this, [this, beside] {
        beside->setChecked(false);
        resetLayout();
    });
}

void MainWindow::buildSolveMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Solve"));
    menu->addAction(tr("Solve &Now"), QKeySequence(Qt::Key_F5), &m_workspace, &Workspace::replan);
    menu->addAction(tr("&Stop"), QKeySequence(Qt::SHIFT | Qt::Key_F5), &m_workspace, &Workspace::stopPlanning);
}

void MainWindow::buildHelpMenu()
{
    QMenu *menu = menuBar()->addMenu(tr("&Help"));
    menu->addAction(tr("&About Planloom"), this, &MainWindow::about);
}

void MainWindow::openDialog()
{
    const QString path = QFileDialog::getOpenFileName(this, tr("Open a model or a session"), {},
        tr("Models and sessions (*.onnx *.%1);;All files (*)").arg(QLatin1String(kSessionSuffix)));
    if (!path.isEmpty())
        m_workspace.openAny(path);
}

void MainWindow::saveAs()
{
    if (!m_workspace.model())
        return;
    QFileDialog dialog(this, tr("Save the session"));
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.setDefaultSuffix(QLatin1String(kSessionSuffix));
    dialog.setNameFilter(tr("Sessions (*.%1)").arg(QLatin1String(kSessionSuffix)));
    dialog.selectFile(m_workspace.title());
    if (dialog.exec() == QDialog::Accepted && !dialog.selectedFiles().isEmpty())
        m_workspace.saveAs(dialog.selectedFiles().front());
}

void MainWindow::exportPerfetto()
{
    const PlanUpdateSnapshot good = m_workspace.lastGood();
    if (!good)
        return;
    const QString path = QFileDialog::getSaveFileName(
        this, tr("Export the timeline for ui.perfetto.dev"), m_workspace.title() + QStringLiteral(".json"), tr("Traces (*.json)"));
    if (path.isEmpty())
        return;
    std::ofstream stream(path.toStdString(), std::ios::binary);
    if (!stream || !writePerfetto(stream, *good->scene->plan, *good->scene->timeline) || !stream.flush()) {
        onProblem({ErrorCode::Io, "the trace could not be written", "choose a folder you may write to, with room on its disk",
            path.toStdString()});
    }
}

void MainWindow::about()
{
    QMessageBox::about(this, tr("About Planloom"),
        tr("<h3>Planloom %1</h3><p>A designer for parallelization plans of deep-neural-network training.</p>"
           "<p>Its ideas are those of nnScaler (OSDI '24), SuperScaler (arXiv 2301.08984) and Tessel (HPCA '24).</p>")
            .arg(QApplication::applicationVersion()));
}

void MainWindow::zoom(double factor)
{
    if (m_timeline->hasFocus() || m_timeline->viewport()->hasFocus())
        factor > 1 ? m_timeline->zoomIn() : m_timeline->zoomOut();
    else
        m_dag->zoomBy(factor);
}

void MainWindow::reveal(QDockWidget *dock, QWidget *focus)
{
    dock->show();
    dock->raise();
    if (focus)
        focus->setFocus();
}

} // namespace planloom
