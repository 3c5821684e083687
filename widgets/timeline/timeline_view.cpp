#include "widgets/timeline/timeline_view.h"

#include <QtConcurrent/QtConcurrentRun>

#include "engine/base/background_disposal.h"
#include "widgets/timeline/timeline_accessible.h"
#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_panel.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// A new step within these shares of the old one's length keeps the zoom.
constexpr double kAlike = 0.5;
constexpr int kEdgeMilliseconds = 30;
constexpr int kLongPressMilliseconds = 800;
constexpr std::size_t kMostRowsAtOnce = 20'000; ///< Rows of a selection that may be gathered within a frame.

} // namespace

TimelineView::TimelineView(SelectionModel *selection, QWidget *parent)
    : QAbstractScrollArea(parent)
    , m_selection(selection)
    , m_line(new TimelineLineEditor(viewport()))
    , m_analyst(new TimelineAnalyst(this))
    , m_panel(new TimelinePanel(this))
{
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setAccessibleName(tr("Timeline"));
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    viewport()->grabGesture(Qt::PinchGesture);
    setAcceptDrops(true);
    setMinimumHeight(120);
    m_metrics = TimelineMetrics::forFont(fontMetrics().height());
    m_edgeTimer.setInterval(kEdgeMilliseconds);
    connect(&m_edgeTimer, &QTimer::timeout, this, &TimelineView::scrollAtEdges);
    connect(m_selection, &SelectionModel::selectionChanged, this, [this] {
        m_edges.clear();
        onSelectionChanged();
    });
    connect(&m_selectedWatcher, &QFutureWatcherBase::finished, this, &TimelineView::takeSelected);
    connect(&m_whatIfWatcher, &QFutureWatcherBase::finished, this, &TimelineView::takeWhatIf);
    m_longPress.setSingleShot(true);
    m_longPress.setInterval(kLongPressMilliseconds);
    connect(&m_longPress, &QTimer::timeout, this, [this] {
        abandonHand();
        listUnder(m_pressed);
    });
    connect(&m_boxWatcher, &QFutureWatcherBase::finished, this, &TimelineView::takeBox);
    connect(m_line, &TimelineLineEditor::proposed, this, [this](const Proposal &proposal) {
        if (shown())
            m_gestures.type(canvas(), proposal);
        viewport()->update();
    });
    connect(m_line, &TimelineLineEditor::accepted, this, [this] {
        const auto &proposal = m_gestures.proposal();
        if (proposal && proposal->refusal) {
            Q_EMIT refused(
                QString::fromStdString(proposal->refusal->message)); // the line stays, to be put right
            return;
        }
        m_gestures.drop();
        closeLine();
    });
    connect(m_line, &TimelineLineEditor::abandoned, this, [this] {
        m_gestures.abandon();
        closeLine();
    });
    connect(m_line, &TimelineLineEditor::rowsOffToggled, this, [this] {
        m_gestures.toggleRowsInTheWay();
        viewport()->update();
    });
    connect(m_line, &TimelineLineEditor::filtered, this, [this](const QString &text) {
        m_arrangement.filter = text.toStdString();
        relayout();
        Q_EMIT viewStateChanged();
    });
    connect(m_analyst, &TimelineAnalyst::ready, this, &TimelineView::onAnalysed);
    connect(m_panel, &TimelinePanel::closed, this, &TimelineView::hidePanel);
    connect(m_panel, &TimelinePanel::copyWanted, this, &TimelineView::copyPanel);
    connect(m_panel, &TimelinePanel::spanChosen, this, [this](std::int64_t row) {
        if (!m_scene || row < 0 || row >= static_cast<std::int64_t>(shown()->timeline->spans.size()))
            return;
        const std::int32_t device = shown()->timeline->spans.device[static_cast<std::size_t>(row)];
        const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(device)];
        const bool compute = static_cast<std::size_t>(row) < lane.compute.end;
        focusOn({device, compute ? LanePart::Span : LanePart::Communication,
                    compute ? lane.blockOf(static_cast<std::size_t>(row)) : -1, row},
            true);
    });
    makeActions();
    installTimelineAccessibility();
}

