#include "engine/runtime/processes/supervisor.h"

#include "tests/engine/runtime/plan_writer.h"
#include "tests/engine/runtime/run_listener.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace planloom;
using Json = nlohmann::json;

namespace {

using Listener = RunListener;

/// True once device 1 is known to wait.
bool waits(const Json &event)
{
    return event.at("t") == "progress" && event.at("devices").at(1).at("issued") == 1;
}

} // namespace

TEST(Supervisor, ReportsARunFromHelloToDone)
{
    RunRequest request = requestOf(oneDevice(2));
    request.options.steps = 2;
    Listener listener;
    const auto outcome = superviseRun(request, {}, listener.sink());
    ASSERT_TRUE(outcome) << describe(outcome.error());
    EXPECT_EQ(listener.types(),
        (std::vector<std::string>{"hello", "load", "warn", "ready", "step", "step", "spans", "done"}));
    const auto direct = runOnCpu(request.plan, request.options);
    ASSERT_TRUE(direct);
    EXPECT_EQ(outcome->losses, direct->losses);
    EXPECT_EQ(outcome->peak, direct->peak);
    EXPECT_EQ(listener.last("step").at("n"), 1);
    EXPECT_EQ(listener.last("spans").at("start").size(), 10U);
    EXPECT_TRUE(listener.ranksAreGone());
}

TEST(Supervisor, TellsEverySpanOfEveryStepOnceWhileItRuns)
{
    RunRequest request = requestOf(oneDevice(2));
    request.options.steps = 3;
    request.liveSpans = true;
    Listener listener;
    ASSERT_TRUE(superviseRun(request, {}, listener.sink()));
    std::map<int, std::vector<std::array<std::int64_t, 3>>> bySteps; // segment, instruction, micro-batch
    std::int64_t last = -1;
    for (const Json &event : listener.events) {
        if (event.at("t") != "live")
            continue;
        for (std::size_t i = 0; i < event.at("step").size(); ++i) {
            const int step = event.at("step").at(i);
            if (bySteps[step].empty())
                last = -1;
            const std::int64_t start = event.at("start").at(i);
            EXPECT_GE(start, last);
            last = start;
            bySteps[step].push_back(
                {event.at("segment").at(i), event.at("instruction").at(i), event.at("micro_batch").at(i)});
        }
    }
    ASSERT_EQ(bySteps.size(), 3U);
    EXPECT_EQ(bySteps[0].size(), 10U);
    EXPECT_EQ(bySteps[0], bySteps[1]);
    EXPECT_EQ(bySteps[0], bySteps[2]);
}

TEST(Supervisor, ComparesWithTheReference)
{
    for (const bool same : {true, false}) {
        RunRequest request = requestOf(oneDevice(2));
        PlanWriter reference = oneDevice(1);
        if (!same) {
            Graph graph = *reference.plan.graph;
            graph.at(reference.tensor("w")).data = floatData({4, 2}, drawn(8, 77));
            reference.plan.graph = std::make_shared<const Graph>(std::move(graph));
        }
        request.reference = std::make_shared<const ExecutionPlan>(reference.plan);
        Listener listener;
        const auto outcome = superviseRun(request, {}, listener.sink());
        ASSERT_TRUE(outcome) << describe(outcome.error());
        ASSERT_TRUE(outcome->check);
        EXPECT_EQ(outcome->check->ok, same);
        EXPECT_EQ(listener.last("check").at("ok"), same);
        EXPECT_EQ(listener.last("done").at("ok"), same);
        if (!same) {
            EXPECT_EQ(outcome->check->firstDifference, request.plan.graph->at(OperatorId{0}).name);
        }
    }
}

TEST(Supervisor, AnErrorOfTheRankIsTheErrorOfTheRun)
{
    RunRequest request = requestOf(oneDevice(1));
    request.options.inputs["x"] = floats({1}, {1});
    Listener listener;
    const auto outcome = superviseRun(request, {}, listener.sink());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(outcome.error().where, "input:x");
    EXPECT_EQ(listener.last("error").at("code"), "invalid-input");
}

