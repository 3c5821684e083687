#include "widgets/problems/limit_ways.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QPromise>
#include <QtCore/QTimer>

#include "engine/design/explain/suggestions.h"

#include <utility>

namespace planloom {

namespace {

constexpr double kMostSeconds = 6; ///< Of simulations.
constexpr int kMostSearching = 8'000; ///< ms

PlanAnswerSnapshot searchedPlan(const PlanRequest &request, const std::stop_token &stop)
{
    auto answer = planOf(request, stop);
    return answer && (*answer)->isTimed() && (*answer)->search && !exceedsLimits(**answer)
        ? *std::move(answer)
        : nullptr;
}

} // namespace

LimitWays::LimitWays(QObject *parent)
    : QObject(parent)
{
    m_pool.setMaxThreadCount(1);
    connect(&m_watcher, &QFutureWatcherBase::resultReadyAt, this, &LimitWays::take);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] { m_working = false; });
}

LimitWays::~LimitWays()
{
    m_stop.request_stop();
}

void LimitWays::ask(const PlanUpdateSnapshot &update, PlanRequest request, std::optional<PlanRequest> search)
{
    if (m_asked == update)
        return;
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_enough = std::stop_source{};
    m_asked = update;
    m_working = true;
    if (search) {
        search->upTo = PlanGrade::Timed;
        search->explains = false;
        search->enough = m_enough.get_token();
        QTimer::singleShot(kMostSearching, this, [enough = m_enough]() mutable { enough.request_stop(); });
    }
    m_watcher.setFuture(QtConcurrent::run(&m_pool,
        [update, request = std::move(request), search = std::move(search), token = m_stop.get_token()](
            QPromise<LimitWaysSnapshot> &promise) {
            LimitWaysFound found{.of = update};
            if (search) {
                found.searched = searchedPlan(*search, token);
                if (token.stop_requested())
                    return;
                promise.addResult(std::make_shared<const LimitWaysFound>(found));
            }
            auto ways = waysWithinLimits(request, *update, kMostSeconds, token);
            if (!ways)
                return;
            found.ways = *std::move(ways);
            promise.addResult(std::make_shared<const LimitWaysFound>(std::move(found)));
        }));
}

void LimitWays::stop()
{
    m_stop.request_stop();
    m_watcher.setFuture({});
    m_asked.reset();
    m_working = false;
}

void LimitWays::take()
{
    if (!m_working || m_watcher.future().resultCount() == 0)
        return;
    if (const LimitWaysSnapshot ways = m_watcher.future().resultAt(m_watcher.future().resultCount() - 1);
        ways && ways->of == m_asked)
        Q_EMIT found(ways);
}

} // namespace planloom

#include "moc_limit_ways.cpp"