TimelineView::~TimelineView()
{
    m_selectedStop.request_stop();
    m_boxStop.request_stop();
    m_whatIfStop.request_stop();
    m_gestures.setHost(nullptr);
}

void TimelineView::setScene(TimelineSceneSnapshot scene)
{
    if (m_gestures.dragging() && m_gestures.ghost().drag != TimelineDrag::Line && m_scene) {
        m_waiting = std::move(scene); // what the drag holds lies in the present one
        return;
    }
    takeScene(std::move(scene));
}

void TimelineView::takeScene(TimelineSceneSnapshot scene)
{
    const double before = m_scene ? extent() : 0;
    const TimelineSceneSnapshot shownBefore = shown();
    const TimelineFocus focusBefore = m_focus;
    m_waiting.reset();
    m_scene = std::move(scene);
    if (m_measured && (!m_scene || m_measured->lanes.size() != m_scene->lanes.size()))
        m_measured.reset(); // of another plan
    m_hover = {};
    m_focus = {};
    m_explains = m_asksWhatIf = m_wantsIdleTable = false;
    m_wouldEnd.reset();
    m_whatIfStop.request_stop();
    hidePanel();
    abandonHand();
    m_gestures.forgetKeys();
    if (shownBefore && m_scene)
        m_focus = refocused(*shownBefore, focusBefore);
    m_analyst->setScene(shown());
    if (m_criticalPath)
        needAnalysis();
    const double after = extent();
    if (m_shownTime && static_cast<double>(m_shownTime->count()) > after)
        m_shownTime.reset();
    m_edges.clear();
    relayout();
    if (m_fitted || before <= 0 || after < before * kAlike || after > before / kAlike)
        fitAll();
    else
        moveAxis(clamped(m_axis, after, canvasWidth()));
    if (!m_pendingState.empty() && m_scene)
        restoreViewState(std::exchange(m_pendingState, {}));
    onSelectionChanged();
    updateActions();
    Q_EMIT shownSceneChanged();
    // Later, as it may write rows, which leads to the next plan.
    QMetaObject::invokeMethod(
        this,
        [this, arrived = m_scene] {
            if (arrived && arrived == m_scene)
                m_gestures.planArrived(*arrived);
        },
        Qt::QueuedConnection);
}

/// The same block or span in the present scene, where the keyboard goes on; nowhere if it is gone.
TimelineFocus TimelineView::refocused(const TimelineScene &before, const TimelineFocus &focus) const
{
    constexpr std::size_t kMostLooked = 50'000; // rows that may be gone through within a frame
    const TimelineScene &now = *shown();
    if (!focus.valid() || static_cast<std::size_t>(focus.lane) >= before.lanes.size()
        || static_cast<std::size_t>(focus.lane) >= now.lanes.size()
        || before.graph().operators.size() != now.graph().operators.size())
        return {};
    if (focus.part == LanePart::Bracket)
        return now.lanes[static_cast<std::size_t>(focus.lane)].warmUp.count > 0 ? focus : TimelineFocus{};
    const DeviceLane &lane = before.lanes[static_cast<std::size_t>(focus.lane)];
    std::size_t row = 0;
    if (focus.part == LanePart::Span || focus.part == LanePart::Communication) {
        row = static_cast<std::size_t>(std::max<std::int64_t>(focus.span, 0));
    } else {
        if (focus.part == LanePart::Idle || focus.block < 0
            || static_cast<std::size_t>(focus.block) >= lane.blocks.size())
            return {};
        row = lane.blocks[static_cast<std::size_t>(focus.block)].rows.begin;
    }
    const OperatorId op = before.operatorOf(row);
    if (!op.valid() || rowCountOf(now, {op}) > kMostLooked)
        return {};
    const SpanColumns &old = before.timeline->spans;
    const SpanColumns &spans = now.timeline->spans;
    std::int64_t best = -1;
    for (const std::size_t each : rowsOf(now, {op})) {
        if (spans.microBatch[each] != old.microBatch[row] || spans.queue[each] != old.queue[row])
            continue;
        if (best < 0 || spans.device[each] == focus.lane)
            best = static_cast<std::int64_t>(each);
        if (spans.device[each] == focus.lane)
            break; // on the same device rather than on another
    }
    if (best < 0)
        return {};
    const std::int32_t device = spans.device[static_cast<std::size_t>(best)];
    TimelineFocus found{device, focus.part, -1, best};
    if (focus.part != LanePart::Communication)
        found.block = now.lanes[static_cast<std::size_t>(device)].blockOf(static_cast<std::size_t>(best));
    if (focus.part == LanePart::Block)
        found.span = -1;
    return found;
}

