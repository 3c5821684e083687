// Random tables of the tiny models: refused with a reason, or proven and run equal to the unpartitioned
// model.

#include "engine/design/models/reference.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/check.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace planloom {
namespace {

struct RandomModel {
    const char *name;
    /// Batch norm: over few values its statistics amplify rounding, from step to step more.
    bool amplifies = false;
};

class RandomPlansRun : public testing::TestWithParam<RandomModel>
{
};

TEST_P(RandomPlansRun, EqualToTheModelOrAreRefused)
{
    std::array<Model, 2> models;
    std::size_t made = 0;
    for (const OperatorKind optimizer : {OperatorKind::SgdStep, OperatorKind::AdamWStep}) {
        const GraphSnapshot graph = trainingStepOf(GetParam().name, optimizer);
        if (!graph)
            GTEST_SKIP() << "the model set is not beside this checkout";
        models[made++] = Model(graph);
    }
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = GetParam().amplifies ? 1 : 2; // what a step leaves behind wrongly shows in the next
    TraitCount count;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 6);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const Model &model = models[GetParam().amplifies ? 0 : seed % 2];
        // Several updates in a step amplify the rounding of narrow optimizer states as batch norm does.
        const RandomCase drawn = randomCase(*model.graph, seed,
            {.touched = 0.15,
                .wholeBatches = true,
                .precisions = seed % 4 == 3 && !GetParam().amplifies,
                .weightVersions = seed % 5 == 2 && seed % 4 != 3 && !GetParam().amplifies});
        SCOPED_TRACE(testing::Message() << drawn.devices << " devices\n" << print(drawn.table));
        const RandomOutcome outcome = carryOut(model, drawn);
        if (!outcome.lowered) {
            count.refused(outcome.refusedFor);
            continue;
        }
        const ExecutionPlan &plan = *outcome.lowered;
        const auto report = verify(plan);
        EXPECT_TRUE(report) << describe(report.error());
        if (!report)
            continue;
        EXPECT_TRUE(report->ok()) << report->failure->reason << " on device " << report->failure->device.index
                                  << ", segment " << report->failure->segment << ", instruction "
                                  << report->failure->instruction;
        if (!report->ok())
            continue;
        const auto got = runOnCpu(plan, options);
        EXPECT_TRUE(got) << describe(got.error());
        const auto reference = referenceOf(plan);
        EXPECT_TRUE(reference) << describe(reference.error());
        if (!got || !reference)
            continue;
        const auto check = checkAgainst(**reference, plan, *got, options);
        EXPECT_TRUE(check) << describe(check.error());
        if (!check)
            continue;
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError << " at "
                               << check->firstDifference;
        count.add(traitsOf(drawn, outcome));
    }
    if (std::getenv("PLANLOOM_RANDOM_PLANS"))
        count.print(GetParam().name);
    EXPECT_GT(count.accepted(), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, RandomPlansRun,
    testing::Values(RandomModel{"gpt2_tiny"}, RandomModel{"t5_tiny"}, RandomModel{"swin_tiny"},
        RandomModel{"evoformer_tiny"}, RandomModel{"bert_tiny"}, RandomModel{"resnet50_tiny", true},
        RandomModel{"zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24"},
        RandomModel{"zoo:llama?layers=1&hidden=16&heads=4&kv_heads=2&seq=4&batch=4&vocab=24"},
        RandomModel{"zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4"},
        RandomModel{"zoo:cosmoflow?stages=2&width=2&volume=8&channels=1&head=4&batch=4"},
        RandomModel{"zoo:unet3d?levels=2&width=2&volume=4&channels=1&classes=3&batch=4", true}),
    [](const auto &info) {
        std::string name(info.param.name);
        for (char &c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                c = '_';
        return name;
    });

} // namespace
} // namespace planloom
