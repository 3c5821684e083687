#include "engine/base/processor_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace planloom {
namespace {

TEST(WorkClock, CountsWorkAndNotWaiting)
{
    const auto start = std::chrono::steady_clock::now();
    const double before = processorSeconds();
    const WorkClock clock;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const double waited = clock.seconds();
    EXPECT_LT(waited, 0.03); // another thread would have to work all that time
    while (processorSeconds() - before < 0.01) { }
    EXPECT_GT(clock.seconds(), waited);
    EXPECT_LE(
        clock.seconds(), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

TEST(ThreadsSeconds, CountWhatAThreadBesideHasWorked)
{
    constexpr double kWork = 0.01;
    const double before = threadsSeconds();
    const double own = threadSeconds();
    std::atomic<bool> worked = false;
    std::atomic<bool> seen = false;
    std::jthread other([&] {
        const double begin = threadSeconds();
        while (threadSeconds() - begin < kWork) { }
        worked = true;
        while (!seen) // threads that are gone do not count
            std::this_thread::yield();
    });
    while (!worked)
        std::this_thread::yield();
    const double counted = threadsSeconds() - before;
    const double mine = threadSeconds() - own;
    seen = true;
    EXPECT_GE(counted, kWork);
    EXPECT_GE(threadsSeconds() - before, mine * 0.99);
}

} // namespace
} // namespace planloom
