// The playhead, and what another canvas points at.

#include "widgets/timeline/timeline_view.h"

#include <QtWidgets/QScrollBar>

#include <algorithm>
#include <cmath>

namespace planloom {

void TimelineView::setPlayhead(std::optional<Nanoseconds> time)
{
    m_plays = time.has_value();
    if (time)
        showTime(*time);
    else
        m_shownTime.reset();
    viewport()->update();
}

/// The moment on the ruler under `position`, within the step.
void TimelineView::askTime(QPoint position)
{
    const double time = m_axis.timeAt(position.x() - m_metrics.header);
    Q_EMIT timeAsked(Nanoseconds{std::llround(std::clamp(time, 0.0, extent()))});
}

void TimelineView::selectCommunication(std::vector<EdgeCommunication> edges)
{
    if (!m_scene)
        return;
    m_edges = std::move(edges);
    onSelectionChanged();
    if (!m_selected.empty())
        revealRow(m_selected.front());
}

/// Scrolls as little as it takes to see a span; zooms nowhere.
void TimelineView::revealRow(std::size_t row)
{
    const SpanColumns &spans = shown()->timeline->spans;
    const auto inSight = [&](std::size_t each) { return rectOf(each).has_value(); };
    if (std::any_of(m_selected.begin(),
            m_selected.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(m_selected.size(), 64)),
            inSight))
        return;
    focusOn({spans.device[row], LanePart::Communication, -1, static_cast<std::int64_t>(row)}, false);
    reveal(m_focus);
}

} // namespace planloom
