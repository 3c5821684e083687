#include "widgets/run/run_analysis.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/simulate/simulate.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "widgets/run/run_record.h"
#include "widgets/run/span_errors.h"

#include <gtest/gtest.h>

#include <memory>

using namespace planloom;

namespace {

struct Predicted {
    std::shared_ptr<const ExecutionPlan> plan;
    Timeline timeline;
};

Predicted predictedOf(const char *gallery, std::int32_t devices)
{
    auto forward = buildZooModel("zoo:mlp?layers=2&hidden=64&batch=16");
    auto step = buildTrainingStep(*forward, {});
    const auto graph = std::make_shared<const Graph>(*std::move(step));
    auto table = galleryTable(gallery, graph, devices);
    auto completion = completePlan(graph, devices, *table);
    const Cluster cluster = *clusterNamed("cpu:" + std::to_string(devices));
    auto lowered = lower(completion->plan, cluster);
    Predicted made{std::make_shared<const ExecutionPlan>(*std::move(lowered)), {}};
    made.timeline = *simulate(*made.plan, cluster);
    return made;
}

/// `timeline` with every span of `device` `factor` times as long.
Timeline slowed(Timeline timeline, std::int32_t device, std::int64_t factor)
{
    for (std::size_t row = 0; row < timeline.spans.size(); ++row) {
        if (timeline.spans.device[row] == device)
            timeline.spans.duration[row] *= factor;
    }
    return timeline;
}

/// Long enough for clocks.
Timeline lengthened(Timeline timeline)
{
    for (std::int64_t &duration : timeline.spans.duration)
        duration *= 1000;
    return timeline;
}

} // namespace

TEST(RunAnalysis, NamesTheDeviceThatHoldsTheOthersUp)
{
    const Predicted run = predictedOf("data-parallel", 4);
    const Timeline measured = lengthened(run.timeline);
    EXPECT_EQ(stragglerOf(*run.plan, run.timeline, measured), "") << "all are equally slow";
    const std::string said = stragglerOf(*run.plan, run.timeline, slowed(measured, 2, 3));
    EXPECT_EQ(said.rfind("device 2 holds the others up", 0), 0u) << said;
    EXPECT_NE(said.find("3000.0 times"), std::string::npos) << said;
    EXPECT_EQ(stragglerOf(*run.plan, run.timeline, {}), "") << "nothing has been measured yet";
}

TEST(RunAnalysis, CollectivesAreSortedBySizeAndReachABandwidth)
{
    const Predicted run = predictedOf("data-parallel", 4);
    const auto figures = collectivesBySize(*run.plan, run.timeline, slowed(run.timeline, 0, 2));
    ASSERT_FALSE(figures.empty());
    std::int64_t spans = 0;
    for (std::size_t i = 0; i < figures.size(); ++i) {
        const CollectiveFigures &each = figures[i];
        SCOPED_TRACE(std::string(nameOf(each.kind)) + " " + std::to_string(each.bytes));
        EXPECT_EQ(each.members, 4);
        EXPECT_GT(each.predicted, 0);
        EXPECT_GT(each.measured, each.predicted) << "one of four took twice as long";
        EXPECT_DOUBLE_EQ(each.bandwidth(), static_cast<double>(each.moved) / each.best);
        if (each.kind == InstructionKind::AllReduce) {
            EXPECT_EQ(each.moved, 2 * each.bytes / 4 * 3);
        }
        if (i > 0 && figures[i - 1].kind == each.kind) {
            EXPECT_GT(figures[i - 1].bytes, each.bytes);
        }
        spans += each.count;
    }
    std::int64_t expected = 0;
    for (const DeviceProgram &program : run.plan->devices) {
        for (const ScheduleEntry &entry : program.schedule) {
            for (const Instruction &instruction :
                program.segments[static_cast<std::size_t>(entry.segment)].instructions)
                expected +=
                    isCommunication(instruction.kind) && instruction.kind != InstructionKind::Recv ? 1 : 0;
        }
    }
    EXPECT_EQ(spans, expected);
}

