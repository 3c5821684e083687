#include "widgets/timeline/timeline_view.h"

#include <QtGui/QResizeEvent>
#include <QtWidgets/QScrollBar>

#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_panel.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kZoomStep = 1.4;
constexpr double kMostScroll = 1e6; ///< Steps of the horizontal scroll bar: it counts in whole numbers.

} // namespace

double TimelineView::extent() const
{
    const double predicted = m_scene ? static_cast<double>(m_scene->timeline->step.count()) : 0;
    return m_measured ? std::max(predicted, static_cast<double>(m_measured->timeline->step.count()))
                      : predicted;
}

double TimelineView::canvasWidth() const
{
    return std::max(viewport()->width() - m_metrics.header, 1);
}

int TimelineView::canvasHeight() const
{
    return std::max(viewport()->height() - m_metrics.ruler - phasesHeight() - m_metrics.legend, 1);
}

void TimelineView::relayout()
{
    ++m_rowsVersion;
    m_rows = shown() ? rowsOfPart(nullptr, canvasHeight()) : std::vector<TimelineRow>{};
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
    horizontalScrollBar()->setRange(whole ? 0 : static_cast<int>(std::floor(first / unit)),
        whole ? 0 : static_cast<int>(std::ceil(last / unit)));
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

void TimelineView::showTime(Nanoseconds time)
{
    const auto at = static_cast<double>(time.count());
    if (!m_scene || at < 0 || at > extent())
        return;
    m_shownTime = time;
    const double x = m_axis.xOf(at);
    if (x < 0 || x > canvasWidth()) {
        TimeAxis axis = m_axis;
        axis.origin = at - canvasWidth() / 2 * axis.nanosecondsPerPixel;
        m_fitted = false;
        moveAxis(clamped(axis, extent(), canvasWidth()));
    }
    viewport()->update();
}

void TimelineView::clearTime()
{
    const bool had = m_shownTime.has_value();
    m_shownTime.reset();
    m_plays = false;
    viewport()->update();
    if (had)
        Q_EMIT timeCleared();
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

void TimelineView::resizeEvent(QResizeEvent *event)
{
    QAbstractScrollArea::resizeEvent(event);
    relayout();
    if (m_fitted)
        fitAll();
    m_line->place();
    placePanel();
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

} // namespace planloom
