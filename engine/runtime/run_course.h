#pragma once

#include "engine/base/result.h"
#include "engine/runtime/run.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace planloom {

/// Whether a run goes on, and the first thing that went wrong. Thread-safe.
class RunCourse
{
public:
    /// Stops the run. @return the first error of all that were given
    Error end(Error error)
    {
        const std::lock_guard lock{m_mutex};
        if (!m_error)
            m_error = std::move(error);
        m_stopped.store(true);
        return *m_error;
    }
    const std::atomic<bool> &stopped() const { return m_stopped; } ///< It is to end early.
    std::optional<Error> error() const
    {
        const std::lock_guard lock{m_mutex};
        return m_error;
    }

    /// The thread that drives the run is done with it.
    void leave()
    {
        const std::lock_guard lock{m_mutex};
        m_isDriven = false;
        m_changed.notify_all();
    }
    /// Calls `work` every `interval` until `leave` is called.
    template<typename Work> void untilLeft(std::chrono::milliseconds interval, const Work &work)
    {
        std::unique_lock lock{m_mutex};
        while (!m_changed.wait_for(lock, interval, [this] { return !m_isDriven; })) {
            lock.unlock();
            work();
            lock.lock();
        }
    }

private:
    mutable std::mutex m_mutex{};
    std::condition_variable m_changed{};
    std::atomic<bool> m_stopped{false};
    bool m_isDriven = true;
    std::optional<Error> m_error{};
};

/// Tells the events of a run from several threads, one at a time.
class RunTeller
{
public:
    explicit RunTeller(const RunEvents &events)
        : events(events)
    {
    }
    /// Calls `event`, one of `events`, if somebody hears it.
    template<typename... Arguments>
    void tell(const std::function<void(Arguments...)> &event,
        const std::type_identity_t<Arguments> &...arguments) const
    {
        if (!event)
            return;
        const std::lock_guard lock{m_mutex};
        event(arguments...);
    }

    const RunEvents &events;

private:
    mutable std::mutex m_mutex{};
};

} // namespace planloom
