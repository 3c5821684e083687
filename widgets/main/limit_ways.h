#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QThreadPool>

#include "widgets/design/plan_update.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

/// Ways out of one plan's excess (`waysWithinLimits`).
struct LimitWaysFound {
    PlanUpdateSnapshot of{};
    std::vector<RowWayOut> ways{};
};
using LimitWaysSnapshot = std::shared_ptr<const LimitWaysFound>;

/// Tries rows that would bring a plan within its limits and its devices' memory, off the GUI thread; the
/// newest plan wins. Lives on the GUI thread.
class LimitWays : public QObject
{
    Q_OBJECT
public:
    explicit LimitWays(QObject *parent = nullptr);
    ~LimitWays() override;

    /// Nothing happens for the plan that was asked about last.
    /// @param update  that `exceedsLimits`; @param request  of it
    void ask(const PlanUpdateSnapshot &update, PlanRequest request);
    /// Drops what is under way.
    void stop();
    bool isWorking() const { return m_working; }

Q_SIGNALS:
    void found(planloom::LimitWaysSnapshot ways);

private:
    void take();

    QThreadPool m_pool;
    std::stop_source m_stop;
    QFutureWatcher<LimitWaysSnapshot> m_watcher{this};
    PlanUpdateSnapshot m_asked; ///< Null where nothing is to be told.
    bool m_working = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::LimitWaysSnapshot)
