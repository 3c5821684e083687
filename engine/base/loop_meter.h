#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace planloom {

/// Finds out how much of what a thread does could be done by several. While it stands, loops of
/// `forEachPiece` on the thread that made it run on that thread alone, and are timed; loops within their
/// pieces are part of these.
class LoopMeter
{
public:
    using Clock = std::function<double()>;

    /// @param seconds  what this thread has worked so far, such as `threadSeconds`
    explicit LoopMeter(Clock seconds);
    ~LoopMeter();
    LoopMeter(const LoopMeter &) = delete;
    LoopMeter &operator=(const LoopMeter &) = delete;

    /// How long `threads` threads with nothing else to do would take, as a share of what one has taken since
    /// the meter was made: (0, 1]. Pieces of a loop count as equally long: of 5 pieces, two threads do 3 one
    /// after the other.
    double shareOn(std::int32_t threads) const;

    /// Of the calling thread; null if none stands, and within pieces of a loop.
    static LoopMeter *ofThread();
    /// Runs a loop of that thread.
    void run(std::int64_t count, const std::function<void(std::int64_t)> &work);

private:
    struct Loop {
        std::int64_t count = 0;
        double seconds = 0;
    };
    Clock m_clock;
    double m_start = 0;
    std::vector<Loop> m_loops{};
    LoopMeter *m_before = nullptr;
};

} // namespace planloom
