// What replicas repeat is measured, named, and no plan where it is most of the work.

#include "engine/analyse/copied_work.h"

#include "engine/design/make_plan.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Five chosen samples of eight, through products: five are cut by nothing.
ModelSnapshot chosenSamples(std::int64_t chosen)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {8, 64}});
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < chosen; ++i)
        places.push_back(i % 8);
    TensorId y = b.one(OperatorKind::Gather, {x, b.constant("places", integerData({chosen}, places))},
        attributesOf({{"axis", 0}}), "choose");
    for (int layer = 0; layer < 4; ++layer)
        y = b.one(OperatorKind::Linear, {y, b.weight("w" + std::to_string(layer), {64, 64})}, {},
            "layer" + std::to_string(layer));
    const TensorId loss = b.one(OperatorKind::ReduceSum, {y},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", 0}}), "loss");
    auto forward = b.finish({loss}, loss);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward);
    EXPECT_TRUE(graph) << describe(graph.error());
    auto opened = std::make_shared<OpenedModel>();
    static_cast<Model &>(*opened) = Model(std::make_shared<const Graph>(*std::move(graph)));
    return opened;
}

PlanRequest dataParallel(const ModelSnapshot &model)
{
    PlanRequest request;
    request.model = model;
    request.gallery = "data-parallel";
    request.target = {"dgx-a100", {}, 4};
    request.upTo = PlanGrade::Timed;
    return request;
}

TEST(CopiedWork, OfReplicasThatShareNothingIsNoPlan)
{
    PlanRequest request = dataParallel(chosenSamples(5));
    const auto refused = planOf(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::CheckFailed);
    EXPECT_NE(refused.error().message.find("operator 'choose'"), std::string::npos)
        << refused.error().message;
    request.allowsCopies = true;
    const auto allowed = planOf(request);
    ASSERT_TRUE(allowed) << describe(allowed.error());
    const CopiedWork &copied = (*allowed)->copied;
    EXPECT_GT(copied.share, 0.9);
    ASSERT_FALSE(copied.operators.empty());
    EXPECT_NE(copied.operators.front().reason, "");
}

TEST(CopiedWork, IsSmallWhereWhatIsChosenCanBeShared)
{
    const auto answer = planOf(dataParallel(chosenSamples(16)));
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_LT((*answer)->copied.share, 0.5);
}

TEST(CopiedWork, OfOneDeviceIsNone)
{
    PlanRequest request = dataParallel(chosenSamples(5));
    request.gallery = "single";
    const auto answer = planOf(request);
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ((*answer)->copied.share, 0);
    EXPECT_EQ(copiedWords((*answer)->copied, *(*answer)->execution->graph), "");
}

} // namespace
} // namespace planloom
