#include "widgets/timeline/timeline_view.h"

#include <QtGui/QPainter>
#include <QtGui/QResizeEvent>
#include <QtWidgets/QScrollBar>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;
/// A new step within these shares of the old one's length keeps the zoom.
constexpr double kAlike = 0.5;

} // namespace

TimelineView::TimelineView(SelectionModel *selection, QWidget *parent)
    : QAbstractScrollArea(parent), m_selection(selection)
{
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setAccessibleName(tr("Timeline"));
    viewport()->setMouseTracking(true);
    viewport()->setAttribute(Qt::WA_OpaquePaintEvent);
    setMinimumHeight(120);
    connect(m_selection, &SelectionModel::selectionChanged, this, &TimelineView::onSelectionChanged);
}

void TimelineView::setScene(TimelineSceneSnapshot scene)
{
    const double before = m_scene ? extent() : 0;
    m_scene = std::move(scene);
    m_hover = {};
    m_current = -1;
    const double after = extent();
    if (m_fitted || before <= 0 || after < before * kAlike || after > before / kAlike)
        fitAll();
    else
        setAxis(clamped(m_axis, after, canvasWidth()));
    relayout();
    onSelectionChanged();
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

double TimelineView::extent() const
{
    return m_scene ? static_cast<double>(m_scene->timeline->step.count()) : 0;
}

double TimelineView::canvasWidth() const
{
    return std::max(viewport()->width() - TimelinePicture::kHeader, 1);
}

int TimelineView::canvasHeight() const
{
    return std::max(viewport()->height() - TimelineMetrics::kRuler - TimelinePicture::kLegend, 1);
}

TimelinePicture TimelineView::picture() const
{
    TimelinePicture picture;
    picture.scene = m_scene.get();
    picture.rows = &m_rows;
    picture.axis = m_axis;
    picture.size = viewport()->size();
    picture.scroll = verticalScrollBar()->value();
    picture.font = font();
    picture.colouring = m_colouring;
    picture.selected = &m_selected;
    picture.hovered = m_hover.span;
    picture.pointer = m_pointer.x() >= TimelinePicture::kHeader && !m_panning
        ? m_pointer.x() - TimelinePicture::kHeader
        : -1;
    picture.stale = m_stale;
    return picture;
}

void TimelineView::relayout()
{
    m_rows = m_scene ? layoutRows(*m_scene, m_expanded, canvasHeight()) : std::vector<TimelineRow>{};
    const int height = m_rows.empty() ? 0 : m_rows.back().y + m_rows.back().height;
    verticalScrollBar()->setRange(0, std::max(0, height - canvasHeight()));
    verticalScrollBar()->setPageStep(canvasHeight());
    verticalScrollBar()->setSingleStep(24);
    viewport()->update();
}

void TimelineView::setAxis(const TimeAxis &axis)
{
    m_axis = axis;
    viewport()->update();
}

void TimelineView::zoomAt(double factor, double x)
{
    if (!m_scene)
        return;
    m_fitted = false;
    setAxis(zoomed(m_axis, factor, x, extent(), canvasWidth()));
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
    setAxis(fitted(extent(), canvasWidth()));
}

void TimelineView::fitTimes(double begin, double end)
{
    const double margin = std::max(0.15 * (end - begin), 100.0);
    TimeAxis axis;
    axis.nanosecondsPerPixel = (end - begin + 2 * margin) / canvasWidth();
    axis.origin = begin - margin;
    m_fitted = false;
    // Within the same limits as every other zoom, around the middle of what is fitted.
    setAxis(zoomed(axis, 1, canvasWidth() / 2, extent(), canvasWidth()));
}

void TimelineView::focusSelection()
{
    if (!m_scene)
        return;
    if (m_selected.empty()) {
        fitAll();
        return;
    }
    const SpanColumns &spans = m_scene->timeline->spans;
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
        m_expanded.insert(symmetryClass);
    else
        m_expanded.erase(symmetryClass);
    relayout();
}

void TimelineView::expandAll(bool expanded)
{
    m_expanded.clear();
    if (expanded && m_scene) {
        for (const DeviceLane &lane : m_scene->lanes)
            m_expanded.insert(lane.symmetryClass);
    }
    relayout();
}

std::optional<QRect> TimelineView::rectOf(std::size_t row) const
{
    if (!m_scene || row >= m_scene->timeline->spans.size())
        return {};
    const SpanColumns &spans = m_scene->timeline->spans;
    for (const TimelineRow &lane : m_rows) {
        if (lane.kind != TimelineRow::Kind::Device || lane.lane != spans.device[row])
            continue;
        const bool compute = spans.stream[row] == StreamKind::Compute;
        const double x0 = m_axis.xOf(static_cast<double>(spans.start[row]));
        const double x1 = m_axis.xOf(static_cast<double>(spans.start[row] + spans.duration[row]));
        const QRect canvas = picture().canvas();
        const QRectF rect(canvas.left() + x0,
            canvas.top() - verticalScrollBar()->value() + (compute ? lane.operatorsTop() : lane.communicationTop()),
            std::max(x1 - x0, 1.0), compute ? lane.operators : TimelineMetrics::kCommunication);
        const QRect visible = rect.toAlignedRect() & canvas;
        return visible.isEmpty() ? std::nullopt : std::optional(visible);
    }
    return {};
}

void TimelineView::onSelectionChanged()
{
    m_selected = m_scene ? rowsOf(*m_scene, m_selection->selected()) : std::vector<std::size_t>{};
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
    paintTimeline(painter, palette, picture());
    if (!m_hover.facts.empty() && !m_panning)
        paintFacts(painter, palette, m_hover.facts, font(), m_pointer, viewport()->rect());
}

void TimelineView::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    if (m_fitted)
        fitAll();
    relayout();
}

void TimelineView::scrollContentsBy(int, int)
{
    viewport()->update(); // lanes and the fixed ruler are painted together
}

} // namespace planloom
