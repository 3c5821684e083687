// The repeating unit of a schedule, pinned: what is moved in it is moved in all of them.

#include "widgets/timeline/timeline_view.h"

#include <QtCore/QSignalBlocker>
#include <QtGui/QAction>

#include "widgets/timeline/timeline_analysis.h"

namespace planloom {

/// Micro-batches of the unit that repeats in the scene; 0 where none does, or it is not known yet.
std::int32_t TimelineView::unitOfScene() const
{
    const TimelineAnalysisSnapshot &analysis = m_analyst->analysis();
    if (!m_scene || !analysis || !analysis->steady)
        return 0;
    const SteadyState &steady = *analysis->steady;
    return steady.repeats > 1 && steady.period > 0 ? steady.microBatchesPerPeriod : 0;
}

/// It stays what it is while blocks are moved, though the order they leave may repeat less.
void TimelineView::pinUnit(bool pinned)
{
    m_gestures.setPinnedUnit(pinned ? unitOfScene() : 0);
    if (pinned && m_gestures.pinnedUnit() == 0) {
        QAction *action = m_actions.at("timeline.pinUnit");
        const QSignalBlocker blocker(action);
        action->setChecked(false);
        Q_EMIT refused(tr("No unit of this schedule repeats"));
    }
    updateActions();
    viewport()->update();
}

} // namespace planloom
