// Random plans on emulated devices of a fake GPU, whose streams run in any order that their events allow,
// make what they make on the CPU; whatever breaks them, nothing is left behind.

#include "engine/cuda/backend/cuda_devices.h"
#include "engine/verify/verify.h"

#include "tests/engine/cuda/array_distance.h"
#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/cuda/planted_fault.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <set>
#include <stop_token>

namespace planloom {
namespace {

OpenDevices devicesOf(const std::shared_ptr<FakeCuda> &cuda)
{
    return emulatedCudaDevices(
        [cuda]() -> Result<std::shared_ptr<CudaFunctions>> { return std::shared_ptr<CudaFunctions>{cuda}; });
}

class FakePlans : public testing::TestWithParam<const char *>
{
};

TEST_P(FakePlans, AreWhatTheyAreOnTheCpu)
{
    std::array<Model, 2> models;
    for (const std::size_t which : {0, 1}) {
        const GraphSnapshot graph =
            trainingStepOf(GetParam(), which == 0 ? OperatorKind::SgdStep : OperatorKind::AdamWStep);
        if (!graph)
            GTEST_SKIP() << "the model set is not beside this checkout";
        models[which] = Model(graph);
    }
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = 2;
    int ran = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 6);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const bool adam = seed % 2 == 1;
        const Model &model = models[adam ? 1 : 0];
        const RandomCase drawn = randomCase(*model.graph, seed,
            {.touched = 0.15,
                .wholeBatches = true,
                .precisions = seed % 4 == 3,
                .weightVersions = seed % 5 == 2});
        const RandomOutcome outcome = carryOut(model, drawn);
        if (!outcome.lowered)
            continue;
        const ExecutionPlan &plan = *outcome.lowered;
        const auto expected = runOnCpu(plan, options);
        ASSERT_TRUE(expected) << describe(expected.error());
        const auto cuda = std::make_shared<FakeCuda>(seed);
        RunOptions onDevices = options;
        onDevices.devices = devicesOf(cuda);
        const auto got = runOnCpu(plan, onDevices);
        ASSERT_TRUE(got) << describe(got.error());
        // AdamW divides by the roots of small numbers, which makes rounding large; narrow types round more.
        const auto any = [&](DataType Precision::*what, DataType type) {
            return std::any_of(plan.precisions.begin(), plan.precisions.end(),
                [&](const Precision &each) { return each.*what == type; });
        };
        const double bound = plan.precisions.empty()         ? (adam ? 2e-2 : 1e-4)
            : any(&Precision::compute, DataType::Float8E4M3) ? 1e-1
                                                             : 5e-2;
        for (std::size_t step = 0; step < expected->losses.size(); ++step)
            EXPECT_NEAR(got->losses[step], expected->losses[step], bound * std::abs(expected->losses[step]));
        EXPECT_LT(distanceOf(got->outputs, expected->outputs), bound);
        EXPECT_LT(distanceOf(got->gradients, expected->gradients), 2 * bound);
        // In float16 the second moment of a small gradient is 0, and the update a quotient of roundings.
        if (!any(&Precision::optimizer, DataType::Float16)) {
            EXPECT_LT(distanceOf(got->weights, expected->weights), bound);
        }
        EXPECT_EQ(cuda->live(), 0U);
        EXPECT_EQ(got->measured.deviceBegin.size(), expected->measured.deviceBegin.size());
        ++ran;
    }
    EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, FakePlans,
    testing::Values("gpt2_tiny", "t5_tiny", "swin_tiny", "bert_tiny",
        "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24",
        "zoo:llama?layers=1&hidden=16&heads=4&kv_heads=2&seq=4&batch=4&vocab=24",
        "zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4"),
    [](const auto &info) {
        std::string name(info.param);
        for (char &c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                c = '_';
        return name;
    });

/// A plan of several devices that communicate.
std::optional<ExecutionPlan> somePlan(std::uint32_t seed)
{
    static const GraphSnapshot kGraph =
        trainingStepOf("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=8&vocab=24", OperatorKind::AdamWStep);
    static const Model kModel(kGraph);
    return carryOut(kModel, randomCase(*kGraph, seed, {.touched = 0.15, .wholeBatches = true})).lowered;
}

TEST(FakeFaults, AreNamedAndLeaveNothingBehind)
{
    RunOptions options;
    options.randomWeights = true;
    options.steps = 2;
    std::mt19937 random(5);
    int failed = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto plan = somePlan(i % 4);
        if (!plan)
            continue;
        const auto fails = failsAsPlanted(*plan, options, i, 20 + static_cast<std::int64_t>(random() % 4000),
            [](const std::shared_ptr<FakeCuda> &cuda) { return devicesOf(cuda); });
        failed += fails ? 1 : 0;
    }
    EXPECT_GT(failed, 20);
}

