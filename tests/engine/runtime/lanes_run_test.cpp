// Stages in lanes, each with a copy of the weights: proven, run, and compared with the model on one device.

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "tests/engine/lowering/sliced_models.h"
#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <ostream>
#include <set>

namespace planloom {
namespace {

struct RunInLanes {
    const char *model;
    const char *rows;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const RunInLanes &run)
{
    return out << run.model << " " << run.rows;
}

/// The stages and lanes that a device runs forward.
std::set<std::pair<std::int32_t, std::int32_t>> lanesOn(const ExecutionPlan &plan, std::size_t device)
{
    std::set<std::pair<std::int32_t, std::int32_t>> found;
    for (const Segment &segment : plan.devices[device].segments)
        if (segment.kind == SegmentKind::Forward && !segment.instructions.empty())
            found.emplace(segment.stage.index, segment.lane);
    return found;
}

class LanesRuns : public testing::TestWithParam<RunInLanes>
{
};

TEST_P(LanesRuns, AreLikeTheModelOnOneDevice)
{
    const RunInLanes &given = GetParam();
    const GraphSnapshot graph = trainingStep(given.model);
    const auto plan = loweredRows(graph, given.rows, given.devices);
    ASSERT_TRUE(plan) << describe(plan.error());
    std::set<std::int32_t> lanes;
    for (std::size_t device = 0; device < plan->devices.size(); ++device)
        for (const auto &[stage, lane] : lanesOn(*plan, device))
            lanes.insert(lane);
    EXPECT_GT(lanes.size(), 1U);
    expectLikeTheModel(graph, *plan);
}

constexpr const char *kGptInLanes = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24";
constexpr const char *kMlpInLanes = "zoo:mlp?layers=3&hidden=12&batch=8";
constexpr const char *kT5InLanes = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=4&vocab=24";
constexpr const char *kSwinInLanes =
    "zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=4";
constexpr const char *kEvoformerInLanes =
    "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=3&residues=4&heads=2&"
    "pair_heads=2&head_width=4";

/// Chimera: each of two devices has one lane of either stage.
#define PLACED_BOTH_WAYS                                                                                     \
    "lanes all : 2\nstage layer:0 : 0\nplace layer:0 : devices 0,1\nstage layer:1 : 1\n"                     \
    "place layer:1 : devices 1,0\n"
#define BOTH_WAYS PLACED_BOTH_WAYS "micro-batches 2\n"
/// The same, with two devices in each lane.
#define BOTH_WAYS_OF_TWO                                                                                     \
    "mesh way=2 tp=2\nlanes all : over way\nmicro-batches 2\nstage layer:0 : 0\nstage layer:1 : 1\n"

const RunInLanes kRunsInLanes[] = {{kMlpInLanes, "lanes all : 2\nplace all : devices 0,1", 2},
    {kMlpInLanes, "lanes all : 4\nplace all : devices 0,1,2,3\nmicro-batches 2", 4},
    {kGptInLanes, BOTH_WAYS "schedule chimera", 2}, {kGptInLanes, BOTH_WAYS "schedule 1f1b", 2},
    {kGptInLanes, BOTH_WAYS "schedule gpipe", 2}, {kGptInLanes, BOTH_WAYS "schedule sequential", 2},
    {kGptInLanes, BOTH_WAYS "schedule chimera\nrecompute layer:* per layer", 2},
    {kGptInLanes, BOTH_WAYS "schedule chimera\nrecompute layer:1 per operator", 2},
    {kGptInLanes, BOTH_WAYS "split-backward all", 2},
    {kGptInLanes, BOTH_WAYS "schedule chimera\noffload all : activations", 2},
    {kGptInLanes, BOTH_WAYS "schedule chimera\nattention all : plain", 2},
    {kGptInLanes, BOTH_WAYS "schedule chimera\nzero1 all by 2", 2},
    {kGptInLanes, BOTH_WAYS "schedule gpipe\nzero2 all by 2", 2},
    {kGptInLanes, BOTH_WAYS "schedule gpipe\nzero3 all by 2", 2},
    {kGptInLanes, BOTH_WAYS "schedule chimera\ncoshard in:h.1.mlp : batch by 2", 2},
    {kGptInLanes, BOTH_WAYS "slice all : sequence by 2\nschedule gpipe", 2},
    {kGptInLanes, BOTH_WAYS "slice all : sequence by 4\nrecompute layer:* per layer\nschedule gpipe", 2},
    {kGptInLanes, BOTH_WAYS "order layer:1 in lane 0 before layer:0 in lane 1", 2},
    {kGptInLanes, BOTH_WAYS "interleave forward stage 0 in lane 0 with backward stage 1 in lane 1 at -1", 2},
    {kGptInLanes,
        "lanes layer:0 : 2\nmicro-batches 2\nstage layer:0 : 0\nplace layer:0 : devices 0,1\n"
        "stage layer:1 : 1\nplace layer:1 : devices 2",
        3},
    {kGptInLanes,
        "lanes layer:1 : 2\nmicro-batches 2\nstage layer:0 : 0\nplace layer:0 : devices 2\n"
        "stage layer:1 : 1\nplace layer:1 : devices 0,1",
        3},
    {kGptInLanes, BOTH_WAYS_OF_TWO "split all : heads over tp\nschedule gpipe", 4},
    {kGptInLanes, BOTH_WAYS_OF_TWO "split all : sequence over tp\nschedule 1f1b", 4},
    {kGptInLanes, BOTH_WAYS_OF_TWO "split all : batch over tp\nzero3 all over tp\nschedule 1f1b", 4},
    {kGptInLanes, BOTH_WAYS_OF_TWO "split all : batch over tp\nzero1 all over way\nschedule 1f1b", 4},
    {kT5InLanes, "lanes all : 2\nplace all : devices 0,1\nmicro-batches 2", 2},
    // Two residual sums and their norms: what the region makes again for a lane, the other lane still has.
    {kT5InLanes,
        "lanes all : 2\nplace all : devices 0,1\ncoshard set{decoder.block.0.self_attention.residual, "
        "decoder.block.0.cross_attention.layer_norm, decoder.block.0.cross_attention.residual, "
        "decoder.block.0.feed_forward.layer_norm} : sequence by 2",
        2},
    {kSwinInLanes, "lanes all : 2\nplace all : devices 0,1\nmicro-batches 2", 2},
    {kEvoformerInLanes, "lanes all : 2\nplace all : devices 0,1", 2}};

INSTANTIATE_TEST_SUITE_P(Plans, LanesRuns, testing::ValuesIn(kRunsInLanes),
    [](const auto &info) { return std::to_string(info.index); });

TEST(LanesRuns, OfGalleryPlansAreLikeTheModel)
{
    for (const char *model : {kGptInLanes, kT5InLanes, kSwinInLanes}) {
        SCOPED_TRACE(model);
        const GraphSnapshot graph = trainingStep(model);
        const auto table = galleryTable("bidirectional:stages=2,micro-batches=2", graph, 2);
        ASSERT_TRUE(table) << describe(table.error());
        const auto completion = completePlan(graph, 2, *table);
        ASSERT_TRUE(completion && !firstError(*completion));
        const auto plan = lower(completion->plan, *clusterNamed("cpu:2"));
        ASSERT_TRUE(plan) << describe(plan.error());
        const std::set<std::pair<std::int32_t, std::int32_t>> first{{0, 0}, {1, 1}};
        EXPECT_EQ(lanesOn(*plan, 0), first);
        expectLikeTheModel(graph, *plan);
    }
}

TEST(LanesRuns, OfOldWeightsAreLikeTheModelOfOldWeights)
{
    const GraphSnapshot graph = trainingStep(kGptInLanes);
    const std::string versions = "weight-versions all : 2\nmicro-batches 4 update every 2\n";
    for (const char *schedule : {"schedule 1f1b", "schedule sequential"}) {
        const auto plan = loweredRows(graph, PLACED_BOTH_WAYS + versions + schedule, 2);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan, versions);
    }
}

/// Operators of both lanes before one of a single lane, under a schedule that takes no lanes: the orders
/// inside blocks are those that the plan was made with, and the schedule is what is refused.
TEST(LanesRuns, OrderSeveralLanesBeforeOne)
{
    GraphBuilder builder{"lanes and none"};
    const TensorId x = builder.input("x", {DataType::Float32, {4, 6}});
    const auto product = [&](TensorId of, const char *name) {
        return builder.one(
            OperatorKind::MatMul, {of, builder.weight(std::string(name) + ".w", {6, 6})}, {}, name);
    };
    const TensorId joined =
        builder.one(OperatorKind::Add, {product(product(x, "a1"), "a2"), product(x, "b")}, {}, "joined");
    const TensorId loss = builder.one(
        OperatorKind::ReduceSumSquare, {joined}, attributesOf({{"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({loss}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto training = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(training) << describe(training.error());
    const auto graph = std::make_shared<const Graph>(*std::move(training));
    const std::string rows = "lanes name:a1 | name:a2 : 2\nplace all : devices 0,1\nmicro-batches 2\n"
                             "order name:a1 | name:a2 in lane 0 before name:b\n";
    const auto plan = loweredRows(graph, rows, 2);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectLikeTheModel(graph, *plan);
    const auto refused = loweredRows(graph, rows + "schedule combined-1f1b\n", 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput) << describe(refused.error());
}

/// Whatever the batch is not in, every lane makes itself: in summands, which the next operator divides.
TEST(LanesRuns, DivideAValueThatIsMadeInSummandsAlike)
{
    GraphBuilder builder("joined");
    const TensorId x = builder.input("x", {DataType::Float32, {2, 4}});
    const TensorId all = builder.reshape(x, {1, 8}, "all");
    const TensorId product =
        builder.one(OperatorKind::Linear, {all, builder.weight("w", {8, 4})}, {}, "product");
    const TensorId rows = builder.reshape(product, {2, 2}, "rows");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {builder.one(OperatorKind::Mul, {rows, rows})},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward);
    ASSERT_TRUE(step) << describe(step.error());
    const auto graph = std::make_shared<const Graph>(*std::move(step));
    const auto plan = loweredRows(graph,
        "mesh x=2 y=2\nlanes all : over x\nsplit name:product : k over y\nsplit name:rows : value over y", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectLikeTheModel(graph, *plan);
}

#undef BOTH_WAYS
#undef PLACED_BOTH_WAYS
#undef BOTH_WAYS_OF_TWO

} // namespace
} // namespace planloom
