#include "engine/design/models/model_rows.h"

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
    EXPECT_EQ(why("dim batch = 16\ndim x.0 = 16"),
        "the size of 'batch' is given already, by row 1; change one of the two rows, or switch it off");
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
        return withRows(options, TableDocument(rows), known).dimensions;
    };
    using Sizes = std::map<std::string, std::int64_t>;
    EXPECT_EQ(sizes(""), (Sizes{{"x.0", 4}, {"seq", 8}}));
    EXPECT_EQ(sizes("dim batch = 16\ndim batch = 32"), (Sizes{{"batch", 16}, {"seq", 8}}));
    EXPECT_EQ(sizes("off dim batch = 16\ndim x.0 = 32"), (Sizes{{"batch", 32}, {"seq", 8}}));
    EXPECT_EQ(sizes("dim batch = 128\ndim heads = 2"), (Sizes{{"x.0", 4}, {"seq", 8}})) << "these are errors";
    EXPECT_EQ(withRows({}, TableDocument("dim heads = 2")).dimensions, (Sizes{{"heads", 2}}));
}

/// A mixture whose tokens data route, with room for the expected load.
constexpr const char *kMixture =
    "zoo:llama?layers=1&hidden=16&heads=2&ffn=8&seq=256&batch=2&vocab=24&experts=8&top_k=2";
constexpr const char *kPlaces = "layers.0.mlp.experts.places";

/// The room of each expert in all samples together, of the model as rows have it opened.
std::int64_t roomWith(const std::string &rows)
{
    ModelSource source{kMixture, {}, {}};
    source.options = withRows({}, TableDocument(rows));
    const auto model = openModel(source);
    EXPECT_TRUE(model) << describe(model.error());
    for (const Operator &op : (*model)->graph->operators) {
        if (op.name == kPlaces)
            return op.attributes.integer("capacity");
    }
    return -1;
}

TEST(ModelRows, GiveRoomToWhatDataChoose)
{
    EXPECT_EQ(roomWith(""), 2 * 256 * 2 / 8);
    EXPECT_EQ(roomWith("capacity all = 1.5x"), 2 * 96);
    EXPECT_EQ(roomWith("capacity layers.0.mlp.experts.places = 100"), 2 * 100);
    EXPECT_EQ(roomWith("capacity all = 100\ncapacity layers.0.mlp.experts.places = all"), 2 * 256);
    EXPECT_EQ(roomWith("capacity all = 100\ncapacity all = 120"), 2 * 100);
    EXPECT_EQ(roomWith("off capacity all = 100"), 2 * 64);
}

TEST(ModelRows, AboutRoomsSayWhyTheyDoNotHold)
{
    const auto why = [](const char *model, const std::string &opened, const std::string &rows) {
        PlanRequest request;
        ModelSource source{model, {}, {}};
        source.options = withRows({}, TableDocument(opened));
        const auto open = openModel(source);
        EXPECT_TRUE(open) << describe(open.error());
        request.model = *open;
        request.table = TableDocument(rows);
        request.target = {"cpu:1", {}, 1};
        const auto answer = planOf(request);
        return answer ? std::string() : answer.error().message + "; " + answer.error().advice;
    };
    EXPECT_EQ(why(kMixture, "capacity all = 128", "capacity all = 128"), "");
    EXPECT_EQ(why(kMixture, "", "capacity all = 1x"), "");
    EXPECT_EQ(why(kMixture, "capacity all = 128", "capacity all = 2x"),
        "the model is open with room 128 of 'all': it could not be opened with 2x; choose another room");
    EXPECT_EQ(why(kMixture, "", "capacity router = 2x"),
        "no operator 'router' needs room for what data choose; those that do are 'all', "
        "'layers.0.mlp.experts.places'");
    EXPECT_EQ(why("zoo:mlp?layers=2&hidden=32&batch=8", "", "capacity all = 2x"),
        "no operator 'all' needs room for what data choose; in this model all sizes are known");
    EXPECT_EQ(why("zoo:mlp?layers=2&hidden=32&batch=8", "", "unroll all"),
        "the model has no recurrence (LSTM, GRU, RNN) to unroll; ");
}

/// x [6 4 3] through an LSTM, and one whose gates are clipped.
std::string recurrentFile()
{
    testing_support::OnnxFile file;
    file.input("x", {6, 4, 3});
    for (const char *name : {"first", "second"}) {
        const std::string of = name;
        file.weight(of + ".w", {1, 8, of == "first" ? 3 : 2});
        file.weight(of + ".r", {1, 8, 2});
        auto node = file.node("LSTM", {of == "first" ? "x" : "h", of + ".w", of + ".r"}, {of + "_y"}, name);
        node.set("hidden_size", 2);
        if (of == "second")
            node.set("clip", 3.0F);
        file.node("Squeeze", {of + "_y", "one"}, {of == "first" ? "h" : "z"});
    }
    file.list("one", {1});
    file.node("ReduceMean", {"z"}, {"loss"}).set("keepdims", 0);
    file.output("loss");
    return file.bytes();
}

TEST(ModelRows, UnrollRecurrences)
{
    const auto opened = [](const std::string &rows) {
        ModelSource source{"lstm.onnx", recurrentFile(), {}};
        source.options = withRows({}, TableDocument(rows));
        return openModel(source);
    };
    const auto whole = opened("");
    ASSERT_TRUE(whole) << describe(whole.error());
    const auto &known = *(*whole)->graph;
    ASSERT_EQ(known.recurrences.size(), 2U);
    EXPECT_FALSE(known.recurrences.at("first").isUnrolled);
    EXPECT_EQ(known.recurrences.at("first").problem, "");
    EXPECT_EQ(known.recurrences.at("second").problem, "'second' cannot be unrolled: its gates are clipped");
    for (const char *rows : {"unroll all", "unroll first"}) {
        const auto steps = opened(rows);
        ASSERT_TRUE(steps) << describe(steps.error());
        EXPECT_TRUE((*steps)->graph->recurrences.at("first").isUnrolled);
        EXPECT_FALSE((*steps)->graph->recurrences.at("second").isUnrolled);
    }
    EXPECT_FALSE(opened("unroll second"));
    // Of a model that is known, only what it can follow is asked of it.
    const auto wanted = [&](const char *rows) { return withRows({}, TableDocument(rows), known).unroll; };
    EXPECT_EQ(wanted("unroll second\nunroll first\nunroll third"), (std::set<std::string>{"first"}));
    EXPECT_EQ(wanted("unroll all"), (std::set<std::string>{"*"}));
    EXPECT_EQ(withoutRow(withRows({}, TableDocument("unroll all\nunroll first"), known),
                  Rule{UnrollRule{"all"}}, known)
                  .unroll,
        (std::set<std::string>{"first"}));
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
