#pragma once

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QFutureWatcher>

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace planloom {

/// Work on a worker of which the newest alone counts: what is asked for while another is under way stops that
/// one and follows it, and takes the place of what waits. GUI thread, but for the work itself.
template<typename Value> class LatestJob
{
public:
    using Work = std::function<Value(const std::stop_token &)>;

    /// @param taken  called with what the newest work made, on the GUI thread; never after the end of this
    explicit LatestJob(std::function<void(const Value &)> taken)
        : m_taken(std::move(taken))
    {
        QObject::connect(&m_watcher, &QFutureWatcherBase::finished, &m_watcher, [this] { take(); });
    }
    LatestJob(const LatestJob &) = delete;
    LatestJob &operator=(const LatestJob &) = delete;
    /// Stops what is under way, which holds on to nothing of this.
    ~LatestJob() { m_stop.request_stop(); }

    void ask(Work work)
    {
        m_next = std::move(work);
        m_isCancelled = false;
        if (m_isRunning)
            m_stop.request_stop();
        else
            start();
    }
    /// What is under way or waits is not taken.
    void cancel()
    {
        m_next = {};
        m_isCancelled = true;
        m_stop.request_stop();
    }
    bool isBusy() const { return (m_isRunning && !m_isCancelled) || m_next; }

private:
    void start()
    {
        m_isRunning = true;
        m_stop = {};
        m_watcher.setFuture(QtConcurrent::run([work = std::exchange(m_next, {}), stop = m_stop.get_token()] {
            return std::make_shared<const Value>(work(stop));
        }));
    }
    void take()
    {
        m_isRunning = false;
        const std::shared_ptr<const Value> made = m_watcher.result();
        if (m_next)
            start();
        else if (!m_isCancelled)
            m_taken(*made);
    }

    std::function<void(const Value &)> m_taken;
    Work m_next{};
    std::stop_source m_stop{};
    bool m_isRunning = false;
    bool m_isCancelled = false;
    QFutureWatcher<std::shared_ptr<const Value>> m_watcher{};
};

} // namespace planloom
