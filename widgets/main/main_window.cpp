#include "widgets/main/main_window.h"

#include <QtCore/QMimeData>
#include <QtCore/QSignalBlocker>
#include <QtGui/QActionGroup>
#include <QtGui/QCloseEvent>
#include <QtGui/QDropEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QVBoxLayout>

#include "engine/hardware/cluster_json.h"
#include "widgets/common/format.h"
#include "widgets/main/application_style.h"
#include "widgets/main/constraint_panel.h"
#include "widgets/main/gallery_bar.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/outline_panel.h"
#include "widgets/main/problems_panel.h"
#include "widgets/main/start_page.h"
#include "widgets/main/status_pill.h"

#include <array>

namespace planloom {

namespace {

constexpr int kBusyRefresh = 200; ///< ms
constexpr int kQuietMilliseconds = 100; ///< Work shorter than this is not announced.

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
    case TimelineColouring::Direction:
    case TimelineColouring::Kind:
        break;
    }
    return ColourBy::Kind;
}

QWidget *titled(const QString &title, QLabel *detail, QWidget *content, QWidget *parent)
{
    auto *frame = new QWidget(parent);
    auto *strip = new QWidget(frame);
    auto *row = new QHBoxLayout(strip);
    row->setContentsMargins(10, 4, 10, 4);
    row->setSpacing(12);
    auto *name = new QLabel(title, strip);
    QFont bold = name->font();
    bold.setBold(true);
    name->setFont(bold);
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

} // namespace

MainWindow::MainWindow(QWidget *parent) : QMainWindow(parent)
{
    setAcceptDrops(true);
    setDockNestingEnabled(true);
    resize(1600, 1000);
    buildCentre();
    buildDocks();
    buildToolBar();
    buildStatusBar();
    buildMenus();
    connectWorkspace();
    m_busyTimer.setInterval(kBusyRefresh);
    connect(&m_busyTimer, &QTimer::timeout, this, &MainWindow::refreshPill);
    setColouring(TimelineColouring::Direction);
    resetLayout();
    onState();
}

MainWindow::~MainWindow() = default;

void MainWindow::buildCentre()
{
    m_dag = new DagView(this);
    m_dag->setSelectionModel(&m_selection);
    m_timeline = new TimelineView(&m_selection, this);
    m_breadcrumbs = new QLabel(this);
    m_breadcrumbs->setTextFormat(Qt::PlainText);
    m_splitter = new QSplitter(Qt::Vertical, this);
    m_splitter->setChildrenCollapsible(false);
    m_splitter->addWidget(titled(tr("DAG"), m_breadcrumbs, m_dag, this));
    m_splitter->addWidget(titled(tr("Timeline"), nullptr, m_timeline, this));
    m_splitter->setStretchFactor(0, 1);
    m_splitter->setStretchFactor(1, 1);
    m_start = new StartPage(this);
    m_stack = new QStackedWidget(this);
    m_stack->addWidget(m_start);
    m_stack->addWidget(m_splitter);
    setCentralWidget(m_stack);
    connect(m_dag, &DagView::breadcrumbsChanged, this, [this](const QStringList &labels) {
        QStringList path = labels;
        if (m_workspace.model() && !path.isEmpty())
            path.front() = QString::fromStdString(elided(m_workspace.model()->name, 32));
        m_breadcrumbs->setText(path.join(QStringLiteral("  ›  ")));
    });
    connect(m_start, &StartPage::sampleChosen, this, &MainWindow::openSample);
    connect(m_start, &StartPage::openAsked, this, &MainWindow::openDialog);
    connect(m_start, &StartPage::specEntered, &m_workspace, &Workspace::openAny);
}

