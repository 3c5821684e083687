#include "engine/runtime/machine/throughput.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Throughput, AStepIsThreeTimesTheForwardProductsWhateverThePlan)
{
    const GraphSnapshot graph = trainingStepOf("zoo:gpt?layers=2&hidden=32&heads=4&seq=16&batch=8&vocab=64");
    const auto whole = loweredRows(graph, "", 1);
    const auto cut = loweredRows(graph, "mesh dp=2\nsplit all : batch over dp\nmicro-batches 2\n", 2);
    ASSERT_TRUE(whole && cut);
    const StepWork work = stepWorkOf(*whole);
    EXPECT_EQ(work, stepWorkOf(*cut));
    EXPECT_EQ(work.samples, 8);
    EXPECT_EQ(work.tokens, 8 * 16);
    // 2 flops for each weight of a product and each token forward, twice that backward; attention's beside
    // it.
    const double products = 6.0 * 8 * 16 * (2 * 12 * 32 * 32 + 32 * 64);
    EXPECT_GT(work.flops, products);
    EXPECT_LT(work.flops, 2 * products);
}

TEST(Throughput, UtilizationIsAgainstTheFastestKernel)
{
    MachineProfile profile{.cores = 2};
    EXPECT_EQ(fastestRate(profile), 0);
    profile.kernels["a"] = {.flops = 1e9, .seconds = 0.5};
    profile.kernels["b"] = {.flops = 1e9, .seconds = 0.25, .coreSeconds = 0.4}; // waited for a core
    EXPECT_DOUBLE_EQ(fastestRate(profile), 5e9);
    EXPECT_DOUBLE_EQ(modelFlopsUtilization({.flops = 1e9}, 2, 5e9), 0.1);
    EXPECT_EQ(modelFlopsUtilization({.flops = 1e9}, 0, 5e9), 0);
    EXPECT_EQ(modelFlopsUtilization({.flops = 1e9}, 2, 0), 0);
}

} // namespace
} // namespace planloom
