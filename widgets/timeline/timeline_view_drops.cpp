// Mesh axes dragged here from another panel.

#include "widgets/timeline/timeline_view.h"

#include <QtCore/QMimeData>
#include <QtGui/QDragEnterEvent>

namespace planloom {

namespace {

constexpr const char *kAxisMime = "application/x-planloom-axis";

/// "tp:4" and "tp" name the axis tp.
std::string axisOf(const QMimeData *data)
{
    const QString text = QString::fromUtf8(data->data(QLatin1String(kAxisMime)));
    return text.section(QLatin1Char(':'), 0, 0).trimmed().toStdString();
}

} // namespace

void TimelineView::dragEnterEvent(QDragEnterEvent *event)
{
    if (m_gestures.host() && m_scene && event->mimeData()->hasFormat(QLatin1String(kAxisMime)))
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
    const bool may = content && event->mimeData()->hasFormat(QLatin1String(kAxisMime))
        && m_gestures.hoverAxis(canvas(), content->second, axisOf(event->mimeData()), m_selection->selected());
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
    if (content && event->mimeData()->hasFormat(QLatin1String(kAxisMime))
        && m_gestures.hoverAxis(canvas(), content->second, axisOf(event->mimeData()), m_selection->selected())
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
