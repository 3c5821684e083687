// Steps that run as CUDA graphs do what steps do that are issued, on random plans; what cannot be captured is
// issued, with the reason; whatever fails on the way leaves nothing behind.

#include "engine/cuda/backend/cuda_devices.h"

#include "engine/runtime/devices/memory_plan.h"
#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/cuda/planted_fault.h"
#include "tests/engine/cuda/training_steps.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <stop_token>

namespace planloom {
namespace {

OpenDevices devicesWith(const std::shared_ptr<FakeCuda> &cuda, bool captures)
{
    CudaBackendOptions options;
    options.captures = captures;
    return emulatedCudaDevices(
        [cuda]() -> Result<std::shared_ptr<CudaFunctions>> { return std::shared_ptr<CudaFunctions>{cuda}; },
        options);
}

const Model &modelWith(OperatorKind optimizer)
{
    static const Model kSgd(
        trainingStepOf("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=8&vocab=24", OperatorKind::SgdStep));
    static const Model kAdamW(
        trainingStepOf("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=8&vocab=24", OperatorKind::AdamWStep));
    return optimizer == OperatorKind::SgdStep ? kSgd : kAdamW;
}

std::optional<ExecutionPlan> planOf(std::uint32_t seed)
{
    const Model &model = modelWith(seed % 2 == 0 ? OperatorKind::SgdStep : OperatorKind::AdamWStep);
    return carryOut(model,
        randomCase(*model.graph, seed,
            {.touched = 0.15,
                .wholeBatches = true,
                .precisions = seed % 4 == 3,
                .weightVersions = seed % 5 == 2}))
        .lowered;
}

/// How often each call was made that does something on the device.
std::map<std::string, int> workOf(const FakeCuda &cuda)
{
    std::map<std::string, int> work;
    for (const std::string &call : cuda.calls)
        for (const char *const kind : {"launch ", "multiply ", "fill ", "host "})
            if (call.starts_with(kind) && call != "launch graph")
                ++work[call];
    return work;
}

TEST(StepGraphs, OfRandomPlansMakeWhatIssuedStepsMakeBitForBit)
{
    int captured = 0;
    int ran = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 12);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const auto plan = planOf(seed);
        if (!plan)
            continue;
        RunOptions options = trainingSteps(7);
        RunEvents events;
        if (seed % 3 == 0) // each step is timed
            events.spans = [](DeviceId, const std::vector<LiveSpan> &) {};
        std::array<RunOutcome, 2> outcomes;
        for (const bool captures : {false, true}) {
            const auto cuda = std::make_shared<FakeCuda>(seed);
            options.devices = devicesWith(cuda, captures);
            auto outcome = runOnCpu(*plan, options, events);
            options.devices = {};
            ASSERT_TRUE(outcome) << describe(outcome.error());
            outcomes[captures ? 1 : 0] = *std::move(outcome);
            EXPECT_EQ(cuda->live(), 0U);
            EXPECT_TRUE(captures || cuda->captured == 0);
            captured += cuda->captured;
            if (cuda->captured == 1 && stepCycle(*plan) == 1) {
                EXPECT_EQ(cuda->replayed,
                    4); // of seven, the first (which poisons), the second and the last are issued
            }
        }
        EXPECT_EQ(outcomes[0].losses, outcomes[1].losses);
        expectSameBits(outcomes[0].weights, outcomes[1].weights);
        expectSameBits(outcomes[0].gradients, outcomes[1].gradients);
        ++ran;
    }
    EXPECT_GT(ran, 2);
    EXPECT_GT(captured, ran / 2);
}

TEST(StepGraphs, HoldExactlyTheCallsOfTheirPlan)
{
    for (const std::uint32_t seed : {0U, 1U, 4U, 5U}) {
        const auto plan = planOf(seed);
        if (!plan)
            continue;
        // Of five steps, the third is captured, and the fourth launched as the same graph once more.
        std::map<std::string, int> expected;
        for (const bool captures : {false, true}) {
            RunOptions options = trainingSteps(captures ? 5 : 4);
            const auto cuda = std::make_shared<FakeCuda>(seed);
            cuda->keepsCalls = true;
            options.devices = devicesWith(cuda, captures);
            const auto outcome = runOnCpu(*plan, options);
            ASSERT_TRUE(outcome) << describe(outcome.error());
            if (!captures) {
                expected = workOf(*cuda);
            } else if (cuda->captured > 0) {
                EXPECT_EQ(workOf(*cuda), expected);
            }
        }
    }
}

