#include "engine/runtime/processes/control_reader.h"
#include "engine/runtime/processes/process_handles.h"
#include "engine/runtime/processes/run_watch.h"
#include "engine/runtime/run_course.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

using namespace planloom;
using namespace std::chrono_literals;
using Report = RunWatch::Report;

TEST(RunWatch, ReportsProgressFiveTimesASecondAndLifeOnceASecond)
{
    const RunWatch::Clock::time_point begin{100s};
    RunWatch watch{2, begin};
    EXPECT_EQ(watch.due({1, 0}, begin + 10ms), Report::Progress);
    EXPECT_EQ(watch.due({2, 0}, begin + 100ms), Report::None); // too soon
    EXPECT_EQ(watch.due({2, 0}, begin + 210ms), Report::Progress);
    EXPECT_EQ(watch.due({2, 0}, begin + 900ms), Report::None); // nothing is new
    EXPECT_EQ(watch.due({2, 0}, begin + 1210ms), Report::Alive);
    EXPECT_EQ(watch.due({2, 0}, begin + 2200ms), Report::None);
    EXPECT_EQ(watch.due({2, 0}, begin + 2210ms), Report::Alive);
}

TEST(RunWatch, QuietBeginsAnewWithEveryChange)
{
    const RunWatch::Clock::time_point begin{100s};
    RunWatch watch{1, begin};
    EXPECT_DOUBLE_EQ(watch.quietSeconds(begin + 3s), 3);
    (void)watch.due({1}, begin + 4s);
    EXPECT_DOUBLE_EQ(watch.quietSeconds(begin + 5s), 1);
    watch.changed(begin + 6s);
    EXPECT_DOUBLE_EQ(watch.quietSeconds(begin + 6s), 0);
}

TEST(RunWatch, AStallIsToldOnce)
{
    RunWatch watch{1, {}};
    EXPECT_FALSE(watch.stalls(false));
    EXPECT_TRUE(watch.stalls(true));
    EXPECT_FALSE(watch.stalls(true));
    EXPECT_FALSE(watch.stalls(false));
    EXPECT_TRUE(watch.stalls(true));
}

TEST(RunEnding, AsksThenTerminatesThenKills)
{
    using Stage = RunEnding::Stage;
    const RunEnding::Clock::time_point begin{100s};
    RunEnding ending;
    EXPECT_FALSE(ending.next(begin));
    EXPECT_TRUE(ending.begin(begin));
    EXPECT_FALSE(ending.begin(begin + 500ms)); // the first time counts
    EXPECT_FALSE(ending.next(begin + 999ms));
    EXPECT_EQ(ending.next(begin + 1s), Stage::Terminate);
    EXPECT_FALSE(ending.next(begin + 1400ms));
    EXPECT_EQ(ending.next(begin + 1500ms), Stage::Kill);
    EXPECT_FALSE(ending.next(begin + 9s));
}

TEST(RunEnding, AStageThatNobodyAskedForIsPassedOver)
{
    RunEnding ending;
    EXPECT_TRUE(ending.begin({}));
    EXPECT_EQ(ending.next(RunEnding::Clock::time_point{2s}), RunEnding::Stage::Kill);
}

TEST(RunEnding, EndsBehindItsStepOnceAndNotAfterItEndsAtOnce)
{
    RunEnding ending;
    EXPECT_FALSE(ending.isBehindStep());
    EXPECT_TRUE(ending.beginBehindStep());
    EXPECT_TRUE(ending.isBehindStep());
    EXPECT_FALSE(ending.beginBehindStep());
    EXPECT_FALSE(ending.hasBegun());
    EXPECT_TRUE(ending.begin({})); // who asked for it may become impatient
    RunEnding cancelled;
    EXPECT_TRUE(cancelled.begin({}));
    EXPECT_FALSE(cancelled.beginBehindStep());
    EXPECT_FALSE(cancelled.isBehindStep());
}

TEST(ControlReader, GivesWholeLinesHoweverTheyArrive)
{
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const Descriptor from{ends[0]};
    Descriptor to{ends[1]};
    const auto write = [&to](const std::string &text) {
        ASSERT_EQ(::write(to.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    };
    ControlReader reader{from.get()};
    write("can");
    EXPECT_TRUE(reader.read().empty());
    write("cel\r\nfinish\nre");
    EXPECT_EQ(reader.read(), (std::vector<std::string>{"cancel", "finish"}));
    write("st\n");
    EXPECT_EQ(reader.read(), (std::vector<std::string>{"rest"}));
    EXPECT_EQ(reader.descriptor(), from.get());
    to.close();
    EXPECT_TRUE(reader.read().empty());
    EXPECT_EQ(reader.descriptor(), -1);
}

TEST(RunCourse, KeepsTheFirstErrorAndGoesOnUntilItsDriverLeaves)
{
    RunCourse course;
    EXPECT_FALSE(course.stopped().load());
    int reports = 0;
    std::thread driver;
    course.untilLeft(1ms, [&] {
        if (++reports == 2)
            driver = std::thread([&course] { course.leave(); });
    });
    driver.join();
    EXPECT_GE(reports, 2);
    EXPECT_FALSE(course.error());
    EXPECT_EQ(course.end({ErrorCode::Io, "first", {}, {}}).message, "first");
    EXPECT_EQ(course.end({ErrorCode::Io, "second", {}, {}}).message, "first");
    EXPECT_TRUE(course.stopped().load());
    ASSERT_TRUE(course.error());
    EXPECT_EQ(course.error()->message, "first");
}

TEST(RunTeller, CallsWhatIsHeard)
{
    RunEvents events;
    double heard = 0;
    events.stepDone = [&heard](std::int32_t, double loss, double) { heard = loss; };
    const RunTeller teller{events};
    teller.tell(teller.events.warning, "nobody hears this");
    teller.tell(teller.events.stepDone, 1, 2.5, 0.1);
    EXPECT_EQ(heard, 2.5);
}