void MainWindow::buildDocks()
{
    const auto dock = [this](const QString &title, const char *name, QWidget *widget, Qt::DockWidgetArea area) {
        auto *result = new QDockWidget(title, this);
        result->setObjectName(QLatin1String(name));
        result->setWidget(widget);
        result->setFeatures(QDockWidget::DockWidgetClosable | QDockWidget::DockWidgetMovable);
        addDockWidget(area, result);
        return result;
    };
    m_outline = new OutlinePanel(&m_selection, this);
    m_inspector = new InspectorPanel(&m_selection, this);
    m_constraints = new ConstraintPanel(this);
    m_problems = new ProblemsPanel(this);
    m_outlineDock = dock(tr("Model"), "model", m_outline, Qt::LeftDockWidgetArea);
    m_inspectorDock = dock(tr("Inspector"), "inspector", m_inspector, Qt::RightDockWidgetArea);
    m_constraintsDock = dock(tr("Constraints"), "constraints", m_constraints, Qt::BottomDockWidgetArea);
    m_problemsDock = dock(tr("Problems"), "problems", m_problems, Qt::BottomDockWidgetArea);
    connect(m_outline, &OutlinePanel::activated, this, [this] {
        if (!m_selection.selected().empty())
            m_dag->fitSelection();
    });
    connect(m_constraints->editor(), &ConstraintEditor::textEdited, this,
        [this] { m_workspace.setTableText(m_constraints->editor()->toPlainText().toStdString()); });
    connect(m_problems, &ProblemsPanel::lineActivated, this, [this](int line) {
        reveal(m_constraintsDock, m_constraints->editor());
        m_constraints->editor()->showLine(line);
    });
    connect(m_problems, &ProblemsPanel::countChanged, this, [this](int count) {
        m_problemsDock->setWindowTitle(count > 0 ? tr("Problems (%1)").arg(count) : tr("Problems"));
    });
}

void MainWindow::buildToolBar()
{
    m_toolBar = addToolBar(tr("Main"));
    m_toolBar->setObjectName(QStringLiteral("main"));
    m_toolBar->setMovable(false);
    m_gallery = new GalleryBar(m_toolBar);
    m_devices = new QSpinBox(m_toolBar);
    m_devices->setRange(1, kMostDevices);
    m_devices->setKeyboardTracking(false);
    m_devices->setAccessibleName(tr("Number of devices"));
    m_cluster = new QComboBox(m_toolBar);
    m_cluster->setAccessibleName(tr("Cluster"));
    for (const std::string &name : clusterNames())
        m_cluster->addItem(QString::fromStdString(name));
    m_colour = new QComboBox(m_toolBar);
    m_colour->setAccessibleName(tr("Colour by"));
    for (const auto &[text, value] : {std::pair{tr("Direction"), TimelineColouring::Direction},
             {tr("Micro-batch"), TimelineColouring::MicroBatch}, {tr("Stage"), TimelineColouring::Stage},
             {tr("Device"), TimelineColouring::Device}, {tr("Kind"), TimelineColouring::Kind},
             {tr("Time"), TimelineColouring::Time}})
        m_colour->addItem(text, static_cast<int>(value));
    const auto labelled = [this](const QString &text, QWidget *widget) {
        auto *label = new QLabel(text, m_toolBar);
        label->setBuddy(widget);
        label->setContentsMargins(8, 0, 2, 0);
        m_toolBar->addWidget(label);
        m_toolBar->addWidget(widget);
    };
    m_toolBar->addAction(tr("Open…"), this, &MainWindow::openDialog);
    m_toolBar->addSeparator();
    m_toolBar->addWidget(m_gallery);
    labelled(tr("&Devices"), m_devices);
    labelled(tr("C&luster"), m_cluster);
    labelled(tr("Colour &by"), m_colour);
    auto *spacer = new QWidget(m_toolBar);
    spacer->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    m_toolBar->addWidget(spacer);
    m_pill = new StatusPill(m_toolBar);
    m_toolBar->addWidget(m_pill);

    connect(m_gallery, &GalleryBar::chosen, this,
        [this](const QString &spec) { m_workspace.applyGallery(spec.toStdString()); });
    connect(m_devices, &QSpinBox::valueChanged, &m_workspace, &Workspace::setDeviceCount);
    connect(m_cluster, &QComboBox::textActivated, this,
        [this](const QString &name) { m_workspace.setCluster(name.toStdString()); });
    connect(m_colour, &QComboBox::activated, this, [this](int index) {
        setColouring(static_cast<TimelineColouring>(m_colour->itemData(index).toInt()));
    });
    connect(m_pill, &QAbstractButton::clicked, this, [this] { reveal(m_problemsDock, m_problems); });
}

