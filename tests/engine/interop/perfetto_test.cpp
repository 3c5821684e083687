#include "engine/interop/perfetto.h"

#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

namespace planloom {
namespace {

/// The names of a device's threads.
std::set<std::string> threadsOf(const nlohmann::json &trace, int device)
{
    std::set<std::string> names;
    for (const auto &event : trace.at("traceEvents"))
        if (event.at("name") == "thread_name" && event.at("pid") == device)
            names.insert(event.at("args").at("name").get<std::string>());
    return names;
}

TEST(WritePerfetto, HasAThreadForEveryQueueThatIsUsed)
{
    auto plan = test::pipelinePlan({.stages = 1, .microBatches = 2, .replicas = 2, .optimizer = true});
    for (DeviceProgram &device : plan.devices)
        for (Segment &segment : device.segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (instruction.group >= 0)
                    instruction.queue = QueueKind::Data;
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    std::ostringstream stream;
    ASSERT_TRUE(writePerfetto(stream, plan, *timeline));
    const auto trace = nlohmann::json::parse(stream.str());
    EXPECT_EQ(threadsOf(trace, 1), (std::set<std::string>{"compute queue", "data queue"}));
    std::map<int, std::string> named;
    for (const auto &event : trace.at("traceEvents"))
        if (event.at("name") == "thread_name" && event.at("pid") == 1)
            named[event.at("tid").get<int>()] = event.at("args").at("name").get<std::string>();
    std::size_t reductions = 0;
    for (const auto &event : trace.at("traceEvents")) {
        if (event.at("ph") != "X" || event.at("pid") != 1)
            continue;
        const bool reduces = event.at("args").at("instruction") == "all-reduce";
        reductions += reduces ? 1 : 0;
        EXPECT_EQ(named.at(event.at("tid").get<int>()), reduces ? "data queue" : "compute queue");
    }
    EXPECT_GT(reductions, 0U);
}

TEST(WritePerfetto, HasASliceForEverySpanAndAnArrowForEverySend)
{
    auto plan = test::pipelinePlan({.stages = 2, .microBatches = 3, .replicas = 2, .optimizer = true});
    Graph renamed = *plan.graph;
    renamed.operators[0].name = "quoted \"\\\n name";
    plan.graph = std::make_shared<const Graph>(renamed);
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    std::ostringstream stream;
    ASSERT_TRUE(writePerfetto(stream, plan, *timeline));
    const auto trace = nlohmann::json::parse(stream.str());
    std::map<std::string, std::size_t> phases;
    std::set<std::string> names, begun, ended;
    double last = 0;
    for (const auto &event : trace.at("traceEvents")) {
        const std::string phase = event.at("ph");
        ++phases[phase];
        if (phase == "X") {
            names.insert(event.at("name").get<std::string>());
            last = std::max(last, event.at("ts").get<double>() + event.at("dur").get<double>());
        }
        if (phase == "s") {
            EXPECT_TRUE(begun.insert(event.at("id").get<std::string>()).second);
        }
        if (phase == "f") {
            EXPECT_TRUE(ended.insert(event.at("id").get<std::string>()).second);
        }
    }
    EXPECT_EQ(phases["X"], timeline->spans.size());
    // A process with its place, and compute, tensor and both pipeline queues with theirs, for each of four
    // devices.
    EXPECT_EQ(phases["M"], 4U * (2 + 4 * 2));
    const std::set<std::string> threads{
        "compute queue", "tensor queue", "pipeline queue", "pipeline-back queue"};
    EXPECT_EQ(threadsOf(trace, 0), threads);
    EXPECT_EQ(threadsOf(trace, 3), threads);
    EXPECT_EQ(begun.size(), 2U * 2 * 3); // Two replicas, there and back, three micro-batches.
    EXPECT_EQ(begun, ended);
    std::size_t points = 0;
    for (const MemoryCurve &curve : timeline->memory)
        points += curve.time.size();
    EXPECT_EQ(phases["C"], points);
    EXPECT_TRUE(names.contains("quoted \"\\\n name"));
    EXPECT_TRUE(names.contains("all-reduce"));
    EXPECT_NEAR(last, static_cast<double>(timeline->step.count()) / 1000, 1e-6);
}

TEST(WritePerfetto, LeavesOutRowsOfAnotherPlan)
{
    const auto large = test::pipelinePlan({.stages = 2, .microBatches = 3});
    const auto small = test::pipelinePlan({});
    const auto timeline = simulate(large, test::clusterOf(large));
    ASSERT_TRUE(timeline);
    std::ostringstream stream;
    ASSERT_TRUE(writePerfetto(stream, small, *timeline));
    EXPECT_TRUE(nlohmann::json::accept(stream.str()));
}

} // namespace
} // namespace planloom
