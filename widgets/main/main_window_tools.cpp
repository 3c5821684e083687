// The tool bar: tools of the canvases, what the plan is made for, and the state of the solver.

#include "widgets/main/main_window.h"

#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLayout>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>

#include "engine/hardware/cluster_json.h"
#include "widgets/common/themed_icon.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/tool_bars.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/tool_keys.h"
#include "widgets/schedule/schedule_chooser.h"
#include "widgets/status/status_pill.h"
#include "widgets/target/cluster_chooser.h"
#include "widgets/target/framework_chooser.h"

namespace planloom {

namespace {

using Keys = QList<QKeySequence>;

constexpr int kStateLetters = 34; ///< "Feasible 43.0 ms · gap ≈ 7%", and what surrounds it.

template<typename View> void giveTool(View *view, CanvasTool tool)
{
    if constexpr (requires { view->setTool(tool); })
        view->setTool(tool);
}

} // namespace

QAction *MainWindow::canvasCommand(const char *id, const QString &text, const Keys &shortcuts,
    std::function<void()> act, const char *dagAction)
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

QAction *MainWindow::canvasDelegate(
    QMenu *menu, const char *id, const QString &text, const char *action, const char *timelineAction)
{
    m_commands->rescan();
    const QString dag = QStringLiteral("dag.%1").arg(QLatin1String(action));
    const QString timeline =
        QStringLiteral("timeline.%1").arg(QLatin1String(timelineAction ? timelineAction : action));
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
        command->setToolTip(QString(text).remove(QLatin1Char('&'))
            + (keys.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(keys)));
    };
    connect(m_commands.get(), &CommandRegistry::shortcutsChanged, command, showKey);
    showKey();
    connect(command, &QAction::triggered, this, [this, dag, timeline] {
        const bool there = m_canvas == m_timeline && m_commands->find(timeline);
        QAction *chosen = m_commands->find(there || !m_commands->find(dag) ? timeline : dag);
        (there || !m_commands->find(dag) ? static_cast<QWidget *>(m_timeline) : m_dag)
            ->setFocus(Qt::OtherFocusReason);
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

/// A key that a menu shows acts on both canvases: each takes up what only the other one has.
void MainWindow::shareCanvasKeys()
{
    m_commands->rescan();
    const auto share = [this](QWidget *with, const QString &id) {
        if (QAction *action = m_commands->find(id))
            with->addAction(action);
    };
    for (const char *id : {"timeline.communication", "timeline.criticalPath", "timeline.lanesFit",
             "timeline.idleTimes", "timeline.pinUnit"})
        share(m_dag, QLatin1String(id));
    for (const char *id : {"dag.back", "dag.forward", "dag.bookmark", "dag.stage"})
        share(m_timeline, QLatin1String(id));
    for (int number = 1; number <= 9; ++number)
        share(m_timeline, QStringLiteral("dag.bookmark%1").arg(number));
}

/// What is chosen in the tool bar, before there are commands.
void MainWindow::buildToolBar()
{
    m_toolBars = new ToolBars(this);
    QToolBar *bar = m_toolBars->choices();
    m_devices = new QSpinBox(bar);
    m_devices->setObjectName(QStringLiteral("devices"));
    m_devices->setRange(1, kMostDevices);
    m_devices->setKeyboardTracking(false);
    m_devices->setAccessibleName(tr("Number of devices"));
    m_cluster = new ClusterChooser(bar);
    m_colour = new QComboBox(bar);
    m_colour->setAccessibleName(tr("Colour by"));
    for (const auto &[text, value] : {std::pair{tr("Direction"), TimelineColouring::Direction},
             {tr("Micro-batch"), TimelineColouring::MicroBatch}, {tr("Stage"), TimelineColouring::Stage},
             {tr("Device"), TimelineColouring::Device}, {tr("Kind"), TimelineColouring::Kind},
             {tr("Time"), TimelineColouring::Time}, {tr("Decided by"), TimelineColouring::DecidedBy}})
        m_colour->addItem(text, static_cast<int>(value));
    m_pill = new StatusPill(m_toolBars->deeds());
    connect(m_devices, &QSpinBox::valueChanged, &m_workspace, &Workspace::setDeviceCount);
    // A number that is entered is done with: the next key, that of Undo above all, is the canvas'.
    if (auto *field = m_devices->findChild<QLineEdit *>())
        connect(field, &QLineEdit::returnPressed, this, &MainWindow::focusCanvas, Qt::QueuedConnection);
    connect(m_cluster, &ClusterChooser::chosen, this,
        [this](const std::string &name, const std::string &json) { planFor(name, json, 0); });
    connect(m_cluster, &ClusterChooser::machineAsked, this, &MainWindow::planForThisMachine);
    connect(m_cluster, &ClusterChooser::fileAsked, this, &MainWindow::clusterDialog);
    connect(m_cluster, &ClusterChooser::measurementsAsked, this, &MainWindow::measurementsDialog);
    connect(m_colour, &QComboBox::activated, this, [this](int index) {
        setColouring(static_cast<TimelineColouring>(m_colour->itemData(index).toInt()));
    });
    connect(m_pill, &QAbstractButton::clicked, this, [this] { m_docks->reveal(QStringLiteral("problems")); });
}

/// The three ways a drag can be meant, for both canvases at once.
void MainWindow::buildTools(QMenu *menu)
{
    const auto add = [&](CanvasTool tool, const char *id, const QString &text, Qt::Key key, const char *icon,
                         const QString &tip) {
        QAction *action = canvasCommand(id, text, {QKeySequence(key)}, [] {});
        action->setIcon(themedIcon(QLatin1String(icon)));
        m_tools->setAction(tool, action);
        m_commands->rescan();
        m_commands->enableWhile(action, [this] { return m_workspace.model() != nullptr; });
        menu->addAction(action);
        const auto showKey = [action, tip] {
            const QString keys = action->shortcut().toString(QKeySequence::NativeText);
            action->setToolTip(keys.isEmpty() ? tip : QStringLiteral("%1 (%2)").arg(tip, keys));
        };
        connect(m_commands.get(), &CommandRegistry::shortcutsChanged, action, showKey);
        showKey();
    };
    add(CanvasTool::Select, "tool.select", tr("&Select"), Qt::Key_V, "select",
        tr("Select: drags shape the plan, or draw a box where nothing is"));
    add(CanvasTool::Measure, "tool.measure", tr("&Measure"), Qt::Key_M, "measure",
        tr("Measure: drags measure times and paths; hold the key for one drag alone"));
    add(CanvasTool::Pan, "tool.pan", tr("&Pan"), Qt::Key_H, "pan",
        tr("Pan: drags move the view; hold the key for one drag alone"));
    for (QWidget *canvas :
        {static_cast<QWidget *>(m_dag), static_cast<QWidget *>(m_timeline), m_timeline->viewport()})
        m_tools->watch(canvas);
    connect(m_tools, &ToolKeys::toolChanged, this, [this](CanvasTool tool) {
        giveTool(m_dag, tool);
        giveTool(m_timeline, tool);
    });
}

/// What becomes of those that follow something that is moved in time.
QComboBox *MainWindow::followersChoice()
{
    auto *choice = new QComboBox(m_toolBars->choices());
    choice->setObjectName(QStringLiteral("followers"));
    choice->setAccessibleName(tr("Followers of what is moved on the timeline"));
    choice->setToolTip(tr("When something is moved in time on the timeline, what follows it closes the gaps, "
                          "or keeps its order: then rows "
                          "are added for what would not"));
    choice->addItem(tr("Close gaps"), static_cast<int>(FollowersPolicy::CloseGaps));
    choice->addItem(tr("Keep order"), static_cast<int>(FollowersPolicy::KeepOrder));
    const auto show = [choice](FollowersPolicy policy) {
        choice->setCurrentIndex(choice->findData(static_cast<int>(policy)));
    };
    show(m_timeline->followersPolicy());
    connect(m_timeline, &TimelineView::followersPolicyChanged, choice, show);
    connect(choice, &QComboBox::activated, this, [this, choice](int index) {
        m_timeline->setFollowersPolicy(static_cast<FollowersPolicy>(choice->itemData(index).toInt()));
    });
    return choice;
}

/// Once there are commands.
void MainWindow::fillToolBar()
{
    QToolBar *bar = m_toolBars->choices();
    bar->addAction(m_undo);
    bar->addAction(m_redo);
    for (QAction *action : {m_undo, m_redo}) { // their words belong to the menu
        if (auto *button = qobject_cast<QToolButton *>(bar->widgetForAction(action)))
            button->setToolButtonStyle(Qt::ToolButtonIconOnly);
    }
    bar->addSeparator();
    for (const char *id :
        {"tool.select", "plan.split", "plan.place", "plan.order", "tool.measure", "tool.pan"}) {
        if (QAction *action = m_commands->find(QLatin1String(id)))
            m_toolBars->addTool(action);
    }
    bar->addSeparator();
    m_toolBars->addChoice(tr("&Devices"), m_devices);
    m_toolBars->addChoice(tr("C&luster"), m_cluster);
    m_toolBars->addChoice(tr("Fr&amework"), new FrameworkChooser(m_workspace, bar));
    m_toolBars->addChoice(tr("Sched&ule"), m_schedules, 3);
    m_toolBars->addChoice(tr("Colour &by"), m_colour, 1);
    m_toolBars->addChoice(tr("Follo&wers"), followersChoice(), 2);
    m_toolBars->deeds()->addSeparator();
    m_toolBars->addDeed(m_live);
    m_searchOrStop = new QAction(this);
    connect(m_searchOrStop, &QAction::triggered, this, [this] {
        if (QAction *wanted = m_commands->find(
                m_workspace.isSearching() ? QStringLiteral("solve.stop") : QStringLiteral("solve.best")))
            wanted->trigger();
    });
    m_toolBars->addDeed(m_searchOrStop);
    refreshSearchTool();
    m_toolBars->addState(m_pill, kStateLetters);
    if (QAction *run = m_commands->find(QStringLiteral("run.run")))
        m_toolBars->addDeed(run);
}

/// One button at one place finds the best plan, and stops that.
void MainWindow::refreshSearchTool()
{
    const bool searching = m_workspace.isSearching();
    const QAction *stands =
        m_commands->find(searching ? QStringLiteral("solve.stop") : QStringLiteral("solve.best"));
    m_searchOrStop->setText(searching ? tr("Keep Best So Far") : stands->text());
    m_searchOrStop->setIcon(stands->icon());
    m_searchOrStop->setToolTip(stands->toolTip());
    m_searchOrStop->setEnabled(searching || stands->isEnabled());
}

} // namespace planloom
