#include "engine/base/background_disposal.h"

#include "engine/base/hold_signals.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace planloom {

namespace {

std::atomic<bool> ended = false; ///< The thread is gone: the program is about to end.

class Disposer
{
public:
    Disposer()
    {
        const HoldSignals held;
        m_thread = std::thread([this] { run(); });
    }
    ~Disposer()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_ending = true;
            ended = true;
        }
        m_changed.notify_all();
        m_thread.join();
    }
    Disposer(const Disposer &) = delete;
    Disposer &operator=(const Disposer &) = delete;

    /// @return false if it is too late
    bool add(std::function<void()> &dispose)
    {
        const std::lock_guard lock(m_mutex);
        if (m_ending)
            return false;
        m_waiting.push_back(std::move(dispose));
        ++m_given;
        m_changed.notify_all();
        return true;
    }

    void wait()
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this, given = m_given] { return m_gone >= given; });
    }

private:
    void run()
    {
        std::unique_lock lock(m_mutex);
        for (;;) {
            m_changed.wait(lock, [this] { return m_ending || !m_waiting.empty(); });
            if (m_waiting.empty())
                return;
            std::function<void()> dispose = std::move(m_waiting.front());
            m_waiting.pop_front();
            lock.unlock();
            dispose();
            dispose = nullptr;
            lock.lock();
            ++m_gone;
            m_changed.notify_all();
        }
    }

    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<std::function<void()>> m_waiting;
    std::uint64_t m_given = 0;
    std::uint64_t m_gone = 0;
    bool m_ending = false;
    std::thread m_thread; ///< Last: it uses all of the above.
};

Disposer &disposer()
{
    static Disposer one;
    return one;
}

} // namespace

void disposeInBackground(std::function<void()> dispose)
{
    if (ended || !disposer().add(dispose))
        dispose();
}

void waitForDisposal()
{
    if (!ended)
        disposer().wait();
}

} // namespace planloom
