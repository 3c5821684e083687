// What exporters write beside a graph: parsing it, and what the importer makes of it.

#include "engine/frontend/onnx/onnx_metadata.h"

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/training/autodiff.h"
#include "engine/graph/dimensions/batch.h"
#include "engine/table/layers.h"
#include "tests/engine/frontend/described_file.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

using testing_support::addMetadata;
using testing_support::describeNode;
using testing_support::describeValue;
using testing_support::GraphRunner;
using testing_support::importedWhole;
using testing_support::kGraphField;
using testing_support::kNodeField;
using testing_support::OnnxFile;
using testing_support::tensorNamed;
using Texts = std::vector<std::string>;

StoredAs storedAs(const Graph &graph, const std::string &name)
{
    const Tensor &tensor = tensorNamed(graph, name);
    EXPECT_NE(tensor.classification, nullptr) << name;
    return tensor.classification ? tensor.classification->as : StoredAs::Constant;
}

TEST(ExporterTexts, ListsAreReadAsPythonWritesThem)
{
    EXPECT_EQ(parseTextList("['', 'model', \"it's\"]"), (Texts{"", "model", "it's"}));
    EXPECT_EQ(parseTextList("[ 'a\\'b\\\\' ]"), (Texts{"a'b\\"}));
    EXPECT_EQ(parseTextList("[]"), Texts{});
    for (const char *wrong :
        {"", "[", "['a'", "['a", "'a'", "['a' 'b']", "['a'] ", "['\\x41']", "[1]", "['a'\\"})
        EXPECT_EQ(parseTextList(wrong), std::nullopt) << wrong;
    std::string many = "[";
    for (std::size_t i = 0; i <= kMostListed; ++i)
        many += "'',";
    EXPECT_EQ(parseTextList(many + "]"), std::nullopt);
}

TEST(ExporterTexts, NamesWithControlCharactersOrBrokenEncodingAreNone)
{
    EXPECT_TRUE(isPlainName("model.layers.0"));
    EXPECT_TRUE(isPlainName("sch\xc3\xb6n"));
    for (const std::string &wrong : {std::string{}, std::string("a\nb"), std::string("a\0b", 3),
             std::string("\x1b[31m"), std::string("a\x7f"), std::string("\xc2\x9b"), std::string("\xff"),
             std::string("\xc3"), std::string("\xc0\xaf"), std::string(kMostNameBytes + 1, 'a')})
        EXPECT_FALSE(isPlainName(wrong)) << wrong;
}

TEST(ExporterTexts, ScopesGiveTheModulesAround)
{
    EXPECT_EQ(modulesOf("['', 'model', 'model.h.0', 'add']"), (Texts{"model", "model.h.0"}));
    EXPECT_EQ(modulesOf("['', 'add']"), Texts{});
    for (const char *wrong : {"['']", "[]", "['model', 'add']", "['', '', 'add']", "['', 'a/b', 'add']", "x"})
        EXPECT_EQ(modulesOf(wrong), std::nullopt) << wrong;
    std::string deep = "['', ";
    for (int i = 0; i < 65; ++i)
        deep += "'m', ";
    EXPECT_EQ(modulesOf(deep + "'add']"), std::nullopt);
}

TEST(ExporterTexts, SignaturesNameWhatTheModuleHad)
{
    const auto signature = signatureOf("\n# inputs\np_w: PARAMETER target='h.0.w'\n"
                                       "b_f: BUFFER target='inv_freq' persistent=False\n"
                                       "c_0: CONSTANT_TENSOR target='lifted'\nx: USER_INPUT\n"
                                       "p_bad: PARAMETER target='a\tb'\nq: SOMETHING target='c'\n"
                                       "# outputs\nloss: USER_OUTPUT\n target='d'");
    EXPECT_EQ(signature,
        (std::map<std::string, OnnxSpecKind, std::less<>>{{"h.0.w", OnnxSpecKind::Parameter},
            {"inv_freq", OnnxSpecKind::Buffer}, {"lifted", OnnxSpecKind::ConstantTensor}}));
}

