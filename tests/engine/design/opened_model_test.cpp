#include "engine/design/models/opened_model.h"

#include "engine/design/make_plan.h"
#include "tests/engine/design/small_model.h"

#include "tests/engine/frontend/onnx_file.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

std::int64_t countOf(const OpenedModel &model, OperatorKind kind)
{
    return std::count_if(model.graph->operators.begin(), model.graph->operators.end(),
        [kind](const Operator &op) { return op.kind == kind; });
}

TEST(OpenModel, MakesATrainingStepOfAZooModel)
{
    const auto opened = openModel({kSmall, {}, {}});
    ASSERT_TRUE(opened) << describe(opened.error());
    const OpenedModel &model = **opened;
    EXPECT_EQ(model.name, "mlp");
    EXPECT_TRUE(model.graph->loss.valid());
    EXPECT_GT(static_cast<std::int64_t>(model.graph->operators.size()), model.forwardOperators);
    EXPECT_TRUE(model.remark.empty());
    EXPECT_TRUE(requireTrainingStep(model));
    // 784 x 32 + 32 and 32 x 10 + 10.
    EXPECT_EQ(model.parameters, 784 * 32 + 32 + 32 * 10 + 10);
    EXPECT_EQ(countOf(model, OperatorKind::AdamWStep), 4);
    ASSERT_TRUE(model.index && model.batch);
    EXPECT_EQ(model.index->snapshot(), model.graph);
}

TEST(OpenModel, TrainsAsItsOptionsSay)
{
    ModelSource source{kSmall, {}, {}};
    source.options.optimizer = Optimizer::Sgd;
    source.options.learningRate = 0.25;
    source.options.weightDecay = 0.5;
    const auto opened = openModel(source);
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_EQ(countOf(**opened, OperatorKind::AdamWStep), 0);
    EXPECT_EQ(countOf(**opened, OperatorKind::SgdStep), 4);
    for (const Operator &op : (*opened)->graph->operators) {
        if (op.kind != OperatorKind::SgdStep)
            continue;
        EXPECT_EQ(op.attributes.real("learning_rate", 0), 0.25);
        EXPECT_EQ(op.attributes.real("weight_decay", 0), 0.5);
    }
    EXPECT_EQ((*opened)->source.options, source.options);

    source.options.learningRate = -1;
    EXPECT_FALSE(openModel(source)) << "wrong options are no remark about the model";
}

TEST(OpenModel, LeavesTrainingOutForInference)
{
    ModelSource source{kSmall, {}, {}};
    source.options.inference = true;
    const auto opened = openModel(source);
    ASSERT_TRUE(opened);
    EXPECT_EQ(static_cast<std::int64_t>((*opened)->graph->operators.size()), (*opened)->forwardOperators);
    EXPECT_TRUE((*opened)->remark.empty()) << "it was wanted so";
    EXPECT_TRUE(requireTrainingStep(**opened));
}

TEST(OpenModel, OpensWhatCannotBePlannedToBeLookedAt)
{
    testing_support::OnnxFile file;
    file.input("x", {2, 3}).output("y").output("loss");
    file.weight("w.weight", {3, 4});
    file.node("MatMul", {"x", "w.weight"}, {"h"}, "product");
    file.node("Mystery", {"h"}, {"y"}, "mystery").proto->set_domain("some.vendor");
    file.node("ReduceMean", {"y"}, {"loss"}, "mean").set("keepdims", 0);
    for (const bool inference : {false, true}) {
        ModelSource source{"mystery.onnx", file.bytes(), {}};
        source.options.inference = inference;
        const auto opened = openModel(source);
        ASSERT_TRUE(opened) << describe(opened.error());
        ASSERT_TRUE((*opened)->planProblem);
        EXPECT_NE((*opened)->planProblem->message.find("some.vendor"), std::string::npos);
        EXPECT_EQ((*opened)->planProblem->where, "operator:mystery");
        EXPECT_EQ((*opened)->graph->operators.size(), 3U);
        EXPECT_FALSE(requireTrainingStep(**opened));
        PlanRequest request;
        request.model = *opened;
        request.target = {"cpu:1", {}, 1};
        request.gallery = "single";
        const auto planned = planOf(request);
        ASSERT_FALSE(planned);
        EXPECT_EQ(planned.error().message, (*opened)->planProblem->message);
    }
    // What is wrong with the file or the options, not with an operator, stays an error.
    ModelSource source{"mystery.onnx", "no model", {}};
    EXPECT_FALSE(openModel(source));
    source.content = file.bytes();
    source.options.dimensions = {{"batch", 2}};
    EXPECT_FALSE(openModel(source));
}

TEST(OpenModel, OpensAModelThatCannotBeTrainedWithARemark)
{
    testing_support::OnnxFile file;
    file.input("x", {4, 4}).output("loss");
    file.node("ReduceSum", {"x"}, {"loss"}).set("keepdims", 0); // no weights: nothing to train
    ModelSource source{"sum.onnx", file.bytes(), {}};
    const auto opened = openModel(source);
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_FALSE((*opened)->remark.empty());
    EXPECT_EQ(static_cast<std::int64_t>((*opened)->graph->operators.size()), (*opened)->forwardOperators);
    const auto required = requireTrainingStep(**opened);
    ASSERT_FALSE(required);
    EXPECT_EQ(required.error().message, (*opened)->remark);

    source.options.inference = true; // as the error advises
    const auto forward = openModel(source);
    ASSERT_TRUE(forward);
    EXPECT_TRUE(requireTrainingStep(**forward));
    EXPECT_TRUE((*forward)->remark.empty());
}

TEST(OpenModel, TakesAModelWithoutALossForItsForwardPass)
{
    testing_support::OnnxFile file;
    file.input("x", {4, 4}).output("y");
    file.node("Relu", {"x"}, {"y"});
    const auto opened = openModel({"relu.onnx", file.bytes(), {}});
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_FALSE((*opened)->remark.empty());
    EXPECT_TRUE(requireTrainingStep(**opened)) << "there is nothing to train, and nobody says there is";
}

TEST(OpenModel, SaysWhatIsWrongWithAFile)
{
    for (const KeepContent keep : {KeepContent::Yes, KeepContent::No}) {
        const auto missing = openModel({"/no/such/model.onnx", {}, {}}, {}, keep);
        ASSERT_FALSE(missing);
        EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
        EXPECT_NE(missing.error().message.find("/no/such/model.onnx"), std::string::npos);
    }
    EXPECT_FALSE(openModel({"zoo:nonsense", {}, {}}));
    const auto rubbish = openModel({"rubbish.onnx", std::string(200, '\xff'), {}});
    ASSERT_FALSE(rubbish);
    EXPECT_EQ(rubbish.error().code, ErrorCode::InvalidInput);
}

TEST(OpenModel, StopsWhenAsked)
{
    std::stop_source stop;
    stop.request_stop();
    const auto opened = openModel({kSmall, {}, {}}, stop.get_token());
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::Cancelled);
}

} // namespace
} // namespace planloom
