// Mesh axes dragged here from another panel.

#include "widgets/timeline/timeline_view.h"

#include "widgets/common/drag_types.h"

#include <QtGui/QDragEnterEvent>

namespace planloom {

void TimelineView::dragEnterEvent(QDragEnterEvent *event)
{
    if (m_gestures.host() && m_scene && event->mimeData()->hasFormat(QLatin1String(kAxisMimeType)))
        event->acceptProposedAction();
    else
        event->ignore();
}

void TimelineView::dragMoveEvent(QDragMoveEvent *event)
{
    // Positions are those of the viewport: the scroll area hands its events on.
    const QPoint position = event->position().toPoint();
    const auto content = contentAt(position);
    m_dragged = position;
    const bool may = content && event->mimeData()->hasFormat(QLatin1String(kAxisMimeType))
        && m_gestures.hoverAxis(
            canvas(), content->second, axisIn(*event->mimeData()), m_selection->selected());
    if (may)
        event->acceptProposedAction();
    else
        event->ignore();
    viewport()->update();
}

void TimelineView::dragLeaveEvent(QDragLeaveEvent *)
{
    if (m_gestures.ghost().drag == TimelineDrag::Axis)
        m_gestures.abandon();
    viewport()->update();
}

void TimelineView::dropEvent(QDropEvent *event)
{
    const auto content = contentAt(event->position().toPoint());
    if (content && event->mimeData()->hasFormat(QLatin1String(kAxisMimeType))
        && m_gestures.hoverAxis(
            canvas(), content->second, axisIn(*event->mimeData()), m_selection->selected())
        && m_gestures.drop())
        event->acceptProposedAction();
    else
        event->ignore();
    if (m_gestures.ghost().drag == TimelineDrag::Axis)
        m_gestures.abandon();
    if (m_waiting)
        takeScene(std::move(*m_waiting));
    viewport()->update();
}

} // namespace planloom
