#include "engine/base/loop_meter.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {
thread_local LoopMeter *meterOfThread = nullptr;
}

LoopMeter::LoopMeter(Clock seconds)
    : m_clock(std::move(seconds))
    , m_before(std::exchange(meterOfThread, this))
{
    m_start = m_clock();
}

LoopMeter::~LoopMeter()
{
    meterOfThread = m_before;
}

LoopMeter *LoopMeter::ofThread()
{
    return meterOfThread;
}

void LoopMeter::run(std::int64_t count, const std::function<void(std::int64_t)> &work)
{
    meterOfThread = nullptr;
    const double start = m_clock();
    for (std::int64_t piece = 0; piece < count; ++piece)
        work(piece);
    m_loops.push_back({count, m_clock() - start});
    meterOfThread = this;
}

double LoopMeter::shareOn(std::int32_t threads) const
{
    const double whole = m_clock() - m_start;
    if (whole <= 0)
        return 1;
    double spared = 0;
    for (const Loop &loop : m_loops) {
        const std::int64_t turns = (loop.count + threads - 1) / threads;
        spared += loop.seconds * (1 - static_cast<double>(turns) / static_cast<double>(loop.count));
    }
    return std::clamp(1 - spared / whole, 1.0 / threads, 1.0);
}

} // namespace planloom
