// Mixtures of experts under data, tensor, expert and pipeline plans: what they compute, and where experts
// lie.

#include "engine/frontend/import_model.h"
#include "engine/frontend/training/training.h"
#include "engine/runtime/devices/box_copy.h"
#include "planloom_paths.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/runtime/like_the_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

namespace planloom {
namespace {

const std::filesystem::path kMixtures =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/frontend/mixtures";

/// The training step of a zoo model or of a file of the importer's tests.
GraphSnapshot mixture(const std::string &name, const std::string &capacity = "1x")
{
    if (isZooSpec(name))
        return trainingStep(name, OperatorKind::SgdStep);
    ImportOptions options;
    options.capacities["*"] = *capacityNamed(capacity);
    const auto forward = importModelFile(kMixtures / name, options);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward, {.optimizer = OperatorKind::SgdStep});
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

constexpr const char *kZooMixture = "zoo:moe?layers=2&hidden=16&heads=2&seq=8&batch=4&vocab=24&experts=4";

constexpr const char *kZooLlama =
    "zoo:llama?layers=2&hidden=16&heads=4&ffn=8&seq=8&batch=4&vocab=24&experts=4&qk_norm=1";

struct MixturePlan {
    const char *model;
    const char *gallery;
    std::int32_t devices;
};

const MixturePlan kMixturePlans[] = {{"picked.pt2", "data-parallel", 4}, {"picked.pt2", "tensor-parallel", 2},
    {"picked.pt2", "expert-parallel", 2}, {"picked.pt2", "expert-parallel:micro-batches=2", 2},
    {"picked.pt2", "expert-parallel", 4}, {"picked.pt2", "pipeline:micro-batches=2", 2},
    {"picked.pt2", "3d:dp=2,ep=2", 4}, {"picked.pt2", "3d:ep=2,tp=2", 4},
    {"picked.pt2", "3d:ep=2,pp=2,micro-batches=2", 4}, {"picked.pt2", "zero3", 4},
    {"sorted.pt2", "expert-parallel", 4}, {"loop_dynamo.onnx", "data-parallel:micro-batches=2", 2},
    {"loop_dynamo.onnx", "expert-parallel", 2}, {"loop_dynamo.onnx", "expert-parallel", 4},
    {"loop.pt2", "expert-parallel:micro-batches=2", 2}, {"loop.pt2", "3d:ep=2,pp=2,micro-batches=2", 4},
    {"loop.pt2", "tensor-parallel", 2}, {"loop.pt2", "3d:dp=2,ep=2", 4},
    {"assigned.pt2", "expert-parallel", 4}, {"assigned.pt2", "data-parallel", 4},
    {"masked_loss.pt2", "data-parallel", 4}, {"masked_loss.pt2", "pipeline:micro-batches=4", 2},
    {"masked_loss.pt2", "expert-parallel", 4}, {kZooMixture, "expert-parallel", 4},
    {kZooMixture, "3d:dp=2,ep=2", 4}, {kZooMixture, "3d:ep=2,pp=2,micro-batches=2", 4},
    {kZooLlama, "data-parallel", 4}, {kZooLlama, "expert-parallel", 4}, {kZooLlama, "tensor-parallel", 2},
    {kZooLlama, "3d:ep=2,pp=2,micro-batches=2", 4}};

class MixturePlans : public testing::TestWithParam<MixturePlan>
{
};

TEST_P(MixturePlans, ComputeWhatTheModelComputes)
{
    const auto graph = mixture(GetParam().model);
    const auto table = galleryTable(GetParam().gallery, graph, GetParam().devices);
    ASSERT_TRUE(table) << describe(table.error());
    expectLikeTheModel(graph, galleryPlan(graph, GetParam().gallery, GetParam().devices));
}

INSTANTIATE_TEST_SUITE_P(Gallery, MixturePlans, testing::ValuesIn(kMixturePlans), [](const auto &one) {
    std::string name = std::string(one.param.model).substr(0, std::string_view(one.param.model).find('?'))
        + "_" + one.param.gallery + "_on_" + std::to_string(one.param.devices);
    std::replace_if(
        name.begin(), name.end(), [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; },
        '_');
    return name;
});

/// Elements of weights that each device keeps.
std::vector<std::int64_t> weightsByDevice(const ExecutionPlan &plan)
{
    std::vector<std::int64_t> elements;
    for (const DeviceProgram &device : plan.devices) {
        std::int64_t sum = 0;
        std::set<std::pair<TensorId, IndexMask>> seen;
        for (const BufferInfo &buffer : device.buffers) {
            if (plan.graph->at(buffer.tensor).role == TensorRole::Weight
                && plan.graph->at(buffer.tensor).name.find("mixture") != std::string::npos
                && plan.graph->at(buffer.tensor).name.find("gate") == std::string::npos
                && seen.emplace(buffer.tensor, buffer.index).second)
                sum += elementCount(buffer.index);
        }
        elements.push_back(sum);
    }
    return elements;
}

TEST(ExpertParallel, KeepsEachExpertOnOneDevice)
{
    for (const char *file : {"picked.pt2", "loop_dynamo.onnx"}) {
        SCOPED_TRACE(file);
        const auto graph = mixture(file);
        const auto whole = weightsByDevice(galleryPlan(graph, "single", 1)).front();
        for (const std::int64_t own : weightsByDevice(galleryPlan(graph, "expert-parallel", 4)))
            EXPECT_EQ(own * 4, whole);
    }
}

TEST(ExpertParallel, IsRefusedWithoutExpertsOrWhereTheyDoNotDivide)
{
    const auto dense = trainingStep("zoo:mlp?layers=2&hidden=12&batch=8");
    const auto none = galleryTable("expert-parallel", dense, 2);
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("no experts"), std::string::npos);
    const auto uneven = galleryTable(
        "3d:ep=3", trainingStep("zoo:moe?layers=2&hidden=16&heads=2&seq=8&batch=3&vocab=24&experts=4"), 3);
    ASSERT_FALSE(uneven);
    EXPECT_NE(uneven.error().message.find("does not divide"), std::string::npos);
}

TEST(MixtureDrops, AreTheSameUnderEveryPlanAndSaid)
{
    const auto graph = mixture("picked.pt2", "1");
    RunOptions options;
    options.randomWeights = true;
    options.steps = 2;
    std::vector<std::int64_t> before;
    for (const auto &[gallery, devices] : {std::pair("single", 1), {"data-parallel", 4},
             {"expert-parallel", 2}, {"pipeline:micro-batches=2", 2}}) {
        SCOPED_TRACE(gallery);
        std::vector<std::string> warnings;
        RunEvents events;
        events.warning = [&](const std::string &text) { warnings.push_back(text); };
        const auto outcome = runOnCpu(galleryPlan(graph, gallery, devices), options, events);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        ASSERT_EQ(outcome->dropped.size(), 2U);
        EXPECT_GT(outcome->dropped[0], 0);
        if (!before.empty()) {
            EXPECT_EQ(outcome->dropped, before);
        }
        before = outcome->dropped;
        EXPECT_TRUE(std::any_of(warnings.begin(), warnings.end(),
            [](const std::string &text) { return text.find("--capacity") != std::string::npos; }));
    }
    expectLikeTheModel(graph, galleryPlan(graph, "expert-parallel", 2));
    const auto enough = runOnCpu(galleryPlan(mixture("picked.pt2", "all"), "single", 1), options);
    ASSERT_TRUE(enough);
    EXPECT_EQ(enough->dropped, (std::vector<std::int64_t>{0, 0}));
}

} // namespace
} // namespace planloom
