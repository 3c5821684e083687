#include "widgets/main/main_window.h"

#include <QtCore/QFileInfo>
#include <QtCore/QSignalBlocker>
#include <QtGui/QActionGroup>
#include <QtGui/QCloseEvent>
#include <QtGui/QScreen>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/format.h"
#include "widgets/compare/compare_choice.h"
#include "widgets/compare/compare_view.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/frame/tool_bars.h"
#include "widgets/frame/window_place.h"
#include "widgets/main/advice_dialog.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/locator.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/player.h"
#include "widgets/main/preferences_dialog.h"
#include "widgets/main/recent_list.h"
#include "widgets/main/shortcut_sheet.h"
#include "widgets/main/start_page.h"
#include "widgets/main/tool_keys.h"
#include "widgets/problems/ways_out.h"
#include "widgets/schedule/schedule_board.h"
#include "widgets/status/pill_state.h"
#include "widgets/status/status_pill.h"
#include "widgets/table/table_panel.h"
#include "widgets/target/cluster_chooser.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr int kBusyRefresh = 200; ///< ms
constexpr int kViewMilliseconds = 500;
constexpr int kThumbnailMilliseconds = 3000;
constexpr std::chrono::milliseconds kClosingPatience{3000}; ///< For the last edits to reach the disk.
constexpr QSize kPreferredSize{1600, 1000};

ColourBy dagColour(TimelineColouring colouring)
{
    switch (colouring) {
    case TimelineColouring::Device:
        return ColourBy::Device;
    case TimelineColouring::Stage:
    case TimelineColouring::MicroBatch:
        return ColourBy::Stage;
    case TimelineColouring::Time:
        return ColourBy::Time;
    case TimelineColouring::DecidedBy:
        return ColourBy::DecidedBy;
    case TimelineColouring::Direction:
    case TimelineColouring::Kind:
        break;
    }
    return ColourBy::Kind;
}

bool isSameFile(const QString &one, const QString &other)
{
    const QString file = one.isEmpty() ? QString() : QFileInfo(one).canonicalFilePath();
    return !file.isEmpty() && file == QFileInfo(other).canonicalFilePath();
}

} // namespace

MainWindow::MainWindow(QWidget *parent)
    : MainWindow(WindowServices{}, parent)
{
}

MainWindow::MainWindow(WindowServices services, QWidget *parent)
    : QMainWindow(parent)
    , m_services(std::move(services))
{
    if (!m_services.settings)
        m_services.settings = std::make_shared<Settings>();
    m_workspace.setSessionFolder(m_services.sessionFolder);
    if (!m_services.solvedFolder.isEmpty())
        m_workspace.setSolvedFolder(m_services.solvedFolder);
    m_commands = std::make_unique<CommandRegistry>(this, m_services.settings);
    m_docks = std::make_unique<DockBoard>(this, m_services.settings);
    m_tools = new ToolKeys(this);
    setAcceptDrops(true);
    resize(kPreferredSize);
    m_busyTimer.setParent(this);
    m_viewTimer.setParent(this);
    m_thumbnailTimer.setParent(this);
    m_busyTimer.setInterval(kBusyRefresh);
    connect(&m_busyTimer, &QTimer::timeout, this, [this] {
        refreshPill();
        refreshOpeningNotice();
    });
    m_viewTimer.setSingleShot(true);
    m_viewTimer.setInterval(kViewMilliseconds);
    connect(&m_viewTimer, &QTimer::timeout, this, &MainWindow::storeViewNow);
    m_thumbnailTimer.setSingleShot(true);
    m_thumbnailTimer.setInterval(kThumbnailMilliseconds);
    connect(&m_thumbnailTimer, &QTimer::timeout, this, &MainWindow::makeThumbnail);
    connect(&m_boundWatcher, &QFutureWatcherBase::finished, this, [this] {
        const auto [plan, bound] = m_boundWatcher.result();
        if (plan == m_workspace.lastGood())
            m_facts.bound = bound;
        else
            findBound();
        refreshStatusBar();
    });
    connect(&m_thumbnailWatcher, &QFutureWatcherBase::finished, this, [this] {
        if (const QByteArray png = m_thumbnailWatcher.result();
            !png.isEmpty() && m_pictured == m_workspace.designRevision())
            m_workspace.setThumbnail(png);
    });
    buildCentre();
    buildDocks();
    buildToolBar();
    buildStatusBar();
    buildMenus();
    fillToolBar();
    buildLocator();
    buildPerspectives();
    connectWorkspace();
    setColouring(TimelineColouring::Direction);
    setLayoutHelper(m_services.layoutHelper);
    m_docks->reset();
    m_docks->setShown(false);
    m_toolBars->setShown(false);
    statusBar()->hide();
    m_commands->rescan();
    onState();
}

