#include "engine/base/work_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <numeric>
#include <vector>

namespace planloom {
namespace {

TEST(WorkPool, RunsAllThatIsSubmittedAlsoFromWithinWork)
{
    for (const std::int32_t threads : {1, 2, 5}) {
        WorkPool pool(threads);
        EXPECT_EQ(pool.threads(), threads);
        constexpr int kEach = 200;
        std::atomic<int> ran{0};
        std::latch done(kEach * 3);
        for (int i = 0; i < kEach; ++i) {
            pool.submit([&] {
                for (int k = 0; k < 2; ++k)
                    pool.submit([&] {
                        ++ran;
                        done.count_down();
                    });
                ++ran;
                done.count_down();
            });
        }
        done.wait();
        EXPECT_EQ(ran, kEach * 3);
    }
}

#ifdef __linux__
TEST(WorkPool, ThreadsThatFillTheMachineHaveACoreEach)
{
    const std::int32_t cores = allowedCores();
    for (const std::int32_t threads : {cores, cores + 1}) {
        WorkPool pool(threads);
        std::vector<std::int32_t> ofThread(static_cast<std::size_t>(threads));
        std::latch all(threads); // so that each takes one
        std::latch done(threads);
        for (std::int32_t i = 0; i < threads; ++i) {
            pool.submit([&, i] {
                ofThread[static_cast<std::size_t>(i)] = allowedCores();
                all.arrive_and_wait();
                done.count_down();
            });
        }
        done.wait();
        for (const std::int32_t own : ofThread)
            EXPECT_EQ(own, threads == cores ? 1 : cores);
    }
    EXPECT_EQ(allowedCores(), cores); // the others are as they were
}
#endif

TEST(WorkPool, EveryPieceOfALoopRunsOnceAlsoOfLoopsInsideLoops)
{
    for (const std::int32_t threads : {1, 2, 4}) {
        WorkPool pool(threads);
        for (int repeat = 0; repeat < 50; ++repeat) {
            std::vector<std::atomic<int>> hits(12 * 40);
            std::latch done(3);
            for (int w = 0; w < 3; ++w) { // several loops at the same time
                pool.submit([&, w] {
                    forEachPiece(4, [&](std::int64_t outer) {
                        forEachPiece(40, [&](std::int64_t inner) {
                            ++hits[static_cast<std::size_t>((w * 4 + outer) * 40 + inner)];
                        });
                    });
                    done.count_down();
                });
            }
            done.wait();
            EXPECT_TRUE(std::all_of(hits.begin(), hits.end(), [](const auto &each) { return each == 1; }));
        }
    }
}

TEST(WorkPool, LoopsOutsideOfAPoolRunInOrderOnTheCaller)
{
    std::vector<std::int64_t> seen;
    forEachPiece(5, [&](std::int64_t piece) { seen.push_back(piece); });
    EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(WorkPool, StretchesMakeUpTheWhole)
{
    for (const std::int64_t count : {0, 1, 9, 10, 11, 95}) {
        std::vector<int> hits(static_cast<std::size_t>(count));
        forEachStretch(count, 10, [&](std::int64_t begin, std::int64_t end) {
            EXPECT_LE(end - begin, 10);
            for (std::int64_t i = begin; i < end; ++i)
                ++hits[static_cast<std::size_t>(i)];
        });
        EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), count);
        EXPECT_TRUE(std::all_of(hits.begin(), hits.end(), [](int each) { return each == 1; }));
    }
}

} // namespace
} // namespace planloom
