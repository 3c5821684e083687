#include "engine/base/in_parallel.h"

#include "engine/base/give_way.h"
#include "engine/base/hold_signals.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace planloom {

namespace {

constexpr unsigned kMostThreads = 8; ///< What is done here waits for memory more than for processors.
constexpr std::size_t kStretchesPerThread = 4; ///< So that one that is kept waiting keeps nobody else.

/// What is to be done, taken stretch by stretch.
class Job
{
public:
    Job(std::size_t count, std::size_t length, const std::function<void(std::size_t, std::size_t)> &work)
        : m_count(count)
        , m_length(length)
        , m_work(work)
    {
    }

    void help()
    {
        for (;;) {
            const std::size_t begin = m_next.fetch_add(m_length, std::memory_order_relaxed);
            if (begin >= m_count)
                return;
            m_work(begin, std::min(begin + m_length, m_count));
        }
    }

private:
    std::size_t m_count;
    std::size_t m_length;
    const std::function<void(std::size_t, std::size_t)> &m_work;
    std::atomic<std::size_t> m_next{0};
};

class Helpers
{
public:
    static Helpers &instance()
    {
        static Helpers helpers;
        return helpers;
    }

    std::size_t threads() const { return m_threads.size() + 1; }

    void run(Job &job)
    {
        const std::unique_lock mine(m_taken, std::try_to_lock);
        if (mine) {
            const std::scoped_lock lock(m_mutex);
            m_job = &job;
            ++m_given;
            m_wake.notify_all();
        }
        job.help();
        if (!mine)
            return;
        std::unique_lock lock(m_mutex);
        m_job = nullptr; // who has not begun by now need not
        m_done.wait(lock, [this] { return m_helping == 0; });
    }

private:
    Helpers()
    {
        const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads) - 1;
        const HoldSignals held;
        for (unsigned i = 0; i < count; ++i)
            m_threads.emplace_back([this](const std::stop_token &stop) { help(stop); });
    }

    void help(const std::stop_token &stop)
    {
        giveWay();
        std::uint64_t helped = 0; // nothing is left of a job that has been helped with
        std::unique_lock lock(m_mutex);
        for (;;) {
            if (!m_wake.wait(lock, stop, [&] { return m_job && m_given != helped; }))
                return;
            Job &job = *m_job;
            helped = m_given;
            ++m_helping;
            lock.unlock();
            job.help();
            lock.lock();
            if (--m_helping == 0)
                m_done.notify_all();
        }
    }

    std::mutex m_taken; ///< By the one who has given the job.
    std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::condition_variable m_done;
    Job *m_job = nullptr;
    std::uint64_t m_given = 0; ///< Jobs so far.
    int m_helping = 0;
    std::vector<std::jthread> m_threads; ///< Last: they use all of the above.
};

} // namespace

void inParallel(
    std::size_t count, std::size_t least, const std::function<void(std::size_t, std::size_t)> &work)
{
    least = std::max<std::size_t>(least, 1);
    if (count < 2 * least) {
        if (count > 0)
            work(0, count);
        return;
    }
    Helpers &helpers = Helpers::instance();
    Job job(count, std::max(least, count / (kStretchesPerThread * helpers.threads())), work);
    helpers.run(job);
}

} // namespace planloom
