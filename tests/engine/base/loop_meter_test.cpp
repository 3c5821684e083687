#include "engine/base/loop_meter.h"

#include "engine/base/work_pool.h"

#include <gtest/gtest.h>

#include <latch>
#include <set>
#include <thread>

namespace planloom {
namespace {

TEST(LoopMeter, TellsWhatSeveralThreadsWouldTake)
{
    double now = 100;
    LoopMeter meter([&now] { return now; });
    now += 2; // by itself
    forEachPiece(5, [&](std::int64_t) { now += 1; });
    now += 1;
    forEachPiece(2, [&](std::int64_t) {
        forEachPiece(4, [&](std::int64_t) { now += 0.25; }); // within a piece: of it
    });
    EXPECT_DOUBLE_EQ(meter.shareOn(1), 1);
    EXPECT_DOUBLE_EQ(meter.shareOn(2), (2 + 3 + 1 + 1) / 10.0);
    EXPECT_DOUBLE_EQ(meter.shareOn(8), (2 + 1 + 1 + 1) / 10.0);
}

TEST(LoopMeter, KeepsLoopsOnItsThreadAlone)
{
    WorkPool pool(3);
    std::latch done(1);
    std::set<std::thread::id> threads;
    pool.submit([&] {
        LoopMeter meter([] { return 0.0; });
        for (int repeat = 0; repeat < 100; ++repeat)
            forEachPiece(16, [&](std::int64_t) { threads.insert(std::this_thread::get_id()); });
        EXPECT_EQ(meter.shareOn(3), 1); // no time has passed
        done.count_down();
    });
    done.wait();
    EXPECT_EQ(threads.size(), 1U);
    EXPECT_EQ(LoopMeter::ofThread(), nullptr);
}

} // namespace
} // namespace planloom
