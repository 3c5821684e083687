#include "engine/base/in_parallel.h"

#include "engine/base/background_disposal.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace planloom;

TEST(InParallel, EveryElementIsWorkedOnOnce)
{
    for (const std::size_t count : {0u, 1u, 2u, 7u, 64u, 1000u, 100'000u}) {
        for (const std::size_t least : {0u, 1u, 3u, 64u, 1'000'000u}) {
            std::vector<std::atomic<int>> worked(count);
            inParallel(count, least, [&](std::size_t begin, std::size_t end) {
                ASSERT_LT(begin, end);
                ASSERT_LE(end, count);
                for (std::size_t i = begin; i < end; ++i)
                    ++worked[i];
            });
            for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(worked[i].load(), 1) << i << " of " << count << ", at least " << least;
        }
    }
}

TEST(InParallel, FewElementsStayOnTheCallingThread)
{
    std::vector<std::thread::id> threads;
    inParallel(7, 4, [&](std::size_t begin, std::size_t end) {
        EXPECT_EQ(begin, 0u);
        EXPECT_EQ(end, 7u);
        threads.push_back(std::this_thread::get_id());
    });
    EXPECT_EQ(threads, std::vector{std::this_thread::get_id()});
}

TEST(InParallel, SeveralThreadsMayAskAtOnce)
{
    constexpr int kThreads = 4;
    constexpr std::size_t kCount = 2000;
    std::atomic<std::size_t> sum = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < kThreads; ++t) {
            threads.emplace_back([&sum] {
                for (int round = 0; round < 50; ++round) {
                    std::atomic<std::size_t> mine = 0;
                    inParallel(kCount, 1, [&](std::size_t begin, std::size_t end) { mine += end - begin; });
                    sum += mine.load(); // all of it is done by now
                }
            });
        }
    }
    EXPECT_EQ(sum.load(), kThreads * 50 * kCount);
}

TEST(InParallel, LeavesSignalsToThreadsThatWaitForThem)
{
    inParallel(64, 1, [](std::size_t, std::size_t) {}); // now there are helpers
    sigset_t one;
    sigset_t before;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &one, &before);
    ::kill(::getpid(), SIGUSR1); // would end the program if a helper took it
    const timespec patience{5, 0};
    EXPECT_EQ(::sigtimedwait(&one, nullptr, &patience), SIGUSR1);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