TEST(RunAnalysis, TheMeanIsThatOfEveryInstruction)
{
    const StepSpans first{{{1, 0, 0, 0, 0, 10}, {1, 0, 1, 0, 20, 30}}, {}};
    const StepSpans second{{{2, 0, 0, 0, 2, 20}, {2, 0, 1, 0, 40, 10}}, {{2, 0, 0, 1, 7, 7}}};
    const StepSpans mean = meanOf({&first, &second});
    const StepSpans expected{{{0, 0, 0, 0, 1, 15}, {0, 0, 1, 0, 30, 20}}, {{0, 0, 0, 1, 7, 7}}};
    EXPECT_EQ(mean, expected);
    EXPECT_TRUE(meanOf({}).empty());
}

TEST(RunAnalysis, TheFirstStepIsTheWorstOnlyIfItIsAlone)
{
    EXPECT_EQ(worstStep({9.0}), 0u);
    EXPECT_EQ(worstStep({9.0, 1.0, 3.0, 2.0}), 2u);
    EXPECT_EQ(worstStep({}), 0u);
}

TEST(RunRecordSteps, SpansOfEveryStepAreKeptThoughDevicesGoOnApart)
{
    const Predicted run = predictedOf("data-parallel", 2);
    RunRecord record(run.plan, {.steps = 3}, 0);
    RunEvent event;
    event.type = "live";
    event.device = 0;
    event.spans = {{0, 0, 0, 0, 0, 5}, {1, 0, 0, 0, 0, 6}};
    record.apply(event);
    const auto seen = record.steps().at(0); // someone reads while more comes
    event.device = 1;
    event.spans = {{0, 0, 0, 0, 1, 7}, {7, 0, 0, 0, 0, 1}};
    record.apply(event);
    ASSERT_EQ(record.steps().size(), 2u) << "there is no step 8 of 3";
    EXPECT_EQ((*record.steps()[0])[1].size(), 1u);
    EXPECT_TRUE((*seen)[1].empty()) << "what was read stays as it was";
    EXPECT_EQ((*record.steps()[1])[0].size(), 1u);
}

TEST(SpanErrors, AreTotalsByKindAndTheSpansThatAreFurthestOff)
{
    const Predicted given = predictedOf("data-parallel", 2);
    const Timeline &predicted = given.timeline;
    Timeline measured = slowed(predicted, 1, 2);
    measured.spans.duration[3] += 1'000'000'000;
    const SpanErrors errors = spanErrors(*given.plan, predicted, measured, 4);
    double before = 0;
    double after = 0;
    std::int64_t count = 0;
    for (const SpanError &kind : errors.kinds) {
        EXPECT_EQ(kind.device, -1);
        before += kind.predicted;
        after += kind.measured;
        count += kind.count;
    }
    const auto sum = [](const Timeline &timeline) {
        double seconds = 0;
        for (const std::int64_t duration : timeline.spans.duration)
            seconds += static_cast<double>(duration) * 1e-9;
        return seconds;
    };
    EXPECT_NEAR(before, sum(predicted), 1e-9);
    EXPECT_NEAR(after, sum(measured), 1e-9);
    EXPECT_EQ(count, static_cast<std::int64_t>(measured.spans.size()));
    ASSERT_EQ(errors.worst.size(), 4U);
    EXPECT_NEAR(errors.worst[0].measured - errors.worst[0].predicted, 1, 1e-9);
    EXPECT_EQ(errors.worst[0].device, predicted.spans.device[3]);
    for (std::size_t i = 1; i < errors.worst.size(); ++i) {
        EXPECT_EQ(errors.worst[i].device, 1); // only what was slowed is off
        EXPECT_NEAR(errors.worst[i].measured, 2 * errors.worst[i].predicted, 1e-12);
        EXPECT_LE(errors.worst[i].predicted, errors.worst[i - 1].measured);
    }
    EXPECT_EQ(spanErrors(*given.plan, predicted, predicted, 0).worst.size(), 0U);
}
