// What a run makes is the same bits every time, on any number of threads.

#include "engine/runtime/run.h"
#include "engine/table/table_text.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

void expectSame(const NamedArrays &got, const NamedArrays &expected)
{
    ASSERT_EQ(got.size(), expected.size());
    for (const auto &[name, array] : expected) {
        ASSERT_TRUE(got.contains(name)) << name;
        EXPECT_TRUE(got.at(name).bytes == array.bytes) << name;
    }
}

void expectSameBits(const ExecutionPlan &plan)
{
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = 2;
    options.threads = 1;
    const auto first = runOnCpu(plan, options);
    ASSERT_TRUE(first) << describe(first.error());
    for (const std::int32_t threads : {1, 2, 3, 3}) {
        SCOPED_TRACE(std::to_string(threads) + " threads");
        options.threads = threads;
        const auto again = runOnCpu(plan, options);
        ASSERT_TRUE(again) << describe(again.error());
        EXPECT_EQ(again->losses, first->losses);
        expectSame(again->outputs, first->outputs);
        expectSame(again->gradients, first->gradients);
        expectSame(again->weights, first->weights);
    }
}

struct SameBits {
    const char *model;
    const char *gallery;
    std::int32_t devices;
    const char *rows = ""; ///< In front of the gallery's.
};

class SameBitsOf : public testing::TestWithParam<SameBits>
{
};

TEST_P(SameBitsOf, OnAnyNumberOfThreads)
{
    const GraphSnapshot graph = trainingStepOf(GetParam().model, OperatorKind::AdamWStep);
    if (!graph)
        GTEST_SKIP() << "the model set is not beside this checkout";
    const auto table = galleryTable(GetParam().gallery, graph, GetParam().devices);
    ASSERT_TRUE(table) << describe(table.error());
    const auto plan = loweredRows(graph, GetParam().rows + print(*table), GetParam().devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectSameBits(*plan);
}

// Large enough that products, norms and losses are cut into pieces.
constexpr const char *kGptInPieces = "zoo:gpt?layers=2&hidden=128&heads=4&seq=64&batch=4&vocab=1024";
constexpr const char *kInBFloat16 = "precision all : bf16\n"; // products of the processor, where it has them
constexpr const char *kLlamaInPieces =
    "zoo:llama?layers=2&hidden=128&heads=4&kv_heads=2&seq=64&batch=4&vocab=1024";

INSTANTIATE_TEST_SUITE_P(Plans, SameBitsOf,
    testing::Values(SameBits{kGptInPieces, "single", 1}, SameBits{kGptInPieces, "data-parallel", 2},
        SameBits{kGptInPieces, "zero2", 4}, SameBits{kGptInPieces, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8},
        SameBits{kLlamaInPieces, "tensor-parallel", 2}, SameBits{"resnet50_tiny", "data-parallel", 2},
        SameBits{"swin_tiny", "single", 1}, SameBits{"t5_tiny", "single", 1},
        SameBits{kGptInPieces, "single", 1, kInBFloat16},
        SameBits{kGptInPieces, "3d:dp=2,tp=2,pp=2,micro-batches=2", 8, kInBFloat16},
        SameBits{"resnet50_tiny", "data-parallel", 2, kInBFloat16}));

} // namespace
} // namespace planloom