void MainWindow::buildStatusBar()
{
    statusBar()->setSizeGripEnabled(false);
    for (int part = 0; part < 7; ++part) {
        auto *label = new QLabel(this);
        label->setContentsMargins(6, 1, 10, 1);
        m_status.push_back(label);
        if (part == 6)
            statusBar()->addPermanentWidget(label);
        else
            statusBar()->addWidget(label);
    }
}

void MainWindow::connectWorkspace()
{
    connect(&m_workspace, &Workspace::modelChanged, this, &MainWindow::onModelChanged);
    connect(&m_workspace, &Workspace::planChanged, this, &MainWindow::onPlanChanged);
    connect(&m_workspace, &Workspace::stateChanged, this, &MainWindow::onState);
    connect(&m_workspace, &Workspace::problem, this, &MainWindow::onProblem);
    connect(&m_workspace, &Workspace::tableChanged, this, [this] {
        m_constraints->editor()->setTableText(QString::fromStdString(m_workspace.tableText()));
    });
    const auto cluster = [this] {
        const QSignalBlocker devices(m_devices);
        const QSignalBlocker names(m_cluster);
        m_devices->setValue(m_workspace.deviceCount());
        m_gallery->setDeviceCount(m_workspace.deviceCount());
        const QString name = QString::fromStdString(m_workspace.cluster());
        if (m_cluster->findText(name) < 0)
            m_cluster->addItem(name);
        m_cluster->setCurrentText(name);
    };
    connect(&m_workspace, &Workspace::clusterChanged, this, cluster);
    cluster();
}

void MainWindow::openSample(const Sample &sample)
{
    m_gallery->setSpec(QString::fromStdString(sample.gallery));
    m_workspace.openWith({sample.model, {}, {}}, sample.cluster, sample.devices, sample.gallery);
}

void MainWindow::setColouring(TimelineColouring colouring)
{
    m_timeline->setColouring(colouring);
    m_dag->setColourBy(dagColour(colouring));
    const int index = m_colour->findData(static_cast<int>(colouring));
    m_colour->setCurrentIndex(index);
    for (QAction *action : m_colourActions->actions())
        action->setChecked(action->data().toInt() == static_cast<int>(colouring));
    m_workspace.setView("colour-by", std::to_string(static_cast<int>(colouring)));
}

void MainWindow::setDark(bool dark)
{
    if (auto *application = qobject_cast<QApplication *>(QCoreApplication::instance()))
        applyTheme(*application, dark);
    onPlanChanged();
}

void MainWindow::setLayoutHelper(const QString &program)
{
    m_dag->setLayoutHelper(program);
}

bool MainWindow::isSettled() const
{
    return !m_workspace.isOpening() && !m_workspace.isPlanning() && m_dag->isSettled();
}

void MainWindow::onModelChanged()
{
    const ModelSnapshot &model = m_workspace.model();
    m_selection.clear();
    m_lastProblem.reset();
    m_problems->clearProblems();
    m_shownScene.reset();
    m_timeline->setScene(nullptr);
    m_dag->setGraph(model->graph);
    m_outline->setGraph(model->graph);
    m_inspector->setModel(model);
    const bool first = m_stack->currentWidget() == m_start;
    m_stack->setCurrentWidget(m_splitter);
    if (first)
        resetLayout();
    restoreView();
}

void MainWindow::restoreView()
{
    const auto stored = m_workspace.view().find("colour-by");
    if (stored == m_workspace.view().end())
        return;
    for (int index = 0; index < m_colour->count(); ++index) {
        if (std::to_string(m_colour->itemData(index).toInt()) == stored->second)
            setColouring(static_cast<TimelineColouring>(m_colour->itemData(index).toInt()));
    }
}

