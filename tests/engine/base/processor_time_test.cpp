#include "engine/base/processor_time.h"

#include <gtest/gtest.h>

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

} // namespace
} // namespace planloom
