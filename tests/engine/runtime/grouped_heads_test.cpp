// Grouped queries over more devices than there are heads of keys: queries are cut, keys and values copied to
// those that share them, and their gradients summed over these.

#include "engine/frontend/torch/import_pt2.h"
#include "planloom_paths.h"
#include "tests/engine/runtime/like_the_model.h"
#include "tests/engine/runtime/training_plans.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace planloom {
namespace {

std::string llamaOf(int heads, int keyHeads)
{
    return "zoo:llama?layers=2&hidden=" + std::to_string(8 * heads) + "&heads=" + std::to_string(heads)
        + "&kv_heads=" + std::to_string(keyHeads) + "&ffn=48&seq=8&batch=4&vocab=48";
}

/// By weight: which share of it the fullest device holds.
std::map<std::string, double> sharesOfWeights(const ExecutionPlan &plan)
{
    std::map<std::string, double> shares;
    for (const DeviceProgram &device : plan.devices) {
        for (const BufferInfo &buffer : device.buffers) {
            const Tensor &tensor = plan.graph->at(buffer.tensor);
            if (buffer.memory != MemoryKind::Weight || tensor.role != TensorRole::Weight)
                continue;
            double &share = shares[tensor.name];
            share = std::max(share,
                static_cast<double>(elementCount(shapeOf(buffer.index)))
                    / static_cast<double>(elementCount(tensor.type.shape)));
        }
    }
    return shares;
}

struct Shape4 {
    int heads, keyHeads, devices;
};

class GroupedHeads : public testing::TestWithParam<Shape4>
{
};

TEST_P(GroupedHeads, AreCutByTheGalleryAndNoProductStaysWhole)
{
    const auto [heads, keyHeads, devices] = GetParam();
    const std::string model = llamaOf(heads, keyHeads);
    const ExecutionPlan plan = trainingPlanOf(model, "tensor-parallel", devices);
    expectLikeTheModel(plan.graph, plan);
    for (const auto &[name, share] : sharesOfWeights(plan))
        if (name.find("_proj.weight") != std::string::npos) {
            EXPECT_DOUBLE_EQ(share, 1.0 / devices) << name;
        }
}

INSTANTIATE_TEST_SUITE_P(Shapes, GroupedHeads,
    testing::Values(Shape4{8, 2, 4}, Shape4{8, 2, 8}, Shape4{8, 1, 4}, Shape4{4, 2, 4}, Shape4{8, 4, 8},
        Shape4{12, 3, 6}));

/// grouped_heads.pt2 (tests/interop/make_pt2_files.py): eight heads over two or one of keys, which are handed
/// to them by attention itself, by repeating, expanding and broadcasting.
TEST(GroupedHeadPrograms, AreCutByTheGalleryAndNoProductStaysWhole)
{
    const auto file =
        std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/frontend/pt2/grouped_heads.pt2";
    const auto forward = importPt2File(file);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    ASSERT_TRUE(step) << describe(step.error());
    const auto graph = std::make_shared<const Graph>(*std::move(step));
    for (const int devices : {2, 4, 8}) {
        SCOPED_TRACE(devices);
        const auto table = galleryTable("tensor-parallel", graph, devices);
        ASSERT_TRUE(table) << describe(table.error());
        const auto plan = loweredRows(graph, print(*table), devices);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
        const auto shares = sharesOfWeights(*plan);
        for (const auto &[attention, keyHeads] : {std::pair("option", 2), std::pair("repeat", 2),
                 std::pair("expand", 2), std::pair("single", 1), std::pair("broadcast", 1)}) {
            for (const char *product : {".q.weight", ".o.weight"})
                EXPECT_DOUBLE_EQ(shares.at(std::string(attention) + product), 1.0 / devices)
                    << attention << product;
            for (const char *product : {".k.weight", ".v.weight"})
                EXPECT_LE(shares.at(std::string(attention) + product), 1.0 / keyHeads)
                    << attention << product;
        }
    }
}

TEST(GroupedHeadRows, AreCutByMeaning)
{
    const GraphSnapshot graph = trainingStep(llamaOf(8, 2), OperatorKind::SgdStep);
    for (const char *attention : {"", "attention all : plain\n"}) {
        const auto plan =
            loweredRows(graph, std::string("mesh tp=4\nsplit all : heads over tp\n") + attention, 4);
        ASSERT_TRUE(plan) << describe(plan.error());
        expectLikeTheModel(graph, *plan);
        const auto shares = sharesOfWeights(*plan);
        for (const char *name : {"q_proj", "k_proj", "v_proj", "o_proj"})
            EXPECT_DOUBLE_EQ(shares.at(std::string("layers.0.self_attn.") + name + ".weight"), 0.25) << name;
    }
}

TEST(GroupedHeadRows, AreCutOverTwoAxes)
{
    const GraphSnapshot graph = trainingStep(llamaOf(8, 2), OperatorKind::SgdStep);
    const auto plan =
        loweredRows(graph, "mesh a=2 b=2\nsplit kind:Attention : heads over a then heads over b\n", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    expectLikeTheModel(graph, *plan);
}

TEST(GroupedHeadRows, WhatDividesNeitherHeadsNorGroupsIsRefused)
{
    const GraphSnapshot graph = trainingStep(llamaOf(12, 4), OperatorKind::SgdStep);
    EXPECT_FALSE(loweredRows(graph, "mesh tp=6\nsplit kind:Attention : heads over tp\n", 6));
}

} // namespace
} // namespace planloom