TEST(ExporterMetadata, OfNodesMakesScopesAndNames)
{
    OnnxFile file(20);
    file.input("x", {2, 4}).output("y");
    describeNode(file.node("Tanh", {"x"}, {"a"}, "node_tanh"), "['', 'm', 'm.h.0', 'tanh']");
    describeNode(file.node("Exp", {"a"}, {"b"}, "node_exp"), "['', 'm', 'm.h.0', 'exp']");
    file.node("Neg", {"b"}, {"c"}, "node_made"); // by an optimizer of graphs: between h.0 and h.1
    describeNode(file.node("Tanh", {"c"}, {"d"}, "node_tanh_1"), "['', 'm', 'm.h.1', 'tanh_1']");
    describeNode(file.node("Exp", {"d"}, {"y"}, "node_exp_1"), "['', 'm', 'm.h.1', 'other.table', 'exp_1']");
    const Graph graph = importedWhole(file);
    ASSERT_EQ(graph.operators.size(), 5U);
    EXPECT_EQ(graph.operators[0].name, "m.h.0.node_tanh");
    EXPECT_EQ(pathOf(graph, graph.operators[1].scope), "m.h.0");
    EXPECT_EQ(graph.operators[2].name, "m.node_made");
    EXPECT_EQ(pathOf(graph, graph.operators[3].scope), "m.h.1");
    EXPECT_EQ(graph.operators[4].name, "m.h.1.other.table"); // called by a module that does not hold it
}

/// y = (x W + t) f with a transposed weight, a table and a frequency that the exporter folded or kept.
OnnxFile foldedFile()
{
    OnnxFile file(20);
    file.input("x", {3, 4}).output("loss");
    file.weight("val_1", {4, 5}).weight("val_2", {1, 5}).weight("h.freq", {5}).weight("val_4", {3, 5});
    file.node("MatMul", {"x", "val_1"}, {"a"});
    file.node("Add", {"a", "val_2"}, {"b"});
    file.node("Mul", {"b", "h.freq"}, {"c"});
    file.node("Sub", {"c", "val_4"}, {"d"});
    file.node("ReduceMean", {"d"}, {"loss"}).set("keepdims", 0);
    return file;
}

TEST(ExporterMetadata, OfValuesSaysWhatIsTrainedAndHowItIsCalled)
{
    OnnxFile file = foldedFile();
    addMetadata(file.graph(), kGraphField, kSignatureKey,
        "p: PARAMETER target='h.q.weight'\nb: BUFFER target='h.freq'\nb: BUFFER target='h.table.weight'\n");
    describeValue(file, "val_1", kFoldedFromKey, "['h.q.weight', 'val_0']");
    describeValue(file, "val_2", kFoldedFromKey, "['h.table.weight', 'val_3']");
    describeValue(file, "h.freq", kSpecKindKey, "BUFFER");
    describeValue(file, "val_4", kSpecKindKey, "CONSTANT_TENSOR");
    const Graph graph = importedWhole(file);
    EXPECT_EQ(storedAs(graph, "h.q.weight"), StoredAs::Parameter);
    EXPECT_EQ(nameInFiles(tensorNamed(graph, "h.q.weight")), "val_1");
    EXPECT_EQ(storedAs(graph, "val_2"), StoredAs::Constant);
    EXPECT_EQ(tensorNamed(graph, "val_2").role, TensorRole::Buffer);
    EXPECT_EQ(storedAs(graph, "h.freq"), StoredAs::Buffer);
    EXPECT_EQ(storedAs(graph, "val_4"), StoredAs::Constant);
    EXPECT_NE(tensorNamed(graph, "h.q.weight").classification->why.find("'h.q.weight'"), std::string::npos);
}

TEST(ExporterMetadata, GivesPartsOfOneWeightDifferentNames)
{
    OnnxFile file = foldedFile();
    describeValue(file, "val_1", kFoldedFromKey, "['h.q.weight']");
    describeValue(file, "val_2", kFoldedFromKey, "['h.q.weight', 'h.k.weight']");
    describeValue(file, "val_4", kFoldedFromKey, "['h.q.weight']");
    const Graph graph = importedWhole(file);
    EXPECT_EQ(nameInFiles(tensorNamed(graph, "h.q.weight")), "val_1");
    EXPECT_EQ(nameInFiles(tensorNamed(graph, "h.q.weight+h.k.weight")), "val_2");
    EXPECT_EQ(nameInFiles(tensorNamed(graph, "h.q.weight#2")), "val_4");
}