MainWindow::~MainWindow()
{
    QObject::disconnect(qApp, nullptr, this, nullptr);
    m_dag->setGestureHost(nullptr);
    m_timeline->setGestureHost(nullptr);
    delete std::exchange(m_board, nullptr); // it looks at the workspace and the selection
    delete std::exchange(m_compare, nullptr); // it listens to the choice of plans
    m_workspace.disconnect(this); // what it still says while it ends is for nobody
}

QWidget *MainWindow::titled(const QString &title, QLabel *detail, QWidget *content)
{
    auto *frame = new QWidget(this);
    auto *strip = new QWidget(frame);
    auto *row = new QHBoxLayout(strip);
    const int space = fontMetrics().height() / 4;
    row->setContentsMargins(2 * space, space, 2 * space, space);
    row->setSpacing(3 * space);
    auto *name = new QLabel(title, strip);
    QFont bold = name->font();
    bold.setBold(true);
    name->setFont(bold);
    name->setBuddy(content);
    row->addWidget(name);
    if (detail) {
        detail->setParent(strip);
        detail->setForegroundRole(QPalette::PlaceholderText);
        row->addWidget(detail, 1);
    } else {
        row->addStretch(1);
    }
    auto *layout = new QVBoxLayout(frame);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(strip);
    layout->addWidget(content, 1);
    return frame;
}

/// The timeline with the bar that plays it below.
QWidget *MainWindow::withPlayer()
{
    m_player = new Player(
        m_timeline, m_dag,
        [this](const char *id, const QString &text, const QList<QKeySequence> &keys,
            std::function<void()> act) { return canvasCommand(id, text, keys, std::move(act)); },
        this);
    auto *whole = new QWidget(this);
    auto *column = new QVBoxLayout(whole);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addWidget(m_timeline, 1);
    column->addWidget(m_player->bar());
    return whole;
}

