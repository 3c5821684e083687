#include "widgets/run/run_panel.h"

#include "widgets/common/format.h"
#include "widgets/common/themed_icon.h"
#include "widgets/run/calibration_job.h"
#include "widgets/run/run_charts.h"
#include "widgets/run/run_difference.h"
#include "widgets/run/run_models.h"
#include "widgets/run/run_panel_parts.h"
#include "widgets/run/span_errors.h"
#include "widgets/run/training_form.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QDateTime>
#include <QtCore/QEvent>
#include <QtCore/QThread>
#include <QtGui/QAction>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFormLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QProgressBar>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QSlider>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include <unistd.h>

namespace planloom {

namespace {

constexpr int kMostSteps = 100'000;
constexpr int kSetupWidth = 260;
constexpr int kCourseWidth = 250;
constexpr int kFiguresWidth = 540;

std::int64_t freeMemory()
{
    const long pages = ::sysconf(_SC_AVPHYS_PAGES);
    const long size = ::sysconf(_SC_PAGE_SIZE);
    return pages > 0 && size > 0 ? static_cast<std::int64_t>(pages) * size : 0;
}

QString markOf(PreflightItem::Level level)
{
    switch (level) {
    case PreflightItem::Level::Good:
        return QStringLiteral("✓");
    case PreflightItem::Level::Note:
        return QStringLiteral("!");
    case PreflightItem::Level::Blocked:
        break;
    }
    return QStringLiteral("✖");
}

/// A column as wide as it must be, of which less can be seen than it is high: a dock is as low as a person
/// makes it.
class ScrolledColumn : public QScrollArea
{
public:
    explicit ScrolledColumn(QWidget *content)
        : QScrollArea(content->parentWidget())
    {
        setFrameShape(QFrame::NoFrame);
        setWidgetResizable(true);
        setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        setFocusPolicy(Qt::NoFocus); // the keyboard goes to what is in it, which then comes into sight
        setWidget(content);
    }

    QSize minimumSizeHint() const override
    {
        return {widget()->minimumSizeHint().width() + verticalScrollBar()->sizeHint().width(),
            fontMetrics().height() * 4};
    }

protected:
    bool eventFilter(QObject *watched, QEvent *event) override
    {
        if (watched == widget() && event->type() == QEvent::LayoutRequest)
            updateGeometry(); // what is in it may have become wider
        return QScrollArea::eventFilter(watched, event);
    }
};

} // namespace

RunPanel::RunPanel(Workspace *workspace, SelectionModel *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_figures(new RunFiguresModel(this))
    , m_list(new RunListModel(this))
    , m_collectives(new CollectivesModel(this))
    , m_spanErrors(new SpanErrorsModel(this))
    , m_machine(new MachineDevicesModel(this))
{
    build();
    connect(&m_service, &RunService::recordChanged, this, &RunPanel::refreshRecord);
    connect(&m_service, &RunService::overlayChanged, this, &RunPanel::takeOverlay);
    connect(&m_service, &RunService::finished, this, &RunPanel::finished);
    connect(m_workspace, &Workspace::planChanged, this, &RunPanel::refreshSetup);
    connect(m_workspace, &Workspace::runsChanged, this, &RunPanel::takeRuns);
    connect(m_workspace, &Workspace::sessionChanged, this, [this] {
        m_service.stop();
        m_run = 0;
        m_awaited = 0;
        m_last.reset();
        m_lastUpdate.reset();
        takeRuns();
    });
    connect(m_workspace, &Workspace::runTimelineLoaded, this, &RunPanel::takeStored);
    connect(m_workspace, &Workspace::planOfStepReady, this,
        [this](StepId step, const PlanUpdateSnapshot &update) {
            if (m_awaited == 0 || step != m_step)
                return;
            m_awaitedPlan = update;
            showAwaited();
        });
    connect(&m_preflightWatcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_preflightWatcher.future().resultCount() == 0)
            return;
        const Readiness readiness = m_preflightWatcher.result();
        const std::vector<PreflightItem> &items = readiness.items;
        m_mayRun = planloom::mayRun(items);
        m_blocked.clear();
        for (const PreflightItem &item : items)
            if (item.level == PreflightItem::Level::Blocked && m_blocked.isEmpty())
                m_blocked = QString::fromStdString(item.text);
        showOffer(readiness.offer);
        m_preflight->clear();
        for (const PreflightItem &item : items)
            m_preflight->addItem(
                markOf(item.level) + QStringLiteral("  ") + QString::fromStdString(item.text));
        refreshRecord();
    });
    takeRuns();
    refreshSetup();
}