TEST(ExporterMetadata, ThatIsHostileCountsAsMissing)
{
    OnnxFile file = foldedFile();
    describeValue(file, "val_1", kFoldedFromKey, "['h.q\x1b[2J.weight']");
    describeValue(file, "val_2", kFoldedFromKey, "['h.w'");
    describeValue(file, "val_4", kSpecKindKey, "SOMETHING ELSE");
    addMetadata(*file.graph().mutable_node(0), kNodeField, kNameScopesKey, "['', 'a\nb', 'x']");
    file.graph()
        .mutable_node(1)
        ->GetReflection()
        ->MutableUnknownFields(file.graph().mutable_node(1))
        ->AddLengthDelimited(kNodeField, "\x0a\xff\xff");
    const Graph graph = importedWhole(file);
    for (const Tensor &tensor : graph.tensors)
        EXPECT_TRUE(isPlainName(tensor.name)) << tensor.name;
    EXPECT_EQ(graph.scopes.size(), 1U);
    const auto noted = std::find_if(graph.notes.begin(), graph.notes.end(),
        [](const std::string &note) { return note.find("metadata of 3 values") != std::string::npos; });
    EXPECT_NE(noted, graph.notes.end());
}

/// Two normalisations of which the exporter merged the scales.
OnnxFile mergedFile(bool withMetadata)
{
    OnnxFile file(20);
    file.input("x", {3, 4}).output("loss");
    file.weight("h.0.scale", {4}, {1, 2, 3, 4});
    auto first = file.node("LayerNormalization", {"x", "h.0.scale"}, {"a"}, "n0");
    auto second = file.node("LayerNormalization", {"a", "h.0.scale"}, {"b"}, "n1");
    file.node("ReduceMean", {"b"}, {"loss"}).set("keepdims", 0);
    if (withMetadata) {
        describeNode(first, "['', 'h.0', 'layer_norm']");
        describeNode(second, "['', 'h.1', 'layer_norm_1']");
        describeValue(file, "h.0.scale", kSpecKindKey, "PARAMETER");
        addMetadata(file.graph(), kGraphField, kSignatureKey,
            "p: PARAMETER target='h.0.scale'\np_1: PARAMETER target='h.1.scale'\n");
    }
    return file;
}

TEST(ExporterMetadata, UntiesWhatTheExporterMerged)
{
    const Graph graph = importedWhole(mergedFile(true));
    const Tensor &kept = tensorNamed(graph, "h.0.scale");
    const Tensor &untied = tensorNamed(graph, "h.1.scale");
    EXPECT_EQ(untied.role, TensorRole::Weight);
    EXPECT_EQ(untied.data->bytes, kept.data->bytes);
    EXPECT_EQ(untied.type, kept.type);
    ASSERT_FALSE(graph.notes.empty());
}

TEST(ExporterMetadata, WithoutItMergedParametersAreNamedInANote)
{
    const Graph graph = importedWhole(mergedFile(false));
    const auto noted = std::find_if(graph.notes.begin(), graph.notes.end(), [](const std::string &note) {
        return note.find("2 operators read 'h.0.scale' as their scale or bias") != std::string::npos;
    });
    EXPECT_NE(noted, graph.notes.end());
}

/// An embedding and a product that read one table, stored twice; products of one weight, stored twice.
OnnxFile copiedFile(bool sameValues)
{
    OnnxFile file(20);
    file.input("x", {3, 2}).output("loss");
    const std::vector<float> table{1, 2, 3, 4, 5, 6};
    const std::vector<float> transposed{1, 3, 5, 2, 4, sameValues ? 6.0F : 7.0F};
    file.weight("e.weight", {3, 2}, table).weight("val_1", {2, 3}, transposed);
    file.weight("val_2", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
    file.weight("val_3", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, sameValues ? 9.0F : 10.0F});
    file.node("Add", {"x", "e.weight"}, {"a"});
    file.node("MatMul", {"a", "val_1"}, {"b"});
    file.node("MatMul", {"b", "val_2"}, {"c"});
    file.node("MatMul", {"c", "val_3"}, {"d"});
    file.node("ReduceMean", {"d"}, {"loss"}).set("keepdims", 0);
    describeValue(file, "e.weight", kSpecKindKey, "PARAMETER");
    describeValue(file, "val_1", kFoldedFromKey, "['head.weight']");
    describeValue(file, "val_2", kFoldedFromKey, "['w']");
    describeValue(file, "val_3", kFoldedFromKey, "['w']");
    addMetadata(file.graph(), kGraphField, kSignatureKey,
        "p: PARAMETER target='e.weight'\np_1: PARAMETER target='head.weight'\np_2: PARAMETER target='w'\n");
    return file;
}

