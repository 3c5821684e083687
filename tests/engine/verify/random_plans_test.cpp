#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/random_plans.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(RandomPlans, AreRefusedWithAReasonOrVerify)
{
    TraitCount count;
    std::int32_t mixed = 0;
    for (const std::string &name : smallModels()) {
        const Model model = trainingStep(name);
        for (std::uint32_t seed = 0; seed < 60; ++seed) {
            SCOPED_TRACE(name + " seed " + std::to_string(seed));
            const RandomCase drawn = randomCase(*model.graph, seed,
                {.wholeBatches = true, .precisions = seed % 2 == 1, .weightVersions = seed % 3 == 1});
            const RandomOutcome outcome = carryOut(model, drawn);
            if (!outcome.lowered) {
                count.refused(outcome.refusedFor);
                continue;
            }
            const auto report = verify(*outcome.lowered);
            ASSERT_TRUE(report) << describe(report.error());
            EXPECT_TRUE(report->ok())
                << report->failure->reason << " on device " << report->failure->device.index << ", segment "
                << report->failure->segment << ", instruction " << report->failure->instruction
                << ", micro-batch " << report->failure->microBatch;
            count.add(traitsOf(drawn, outcome));
            mixed += outcome.lowered->precisions.empty() ? 0 : 1;
        }
    }
    // The generator must not hide behind refusals.
    EXPECT_GT(count.accepted(), count.refusedCount());
    EXPECT_GT(mixed, count.accepted() / 4);
}

} // namespace
} // namespace planloom
