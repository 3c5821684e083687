// Mixtures of experts whose routing depends on data, as PyTorch exports them: values, room, and what is
// refused.

#include "engine/frontend/import_model.h"
#include "engine/frontend/training/autodiff.h"
#include "engine/graph/dimensions/batch.h"
#include "planloom_paths.h"
#include "tests/engine/frontend/npz_for_tests.h"
#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::OnnxFile;
using testing_support::readNpz;

const std::filesystem::path kMixtures =
    std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/engine/frontend/mixtures";

ImportOptions withRoom(const std::string &capacity)
{
    ImportOptions options;
    const auto room = capacityNamed(capacity);
    EXPECT_TRUE(room) << describe(room.error());
    options.capacities["*"] = *room;
    return options;
}

double floatAt(const TensorData &data, std::size_t i)
{
    float value = 0;
    std::memcpy(&value, data.bytes.data() + i * sizeof value, sizeof value);
    return static_cast<double>(value);
}

/// Gives a runner the inputs of PyTorch's run, and the weights that the file keeps apart.
void feed(GraphRunner &runner, const std::map<std::string, TensorData> &values)
{
    const Graph &graph = runner.graph();
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        const Tensor &tensor = graph.tensors[t];
        const TensorId id{static_cast<std::int32_t>(t)};
        if (!tensor.data && tensor.external) {
            const auto data = loadTensorData(tensor);
            ASSERT_TRUE(data) << describe(data.error());
            for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i)
                runner.set(id, i, floatAt(*data, static_cast<std::size_t>(i)));
        }
        if (tensor.role != TensorRole::Input)
            continue;
        const TensorData &given = values.at("in." + tensor.name);
        for (std::int64_t i = 0; i < elementCount(tensor.type.shape); ++i) {
            std::int64_t whole = 0;
            std::memcpy(
                &whole, given.bytes.data() + static_cast<std::size_t>(i) * sizeof whole, sizeof whole);
            runner.set(id, i, static_cast<double>(whole));
        }
    }
}

/// The values of a weight's gradient, in the file's layout where the exporter transposed the weight.
std::vector<double> gradientOf(const GraphRunner &runner, TensorId gradient, const Shape &shape)
{
    const std::vector<double> values = runner.all(gradient);
    const Shape &own = runner.graph().at(gradient).type.shape;
    if (own == shape || own.size() != 2)
        return values;
    std::vector<double> turned(values.size());
    for (std::int64_t i = 0; i < own[0]; ++i) {
        for (std::int64_t j = 0; j < own[1]; ++j)
            turned[static_cast<std::size_t>(j * own[0] + i)] =
                values[static_cast<std::size_t>(i * own[1] + j)];
    }
    return turned;
}

struct MixtureCase {
    const char *file;
    const char *reference;
    bool sharesNorm = false; ///< The exporter merged parameters that are equal.
};

const MixtureCase kMixtureCases[] = {{"loop_torchscript.onnx", "loop"}, {"loop_dynamo.onnx", "loop"},
    {"loop.pt2", "loop"}, {"masks_dynamo.onnx", "masks"}, {"assigned.pt2", "assigned"},
    {"picked_dynamo.onnx", "picked"}, {"picked.pt2", "picked"}, {"sorted.pt2", "sorted"},
    {"masked_loss_torchscript.onnx", "masked_loss"}, {"masked_loss.pt2", "masked_loss"}};

class Mixtures : public testing::TestWithParam<MixtureCase>
{
};

TEST_P(Mixtures, TrainAsInPyTorchWithRoomForAll)
{
    for (const char *room : {"all", "1x"}) { // there are never more than the least room of the expected load
        SCOPED_TRACE(room);
        auto graph = importModelFile(kMixtures / GetParam().file, withRoom(room));
        ASSERT_TRUE(graph) << describe(graph.error());
        const auto done = appendBackward(*graph);
        ASSERT_TRUE(done) << describe(done.error());
        const auto values = readNpz(kMixtures / (std::string(GetParam().reference) + ".npz"));
        GraphRunner runner(*graph);
        feed(runner, values);
        ASSERT_TRUE(runner.run());
        const double loss = floatAt(values.at("out.loss"), 0);
        EXPECT_NEAR(runner.get(graph->loss), loss, 1e-5 * std::abs(loss));
        std::size_t compared = 0;
        for (std::size_t t = 0; t < graph->tensors.size(); ++t) {
            const Tensor &tensor = graph->tensors[t];
            if (tensor.role != TensorRole::Gradient || graph->at(tensor.of).role != TensorRole::Weight)
                continue;
            const auto found = values.find("grad." + graph->at(tensor.of).name);
            if (found == values.end())
                continue; // TorchScript's names of folded weights say nothing
            ++compared;
            const auto own =
                gradientOf(runner, TensorId{static_cast<std::int32_t>(t)}, found->second.type.shape);
            double largest = 1e-3;
            for (std::size_t i = 0; i < own.size(); ++i)
                largest = std::max(largest, std::abs(floatAt(found->second, i)));
            for (std::size_t i = 0; i < own.size(); ++i)
                ASSERT_NEAR(own[i], floatAt(found->second, i), 1e-4 * largest) << found->first << " " << i;
        }
        EXPECT_GE(compared + 4, values.size() - 3); // gate, table or head may have other names
    }
}