RunPanel::~RunPanel() = default;

void RunPanel::build()
{
    const auto action = [this](const char *id, const QString &text, const QKeySequence &shortcut,
                            const char *icon) {
        auto *made = new QAction(themedIcon(QLatin1String(icon)), text, this);
        made->setObjectName(QLatin1String(id));
        made->setShortcut(shortcut);
        addAction(made);
        return made;
    };
    m_runAction = action("run.run", tr("&Run"), QKeySequence(Qt::Key_F9), "run");
    m_stopAction = action("run.stop", tr("&Stop Run"), QKeySequence(Qt::SHIFT | Qt::Key_F9), "stop");
    m_stopAction->setIconText(tr("Stop"));
    m_againAction = action("run.again", tr("Run &Again"), QKeySequence(Qt::CTRL | Qt::Key_F9), "redo");
    m_overlayAction = action("run.overlay", tr("Show Measured on the Timeline"), {}, "compare");
    m_overlayAction->setCheckable(true);
    m_overlayAction->setChecked(true);
    connect(m_overlayAction, &QAction::toggled, this, &RunPanel::takeOverlay);
    m_continueAction = action("run.continue", tr("&Continue"), {}, "play-next");
    m_calibrateAction = action("run.calibrate", tr("Ca&librate This Machine"), {}, "measure");
    m_removeAction = action("run.remove", tr("Remove Run from Session"), {}, "close");
    m_pauseAction = action("run.pauseView", tr("&Pause View of Run"), {}, "pause");
    m_pauseAction->setCheckable(true);
    m_pauseAction->setToolTip(tr("Leave timeline and charts as they are; the run goes on"));
    connect(m_pauseAction, &QAction::toggled, &m_service, &RunService::setViewPaused);
    connect(m_runAction, &QAction::triggered, this, &RunPanel::startCurrent);
    connect(m_stopAction, &QAction::triggered, &m_service, &RunService::stop);
    connect(m_againAction, &QAction::triggered, this, [this] {
        if (!m_last || !m_lastUpdate)
            return;
        setSetup(*m_last);
        start(m_lastUpdate, m_lastStep, *m_last); // the same plan, whatever the rows have become
    });
    connect(m_removeAction, &QAction::triggered, this, [this] {
        if (const std::int64_t run = m_list->runAt(m_listView->currentIndex().row()); run != 0)
            m_workspace->removeRun(run);
    });

    auto *setupBox = new QWidget(this);
    auto *form = new QFormLayout;
    m_steps = new QSpinBox(setupBox);
    m_steps->setRange(1, kMostSteps);
    m_steps->setAccessibleName(tr("Steps"));
    m_seed = new QSpinBox(setupBox);
    m_seed->setRange(0, std::numeric_limits<int>::max());
    m_seed->setAccessibleName(tr("Seed"));
    m_check = new QCheckBox(tr("Compare with the &unpartitioned model"), setupBox);
    m_live = new QCheckBox(tr("Show &spans while it runs"), setupBox);
    buildBackends(setupBox);
    form->addRow(tr("Run &on"), m_backend);
    form->addRow(m_python);
    buildOffer(setupBox);
    form->addRow(m_offerButton); // where the choice is that it replaces
    form->addRow(tr("S&teps"), m_steps);
    form->addRow(tr("See&d"), m_seed);
    m_ranks = new QSpinBox(setupBox);
    m_ranks->setRange(1, 1);
    m_ranks->setAccessibleName(tr("Processes"));
    m_ranks->setToolTip(
        tr("Processes that hold the devices. The outcome is the same in any number of them; in a "
           "process of its own, a device that fails is named."));
    form->addRow(tr("P&rocesses"), m_ranks);
    buildTraining(setupBox);
    form->addRow(m_training);
    form->addRow(m_check);
    form->addRow(m_live);
    m_preflight = new QListWidget(setupBox);
    m_preflight->setAccessibleName(tr("Before the run"));
    m_preflight->setWordWrap(true);
    m_preflight->setSelectionMode(QAbstractItemView::NoSelection);
    auto *buttons = new QHBoxLayout;
    for (QAction *each : {m_runAction, m_stopAction, m_continueAction})
        buttons->addWidget(buttonFor(each, setupBox));
    for (QAction *each : {m_againAction, m_pauseAction, m_overlayAction, m_calibrateAction}) {
        auto *button = buttonFor(each, setupBox);
        button->setToolButtonStyle(Qt::ToolButtonIconOnly);
        buttons->addWidget(button);
    }
    buttons->addStretch(1);
    auto *left = new QVBoxLayout(setupBox);
    left->setContentsMargins(6, 6, 6, 6);
    left->addLayout(buttons);
    auto *choices = new QWidget(setupBox);
    auto *below = new QVBoxLayout(choices);
    below->setContentsMargins(0, 0, 0, 0);
    below->addLayout(form);
    below->addWidget(m_preflight, 1);
    left->addWidget(new ScrolledColumn(choices), 1);

    auto *middle = new QWidget(this);
    m_state = new QLabel(middle);
    m_state->setWordWrap(true);
    m_state->setTextFormat(Qt::PlainText);
    QFont bold = m_state->font();
    bold.setBold(true);
    m_state->setFont(bold);
    m_badge = new QLabel(middle);
    m_badge->setWordWrap(true);
    m_badge->setTextFormat(Qt::PlainText);
    m_badge->setObjectName(QStringLiteral("run.badge"));
    m_badge->setForegroundRole(QPalette::PlaceholderText);
    m_progress = new QProgressBar(middle);
    m_progress->setAccessibleName(tr("Progress of the run"));
    m_details = new QLabel(middle);
    m_details->setWordWrap(true);
    m_details->setTextFormat(Qt::PlainText);
    m_details->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    m_losses = new LossCurve(middle);
    buildSteps(middle);
    auto *steps = new QHBoxLayout;
    steps->addWidget(m_choice);
    steps->addWidget(m_stepSlider, 1);
    steps->addWidget(m_stepLabel);
    auto *centre = new QVBoxLayout(middle);
    centre->setContentsMargins(6, 6, 6, 6);
    centre->addWidget(m_state);
    centre->addWidget(m_progress);
    centre->addWidget(m_badge);
    centre->addLayout(steps);
    centre->addWidget(m_losses, 1);
    centre->addWidget(m_details);

    m_tabs = new QTabWidget(this);
    m_tabs->setDocumentMode(true);
    m_figuresView = tableFor(m_figures, tr("Measured against predicted"), m_tabs);
    m_scatter = new OperatorScatter(m_tabs);
    connect(m_scatter, &OperatorScatter::chosen, this, [this](OperatorId op) { m_selection->select({op}); });
    m_listView = tableFor(m_list, tr("Runs of this session"), m_tabs);
    m_listView->addAction(m_removeAction);
    m_listView->setContextMenuPolicy(Qt::ActionsContextMenu);
    connect(m_listView, &QTableView::activated, this,
        [this](const QModelIndex &index) { showStored(m_list->runAt(index.row())); });
    m_tabs->addTab(m_listView, tr("Runs"));
    m_tabs->addTab(m_figuresView, tr("Figures"));
    m_tabs->addTab(m_scatter, tr("Operators"));
    m_difference = new RunDifference(m_tabs);
    m_tabs->addTab(m_difference, tr("Difference"));
    m_collectivesView = tableFor(m_collectives, tr("Collectives by size"), m_tabs);
    m_tabs->addTab(m_collectivesView, tr("Collectives"));
    m_spanErrorsView = tableFor(m_spanErrors, tr("What the prediction is wrong by"), m_tabs);
    connect(m_spanErrorsView, &QTableView::activated, this, [this](const QModelIndex &index) {
        if (const OperatorId op = m_spanErrors->operatorAt(index.row()); op.valid())
            m_selection->select({op});
    });
    m_tabs->insertTab(2, m_spanErrorsView, tr("Errors"));
    buildDevices();

    auto *splitter = new QSplitter(Qt::Horizontal, this);
    splitter->setChildrenCollapsible(false);
    splitter->addWidget(setupBox);
    splitter->addWidget(new ScrolledColumn(middle));
    splitter->addWidget(m_tabs);
    splitter->setSizes({kSetupWidth, kCourseWidth, kFiguresWidth});
    splitter->setStretchFactor(0, 2);
    splitter->setStretchFactor(1, 2);
    splitter->setStretchFactor(2, 5);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(splitter);
    setSetup({});
    for (QSpinBox *spin : {m_steps, m_seed, m_ranks})
        connect(spin, &QSpinBox::valueChanged, this, &RunPanel::refreshSetup);
    for (QCheckBox *box : {m_check, m_live})
        connect(box, &QCheckBox::toggled, this, &RunPanel::refreshSetup);
    connect(m_training, &TrainingForm::changed, this, &RunPanel::refreshSetup);
}

