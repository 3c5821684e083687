#include "widgets/timeline/timeline_view.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QPainter>
#include <QtGui/QResizeEvent>
#include <QtWidgets/QScrollBar>

#include "widgets/timeline/timeline_accessible.h"
#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_ghost_painter.h"
#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_overlay_painter.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/timeline_tag.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;
/// A new step within these shares of the old one's length keeps the zoom.
constexpr double kAlike = 0.5;
constexpr int kEdgeMilliseconds = 30;
constexpr double kMostScroll = 1e6; ///< Steps of the horizontal scroll bar: it counts in whole numbers.
constexpr std::size_t kMostRowsAtOnce = 20'000; ///< Rows of a selection that may be gathered within a frame.

} // namespace

TimelineView::TimelineView(SelectionModel *selection, QWidget *parent)
    : QAbstractScrollArea(parent), m_selection(selection), m_line(new TimelineLineEditor(viewport())),
      m_analyst(new TimelineAnalyst(this)), m_panel(new TimelinePanel(viewport()))
{
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setAccessibleName(tr("Timeline"));
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    setAcceptDrops(true);
    setMinimumHeight(120);
    m_metrics = TimelineMetrics::forFont(fontMetrics().height());
    m_edgeTimer.setInterval(kEdgeMilliseconds);
    connect(&m_edgeTimer, &QTimer::timeout, this, &TimelineView::scrollAtEdges);
    connect(m_selection, &SelectionModel::selectionChanged, this, &TimelineView::onSelectionChanged);
    connect(&m_selectedWatcher, &QFutureWatcherBase::finished, this, &TimelineView::takeSelected);
    connect(&m_boxWatcher, &QFutureWatcherBase::finished, this, &TimelineView::takeBox);
    connect(m_line, &TimelineLineEditor::proposed, this, [this](const Proposal &proposal) {
        if (shown())
            m_gestures.type(canvas(), proposal);
        viewport()->update();
    });
    connect(m_line, &TimelineLineEditor::accepted, this, [this] {
        const auto &proposal = m_gestures.proposal();
        if (proposal && proposal->refusal) {
            Q_EMIT refused(QString::fromStdString(proposal->refusal->message)); // the line stays, to be put right
            return;
        }
        m_gestures.drop();
        closeLine();
    });
    connect(m_line, &TimelineLineEditor::abandoned, this, [this] {
        m_gestures.abandon();
        closeLine();
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
    m_explains = false;
    hidePanel();
    abandonHand();
    m_gestures.forgetKeys();
    if (shownBefore && m_scene)
        m_focus = refocused(*shownBefore, focusBefore);
    m_analyst->setScene(shown());
    if (m_criticalPath)
        m_analyst->needDeep();
    const double after = extent();
    relayout();
    if (m_fitted || before <= 0 || after < before * kAlike || after > before / kAlike)
        fitAll();
    else
        moveAxis(clamped(m_axis, after, canvasWidth()));
    if (!m_pendingState.empty() && m_scene)
        restoreViewState(std::exchange(m_pendingState, {}));
    onSelectionChanged();
    updateActions();
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
        if (focus.part == LanePart::Idle || focus.block < 0 || static_cast<std::size_t>(focus.block) >= lane.blocks.size())
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
        if (spans.microBatch[each] != old.microBatch[row] || spans.stream[each] != old.stream[row])
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
        m_analyst->needDeep();
    if (m_fitted)
        fitAll();
    if (!asBefore) {
        m_focus = {};
        relayout();
    }
    onSelectionChanged();
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
        connect(host, &GestureHost::previewChanged, this, [this] { viewport()->update(); });
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

void TimelineView::setColouring(TimelineColouring colouring)
{
    m_colouring = colouring;
    viewport()->update();
}

void TimelineView::setArrangement(LaneArrangement arrangement)
{
    m_arrangement = std::move(arrangement);
    relayout();
    Q_EMIT viewStateChanged();
}

double TimelineView::extent() const
{
    const double predicted = m_scene ? static_cast<double>(m_scene->timeline->step.count()) : 0;
    return m_measured ? std::max(predicted, static_cast<double>(m_measured->timeline->step.count())) : predicted;
}

double TimelineView::canvasWidth() const
{
    return std::max(viewport()->width() - m_metrics.header, 1);
}

int TimelineView::canvasHeight() const
{
    return std::max(viewport()->height() - m_metrics.ruler - phasesHeight() - m_metrics.legend, 1);
}

TimelinePicture TimelineView::picture() const
{
    TimelinePicture picture;
    picture.scene = shown().get();
    picture.outlines = m_measured ? m_scene.get() : nullptr;
    picture.rows = &m_rows;
    picture.metrics = m_metrics;
    picture.axis = m_axis;
    picture.size = viewport()->size();
    picture.scroll = verticalScrollBar()->value();
    picture.font = font();
    picture.colouring = m_colouring;
    picture.selected = &m_selected;
    picture.hovered = m_hover.hit.span;
    picture.focus = m_focus;
    picture.focused = hasFocus();
    picture.pointer = m_pointer.x() >= m_metrics.header && m_hand != Hand::Pan ? m_pointer.x() - m_metrics.header : -1;
    picture.stale = m_stale;
    picture.phases = phasesHeight();
    picture.rowOfDevice = &m_rowOfDevice;
    picture.filter = QString::fromStdString(m_arrangement.filter);
    return picture;
}

TimelineCanvas TimelineView::canvas() const
{
    return {shown().get(), &m_rows, m_axis, canvasWidth()};
}

void TimelineView::relayout()
{
    m_rows = shown() ? layoutRows(*shown(), m_arrangement, canvasHeight(), m_metrics) : std::vector<TimelineRow>{};
    m_rowOfDevice.assign(shown() ? shown()->lanes.size() : 0, -1);
    for (std::size_t row = 0; row < m_rows.size(); ++row) {
        if (m_rows[row].kind != TimelineRow::Kind::Device)
            continue;
        for (const DeviceId device : m_rows[row].devices)
            m_rowOfDevice[static_cast<std::size_t>(device.index)] = static_cast<std::int32_t>(row);
    }
    updateScrollBars();
    viewport()->update();
}

void TimelineView::updateScrollBars()
{
    m_scrolling = true;
    const int height = m_rows.empty() ? 0 : m_rows.back().y + m_rows.back().height;
    verticalScrollBar()->setRange(0, std::max(0, height - canvasHeight()));
    verticalScrollBar()->setPageStep(canvasHeight());
    verticalScrollBar()->setSingleStep(m_metrics.ruler);
    // In pixels of the present zoom, or coarser where there are too many of them.
    const double visible = canvasWidth() * m_axis.nanosecondsPerPixel;
    const double last = std::max(extent() - visible, std::max(m_axis.origin, 0.0));
    const double first = std::min(0.0, m_axis.origin);
    const double unit = std::max(m_axis.nanosecondsPerPixel, (last - first + visible) / kMostScroll);
    const bool whole = !shown() || (m_axis.origin <= 0 && visible >= extent());
    horizontalScrollBar()->setRange(
        whole ? 0 : static_cast<int>(std::floor(first / unit)), whole ? 0 : static_cast<int>(std::ceil(last / unit)));
    horizontalScrollBar()->setPageStep(std::max(static_cast<int>(visible / unit), 1));
    horizontalScrollBar()->setSingleStep(std::max(static_cast<int>(0.05 * visible / unit), 1));
    horizontalScrollBar()->setValue(static_cast<int>(std::lround(m_axis.origin / unit)));
    m_scrolling = false;
}

void TimelineView::scrollContentsBy(int dx, int)
{
    if (!m_scrolling && dx != 0) {
        const double visible = canvasWidth() * m_axis.nanosecondsPerPixel;
        const int page = std::max(horizontalScrollBar()->pageStep(), 1);
        TimeAxis axis = m_axis;
        axis.origin -= dx * visible / page;
        m_fitted = false;
        m_axis = clamped(axis, extent(), canvasWidth());
        Q_EMIT axisChanged(m_axis);
    }
    if (!m_scrolling)
        Q_EMIT viewStateChanged();
    viewport()->update(); // lanes and the fixed ruler are painted together
}

void TimelineView::moveAxis(const TimeAxis &axis)
{
    if (m_axis == axis) {
        updateScrollBars();
        return;
    }
    m_axis = axis;
    updateScrollBars();
    viewport()->update();
    Q_EMIT axisChanged(m_axis);
    Q_EMIT viewStateChanged();
}

void TimelineView::setAxis(const TimeAxis &axis)
{
    if (m_axis == axis)
        return;
    m_fitted = false;
    m_axis = axis;
    updateScrollBars();
    viewport()->update();
}

void TimelineView::zoomAt(double factor, double x)
{
    if (!m_scene)
        return;
    m_fitted = false;
    moveAxis(zoomed(m_axis, factor, x, extent(), canvasWidth()));
}

void TimelineView::zoomIn()
{
    zoomAt(kZoomStep, canvasWidth() / 2);
}

void TimelineView::zoomOut()
{
    zoomAt(1 / kZoomStep, canvasWidth() / 2);
}

void TimelineView::fitAll()
{
    m_fitted = true;
    moveAxis(fitted(extent(), canvasWidth()));
}

void TimelineView::fitTimes(double begin, double end)
{
    const double margin = std::max(0.15 * (end - begin), 100.0);
    TimeAxis axis;
    axis.nanosecondsPerPixel = (end - begin + 2 * margin) / canvasWidth();
    axis.origin = begin - margin;
    m_fitted = false;
    // Within the same limits as every other zoom, around the middle of what is fitted.
    moveAxis(zoomed(axis, 1, canvasWidth() / 2, extent(), canvasWidth()));
}

void TimelineView::focusSelection()
{
    if (!m_scene)
        return;
    if (m_selected.empty()) {
        fitAll();
        return;
    }
    const SpanColumns &spans = shown()->timeline->spans;
    double begin = extent();
    double end = 0;
    for (const std::size_t row : m_selected) {
        begin = std::min(begin, static_cast<double>(spans.start[row]));
        end = std::max(end, static_cast<double>(spans.start[row] + spans.duration[row]));
    }
    fitTimes(begin, end);
}

void TimelineView::setExpanded(std::int32_t symmetryClass, bool expanded)
{
    if (expanded)
        m_arrangement.expanded.insert(symmetryClass);
    else
        m_arrangement.expanded.erase(symmetryClass);
    relayout();
    Q_EMIT viewStateChanged();
}

void TimelineView::expandAll(bool expanded)
{
    m_arrangement.expanded.clear();
    if (expanded && m_scene) {
        for (const DeviceLane &lane : m_scene->lanes)
            m_arrangement.expanded.insert(lane.symmetryClass);
    }
    relayout();
    Q_EMIT viewStateChanged();
}

std::optional<QRect> TimelineView::onScreen(std::int32_t device, double begin, double end, int TimelineRow::*height,
    int (TimelineRow::*top)() const) const
{
    const TimelinePicture shownPicture = picture();
    for (const TimelineRow &row : m_rows) {
        if (row.kind != TimelineRow::Kind::Device || row.lane != device || row.*height == 0)
            continue;
        const double x0 = m_axis.xOf(begin);
        const double x1 = m_axis.xOf(end);
        const QRect area = shownPicture.canvas();
        const QRectF rect(area.left() + x0, shownPicture.top(row, (row.*top)()), std::max(x1 - x0, 1.0), row.*height);
        const QRect visible = rect.toAlignedRect() & area;
        return visible.isEmpty() ? std::nullopt : std::optional(visible);
    }
    return {};
}

std::optional<QRect> TimelineView::rectOf(std::size_t row) const
{
    if (!m_scene || row >= shown()->timeline->spans.size())
        return {};
    const SpanColumns &spans = shown()->timeline->spans;
    const bool compute = spans.stream[row] == StreamKind::Compute;
    const auto begin = static_cast<double>(spans.start[row]);
    return onScreen(spans.device[row], begin, begin + static_cast<double>(spans.duration[row]),
        compute ? &TimelineRow::operators : &TimelineRow::communication,
        compute ? &TimelineRow::operatorsTop : &TimelineRow::communicationTop);
}

std::optional<QRect> TimelineView::rectOfBlock(std::int32_t lane, std::size_t block) const
{
    if (!m_scene || lane < 0 || static_cast<std::size_t>(lane) >= shown()->lanes.size())
        return {};
    const auto &blocks = shown()->lanes[static_cast<std::size_t>(lane)].blocks;
    if (block >= blocks.size())
        return {};
    return onScreen(lane, static_cast<double>(blocks[block].begin), static_cast<double>(blocks[block].end),
        &TimelineRow::blocks, &TimelineRow::computeTop);
}

std::optional<QRect> TimelineView::rectOfBracketEnd(std::int32_t lane) const
{
    if (!m_scene || lane < 0 || static_cast<std::size_t>(lane) >= shown()->lanes.size())
        return {};
    const double end = static_cast<double>(shown()->lanes[static_cast<std::size_t>(lane)].warmUp.end);
    const double grip = 4 * m_axis.nanosecondsPerPixel;
    return onScreen(lane, end - grip, end, &TimelineRow::bracket, &TimelineRow::bracketTop);
}

void TimelineView::onSelectionChanged()
{
    m_selectedStop.request_stop();
    m_selectedStop = {};
    updateActions();
    viewport()->update();
    if (!m_scene) {
        m_selected.clear();
        return;
    }
    const auto &operators = m_selection->selected();
    if (rowCountOf(*shown(), operators) <= kMostRowsAtOnce) {
        m_selectedWatcher.setFuture({});
        m_selected = rowsOf(*shown(), operators);
        return;
    }
    m_selected.clear();
    m_selectedWatcher.setFuture(
        QtConcurrent::run([scene = shown(), operators, stop = m_selectedStop.get_token()] {
            return stop.stop_requested() ? std::vector<std::size_t>{} : rowsOf(*scene, operators);
        }));
}

void TimelineView::takeSelected()
{
    const QFuture<std::vector<std::size_t>> future = m_selectedWatcher.future();
    if (future.isCanceled() || future.resultCount() == 0 || m_selectedStop.stop_requested())
        return;
    m_selected = m_selectedWatcher.result();
    viewport()->update();
}

void TimelineView::paintEvent(QPaintEvent *)
{
    QPainter painter(viewport());
    const Palette &palette = paletteFor(*this);
    if (!m_scene) {
        painter.fillRect(viewport()->rect(), palette.canvas);
        painter.setPen(palette.textMuted);
        painter.drawText(viewport()->rect().adjusted(40, 20, -40, -20), Qt::AlignCenter | Qt::TextWordWrap,
            m_emptyText.isEmpty() ? tr("The timeline of a step appears here once there is a plan.") : m_emptyText);
        return;
    }
    TimelinePicture shownPicture = picture();
    const bool dragging = m_gestures.dragging();
    const PreviewSnapshot preview = dragging && m_gestures.host() ? m_gestures.host()->currentPreview() : nullptr;
    const auto &proposal = m_gestures.proposal();
    // A preview of another step of the gesture says nothing of this one.
    const bool current = preview && proposal && preview->proposal.edit == proposal->edit && !proposal->refusal;
    const TimelineScene *would = current && preview->update ? preview->update->scene.get() : nullptr;
    shownPicture.behindGhost = would != nullptr;
    paintLanes(painter, palette, shownPicture);
    if (m_criticalPath && m_analyst->deep() && !would)
        paintCriticalPath(painter, palette, shownPicture, *m_analyst->deep());
    const std::int64_t explained = m_hover.hit.span >= 0 ? m_hover.hit.span : hasFocus() ? m_focus.span : -1;
    if (m_analyst->deep() && explained >= 0 && !dragging && m_hand == Hand::None)
        paintArrows(painter, palette, shownPicture, *m_analyst->deep(), static_cast<std::size_t>(explained));
    const std::string refusal = proposal && proposal->refusal ? proposal->refusal->message : std::string{};
    if (dragging)
        paintGhost(painter, palette, shownPicture, m_gestures.ghost(), would, refusal);
    paintFrame(painter, palette, shownPicture);
    if (shownPicture.phases > 0) {
        const auto &analysis = m_analyst->analysis();
        paintPhases(painter, palette, shownPicture, analysis && analysis->steady ? &*analysis->steady : nullptr);
    }
    if (dragging)
        paintGhostEnd(painter, palette, shownPicture, m_gestures.ghost(), would);
    if (m_hand == Hand::Box || m_hand == Hand::ZoomBox)
        paintBox(painter, palette, shownPicture, handBox(), m_hand == Hand::ZoomBox);
    if (m_measuredTimes)
        paintMeasure(painter, palette, shownPicture, m_measuredTimes->first, m_measuredTimes->second);
    if (!m_badge.isEmpty())
        paintBadge(painter, palette, shownPicture, m_badge);
    if (dragging) {
        const bool typed = m_gestures.ghost().drag == TimelineDrag::Line;
        paintTag(painter, palette, tagFor(m_gestures.ghost(), proposal, preview.get()), font(),
            typed ? m_line->geometry().bottomLeft() - QPoint(18, 12) : m_dragged, viewport()->rect());
    } else if (!m_hover.facts.empty() && m_hand == Hand::None) {
        paintFacts(painter, palette, m_hover.facts, font(), m_pointer, viewport()->rect());
    }
}

void TimelineView::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    relayout();
    if (m_fitted)
        fitAll();
    m_line->place();
    m_panel->place();
}

void TimelineView::changeEvent(QEvent *event)
{
    QAbstractScrollArea::changeEvent(event);
    if (event->type() != QEvent::FontChange && event->type() != QEvent::ApplicationFontChange)
        return;
    m_metrics = TimelineMetrics::forFont(fontMetrics().height());
    relayout();
    if (m_fitted)
        fitAll();
}

void TimelineView::render(QPainter &painter, const QSize &size, const Palette &palette) const
{
    if (!m_scene) {
        painter.fillRect(QRect(QPoint(), size), palette.canvas);
        return;
    }
    TimelinePicture whole = picture();
    const int height = size.height() - m_metrics.ruler - phasesHeight() - m_metrics.legend;
    const auto rows = layoutRows(*shown(), m_arrangement, height, m_metrics);
    whole.rows = &rows;
    whole.size = size;
    whole.scroll = 0;
    whole.hovered = -1;
    whole.focused = false;
    whole.pointer = -1;
    const double width = std::max(size.width() - m_metrics.header, 1);
    whole.axis.nanosecondsPerPixel = m_axis.nanosecondsPerPixel * canvasWidth() / width; // the same stretch of time
    std::vector<std::int32_t> rowOfDevice(shown()->lanes.size(), -1);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (rows[row].kind == TimelineRow::Kind::Device) {
            for (const DeviceId device : rows[row].devices)
                rowOfDevice[static_cast<std::size_t>(device.index)] = static_cast<std::int32_t>(row);
        }
    }
    whole.rowOfDevice = &rowOfDevice;
    paintLanes(painter, palette, whole);
    if (m_criticalPath && m_analyst->deep())
        paintCriticalPath(painter, palette, whole, *m_analyst->deep());
    paintFrame(painter, palette, whole);
    if (whole.phases > 0) {
        const auto &analysis = m_analyst->analysis();
        paintPhases(painter, palette, whole, analysis && analysis->steady ? &*analysis->steady : nullptr);
    }
    if (!m_badge.isEmpty())
        paintBadge(painter, palette, whole, m_badge);
}

} // namespace planloom