TEST_P(Mixtures, RunInMicroBatches)
{
    auto graph = importModelFile(kMixtures / GetParam().file);
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_TRUE(appendBackward(*graph));
    const BatchInfo batch = analyseBatch(*graph);
    EXPECT_EQ(batch.size, 4);
    EXPECT_EQ(batch.mostMicroBatches, 4) << batch.limitedBy;
}

INSTANTIATE_TEST_SUITE_P(Files, Mixtures, testing::ValuesIn(kMixtureCases), [](const auto &one) {
    std::string name = one.param.file;
    std::replace(name.begin(), name.end(), '.', '_');
    return name;
});

const Operator *firstOf(const Graph &graph, OperatorKind kind)
{
    const auto found = std::find_if(graph.operators.begin(), graph.operators.end(),
        [kind](const Operator &op) { return op.kind == kind; });
    return found == graph.operators.end() ? nullptr : &*found;
}

TEST(MixtureRoom, IsOfEverySampleAndWhatWasAskedFor)
{
    // 6 tokens a sample, of which each goes to 2 of 4 experts.
    std::string places;
    for (const auto &[capacity, columns] : {std::pair("1", 4), {"2", 8}, {"all", 24}}) {
        const auto picked = importModelFile(kMixtures / "picked.pt2", withRoom(capacity));
        ASSERT_TRUE(picked) << describe(picked.error());
        const Operator *found = firstOf(*picked, OperatorKind::NonZero);
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(found->attributes.integer("capacity"), columns) << capacity;
        places = found->name;
        EXPECT_EQ(found->attributes.integer("groups"), 4);
    }
    const auto narrow = importModelFile(kMixtures / "loop.pt2", withRoom("1"));
    ASSERT_TRUE(narrow);
    EXPECT_EQ(firstOf(*narrow, OperatorKind::NonZero)->attributes.integer("capacity"), 4);
    const auto said = std::any_of(narrow->notes.begin(), narrow->notes.end(),
        [](const std::string &note) { return note.find("--capacity") != std::string::npos; });
    EXPECT_TRUE(said);

    ImportOptions own = withRoom("all");
    own.capacities[places] = *capacityNamed("2");
    const auto named = importModelFile(kMixtures / "picked.pt2", own);
    ASSERT_TRUE(named) << describe(named.error());
    EXPECT_EQ(firstOf(*named, OperatorKind::NonZero)->attributes.integer("capacity"), 8);

    ImportOptions one;
    one.capacities["nobody"] = Capacity{};
    const auto unknown = importModelFile(kMixtures / "loop.pt2", one);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().where, "--capacity");
}

/// A router of 1024 tokens in each of two samples, of which each goes to 2 of 8 experts; `mask` makes "mask"
/// of "choice" [tokens 2], and rows are picked along dimension `axis` of it.
std::int64_t roomOfExpert(const std::function<void(OnnxFile &)> &mask, std::int64_t axis)
{
    OnnxFile file;
    file.input("x", {2, 1024, 8}).list("flat", {2048, 8}).list("k", {2});
    file.node("Reshape", {"x", "flat"}, {"tokens"});
    file.node("TopK", {"tokens", "k"}, {"best", "choice"});
    mask(file);
    file.node("NonZero", {"mask"}, {"places"}, "choose");
    *file.graph().add_initializer() = OnnxFile::integers("axis", {}, {axis});
    file.node("Gather", {"places", "axis"}, {"token"}).set("axis", 0);
    file.node("Gather", {"tokens", "token"}, {"rows"}).set("axis", 0);
    file.node("ReduceSum", {"rows"}, {"y"}).set("keepdims", 0);
    file.output("y");
    const auto graph = importOnnxBytes(file.bytes(), {});
    EXPECT_TRUE(graph) << describe(graph.error());
    const Operator *found = graph ? firstOf(*graph, OperatorKind::NonZero) : nullptr;
    EXPECT_TRUE(found != nullptr && found->attributes.integer("groups") == 2);
    return found == nullptr ? 0 : found->attributes.integer("capacity") / 2;
}