RunSetup RunPanel::setup() const
{
    RunSetup setup;
    setup.steps = m_steps->value();
    setup.check = m_check->isChecked();
    setup.live = m_live->isChecked();
    setup.seed = m_seed->value();
    setup.ranks = m_ranks->value();
    setup.backend = static_cast<RunBackend>(m_backend->currentIndex());
    if (setup.backend == RunBackend::Torch) {
        setup.python = m_python->path().toStdString();
        if (const TorchProbeSnapshot &found = m_python->found(); found && *found)
            setup.pythonSaid = (*found)->said;
    }
    setup.training = m_training->training();
    return setup;
}

void RunPanel::setSetup(const RunSetup &setup)
{
    m_steps->setValue(setup.steps);
    m_seed->setValue(static_cast<int>(setup.seed));
    m_ranks->setValue(setup.ranks);
    if (setup.backend == RunBackend::Torch && !setup.python.empty())
        m_python->setPath(QString::fromStdString(setup.python));
    m_backend->setCurrentIndex(static_cast<int>(setup.backend));
    m_check->setChecked(setup.check);
    m_live->setChecked(setup.live);
    m_training->setTraining(setup.training);
}

void RunPanel::refreshSetup()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    if (!good || m_workspace->isStale()) {
        m_mayRun = false;
        m_blocked =
            good ? tr("The rows have changed: a plan is awaited.") : tr("There is no plan to run yet.");
        showOffer({});
        m_preflight->clear();
        m_preflight->addItem(m_blocked);
        refreshRecord();
        return;
    }
    if (const QString problem = m_training->problem(); !problem.isEmpty()) {
        m_mayRun = false;
        m_blocked = problem;
        showOffer({});
        m_preflight->clear();
        m_preflight->addItem(markOf(PreflightItem::Level::Blocked) + QStringLiteral("  ") + problem);
        refreshRecord();
        return;
    }
    const bool verified = good->verdict && good->verdict->ok();
    m_ranks->setMaximum(static_cast<int>(good->scene->plan->devices.size()));
    // A pool thread: the plan's instructions are looked through.
    m_preflightWatcher.setFuture(
        QtConcurrent::run([good, verified, chosen = setup(),
                              machine = RunMachine{freeMemory(), QThread::idealThreadCount(),
                                  m_machineProbe.found(), m_python->found()}] {
            return readinessOf(*good->scene->plan, *good->scene->timeline, verified, chosen, machine);
        }));
}

