#pragma once

#include <QtCore/QObject>

#include "sessions/history.h"
#include "widgets/problems/limit_ways.h"
#include "widgets/problems/problems_panel.h"

#include <optional>

namespace planloom {

class Workspace;

/// The nearest step before the present one whose plan is known to fit its devices: back to it is a way out of
/// whatever is wrong now. Nothing where there is none.
/// @param memory  bytes of a device
std::optional<OtherWay> wayBack(const History &history, double memory);

/// Finds ways out for the panel of problems while it is seen: back to the last plan that worked, a search,
/// and rows. Only what was tried is offered. Lives on the GUI thread.
class WaysOut : public QObject
{
    Q_OBJECT
public:
    /// Both must outlive it.
    WaysOut(Workspace *workspace, ProblemsPanel *panel, QObject *parent = nullptr);

    /// For the plan that the workspace has now.
    void refresh();
    bool isWorking() const { return m_limits.isWorking(); }

Q_SIGNALS:
    void searchAsked();

private:
    void take(const LimitWaysSnapshot &found);
    void act(const OtherWay &way);

    Workspace *m_workspace;
    ProblemsPanel *m_panel;
    LimitWays m_limits;
    LimitWaysSnapshot m_found; ///< The last that was told; null before.
};

} // namespace planloom
