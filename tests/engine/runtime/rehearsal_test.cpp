// A step as CPU devices would do it, by times that are made up.

#include "engine/runtime/machine/rehearsal.h"

#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/run.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/engine/runtime/training_plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace planloom {
namespace {

constexpr const char *kRehearsedGpt = "zoo:gpt?layers=4&hidden=32&heads=4&seq=16&batch=8&vocab=64";

ExecutionPlan planToRehearse(const std::string &gallery, std::int32_t devices)
{
    return trainingPlanOf(kRehearsedGpt, gallery, devices);
}

/// Every kernel is a millisecond of one core's work, which `threads` threads can share. Nothing else takes
/// time.
MachineProfile madeUpProfile(const ExecutionPlan &plan, std::int32_t cores, double threads)
{
    MachineProfile profile;
    EXPECT_TRUE(calibrate(profile, plan, {.seconds = 60, .repeats = 1}));
    profile.cores = cores;
    profile.taskSeconds = 0;
    profile.exchangeSeconds = 0;
    profile.exchangeRate = 1e18;
    profile.copyRate = 1e18;
    for (auto &[key, kernel] : profile.kernels) {
        kernel.seconds = 1e-3 / threads;
        kernel.coreSeconds = 1e-3;
    }
    return profile;
}

TEST(Rehearsal, CoresDoNoMoreThanTheyCan)
{
    for (const auto &[gallery, devices] :
        {std::pair{"single", 1}, {"data-parallel", 2}, {"tensor-parallel", 4}, {"1f1b:micro-batches=4", 2}}) {
        const ExecutionPlan plan = planToRehearse(gallery, devices);
        double before = 0;
        for (const std::int32_t cores : {1, 2, 8}) {
            SCOPED_TRACE(testing::Message() << gallery << " on " << cores << " cores");
            const auto step = rehearse(plan, madeUpProfile(plan, cores, 1), false);
            ASSERT_TRUE(step) << describe(step.error());
            EXPECT_GE(step->seconds * cores, step->coreSeconds * (1 - 1e-9));
            if (cores == 1) {
                EXPECT_NEAR(step->seconds, step->coreSeconds, 1e-6); // somebody can always go on
            } else {
                EXPECT_LE(step->seconds, before * (1 + 1e-9));
                EXPECT_GE(step->seconds, step->coreSeconds / devices * (1 - 1e-9));
            }
            before = step->seconds;
        }
    }
}

TEST(Rehearsal, ThreadsWithoutAKernelHelpWithAnothers)
{
    const ExecutionPlan one = planToRehearse("single", 1);
    const auto alone = rehearse(one, madeUpProfile(one, 2, 1), true);
    const auto helped = rehearse(one, madeUpProfile(one, 2, 2), true);
    ASSERT_TRUE(alone && helped);
    EXPECT_NEAR(helped->seconds, alone->seconds / 2, 1e-3 * alone->seconds);
    // A pipeline's devices wait for each other; who waits helps, so that no core is idle.
    const ExecutionPlan two = planToRehearse("1f1b:micro-batches=4", 2);
    const auto bubbles = rehearse(two, madeUpProfile(two, 2, 1), true);
    const auto filled = rehearse(two, madeUpProfile(two, 2, 2), true);
    ASSERT_TRUE(bubbles && filled);
    EXPECT_GT(bubbles->seconds, 1.1 * bubbles->coreSeconds / 2);
    EXPECT_NEAR(filled->seconds, filled->coreSeconds / 2, 1e-3 * filled->seconds);
}

TEST(Rehearsal, WhatIsSharedIsDoneOnce)
{
    const ExecutionPlan plan = planToRehearse("data-parallel", 4);
    const MachineProfile profile = madeUpProfile(plan, 1, 1);
    const auto every = rehearse(plan, profile, false);
    const auto once = rehearse(plan, profile, true);
    ASSERT_TRUE(every && once);
    int updates = 0;
    for (const Segment &segment : plan.devices[0].segments)
        for (const Instruction &instruction : segment.instructions)
            updates += instruction.kind == InstructionKind::Kernel
                    && plan.graph->at(instruction.op).direction == Direction::Optimizer
                ? 1
                : 0;
    EXPECT_GE(every->seconds - once->seconds, 3e-3 * updates * (1 - 1e-6)); // three devices do none
}

/// What a run shows of itself, a rehearsal shows too.
TEST(Rehearsal, HasTheSpansAndTheMemoryOfARun)
{
    for (const auto &[gallery, devices] :
        {std::pair{"data-parallel", 2}, {"tensor-parallel", 2}, {"gpipe:micro-batches=4", 2}}) {
        SCOPED_TRACE(gallery);
        const ExecutionPlan plan = planToRehearse(gallery, devices);
        const auto predicted = predictRun(plan, madeUpProfile(plan, 2, 1));
        const auto run = runOnCpu(plan, {.steps = 1, .randomWeights = true});
        ASSERT_TRUE(predicted) << describe(predicted.error());
        ASSERT_TRUE(run) << describe(run.error());
        const auto instructionsOf = [](const Timeline &timeline) {
            std::vector<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>> all;
            for (std::size_t i = 0; i < timeline.spans.size(); ++i)
                all.emplace_back(timeline.spans.device[i], timeline.spans.segment[i],
                    timeline.spans.instruction[i], timeline.spans.microBatch[i]);
            std::sort(all.begin(), all.end());
            return all;
        };
        EXPECT_EQ(instructionsOf(*predicted), instructionsOf(run->measured));
        ASSERT_EQ(predicted->memory.size(), run->peak.size());
        for (std::size_t d = 0; d < run->peak.size(); ++d) {
            const auto peak = static_cast<double>(run->peak[d].count);
            EXPECT_NEAR(static_cast<double>(predicted->memory[d].peak.count), peak, 0.03 * peak);
        }
    }
}

/// Stages on four devices and on one: the collectives of one group wait in several queues, and its members
/// begin them in different orders.
TEST(Rehearsal, CollectivesMeetInTheOrderInWhichTheyAreIssued)
{
    const GraphSnapshot graph = trainingStepOf(
        "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&batch=8&vocab=160", OperatorKind::AdamWStep);
    const auto table = parseTable(
        "micro-batches 2\n"
        "schedule 1f1b\n"
        "split kind:Linear & layer:0-2 : batch by 2 then n by 2\n"
        "split !kind:Linear & forward & layer:0-2 | set{wte, wpe, embeddings} : batch by 2 then replicate by "
        "2\n"
        "split set{position_ids} : replicate by 2 then replicate by 2\n"
        "place layer:0-2 | set{wte, wpe, embeddings, position_ids} : devices 0,1,2,3\n"
        "stage layer:0-2 | set{wte, wpe, embeddings, position_ids} : 0\n"
        "replicate layer:3 | in:loss | set{ln_f, lm_head} : by 1\n"
        "place layer:3 | in:loss | set{ln_f, lm_head} : devices 4\n"
        "stage layer:3 | in:loss | set{ln_f, lm_head} : 1\n"
        "zero1 weight:*\n"
        "precision all : bf16\n");
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 5, *table);
    ASSERT_TRUE(completion) << describe(completion.error());
    const auto plan = lower(completion->plan, *clusterNamed("dgx-h100:5"));
    ASSERT_TRUE(plan) << describe(plan.error());
    // Who is first at which of them depends on what kernels take.
    for (int seed = 0; seed < 8; ++seed) {
        MachineProfile profile = madeUpProfile(*plan, 4, 1);
        profile.exchangeSeconds = 1e-4;
        std::mt19937 random(static_cast<std::uint32_t>(seed));
        for (auto &[key, kernel] : profile.kernels)
            kernel.seconds = kernel.coreSeconds = 1e-6 * static_cast<double>(1 + random() % 1000);
        for (const bool sharesValues : {false, true}) {
            const auto step = rehearse(*plan, profile, sharesValues);
            EXPECT_TRUE(step) << describe(step.error());
        }
    }
}

TEST(Rehearsal, StopsAndSaysWhatCannotGoOn)
{
    const ExecutionPlan plan = planToRehearse("data-parallel", 2);
    const MachineProfile profile = madeUpProfile(plan, 2, 1);
    std::stop_source stop;
    stop.request_stop();
    const auto stopped = rehearse(plan, profile, true, stop.get_token());
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, ErrorCode::Cancelled);
    ExecutionPlan stuck = plan;
    stuck.devices[1].schedule.clear(); // its peer waits for it
    const auto waits = rehearse(stuck, profile, false);
    ASSERT_FALSE(waits);
    EXPECT_EQ(waits.error().code, ErrorCode::InvalidInput);
}

} // namespace
} // namespace planloom
