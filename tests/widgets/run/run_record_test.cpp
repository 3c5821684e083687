#include "widgets/run/readiness.h"
#include "widgets/run/run_record.h"

#include "engine/base/result.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/simulate/simulate.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include <nlohmann/json.hpp>

namespace planloom {
namespace {

struct Planned {
    std::shared_ptr<const ExecutionPlan> plan{};
    Timeline predicted{};
};

Planned planned(const char *gallery, std::int32_t devices)
{
    auto forward = buildZooModel("zoo:mlp?layers=2&hidden=16&batch=8");
    EXPECT_TRUE(forward);
    auto step = buildTrainingStep(*forward, {});
    EXPECT_TRUE(step);
    const auto graph = std::make_shared<const Graph>(*std::move(step));
    const auto rows = galleryTable(gallery, graph, devices);
    EXPECT_TRUE(rows) << describe(rows.error());
    const auto completion = completePlan(graph, devices, *rows);
    EXPECT_TRUE(completion && completion->plan.graph);
    const auto cluster = clusterNamed("cpu:" + std::to_string(devices));
    EXPECT_TRUE(cluster);
    auto lowered = lower(completion->plan, *cluster);
    EXPECT_TRUE(lowered);
    Planned result;
    result.plan = std::make_shared<const ExecutionPlan>(*std::move(lowered));
    auto timeline = simulate(*result.plan, *cluster);
    EXPECT_TRUE(timeline);
    result.predicted = *std::move(timeline);
    return result;
}

RunEvent eventOf(const nlohmann::json &json)
{
    return readRunEvent(json.dump());
}

/// A run as its events tell it; the last step is the prediction itself.
RunRecord finishedRun(const Planned &planned)
{
    RunRecord record(planned.plan, {.steps = 2, .check = true}, 0.5);
    record.apply(eventOf(event("load")));
    record.apply(eventOf(event("ready")));
    for (int step = 0; step < 2; ++step)
        record.apply(eventOf(
            {{"v", 1}, {"t", "step"}, {"n", step}, {"loss", 2.5 - step}, {"seconds", 0.25 * (step + 1)}}));
    for (std::size_t d = 0; d < planned.plan->devices.size(); ++d)
        record.apply(eventOf(spansEvent(planned.predicted, static_cast<std::int32_t>(d))));
    record.apply(eventOf(checkEvent({.ok = true, .worstTensor = "loss", .worstError = 1e-7})));
    record.apply(eventOf({{"v", 1}, {"t", "done"}, {"ok", true}, {"peak_bytes", {100, 200}}}));
    record.end({});
    return record;
}

TEST(RunRecord, FollowsTheEventsFromLoadingToDone)
{
    const Planned plan = planned("data-parallel", 2);
    RunRecord record(plan.plan, {.steps = 2, .check = true}, 0.5);
    EXPECT_EQ(record.state, RunState::Preparing);
    record.apply(eventOf(event("load")));
    EXPECT_EQ(record.state, RunState::Loading);
    record.apply(eventOf(event("ready")));
    EXPECT_EQ(record.state, RunState::Running);
    EXPECT_EQ(record.sentence(), "step 1 of 2");
    record = finishedRun(plan);
    EXPECT_EQ(record.state, RunState::Done);
    EXPECT_EQ(record.losses, (std::vector<double>{2.5, 1.5}));
    EXPECT_DOUBLE_EQ(record.measuredStepSeconds(), 0.5) << "the first step warms up";
    EXPECT_EQ(record.sentence(), "done, equal to the unpartitioned model");
    EXPECT_EQ(record.peakBytes, (std::vector<std::int64_t>{100, 200}));
}

TEST(RunRecord, SpansAreSentWithTheirQueuesAndThoseThatThereAreNotAreRefused)
{
    const Planned plan = planned("data-parallel", 2);
    nlohmann::json sent = spansEvent(plan.predicted, 1);
    const auto [begin, end] = rowsOf(plan.predicted, 1, QueueKind::Data);
    ASSERT_LT(begin, end);
    EXPECT_EQ(sent.at("queue").at(begin - plan.predicted.deviceBegin[1]), "data");
    EXPECT_EQ(sent.at("queue").at(0), "compute");
    EXPECT_EQ(eventOf(sent).type, "spans");
    for (const auto &wrong : {nlohmann::json("stream"), nlohmann::json(9), nlohmann::json(nullptr)}) {
        nlohmann::json damaged = sent;
        damaged["queue"][0] = wrong;
        EXPECT_EQ(eventOf(damaged).type, "") << wrong;
        EXPECT_NE(eventOf(damaged).text.find("damaged"), std::string::npos);
    }
    nlohmann::json shorter = sent;
    shorter["queue"].erase(0);
    EXPECT_EQ(eventOf(shorter).type, "");
    nlohmann::json older = sent; // of a run from before there were queues
    older.erase("queue");
    EXPECT_EQ(eventOf(older).type, "spans");
    for (int q = 0; q < kQueueCount; ++q)
        EXPECT_EQ(findQueue(nameOf(static_cast<QueueKind>(q))), static_cast<QueueKind>(q));
    EXPECT_EQ(findQueue("communication"), std::nullopt);
}

TEST(RunRecord, TheReportedStepIsTheTimelineThatWasSent)
{
    const Planned plan = planned("data-parallel", 2);
    RunRecord record = finishedRun(plan);
    const auto reported = record.takeReported();
    ASSERT_TRUE(reported);
    EXPECT_FALSE(record.takeReported()) << "handed over once";
    const Timeline measured = measuredTimelineOf(*plan.plan, *reported);
    EXPECT_EQ(measured.spans.start, plan.predicted.spans.start);
    EXPECT_EQ(measured.spans.duration, plan.predicted.spans.duration);
    EXPECT_EQ(measured.spans.queue, plan.predicted.spans.queue);
    EXPECT_EQ(measured.spans.instruction, plan.predicted.spans.instruction);
    EXPECT_EQ(measured.step, plan.predicted.step);
    ASSERT_EQ(measured.memory.size(), plan.predicted.memory.size());
    EXPECT_EQ(measured.memory[1].time, plan.predicted.memory[1].time);
    EXPECT_EQ(measured.memory[1].peak.count, plan.predicted.memory[1].peak.count);

    const auto again = measuredFromJson(measuredJson(measured), *plan.plan);
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(again->spans.start, measured.spans.start);
    EXPECT_EQ(again->step, measured.step);
    const OperatorStepTimes times = operatorTimes(*plan.plan, plan.predicted, measured);
    EXPECT_EQ(times.predicted, times.measured);
}

TEST(RunRecord, SpansOfAnotherPlanAreRefusedOrLeftOut)
{
    const Planned two = planned("data-parallel", 2);
    const Planned one = planned("single", 1);
    const auto refused = measuredFromJson(measuredJson(two.predicted), *one.plan);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    nlohmann::json events = nlohmann::json::parse(measuredJson(two.predicted));
    events[0]["segment"][0] = 9999;
    events[1]["start"][0] = -5;
    const auto partly = measuredFromJson(events.dump(), *two.plan);
    ASSERT_TRUE(partly);
    EXPECT_EQ(partly->spans.size(), two.predicted.spans.size() - 2);
}

TEST(RunRecord, LiveSpansOfANewStepTakeThePlaceOfTheOldOnes)
{
    const Planned plan = planned("data-parallel", 2);
    RunRecord record(plan.plan, {.steps = 3}, 0);
    const auto live = [&](int device, std::vector<LiveSpan> spans) {
        record.apply(eventOf(liveEvent(device, spans)));
    };
    live(0, {{0, 0, 0, 0, 10, 5}, {0, 0, 1, 0, 15, 5}});
    live(1, {{0, 0, 0, 0, 11, 5}});
    EXPECT_EQ(record.liveSpans(), 3U);
    live(0, {{0, 0, 2, 0, 20, 5}, {1, 0, 0, 0, 1, 5}});
    EXPECT_EQ(record.liveStep(), 1);
    EXPECT_EQ(record.liveSpans(), 1U);
    EXPECT_TRUE(record.live()[1].empty());
    live(7, {{1, 0, 0, 0, 1, 5}}); // no such device
    EXPECT_EQ(record.liveSpans(), 1U);
}

TEST(RunRecord, FailuresNameTheDeviceAndItsInstruction)
{
    const Planned plan = planned("data-parallel", 2);
    RunRecord record(plan.plan, {}, 0);
    record.apply(eventOf(event("ready")));
    record.apply(eventOf({{"v", 1}, {"t", "stalled"}, {"seconds", 10},
        {"text", "device 0 waits at all-reduce of fc1 for device 1: device 1 is at kernel of fc1"},
        {"devices",
            {{{"device", 0}, {"issued", 9}, {"finished", 8}, {"kind", "kernel"}},
                {{"device", 1}, {"issued", 4}, {"finished", 3}, {"kind", "all-reduce"},
                    {"operator", "fc1"}}}}}));
    EXPECT_EQ(record.sentence(),
        "no progress for 10 s: device 0 waits at all-reduce of fc1 for device 1: device 1 is at kernel of "
        "fc1. "
        "Stop the run if it does not go on.");
    nlohmann::json died =
        errorEvent({ErrorCode::Internal, "the rank process was killed by signal 9", {}, {}});
    died["devices"] = {{{"device", 1}, {"step", 2}, {"kind", "send"}}};
    record.apply(eventOf(died));
    record.end({});
    EXPECT_EQ(record.state, RunState::Failed);
    EXPECT_EQ(record.devices[1].kind, "send");
    EXPECT_EQ(record.sentence(), "failed: the rank process was killed by signal 9");
}

TEST(RunRecord, AProcessThatEndsWithoutAWordIsAFailure)
{
    RunRecord record(planned("single", 1).plan, {}, 0);
    record.end({});
    EXPECT_EQ(record.state, RunState::Failed);
    RunRecord stopped(planned("single", 1).plan, {}, 0);
    stopped.cancelling = true;
    stopped.end(Error{ErrorCode::Internal, "status 1", {}, {}});
    EXPECT_EQ(stopped.state, RunState::Stopped);
}

TEST(RunRecord, IsKeptAsJson)
{
    RunRecord record = finishedRun(planned("data-parallel", 2));
    record.losses.push_back(std::nan(""));
    record.warnings = {"one", "zwei \xc3\xa4"};
    const auto again = RunRecord::fromJson(record.toJson());
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(again->state, record.state);
    EXPECT_EQ(again->setup, record.setup);
    EXPECT_EQ(again->stepSeconds, record.stepSeconds);
    EXPECT_TRUE(std::isnan(again->losses.back()));
    EXPECT_EQ(again->warnings, record.warnings);
    ASSERT_TRUE(again->check);
    EXPECT_EQ(again->check->worstTensor, "loss");
    EXPECT_EQ(again->devices.size(), 2U);
    for (const char *bad :
        {"", "[]", "{}", "{\"state\":\"flying\"}", "{\"state\":\"done\",\"step_seconds\":3}",
            "{\"state\":\"done\",\"step_seconds\":[],\"peak_bytes\":[],\"warnings\":[],\"losses\":[],"
            "\"devices\":-4}"})
        EXPECT_FALSE(RunRecord::fromJson(bad)) << bad;
}

TEST(RunRecord, DamagedLinesAreWarningsAndNeverMore)
{
    const Planned plan = planned("data-parallel", 2);
    const std::vector<std::string> lines{spansEvent(plan.predicted, 0).dump(), checkEvent({}).dump(),
        liveEvent(1, {{0, 0, 0, 0, 1, 2}}).dump(),
        R"({"v":1,"t":"progress","devices":[{"device":0,"issued":3}]})",
        R"({"v":1,"t":"done","peak_bytes":[1,2]})"};
    std::mt19937 random(7);
    for (int round = 0; round < 3000; ++round) {
        std::string line = lines[random() % lines.size()];
        for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
            const std::size_t at = random() % line.size();
            if (random() % 2 == 0)
                line[at] = static_cast<char>(random());
            else
                line.erase(at, 1 + random() % 5);
        }
        RunRecord record(plan.plan, {}, 0);
        record.apply(readRunEvent(line));
        record.end({});
        EXPECT_TRUE(isOver(record.state));
    }
    RunRecord record(plan.plan, {}, 0);
    record.apply(readRunEvent("Segmentation fault"));
    ASSERT_EQ(record.warnings.size(), 1U);
    EXPECT_EQ(record.warnings.front(), "the runner wrote a line that is no event: Segmentation fault");
}

TEST(Preflight, SaysWhatKeepsAPlanFromRunning)
{
    const Planned plan = planned("data-parallel", 2);
    const auto fine = preflight(*plan.plan, plan.predicted, true, {}, {std::int64_t{1} << 40, 8, {}});
    EXPECT_TRUE(mayRun(fine));
    const auto crowded = preflight(*plan.plan, plan.predicted, false, {}, {std::int64_t{1} << 40, 1, {}});
    EXPECT_TRUE(mayRun(crowded));
    EXPECT_NE(crowded[1].text.find("take turns"), std::string::npos);
    EXPECT_EQ(crowded[0].level, PreflightItem::Level::Note);
    const auto small = preflight(*plan.plan, plan.predicted, true, {}, {1000, 8, {}});
    EXPECT_FALSE(mayRun(small));
}

/// What cannot run where it was to run is offered to run elsewhere, as far as that is possible.
TEST(Preflight, OffersWhatElseItCanRunOn)
{
    const Planned plan = planned("data-parallel", 2);
    constexpr std::int64_t kPlenty = std::int64_t{1} << 40;
    RunSetup setup;
    setup.check = false;
    const auto offered = [&](RunBackend backend, std::int64_t memory, const std::optional<Probe> &probe) {
        setup.backend = backend;
        return readinessOf(*plan.plan, plan.predicted, true, setup, {memory, 8, probe}).offer;
    };
    Probe gpus;
    EXPECT_EQ(offered(RunBackend::Cuda, kPlenty, gpus), RunBackend::Cpu); // there are none
    EXPECT_EQ(offered(RunBackend::Cuda, 1000, gpus), std::nullopt); // nor is there memory
    EXPECT_EQ(offered(RunBackend::Cuda, kPlenty, std::nullopt), std::nullopt); // it may turn out to fit
    gpus.gpus = {{.index = 0, .name = "H100"}};
    EXPECT_EQ(offered(RunBackend::Cuda, kPlenty, gpus), RunBackend::CudaEmulated);
    EXPECT_EQ(offered(RunBackend::CudaEmulated, kPlenty, gpus), std::nullopt); // it fits
    EXPECT_EQ(offered(RunBackend::Cpu, 1000, gpus), RunBackend::CudaEmulated);
    EXPECT_EQ(offered(RunBackend::Cpu, 1000, std::nullopt), std::nullopt); // nobody has looked
    gpus.gpus.push_back({.index = 1, .name = "H100"});
    EXPECT_EQ(offered(RunBackend::Cpu, 1000, gpus), RunBackend::Cuda);
    EXPECT_EQ(offered(RunBackend::Cpu, kPlenty, gpus), std::nullopt);
}

TEST(Preflight, SaysWhetherGpusFit)
{
    const Planned plan = planned("data-parallel", 2);
    RunSetup setup;
    setup.check = false;
    setup.backend = RunBackend::Cuda;
    EXPECT_TRUE(
        mayRun(preflight(*plan.plan, plan.predicted, true, setup, {1000, 8, {}}))); // not on this memory
    EXPECT_EQ(gpuPreflight(*plan.plan, plan.predicted, setup, {0, 8, {}})->level, PreflightItem::Level::Note);
    Probe probe;
    probe.gpus = {{.index = 0, .name = "H100"}};
    const auto tooFew = gpuPreflight(*plan.plan, plan.predicted, setup, {0, 8, probe});
    ASSERT_TRUE(tooFew);
    EXPECT_EQ(tooFew->level, PreflightItem::Level::Blocked);
    EXPECT_EQ(tooFew->text,
        "The plan is for 2 devices, and this machine has 1 GPU: they can be emulated on one "
        "GPU.");
    setup.backend = RunBackend::CudaEmulated;
    EXPECT_EQ(gpuPreflight(*plan.plan, plan.predicted, setup, {0, 8, probe})->text,
        "2 devices, emulated on GPU 0 (H100).");
    probe.gpus.push_back({.index = 1, .name = "H100"});
    setup.backend = RunBackend::Cuda;
    EXPECT_EQ(
        gpuPreflight(*plan.plan, plan.predicted, setup, {0, 8, probe})->level, PreflightItem::Level::Good);
    setup.backend = RunBackend::Cpu;
    EXPECT_FALSE(gpuPreflight(*plan.plan, plan.predicted, setup, {0, 8, probe}));
    RunRecord record(plan.plan, {}, 0);
    record.setup.backend = RunBackend::CudaEmulated;
    const auto back = RunRecord::fromJson(record.toJson());
    ASSERT_TRUE(back);
    EXPECT_EQ(back->setup.backend, RunBackend::CudaEmulated);
}

} // namespace
} // namespace planloom
