#include "engine/base/work_pool.h"

#include "engine/base/loop_meter.h"

#include <algorithm>
#include <deque>
#include <utility>

#ifdef __linux__
#include <sched.h>
#endif

namespace planloom {

namespace {

/// How often a thread without work looks again before it sleeps: about as long as waking it takes.
constexpr int kLooks = 200;

void pauseBriefly()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
}

thread_local WorkPool *poolOfThread = nullptr;
thread_local std::size_t laneOfThread = 0;

} // namespace

std::int32_t allowedCores()
{
#ifdef __linux__
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return std::max(1, CPU_COUNT(&set));
#endif
    return static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
}

namespace {

/// Keeps the calling thread on the `number`th of the cores that it may use, if it may use as many.
void keepToCore([[maybe_unused]] std::size_t number)
{
#ifdef __linux__
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &allowed) || number-- > 0)
            continue;
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(core, &own);
        (void)sched_setaffinity(0, sizeof own, &own); // else it may go where it likes
        return;
    }
#endif
}

} // namespace

/// What one thread has been given. A lock each: work takes many times as long as taking it.
struct WorkPool::Lane {
    std::mutex mutex{};
    std::deque<Work> work{};
};

/// A loop whose pieces are taken one by one.
class WorkPool::Pieces
{
public:
    Pieces(std::int64_t count, const std::function<void(std::int64_t)> &work)
        : m_count(count)
        , m_work(work)
    {
    }

    bool hasMore() const { return m_next.load(std::memory_order_relaxed) < m_count; }

    /// Takes pieces until none is left. True for the one, of all who help, that found the last one gone.
    bool help()
    {
        for (;;) {
            const std::int64_t piece = m_next.fetch_add(1, std::memory_order_relaxed);
            if (piece >= m_count)
                return piece == m_count;
            m_work(piece);
        }
    }

    bool isHelped() const { return m_helpers.load(std::memory_order_acquire) != 0; }
    void enter() { m_helpers.fetch_add(1, std::memory_order_relaxed); } ///< Needs the pool's lock.
    /// Needs the pool's lock. The owner may be gone at once: nothing here is touched afterwards.
    void leave() { m_helpers.fetch_sub(1, std::memory_order_release); }

private:
    std::int64_t m_count;
    const std::function<void(std::int64_t)> &m_work;
    std::atomic<std::int64_t> m_next{0};
    std::atomic<std::int32_t> m_helpers{0};
};

WorkPool::WorkPool(std::int32_t threads)
{
    for (std::int32_t i = 0; i < std::max(threads, 1); ++i)
        m_lanes.push_back(std::make_unique<Lane>());
    const bool eachOneCore = m_lanes.size() > 1 && this->threads() == allowedCores();
    for (std::size_t lane = 0; lane < m_lanes.size(); ++lane)
        m_threads.emplace_back([this, lane, eachOneCore] {
            if (eachOneCore)
                keepToCore(lane);
            threadMain(lane);
        });
}

WorkPool::~WorkPool()
{
    {
        const std::lock_guard lock{m_sleepMutex};
        m_ending.store(true);
    }
    m_wake.notify_all();
    for (std::thread &thread : m_threads)
        thread.join();
}

void WorkPool::submit(Work work)
{
    const std::size_t lane =
        poolOfThread == this ? laneOfThread : m_next.fetch_add(1, std::memory_order_relaxed) % m_lanes.size();
    {
        const std::lock_guard lock{m_lanes[lane]->mutex};
        m_lanes[lane]->work.push_back(std::move(work));
        m_waiting.fetch_add(1);
    }
    wake(false);
}

void WorkPool::wake(bool many)
{
    const std::lock_guard lock{m_sleepMutex};
    if (m_sleeping == 0)
        return;
    if (many)
        m_wake.notify_all();
    else
        m_wake.notify_one();
}

bool WorkPool::helpOne()
{
    if (m_open.load() == 0)
        return false;
    Pieces *pieces = nullptr;
    {
        const std::lock_guard lock{m_piecesMutex};
        const auto found = std::find_if(
            m_pieces.begin(), m_pieces.end(), [](const Pieces *each) { return each->hasMore(); });
        if (found == m_pieces.end())
            return false;
        pieces = *found;
        pieces->enter();
    }
    if (pieces->help())
        m_open.fetch_sub(1);
    const std::lock_guard lock{m_piecesMutex};
    pieces->leave();
    m_left.notify_all();
    return true;
}

bool WorkPool::runOne(std::size_t lane)
{
    if (helpOne()) // a loop is waited for, work that has not begun is not
        return true;
    if (m_waiting.load() == 0)
        return false;
    Work work;
    for (std::size_t i = 0; i < m_lanes.size() && !work; ++i) {
        Lane &from = *m_lanes[(lane + i) % m_lanes.size()];
        const std::lock_guard lock{from.mutex};
        if (from.work.empty())
            continue;
        if (i == 0) {
            work = std::move(from.work.back());
            from.work.pop_back();
        } else {
            work = std::move(from.work.front());
            from.work.pop_front();
        }
        m_waiting.fetch_sub(1);
    }
    if (!work)
        return false;
    work();
    return true;
}

void WorkPool::threadMain(std::size_t lane)
{
    poolOfThread = this;
    laneOfThread = lane;
    while (!m_ending.load()) {
        if (runOne(lane))
            continue;
        const auto idle = [this] { return m_waiting.load() == 0 && m_open.load() == 0 && !m_ending.load(); };
        int look = 0;
        while (look < kLooks && idle()) {
            ++look;
            pauseBriefly();
        }
        if (look < kLooks)
            continue;
        std::unique_lock lock{m_sleepMutex};
        ++m_sleeping;
        m_wake.wait(lock, [&] { return !idle(); });
        --m_sleeping;
    }
}

void WorkPool::runPieces(std::int64_t count, const std::function<void(std::int64_t)> &work)
{
    Pieces pieces(count, work);
    {
        const std::lock_guard lock{m_piecesMutex};
        m_pieces.push_back(&pieces);
        m_open.fetch_add(1);
    }
    wake(count > 2);
    if (pieces.help())
        m_open.fetch_sub(1);
    {
        const std::lock_guard lock{m_piecesMutex};
        m_pieces.erase(std::find(m_pieces.begin(), m_pieces.end(), &pieces));
    }
    for (int look = 0; look < kLooks && pieces.isHelped(); ++look)
        pauseBriefly();
    std::unique_lock lock{m_piecesMutex}; // no helper can come any more
    m_left.wait(lock, [&] { return !pieces.isHelped(); });
}

void forEachPiece(std::int64_t count, const std::function<void(std::int64_t)> &work)
{
    if (LoopMeter *const meter = LoopMeter::ofThread(); meter != nullptr && count > 1) {
        meter->run(count, work);
        return;
    }
    if (count > 1 && poolOfThread != nullptr && poolOfThread->threads() > 1) {
        poolOfThread->runPieces(count, work);
        return;
    }
    for (std::int64_t piece = 0; piece < count; ++piece)
        work(piece);
}

} // namespace planloom