void MainWindow::buildCentre()
{
    m_dag = new DagView(this);
    m_dag->setObjectName(QStringLiteral("dag"));
    m_dag->setSelectionModel(&m_selection);
    m_timeline = new TimelineView(&m_selection, this);
    m_timeline->setObjectName(QStringLiteral("timeline"));
    m_canvas = m_dag;
    m_dag->setGestureHost(&m_workspace);
    m_timeline->setGestureHost(&m_workspace);
    m_breadcrumbs = new QLabel(this);
    m_breadcrumbs->setTextFormat(Qt::PlainText);
    m_splitter = new QSplitter(Qt::Vertical, this);
    m_splitter->setObjectName(QStringLiteral("window.splitter"));
    m_splitter->setChildrenCollapsible(false);
    m_splitter->addWidget(titled(tr("DAG"), m_breadcrumbs, m_dag));
    m_shownPlan = new QLabel(this);
    m_shownPlan->setObjectName(QStringLiteral("shownPlan"));
    m_shownPlan->setTextFormat(Qt::PlainText);
    m_shownPlan->setMinimumWidth(1); // its words keep no window from being narrow
    m_splitter->addWidget(titled(tr("Timeline"), m_shownPlan, withPlayer()));
    m_splitter->setStretchFactor(0, 1);
    m_splitter->setStretchFactor(1, 1);
    m_splitter->setSizes({500, 500});
    m_recent = new RecentList(m_services.recentFolder, this);
    m_start = new StartPage(m_recent, this);
    m_stack = new QStackedWidget(this);
    m_stack->addWidget(m_start);
    m_stack->addWidget(m_splitter);
    m_notices = new NoticeBar(this);
    auto *centre = new QWidget(this);
    auto *layout = new QVBoxLayout(centre);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(m_notices);
    auto *body = new QSplitter(Qt::Horizontal, centre); // beside the canvases: a lesson
    body->setObjectName(QStringLiteral("window.body"));
    body->setChildrenCollapsible(false);
    body->addWidget(m_stack);
    layout->addWidget(body, 1);
    setCentralWidget(centre);
    connect(m_splitter, &QSplitter::splitterMoved, this, &MainWindow::storeView);
    connect(m_dag, &DagView::breadcrumbsChanged, this, [this](const QStringList &labels) {
        QStringList path = labels;
        if (m_workspace.model() && !path.isEmpty())
            path.front() = QString::fromStdString(elided(m_workspace.model()->name, 32));
        m_breadcrumbs->setText(path.join(QStringLiteral("  ›  ")));
        storeView();
    });
    connectCanvases();
    connect(m_start, &StartPage::sampleChosen, this, &MainWindow::openSample);
    connect(m_start, &StartPage::openAsked, this, &MainWindow::openDialog);
    connect(m_start, &StartPage::exportHelpAsked, this, &MainWindow::exportHelp);
    connect(m_start, &StartPage::specEntered, this, &MainWindow::openHere);
    connect(m_start, &StartPage::sessionChosen, this, &MainWindow::openHere);
    connect(m_start, &StartPage::locateAsked, this, &MainWindow::locate);
    // Menus and palette act on the canvas that was used last.
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget *, QWidget *now) {
        if (now && (now == m_timeline || m_timeline->isAncestorOf(now)))
            m_canvas = m_timeline;
        else if (now && (now == m_dag || m_dag->isAncestorOf(now)))
            m_canvas = m_dag;
        else if (!now && isActiveWindow()) // what had the keyboard was deleted
            QTimer::singleShot(0, this, &MainWindow::keepFocus);
        m_chores.add("zoom", [this] { refreshZoom(); });
    });
}

void MainWindow::buildStatusBar()
{
    statusBar()->setSizeGripEnabled(false);
    for (int part = 0; part < kStatusParts; ++part) {
        auto *label = new QLabel(this);
        label->setTextFormat(Qt::PlainText);
        label->setContentsMargins(6, 1, 10, 1);
        label->setMinimumWidth(
            1); // what has no room is hidden (fitStatusBar): words keep no window from being narrow
        if (part == kStepPart)
            label->setObjectName(QStringLiteral("status.step"));
        if (part == kFreePart || part == kStepPart) { // opens the list of them, and how good the figure is
            label->setTextFormat(Qt::RichText);
            label->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
            connect(label, &QLabel::linkActivated, this,
                [this, part] { part == kStepPart ? showAccuracy() : showAdvice(AdviceDialog::FreePage); });
        }
        m_status.push_back(label);
        if (part == kSavePart || part == kZoomPart)
            statusBar()->addPermanentWidget(label);
        else
            statusBar()->addWidget(label);
    }
    connect(statusBar(), &QStatusBar::messageChanged, this, [this](const QString &message) {
        if (message.isEmpty())
            fitStatusBar();
    });
}

void MainWindow::connectWorkspace()
{
    m_workspace.setHandAtWork([this] { return isHandAtWork(); });
    connect(&m_workspace, &Workspace::modelChanged, this, &MainWindow::onModelChanged);
    connect(&m_workspace, &Workspace::sessionChanged, this, &MainWindow::onSessionChanged);
    connect(&m_workspace, &Workspace::planChanged, this, &MainWindow::onPlanChanged);
    connect(&m_workspace, &Workspace::searched, this, &MainWindow::onSearched);
    connect(&m_workspace, &Workspace::stateChanged, this, &MainWindow::onState);
    connect(&m_workspace, &Workspace::historyChanged, this, &MainWindow::onState);
    connect(&m_workspace, &Workspace::saveStateChanged, this, &MainWindow::onSaveState);
    connect(&m_workspace, &Workspace::problem, this, &MainWindow::onProblem);
    connect(&m_workspace, &Workspace::sizesAsked, this, &MainWindow::askSizes);
    connect(&m_workspace, &Workspace::minorProblem, this, &MainWindow::onMinorProblem);
    connect(&m_workspace, &Workspace::modelFileChanged, this, &MainWindow::onModelFileChanged);
    connect(&m_selection, &SelectionModel::selectionChanged, this,
        [this] { m_chores.add("state", [this] { refreshCommands(); }); });
    const auto cluster = [this] {
        const QSignalBlocker devices(m_devices);
        m_devices->setValue(m_workspace.deviceCount());
        m_gallery->setDeviceCount(m_workspace.deviceCount());
        m_gallery->ask(); // what it said is of another cluster
        m_notices->dismiss(QStringLiteral("cluster"));
        m_cluster->showCluster(splitFramework(m_workspace.cluster()).first, m_workspace.clusterJson());
        refreshStatusBar();
    };
    connect(&m_workspace, &Workspace::clusterChanged, this, cluster);
    cluster();
}

