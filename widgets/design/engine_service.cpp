#include "widgets/design/engine_service.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>

namespace planloom {

EngineService::EngineService(QObject *parent, int leastMilliseconds)
    : QObject(parent)
    , m_leastMilliseconds(leastMilliseconds)
{
    m_pool.setMaxThreadCount(1);
    m_pool.setStackSize(8u << 20); // as a main thread's: importers recurse over what files nest
    m_timer.setSingleShot(true);
    connect(&m_timer, &QTimer::timeout, this, &EngineService::deliver);
    connect(&m_openWatcher, &QFutureWatcherBase::finished, this, &EngineService::takeModel);
    connect(&m_planWatcher, &QFutureWatcherBase::resultsReadyAt, this, &EngineService::takePlans);
}

EngineService::~EngineService()
{
    m_openStop.request_stop();
    m_planStop.request_stop();
}

void EngineService::stop()
{
    m_openStop.request_stop();
    m_planStop.request_stop();
    m_openWatcher.setFuture({});
    m_planWatcher.setFuture({});
    m_waiting.reset();
    m_timer.stop();
    m_opening = false;
    m_planning = false;
    Q_EMIT stateChanged();
}

void EngineService::stopPlanning()
{
    m_planStop.request_stop();
    m_planWatcher.setFuture({});
    m_waiting.reset();
    m_timer.stop();
    if (!m_planning)
        return;
    m_planning = false;
    Q_EMIT stateChanged();
}

/// The model, or why not: where sizes are missing, which.
EngineService::Opened EngineService::opened(const ModelSource &source, const std::stop_token &stop)
{
    Opened outcome{openModel(source, stop), {}};
    if (outcome.model || outcome.model.error().code == ErrorCode::Cancelled)
        return outcome;
    auto dimensions = openDimensions(source);
    const auto isMissing = [](const InputDimension &each) { return each.size == 0; };
    if (dimensions && std::any_of(dimensions->begin(), dimensions->end(), isMissing))
        outcome.missing = *std::move(dimensions);
    return outcome;
}

void EngineService::open(const ModelSource &source)
{
    stop();
    m_openStop = std::stop_source{};
    m_source = source;
    m_opening = true;
    m_openWatcher.setFuture(
        QtConcurrent::run(&m_pool, [source, token = m_openStop.get_token()]() -> OpenOutcome {
            return std::make_shared<const Opened>(opened(source, token));
        }));
    Q_EMIT stateChanged();
}

void EngineService::takeModel()
{
    if (!m_opening || m_openWatcher.future().resultCount() == 0)
        return;
    m_opening = false;
    const OpenOutcome outcome = m_openWatcher.result();
    Q_EMIT stateChanged();
    if (outcome->model)
        Q_EMIT modelOpened(*outcome->model);
    else if (!outcome->missing.empty())
        Q_EMIT sizesAsked(m_source, outcome->missing);
    else if (outcome->model.error().code != ErrorCode::Cancelled)
        Q_EMIT modelFailed(m_source, outcome->model.error());
}

std::uint64_t EngineService::plan(PlanRequest request, PlanUpdateSnapshot begin)
{
    m_planStop.request_stop();
    m_planStop = std::stop_source{};
    m_waiting.reset();
    request.revision = ++m_revision;
    m_planning = true;
    m_planWatcher.setFuture(QtConcurrent::run(&m_pool,
        [request = std::move(request), begin = std::move(begin), token = m_planStop.get_token()](
            QPromise<PlanUpdateSnapshot> &promise) {
            makeUpdates(request, begin, token,
                [&promise](PlanUpdateSnapshot update) { promise.addResult(std::move(update)); });
        }));
    Q_EMIT stateChanged();
    return m_revision;
}

void EngineService::takePlans(int begin, int end)
{
    if (begin >= end)
        return;
    m_waiting = m_planWatcher.resultAt(end - 1);
    const qint64 since = m_sinceDelivery.isValid() ? m_sinceDelivery.elapsed() : m_leastMilliseconds;
    const bool isAwaited =
        m_waiting->scene && (!m_sinceDrawn.isValid() || m_sinceDrawn.elapsed() >= m_leastMilliseconds);
    if (since >= m_leastMilliseconds || isAwaited)
        deliver();
    else if (!m_timer.isActive())
        m_timer.start(static_cast<int>(m_leastMilliseconds - since));
}

void EngineService::deliver()
{
    if (!m_waiting)
        return;
    const PlanUpdateSnapshot update = std::move(m_waiting);
    m_waiting.reset();
    m_timer.stop();
    m_sinceDelivery.start();
    if (update->scene)
        m_sinceDrawn.start();
    if (update->final)
        m_planning = false;
    Q_EMIT planUpdated(update);
    if (update->final)
        Q_EMIT stateChanged();
}

} // namespace planloom

#include "moc_engine_service.cpp"
