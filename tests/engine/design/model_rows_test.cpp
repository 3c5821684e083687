#include "engine/design/model_rows.h"

#include "engine/design/make_plan.h"
#include "tests/engine/frontend/onnx_file.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// y = relu(x w) of a batch that the file leaves open, and its mean as the loss.
std::string openBatchModel()
{
    testing_support::OnnxFile file;
    file.input("x", {-1, 8});
    file.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param("batch");
    file.weight("w.weight", {8, 4});
    file.node("MatMul", {"x", "w.weight"}, {"h"});
    file.node("Relu", {"h"}, {"y"});
    file.node("ReduceMean", {"y"}, {"loss"}).set("keepdims", 0);
    file.output("loss");
    return file.bytes();
}

ModelSource sourceWith(const std::string &rows)
{
    ModelSource source{"open.onnx", openBatchModel(), {}};
    source.options = withRows({}, TableDocument(rows));
    return source;
}

Result<PlanAnswerSnapshot> planned(const std::string &opened, const std::string &rows)
{
    PlanRequest request;
    TRY(request.model, openModel(sourceWith(opened)));
    request.table = TableDocument(rows);
    request.target = {"cpu:1", {}, 1};
    request.upTo = PlanGrade::Timed;
    return planOf(request);
}

TEST(ModelRows, OpenTheModelWithTheirSizes)
{
    const std::string rows = "dim batch = 16\nmicro-batches 4\n";
    const auto answer = planned(rows, rows);
    ASSERT_TRUE(answer) << describe(answer.error());
    EXPECT_EQ((*answer)->model->batch->size, 16);
    ASSERT_EQ((*answer)->model->graph->dimensions.size(), 1U);
    EXPECT_EQ((*answer)->model->graph->dimensions.front().size, 16);
    // The place names it, too.
    const std::string byPlace = "dim x.0 = 16\n";
    EXPECT_TRUE(planned(byPlace, byPlace));
}

TEST(ModelRows, ThatDoNotHoldSayWhy)
{
    const auto why = [](const std::string &rows) {
        const auto answer = planned("dim batch = 16", rows);
        return answer ? std::string() : answer.error().message + "; " + answer.error().advice;
    };
    EXPECT_EQ(why("dim batch = 8"),
        "the model is open with batch = 16: it could not be opened with 8; choose another size");
    EXPECT_EQ(why("dim heads = 8"),
        "the inputs of the model have no dimension 'heads' to choose; they have 'batch'");
    EXPECT_EQ(why("dim batch = 16\ndim x.0 = 16"), "the size of 'batch' is given already, by row 1; ");
    PlanRequest request;
    const auto fixed = openModel({"zoo:mlp?layers=2&hidden=32&batch=8", {}, {}});
    ASSERT_TRUE(fixed);
    request.model = *fixed;
    request.table = TableDocument("dim batch = 70000");
    request.target = {"cpu:1", {}, 1};
    const auto outside = planOf(request);
    ASSERT_FALSE(outside);
    EXPECT_EQ(outside.error().message, "'batch' may be 1 to 65536, not 70000");
}

TEST(ModelRows, SetSizesOfZooModels)
{
    ModelSource source{"zoo:gpt?layers=1&hidden=32&heads=2&vocab=64&seq=16&batch=2", {}, {}};
    source.options = withRows({}, TableDocument("dim batch = 4\ndim seq = 8\n"));
    const auto model = openModel(source);
    ASSERT_TRUE(model) << describe(model.error());
    EXPECT_EQ((*model)->graph->at((*model)->graph->inputs.front()).type.shape, (Shape{4, 8}));
    source.options.dimensions = {{"layers", 2}};
    const auto refused = openModel(source);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().advice.find("'seq', 'batch'"), std::string::npos) << refused.error().advice;
}

TEST(ModelRows, GoBeforeOptionsAndTheFirstBeforeOthers)
{
    const std::vector<InputDimension> known{
        {.name = "batch", .least = 2, .most = 64, .places = {"x.0"}, .aliases = {"x.0"}}, {.name = "seq"}};
    ModelOptions options;
    options.dimensions = {{"x.0", 4}, {"seq", 8}};
    const auto sizes = [&](const char *rows) {
        return withRows(options, TableDocument(rows), &known).dimensions;
    };
    using Sizes = std::map<std::string, std::int64_t>;
    EXPECT_EQ(sizes(""), (Sizes{{"x.0", 4}, {"seq", 8}}));
    EXPECT_EQ(sizes("dim batch = 16\ndim batch = 32"), (Sizes{{"batch", 16}, {"seq", 8}}));
    EXPECT_EQ(sizes("off dim batch = 16\ndim x.0 = 32"), (Sizes{{"batch", 32}, {"seq", 8}}));
    EXPECT_EQ(sizes("dim batch = 128\ndim heads = 2"), (Sizes{{"x.0", 4}, {"seq", 8}})) << "these are errors";
    EXPECT_EQ(withRows({}, TableDocument("dim heads = 2")).dimensions, (Sizes{{"heads", 2}}));
}

TEST(ModelRows, AreChangedWhereTheyStandAndElseAdded)
{
    const std::vector<InputDimension> known{
        {.name = "batch", .places = {"x.0"}, .aliases = {"x.0"}}, {.name = "seq"}};
    TableDocument table("# mine\noff dim x.0 = 4  # a note\nmesh dp=2\n");
    ASSERT_TRUE(table.apply(sizeRows(table, {{"batch", 16}, {"seq", 8}}, known)));
    EXPECT_EQ(table.text(), "# mine\ndim x.0 = 16  # a note\nmesh dp=2\ndim seq = 8\n");
    EXPECT_TRUE(sizeRows(table, {{"batch", 16}, {"seq", 8}}, known).empty());
    EXPECT_EQ(modelRows(table).text(), "dim x.0 = 16  # a note\ndim seq = 8\n");
}

TEST(ModelRows, SizesComeFromArraysWhereNothingElseSaysThem)
{
    const ModelSource source{"open.onnx", openBatchModel(), {}};
    const auto sizes = withArrays(source, {{"x", {6, 8}}, {"z", {1}}});
    ASSERT_TRUE(sizes) << describe(sizes.error());
    EXPECT_EQ(sizes->dimensions, (std::map<std::string, std::int64_t>{{"batch", 6}}));
    ModelSource chosen = source;
    chosen.options.dimensions = {{"batch", 4}};
    EXPECT_EQ(withArrays(chosen, {{"x", {6, 8}}})->dimensions, chosen.options.dimensions);
}

} // namespace
} // namespace planloom
