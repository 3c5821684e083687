#include "widgets/present/talk_plans.h"

#include <QtCore/QTimer>

#include "widgets/design/workspace.h"

namespace planloom {

TalkPlans::TalkPlans(Workspace *workspace, const std::vector<Scene> &scenes, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
{
    for (const Scene &scene : scenes)
        m_plans[scene.step];
    connect(m_workspace, &Workspace::planOfStepReady, this,
        [this](StepId step, const PlanUpdateSnapshot &update) {
            if (m_awaited.erase(step) == 0)
                return;
            m_plans[step] = update;
            report();
        });
}

void TalkPlans::start()
{
    for (auto &[step, plan] : m_plans) {
        if (!m_workspace->history().holds(step))
            continue;
        m_awaited.insert(step); // before it is asked for: the answer may be on its way already
        plan = m_workspace->planOfStep(step);
        if (plan)
            m_awaited.erase(step);
    }
    QTimer::singleShot(0, this, &TalkPlans::report);
}

void TalkPlans::report()
{
    const auto all = static_cast<int>(m_plans.size());
    Q_EMIT progressed(all - static_cast<int>(m_awaited.size()), all);
    if (m_awaited.empty())
        Q_EMIT gathered(m_plans);
}

} // namespace planloom

#include "moc_talk_plans.cpp"