std::int64_t parametersOf(const Graph &graph)
{
    std::int64_t count = 0;
    for (const Tensor &tensor : graph.tensors)
        count += tensor.role == TensorRole::Weight ? elementCount(tensor.type.shape) : 0;
    return count;
}

TEST(ExporterMetadata, TiesAgainWhatTheExporterCopied)
{
    EXPECT_EQ(parametersOf(importedWhole(copiedFile(true))), 6 + 9);
    EXPECT_EQ(parametersOf(importedWhole(copiedFile(false))), 6 + 6 + 9 + 9); // the values say otherwise
    const Graph tied = importedWhole(copiedFile(true));
    GraphRunner runner(tied);
    ASSERT_TRUE(runner.run()); // Transpose and weight go together
}

TEST(ExporterMetadata, WithoutItTransposedCopiesAreTiedByTheirValues)
{
    for (const bool sameValues : {true, false}) {
        OnnxFile file(20);
        file.input("x", {3, 8}).output("loss");
        std::vector<float> table;
        std::vector<float> transposed;
        for (int i = 0; i < 64; ++i) {
            table.push_back(static_cast<float>(i));
            transposed.push_back(static_cast<float>(i % 8 * 8 + i / 8));
        }
        transposed.back() += sameValues ? 0.0F : 1.0F;
        file.weight("e.weight", {8, 8}, table).weight("val_1", {8, 8}, transposed);
        file.node("MatMul", {"x", "e.weight"}, {"a"});
        file.node("MatMul", {"a", "val_1"}, {"b"});
        file.node("ReduceMean", {"b"}, {"loss"}).set("keepdims", 0);
        EXPECT_EQ(parametersOf(importedWhole(file)), sameValues ? 64 : 128);
    }
}

TEST(ExporterMetadata, PutsBackBiasesThatWereLeftOut)
{
    OnnxFile file(20);
    file.input("x", {2, 3}).output("loss");
    file.weight("h.weight", {5, 3}).weight("g.weight", {5, 4});
    describeNode(file.node("Gemm", {"x", "h.weight"}, {"a"}).set("transB", 1), "['', 'h', 'linear']");
    describeNode(file.node("Gemm", {"a", "g.weight"}, {"b"}), "['', 'g', 'linear_1']");
    file.node("ReduceMean", {"b"}, {"loss"}).set("keepdims", 0);
    addMetadata(file.graph(), kGraphField, kSignatureKey,
        "p: PARAMETER target='h.weight'\np: PARAMETER target='h.bias'\np: PARAMETER target='g.weight'\n");
    const Graph graph = importedWhole(file);
    EXPECT_EQ(tensorNamed(graph, "h.bias").type, (TensorType{DataType::Float32, {5}}));
    EXPECT_EQ(tensorNamed(graph, "h.bias").role, TensorRole::Weight);
    EXPECT_EQ(parametersOf(graph), 15 + 5 + 20); // g has none
}

