// Files as exporters and people write them: tensors without elements, sizes written in other ways, weights in
// nodes and among the inputs, names without dots.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/torch/import_pt2.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/pt2_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace planloom {
namespace {

using testing_support::linearMembers;
using testing_support::OnnxFile;

Graph imported(const OnnxFile &file, ImportOptions options = {})
{
    options.fuse = false;
    auto graph = importOnnxBytes(file.bytes(), {}, options);
    EXPECT_TRUE(graph) << describe(graph.error());
    return graph ? *std::move(graph) : Graph{};
}

const Tensor *find(const Graph &graph, const std::string &name)
{
    const auto found = std::find_if(graph.tensors.begin(), graph.tensors.end(),
        [&](const Tensor &tensor) { return tensor.name == name; });
    return found == graph.tensors.end() ? nullptr : &*found;
}

TensorRole roleOf(const Graph &graph, const std::string &name)
{
    const Tensor *tensor = find(graph, name);
    EXPECT_NE(tensor, nullptr) << name;
    return tensor == nullptr ? TensorRole::Activation : tensor->role;
}

bool notes(const Graph &graph, const std::string &text)
{
    return std::any_of(graph.notes.begin(), graph.notes.end(),
        [&](const std::string &note) { return note.find(text) != std::string::npos; });
}

// --- open sizes --------------------------------------------------------------------------------------------

TEST(FilesAsTheyAre, OpenSizesAreWrittenInManyWays)
{
    const auto fileWith = [](const auto &write) {
        OnnxFile file;
        file.input("x", {2, 3}).output("y");
        write(*file.graph()
                   .mutable_input(0)
                   ->mutable_type()
                   ->mutable_tensor_type()
                   ->mutable_shape()
                   ->mutable_dim(0));
        file.node("Relu", {"x"}, {"y"});
        return file;
    };
    using Dim = onnx::TensorShapeProto::Dimension;
    const std::pair<const char *, OnnxFile> files[] = {
        {"-1", fileWith([](Dim &dim) { dim.set_dim_value(-1); })},
        {"0", fileWith([](Dim &dim) { dim.set_dim_value(0); })},
        {"nothing", fileWith([](Dim &dim) { dim.Clear(); })},
        {"an empty name", fileWith([](Dim &dim) { dim.set_dim_param(""); })},
        {"the name -1", fileWith([](Dim &dim) { dim.set_dim_param("-1"); })},
        {"the name ?", fileWith([](Dim &dim) { dim.set_dim_param("?"); })},
        {"the name None", fileWith([](Dim &dim) { dim.set_dim_param("None"); })}};
    for (const auto &[how, file] : files) {
        SCOPED_TRACE(how);
        const auto open = onnxDimensions(file.bytes(), {});
        ASSERT_TRUE(open) << describe(open.error());
        ASSERT_EQ(open->size(), 1U);
        EXPECT_EQ(open->front().name, "x.0");
        ImportOptions options;
        options.dimensions["x.0"] = 5;
        const Graph graph = imported(file, options);
        EXPECT_EQ(find(graph, "y")->type.shape, (Shape{5, 3}));
    }
}

TEST(FilesAsTheyAre, PlacesWithTheSameMarkAreNotOneSize)
{
    OnnxFile file;
    file.input("x", {2, 3}).output("y");
    for (auto &dim :
        *file.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
        dim.set_dim_param("-1");
    file.node("Relu", {"x"}, {"y"});
    const auto open = onnxDimensions(file.bytes(), {});
    ASSERT_TRUE(open);
    EXPECT_EQ(open->size(), 2U);
}

// --- no elements -------------------------------------------------------------------------------------------

TEST(FilesAsTheyAre, WhatIsComputedFromNothingIsKnown)
{
    OnnxFile file;
    file.input("x", {2, 3}).weight("none", {2, 0}, {}).weight("rows", {0, 3}, {});
    file.list("axis", {1}).list("starts", {0}).list("ends", {0});
    file.node("Concat", {"none", "x", "none"}, {"joined"}).set("axis", 1);
    file.node("Slice", {"x", "starts", "ends", "axis"}, {"cut"}); // no columns
    file.node("ReduceSum", {"cut", "axis"}, {"sum"}).set("keepdims", 1);
    file.node("MatMul", {"none", "rows"}, {"product"});
    file.node("Add", {"joined", "sum"}, {"a"});
    file.node("Add", {"a", "product"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(find(graph, "y")->type.shape, (Shape{2, 3}));
    for (const Operator &op : graph.operators)
        for (const TensorId id : op.inputs)
            EXPECT_GT(elementCount(graph.at(id).type.shape), 0) << op.name;
}

TEST(FilesAsTheyAre, OutputsWithoutElementsAreLeftOutAndSaid)
{
    OnnxFile file;
    file.input("x", {2, 3}).weight("none", {2, 0}, {}).output("y").output("cache");
    file.node("Relu", {"x"}, {"y"});
    file.node("Identity", {"none"}, {"cache"});
    const Graph graph = imported(file);
    ASSERT_EQ(graph.outputs.size(), 1U);
    EXPECT_TRUE(notes(graph, "'cache' has no elements"));
}

// --- inputs and what is stored -----------------------------------------------------------------------------

OnnxFile productOfInputs()
{
    OnnxFile file;
    file.input("a", {3, 4}).input("b", {4, 5}).output("c");
    file.node("MatMul", {"a", "b"}, {"c"});
    return file;
}

TEST(FilesAsTheyAre, WhatIsAnInputCanBeSaid)
{
    EXPECT_EQ(roleOf(imported(productOfInputs()), "b"), TensorRole::Weight);
    EXPECT_TRUE(notes(imported(productOfInputs()), "'b'"));
    ImportOptions options;
    options.asInputs = {"b"};
    const Graph graph = imported(productOfInputs(), options);
    EXPECT_EQ(roleOf(graph, "b"), TensorRole::Input);
    EXPECT_EQ(graph.inputs.size(), 2U);
    ASSERT_EQ(storedTensors(graph).size(), 1U) << "it stays in the list of what can be chosen";
    EXPECT_TRUE(graph.at(storedTensors(graph).front()).classification->byHand);
}

TEST(FilesAsTheyAre, AnInputAnywhereIsAParameterIfAPersonSaysSo)
{
    ImportOptions options;
    options.storedAs["a"] = StoredAs::Parameter; // which stands where no weight does
    options.asInputs = {"b"};
    const Graph graph = imported(productOfInputs(), options);
    EXPECT_EQ(roleOf(graph, "a"), TensorRole::Weight);
    EXPECT_EQ(roleOf(graph, "b"), TensorRole::Input);
}

TEST(FilesAsTheyAre, AnInitializerIsAnInputIfAPersonSaysSo)
{
    OnnxFile file;
    file.input("x", {2, 3}).weight("h.w", {3, 3}).weight("h.state", {2, 3}).output("y");
    file.node("MatMul", {"x", "h.w"}, {"m"});
    file.node("Add", {"m", "h.state"}, {"y"});
    ImportOptions options;
    options.asInputs = {"h.state"};
    const Graph graph = imported(file, options);
    EXPECT_EQ(roleOf(graph, "h.state"), TensorRole::Input);
    EXPECT_EQ(find(graph, "h.state")->data, nullptr);
    options.asInputs = {"h.stat"};
    const auto unknown = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
}

TEST(FilesAsTheyAre, WeightsMayLieInNodes)
{
    const auto constant = [](OnnxFile &file, const std::string &name,
                              const std::vector<std::int64_t> &shape) {
        OnnxFile made;
        made.weight(name, shape);
        onnx::TensorProto value = made.graph().initializer(0);
        file.node("Constant", {}, {name}).set("value", value);
    };
    OnnxFile file;
    file.input("x", {2, 3}).output("y");
    constant(file, "fc.w_0", {3, 4});
    constant(file, "fc.b_0", {4});
    file.node("MatMul", {"x", "fc.w_0"}, {"m"});
    file.node("Add", {"m", "fc.b_0"}, {"a"});
    file.list("sizes", {4, 6});
    onnx::TensorProto one = OnnxFile::floats("", {1}, {0.5F});
    file.node("ConstantOfShape", {"sizes"}, {"w2"}).set("value", one);
    onnx::TensorProto two = OnnxFile::floats("two", {}, {2});
    file.node("Constant", {}, {"factor"}).set("value", two);
    file.node("MatMul", {"a", "w2"}, {"n"});
    file.node("Mul", {"n", "factor"}, {"y"});
    const Graph graph = imported(file);
    EXPECT_EQ(roleOf(graph, "fc.w_0"), TensorRole::Weight);
    EXPECT_EQ(roleOf(graph, "fc.b_0"), TensorRole::Weight);
    EXPECT_EQ(roleOf(graph, "w2"), TensorRole::Weight);
    EXPECT_EQ(roleOf(graph, "factor"), TensorRole::Buffer);
    ImportOptions options;
    options.storedAs["fc.b_0"] = StoredAs::Constant;
    EXPECT_EQ(roleOf(imported(file, options), "fc.b_0"), TensorRole::Buffer);
    // Beside stored weights, small constants of nodes are what operators compute with.
    file.weight("h.w", {2, 6});
    file.graph().mutable_node(file.graph().node_size() - 1)->set_output(0, "z");
    file.node("Add", {"z", "h.w"}, {"y"});
    EXPECT_EQ(roleOf(imported(file), "fc.b_0"), TensorRole::Buffer);
}

TEST(FilesAsTheyAre, ParametersOfTheOutermostModuleHaveNoDots)
{
    const float infinity = std::numeric_limits<float>::infinity();
    OnnxFile file;
    file.input("x", {1, 4, 8}).weight("h.w", {8, 8});
    file.weight("pos_embedding", {1, 5, 8}, std::vector<float>(40, 0.0F))
        .weight("cls_token", {1, 1, 8}, std::vector<float>(8, 0.0F));
    file.weight("logit_scale", {}, {2.6F}).weight("temperature", {}, {0.07F}).weight("gamma", {8});
    file.weight("pixel_mean", {8}).weight("causal", {5, 5}, std::vector<float>(25, -infinity));
    file.weight("val_12", {1, 5, 8}, std::vector<float>(40, 1.0F)).weight("threshold", {}, {0.5F});
    file.node("Sub", {"x", "pixel_mean"}, {"s"});
    file.node("MatMul", {"s", "h.w"}, {"m"});
    file.node("Concat", {"cls_token", "m"}, {"c"}).set("axis", 1);
    file.node("Add", {"c", "pos_embedding"}, {"p"});
    file.node("Mul", {"p", "gamma"}, {"g"});
    file.node("Add", {"g", "val_12"}, {"v"});
    file.node("Exp", {"logit_scale"}, {"e"});
    file.node("Mul", {"v", "e"}, {"l"});
    file.node("Div", {"l", "temperature"}, {"t"});
    file.node("Transpose", {"t"}, {"tt"}).set("perm", std::vector<std::int64_t>{0, 2, 1});
    file.node("MatMul", {"t", "tt"}, {"q"});
    file.node("Add", {"q", "causal"}, {"k"});
    file.node("Max", {"k", "threshold"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    for (const char *name : {"pos_embedding", "cls_token", "logit_scale", "temperature", "gamma"})
        EXPECT_EQ(roleOf(graph, name), TensorRole::Weight) << name;
    for (const char *name : {"pixel_mean", "causal", "val_12", "threshold"})
        EXPECT_EQ(roleOf(graph, name), TensorRole::Buffer) << name;
}

TEST(FilesAsTheyAre, ScalesOfQuantizersAreNoParameters)
{
    OnnxFile file;
    file.input("x", {2, 3})
        .weight("fc.weight", {3, 4})
        .weight("fc.scale", {}, {0.1F})
        .weight("fc.scales", {4});
    onnx::TensorProto zero = OnnxFile::floats("zero", {}, {});
    zero.set_data_type(onnx::TensorProto::INT8);
    zero.add_int32_data(0);
    *file.graph().add_initializer() = zero;
    file.node("QuantizeLinear", {"x", "fc.scale", "zero"}, {"q"});
    file.node("DequantizeLinear", {"q", "fc.scale", "zero"}, {"d"});
    file.node("MatMul", {"d", "fc.weight"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(roleOf(graph, "fc.scale"), TensorRole::Buffer);
    EXPECT_EQ(roleOf(graph, "fc.weight"), TensorRole::Weight);
}

// --- losses ------------------------------------------------------------------------------------------------

TEST(FilesAsTheyAre, ALossOfOneElementIsTheLoss)
{
    for (const std::int64_t keep : {1, 0}) {
        OnnxFile file;
        file.input("x", {2, 3}).weight("h.w", {3, 4}).output("loss").output("other");
        file.node("MatMul", {"x", "h.w"}, {"m"});
        file.node("ReduceMean", {"m"}, {"loss"}).set("keepdims", keep);
        file.node("Add", {"loss", "m"}, {"other"});
        const Graph graph = imported(file);
        ASSERT_TRUE(graph.loss.valid());
        EXPECT_EQ(graph.at(graph.loss).name, "loss");
        EXPECT_TRUE(graph.at(graph.loss).type.shape.empty());
        ImportOptions options;
        options.lossOutput = "loss";
        EXPECT_TRUE(imported(file, options).loss.valid());
    }
}

// --- programs ----------------------------------------------------------------------------------------------

std::string program(const std::string &find, const std::string &replace, std::size_t weightBytes)
{
    auto members = linearMembers();
    members.front().content = std::string(weightBytes, '\0');
    for (auto &member : members) {
        for (std::size_t at = member.content.find(find); !find.empty() && at != std::string::npos;
             at = member.content.find(find, at + replace.size()))
            member.content.replace(at, find.size(), replace);
    }
    return testing_support::zipOf(members);
}

TEST(FilesAsTheyAre, WeightsOfTheMetaDeviceAndFakeOnesHaveNoValues)
{
    const std::string meta =
        program(R"("layout": 7})", R"("layout": 7, "device": {"type": "meta", "index": null}})", 0);
    for (const std::string &bytes : {meta, program("", "", 0)}) {
        const auto graph = importPt2Bytes(bytes);
        ASSERT_TRUE(graph) << describe(graph.error());
        const Tensor *weight = find(*graph, "fc.w");
        ASSERT_NE(weight, nullptr);
        EXPECT_EQ(weight->role, TensorRole::Weight);
        EXPECT_EQ(weight->data, nullptr);
        EXPECT_FALSE(weight->external.has_value());
        EXPECT_TRUE(notes(*graph, "have no values"));
    }
    EXPECT_FALSE(importPt2Bytes(program("", "", 20))) << "cut off is not the same as fake";
}

TEST(FilesAsTheyAre, WhatAProgramStoresCanBeChosen)
{
    ImportOptions options;
    options.storedAs["fc.w"] = StoredAs::Constant;
    auto graph = importPt2Bytes(program("", "", 24), options);
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(roleOf(*graph, "fc.w"), TensorRole::Buffer);
    options = {};
    options.asInputs = {"fc.w"};
    graph = importPt2Bytes(program("", "", 24), options);
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(roleOf(*graph, "fc.w"), TensorRole::Input);
    options.asInputs = {"fc.v"};
    graph = importPt2Bytes(program("", "", 24), options);
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::NotFound);
}

} // namespace
} // namespace planloom
