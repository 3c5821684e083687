#include "widgets/main/limit_ways.h"

#include <QtConcurrent/QtConcurrentRun>

#include "engine/design/explain/suggestions.h"

#include <utility>

namespace planloom {

namespace {

constexpr double kMostSeconds = 6; ///< Of simulations.

} // namespace

LimitWays::LimitWays(QObject *parent)
    : QObject(parent)
{
    m_pool.setMaxThreadCount(1);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &LimitWays::take);
}

LimitWays::~LimitWays()
{
    m_stop.request_stop();
}

void LimitWays::ask(const PlanUpdateSnapshot &update, PlanRequest request)
{
    if (m_asked == update)
        return;
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_asked = update;
    m_working = true;
    m_watcher.setFuture(QtConcurrent::run(
        &m_pool, [update, request = std::move(request), token = m_stop.get_token()]() -> LimitWaysSnapshot {
            auto ways = waysWithinLimits(request, *update, kMostSeconds, token);
            return ways ? std::make_shared<const LimitWaysFound>(LimitWaysFound{update, *std::move(ways)})
                        : nullptr;
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
    m_working = false;
    if (const LimitWaysSnapshot ways = m_watcher.result())
        Q_EMIT found(ways);
}

} // namespace planloom

#include "moc_limit_ways.cpp"