TEST(StoredTensors, AreToldApartByPositionAndShapeWithoutMetadata)
{
    OnnxFile file(20);
    file.input("x", {2, 3, 4, 4}).output("loss");
    file.weight("h.bias", {4}).weight("val_1", {4, 4}).weight("val_2", {2, 1, 4, 4}).weight("val_3", {4});
    file.weight("val_4", {1, 3, 4, 4}).weight("val_5", {1, 3, 1, 1}, {2, 2, 2}).weight("val_6", {1, 3, 4, 4});
    file.weight("rotary.own_inv_freq", {4}).weight("m.final_logits_bias", {4});
    file.node("Transpose", {"val_1"}, {"w"}).set("perm", std::vector<std::int64_t>{1, 0});
    file.node("MatMul", {"x", "w"}, {"a"});
    file.node("Add", {"a", "h.bias"}, {"b"});
    file.node("Add", {"b", "val_2"}, {"c"}); // a mask
    file.node("Mul", {"c", "val_3"}, {"d"}); // 1 + w
    file.node("Add", {"d", "val_4"}, {"e"}); // a table of positions
    file.node("Mul", {"e", "val_5"}, {"f"}); // one number, repeated
    file.node("Div", {"f", "val_6"}, {"g"});
    file.node("Mul", {"g", "rotary.own_inv_freq"}, {"h"});
    file.node("Add", {"h", "m.final_logits_bias"}, {"i"});
    file.node("ReduceMean", {"i"}, {"loss"}).set("keepdims", 0);
    const Graph graph = importedWhole(file);
    EXPECT_EQ(storedAs(graph, "h.bias"), StoredAs::Parameter);
    EXPECT_EQ(storedAs(graph, "val_1"), StoredAs::Parameter);
    EXPECT_EQ(storedAs(graph, "val_2"), StoredAs::Constant);
    EXPECT_EQ(storedAs(graph, "val_3"), StoredAs::Parameter);
    EXPECT_EQ(storedAs(graph, "val_4"), StoredAs::Parameter);
    EXPECT_EQ(storedAs(graph, "val_5"), StoredAs::Constant);
    EXPECT_EQ(storedAs(graph, "val_6"), StoredAs::Constant);
    EXPECT_EQ(storedAs(graph, "rotary.own_inv_freq"), StoredAs::Buffer);
    EXPECT_EQ(storedAs(graph, "m.final_logits_bias"), StoredAs::Buffer); // of every BART
}

TEST(StoredTensors, AreWhatAPersonSays)
{
    ImportOptions options;
    options.storedAs = {{"val_4", StoredAs::Parameter}, {"h.freq", StoredAs::Constant}};
    const Graph graph = importedWhole(foldedFile(), options);
    EXPECT_EQ(tensorNamed(graph, "val_4").role, TensorRole::Weight);
    EXPECT_TRUE(tensorNamed(graph, "val_4").classification->byHand);
    EXPECT_EQ(tensorNamed(graph, "h.freq").role, TensorRole::Buffer);

    options.storedAs = {{"nothing", StoredAs::Parameter}};
    const auto refused = importOnnxBytes(foldedFile().bytes(), {}, options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotFound);
    EXPECT_NE(refused.error().message.find("'nothing'"), std::string::npos);
}

/// A class token that was expanded to the batch of 2, and a mask that was made for it.
OnnxFile batchFile(bool equalSlices)
{
    OnnxFile file(20);
    file.input("x", {2, 3, 4}).output("loss");
    file.weight("h.weight", {4, 4});
    file.weight("expand", {2, 1, 4}, {1, 2, 3, 4, 1, 2, 3, 4});
    std::vector<float> mask(2 * 1 * 4 * 4, 0.5F);
    mask[3] = mask[19] = -1;
    if (!equalSlices)
        mask[4] = 2;
    file.weight("mask_made", {2, 1, 4, 4}, mask);
    file.node("Concat", {"expand", "x"}, {"a"}).set("axis", 1);
    file.node("MatMul", {"a", "h.weight"}, {"b"});
    file.list("axes", {1});
    file.node("Unsqueeze", {"b", "axes"}, {"c"});
    file.node("Add", {"c", "mask_made"}, {"d"});
    file.node("Tanh", {"d"}, {"e"});
    file.node("ReduceSum", {"e"}, {"loss"}).set("keepdims", 0);
    return file;
}