void TimelineView::setMeasured(TimelineSceneSnapshot measured)
{
    const bool asBefore = m_measured && measured && m_measured->lanes.size() == measured->lanes.size();
    m_measured = std::move(measured);
    m_hover = {};
    m_analyst->setScene(shown());
    if (m_criticalPath)
        needAnalysis();
    if (m_fitted)
        fitAll();
    if (!asBefore) {
        m_focus = {};
        relayout();
    }
    onSelectionChanged();
    Q_EMIT shownSceneChanged();
}

void TimelineView::setBadge(const QString &text)
{
    m_badge = text;
    viewport()->update();
}

void TimelineView::setGestureHost(GestureHost *host)
{
    if (GestureHost *before = m_gestures.host())
        before->disconnect(this);
    closeLine();
    m_gestures.setHost(host);
    if (host) {
        connect(host, &GestureHost::previewChanged, this, [this] {
            m_gestures.answered();
            viewport()->update();
        });
        connect(host, &GestureHost::contextChanged, this, &TimelineView::updateActions);
        connect(host, &QObject::destroyed, this, [this] { m_gestures.setHost(nullptr); });
    }
    updateActions();
}

void TimelineView::setEmptyText(const QString &text)
{
    m_emptyText = text;
    viewport()->update();
}

void TimelineView::setStale(bool stale)
{
    if (m_stale == stale)
        return;
    m_stale = stale;
    viewport()->update();
}

void TimelineView::setConflicts(std::set<DeviceId> devices)
{
    if (m_conflicts == devices)
        return;
    m_conflicts = std::move(devices);
    viewport()->update();
}

void TimelineView::setColouring(TimelineColouring colouring)
{
    m_colouring = colouring;
    viewport()->update();
}

void TimelineView::setFollowersPolicy(FollowersPolicy policy)
{
    if (followersPolicy() == policy)
        return;
    m_gestures.setFollowersPolicy(policy);
    syncActions();
    Q_EMIT followersPolicyChanged(policy);
    Q_EMIT viewStateChanged();
}

void TimelineView::setArrangement(LaneArrangement arrangement)
{
    m_arrangement = std::move(arrangement);
    syncActions();
    relayout();
    Q_EMIT viewStateChanged();
}

void TimelineView::onSelectionChanged()
{
    m_selectedStop.request_stop();
    m_selectedStop = {};
    ++m_selectedVersion;
    updateActions();
    viewport()->update();
    if (!m_scene) {
        m_selected.clear();
        return;
    }
    const std::vector<OperatorId> operators = m_edges.empty() ? m_selection->selected() : servedBy(m_edges);
    const auto find = [scene = shown(), operators, edges = m_edges] {
        return edges.empty() ? rowsOf(*scene, operators) : communicationRows(*scene, edges);
    };
    if (rowCountOf(*shown(), operators) <= kMostRowsAtOnce) {
        m_selectedWatcher.setFuture({});
        m_selected = find();
        return;
    }
    m_selected.clear();
    m_selectedWatcher.setFuture(QtConcurrent::run([find, stop = m_selectedStop.get_token()] {
        return stop.stop_requested() ? std::vector<std::size_t>{} : find();
    }));
}

void TimelineView::takeSelected()
{
    QFuture<std::vector<std::size_t>> future = m_selectedWatcher.future();
    if (future.isCanceled() || future.resultCount() == 0 || m_selectedStop.stop_requested())
        return;
    // Millions of rows in a large plan: neither copied nor given back here.
    disposeInBackground([old = std::exchange(m_selected, future.takeResult())] {});
    ++m_selectedVersion;
    viewport()->update();
}

} // namespace planloom

#include "moc_timeline_view.cpp"
