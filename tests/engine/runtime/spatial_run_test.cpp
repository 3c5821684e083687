// Images and volumes cut in space: proven, run, and compared with the model on one device.

#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>

namespace planloom {
namespace {

constexpr const char *kUnet = "zoo:unet3d?levels=3&width=2&volume=8&channels=2&classes=3&batch=2";
constexpr const char *kCosmoFlow = "zoo:cosmoflow?stages=2&width=2&volume=8&channels=2&head=8&batch=2";
constexpr const char *kResNet = "zoo:resnet?depth=18&width=2&image=64&classes=5&batch=2";
/// Of 8 images: norms over fewer elements multiply what rounding leaves by thousands.
constexpr const char *kBottlenecks = "zoo:resnet?depth=50&width=4&image=64&classes=5&batch=8";
constexpr const char *kSwin =
    "zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=1";
constexpr const char *kSwinOfTwo =
    "zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=2";
constexpr const char *kSwinOfFour =
    "zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=4";

struct SpatialRun {
    const char *model;
    const char *gallery;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const SpatialRun &run)
{
    return out << run.model << " " << run.gallery << " on " << run.devices;
}

/// Forward operators of a kind that are cut along an identifier of windows that overlap.
int cutAlongWindows(const ExecutionPlan &plan, OperatorKind kind)
{
    int count = 0;
    for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        const auto &splits = plan.partitions[i].splits;
        count += op.kind == kind && op.direction == Direction::Forward
                && std::any_of(splits.begin(), splits.end(),
                    [&](const Split &split) {
                        return split.kind == SplitKind::Dimension
                            && findWindow(op.annotation, split.dimension);
                    })
            ? 1
            : 0;
    }
    return count;
}

/// Forward attentions that every device has whole.
int wholeAttentions(const ExecutionPlan &plan)
{
    int count = 0;
    for (std::size_t i = 0; i < plan.partitions.size(); ++i) {
        const Operator &op = plan.graph->operators[i];
        count += op.kind == OperatorKind::Attention && op.direction == Direction::Forward
            && std::none_of(plan.partitions[i].splits.begin(), plan.partitions[i].splits.end(),
                [](const Split &split) { return split.kind == SplitKind::Dimension; });
    }
    return count;
}

class SpatialRuns : public testing::TestWithParam<SpatialRun>
{
};

TEST_P(SpatialRuns, AreLikeTheModelOnOneDevice)
{
    const SpatialRun &given = GetParam();
    const GraphSnapshot graph = trainingStep(given.model);
    const auto table = galleryTable(given.gallery, graph, given.devices);
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, given.devices, *table);
    ASSERT_TRUE(completion && !firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(given.devices)));
    ASSERT_TRUE(plan) << describe(plan.error());
    const bool rolls = std::string(given.model).find("swin") != std::string::npos;
    EXPECT_GT(cutAlongWindows(*plan, rolls ? OperatorKind::Concat : OperatorKind::Conv), 0);
    if (given.gallery == std::string("spatial") && given.devices == 2 && rolls) {
        EXPECT_LE(wholeAttentions(*plan), 2); // the last stage has one window
    }
    expectLikeTheModel(
        graph, *plan, plan->microBatches > 1 ? "micro-batches " + std::to_string(plan->microBatches) : "");
}

const SpatialRun kSpatialRuns[] = {{kUnet, "spatial", 2}, {kUnet, "spatial", 4},
    {kUnet, "spatial:depth=2,width=2", 4}, {kUnet, "spatial:dp=2", 4},
    {kUnet, "spatial:depth=2,height=2,width=2", 8}, {kUnet, "spatial:micro-batches=2", 2},
    {kCosmoFlow, "spatial", 2}, {kCosmoFlow, "spatial", 4}, {kCosmoFlow, "spatial:dp=2,height=2", 4},
    {kResNet, "spatial", 2}, {kResNet, "spatial", 4}, {kResNet, "spatial:height=2,width=2", 4},
    {kBottlenecks, "spatial", 2}, {kBottlenecks, "spatial:dp=2", 4}, {kSwin, "spatial", 2},
    {kSwin, "spatial", 4}, {kSwin, "spatial:height=2,width=2", 4}, {kSwinOfTwo, "spatial", 2},
    {kSwinOfTwo, "spatial", 4}, {kSwinOfTwo, "spatial:height=2,width=2", 4}, {kSwinOfTwo, "spatial:dp=2", 4},
    {kSwinOfFour, "spatial", 2}, {kSwinOfFour, "spatial", 4}, {kSwinOfFour, "spatial:dp=2", 4},
    {kSwinOfFour, "spatial:micro-batches=2", 2}};

INSTANTIATE_TEST_SUITE_P(Gallery, SpatialRuns, testing::ValuesIn(kSpatialRuns));

TEST(SpatialRows, MayBeUnevenAndOfSomeOperators)
{
    const GraphSnapshot graph = trainingStep(kResNet);
    for (const char *rows : {"split name:conv1 : h into 13,19\nplace all : devices 0,1",
             "split name:layer1.0.conv1 : h into 1,15\nplace all : devices 0,1",
             "split kind:Conv : w by 2\nplace all : devices 0,1",
             "split kind:MaxPool : h into 5,11\nsplit name:layer2.0.conv1 : w into 2,6\nplace all : devices "
             "0,1",
             "coshard kind:Conv : h by 2",
             "split in:layer2.0 : height by 2\nplace in:layer2.0 : devices 0,1"}) {
        SCOPED_TRACE(rows);
        const auto plan = loweredRows(graph, rows, 2);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
    }
}

TEST(AxialAttention, IsCutAlongSequencesAndResidues)
{
    const GraphSnapshot graph =
        trainingStep("zoo:evoformer?layers=1&msa=8&pair=8&single=6&seqs=4&residues=8&heads=2&"
                     "pair_heads=2&head_width=4&triangle=6");
    for (const std::int32_t devices : {2, 4}) {
        const std::string mesh = "mesh x=" + std::to_string(devices) + "\n";
        const auto plan = loweredRows(graph, mesh + "split all : sequence over x", devices);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
    }
}

TEST(SpatialRows, ThatOverlapAreNoSlices)
{
    const GraphSnapshot graph = trainingStep(kResNet);
    EXPECT_NE(refusalOf(graph, "slice kind:Conv : h by 2").find("overlap"), std::string::npos)
        << refusalOf(graph, "slice kind:Conv : h by 2");
}

} // namespace
} // namespace planloom