void RunPanel::startCurrent()
{
    const PlanUpdateSnapshot good = m_workspace->lastGood();
    if (good && m_mayRun && !m_workspace->isStale())
        start(good, m_workspace->history().current(), setup());
}

void RunPanel::start(const PlanUpdateSnapshot &good, StepId step, const RunSetup &chosen)
{
    if (const auto libraries = m_service.librariesToAsk(*good->scene->plan); !libraries.empty()) {
        askForLibraries(libraries, [this, good, step, chosen] { start(good, step, chosen); });
        return;
    }
    if (!m_service.start(good, chosen))
        return;
    m_last = chosen;
    m_lastUpdate = good;
    m_lastStep = step;
    m_step = step;
    m_awaited = 0;
    m_straggler.clear();
    m_scatter->setPoints({});
    m_difference->setWaterfall({});
    m_collectives->setFigures({});
    m_spanErrors->setErrors({});
    {
        const QSignalBlocker blocker(m_choice);
        m_choice->setCurrentIndex(0);
    }
    SessionRun run;
    run.step = m_step;
    run.created = QDateTime::currentMSecsSinceEpoch();
    run.state = "running";
    const auto devices = good->scene->plan->devices.size();
    run.title = (chosen.training.resume.empty() ? tr("%1 %2, %3 steps") : tr("%1 %2, %3 more steps"))
                    .arg(devices)
                    .arg(chosen.backend == RunBackend::Cpu        ? tr("CPU devices")
                            : chosen.backend == RunBackend::Cuda  ? tr("GPUs")
                            : chosen.backend == RunBackend::Torch ? tr("processes of PyTorch")
                                                                  : tr("devices on one GPU"))
                    .arg(chosen.steps)
                    .toStdString();
    run.details = m_service.record().toJson();
    Q_EMIT said(tr("Run of %1 started").arg(QString::fromStdString(run.title)), false);
    m_run = m_workspace->addRun(std::move(run));
    m_tabs->setCurrentWidget(m_figuresView);
    Q_EMIT runShown();
}

