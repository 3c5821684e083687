#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QFutureWatcher>
#include <QtCore/QPointer>
#include <QtCore/QTimer>
#include <QtWidgets/QMainWindow>

#include "widgets/common/chores.h"
#include "widgets/common/selection_model.h"
#include "widgets/dag/dag_view.h"
#include "widgets/design/workspace.h"
#include "widgets/exchange/drop_reader.h"
#include "widgets/main/gallery_preview.h"
#include "widgets/main/preferences_dialog.h"
#include "widgets/main/samples.h"
#include "widgets/status/pill_state.h"
#include "widgets/timeline/timeline_view.h"

#include <functional>
#include <memory>
#include <vector>

class QActionGroup;
class QComboBox;
class QLabel;
class QMenu;
class QSpinBox;
class QSplitter;
class QStackedWidget;

namespace planloom {

class ClusterChooser;
class AdviceDialog;
class CommandRegistry;
class CompareChoice;
class CompareView;
class DockBoard;
class GalleryPanel;
class InspectorPanel;
class LessonWindow;
class Locator;
class HistoryPanel;
class LogPanel;
class MemoryPanel;
class NoticeBar;
class OutlinePanel;
class PlansPanel;
class Player;
class ProblemsPanel;
struct PictureChoice;
struct PictureSource;
class RecentList;
class RunPanel;
class ScheduleBoard;
class ScheduleChooser;
struct RunOverlay;
class Settings;
class ShardingView;
class ShortcutSheet;
class StartPage;
class StatusPill;
class TablePanel;
struct AutodistRows;
class ThemeKeeper;
class ToolBars;
class ToolKeys;
class WaysOut;
struct LocatorEntry;
struct LocatorSources;

/// What the windows of a process share, and where they keep things.
struct WindowServices {
    std::shared_ptr<Settings> settings{}; ///< Null: preferences in memory.
    ThemeKeeper *themes =
        nullptr; ///< May be null: then the theme is not this window's to choose. Must outlive the windows.
    QString sessionFolder{}; ///< For sessions without a name; empty keeps them in memory.
    QString solvedFolder{}; ///< Of what searches found; empty keeps it in memory.
    QString recentFolder{}; ///< Of the recent list; empty keeps it in memory.
    QString layoutHelper{}; ///< Program that lays out groups of the DAG; may be empty.
};

/// The designer's window: the DAG over the timeline, and docks around them. All views share one selection,
/// one workspace, one colouring; everything that can be done is a command of the registry.
class MainWindow : public QMainWindow
{
    Q_OBJECT
public:
    explicit MainWindow(QWidget *parent = nullptr);
    explicit MainWindow(WindowServices services, QWidget *parent = nullptr);
    ~MainWindow() override;

    /// Shows the window where all of it is seen, frame and status bar included: in its present size, or as
    /// large as the screen.
    void showOnScreen();

    Workspace &workspace() { return m_workspace; }
    SelectionModel &selection() { return m_selection; }
    CommandRegistry &commands() { return *m_commands; }
    DockBoard &docks() { return *m_docks; }
    NoticeBar &notices() { return *m_notices; }
    DagView *dag() const { return m_dag; }
    TimelineView *timeline() const { return m_timeline; }
    TablePanel *constraints() const { return m_constraints; }
    InspectorPanel *inspector() const { return m_inspector; }
    OutlinePanel *outline() const { return m_outline; }
    ProblemsPanel *problems() const { return m_problems; }
    GalleryPanel *gallery() const { return m_gallery; }
    LogPanel *log() const { return m_log; }
    HistoryPanel *history() const { return m_history; }
    PlansPanel *plans() const { return m_plans; }
    RunPanel *run() const { return m_run; }
    CompareView *compare() const { return m_compare; }
    MemoryPanel *memory() const { return m_memory; }
    ScheduleChooser *schedules() const { return m_schedules; }
    ScheduleBoard *scheduleBoard() const { return m_board; } ///< Null until it is asked for.
    StatusPill *pill() const { return m_pill; }
    Locator *locator() const { return m_locator; }
    ShortcutSheet *shortcutSheet() const { return m_sheet; }
    LessonWindow *lessons() const;
    PreferencesDialog *preferences() const { return m_preferences; } ///< Null until it is asked for.