void MainWindow::onPlanChanged()
{
    const PlanUpdateSnapshot &latest = m_workspace.latest();
    const PlanUpdateSnapshot &good = m_workspace.lastGood();
    m_constraints->setUpdate(latest);
    m_problems->setUpdate(latest);
    QString why;
    if (latest && latest->error) {
        why = tr("No plan: %1").arg(QString::fromStdString(latest->error->message));
        if (!latest->error->advice.empty())
            why += QLatin1Char('\n') + QString::fromStdString(latest->error->advice);
        m_problemsDock->raise();
    } else if (latest && latest->errorCount() > 0) {
        why = tr("No plan yet: rows of the table are in error.");
    }
    m_timeline->setEmptyText(why);
    if (good && good->scene != m_shownScene) {
        m_shownScene = good->scene;
        m_timeline->setScene(good->scene);
        m_dag->setPlan(good->plan);
        std::vector<double> seconds;
        seconds.reserve(good->operatorNanoseconds.size());
        for (const std::int64_t nanoseconds : good->operatorNanoseconds)
            seconds.push_back(static_cast<double>(nanoseconds) * 1e-9);
        m_dag->setTimes(std::move(seconds));
        m_inspector->setPlan(good);
    }
    onState();
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
    refreshPill();
    refreshStatusBar();
    refreshTitle();
}

void MainWindow::onProblem(const Error &error)
{
    m_lastProblem = error;
    m_problems->addProblem(error);
    m_start->setNotice(QString::fromStdString(describe(error)), true);
    if (m_stack->currentWidget() != m_start)
        reveal(m_problemsDock, nullptr);
    onState();
}

void MainWindow::refreshPill()
{
    const PlanUpdateSnapshot &latest = m_workspace.latest();
    const qint64 since = m_busyTimer.isActive() ? m_busySince.elapsed() : 0;
    const QString clock = tr("%1 s").arg(static_cast<double>(since) / 1000, 0, 'f', 1);
    if (m_workspace.isOpening()) {
        m_pill->setState(StatusPill::Mood::Busy, tr("Opening %1").arg(clock));
        if (m_stack->currentWidget() == m_start)
            m_start->setNotice(tr("Opening the model … %1").arg(clock), false);
        return;
    }
    if (!m_workspace.model()) {
        m_pill->setState(StatusPill::Mood::Quiet, tr("No model"));
        return;
    }
    const std::size_t wrong = latest ? latest->errorCount() : 0;
    if (wrong > 0) {
        m_pill->setState(StatusPill::Mood::Wrong, wrong == 1 ? tr("1 row in error") : tr("%1 rows in error").arg(wrong));
    } else if (latest && latest->error) {
        m_pill->setState(StatusPill::Mood::Wrong, tr("No plan"));
    } else if (m_workspace.isPlanning() && (!latest || !latest->scene || m_workspace.isStale())) {
        if (since >= kQuietMilliseconds || !latest)
            m_pill->setState(StatusPill::Mood::Busy, tr("Solving %1").arg(clock));
    } else if (latest && latest->verdict) {
        const QString step = QString::fromStdString(formatSeconds(latest->summary.stepSeconds));
        if (!latest->verdict->ok())
            m_pill->setState(StatusPill::Mood::Wrong, tr("Plan refuted"));
        else if (latest->summary.largestPeak.count > static_cast<std::int64_t>(latest->cluster.device.memory.value))
            m_pill->setState(StatusPill::Mood::Wrong, tr("%1, but out of memory").arg(step));
        else
            m_pill->setState(StatusPill::Mood::Proven, tr("Feasible %1 · verified ✓").arg(step));
    } else if (latest && latest->scene) {
        m_pill->setState(StatusPill::Mood::Good,
            tr("Feasible %1 · verifying").arg(QString::fromStdString(formatSeconds(latest->summary.stepSeconds))));
    } else {
        m_pill->setState(StatusPill::Mood::Quiet, tr("Stopped"));
    }
}

