#include "widgets/design/engine_service.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>
#include <utility>

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
}

EngineService::~EngineService()
{
    m_openStop.request_stop();
}

void EngineService::stop()
{
    m_openStop.request_stop();
    m_solver.stop();
    m_openWatcher.setFuture({});
    m_waiting.reset();
    m_timer.stop();
    m_opening = false;
    m_planning = false;
    Q_EMIT stateChanged();
}

void EngineService::stopPlanning()
{
    m_solver.stop();
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
    m_waiting.reset();
    m_meanwhile.reset();
    m_planning = true;
    request.begin = begin;
    // On the solver's threads, which end before this does.
    const auto report = [this, made = UpdateMaker(begin), besideIt = UpdateMaker({})](
                            const LiveReport &news) {
        if (const SearchResult *better = news.better) {
            const SearchProgress progress{toString(better->best.configuration), better->best.simulatedSeconds,
                better->gap(), better->fits};
            QMetaObject::invokeMethod(
                this,
                [this, progress, revision = news.revision] {
                    if (m_planning && revision == m_revision)
                        Q_EMIT searchImproved(progress);
                },
                Qt::QueuedConnection);
            return;
        }
        if (news.grade == LiveGrade::Better) {
            QMetaObject::invokeMethod(
                this,
                [this, update = UpdateMaker({})(*news.answer), revision = news.revision] {
                    if (m_planning && revision == m_revision)
                        Q_EMIT betterPlanned(update);
                },
                Qt::QueuedConnection);
            return;
        }
        if (news.grade == LiveGrade::Meanwhile) {
            QMetaObject::invokeMethod(
                this,
                [this, update = besideIt(*news.answer), revision = news.revision] {
                    if (update->scene && revision == m_revision)
                        m_meanwhile = update;
                    take(revision, update);
                },
                Qt::QueuedConnection);
            return;
        }
        PlanUpdateSnapshot update = (news.grade == LiveGrade::Checked ? besideIt : made)(*news.answer);
        QMetaObject::invokeMethod(
            this, [this, update = std::move(update), revision = news.revision] { take(revision, update); },
            Qt::QueuedConnection);
    };
    m_revision = m_solver.solve(std::move(request), report);
    Q_EMIT stateChanged();
    return m_revision;
}

void EngineService::take(std::uint64_t revision, PlanUpdateSnapshot update)
{
    if (!m_planning || revision != m_revision)
        return;
    m_waiting = std::move(update);
    const qint64 since = m_sinceDelivery.isValid() ? m_sinceDelivery.elapsed() : m_leastMilliseconds;
    const bool isAwaited = m_waiting->scene && m_waiting->scene != m_drawn.lock();
    if (since >= m_leastMilliseconds || (isAwaited && mayDrawNow()))
        deliver();
    else if (!m_timer.isActive())
        m_timer.start(static_cast<int>(m_leastMilliseconds - since));
}

/// Each stretch of `m_leastMilliseconds` lets one more of them pass.
bool EngineService::mayDrawNow()
{
    if (m_sinceCounted.isValid())
        m_atOnce = std::min(static_cast<double>(kMostAtOnce),
            m_atOnce + static_cast<double>(m_sinceCounted.elapsed()) / m_leastMilliseconds);
    m_sinceCounted.start();
    return m_atOnce >= 1;
}

void EngineService::deliver()
{
    if (!m_waiting)
        return;
    const PlanUpdateSnapshot update = std::move(m_waiting);
    m_waiting.reset();
    m_timer.stop();
    m_sinceDelivery.start();
    if (update->scene && update->scene != m_drawn.lock()) {
        m_drawn = update->scene;
        m_atOnce = std::max(0.0, m_atOnce - 1);
    }
    if (update->final)
        m_planning = false;
    Q_EMIT planUpdated(update);
    if (update->final)
        Q_EMIT stateChanged();
    if (!m_planning)
        m_meanwhile.reset();
}

} // namespace planloom

#include "moc_engine_service.cpp"