TEST(MixtureRoom, IsTheExpectedLoadOfWhatRoutersChoose)
{
    const auto oneHot = [](OnnxFile &file) {
        *file.graph().add_initializer() = OnnxFile::integers("depth", {}, {8});
        *file.graph().add_initializer() = OnnxFile::integers("expert", {}, {3});
        file.list("values", {0, 1});
        file.node("OneHot", {"choice", "depth", "values"}, {"all"});
        file.node("Transpose", {"all"}, {"turned"}).set("perm", std::vector<std::int64_t>{2, 1, 0});
        file.node("Gather", {"turned", "expert"}, {"mask"}).set("axis", 0);
    };
    const auto equal = [](OnnxFile &file) {
        *file.graph().add_initializer() = OnnxFile::integers("expert", {}, {3});
        file.node("Equal", {"choice", "expert"}, {"mask"});
    };
    const auto any = [](OnnxFile &file) {
        *file.graph().add_initializer() = OnnxFile::integers("expert", {}, {3});
        *file.graph().add_initializer() = OnnxFile::integers("none", {}, {0});
        file.node("Equal", {"choice", "expert"}, {"hit"});
        file.node("Cast", {"hit"}, {"ones"}).set("to", OnnxFile::kInt64);
        file.list("last", {1});
        file.node("ReduceSum", {"ones", "last"}, {"count"}).set("keepdims", 0);
        file.node("Greater", {"count", "none"}, {"mask"});
    };
    EXPECT_EQ(roomOfExpert(oneHot, 1), 256);
    EXPECT_EQ(roomOfExpert(equal, 0), 256);
    EXPECT_EQ(roomOfExpert(any, 0), 256);
    const auto unknown = [](OnnxFile &file) {
        *file.graph().add_initializer() = OnnxFile::floats("least", {}, {0.5F});
        file.node("Greater", {"best", "least"}, {"mask"});
    };
    EXPECT_EQ(roomOfExpert(unknown, 0), 2048);
}

TEST(MixtureRoom, IsReadAndWritten)
{
    for (const char *text : {"1x", "1.25x", "128", "all"}) {
        const auto capacity = capacityNamed(text);
        ASSERT_TRUE(capacity) << text;
        EXPECT_EQ(toString(*capacity), text);
    }
    for (const char *text : {"", "x", "0", "-1", "1.5", "0x", "nanx", "1e9x", "all of them"})
        EXPECT_FALSE(capacityNamed(text)) << text;
    EXPECT_EQ(roomOf(*capacityNamed("1x"), 300.2, 4096), 301);
    EXPECT_EQ(roomOf(*capacityNamed("1.25x"), 400, 4096), 500);
    EXPECT_EQ(roomOf(*capacityNamed("1x"), 3, 4096), 64);
    EXPECT_EQ(roomOf(*capacityNamed("1x"), 3, 40), 40);
    EXPECT_EQ(roomOf(*capacityNamed("128"), 3, 4096), 128);
    EXPECT_EQ(roomOf(*capacityNamed("all"), 3, 4096), 4096);
}

TEST(Mixtures, WhosePicksAreWeightsBecomeProductsByExpert)
{
    for (const char *file : {"picked.pt2", "sorted.pt2"}) {
        SCOPED_TRACE(file);
        const auto graph = importModelFile(kMixtures / file);
        ASSERT_TRUE(graph) << describe(graph.error());
        int products = 0;
        for (const Operator &op : graph->operators) {
            EXPECT_FALSE(op.kind == OperatorKind::TopK && graph->at(op.inputs[0]).type.shape.size() == 1)
                << "sorts";
            products += op.kind == OperatorKind::Einsum ? 1 : 0;
            for (const TensorId id : op.outputs) {
                const Shape &shape = graph->at(id).type.shape;
                EXPECT_FALSE(shape.size() == 3 && shape[0] == 48 && shape[1] > 1 && shape[2] > 1)
                    << op.name << " copies weights for every row";
            }
        }
        EXPECT_EQ(products, 2);
    }
}

/// x [4 6] and a mask of its rows; `more` continues from the rows that are chosen, "rows" [n 6].
OnnxFile chosenRows(const std::function<void(OnnxFile &)> &more)
{
    OnnxFile file;
    file.input("x", {4, 6}).input("keep", {4}, OnnxFile::kBool);
    file.node("NonZero", {"keep"}, {"places"}, "choose");
    file.node("Transpose", {"places"}, {"tuples"});
    file.node("GatherND", {"x", "tuples"}, {"rows"});
    more(file);
    return file;
}

std::string rowsRefusal(OnnxFile &file)
{
    const auto graph = importOnnxBytes(file.bytes(), {});
    return graph ? "" : describe(graph.error());
}

