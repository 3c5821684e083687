#pragma once

#include "engine/design/make_plan.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace planloom {

/// What is known of the rows at hand, each replacing the one before.
enum class LiveGrade : std::uint8_t {
    Checked, ///< Rows are read, and bound to operators: of requests that search, where that takes its time.
    /// Of requests that search: the plan of rows as they are, beside the search: `PlanRequest::meanwhile`.
    Meanwhile,
    Better, ///< The search has a plan, or a better one: `better`; or that plan whole: `answer`.
    Planned, ///< A plan with all that was asked for, or why there is none: `answer`, at any of its grades.
    Final, ///< The last of its revision; optimal where the gap is 0.
};
const char *nameOf(LiveGrade grade); ///< "checked", "meanwhile", "better", "planned", "final"

struct LiveReport {
    std::uint64_t revision = 0;
    LiveGrade grade = LiveGrade::Checked;
    const PlanAnswer *answer = nullptr; ///< Of all but Better; of that as `betterEvery` says.
    const SearchResult *better = nullptr; ///< Of Better without an answer.
};

/// Solves tables as they change, on a thread of its own: the newest wins, what runs for others is stopped.
/// What was worked out is remembered from one to the next. Searches use a second core, if there is one.
class LiveSolver
{
public:
    /// Called on the solver's thread, one at a time; what it is given lives as long as the call. While it
    /// searches, what is told of Checked and Meanwhile, and of better plans with their answer, comes from two
    /// other threads, beside what the search tells; all of it before the grades that follow.
    using Report = std::function<void(const LiveReport &)>;

    LiveSolver();
    ~LiveSolver(); ///< Stops what runs, and waits for it.
    LiveSolver(const LiveSolver &) = delete;
    LiveSolver &operator=(const LiveSolver &) = delete;

    /// Replaces the request before it, whose reports end. Does not wait. @return its revision, from 1
    std::uint64_t solve(PlanRequest request, Report report);
    /// What is being searched ends with the best plan that was found, and is answered with it; without one,
    /// as if it had not been searched. Does not wait.
    void settle();
    /// Ends what runs, and does not wait for it.
    void stop();
    bool isSolving() const;

private:
    void work(const std::stop_token &end);
    struct Job {
        PlanRequest request{};
        Report report{};
    };
    static void carryOut(Job job, const std::stop_token &stop);

    mutable std::mutex m_mutex{}; ///< Of those below.
    std::condition_variable_any m_changed{};
    std::optional<Job> m_waiting{};
    std::stop_source m_stop{};
    std::stop_source m_enough{}; ///< Of searches.
    std::uint64_t m_revision = 0;
    bool m_solving = false;
    std::shared_ptr<SearchMemory> m_memory = std::make_shared<SearchMemory>();
    std::jthread m_thread{}; ///< The last member: ends first.
};

} // namespace planloom
