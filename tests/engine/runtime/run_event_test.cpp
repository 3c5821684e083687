#include "engine/runtime/processes/run_event.h"

#include "engine/runtime/processes/event_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

using namespace planloom;

namespace {

/// The event as a reader of lines has it.
RunEvent readBack(const nlohmann::json &written)
{
    return readRunEvent(written.dump());
}

} // namespace

TEST(RunEvent, SpansComeBackAsTheyWereWritten)
{
    const std::vector<LiveSpan> spans{{2, 0, 3, 1, 500, 20}, {3, 1, 0, 0, 0, 7}};
    const RunEvent read = readBack(liveEvent(1, spans));
    EXPECT_EQ(read.type, "live");
    EXPECT_EQ(read.device, 1U);
    EXPECT_EQ(read.spans, spans);
}

TEST(RunEvent, ErrorsComeBackAsTheyWereWritten)
{
    const Error error{ErrorCode::ResourceLimit, "no room", "make some", "operator:3"};
    EXPECT_EQ(readBack(errorEvent(error)).error, error);
    EXPECT_EQ(errorIn(errorJson(error)), error);
}

TEST(RunEvent, ChecksComeBackWithWhatRoundingExplains)
{
    CheckReport report{false, "grad/w", 0.25, "product", 0.125, 1e-9};
    const auto read = readBack(checkEvent(report)).check;
    ASSERT_TRUE(read);
    EXPECT_FALSE(read->ok);
    EXPECT_EQ(read->worstTensor, "grad/w");
    EXPECT_EQ(read->worstError, 0.25);
    EXPECT_EQ(read->firstDifference, "product");
    EXPECT_EQ(read->allowed, 0.125);
    EXPECT_EQ(read->inDouble, 1e-9);
    report.worstError = std::numeric_limits<double>::quiet_NaN();
    report.inDouble.reset();
    const auto broken = readBack(checkEvent(report)).check;
    ASSERT_TRUE(broken);
    EXPECT_TRUE(std::isnan(broken->worstError)); // an error that is no number is not one of 0
    EXPECT_FALSE(broken->inDouble);
}

TEST(RunEvent, CheckpointsStepsAndTheEnd)
{
    const RunEvent saved = readBack(checkpointEvent({"/tmp/a", 7, 0.5}));
    EXPECT_EQ(saved.step, 7);
    EXPECT_EQ(saved.path, "/tmp/a");
    const RunEvent step = readRunEvent(R"({"v":1,"t":"step","n":2,"loss":null,"seconds":0.5})");
    EXPECT_EQ(step.step, 2);
    EXPECT_TRUE(std::isnan(step.loss));
    EXPECT_EQ(step.seconds, 0.5);
    const RunEvent done = readRunEvent(R"({"v":1,"t":"done","first_step":3,"losses":[1.5,null],)"
                                       R"("step_seconds":[0.1,0.2],"dropped":[0,4],"peak_bytes":[64],)"
                                       R"("stopped":true,"checkpoint":"/tmp/b"})");
    EXPECT_EQ(done.outcome.firstStep, 3);
    EXPECT_EQ(done.outcome.losses.size(), 2U);
    EXPECT_TRUE(std::isnan(done.outcome.losses.at(1)));
    EXPECT_EQ(done.outcome.dropped, (std::vector<std::int64_t>{0, 4}));
    EXPECT_EQ(done.outcome.peak.at(0).count, 64);
    EXPECT_EQ(done.peakBytes, (std::vector<std::int64_t>{64}));
    EXPECT_TRUE(done.outcome.stopped);
    EXPECT_EQ(done.outcome.checkpoint, "/tmp/b");
}

TEST(RunEvent, WhatIsDamagedSaysSo)
{
    EXPECT_FALSE(runEventIn(nlohmann::json{{"t", "done"}})); // without its memory
    const RunEvent damaged = readRunEvent(R"({"t":"live","device":0,"start":[1],"segment":[]})");
    EXPECT_TRUE(damaged.type.empty());
    EXPECT_TRUE(damaged.text.starts_with("an event of the runner is damaged: ")) << damaged.text;
    EXPECT_TRUE(readRunEvent("nothing").text.starts_with("the runner wrote a line that is no event"));
}
