#pragma once

#include <QtCore/QObject>

#include "widgets/design/plan_update.h"
#include "widgets/scenes/scene.h"

#include <map>
#include <set>
#include <vector>

namespace planloom {

class Workspace;

/// Plans by step; null where a step has none that can be shown.
using PlansBySteps = std::map<StepId, PlanUpdateSnapshot>;

/// Gathers the plans of the steps that scenes are of: those that are known at once, the others as they are
/// planned. The window stays where it is.
class TalkPlans : public QObject
{
    Q_OBJECT
public:
    /// @param workspace  must outlive this
    TalkPlans(Workspace *workspace, const std::vector<Scene> &scenes, QObject *parent = nullptr);

    /// `gathered` follows, never before this returns.
    void start();

Q_SIGNALS:
    void progressed(int done, int all);
    void gathered(const planloom::PlansBySteps &plans);

private:
    void report();

    Workspace *m_workspace;
    PlansBySteps m_plans;
    std::set<StepId> m_awaited;
};

} // namespace planloom
