#include "engine/design/live_solver.h"

#include "engine/base/work_pool.h"
#include "engine/design/better_plans.h"

#include <array>
#include <utility>

namespace planloom {

const char *nameOf(LiveGrade grade)
{
    constexpr std::array kNames{"checked", "better", "planned", "final"};
    return kNames[static_cast<std::size_t>(grade)];
}

LiveSolver::LiveSolver()
    : m_thread([this](const std::stop_token &end) { work(end); })
{
}

LiveSolver::~LiveSolver()
{
    m_thread.request_stop();
    stop();
}

std::uint64_t LiveSolver::solve(PlanRequest request, Report report)
{
    const std::lock_guard lock(m_mutex);
    m_stop.request_stop();
    m_stop = {};
    m_enough = {};
    request.enough = m_enough.get_token();
    request.revision = ++m_revision;
    if (!request.memory)
        request.memory = m_memory;
    request.searchThreads = allowedCores();
    m_waiting = Job{std::move(request), std::move(report)};
    m_changed.notify_all();
    return m_revision;
}

void LiveSolver::stop()
{
    const std::lock_guard lock(m_mutex);
    m_waiting.reset();
    m_stop.request_stop();
}

void LiveSolver::settle()
{
    const std::lock_guard lock(m_mutex);
    m_enough.request_stop();
}

bool LiveSolver::isSolving() const
{
    const std::lock_guard lock(m_mutex);
    return m_waiting || m_solving;
}

void LiveSolver::work(const std::stop_token &end)
{
    std::unique_lock lock(m_mutex);
    while (m_changed.wait(lock, end, [this] { return m_waiting.has_value(); })) {
        Job job = *std::exchange(m_waiting, std::nullopt);
        const std::stop_token stop = m_stop.get_token();
        m_solving = true;
        lock.unlock();
        carryOut(std::move(job), stop);
        lock.lock();
        m_solving = false;
    }
}

void LiveSolver::carryOut(Job job, const std::stop_token &stop)
{
    PlanRequest &request = job.request;
    const std::uint64_t revision = request.revision;
    const auto tell = [&](LiveReport report) {
        report.revision = revision;
        if (!stop.stop_requested())
            job.report(report);
    };
    std::optional<BetterPlans> whole;
    if (request.search) { // what the rows bind to is known long before the search is over
        PlanRequest check = request;
        check.search = false;
        check.solved = nullptr;
        check.explains = false;
        check.upTo = PlanGrade::Checked;
        bool checked = false;
        makePlan(check, stop, [&](const PlanAnswer &answer) {
            if (std::exchange(checked, true))
                return;
            PlanAnswer first = answer;
            first.final = false;
            tell({.grade = LiveGrade::Checked, .answer = &first});
        });
        if (request.betterEvery.count() > 0)
            whole.emplace(request,
                [&tell](const PlanAnswer &answer) { tell({.grade = LiveGrade::Better, .answer = &answer}); });
        request.onBetter = [&](const SearchResult &better) {
            tell({.grade = LiveGrade::Better, .better = &better});
            if (whole)
                whole->offer(better);
        };
    }
    makePlan(request, stop, [&](const PlanAnswer &answer) {
        if (whole)
            whole->end();
        tell({.grade = answer.final ? LiveGrade::Final : LiveGrade::Planned, .answer = &answer});
    });
}

} // namespace planloom
