#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace planloom {

/// Cores that this process may use (its affinity), at least 1.
std::int32_t allowedCores();

/// Threads that share work. Each takes what it was given last first, which is still in its cache, and what
/// others were given first when it has nothing of its own. Which thread runs what is left to chance: work
/// must not depend on it.
class WorkPool
{
public:
    using Work = std::function<void()>;

    /// As many threads as there are cores (`allowedCores`) keep to one core each: schedulers that leave two
    /// of them on one core and the other one idle, as in some virtual machines, would halve their speed.
    /// @param threads  at least 1
    explicit WorkPool(std::int32_t threads);
    /// Waits for what runs; what has not begun is dropped.
    ~WorkPool();
    WorkPool(const WorkPool &) = delete;
    WorkPool &operator=(const WorkPool &) = delete;

    std::int32_t threads() const { return static_cast<std::int32_t>(m_lanes.size()); }

    /// Runs `work`, which must not throw, on one of the threads. Thread-safe; also from within work.
    void submit(Work work);

private:
    friend void forEachPiece(std::int64_t count, const std::function<void(std::int64_t)> &work);

    struct Lane;
    class Pieces;
    void threadMain(std::size_t lane);
    bool runOne(std::size_t lane);
    bool helpOne();
    void runPieces(std::int64_t count, const std::function<void(std::int64_t)> &work);
    void wake(bool many);

    std::vector<std::unique_ptr<Lane>> m_lanes;
    std::atomic<std::size_t> m_next{0}; ///< Lane of the next work from outside.
    std::atomic<std::int64_t> m_waiting{0}; ///< Work that has not begun.
    std::atomic<std::int32_t> m_open{0}; ///< Loops of `m_pieces` with pieces that nobody has taken.
    std::mutex m_piecesMutex;
    std::condition_variable m_left; ///< A helper has left one of `m_pieces`.
    std::vector<Pieces *> m_pieces; ///< Loops that others may help with. Guarded by m_piecesMutex.
    std::mutex m_sleepMutex;
    std::condition_variable m_wake;
    std::int32_t m_sleeping = 0; ///< Guarded by m_sleepMutex.
    std::atomic<bool> m_ending{false};
    std::vector<std::thread> m_threads; ///< Last: they use all of the above.
};

/// Calls work(0), ..., work(count - 1) and returns when all are done. Within work of a `WorkPool` its other
/// threads help; elsewhere the calling thread does it all. Pieces run in any order and side by side, so what
/// they make must not depend on that: how something is cut into pieces depends on its shape alone, never on
/// the number of threads, and results are the same bits on any number of cores. `work` must not throw.
void forEachPiece(std::int64_t count, const std::function<void(std::int64_t piece)> &work);

/// Cuts [0, count) into stretches of `length` and calls work(begin, end) for each, as `forEachPiece` does.
template<typename Work> void forEachStretch(std::int64_t count, std::int64_t length, const Work &work)
{
    if (count <= length) {
        if (count > 0)
            work(std::int64_t{0}, count);
        return;
    }
    forEachPiece((count + length - 1) / length, [&](std::int64_t piece) {
        const std::int64_t begin = piece * length;
        work(begin, begin + length < count ? begin + length : count);
    });
}

} // namespace planloom
