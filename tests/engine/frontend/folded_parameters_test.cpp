// What exporters' optimizers make of parameters: what is taken apart again, and what is named as lost.

#include "engine/frontend/onnx/parameters/onnx_folded.h"

#include "engine/frontend/training/autodiff.h"
#include "tests/engine/frontend/described_file.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace planloom {
namespace {

using testing_support::addMetadata;
using testing_support::describeNode;
using testing_support::describeValue;
using testing_support::GraphRunner;
using testing_support::importedWhole;
using testing_support::kGraphField;
using testing_support::OnnxFile;
using testing_support::tensorNamed;
using Texts = std::vector<std::string>;

void sign(OnnxFile &file, const Texts &parameters, const Texts &buffers = {})
{
    std::string text;
    for (const std::string &name : parameters)
        text += "p: PARAMETER target='" + name + "'\n";
    for (const std::string &name : buffers)
        text += "b: BUFFER target='" + name + "'\n";
    addMetadata(file.graph(), kGraphField, kSignatureKey, text);
}

/// loss = sum tanh(x + value), where the exporter folded the value.
OnnxFile addedFile(const std::string &name, const std::vector<std::int64_t> &shape,
    const std::vector<float> &values, const std::string &foldedFrom)
{
    OnnxFile file(20);
    file.input("x", shape).output("loss");
    file.weight(name, shape, values);
    file.node("Add", {"x", name}, {"a"});
    file.node("Tanh", {"a"}, {"b"});
    file.node("ReduceSum", {"b"}, {"loss"}).set("keepdims", 0);
    describeValue(file, name, kFoldedFromKey, foldedFrom);
    return file;
}

double lossOf(const Graph &graph)
{
    GraphRunner runner(graph); // values are random by place: those of x are the same in all these graphs
    EXPECT_TRUE(runner.run());
    return runner.all(graph.loss)[0];
}

Texts lostIn(const Graph &graph, const std::string &name)
{
    const Tensor &tensor = tensorNamed(graph, name);
    EXPECT_NE(tensor.classification, nullptr) << name;
    return tensor.classification ? tensor.classification->insteadOf : Texts{};
}

std::int64_t notesWith(const Graph &graph, const std::string &words)
{
    return std::count_if(graph.notes.begin(), graph.notes.end(),
        [&](const std::string &note) { return note.find(words) != std::string::npos; });
}

TEST(FoldedParameters, JoinedWithBuffersAreTrainedWithoutThem)
{
    const std::vector<float> values{1, 2, 0, 0, 3, 4};
    OnnxFile file = addedFile("cat", {6}, values, "['h.k_bias', 'h.q_bias', 'h.v_bias']");
    sign(file, {"h.q_bias", "h.v_bias"}, {"h.k_bias"});
    Graph graph = importedWhole(file);
    EXPECT_EQ(tensorNamed(graph, "h.q_bias+h.v_bias").type.shape, Shape{2});
    EXPECT_EQ(tensorNamed(graph, "h.q_bias+h.v_bias").role, TensorRole::Weight);
    EXPECT_EQ(tensorNamed(graph, "h.q_bias+h.v_bias#2").role, TensorRole::Weight);
    EXPECT_EQ(tensorNamed(graph, "h.k_bias").role, TensorRole::Buffer);
    EXPECT_EQ(notesWith(graph, "joined parameters with buffers ('cat')"), 1);
    EXPECT_TRUE(appendBackward(graph));

    // A person's word is about the file's own tensor.
    ImportOptions options;
    options.storedAs = {{"cat", StoredAs::Constant}};
    EXPECT_EQ(tensorNamed(importedWhole(file, options), "h.q_bias+h.v_bias").role, TensorRole::Buffer);

    // More zeros than buffers: which part is whose cannot be told.
    OnnxFile unclear = addedFile("cat", {6}, {0, 0, 0, 0, 3, 4}, "['h.k_bias', 'h.q_bias', 'h.v_bias']");
    sign(unclear, {"h.q_bias", "h.v_bias"}, {"h.k_bias"});
    const Graph whole = importedWhole(unclear);
    EXPECT_EQ(tensorNamed(whole, "h.q_bias+h.v_bias").type.shape, Shape{6});
}

TEST(FoldedParameters, ExponentialsAreTrainedByTheirLogarithms)
{
    for (const float sign_of : {-1.0F, 1.0F}) {
        const std::vector<float> values{sign_of * 0.5F, sign_of * 2, sign_of * 3, sign_of * 4};
        OnnxFile file =
            addedFile("unsqueeze_3", {1, 4}, values, "['exp', 'h.a_log', 'neg', 'unsqueeze_2', 'val_2']");
        sign(file, {"h.a_log"});
        Graph graph = importedWhole(file);
        const Tensor &log = tensorNamed(graph, "h.a_log");
        ASSERT_NE(log.data, nullptr);
        float first = 0;
        std::memcpy(&first, log.data->bytes.data(), sizeof first);
        EXPECT_FLOAT_EQ(first, -sign_of * std::log(0.5F));
        EXPECT_TRUE(log.classification->insteadOf.empty());
        OnnxFile plain = addedFile("w", {1, 4}, values, "[]");
        EXPECT_NEAR(lossOf(graph), lossOf(importedWhole(plain)), 1e-6);
        EXPECT_TRUE(appendBackward(graph));
    }
    // Both signs: it is no exponential, whatever the names say.
    OnnxFile mixed = addedFile("exp", {1, 4}, {1, -1, 2, 3}, "['h.a_log']");
    sign(mixed, {"h.a_log"});
    EXPECT_EQ(lostIn(importedWhole(mixed), "h.a_log"), Texts{"h.a_log"});
    // A bound in between is not known any more.
    OnnxFile bounded = addedFile("exp", {1, 4}, {1, 5, 2, 3}, "['clamp', 'h.scale', 'val_3']");
    sign(bounded, {"h.scale"});
    const Graph graph = importedWhole(bounded);
    EXPECT_EQ(lostIn(graph, "h.scale"), Texts{"h.scale"});
    EXPECT_EQ(notesWith(graph, "computed 1 tensor ('exp') from parameters ('h.scale')"), 1);
}

TEST(FoldedParameters, OneRowAtAllPlacesIsOneRow)
{
    const std::vector<float> values{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
    OnnxFile file =
        addedFile("embedding_1", {2, 3, 2}, values, "['expand', 'e.ids', 'e.types.weight', 'val_0']");
    sign(file, {"e.types.weight"}, {"e.ids"});
    Graph graph = importedWhole(file);
    EXPECT_EQ(tensorNamed(graph, "e.types.weight").type.shape, (Shape{1, 1, 2}));
    EXPECT_EQ(notesWith(graph, "once for each place"), 1);
    OnnxFile plain = addedFile("w", {2, 3, 2}, values, "[]");
    EXPECT_NEAR(lossOf(graph), lossOf(importedWhole(plain)), 1e-6);
    EXPECT_TRUE(appendBackward(graph));
}

TEST(FoldedParameters, ThatLieBesideTheFileAreReadToBeTakenApart)
{
    const auto folder =
        std::filesystem::temp_directory_path() / ("planloom_folded_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    const std::vector<float> values{1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2};
    OnnxFile file =
        addedFile("embedding_1", {2, 3, 2}, values, "['expand', 'e.ids', 'e.types.weight', 'val_0']");
    sign(file, {"e.types.weight"}, {"e.ids"});
    std::ofstream(folder / "weights.bin", std::ios::binary)
        .write(reinterpret_cast<const char *>(values.data()), 48); // as files hold them
    auto *tensor = file.graph().mutable_initializer(0);
    tensor->clear_float_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto *place = tensor->add_external_data();
    place->set_key("location");
    place->set_value("weights.bin");
    const auto graph = importOnnxBytes(file.bytes(), folder);
    std::filesystem::remove_all(folder);
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(tensorNamed(*graph, "e.types.weight").type.shape, (Shape{1, 1, 2}));
}

TEST(FoldedParameters, OneRowForEachSampleIsTakenOutWithTheBatch)
{
    const std::vector<float> values{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6};
    OnnxFile file = addedFile("embedding_1", {2, 3, 2}, values, "['add', 'arange', 'e.weight', 'expand']");
    sign(file, {"e.weight"});
    const Graph graph = importedWhole(file);
    EXPECT_EQ(tensorNamed(graph, "e.weight").type.shape, (Shape{1, 3, 2}));
    EXPECT_EQ(notesWith(graph, "once for each place"), 0); // three different rows: there is no table
}

TEST(FoldedParameters, RowsAtSeveralPlacesAreATable)
{
    // Two heads; three distances: -1 (10, 40), 0 (20, 50), 1 (30, 60).
    const std::vector<float> values{20, 30, 30, 10, 20, 30, 10, 10, 20, 50, 60, 60, 40, 50, 60, 40, 40, 50};
    const std::string from =
        "['abs', 'arange', 'embedding', 'h.bias.weight', 'log', 'permute_1', 'sub', 'where']";
    OnnxFile file = addedFile("unsqueeze", {1, 2, 3, 3}, values, from);
    sign(file, {"h.bias.weight"});
    Graph graph = importedWhole(file);
    EXPECT_EQ(tensorNamed(graph, "h.bias.weight").type.shape, (Shape{3, 2}));
    EXPECT_TRUE(lostIn(graph, "h.bias.weight").empty());
    OnnxFile plain = addedFile("w", {1, 2, 3, 3}, values, "[]");
    EXPECT_NEAR(lossOf(graph), lossOf(importedWhole(plain)), 1e-6);
    EXPECT_TRUE(appendBackward(graph));

    // A file without a signature shows it by the values; masks have no parameter's place.
    OnnxFile nameless = addedFile("val_9", {1, 2, 3, 3}, values, "[]");
    nameless.graph().mutable_value_info()->Clear();
    nameless.weight("h.weight", {1, 2, 3, 3});
    nameless.node("Mul", {"a", "h.weight"}, {"unused"});
    const Graph found = importedWhole(nameless);
    EXPECT_EQ(tensorNamed(found, "val_9#2").type.shape, (Shape{3, 2}));
    EXPECT_EQ(tensorNamed(found, "val_9#2").role, TensorRole::Weight);

    // What was computed behind the choice is not the table.
    OnnxFile computed =
        addedFile("sigmoid", {1, 2, 3, 3}, values, "['embedding', 'h.bias.weight', 'permute']");
    sign(computed, {"h.bias.weight"});
    EXPECT_EQ(lostIn(importedWhole(computed), "h.bias.weight"), Texts{"h.bias.weight"});
}

TEST(FoldedParameters, AreNoTableWhereNumbersAreEqualByAccident)
{
    std::vector<float> coarse;
    std::vector<float> fine;
    for (int i = 0; i < 24; ++i) {
        coarse.push_back(static_cast<float>(i % 5) - 2);
        fine.push_back(std::sin(static_cast<float>(i % 5)));
    }
    for (const auto &[values, isTable] : {std::pair(coarse, false), std::pair(fine, true)}) {
        OnnxFile file = addedFile("index", {1, 4, 6}, values, "['h.weight', 'h.places', 'view']");
        sign(file, {"h.weight"}, {"h.places"});
        EXPECT_EQ(
            tensorNamed(importedWhole(file), "h.weight").type.shape, isTable ? Shape{5} : (Shape{1, 4, 6}));
        OnnxFile moved = addedFile("val_8", {1, 4, 6}, values, "['h.weight']");
        sign(moved, {"h.weight"});
        EXPECT_EQ(tensorNamed(importedWhole(moved), "h.weight").type.shape, (Shape{1, 4, 6}));
    }
}

TEST(FoldedParameters, ThatWereMovedOrShiftedAreNotLost)
{
    for (const auto &[name, from] : std::vector<std::pair<std::string, std::string>>{
             {"val_3", "['h.weight']"}, {"permute", "['h.weight']"}, {"add_3", "['h.weight', 'val_1']"},
             {"tmp_4", "['h.weight', 'value', 'value_cast']"},
             {"embedding_2", "['add', 'arange', 'h.weight', 'unsqueeze']"},
             {"unsqueeze_2", "['h.weight', 'select']"}}) {
        OnnxFile file = addedFile(name, {2, 2}, {1, 2, 3, 4}, from);
        sign(file, {"h.weight"});
        const Graph graph = importedWhole(file);
        EXPECT_TRUE(lostIn(graph, "h.weight").empty()) << name;
        EXPECT_EQ(graph.notes.size(), 0U) << name;
    }
    for (const auto &[name, from] :
        std::vector<std::pair<std::string, std::string>>{{"val_3", "['h.weight', 'h.table']"},
            {"mul", "['h.weight', 'val_1']"}, {"softmax", "['h.weight']"}}) {
        OnnxFile file = addedFile(name, {2, 2}, {1, 2, 3, 4}, from);
        sign(file, {"h.weight"}, {"h.table"});
        EXPECT_EQ(lostIn(importedWhole(file), "h.weight"), Texts{"h.weight"}) << name;
    }
    OnnxFile sum = addedFile("add_1", {2, 2}, {1, 2, 3, 4}, "['embedding', 'h.a', 'h.b']");
    sign(sum, {"h.a", "h.b"});
    EXPECT_EQ(lostIn(importedWhole(sum), "h.a+h.b"), (Texts{"h.a", "h.b"}));
}

/// A convolution, its bias, and another one; batch normalisation was folded into the first, or was not there.
OnnxFile convolutionFile(bool folded, bool withMetadata)
{
    OnnxFile file(20);
    file.input("x", {1, 2, 4, 4}).output("loss");
    file.weight("m.0.weight", {3, 2, 1, 1}, {1, 2, 3, 4, 5, 6}).weight("m.2.weight", {3, 3, 1, 1});
    file.weight(folded ? "m.0.weight_bias" : "m.0.bias", {3}, {1, 2, 3});
    auto conv = file.node("Conv", {"x", "m.0.weight", folded ? "m.0.weight_bias" : "m.0.bias"}, {"a"}, "n0");
    auto other = file.node("Conv", {"a", "m.2.weight"}, {"b"}, "n1");
    file.node("ReduceMean", {"b"}, {"loss"}).set("keepdims", 0);
    if (!withMetadata)
        return file;
    describeNode(conv, folded ? "['', 'm.1', 'batch_norm']" : "['', 'm.0', 'conv2d']");
    describeNode(other, "['', 'm.2', 'conv2d']");
    describeValue(file, "m.2.weight", kSpecKindKey, "PARAMETER");
    Texts parameters{"m.0.weight", "m.2.weight"};
    if (folded) {
        parameters.insert(parameters.end(), {"m.1.weight", "m.1.bias"});
    } else {
        parameters.emplace_back("m.0.bias");
        describeValue(file, "m.0.weight", kSpecKindKey, "PARAMETER");
        describeValue(file, "m.0.bias", kSpecKindKey, "PARAMETER");
    }
    sign(file, parameters, folded ? Texts{"m.1.running_mean", "m.1.running_var"} : Texts{});
    return file;
}

TEST(FoldedParameters, OfBatchNormalisationAreNamed)
{
    const Graph graph = importedWhole(convolutionFile(true, true));
    const Texts lost{"m.0.weight", "m.1.bias", "m.1.weight"};
    EXPECT_EQ(lostIn(graph, "m.0.weight"), lost);
    EXPECT_EQ(lostIn(graph, "m.0.weight_bias"), lost);
    EXPECT_TRUE(lostIn(graph, "m.2.weight").empty());
    EXPECT_EQ(tensorNamed(graph, "m.0.weight_bias").role, TensorRole::Weight);
    EXPECT_EQ(notesWith(graph, "folded 1 batch normalisation into the weights before it ('m.1')"), 1);

    OnnxFile own = convolutionFile(false, true);
    for (auto &info : *own.graph().mutable_value_info()) {
        if (info.name() == "m.0.weight")
            info.set_name("nothing"); // a tool that lost what was said of it: its reader is its own module
    }
    const Graph plain = importedWhole(own);
    EXPECT_TRUE(lostIn(plain, "m.0.weight").empty());
    EXPECT_EQ(plain.notes.size(), 0U);
}

TEST(FoldedParameters, OfBatchNormalisationAreSeenByNamesWithoutMetadata)
{
    const Graph graph = importedWhole(convolutionFile(true, false));
    EXPECT_EQ(lostIn(graph, "m.0.weight"), Texts{"m.0.weight"});
    EXPECT_EQ(notesWith(graph, "rewrote weights"), 1);
    EXPECT_EQ(importedWhole(convolutionFile(false, false)).notes.size(), 0U);
}

} // namespace
} // namespace planloom
