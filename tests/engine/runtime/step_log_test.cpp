#include "engine/runtime/devices/step_log.h"

#include <gtest/gtest.h>

#include <chrono>

using namespace planloom;
using namespace std::chrono_literals;

namespace {

const StepLog::Clock::time_point kStepOrigin{5s};

/// Instruction `index`, of a program of one segment, has run for 10 ns.
void logEnd(StepLog &log, std::int32_t index)
{
    const auto start = kStepOrigin + std::chrono::nanoseconds{100 * index};
    log.ended(static_cast<std::size_t>(index), {0, index, 1}, start, start + 10ns);
}

} // namespace

TEST(StepLog, WhatCountsAsFinishedIsAllBeforeTheFirstThatIsNot)
{
    DeviceProgress progress;
    StepLog log{progress};
    log.begin(2, 3, kStepOrigin, false);
    EXPECT_EQ(progress.issued.load(), 7); // two steps of three have been, and the first one may start
    logEnd(log, 1);
    EXPECT_EQ(progress.finished.load(), 6);
    logEnd(log, 0);
    EXPECT_EQ(progress.issued.load(), 9);
    EXPECT_EQ(progress.finished.load(), 8);
    logEnd(log, 2);
    EXPECT_EQ(progress.issued.load(), 9);
    EXPECT_EQ(progress.finished.load(), 9);
}

TEST(StepLog, SpansAreInTheOrderOfTheProgramAndToldInThatOfTheirEnds)
{
    DeviceProgress progress;
    StepLog log{progress};
    log.setLive(true);
    log.begin(4, 2, kStepOrigin, true);
    logEnd(log, 1);
    logEnd(log, 0);
    const LiveSpan first{4, 0, 0, 1, 0, 10};
    const LiveSpan second{4, 0, 1, 1, 100, 10};
    EXPECT_EQ(log.spans(), (std::vector{first, second}));
    EXPECT_EQ(log.takeLive(), (std::vector{second, first}));
    EXPECT_TRUE(log.takeLive().empty());
}

TEST(StepLog, AStepThatIsNotMeasuredHasNoSpans)
{
    DeviceProgress progress;
    StepLog log{progress};
    log.setLive(true);
    log.begin(0, 1, kStepOrigin, false);
    logEnd(log, 0);
    EXPECT_TRUE(log.spans().empty());
    EXPECT_TRUE(log.takeLive().empty());
    EXPECT_EQ(progress.finished.load(), 1);
}