TEST(CollapsedBatch, LeavesOneTokenAndOneMaskAndTheSameLoss)
{
    Graph graph = importedWhole(batchFile(true));
    EXPECT_EQ(tensorNamed(graph, "expand").type.shape, (Shape{1, 1, 4}));
    EXPECT_EQ(tensorNamed(graph, "expand").role, TensorRole::Weight);
    EXPECT_EQ(tensorNamed(graph, "mask_made").type.shape, (Shape{1, 1, 4, 4}));
    ASSERT_TRUE(appendBackward(graph));
    const BatchInfo batch = analyseBatch(graph);
    EXPECT_EQ(batch.mostMicroBatches, 2) << batch.limitedBy;

    // The gradient of the token is that of all its copies, summed.
    ImportOptions kept;
    kept.storedAs = {{"expand", StoredAs::Constant}};
    const Graph whole = importedWhole(batchFile(true), kept);
    EXPECT_EQ(tensorNamed(whole, "expand").type.shape, (Shape{2, 1, 4})); // Concat has no broadcasting
    GraphRunner runner(graph);
    GraphRunner reference(whole);
    ASSERT_TRUE(runner.run());
    ASSERT_TRUE(reference.run());
    EXPECT_NEAR(runner.all(graph.loss)[0], reference.all(whole.loss)[0], 1e-6);
}

TEST(CollapsedBatch, IsOneDimensionWhereOthersAreAsLong)
{
    OnnxFile file(20);
    file.input("x", {2, 2, 3, 3}).output("loss");
    file.weight("mask_made", {2, 2, 3, 3}, std::vector<float>(36, 0.5F));
    file.weight("h.weight", {3, 3});
    file.node("Add", {"x", "mask_made"}, {"a"});
    file.node("MatMul", {"a", "h.weight"}, {"b"});
    file.node("ReduceSum", {"b"}, {"loss"}).set("keepdims", 0);
    const Graph graph = importedWhole(file);
    const Tensor &mask = tensorNamed(graph, "mask_made");
    EXPECT_EQ(mask.type.shape, (Shape{1, 2, 3, 3})); // two heads stay
    ASSERT_TRUE(mask.filePart);
    EXPECT_EQ(mask.filePart->shape, (Shape{2, 2, 3, 3}));
}

TEST(CollapsedBatch, KeepsConstantsThatDifferWhichComeInMicroBatchesAllTheSame)
{
    Graph graph = importedWhole(batchFile(false));
    EXPECT_EQ(tensorNamed(graph, "mask_made").type.shape, (Shape{2, 1, 4, 4}));
    ASSERT_TRUE(appendBackward(graph));
    const BatchInfo batch = analyseBatch(graph);
    EXPECT_EQ(batch.mostMicroBatches, 2) << batch.limitedBy;
}

/// Three layers without any name of a module: Linear, Tanh, residual.
OnnxFile namelessStack(bool dotted)
{
    OnnxFile file(20);
    file.input("x", {2, 4}).output("loss");
    file.node("Exp", {"x"}, {"s0"});
    for (int i = 0; i < 3; ++i) {
        const std::string n = std::to_string(i);
        file.weight((dotted ? "m.h." + n + ".weight" : "w" + n), {4, 4});
        file.node("MatMul", {"s" + n, dotted ? "m.h." + n + ".weight" : "w" + n}, {"p" + n});
        file.node("Tanh", {"p" + n}, {"t" + n});
        file.node("Sigmoid", {"t" + n}, {"g" + n});
        file.node("Add", {"s" + n, "g" + n}, {"s" + std::to_string(i + 1)});
    }
    file.node("ReduceMean", {"s3"}, {"loss"}).set("keepdims", 0);
    return file;
}

TEST(LayersOfStructure, AreTheRepeatedStretches)
{
    const Graph graph = importedWhole(namelessStack(false));
    const Layers layers = findLayers(graph);
    ASSERT_EQ(layers.scopes.size(), 3U);
    EXPECT_EQ(pathOf(graph, layers.scopes[0]), "layer.0");
    Texts paths;
    for (const Operator &op : graph.operators)
        paths.push_back(pathOf(graph, op.scope));
    EXPECT_EQ(paths,
        (Texts{"", "layer.0", "layer.0", "layer.0", "layer.0", "layer.1", "layer.1", "layer.1", "layer.1",
            "layer.2", "layer.2", "layer.2", "layer.2", ""}));
}

TEST(LayersOfStructure, HaveTheNamesOfTheirWeights)
{
    const Graph graph = importedWhole(namelessStack(true));
    const Layers layers = findLayers(graph);
    ASSERT_EQ(layers.scopes.size(), 3U);
    EXPECT_EQ(pathOf(graph, layers.scopes[2]), "m.h.2");
}

} // namespace
} // namespace planloom