void MainWindow::refreshStatusBar()
{
    std::array<QString, 7> parts;
    if (const ModelSnapshot &model = m_workspace.model()) {
        parts[0] = tr("%1 · %2 operators · %3 × %4")
                       .arg(QString::fromStdString(elided(model->name, 36)),
                           QString::fromStdString(formatCount(static_cast<std::int64_t>(model->graph->operators.size()))),
                           QString::fromStdString(formatCount(m_workspace.deviceCount())),
                           QString::fromStdString(m_workspace.cluster()));
    }
    if (const PlanUpdateSnapshot &latest = m_workspace.latest()) {
        const auto wrong = static_cast<int>(latest->errorCount());
        const std::size_t rows = latest->rows.size() + latest->textErrors.size();
        parts[1] = rows == 1 ? tr("1 row") : tr("%1 rows").arg(rows);
        if (wrong > 0)
            parts[1] += tr(", %1 in error").arg(wrong);
    }
    if (const PlanUpdateSnapshot &good = m_workspace.lastGood()) {
        parts[2] = tr("step %1").arg(QString::fromStdString(formatSeconds(good->summary.stepSeconds)));
        parts[3] = tr("peak %1 / %2")
                       .arg(QString::fromStdString(formatBytes(good->summary.largestPeak)),
                           QString::fromStdString(
                               formatBytes({static_cast<std::int64_t>(good->cluster.device.memory.value)})));
        parts[4] = tr("bubble %1%").arg(100 * good->summary.bubble, 0, 'f', 1);
        if (good->verdict) {
            parts[5] = good->verdict->ok()
                ? tr("verified, %1 instructions").arg(QString::fromStdString(formatCount(good->verdict->instructions)))
                : tr("refuted");
        }
        if (m_workspace.isStale() && !m_workspace.isPlanning())
            parts[5] = tr("figures are of the last plan");
    }
    if (m_workspace.model())
        parts[6] = m_workspace.isAcknowledged() ? tr("● saved") : tr("○ not saved");
    for (std::size_t part = 0; part < parts.size(); ++part) {
        m_status[part]->setText(parts[part]);
        m_status[part]->setVisible(!parts[part].isEmpty());
    }
}

void MainWindow::refreshTitle()
{
    const QString title = m_workspace.title();
    setWindowTitle(title.isEmpty() ? QStringLiteral("Planloom") : tr("%1 – Planloom").arg(title));
}

void MainWindow::resetLayout()
{
    const bool working = m_stack->currentWidget() != m_start;
    for (QDockWidget *dock : {m_outlineDock, m_inspectorDock, m_constraintsDock, m_problemsDock}) {
        dock->setFloating(false);
        dock->setVisible(working);
    }
    m_toolBar->setVisible(working);
    statusBar()->setVisible(working);
    addDockWidget(Qt::LeftDockWidgetArea, m_outlineDock);
    addDockWidget(Qt::RightDockWidgetArea, m_inspectorDock);
    addDockWidget(Qt::BottomDockWidgetArea, m_constraintsDock);
    tabifyDockWidget(m_constraintsDock, m_problemsDock);
    m_constraintsDock->raise();
    setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
    setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
    resizeDocks({m_outlineDock, m_inspectorDock}, {250, 300}, Qt::Horizontal);
    resizeDocks({m_constraintsDock}, {200}, Qt::Vertical);
    m_splitter->setOrientation(Qt::Vertical);
    m_splitter->setSizes({500, 500});
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    m_workspace.stopPlanning();
    event->accept();
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    const auto urls = event->mimeData()->urls();
    if (urls.size() == 1 && urls.front().isLocalFile())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent *event)
{
    const auto urls = event->mimeData()->urls();
    if (urls.size() != 1 || !urls.front().isLocalFile())
        return;
    event->acceptProposedAction();
    m_workspace.openAny(urls.front().toLocalFile());
}

} // namespace planloom
