#pragma once

#include "engine/design/make_plan.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

namespace planloom {

/// Makes whole answers of the plans that a search finds on its way, with rows and timeline, on a thread of
/// its own: the search goes on meanwhile. The newest plan wins; at most one answer in
/// `PlanRequest::betterEvery`, and none before that.
class BetterPlans
{
public:
    /// Called on the thread of this, one at a time; what it is given lives as long as the call.
    using Report = std::function<void(const PlanAnswer &)>;

    /// @param request  that is being searched, with `betterEvery` above 0
    BetterPlans(PlanRequest request, Report report);
    ~BetterPlans(); ///< As `end`.
    BetterPlans(const BetterPlans &) = delete;
    BetterPlans &operator=(const BetterPlans &) = delete;

    /// The search has found this one. Does not wait.
    void offer(const SearchResult &better);
    /// Waits for a report that has begun; none follows.
    void end();

private:
    void work(const std::stop_token &stop);
    void answer(std::shared_ptr<const SearchResult> better, const std::stop_token &stop);

    PlanRequest m_request; ///< For the rows alone, each time with those of the plan.
    TableDocument m_asked{}; ///< Its table without rows of searches.
    Report m_report;
    std::mutex m_mutex{}; ///< Of those below.
    std::condition_variable_any m_changed{};
    std::shared_ptr<const SearchResult> m_newest{}; ///< That is to be answered; null if none is.
    std::jthread m_thread{}; ///< The last member: ends first.
};

} // namespace planloom