/// A button of the mouse is down, or a row or what stands on a canvas is being typed.
bool MainWindow::isHandAtWork() const
{
    if (QApplication::mouseButtons() != Qt::NoButton)
        return true;
    const QWidget *focus = focusWidget();
    const bool types = qobject_cast<const QLineEdit *>(focus) || qobject_cast<const QPlainTextEdit *>(focus)
        || qobject_cast<const QAbstractSpinBox *>(focus) || qobject_cast<const QComboBox *>(focus);
    return types && (m_constraints->isAncestorOf(focus) || m_splitter->isAncestorOf(focus));
}

void MainWindow::openSample(const Sample &sample)
{
    m_openingName = QString::fromStdString(sample.title);
    m_gallery->setSpec(QString::fromStdString(sample.gallery));
    m_workspace.openWith({sample.model, {}, {}}, sample.cluster, sample.devices, sample.gallery);
}

void MainWindow::openHere(const QString &pathOrSpec)
{
    // A second view of a session could only be read: the one that can be edited comes to the front.
    for (QWidget *each : QApplication::topLevelWidgets())
        if (auto *window = qobject_cast<MainWindow *>(each); window && window != this && window->isVisible()
            && !window->workspace().isReadOnly() && isSameFile(window->workspace().path(), pathOrSpec)) {
            window->setWindowState(window->windowState() & ~Qt::WindowMinimized);
            window->raise();
            window->activateWindow();
            return;
        }
    const auto open = [this, pathOrSpec] {
        m_openingName = pathOrSpec.section(QLatin1Char('/'), -1);
        m_notices->dismiss(QStringLiteral("open"));
        m_workspace.openAny(pathOrSpec);
    };
    if (m_workspace.unkeptEdits() > 0)
        askBeforeLosingWork(tr("Open and Lose It"), open);
    else
        open();
}

MainWindow *MainWindow::openWindow()
{
    auto *window = new MainWindow(m_services);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->resize(isMaximized() || isFullScreen() ? kPreferredSize : size());
    window->move(pos() + QPoint(32, 32));
    window->showOnScreen();
    return window;
}

void MainWindow::showOnScreen()
{
    // The first window is where the last one was; others lie beside the one that opens them.
    const QByteArray last = m_services.settings->value(QStringLiteral("view/window.geometry")).toByteArray();
    if (!testAttribute(Qt::WA_Moved) && !last.isEmpty() && restoreGeometry(QByteArray::fromBase64(last))) {
        setWindowState(windowState() & ~Qt::WindowFullScreen);
        if (isMaximized())
            return show();
    }
    const QRect available = screen()->availableGeometry();
    const QMargins frame = frameAround(*this);
    const QRect wanted(pos(), size());
    const QRect place = placeWithin(wanted, available, frame);
    resize(place.size());
    if (testAttribute(Qt::WA_Moved))
        move(place.topLeft());
    // Too large: all there is, which the desktop knows better than an estimate of its frames.
    if (place.size() != wanted.size())
        showMaximized();
    else
        show();
}

void MainWindow::setColouring(TimelineColouring colouring)
{
    m_timeline->setColouring(colouring);
    m_dag->setColourBy(dagColour(colouring));
    m_colour->setCurrentIndex(m_colour->findData(static_cast<int>(colouring)));
    for (QAction *action : m_colourActions->actions())
        action->setChecked(action->data().toInt() == static_cast<int>(colouring));
    storeView();
}

