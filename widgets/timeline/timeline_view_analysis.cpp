#include "widgets/timeline/timeline_view.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>

namespace planloom {

void TimelineView::selectBox(const QRect &box, bool enclosed, Qt::KeyboardModifiers modifiers)
{
    if (!m_scene)
        return;
    const TimelinePicture shownPicture = picture();
    TimelineBox area;
    area.begin = m_axis.timeAt(box.left() - m_metrics.header);
    area.end = m_axis.timeAt(box.right() - m_metrics.header);
    area.enclosed = enclosed;
    for (const TimelineRow &row : m_rows) {
        if (row.kind != TimelineRow::Kind::Device)
            continue;
        const int top = shownPicture.top(row, row.operatorsTop());
        const int bottom = top + row.operators - 1;
        if (enclosed ? top >= box.top() && bottom <= box.bottom() : top <= box.bottom() && bottom >= box.top())
            area.devices.insert(area.devices.end(), row.devices.begin(), row.devices.end());
    }
    std::sort(area.devices.begin(), area.devices.end());
    m_boxAdds = modifiers & (Qt::ControlModifier | Qt::ShiftModifier);
    m_boxStop.request_stop();
    m_boxStop = {};
    m_boxWatcher.setFuture(QtConcurrent::run([scene = shown(), area, stop = m_boxStop.get_token()] {
        return operatorsIn(*scene, area, stop);
    }));
}

void TimelineView::takeBox()
{
    if (m_boxWatcher.future().resultCount() == 0 || m_boxStop.stop_requested())
        return;
    const std::vector<OperatorId> operators = m_boxWatcher.result();
    if (m_boxAdds)
        m_selection->add(operators);
    else
        m_selection->select(operators);
}

void TimelineView::hideStatistics() { }

bool TimelineView::statisticsShown() const
{
    return false;
}

void TimelineView::explainIdle() { }

void TimelineView::announceFocus() { }

} // namespace planloom