TEST(StepGraphs, ThatCudaRefusesAreIssuedWithTheReason)
{
    const auto plan = planOf(1);
    ASSERT_TRUE(plan);
    RunOptions options = trainingSteps(6);
    std::array<std::vector<double>, 2> losses;
    std::string warnings;
    RunEvents events;
    events.warning = [&](const std::string &text) { warnings += text + "\n"; };
    for (const bool refuses : {false, true}) {
        const auto cuda = std::make_shared<FakeCuda>(3);
        cuda->captureFails = refuses ? 900 : 0;
        options.devices = devicesWith(cuda, true);
        const auto outcome = runOnCpu(*plan, options, events);
        options.devices = {};
        ASSERT_TRUE(outcome) << describe(outcome.error());
        losses[refuses ? 1 : 0] = outcome->losses;
        EXPECT_EQ(cuda->captured, refuses ? 0 : 1);
        EXPECT_EQ(cuda->live(), 0U);
        EXPECT_EQ(warnings.find("steps are not run as CUDA graphs") != std::string::npos, refuses)
            << warnings;
    }
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_NE(warnings.find("cudaStreamEndCapture failed with 900"), std::string::npos) << warnings;
}

TEST(StepGraphs, OfPlansThatTheHostHelpsWithAreIssuedWithTheReason)
{
    const GraphSnapshot graph =
        trainingStepOf("zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4");
    const Model model(graph);
    int refused = 0;
    for (std::uint32_t seed = 0; seed < 4; ++seed) {
        const auto plan =
            carryOut(model, randomCase(*graph, seed, {.touched = 0.15, .wholeBatches = true})).lowered;
        if (!plan)
            continue;
        const auto cuda = std::make_shared<FakeCuda>(seed);
        RunOptions options = trainingSteps(4);
        options.devices = devicesWith(cuda, true);
        std::string warnings;
        RunEvents events;
        events.warning = [&](const std::string &text) { warnings += text + "\n"; };
        ASSERT_TRUE(runOnCpu(*plan, options, events));
        if (warnings.find("have no CUDA kernel") == std::string::npos)
            continue;
        ++refused;
        EXPECT_EQ(cuda->captured, 0);
        EXPECT_NE(warnings.find("the host computes its operators of type"), std::string::npos) << warnings;
    }
    EXPECT_GT(refused, 0);
}

TEST(StepGraphs, FaultsInAndBehindCapturesAreNamedAndLeaveNothing)
{
    std::mt19937 random(5);
    int failed = 0;
    RunOptions options = trainingSteps(5);
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto plan = planOf(i % 6);
        if (!plan)
            continue;
        const auto fails =
            failsAsPlanted(*plan, options, i, 500 + static_cast<std::int64_t>(random() % 12'000),
                [](const std::shared_ptr<FakeCuda> &cuda) { return devicesWith(cuda, true); });
        failed += fails ? 1 : 0;
    }
    EXPECT_GT(failed, 20);
}

TEST(StepGraphs, CancelledAtAnyStepLeaveNothing)
{
    RunOptions options = trainingSteps(100'000);
    std::mt19937 random(6);
    for (std::uint32_t i = 0; i < 40; ++i) {
        const auto plan = planOf(i % 6);
        if (!plan)
            continue;
        const auto cuda = std::make_shared<FakeCuda>(i);
        options.devices = devicesWith(cuda, true);
        std::stop_source stop;
        const auto last = static_cast<std::int32_t>(random() % 5);
        RunEvents events;
        events.stepDone = [&](std::int32_t step, double, double) {
            if (step >= last)
                stop.request_stop();
        };
        const auto got = runOnCpu(*plan, options, events, stop.get_token());
        options.devices = {};
        ASSERT_FALSE(got);
        EXPECT_EQ(got.error().code, ErrorCode::Cancelled) << describe(got.error());
        EXPECT_EQ(cuda->live(), 0U) << i;
    }
}

} // namespace
} // namespace planloom
