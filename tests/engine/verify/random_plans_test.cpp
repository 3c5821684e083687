#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/random_tables.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(RandomPlans, AreRefusedWithAReasonOrVerify)
{
    std::int32_t verified = 0;
    std::int32_t refused = 0;
    std::int32_t mixed = 0;
    for (const std::string &model : smallModels()) {
        const GraphSnapshot graph = trainingStep(model);
        for (std::uint32_t seed = 0; seed < 60; ++seed) {
            SCOPED_TRACE(model + " seed " + std::to_string(seed));
            std::mt19937 random(seed);
            const std::int32_t devices = 1 + static_cast<std::int32_t>(seed % 6);
            const ConstraintTable table = randomTable(
                *graph, devices, random, {.precisions = seed % 2 == 1, .weightVersions = seed % 3 == 1});
            const auto completion = completePlan(graph, devices, table);
            ASSERT_TRUE(completion) << describe(completion.error());
            if (const auto error = firstError(*completion)) {
                EXPECT_FALSE(error->message.empty());
                EXPECT_FALSE(error->where.empty());
                ++refused;
                continue;
            }
            const auto plan = lower(completion->plan, *clusterNamed("dgx-a100:8"));
            if (!plan) {
                EXPECT_NE(plan.error().code, ErrorCode::Internal) << describe(plan.error());
                EXPECT_FALSE(plan.error().message.empty());
                ++refused;
                continue;
            }
            const auto report = verify(*plan);
            ASSERT_TRUE(report) << describe(report.error());
            EXPECT_TRUE(report->ok())
                << report->failure->reason << " on device " << report->failure->device.index << ", segment "
                << report->failure->segment << ", instruction " << report->failure->instruction
                << ", micro-batch " << report->failure->microBatch;
            ++verified;
            mixed += plan->precisions.empty() ? 0 : 1;
        }
    }
    // The generator must not hide behind refusals.
    EXPECT_GT(verified, refused);
    EXPECT_GT(mixed, verified / 4);
}

} // namespace
} // namespace planloom
