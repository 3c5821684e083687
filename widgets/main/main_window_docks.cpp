// Docks, perspectives, and what the session remembers of them.

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"
#include "widgets/main/main_window.h"

#include <QtGui/QAction>
#include <QtGui/QGuiApplication>
#include <QtGui/QScreen>
#include <QtGui/QShortcut>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStackedWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QTreeView>
#include <QtWidgets/QVBoxLayout>

#include "widgets/compare/compare_choice.h"
#include "widgets/compare/compare_view.h"
#include "widgets/compare/plans_panel.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/history/history_panel.h"
#include "widgets/inspector/chip_bar.h"
#include "widgets/inspector/devices_panel.h"
#include "widgets/inspector/sharding_view.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/outline_panel.h"
#include "widgets/main/player.h"
#include "widgets/memory/communication_panel.h"
#include "widgets/memory/memory_panel.h"
#include "widgets/problems/problems_panel.h"
#include "widgets/problems/ways_out.h"
#include "widgets/run/run_panel.h"
#include "widgets/sweep/sweep_panel.h"
#include "widgets/table/table_panel.h"
#include "widgets/trace/trace_panel.h"

#include <algorithm>
#include <map>
#include <optional>

namespace planloom {

namespace {

const QString kLastView = QStringLiteral("view/"); ///< Of settings: what a new session begins with.

std::string base64(const QByteArray &bytes)
{
    return bytes.toBase64().toStdString();
}

} // namespace

void MainWindow::buildDocks()
{
    m_choice = std::make_unique<CompareChoice>();
    m_outline = new OutlinePanel(&m_selection, this);
    m_gallery = new GalleryPanel(this);
    m_inspector = new InspectorPanel(&m_selection, this);
    m_sharding = new ShardingView(&m_selection, this);
    m_constraints = new TablePanel(&m_workspace, &m_selection, this);
    m_problems = new ProblemsPanel(this);
    m_memory = new MemoryPanel(&m_workspace, &m_selection, this);
    auto *communication = new CommunicationPanel(&m_workspace, &m_selection, this);
    m_history = new HistoryPanel(&m_workspace, this);
    m_plans = new PlansPanel(&m_workspace, m_choice.get(), this);
    m_run = new RunPanel(&m_workspace, &m_selection, this);
    m_log = new LogPanel(this);

    m_docks->add(tr("Model"), "model", m_outline, Qt::LeftDockWidgetArea, m_outline->tree());
    m_docks->add(tr("Devices"), "devices", new DevicesPanel(&m_workspace, &m_selection, this),
        Qt::LeftDockWidgetArea, nullptr, true);
    m_docks->add(tr("Gallery"), "gallery", m_gallery, Qt::LeftDockWidgetArea, m_gallery->list());
    m_docks->add(tr("Inspector"), "inspector", buildInspector(), Qt::RightDockWidgetArea, m_inspector);
    m_docks->add(tr("Constraints"), "constraints", m_constraints, Qt::BottomDockWidgetArea);
    m_docks->add(tr("Problems"), "problems", m_problems, Qt::BottomDockWidgetArea, m_problems->list());
    m_docks->add(tr("Memory"), "memory", m_memory, Qt::BottomDockWidgetArea);
    m_docks->add(tr("Communication"), "communication", communication, Qt::BottomDockWidgetArea);
    m_docks->add(tr("What If"), "whatif", new SweepPanel(&m_workspace, this), Qt::BottomDockWidgetArea);
    m_docks->add(tr("History"), "history", m_history, Qt::BottomDockWidgetArea, m_history->list());
    m_docks->add(tr("Plans"), "plans", m_plans, Qt::BottomDockWidgetArea, m_plans->list());
    m_docks->add(tr("Run"), "run", m_run, Qt::BottomDockWidgetArea);
    auto *trace = new TracePanel(&m_workspace, this);
    connect(trace, &TracePanel::calibrated, this, [this](const Cluster &cluster, const QString &sentence) {
        m_log->model()->add(LogKind::Run, sentence);
        m_workspace.setCluster(joinFramework(cluster.name, cluster.framework), toJson(cluster));
    });
    m_docks->add(tr("Trace"), "trace", trace, Qt::BottomDockWidgetArea);
    m_docks->add(tr("Log"), "log", m_log, Qt::BottomDockWidgetArea, m_log->list());
    connectDocks();
}

QWidget *MainWindow::buildInspector()
{
    auto *whole = new QWidget(this);
    auto *chips = new ChipBar(&m_workspace, &m_selection, whole);
    auto *pictures = new QScrollArea(whole);
    pictures->setWidgetResizable(true);
    pictures->setFrameShape(QFrame::NoFrame);
    pictures->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    pictures->setFocusPolicy(Qt::NoFocus); // what is in it has the focus
    pictures->setWidget(m_sharding);
    auto *splitter = new QSplitter(Qt::Vertical, whole);
    splitter->setChildrenCollapsible(false);
    splitter->addWidget(m_inspector);
    splitter->addWidget(pictures);
    splitter->setStretchFactor(0, 3);
    splitter->setStretchFactor(1, 2);
    auto *layout = new QVBoxLayout(whole);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(chips);
    layout->addWidget(splitter, 1);
    return whole;
}

void MainWindow::showOverlay(const RunOverlaySnapshot &overlay)
{
    const bool shown = overlay && overlay->predicted;
    if (shown)
        m_timeline->setScene(overlay->predicted); // on devices like those that run: the two can be compared
    else if (m_timeline->measured() || m_timeline->scene() != m_shownScene)
        m_timeline->setScene(m_shownScene);
    m_timeline->setMeasured(shown ? overlay->measured : nullptr);
    m_timeline->setBadge(shown ? m_run->badge() : QString());
}

void MainWindow::connectDocks()
{
    connect(m_outline, &OutlinePanel::activated, this, [this] {
        if (!m_selection.selected().empty())
            m_dag->fitSelection();
    });
    connect(m_problems, &ProblemsPanel::lineActivated, this, [this](int line) {
        m_docks->reveal(QStringLiteral("constraints"), false);
        m_constraints->focusRow(line);
    });
    connect(m_problems, &ProblemsPanel::placeActivated, this, [this](const Place &place) {
        const auto *op = std::get_if<OperatorPlace>(&place);
        if (place == Place{NamedPlace{"memory"}}) {
            m_docks->reveal(QStringLiteral("memory"), false);
        } else if (op && m_workspace.model()) {
            const SelectorIndex &index = *m_workspace.model()->index;
            OperatorId found = index.findOperator(op->name);
            if (!found.valid() && !op->part.empty())
                found = index.findOperator(op->name + '/' + op->part); // a name with a '/' of its own
            if (found.valid())
                m_dag->showOperator(found);
        }
    });
    connect(m_problems, &ProblemsPanel::operatorsActivated, this,
        [this](const std::vector<OperatorId> &operators) {
            m_selection.select(operators);
            m_dag->fitSelection();
        });
    connect(m_problems, &ProblemsPanel::wayOutChosen, this,
        [this](const QString &words, const TableEdit &edit) { m_workspace.editTable(words, edit); });
    m_waysOut = std::make_unique<WaysOut>(&m_workspace, m_problems);
    connect(m_waysOut.get(), &WaysOut::searchAsked, this, [this] { trigger(QStringLiteral("solve.best")); });
    connect(m_problems, &ProblemsPanel::countChanged, this, [this](int count) {
        m_docks->setTitle(
            QStringLiteral("problems"), count > 0 ? tr("Problems (%1)").arg(count) : tr("Problems"));
        refreshCommands();
    });
    connect(m_gallery, &GalleryPanel::chosen, this,
        [this](const QString &spec) { m_workspace.applyGallery(spec.toStdString()); });
    connect(m_gallery, &GalleryPanel::asked, this, [this](const QString &spec) {
        if (auto request = m_workspace.galleryRequest(spec.toStdString()))
            m_galleryPreview.ask(*std::move(request));
    });
    connect(&m_galleryPreview, &GalleryPreview::found, this, [this](const GalleryEffectSnapshot &effect) {
        const auto shown = m_workspace.lastGood();
        m_gallery->setEffect(*effect, shown && shown->isTimed() ? &shown->summary : nullptr);
    });
    connect(m_run, &RunPanel::overlayChanged, this,
        [this](const RunOverlaySnapshot &overlay) { showOverlay(overlay); });
    // The key of a disabled Run is heard, and answered.
    auto *refused = new QShortcut(m_run->runAction()->shortcut(), this);
    refused->setEnabled(!m_run->refusal().isEmpty());
    connect(m_run, &RunPanel::refusalChanged, refused,
        [refused](const QString &refusal) { refused->setEnabled(!refusal.isEmpty()); });
    connect(refused, &QShortcut::activated, this, [this] {
        m_docks->reveal(QStringLiteral("run"), false);
        m_notices->show({QStringLiteral("run.refused"), NoticeKind::Warning,
            tr("Cannot run: %1").arg(m_run->refusal()), {}, true});
    });
    const QString python = QStringLiteral("run/python");
    m_run->python()->setPath(m_services.settings->value(python).toString());
    connect(m_run->python(), &TorchPython::chosen, this,
        [this, python](const QString &path) { m_services.settings->setValue(python, path); });
    connect(m_run, &RunPanel::said, this, [this](const QString &sentence, bool isProblem) {
        m_log->model()->add(isProblem ? LogKind::Problem : LogKind::Run, sentence);
    });
    connect(m_run, &RunPanel::runShown, this, [this] { m_docks->reveal(QStringLiteral("run"), false); });
    connect(m_run, &RunPanel::errorsChanged, this,
        [this](std::vector<double> ratios) { m_dag->setValues(ColourBy::Error, std::move(ratios)); });
    m_player->setMemory(m_memory);
    connect(m_inspector, &QTextBrowser::anchorClicked, this, [this](const QUrl &link) {
        const PlanUpdateSnapshot good = m_workspace.lastGood();
        if (good && link.scheme() == QLatin1String("queues"))
            assume(link.path() == QLatin1String("one") ? CommunicationQueues::One : CommunicationQueues::Own,
                good->cluster.blockingSends);
        else if (good && link.scheme() == QLatin1String("sends"))
            assume(good->cluster.communicationQueues, link.path() == QLatin1String("blocking"));
    });
    // A moment chosen in a memory curve is shown on the timeline too.
    connect(m_memory, &MemoryPanel::timeChosen, this,
        [this](qint64 nanoseconds) { m_timeline->showTime(Nanoseconds(nanoseconds)); });
    connect(
        m_plans, &PlansPanel::compareRequested, this, [this] { m_docks->apply(QStringLiteral("compare")); });
    connect(m_docks.get(), &DockBoard::layoutChanged, this, &MainWindow::storeView);
    connect(m_docks.get(), &DockBoard::currentChanged, this, &MainWindow::showPerspective);
}

void MainWindow::connectCanvases()
{
    // How high lanes are is a habit: a new session begins with what was chosen last.
    const QString lanes = QStringLiteral("timeline/laneHeight");
    LaneArrangement arrangement = m_timeline->arrangement();
    const int height = m_services.settings->value(lanes, static_cast<int>(arrangement.laneHeight)).toInt();
    if (height >= 0 && height < kLaneHeightCount)
        arrangement.laneHeight = static_cast<LaneHeight>(height);
    m_timeline->setArrangement(std::move(arrangement));
    connect(m_timeline, &TimelineView::viewStateChanged, this, [this, lanes] {
        m_services.settings->setValue(lanes, static_cast<int>(m_timeline->arrangement().laneHeight));
    });
    connect(m_dag, &DagView::noted, this, &MainWindow::say);
    // What is communicated: the badge on the graph, and its spans.
    connect(m_dag, &DagView::communicationChosen, m_timeline, &TimelineView::selectCommunication);
    connect(m_timeline, &TimelineView::communicationChosen, m_dag, &DagView::markCommunication);
    connect(m_timeline, &TimelineView::refused, this, &MainWindow::say);
    const auto moved = [this] {
        storeView();
        m_chores.add("zoom", [this] { refreshZoom(); });
    };
    connect(m_dag, &DagView::viewChanged, this, moved);
    connect(m_dag, &DagView::pictureChanged, this, moved);
    connect(m_timeline, &TimelineView::viewStateChanged, this, moved);
    connect(m_timeline, &TimelineView::axisChanged, this, moved);
    connect(m_dag, &DagView::rowAsked, this, [this](const QString &selector) {
        const QString row = QStringLiteral("split %1 : ").arg(selector);
        writeRow(row, static_cast<int>(row.size()), 0);
    });
    // What is moved by hand and bookmarked belongs to the design: it is undone and kept like rows.
    connect(m_dag, &DagView::nudged, this, [this](const QString &path, double dx, double dy) {
        const std::string name = "nudge/" + path.toStdString();
        std::optional<std::string> value;
        if (dx != 0 || dy != 0)
            value = QStringLiteral("%1 %2").arg(dx).arg(dy).toStdString();
        m_workspace.setValue(tr("move %1").arg(path), name, value, QString::fromStdString(name));
    });
    connect(m_dag, &DagView::bookmarksChanged, this, [this](const QStringList &bookmarks) {
        for (int number = 1; number <= bookmarks.size(); ++number) {
            const std::string text = bookmarks[number - 1].toStdString();
            m_workspace.setValue(tr("bookmark %1").arg(number), "bookmark/" + std::to_string(number),
                text.empty() ? std::nullopt : std::optional<std::string>(text));
        }
    });
    connect(&m_workspace, &Workspace::valuesChanged, this, &MainWindow::takeValues);
}

void MainWindow::takeValues()
{
    std::map<std::string, QPointF> nudges;
    QStringList bookmarks;
    for (int number = 1; number <= 9; ++number)
        bookmarks.append(QString::fromStdString(m_workspace.value("bookmark/" + std::to_string(number))));
    const std::string prefix = "nudge/";
    for (const auto &[name, value] : m_workspace.history().state().values) {
        if (name.rfind(prefix, 0) != 0)
            continue;
        const QStringList parts = QString::fromStdString(value).split(QLatin1Char(' '));
        if (parts.size() == 2)
            nudges[name.substr(prefix.size())] = QPointF(parts[0].toDouble(), parts[1].toDouble());
    }
    if (bookmarks != m_dag->bookmarks())
        m_dag->setBookmarks(bookmarks);
    m_dag->setNudges(nudges);
}

/// The comparison takes the place of DAG and timeline.
void MainWindow::showPerspective(const QString &perspective)
{
    if (!m_workspace.model())
        return;
    const bool comparing = perspective == QLatin1String("compare");
    if (comparing && !m_compare) {
        m_compare = new CompareView(&m_workspace, &m_selection, m_choice.get(), this);
        m_stack->addWidget(m_compare);
        connect(m_compare, &CompareView::operatorActivated, this,
            [this](OperatorId op) { m_selection.select({op}); });
        connect(m_compare->findChild<QAction *>(QStringLiteral("compare.done")), &QAction::triggered, this,
            [this] { m_docks->apply(QStringLiteral("design")); });
        m_commands->rescan();
    }
    m_stack->setCurrentWidget(comparing ? static_cast<QWidget *>(m_compare) : m_splitter);
    if (comparing)
        m_compare->setFocus(Qt::OtherFocusReason);
}

void MainWindow::buildPerspectives()
{
    QStringList all;
    for (const QDockWidget *dock : m_docks->docks())
        all.append(dock->objectName());
    QStringList narrow = all; // what leaves the centre to timelines
    for (const char *name : {"model", "devices", "gallery"})
        narrow.removeAll(QLatin1String(name));
    QStringList below = narrow; // what leaves room for a lesson beside it
    below.removeAll(QStringLiteral("inspector"));
    m_docks->addPerspective({QStringLiteral("design"), tr("Design"), all, {QStringLiteral("constraints")}});
    m_docks->addPerspective(
        {QStringLiteral("compare"), tr("Compare"), narrow, {QStringLiteral("plans")}, 0.17});
    m_docks->addPerspective({QStringLiteral("lesson"), tr("Lesson"), below, {QStringLiteral("constraints")}});
    m_docks->addPerspective({QStringLiteral("run"), tr("Run"), narrow, {QStringLiteral("run")}, 0.28});
}

void MainWindow::storeView()
{
    if (!m_restoring && m_workspace.model() && m_stack->currentWidget() == m_splitter)
        m_viewTimer.start();
}

void MainWindow::storeViewNow()
{
    m_viewTimer.stop();
    if (!m_workspace.model() || !m_docks->isShown())
        return;
    // The comparison is left behind: a session begins with its plan.
    if (m_stack->currentWidget() == m_splitter) {
        const std::pair<const char *, std::string> kept[] = {{"window.docks", base64(m_docks->state())},
            {"window.perspective", m_docks->current().toStdString()},
            {"window.splitter", base64(m_splitter->saveState())}, {"window.geometry", base64(saveGeometry())},
            {"window.colour", std::to_string(static_cast<int>(m_timeline->colouring()))}};
        for (const auto &[name, value] : kept) {
            m_workspace.setView(name, value);
            if (m_docks->current() != QLatin1String("lesson")) // nobody's choice
                m_services.settings->setValue(kLastView + QLatin1String(name), QString::fromStdString(value));
        }
    }
    m_workspace.setView("table.state", m_constraints->viewState());
    m_workspace.setView("timeline.state", m_timeline->viewState());
    m_workspace.setView("dag.camera", m_dag->cameraState().toStdString());
}

/// As the session was left; a new one begins as the last one was.
void MainWindow::restoreView()
{
    const auto &view = m_workspace.view();
    const auto text = [&](const char *name) {
        const auto found = view.find(name);
        return found != view.end() ? QString::fromStdString(found->second)
                                   : m_services.settings->value(kLastView + QLatin1String(name)).toString();
    };
    const auto bytes = [&text](const char *name) { return QByteArray::fromBase64(text(name).toLatin1()); };
    m_restoring = true;
    if (const QByteArray geometry = bytes("window.geometry");
        view.contains("window.geometry") && !isMaximized() && !isFullScreen()) {
        const QRect before = this->geometry();
        restoreGeometry(geometry);
        // Only where it can be seen: screens go and come.
        const QRect now = frameGeometry();
        const auto screens = QGuiApplication::screens();
        const bool seen = std::any_of(screens.begin(), screens.end(), [&now](const QScreen *screen) {
            const QRect part = screen->availableGeometry().intersected(now);
            return part.width() >= 200 && part.height() >= 100;
        });
        if (!seen)
            setGeometry(before);
    }
    if (const QByteArray docks = bytes("window.docks"); !docks.isEmpty())
        m_docks->recall(docks, text("window.perspective"));
    if (const QByteArray splitter = bytes("window.splitter"); !splitter.isEmpty()) {
        m_splitter->restoreState(splitter);
        m_beside->setChecked(m_splitter->orientation() == Qt::Horizontal);
    }
    if (const int colour = m_colour->findData(text("window.colour").toInt());
        colour >= 0 && !text("window.colour").isEmpty())
        setColouring(static_cast<TimelineColouring>(m_colour->itemData(colour).toInt()));
    if (const auto table = view.find("table.state"); table != view.end())
        m_constraints->restoreViewState(table->second);
    if (const auto timeline = view.find("timeline.state"); timeline != view.end())
        m_timeline->restoreViewState(timeline->second);
    if (const auto camera = view.find("dag.camera"); camera != view.end())
        m_dag->restoreCamera(QString::fromStdString(camera->second));
    m_restoring = false;
}

} // namespace planloom
