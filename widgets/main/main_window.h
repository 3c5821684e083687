#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include "widgets/common/selection_model.h"
#include "widgets/dag/dag_view.h"
#include "widgets/main/samples.h"
#include "widgets/design/workspace.h"
#include "widgets/timeline/timeline_view.h"

class QActionGroup;
class QComboBox;
class QDockWidget;
class QLabel;
class QSpinBox;
class QSplitter;
class QStackedWidget;
class QToolBar;

namespace planloom {

class ConstraintPanel;
class GalleryBar;
class InspectorPanel;
class OutlinePanel;
class ProblemsPanel;
class StartPage;
class StatusPill;

/// The designer's window: the DAG over the timeline, the model's outline, the inspector, the constraints and the
/// problems around them. All views share one selection, one workspace, one colouring.
class MainWindow : public QMainWindow
{
    Q_OBJECT
public:
    explicit MainWindow(QWidget *parent = nullptr);
    ~MainWindow() override;

    Workspace &workspace() { return m_workspace; }
    DagView *dag() const { return m_dag; }
    TimelineView *timeline() const { return m_timeline; }
    ConstraintPanel *constraints() const { return m_constraints; }
    InspectorPanel *inspector() const { return m_inspector; }
    OutlinePanel *outline() const { return m_outline; }
    ProblemsPanel *problems() const { return m_problems; }
    StatusPill *pill() const { return m_pill; }
    GalleryBar *gallery() const { return m_gallery; }
    SelectionModel &selection() { return m_selection; }

    void openSample(const Sample &sample);
    /// What the spans and nodes are coloured by.
    void setColouring(TimelineColouring colouring);
    void setDark(bool dark);
    /// Program that lays out small groups of the DAG; empty does without.
    void setLayoutHelper(const QString &program);
    /// Nothing is being opened, planned or laid out.
    bool isSettled() const;

protected:
    void closeEvent(QCloseEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;

private:
    // main_window.cpp: what is where, and what follows from changes
    void buildCentre();
    void buildDocks();
    void buildToolBar();
    void buildStatusBar();
    void connectWorkspace();
    void onModelChanged();
    void onPlanChanged();
    void onState();
    void onProblem(const Error &error);
    void refreshPill();
    void refreshStatusBar();
    void refreshTitle();
    void restoreView();
    void resetLayout();

    // main_window_actions.cpp: menus
    void buildMenus();
    void buildFileMenu();
    void buildEditMenu();
    void buildViewMenu();
    void buildSolveMenu();
    void buildHelpMenu();
    void openDialog();
    void saveAs();
    void exportPerfetto();
    void about();
    void zoom(double factor);
    void reveal(QDockWidget *dock, QWidget *focus);

    Workspace m_workspace;
    SelectionModel m_selection;
    QStackedWidget *m_stack = nullptr;
    StartPage *m_start = nullptr;
    QSplitter *m_splitter = nullptr;
    DagView *m_dag = nullptr;
    QLabel *m_breadcrumbs = nullptr;
    TimelineView *m_timeline = nullptr;
    OutlinePanel *m_outline = nullptr;
    InspectorPanel *m_inspector = nullptr;
    ConstraintPanel *m_constraints = nullptr;
    ProblemsPanel *m_problems = nullptr;
    QDockWidget *m_outlineDock = nullptr;
    QDockWidget *m_inspectorDock = nullptr;
    QDockWidget *m_constraintsDock = nullptr;
    QDockWidget *m_problemsDock = nullptr;
    QToolBar *m_toolBar = nullptr;
    GalleryBar *m_gallery = nullptr;
    QSpinBox *m_devices = nullptr;
    QComboBox *m_cluster = nullptr;
    QComboBox *m_colour = nullptr;
    QActionGroup *m_colourActions = nullptr;
    QActionGroup *m_modeActions = nullptr;
    StatusPill *m_pill = nullptr;
    std::vector<QLabel *> m_status; ///< Parts of the status bar, left to right.
    QTimer m_busyTimer; ///< While planning: keeps the pill's clock going.
    QElapsedTimer m_busySince;
    TimelineSceneSnapshot m_shownScene;
    std::optional<Error> m_lastProblem;
};

} // namespace planloom