TEST(Supervisor, AKilledRankIsReportedWithItsInstruction)
{
    Listener listener;
    std::chrono::steady_clock::time_point killed{};
    listener.react = [&](const Json &event) {
        if (!waits(event) || killed != std::chrono::steady_clock::time_point{})
            return;
        killed = std::chrono::steady_clock::now();
        ::kill(listener.rank(), SIGKILL);
    };
    const RunRequest request = waitingForEver();
    const auto outcome = superviseRun(request, {}, listener.sink());
    EXPECT_LT(std::chrono::steady_clock::now() - killed, std::chrono::seconds{5});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Internal);
    const Json error = listener.last("error");
    EXPECT_EQ(error.at("signal"), SIGKILL);
    EXPECT_EQ(error.at("devices").at(1).at("kind"), "recv");
    EXPECT_EQ(error.at("devices").at(1).at("operator"), request.plan.graph->at(OperatorId{0}).name);
    EXPECT_NE(outcome.error().message.find("device 1 was at recv of"), std::string::npos)
        << outcome.error().message;
}

TEST(Supervisor, AStopEndsTheRankAtOnce)
{
    Listener listener;
    std::stop_source source;
    std::chrono::steady_clock::time_point asked{};
    listener.react = [&](const Json &event) {
        if (waits(event) && source.request_stop())
            asked = std::chrono::steady_clock::now();
    };
    const auto outcome = superviseRun(waitingForEver(), {}, listener.sink(), source.get_token());
    EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds{2});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(listener.last("cancelling").at("stage"), "ask"); // no harder stage was needed
    EXPECT_TRUE(listener.ranksAreGone());
}

TEST(Supervisor, ALineOnTheControlDescriptorCancels)
{
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    Listener listener;
    listener.react = [&](const Json &event) {
        if (waits(event)) {
            EXPECT_EQ(::write(ends[1], "ignored\ncancel\n", 15), 15);
        }
    };
    const auto outcome = superviseRun(waitingForEver(), {.controlDescriptor = ends[0]}, listener.sink());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(Supervisor, SignalsCancel)
{
    Listener listener;
    listener.react = [&](const Json &event) {
        if (waits(event))
            ::raise(SIGINT);
    };
    const auto outcome = superviseRun(waitingForEver(), {.signals = true}, listener.sink());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(listener.last("cancelling").at("why"), "interrupted");
}

TEST(Supervisor, AStoppedRankIsKilledInTheEnd)
{
    Listener listener;
    std::stop_source source;
    listener.react = [&](const Json &event) {
        if (waits(event) && ::kill(listener.rank(), SIGSTOP) == 0) // hears nothing, not even SIGTERM
            source.request_stop();
    };
    const auto outcome = superviseRun(waitingForEver(), {}, listener.sink(), source.get_token());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
    EXPECT_EQ(listener.last("cancelling").at("stage"), "kill");
    EXPECT_TRUE(listener.ranksAreGone());
}

TEST(Supervisor, SilenceIsAStall)
{
    Listener listener;
    std::stop_source source;
    listener.react = [&](const Json &event) {
        if (event.at("t") == "stalled")
            source.request_stop();
    };
    const auto outcome =
        superviseRun(waitingForEver(), {.stallSeconds = 0.3}, listener.sink(), source.get_token());
    ASSERT_FALSE(outcome);
    EXPECT_EQ(listener.last("stalled").at("devices").at(1).at("kind"), "recv");
}

TEST(Supervisor, EventsThatNobodyReadsEndTheRun)
{
    int lines = 0;
    const auto outcome = superviseRun(waitingForEver(), {}, [&](const std::string &) { return ++lines < 3; });
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, ErrorCode::Cancelled);
}
