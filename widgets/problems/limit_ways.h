#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QThreadPool>

#include "widgets/design/plan_update.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// Ways out of one plan's excess (`waysWithinLimits`), and what a search gives instead.
struct LimitWaysFound {
    PlanUpdateSnapshot of{};
    std::vector<RowWayOut> ways{};
    PlanAnswerSnapshot searched{}; ///< Null until it is known, and where the search has no plan that holds.
};
using LimitWaysSnapshot = std::shared_ptr<const LimitWaysFound>;

/// Tries a search and rows that would bring a plan within its limits and its devices' memory, off the GUI
/// thread; the newest plan wins. Lives on the GUI thread.
class LimitWays : public QObject
{
    Q_OBJECT
public:
    explicit LimitWays(QObject *parent = nullptr);
    ~LimitWays() override;

    /// Nothing happens for the plan that was asked about last.
    /// @param update  what is wrong; rows are tried where it `exceedsLimits`; @param request  of it
    /// @param search  what a search would be asked; nothing where there can be none
    void ask(const PlanUpdateSnapshot &update, PlanRequest request, std::optional<PlanRequest> search = {});
    /// Drops what is under way.
    void stop();
    bool isWorking() const { return m_working; }

Q_SIGNALS:
    /// Once the search has ended, and again with the rows.
    void found(planloom::LimitWaysSnapshot ways);

private:
    void take();

    QThreadPool m_pool;
    std::stop_source m_stop;
    std::stop_source m_enough; ///< For the search, which ends with what it has.
    QFutureWatcher<LimitWaysSnapshot> m_watcher{this};
    PlanUpdateSnapshot m_asked; ///< Null where nothing is to be told.
    bool m_working = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::LimitWaysSnapshot)
