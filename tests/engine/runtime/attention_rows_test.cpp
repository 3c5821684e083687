// Plans whose attentions keep their probabilities, or some of them: proven, run, and compared with the model
// on one device.

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/gallery/gallery.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include <gtest/gtest.h>

#include <cctype>
#include <ostream>

namespace planloom {
namespace {

struct AttentionPlan {
    const char *model;
    const char *rows;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const AttentionPlan &plan)
{
    return out << plan.model << " " << plan.rows;
}

GraphSnapshot stepOf(const std::string &model, bool trains = true)
{
    const auto forward = buildZooModel(model);
    EXPECT_TRUE(forward) << describe(forward.error());
    if (!trains)
        return std::make_shared<const Graph>(*forward);
    auto step = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

ExecutionPlan loweredWith(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(devices)));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

class AttentionRows : public testing::TestWithParam<AttentionPlan>
{
};

TEST_P(AttentionRows, GiveAPlanThatIsTheModel)
{
    const AttentionPlan &given = GetParam();
    const GraphSnapshot graph = stepOf(given.model);
    const ExecutionPlan plan = loweredWith(graph, given.rows, given.devices);
    EXPECT_TRUE(std::any_of(plan.attention.begin(), plan.attention.end(),
        [](AttentionMode mode) { return mode == AttentionMode::Plain; }));
    const auto report = verify(plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    const auto outcome = runOnCpu(plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const ExecutionPlan reference = loweredWith(graph, "", 1); // which keeps none
    const auto check = checkAgainst(reference, plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

constexpr const char *kGptModel = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";
constexpr const char *kDropping = "zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=4&vocab=24&dropout=0.2";
constexpr const char *kGrouped = "zoo:llama?layers=1&hidden=32&heads=8&kv_heads=2&seq=8&batch=2&vocab=24";
constexpr const char *kBiased = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=2&vocab=24";

const AttentionPlan kPlans[] = {{kGptModel, "attention all : plain", 1},
    {kGptModel, "attention layer:1 : plain", 1},
    {kGptModel, "mesh x=2\nsplit all : sequence over x\nattention all : plain", 2},
    {kGptModel, "mesh x=2\nsplit all : heads over x\nattention all : plain", 2},
    {kGptModel, "mesh x=2\nsplit all : heads over x\nattention layer:0 : plain\nrecompute layer:* per layer",
        2},
    {kGptModel, "micro-batches 2\nstage layer:1 : 1\nschedule 1f1b\nattention all : plain", 2},
    {kGptModel, "coshard name:*.attention : heads by 2\nattention all : plain", 1},
    {kDropping, "mesh x=2\nsplit all : sequence over x\nattention all : plain", 2},
    {kGrouped, "mesh x=2\nsplit all : heads over x\nattention all : plain", 2},
    {kGrouped, "mesh x=2\nsplit all : sequence over x\nattention all : plain", 2},
    {kBiased, "mesh x=2\nsplit all : batch over x\nattention in:encoder : plain", 2},
    {kBiased, "mesh x=2\nsplit all : heads over x\nattention all : plain", 2}};

INSTANTIATE_TEST_SUITE_P(Modes, AttentionRows, testing::ValuesIn(kPlans), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_";
    for (const char letter : std::string(info.param.rows))
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

/// Buffers for probabilities in a plan.
std::int64_t probabilitiesIn(const ExecutionPlan &plan)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices) {
        for (const BufferInfo &buffer : device.buffers) {
            for (const Operator &op : plan.graph->operators) {
                const std::int32_t slot = probabilitiesOutput(op);
                count += slot >= 0 && op.outputs[static_cast<std::size_t>(slot)] == buffer.tensor ? 1 : 0;
            }
        }
    }
    return count;
}

TEST(AttentionBuffers, OfProbabilitiesAreOnlyThereWhereARowAsksForThem)
{
    const GraphSnapshot graph = stepOf(kGptModel);
    EXPECT_EQ(probabilitiesIn(loweredWith(graph, "", 1)), 0);
    EXPECT_EQ(probabilitiesIn(loweredWith(graph, "attention layer:0 : plain", 1)), 1);
    EXPECT_EQ(probabilitiesIn(loweredWith(graph, "attention all : plain", 1)), 2);
    // Recomputed ones are made twice.
    EXPECT_EQ(probabilitiesIn(loweredWith(graph, "attention all : plain\nrecompute all", 1)), 4);
    // Without a backward pass nobody reads them, but plain attention makes them all the same.
    const GraphSnapshot forward = stepOf(kGptModel, false);
    EXPECT_EQ(probabilitiesIn(loweredWith(forward, "", 1)), 0);
    EXPECT_EQ(probabilitiesIn(loweredWith(forward, "attention all : plain", 1)), 2);
}

} // namespace
} // namespace planloom