TEST(ChosenRows, AreNotMixedSilently)
{
    auto softmax = chosenRows([](OnnxFile &file) {
        file.node("Softmax", {"rows"}, {"y"}).set("axis", 0);
        file.output("y");
    });
    EXPECT_NE(rowsRefusal(softmax).find("of which data choose how many"), std::string::npos)
        << rowsRefusal(softmax);
    auto counted = chosenRows([](OnnxFile &file) {
        file.node("Size", {"rows"}, {"size"});
        file.node("Cast", {"size"}, {"number"}).set("to", OnnxFile::kFloat);
        file.node("ReduceSum", {"x"}, {"sum"}).set("keepdims", 0);
        file.node("Div", {"sum", "number"}, {"y"});
        file.output("y");
    });
    EXPECT_NE(rowsRefusal(counted).find("how many rows data choose"), std::string::npos)
        << rowsRefusal(counted);
    auto joined = chosenRows([](OnnxFile &file) {
        file.list("flat", {-1});
        file.node("Reshape", {"rows", "flat"}, {"y"});
        file.output("y");
    });
    EXPECT_NE(rowsRefusal(joined).find("joins rows"), std::string::npos) << rowsRefusal(joined);
    auto product = chosenRows([](OnnxFile &file) {
        file.node("Transpose", {"rows"}, {"columns"});
        file.node("MatMul", {"columns", "rows"}, {"y"});
        file.output("y");
    });
    EXPECT_NE(rowsRefusal(product), "");
}

TEST(ChosenRows, WithoutPlaceDoNotSpoilGradients)
{
    auto file = chosenRows([](OnnxFile &norms) {
        norms.weight("w", {6, 6}).weight("zeros", {4, 6}, std::vector<float>(24, 0.0F));
        norms.node("ReduceL2", {"rows"}, {"norm"})
            .set("axes", std::vector<std::int64_t>{1})
            .set("keepdims", 1);
        norms.node("Div", {"rows", "norm"}, {"unit"});
        norms.node("MatMul", {"unit", "w"}, {"made"});
        norms.node("ScatterND", {"zeros", "tuples", "made"}, {"y"}).set("reduction", "add");
        norms.node("ReduceSum", {"y"}, {"loss"}).set("keepdims", 0);
        norms.output("loss");
    });
    auto graph = importOnnxBytes(file.bytes(), {});
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_TRUE(appendBackward(*graph));
    GraphRunner runner(*graph);
    for (std::int64_t i = 0; i < 4; ++i)
        runner.set(runner.find("keep"), i, i == 2 ? 1 : 0);
    ASSERT_TRUE(runner.run());
    int compared = 0;
    for (std::size_t t = 0; t < graph->tensors.size(); ++t) {
        const Tensor &tensor = graph->tensors[t];
        if (tensor.role != TensorRole::Gradient || graph->at(tensor.of).name != "w")
            continue;
        double norm = 0;
        for (std::int64_t i = 0; i < 6; ++i)
            norm += std::pow(runner.get(runner.find("x"), 12 + i), 2);
        for (std::int64_t i = 0; i < 36; ++i, ++compared)
            ASSERT_NEAR(runner.get(TensorId{static_cast<std::int32_t>(t)}, i),
                runner.get(runner.find("x"), 12 + i / 6) / std::sqrt(norm), 1e-5);
    }
    EXPECT_EQ(compared, 36);
}

TEST(ChosenRows, AreCountedInSumsAndMeansAlone)
{
    auto file = chosenRows([](OnnxFile &sums) {
        sums.list("axes", {0});
        sums.weight("one", {6}, {1, 1, 1, 1, 1, 1});
        sums.node("Add", {"rows", "one"}, {"more"}); // rows without place are not zero any more
        sums.node("ReduceSum", {"more", "axes"}, {"sum"}).set("keepdims", 0);
        sums.node("ReduceMean", {"more"}, {"mean"}).set("keepdims", 0);
        sums.output("sum").output("mean");
    });
    const auto graph = importOnnxBytes(file.bytes(), {});
    ASSERT_TRUE(graph) << describe(graph.error());
    GraphRunner runner(*graph);
    const TensorId x = runner.find("x");
    const TensorId keep = runner.find("keep");
    for (std::int64_t i = 0; i < 24; ++i)
        runner.set(x, i, static_cast<double>(i));
    for (const auto &[row, kept] : {std::pair(0, 0), {1, 1}, {2, 0}, {3, 1}})
        runner.set(keep, row, kept);
    ASSERT_TRUE(runner.run());
    EXPECT_EQ(runner.all(graph->outputs[0]), (std::vector<double>{26, 28, 30, 32, 34, 36}));
    EXPECT_DOUBLE_EQ(runner.get(graph->outputs[1]), 15.5);
}

} // namespace
} // namespace planloom
