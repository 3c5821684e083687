#include "engine/design/explain/better_plans.h"

#include "engine/base/background_disposal.h"
#include "engine/design/explain/free_decisions.h"
#include "engine/table/table_text.h"

#include <utility>

namespace planloom {

BetterPlans::BetterPlans(PlanRequest request, Report report)
    : m_request(std::move(request))
    , m_asked(m_request.table)
    , m_report(std::move(report))
{
    m_request.search = false;
    m_request.explains = false;
    m_request.gallery.clear();
    m_request.meanwhile.reset();
    m_request.memory.reset();
    m_request.onBetter = {};
    m_request.solved.reset();
    m_request.begin.reset();
    m_request.upTo = PlanGrade::Simulated;
    static_cast<void>(m_asked.apply(removeLines(m_asked, linesOfSearch(m_asked)))); // they are there
    m_thread = std::jthread([this](const std::stop_token &stop) { work(stop); });
}

BetterPlans::~BetterPlans()
{
    end();
}

void BetterPlans::offer(const SearchResult &better)
{
    auto newest = std::make_shared<const SearchResult>(better);
    const std::lock_guard lock(m_mutex);
    m_newest = std::move(newest);
    m_changed.notify_all();
}

void BetterPlans::end()
{
    m_thread.request_stop();
    if (m_thread.joinable())
        m_thread.join();
}

void BetterPlans::work(const std::stop_token &stop)
{
    auto next = std::chrono::steady_clock::now() + m_request.betterEvery;
    std::unique_lock lock(m_mutex);
    while (m_changed.wait(lock, stop, [this] { return m_newest != nullptr; })) {
        // What comes while it is too early takes the place of this one.
        m_changed.wait_until(lock, stop, next, [] { return false; });
        if (stop.stop_requested())
            return;
        auto better = std::exchange(m_newest, nullptr);
        lock.unlock();
        answer(std::move(better), stop);
        next = std::chrono::steady_clock::now() + m_request.betterEvery;
        lock.lock();
    }
}

void BetterPlans::answer(std::shared_ptr<const SearchResult> better, const std::stop_token &stop)
{
    PlanRequest whole = m_request;
    whole.table = m_asked;
    if (!whole.table.apply(insertText(whole.table, whole.table.lineCount(), print(better->rows))))
        return;
    if (better->plan && better->materialized) // half of lowering has been done
        if (auto target = resolve(whole.target)) {
            auto last = std::make_shared<PlanAnswer>();
            last->cluster = std::move(target->cluster);
            last->plan = better->plan;
            last->materialized = better->materialized;
            whole.last = std::move(last);
        }
    makePlan(whole, stop, [&](const PlanAnswer &made) {
        if (!made.final || !made.timeline)
            return;
        PlanAnswer answer = made;
        answer.final = false; // the search goes on
        answer.search = better;
        answer.searchedRow = static_cast<std::int32_t>(m_asked.table().rows.size());
        m_report(answer);
    });
}

} // namespace planloom