    void openSample(const Sample &sample);
    /// Opens a model, a session or a zoo name in this window.
    void openHere(const QString &pathOrSpec);
    /// Another window with a workspace of its own, shown.
    MainWindow *openWindow();
    /// What the spans and nodes are coloured by.
    void setColouring(TimelineColouring colouring);
    /// Program that lays out small groups of the DAG; empty does without.
    void setLayoutHelper(const QString &program);
    /// Nothing is being opened, planned or laid out.
    bool isSettled() const;
    /// Runs the command with this id, if it is possible now. @return false if it is not
    bool trigger(const QString &id);
    /// Paints DAG or timeline into a file; `pictureSaved` follows, and what went wrong is among the problems.
    void savePicture(const PictureChoice &choice, const QString &path);

Q_SIGNALS:
    /// Written; or not: it was given up, or the reason is among the problems.
    void pictureSaved(const QString &path, bool written);

protected:
    bool event(QEvent *event) override;
    bool focusNextPrevChild(bool next) override;
    void resizeEvent(QResizeEvent *event) override;
    void closeEvent(QCloseEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;

private:
    // main_window.cpp: what is where
    void buildCentre();
    QWidget *withPlayer();
    void buildStatusBar();
    void connectWorkspace();
    QWidget *besideOnCanvas(const QWidget &hidden) const;
    void focusCanvas();
    void keepFocus();
    bool isHandAtWork() const;
    QWidget *titled(const QString &title, QLabel *detail, QWidget *content);
    // main_window_docks.cpp: docks, perspectives, what the session remembers of them
    void buildDocks();
    QWidget *buildInspector();
    void showOverlay(const std::shared_ptr<const RunOverlay> &overlay);
    void connectDocks();
    void connectCanvases();
    void showPerspective(const QString &perspective);
    void takeValues();
    void buildPerspectives();
    void storeView();
    void storeViewNow();
    void restoreView();
    // main_window_updates.cpp: what follows from changes
    void onModelChanged();
    void showObstacles();
    void onSessionChanged();
    void markConflicts();
    void onPlanChanged();
    void onState();
    void onSaveState();
    void onProblem(const Error &error);
    void onMinorProblem(const Error &error);
    void onModelFileChanged(const QString &path);
    void refreshOpeningNotice();
    void refreshPill();
    void refreshStatusBar();
    void fitStatusBar();
    void refreshZoom();
    void findBound();
    void refreshTitle();
    void say(const QString &sentence);
    void refreshCommands();
    void logPlan();
    void noteRecent();
    /// Asks whether what is in no file may be lost. @param lose  the button for it; `then` follows
    void askBeforeLosingWork(const QString &lose, const std::function<void()> &then);
    // main_window_menus.cpp: File, Edit, Window, Help
    void buildMenus();
    void buildFileMenu();
    void buildEditMenu();
    void buildWindowMenu();
    void buildHelpMenu();
    // main_window_lessons.cpp
    void buildLessonCommands(QMenu *menu);
    // main_window_menus.cpp
    /// Adds the commands with these ids, as far as there are such.
    void addCommands(QMenu *menu, const QStringList &ids);
    // main_window_view_menu.cpp: View, Select
    void buildViewMenu();
    void buildColourMenu(QMenu *menu);
    void buildPerspectiveMenu(QMenu *menu);
    void buildThemeMenu(QMenu *menu);
    void buildSelectMenu();
    void zoom(double factor);
    void showDagBeside(bool beside);
    // main_window_plan_menu.cpp: Plan, Solve, Compare, Run
    void buildPlanMenu();
    // main_window_assumptions.cpp: what the simulator takes for granted
    void buildAssumptions(QMenu *menu);
    void assume(CommunicationQueues queues, bool blockingSends);
    // main_window_plan_menu.cpp
    void buildSolveMenu();
    void buildCompareMenu();
    void buildRunMenu();
    // main_window_schedules.cpp: schedules by name, side by side, found
    void buildScheduleMenu(QMenu *menu);
    void chooseSchedule(ScheduleKind kind);
    void showSchedules(bool search);
    void showProblem(int step);
    /// False for a model that is open to be looked at alone, and without one.
    bool isPlannable() const { return m_workspace.model() && !m_workspace.model()->planProblem; }
    // main_window_tools.cpp: the tool bar, commands of the canvases
    void buildToolBar();
    void buildTools(QMenu *menu);
    QComboBox *followersChoice();
    void fillToolBar();
    void refreshSearchTool();
    /// A command that acts only while a canvas has the keyboard; for the timeline alone where the DAG has one
    /// of its own.
    QAction *canvasCommand(const char *id, const QString &text, const QList<QKeySequence> &shortcuts,
        std::function<void()> act, const char *dagAction = nullptr);
    /// A command of the Plan menu that the canvas last used carries out: `action` is "split" for dag.split
    /// and timeline.split, unless the timeline's is called otherwise.
    QAction *canvasDelegate(QMenu *menu, const char *id, const QString &text, const char *action,
        const char *timelineAction = nullptr);
    void shareCanvasKeys();
    // main_window_files.cpp: files in and out
    void openDialog();
    void exportHelp();
    void operatorFileHelp();
    void operatorFileDialog();
    void importModelDialog();
    void importRowsDialog();
    void clusterDialog();
    void modelOptionsDialog();
    void storedTensorsDialog();
    void sizesDialog();
    void askSizes(const std::vector<InputDimension> &dimensions, const QString &problem);
    void openCluster(const QString &path);
    /// Goes to another cluster. @param devices  their number from now on; 0 leaves it
    void planFor(const std::string &cluster, const std::string &json, std::int32_t devices);
    void planForThisMachine();
    void measurementsDialog();
    void topologyDialog();
    void useTopologies(const QStringList &paths);
    void importRows(const QString &text, const QString &name);
    void showConstraintNotes(const AutodistRows &read, const QString &name, const std::string &axis);
    void saveCopyAs();
    void moveSession();
    void locate(const QString &missing);
    void askFile(const QString &title, const QString &filter, const QString &suggestion, bool save,
        std::function<void(QString)> use);
    void exportPerfetto();
    void exportText(const QString &title, const QString &suffix, const QString &filter,
        std::function<std::string()> make);
    void exportPlanJson();
    void exportRowsJson();
    void exportAutodist();
    void exportCluster();
    void exportReport();
    void exportTables();
    void writeOnWorker(const QString &done, std::function<Result<void>()> work);
    void writeTables(const PlanUpdateSnapshot &good, const QString &folder);
    void takeDrop(const Dropped &dropped);
    void about();
    // main_window_exchange.cpp: configs of training frameworks, in and out
    void importConfig(const QString &text, const QString &name);
    void exportConfig(bool find);
    void exportTorch();
    void replaceRows(const QString &words, const std::string &rows); ///< One step of the history.
    void buildConfigCommands(QMenu *out);
    // main_window_pictures.cpp: pictures out
    void exportPicture();
    PictureSource timelinePicture(const PictureChoice &choice, const Palette &palette);
    PictureSource dagPicture(const PictureChoice &choice, const Palette &palette);
    void makeThumbnail();
    bool showsPresentPlan()
        const; ///< The timeline shows the plan of the rows as they are, in a session that is kept.
    static QByteArray packedThumbnail(const QImage &whole);
    // main_window_present.cpp: scenes, presenting them, talks out
    void buildPresent();
    void exportTalk();
    void exportAnimation();
    void withScenePlans(
        const QString &path, const std::function<void(const std::map<StepId, PlanUpdateSnapshot> &)> &then);
    // main_window_go.cpp: palette and Go to Anything
    void buildLocator();
    LocatorSources locatorSources();
    void goTo(const LocatorEntry &entry);
    void writeRow(const QString &text, int selectFrom, int selectLength);
    void keepSearched();
    void onSearched();
    void updateSearchNotice();
    void showSearchNotice(const SearchResult &found, const QString &said);
    void showSearched();
    void showAdvice(int page); ///< An `AdviceDialog::Page`.
    void updateAdvice();
    void showAccuracy(); ///< Of predictions.
    void openTrace(const QStringList &paths); ///< Files of ranks, in the dock for them.

    WindowServices m_services;
    Workspace m_workspace;
    SelectionModel m_selection;
    std::unique_ptr<CommandRegistry> m_commands;
    std::unique_ptr<DockBoard> m_docks;
    NoticeBar *m_notices = nullptr;
    QStackedWidget *m_stack = nullptr;
    StartPage *m_start = nullptr;
    RecentList *m_recent = nullptr;
    QSplitter *m_splitter = nullptr;
    DagView *m_dag = nullptr;
    QLabel *m_breadcrumbs = nullptr;
    QLabel *m_shownPlan; ///< Beside the timeline's title: what it shows while that is not the last word.
    TimelineView *m_timeline = nullptr;
    Player *m_player = nullptr;
    OutlinePanel *m_outline = nullptr;
    InspectorPanel *m_inspector = nullptr;
    ShardingView *m_sharding = nullptr;
    TablePanel *m_constraints = nullptr;
    ProblemsPanel *m_problems = nullptr;
    GalleryPanel *m_gallery = nullptr;
    GalleryPreview m_galleryPreview; ///< Behind the workspace: it asks for its models.
    std::unique_ptr<WaysOut> m_waysOut; ///< As that one.
    LogPanel *m_log = nullptr;
    HistoryPanel *m_history = nullptr;
    PlansPanel *m_plans = nullptr;
    RunPanel *m_run = nullptr;
    MemoryPanel *m_memory = nullptr;
    std::unique_ptr<CompareChoice> m_choice;
    CompareView *m_compare = nullptr; ///< Made when it is asked for.
    ToolKeys *m_tools = nullptr;
    ToolBars *m_toolBars = nullptr;
    QSpinBox *m_devices = nullptr;
    ClusterChooser *m_cluster = nullptr;
    ScheduleChooser *m_schedules = nullptr;
    ScheduleBoard *m_board = nullptr; ///< Made when it is asked for.
    QComboBox *m_colour = nullptr;
    QActionGroup *m_colourActions = nullptr;
    QActionGroup *m_modeActions = nullptr;
    StatusPill *m_pill = nullptr;
    Locator *m_locator = nullptr;
    ShortcutSheet *m_sheet = nullptr;
    QPointer<PreferencesDialog> m_preferences;
    QPointer<AdviceDialog> m_advice; ///< While it is open.
    QAction *m_undo = nullptr;
    QAction *m_redo = nullptr;
    QAction *m_searchOrStop = nullptr; ///< *Find Best Plan*, and *Keep Best So Far* while that goes on.
    QAction *m_live = nullptr;
    QAction *m_beside = nullptr;
    std::vector<QLabel *> m_status; ///< Parts of the status bar, left to right.
    StatusFacts m_facts;
    QFutureWatcher<std::pair<PlanUpdateSnapshot, double>> m_boundWatcher{
        this}; ///< Of which plan, and its bound.
    QPointer<QWidget> m_canvas; ///< Last used: the DAG or the timeline.
    Chores m_chores; ///< What follows from a new plan, piece by piece.
    QTimer m_busyTimer; ///< While planning: keeps the pill's clock going.
    QElapsedTimer m_busySince;
    QTimer m_viewTimer; ///< Gathers changes of the view.
    QFutureWatcher<QByteArray> m_thumbnailWatcher{this};
    std::uint64_t m_pictured = 0; ///< Revision of the design that is being shrunk.
    bool m_mayLoseWork = false; ///< Asked, and answered.
    QTimer m_thumbnailTimer; ///< Once nothing has changed for a while.
    TimelineSceneSnapshot m_shownScene;
    PlanUpdateSnapshot m_logged; ///< The answer the log told of last.
    QString m_recentPath; ///< The session's file as the recent list knows it.
    QString m_openingName; ///< What is being opened, for people.
    int m_problemShown = -1; ///< Of the list of problems.
    bool m_restoring = false;
};

} // namespace planloom