void RunPanel::askForLibraries(const std::vector<std::string> &paths, std::function<void()> then)
{
    QString list;
    for (const std::string &path : paths)
        list += QStringLiteral("\n    ") + QString::fromStdString(path);
    auto *box = new QMessageBox(QMessageBox::Warning, tr("Run Code of a Library?"),
        tr("Operators of this plan are computed by shared libraries that an operator file "
           "names:\n%1\n\nRunning the "
           "plan runs their code, which can do whatever you can. Allow it only if you trust where model and "
           "operator "
           "file come from.")
            .arg(list),
        QMessageBox::Cancel, this);
    const QPushButton *allow = box->addButton(tr("&Allow and Run"), QMessageBox::AcceptRole);
    box->setDefaultButton(QMessageBox::Cancel);
    box->setAttribute(Qt::WA_DeleteOnClose);
    connect(box, &QMessageBox::buttonClicked, this,
        [this, allow, paths, then = std::move(then)](QAbstractButton *clicked) {
            if (clicked != allow)
                return;
            m_service.allowLibraries(paths);
            then();
        });
    box->open();
}

void RunPanel::refreshRecord()
{
    const bool running = m_service.isRunning();
    const RunRecord &record = m_service.record();
    const bool any = running || m_service.update() != nullptr;
    refreshActions();
    if (m_pauseAction->isChecked() != m_service.isViewPaused()) {
        const QSignalBlocker blocker(m_pauseAction);
        m_pauseAction->setChecked(m_service.isViewPaused());
    }
    refreshSteps();
    m_badge->setText(clocks());
    for (QWidget *input :
        std::initializer_list<QWidget *>{m_backend, m_python, m_steps, m_seed, m_check, m_live, m_training})
        input->setEnabled(!running);
    m_ranks->setEnabled(!running && setup().backend == RunBackend::Cpu);
    if (running && record.setup.backend != RunBackend::Cpu && m_machineProbe.hasGpus())
        m_lookTimer.start();
    else
        m_lookTimer.stop();
    const bool calibrating = m_calibration->isRunning();
    m_progress->setVisible(running || calibrating);
    if (calibrating) {
        m_state->setText(tr("Measuring the kernels of this plan on this machine"));
        m_progress->setRange(0, m_calibration->all());
        m_progress->setValue(m_calibration->done());
        m_progress->setFormat(tr("%v of %m kernels"));
        return;
    }
    if (!any) {
        m_state->setText(m_refusal.isEmpty() ? lastKept() : tr("Cannot run: %1").arg(m_refusal));
        m_details->setText(m_calibrated);
        return;
    }
    QString state = QString::fromStdString(record.sentence());
    if (!state.isEmpty())
        state[0] = state[0].toUpper();
    if (m_service.isViewPaused())
        state += tr(" · the view is paused");
    if (!m_refusal.isEmpty())
        state = tr("Cannot run: %1").arg(m_refusal) + QLatin1Char('\n') + tr("The last run: %1").arg(state);
    m_state->setText(state);
    if (record.state == RunState::Running && record.setup.steps > 0) {
        m_progress->setRange(0, record.setup.steps);
        m_progress->setValue(static_cast<int>(record.losses.size()));
        m_progress->setFormat(tr("%v of %m steps"));
    } else {
        m_progress->setRange(0, 0);
    }
    m_losses->setLosses(record.losses, record.setup.steps);
    const RunOverlaySnapshot overlay = m_service.overlay();
    m_figures->setRun(record, overlay && overlay->predicted ? overlay->predicted->timeline.get() : nullptr,
        m_service.update() && m_service.update()->scene ? leastMemory(m_service.update()->scene->cluster)
                                                        : 0);
    m_figuresView->resizeColumnsToContents();
    // Names give way to the figures: what is cut of them is in their tooltips.
    int others = 0;
    for (int column = 1; column < m_figures->columnCount(); ++column)
        others += m_figuresView->columnWidth(column);
    const int left = m_figuresView->viewport()->width() - others;
    const int least = m_figuresView->fontMetrics().averageCharWidth() * 14;
    m_figuresView->setColumnWidth(0, std::clamp(left, least, std::max(least, m_figuresView->columnWidth(0))));
    QStringList details;
    if (!m_calibrated.isEmpty())
        details << m_calibrated;
    if (!record.checkpoint.empty())
        details << tr("Checkpoint of step %1: %2")
                       .arg(record.checkpointStep)
                       .arg(QString::fromStdString(record.checkpoint));
    if (!m_straggler.isEmpty())
        details << QStringLiteral("⚠ ") + m_straggler;
    if (record.check)
        details << (record.check->ok
                ? tr("Equal to the unpartitioned model; the largest difference is %1 in %2.")
                : tr("Differs from the unpartitioned model by %1 in %2."))
                       .arg(record.check->worstError, 0, 'g', 2)
                       .arg(QString::fromStdString(record.check->worstTensor));
    if (record.check && !record.check->firstDifference.empty())
        details << tr("The first operator that differs is %1.")
                       .arg(QString::fromStdString(record.check->firstDifference));
    if (record.error) {
        details << QString::fromStdString(record.error->message);
        if (!record.error->advice.empty())
            details << QString::fromStdString(record.error->advice);
        if (record.state == RunState::Failed) {
            for (std::size_t d = 0; d < record.devices.size() && d < 8; ++d) {
                const RunDevice &device = record.devices[d];
                if (!device.kind.empty())
                    details << tr("Device %1: step %2, micro-batch %3, last at %4 %5")
                                   .arg(d)
                                   .arg(device.step + 1)
                                   .arg(device.microBatch)
                                   .arg(QString::fromStdString(device.kind),
                                       QString::fromStdString(device.operatorName));
            }
        }
    }
    for (std::size_t i = 0; i < record.warnings.size() && i < 4; ++i)
        details << QString::fromStdString(record.warnings[i]);
    m_details->setText(details.join(QLatin1Char('\n')));
}

} // namespace planloom

#include "moc_run_panel.cpp"