void MainWindow::setLayoutHelper(const QString &program)
{
    m_services.layoutHelper = program;
    m_dag->setLayoutHelper(program);
}

bool MainWindow::isSettled() const
{
    return !m_workspace.isOpening() && !m_workspace.isPlanning() && m_chores.isEmpty() && m_dag->isSettled();
}

bool MainWindow::trigger(const QString &id)
{
    m_chores.finish("state"); // what is possible now
    QAction *action = m_commands->find(id);
    if (!action) {
        m_commands->rescan();
        action = m_commands->find(id);
    }
    if (!action || !action->isEnabled())
        return false;
    // What a dock does is seen: one that is closed or behind another comes to the front.
    if (const QWidget *panel = CommandRegistry::panelOf(*action); panel && !panel->isVisible())
        m_docks->revealHolderOf(panel);
    action->trigger();
    return true;
}

/// Tab leads to the next control. But where what has the keyboard is hidden or disabled, Qt moves on as Tab
/// would: that led from a dock's tab to the number of devices, and the next digit changed the plan. It goes
/// to the canvas instead, and from there to what came in its place (DockBoard).
bool MainWindow::focusNextPrevChild(bool next)
{
    const QWidget *focus = focusWidget();
    if (focus && focus->isVisible() && focus->isEnabled())
        return QMainWindow::focusNextPrevChild(next);
    if (QWidget *beside = focus ? besideOnCanvas(*focus) : nullptr)
        beside->setFocus(Qt::OtherFocusReason);
    else
        focusCanvas();
    return true;
}

/// Another field of the line editor on a canvas that `hidden` is a part of; null if it is in none.
QWidget *MainWindow::besideOnCanvas(const QWidget &hidden) const
{
    QWidget *editor = hidden.parentWidget();
    while (editor && !editor->isVisible())
        editor = editor->parentWidget();
    if (!editor || editor == m_dag || editor == m_canvas || !m_splitter->isAncestorOf(editor))
        return nullptr;
    const auto fields = editor->findChildren<QWidget *>();
    const auto field = std::find_if(fields.begin(), fields.end(), [](const QWidget *each) {
        return each->isVisible() && each->isEnabled() && (each->focusPolicy() & Qt::TabFocus) != 0;
    });
    return field == fields.end() ? nullptr : *field;
}

void MainWindow::focusCanvas()
{
    QWidget *target = m_stack->currentWidget();
    if (target == m_splitter)
        target = m_canvas && m_canvas->isVisible() ? m_canvas.data() : m_dag;
    target->setFocus(Qt::OtherFocusReason);
}

void MainWindow::keepFocus()
{
    const QWidget *focus = focusWidget();
    if (isActiveWindow() && !QApplication::activePopupWidget() && (!focus || !focus->isVisible()))
        focusCanvas();
}

bool MainWindow::event(QEvent *event)
{
    if (event->type() == QEvent::WindowActivate)
        keepFocus(); // or Qt would give it to the first control there is
    const bool result = QMainWindow::event(event);
    if (event->type() == QEvent::PaletteChange)
        onState(); // marks are painted in the theme's colours
    return result;
}

void MainWindow::resizeEvent(QResizeEvent *event)
{
    QMainWindow::resizeEvent(event);
    m_toolBars->fit();
    if (m_status.size() == kStatusParts)
        fitStatusBar();
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    if (!m_mayLoseWork
        && !(m_workspace.finishSaving(kClosingPatience) && m_workspace.isEverythingSaved()
            && m_workspace.unkeptEdits() == 0)) {
        event->ignore();
        askBeforeLosingWork(tr("Close and Lose It"), [this] {
            m_mayLoseWork = true;
            QMetaObject::invokeMethod(this, &MainWindow::close, Qt::QueuedConnection);
        });
        return;
    }
    m_workspace.stopPlanning();
    m_workspace.endPreview();
    if (m_workspace.model()) {
        storeViewNow();
        // The last one is made here: there is no later.
        if (m_thumbnailTimer.isActive() && showsPresentPlan())
            m_workspace.setThumbnail(packedThumbnail(m_timeline->viewport()->grab().toImage()));
    }
    event->accept();
}

} // namespace planloom

#include "moc_main_window.cpp"