TEST(FakeFaults, RandomCancelsLeaveNothingBehind)
{
    RunOptions options;
    options.randomWeights = true;
    options.steps = 100'000;
    std::mt19937 random(6);
    for (std::uint32_t i = 0; i < 100; ++i) {
        const auto plan = somePlan(i % 4);
        if (!plan)
            continue;
        const auto cuda = std::make_shared<FakeCuda>(i);
        options.devices = devicesOf(cuda);
        std::stop_source stop;
        std::int64_t left = static_cast<std::int64_t>(random() % 3);
        RunEvents events;
        events.loaded = [&](const std::vector<Bytes> &) {
            if (left == 0)
                stop.request_stop();
        };
        events.stepDone = [&](std::int32_t, double, double) {
            if (--left <= 0)
                stop.request_stop();
        };
        const auto got = runOnCpu(*plan, options, events, stop.get_token());
        options.devices = {};
        ASSERT_FALSE(got);
        EXPECT_EQ(got.error().code, ErrorCode::Cancelled) << describe(got.error());
        EXPECT_EQ(cuda->live(), 0U) << i;
    }
}

TEST(FakeFaults, WhatHangsIsGivenUpAndSaid)
{
    const auto plan = somePlan(1);
    ASSERT_TRUE(plan);
    RunOptions options;
    options.randomWeights = true;
    options.steps = 2;
    int named = 0;
    for (const std::int64_t after : {300, 500, 700, 900, 1100, 1300, 1500}) {
        const auto cuda = std::make_shared<FakeCuda>(3);
        cuda->stuckAfter = after;
        CudaBackendOptions backend;
        backend.deadline = std::chrono::milliseconds{20};
        options.devices = emulatedCudaDevices(
            [cuda]() -> Result<std::shared_ptr<CudaFunctions>> {
                return std::shared_ptr<CudaFunctions>{cuda};
            },
            backend);
        const auto got = runOnCpu(*plan, options);
        if (!got && got.error().message.find("has ended for") != std::string::npos)
            ++named;
        options.devices = {};
        EXPECT_EQ(cuda->live(), 0U);
    }
    EXPECT_GT(named, 3);
}

TEST(FakeFaults, WhatIsMissingIsSaidBefore)
{
    const auto plan = somePlan(0);
    ASSERT_TRUE(plan);
    RunOptions options;
    options.randomWeights = true;
    const auto messageOf = [&](const std::shared_ptr<FakeCuda> &cuda) {
        options.devices = devicesOf(cuda);
        const auto got = runOnCpu(*plan, options);
        return got ? std::string{} : describe(got.error());
    };
    const auto without = std::make_shared<FakeCuda>();
    without->driver = 0;
    EXPECT_NE(messageOf(without).find("no NVIDIA driver"), std::string::npos);
    const auto old = std::make_shared<FakeCuda>();
    old->driver = 12040;
    EXPECT_NE(messageOf(old).find("driver is for CUDA 12.4"), std::string::npos);
    const auto none = std::make_shared<FakeCuda>();
    none->devices = 0;
    EXPECT_NE(messageOf(none).find("cudaGetDeviceCount failed with 100"), std::string::npos);
    const auto small = std::make_shared<FakeCuda>();
    small->freeBytes = 4096;
    EXPECT_NE(messageOf(small).find("MiB free"), std::string::npos);
}

} // namespace
} // namespace planloom
