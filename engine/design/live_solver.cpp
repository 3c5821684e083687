#include "engine/design/live_solver.h"

#include "engine/base/work_pool.h"
#include "engine/design/explain/better_plans.h"

#include <array>
#include <utility>

namespace planloom {

const char *nameOf(LiveGrade grade)
{
    constexpr std::array kNames{"checked", "meanwhile", "better", "planned", "final"};
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

namespace {

/// Rows as they are, which is known long before a search is over: what they bind to, and their plan, if that
/// is asked for and holds.
class BesideSearch
{
public:
    BesideSearch(
        const PlanRequest &searched, const std::stop_token &stop, const std::function<void(LiveReport)> &tell)
    {
        PlanRequest rows = searched;
        rows.search = false;
        rows.solved = nullptr;
        rows.explains = false;
        rows.upTo = searched.meanwhile ? PlanGrade::Simulated : PlanGrade::Checked;
        if (searched.meanwhile) {
            rows.gallery.clear();
            rows.table = *searched.meanwhile;
        }
        const auto work = [rows = std::move(rows), &stop, &tell] {
            bool checked = false;
            makePlan(rows, stop, [&](const PlanAnswer &answer) {
                const bool isFirst = !std::exchange(checked, true);
                const bool isPlan = rows.meanwhile && answer.isTimed() && answer.errorCount() == 0;
                if (!isFirst && !isPlan)
                    return;
                PlanAnswer told = answer;
                told.final = false; // the search goes on
                tell({.grade = isFirst ? LiveGrade::Checked : LiveGrade::Meanwhile, .answer = &told});
            });
        };
        if (searched.meanwhile)
            m_thread = std::jthread(work);
        else
            work();
    }

    /// Waits until all of it is told.
    void end()
    {
        if (m_thread.joinable())
            m_thread.join();
    }

private:
    std::jthread m_thread{};
};

} // namespace

void LiveSolver::carryOut(Job job, const std::stop_token &stop)
{
    PlanRequest &request = job.request;
    const std::uint64_t revision = request.revision;
    const std::function<void(LiveReport)> tell = [&](LiveReport report) {
        report.revision = revision;
        if (!stop.stop_requested())
            job.report(report);
    };
    std::optional<BetterPlans> whole;
    std::optional<BesideSearch> beside;
    if (request.search) {
        beside.emplace(request, stop, tell);
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
        if (beside)
            beside->end();
        if (whole)
            whole->end();
        tell({.grade = answer.final ? LiveGrade::Final : LiveGrade::Planned, .answer = &answer});
    });
}

} // namespace planloom
