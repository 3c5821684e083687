#include "engine/graph/annotation/partition.h"
#include "engine/graph/dimensions/batch.h"
#include "engine/graph/operators/catalogue.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <map>

namespace planloom {

namespace {

/// Builds small models operator by operator, with tensors by name.
class Model
{
public:
    Model &tensor(const std::string &name, Shape shape, TensorRole role, DataType type = DataType::Float32)
    {
        Tensor tensor;
        tensor.name = name;
        tensor.type = {type, std::move(shape)};
        tensor.role = role;
        m_ids[name] = TensorId{static_cast<std::int32_t>(graph.tensors.size())};
        if (role == TensorRole::Input)
            graph.inputs.push_back(m_ids[name]);
        graph.tensors.push_back(std::move(tensor));
        return *this;
    }

    /// Adds an operator that makes an activation of this name and shape, and is called like it.
    Model &op(OperatorKind kind, const std::string &annotation, const std::vector<std::string> &inputs,
        const std::string &output, Shape shape, std::vector<std::int32_t> linear = {})
    {
        tensor(output, std::move(shape), TensorRole::Activation);
        Operator op;
        op.name = output;
        op.kind = kind;
        op.scope = ScopeId{0};
        for (const std::string &input : inputs)
            op.inputs.push_back(m_ids.at(input));
        op.outputs = {m_ids.at(output)};
        auto parsed = parseAnnotation(annotation, shapesOf(graph, op.inputs), shapesOf(graph, op.outputs));
        EXPECT_TRUE(parsed) << describe(parsed.error());
        if (parsed)
            op.annotation = *parsed;
        op.annotation.linearInputs = std::move(linear);
        graph.operators.push_back(std::move(op));
        return *this;
    }

    /// Names the loss and appends gradients of all that depends on weights, and a step per weight.
    Model &train(const std::string &loss)
    {
        graph.loss = m_ids.at(loss);
        graph.outputs = {graph.loss};
        std::vector<bool> trained(graph.tensors.size());
        for (std::size_t i = 0; i < graph.tensors.size(); ++i)
            trained[i] = graph.tensors[i].role == TensorRole::Weight;
        const std::size_t forwards = graph.operators.size();
        for (std::size_t i = 0; i < forwards; ++i) {
            for (const TensorId input : graph.operators[i].inputs) {
                if (trained[static_cast<std::size_t>(input.index)])
                    trained[static_cast<std::size_t>(graph.operators[i].outputs[0].index)] = true;
            }
        }
        tensor(loss + ".grad", {}, TensorRole::Buffer);
        const auto isTrained = [&](TensorId id) {
            return static_cast<std::size_t>(id.index) < trained.size()
                && trained[static_cast<std::size_t>(id.index)];
        };
        for (std::size_t i = forwards; i-- > 0;) {
            const Operator forward = graph.operators[i];
            if (!isTrained(forward.outputs[0]))
                continue;
            Operator backward = forward;
            backward.name += "'";
            backward.direction = Direction::Backward;
            backward.annotation = backwardAnnotation(forward.annotation);
            backward.mirror = OperatorId{static_cast<std::int32_t>(i)};
            backward.inputs = {id(graph.at(forward.outputs[0]).name + ".grad")};
            backward.inputs.insert(backward.inputs.end(), forward.inputs.begin(), forward.inputs.end());
            backward.inputs.push_back(forward.outputs[0]);
            backward.outputs.clear();
            for (const TensorId input : forward.inputs)
                backward.outputs.push_back(isTrained(input) ? gradientOf(input) : TensorId{});
            graph.operators[i].mirror = OperatorId{static_cast<std::int32_t>(graph.operators.size())};
            graph.operators.push_back(std::move(backward));
        }
        for (std::size_t i = 0; i < trained.size(); ++i) {
            const Tensor weight = graph.tensors[i];
            if (weight.role != TensorRole::Weight || !m_ids.count(weight.name + ".grad"))
                continue;
            tensor(weight.name + ".new", weight.type.shape, TensorRole::Weight);
            Operator step;
            step.name = weight.name + ".step";
            step.kind = OperatorKind::SgdStep;
            step.direction = Direction::Optimizer;
            step.scope = ScopeId{0};
            step.inputs = {id(weight.name), id(weight.name + ".grad")};
            step.outputs = {id(weight.name + ".new")};
            step.annotation =
                *parseAnnotation("*, * -> *", shapesOf(graph, step.inputs), shapesOf(graph, step.outputs));
            graph.operators.push_back(std::move(step));
        }
        const auto valid = validate(graph);
        EXPECT_TRUE(valid) << describe(valid.error());
        return *this;
    }

    TensorId id(const std::string &name) const { return m_ids.at(name); }

    Graph graph;

private:
    TensorId gradientOf(TensorId of)
    {
        const Tensor &whole = graph.at(of);
        const std::string name = whole.name + ".grad";
        if (!m_ids.count(name)) {
            tensor(name, Shape(whole.type.shape), TensorRole::Gradient);
            graph.tensors.back().of = of;
        }
        return m_ids.at(name);
    }

    std::map<std::string, TensorId> m_ids;
};

/// "split:0", "same", "summand", "local" or "step".
std::string roleOf(const BatchInfo &batch, const Model &model, const std::string &name)
{
    const auto index = static_cast<std::size_t>(model.id(name).index);
    switch (batch.tensorRole[index]) {
    case BatchRole::Split:
        return "split:" + std::to_string(batch.tensorDimension[index]);
    case BatchRole::Same:
        return "same";
    case BatchRole::Summand:
        return "summand";
    case BatchRole::Local:
        return "local";
    case BatchRole::Step:
        return "step";
    }
    return "";
}

std::string identifierOf(const BatchInfo &batch, const Model &model, const std::string &name)
{
    for (std::size_t i = 0; i < model.graph.operators.size(); ++i) {
        const Operator &op = model.graph.operators[i];
        if (op.name != name)
            continue;
        if (batch.oncePerStep[i])
            return "once";
        const std::int32_t dimension = batch.operatorDimension[i];
        return dimension < 0 ? "" : op.annotation.dimensions[static_cast<std::size_t>(dimension)].name;
    }
    return "no such operator";
}

/// Checks on masks that every operator's micro-batch meets slice i of all its Split tensors.
void expectSlicesMeet(const BatchInfo &batch, const Graph &graph)
{
    for (std::int32_t count = 1; count <= batch.mostMicroBatches; ++count) {
        if (batch.mostMicroBatches % count != 0)
            continue;
        for (std::size_t i = 0; i < graph.operators.size(); ++i) {
            const Operator &op = graph.operators[i];
            if (batch.oncePerStep[i])
                continue;
            for (std::int32_t microBatch = 0; microBatch < count; ++microBatch) {
                const auto outer = microBatchRanges(
                    batch, graph, OperatorId{static_cast<std::int32_t>(i)}, microBatch, count);
                const auto check = [&](const TensorView &view) {
                    if (!view.tensor)
                        return;
                    const auto index = static_cast<std::size_t>(view.tensor.index);
                    if (batch.tensorRole[index] != BatchRole::Split)
                        return;
                    IndexMask slice = wholeMask(graph.tensors[index].type.shape);
                    Range &range = slice.ranges[static_cast<std::size_t>(batch.tensorDimension[index])];
                    const std::int64_t size = range.end / count;
                    range = {microBatch * size, (microBatch + 1) * size};
                    EXPECT_EQ(view.index, slice) << op.name << " and " << graph.tensors[index].name;
                };
                for (std::size_t slot = 0; slot < op.inputs.size(); ++slot)
                    check(inputView(graph, op, {}, 0, slot, outer));
                for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                    check(outputView(graph, op, {}, 0, slot, outer));
            }
        }
    }
}

using Kind = OperatorKind;
using Role = TensorRole;

/// tokens [b s] -> embedding + positions -> linear -> cross-entropy / number of labels.
Model languageModel(std::int64_t batch, std::int64_t length)
{
    Model model;
    model.tensor("tokens", {batch, length}, Role::Input, DataType::Int64)
        .tensor("positions", {length}, Role::Input, DataType::Int64)
        .tensor("labels", {batch, length}, Role::Input, DataType::Int64)
        .tensor("table", {20, 4}, Role::Weight)
        .tensor("position table", {16, 4}, Role::Weight)
        .tensor("w", {4, 20}, Role::Weight)
        .op(Kind::Embedding, "v^ e, b s -> b s e", {"table", "tokens"}, "x", {batch, length, 4}, {0})
        .op(Kind::Embedding, "v^ e, s -> s e", {"position table", "positions"}, "p", {length, 4}, {0})
        .op(Kind::Add, "b s e, s e -> b s e", {"x", "p"}, "h", {batch, length, 4}, {0, 1})
        .op(Kind::Linear, "b s k+, k+ n -> b s n", {"h", "w"}, "logits", {batch, length, 20}, {0})
        .op(Kind::Reshape, "b s^ n -> (b s^) n", {"logits"}, "flat", {batch * length, 20}, {0})
        .op(Kind::Reshape, "b s^ -> (b s^)", {"labels"}, "flat labels", {batch * length})
        .op(Kind::CrossEntropy, "n+ c^, n+ -> 1", {"flat", "flat labels"}, "sum", {})
        .op(Kind::CountValid, "n+ -> 1", {"flat labels"}, "count", {})
        .op(Kind::Div, "1, 1 -> 1", {"sum", "count"}, "loss", {}, {0})
        .train("loss");
    return model;
}

} // namespace

TEST(Batch, OfALanguageModelIsFollowedThroughItsStep)
{
    const Model model = languageModel(8, 6);
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.limitedBy, "");
    EXPECT_EQ(batch.size, 8);
    EXPECT_EQ(batch.mostMicroBatches, 8);
    const std::map<std::string, std::string> roles{{"tokens", "split:0"}, {"positions", "same"},
        {"labels", "split:0"}, {"table", "same"}, {"x", "split:0"}, {"p", "same"}, {"h", "split:0"},
        {"logits", "split:0"}, {"flat", "split:0"}, {"flat labels", "step"}, {"sum", "summand"},
        {"count", "step"}, {"loss", "summand"}, {"loss.grad", "same"}, {"sum.grad", "same"},
        {"flat.grad", "split:0"}, {"h.grad", "split:0"}, {"p.grad", "summand"},
        {"position table.grad", "summand"}, {"w.grad", "summand"}, {"table.grad", "summand"},
        {"w.new", "same"}};
    for (const auto &[name, role] : roles)
        EXPECT_EQ(roleOf(batch, model, name), role) << name;
    const std::map<std::string, std::string> identifiers{{"x", "b"}, {"p", ""}, {"h", "b"}, {"flat", "b"},
        {"flat labels", "once"}, {"sum", "n"}, {"count", "once"}, {"loss", ""}, {"loss'", ""}, {"sum'", "n"},
        {"h'", "b"}, {"p'", ""}, {"x'", "b"}, {"w.step", "once"}};
    for (const auto &[name, identifier] : identifiers)
        EXPECT_EQ(identifierOf(batch, model, name), identifier) << name;
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, IsNotConfusedByAnInputAsLongByChance)
{
    // As many positions as samples.
    const Model model = languageModel(8, 8);
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.limitedBy, "");
    EXPECT_EQ(batch.mostMicroBatches, 8);
    EXPECT_EQ(roleOf(batch, model, "positions"), "same");
    EXPECT_EQ(roleOf(batch, model, "tokens"), "split:0");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, RangesAreProportionalSlices)
{
    const Model model = languageModel(8, 6);
    const BatchInfo batch = analyseBatch(model.graph);
    // Operator 6 is the cross-entropy over (b s) = 48 items and 20 classes, operator 1 the positions.
    EXPECT_EQ(
        microBatchRanges(batch, model.graph, OperatorId{6}, 1, 4), (std::vector<Range>{{12, 24}, {0, 20}}));
    EXPECT_TRUE(microBatchRanges(batch, model.graph, OperatorId{1}, 1, 4).empty());
}

TEST(Batch, NormalisationUsesTheMicroBatchStatistics)
{
    Model model;
    model.tensor("x", {8, 3, 5}, Role::Input)
        .tensor("w", {3, 5}, Role::Weight)
        .tensor("scale", {3}, Role::Weight)
        .tensor("bias", {3}, Role::Weight)
        .op(Kind::Mul, "n c h, c h -> n c h", {"x", "w"}, "h", {8, 3, 5}, {0})
        .op(Kind::BatchMean, "n+ c h+ -> c", {"h"}, "mean", {3}, {0})
        .op(Kind::BatchVariance, "n+ c h+, c -> c", {"h", "mean"}, "variance", {3})
        .op(Kind::BatchNormalize, "n c h, c, c, c, c -> n c h", {"h", "mean", "variance", "scale", "bias"},
            "y", {8, 3, 5})
        .op(Kind::ReduceSum, "n+ c+ h+ -> 1", {"y"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8) << batch.limitedBy;
    const std::map<std::string, std::string> roles{{"mean", "local"}, {"variance", "local"}, {"y", "split:0"},
        {"mean.grad", "local"}, {"variance.grad", "local"}, {"scale.grad", "summand"}, {"h.grad", "split:0"},
        {"w.grad", "summand"}};
    for (const auto &[name, role] : roles)
        EXPECT_EQ(roleOf(batch, model, name), role) << name;
    EXPECT_EQ(identifierOf(batch, model, "variance'"), "n");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, MustNotBeFrozen)
{
    Model model;
    model.tensor("x", {8, 4}, Role::Input)
        .tensor("w", {4, 4}, Role::Weight)
        .op(Kind::Linear, "m k+, k+ n -> m n", {"x", "w"}, "h", {8, 4}, {0})
        .op(Kind::Softmax, "m^ n -> m^ n", {"h"}, "y", {8, 4})
        .op(Kind::ReduceSum, "m+ n+ -> 1", {"y"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.size, 8);
    EXPECT_EQ(batch.mostMicroBatches, 1);
    EXPECT_NE(batch.limitedBy.find("operator 'y'"), std::string::npos) << batch.limitedBy;
    EXPECT_EQ(roleOf(batch, model, "h"), "same");
    EXPECT_EQ(roleOf(batch, model, "w.grad"), "summand");
    EXPECT_EQ(identifierOf(batch, model, "h"), "m"); // for partitions
    EXPECT_EQ(identifierOf(batch, model, "y"), "");
    EXPECT_EQ(identifierOf(batch, model, "w.step"), "once");
}

TEST(Batch, WhatDependsOnInputsAloneMayNeedAllOfIt)
{
    // Scores relative to the batch's maximum: the maximum is computed once per step.
    Model model;
    model.tensor("x", {8, 4}, Role::Input)
        .tensor("w", {4}, Role::Weight)
        .op(Kind::ReduceMax, "m^ n -> n", {"x"}, "most", {4})
        .op(Kind::Sub, "m n, n -> m n", {"x", "most"}, "h", {8, 4}, {0, 1})
        .op(Kind::Mul, "m n, n -> m n", {"h", "w"}, "y", {8, 4}, {0})
        .op(Kind::ReduceSum, "m+ n+ -> 1", {"y"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8) << batch.limitedBy;
    EXPECT_EQ(identifierOf(batch, model, "most"), "once");
    EXPECT_EQ(roleOf(batch, model, "most"), "step");
    EXPECT_EQ(roleOf(batch, model, "x"), "split:0");
    EXPECT_EQ(identifierOf(batch, model, "h"), "m");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, TheLargestOfTheBatchIsNotASumOverMicroBatches)
{
    Model model;
    model.tensor("x", {8, 4}, Role::Input)
        .tensor("w", {4}, Role::Weight)
        .op(Kind::ReduceMax, "m+ n -> max: n", {"x"}, "most", {4})
        .op(Kind::Sub, "m n, n -> m n", {"x", "most"}, "h", {8, 4}, {0, 1})
        .op(Kind::Mul, "m n, n -> m n", {"h", "w"}, "y", {8, 4}, {0})
        .op(Kind::ReduceSum, "m+ n+ -> 1", {"y"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8) << batch.limitedBy;
    EXPECT_EQ(identifierOf(batch, model, "most"), "once");
    EXPECT_EQ(roleOf(batch, model, "most"), "step");
}

TEST(Batch, OfWhichNothingIsComputedInPiecesHasNoMicroBatches)
{
    Model model;
    model.tensor("x", {4, 3}, TensorRole::Input)
        .op(OperatorKind::ReduceMax, "n^ k -> k", {"x"}, "largest", {3});
    model.graph.outputs = {model.graph.operators.back().outputs[0]};
    const BatchInfo info = analyseBatch(model.graph);
    EXPECT_EQ(info.mostMicroBatches, 1);
    EXPECT_EQ(info.limitedBy, "the model: none of its operators works on a part of the batch");
}

TEST(Batch, ManyOperatorsMayNeedAllOfTheirInput)
{
    Model model;
    model.tensor("x", {8, 4}, Role::Input).tensor("w", {4}, Role::Weight);
    model.op(Kind::Mul, "m n, n -> m n", {"x", "w"}, "y0", {8, 4}, {0});
    constexpr int kCount = 300;
    for (int i = 0; i < kCount; ++i) {
        const std::string number = std::to_string(i);
        model.op(Kind::ReduceSum, "m+ n -> n", {"x"}, "sum" + number, {4}, {0})
            .op(Kind::Sqrt, "n -> n", {"sum" + number}, "root" + number, {4})
            .op(Kind::ReduceMax, "m^ n -> n", {"x"}, "most" + number, {4})
            .op(Kind::Mul, "n, n -> n", {"root" + number, "most" + number}, "scale" + number, {4}, {0})
            .op(Kind::Mul, "m n, n -> m n", {"y" + number, "scale" + number}, "y" + std::to_string(i + 1),
                {8, 4}, {0});
    }
    model.op(Kind::ReduceSum, "m+ n+ -> 1", {"y" + std::to_string(kCount)}, "loss", {}, {0}).train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8) << batch.limitedBy;
    EXPECT_EQ(roleOf(batch, model, "sum299"), "step");
    EXPECT_EQ(identifierOf(batch, model, "root299"), "once");
    EXPECT_EQ(roleOf(batch, model, "scale299"), "step");
    EXPECT_EQ(roleOf(batch, model, "y299"), "split:0");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, SumsPassLinearOperatorsOnly)
{
    const auto build = [](bool root) {
        Model model;
        model.tensor("x", {8, 4}, Role::Input)
            .tensor("w", {4}, Role::Weight)
            .tensor("half", {}, Role::Buffer)
            .op(Kind::Mul, "m n, n -> m n", {"x", "w"}, "y", {8, 4}, {0})
            .op(Kind::ReduceSum, "m+ n+ -> 1", {"y"}, "sum", {}, {0});
        if (root)
            model.op(Kind::Sqrt, "1 -> 1", {"sum"}, "loss", {});
        else
            model.op(Kind::Mul, "1, 1 -> 1", {"half", "sum"}, "loss", {}, {0});
        model.train("loss");
        return model;
    };
    const Model linear = build(false);
    EXPECT_EQ(analyseBatch(linear.graph).mostMicroBatches, 8);
    EXPECT_EQ(roleOf(analyseBatch(linear.graph), linear, "loss"), "summand");
    const BatchInfo root = analyseBatch(build(true).graph);
    EXPECT_EQ(root.mostMicroBatches, 1);
    EXPECT_NE(root.limitedBy.find("operator 'loss'"), std::string::npos) << root.limitedBy;
}

TEST(Batch, APenaltyOnWeightsMustNotBeCountedOncePerMicroBatch)
{
    Model model;
    model.tensor("x", {8, 4}, Role::Input)
        .tensor("w", {4}, Role::Weight)
        .op(Kind::Mul, "m n, n -> m n", {"x", "w"}, "y", {8, 4}, {0})
        .op(Kind::ReduceSum, "m+ n+ -> 1", {"y"}, "sum", {}, {0})
        .op(Kind::ReduceSumSquare, "n+ -> 1", {"w"}, "penalty", {})
        .op(Kind::Add, "1, 1 -> 1", {"sum", "penalty"}, "loss", {}, {0, 1})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 1);
    EXPECT_NE(batch.limitedBy.find("operator 'loss'"), std::string::npos) << batch.limitedBy;
}

TEST(Batch, AsksForSlicesOfWhatIsExpandedToIt)
{
    // A trained token put in front of every sample: its expansion is made, and differentiated, in slices.
    Model model;
    model.tensor("x", {8, 4, 2}, Role::Input)
        .tensor("token", {1, 2}, Role::Weight)
        .op(Kind::Identity, "a e -> a e", {"token"}, "copy", {1, 2}, {0})
        .op(Kind::Expand, "1 e -> b 1 e", {"copy"}, "tokens", {8, 1, 2}, {0})
        .op(Kind::Concat, "b 1 e, b 4 e -> b 5 e", {"tokens", "x"}, "y", {8, 5, 2}, {0, 1})
        .op(Kind::ReduceSum, "b+ s+ e+ -> 1", {"y"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8) << batch.limitedBy;
    EXPECT_EQ(identifierOf(batch, model, "tokens"), "b");
    EXPECT_EQ(roleOf(batch, model, "tokens"), "split:0");
    EXPECT_EQ(roleOf(batch, model, "tokens.grad"), "split:0");
    EXPECT_EQ(roleOf(batch, model, "copy.grad"), "summand");
    EXPECT_EQ(roleOf(batch, model, "token.grad"), "summand");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, ReadsSlicesOfWhatIsMadeWholeOnce)
{
    // Padded to the length of the batch: the parts of what is read are not as long as those of what is made.
    Model model;
    model.tensor("x", {8, 2}, Role::Input)
        .tensor("short", {6, 2}, Role::Input)
        .tensor("w", {2}, Role::Weight)
        .op(Kind::Pad, "b[met] e -> b[share] e; b: 1 by 1 at 0 of 8", {"short"}, "padded", {8, 2}, {0})
        .op(Kind::Neg, "b e -> b e", {"padded"}, "y", {8, 2}, {0})
        .op(Kind::Mul, "b e, e -> b e", {"x", "w"}, "z", {8, 2}, {0})
        .op(Kind::Mul, "b e, b e -> b e", {"y", "z"}, "product", {8, 2}, {1})
        .op(Kind::ReduceSum, "b+ e+ -> 1", {"product"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8) << batch.limitedBy;
    EXPECT_EQ(roleOf(batch, model, "padded"), "step");
    EXPECT_EQ(roleOf(batch, model, "y"), "split:0");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, ReadsSlicesOfConstantsButNotOfWeights)
{
    const auto build = [](Role role) {
        Model model;
        model.tensor("x", {8, 4}, Role::Input)
            .tensor("w", {4}, Role::Weight)
            .tensor("each", {8, 4}, role)
            .op(Kind::Mul, "m n, n -> m n", {"x", "w"}, "h", {8, 4}, {0})
            .op(Kind::Mul, "m n, m n -> m n", {"h", "each"}, "y", {8, 4}, {0})
            .op(Kind::ReduceSum, "m+ n+ -> 1", {"y"}, "loss", {}, {0})
            .train("loss");
        return model;
    };
    EXPECT_EQ(analyseBatch(build(Role::Buffer).graph).mostMicroBatches, 8);
    const BatchInfo weight = analyseBatch(build(Role::Weight).graph);
    EXPECT_EQ(weight.mostMicroBatches, 1);
    EXPECT_NE(weight.limitedBy.find("'each'"), std::string::npos) << weight.limitedBy;
}

TEST(Batch, CutIntoFactorsAllowsOnlyTheOuterOnesParts)
{
    Model model;
    model.tensor("x", {12, 4}, Role::Input)
        .tensor("w", {4}, Role::Weight)
        .op(Kind::Mul, "m n, n -> m n", {"x", "w"}, "h", {12, 4}, {0})
        .op(Kind::Reshape, "(a 3) n -> a 3 n", {"h"}, "groups", {4, 3, 4}, {0})
        .op(Kind::ReduceSum, "a+ b+ c+ -> 1", {"groups"}, "loss", {}, {0})
        .train("loss");
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.size, 12);
    EXPECT_EQ(batch.mostMicroBatches, 4);
    EXPECT_NE(batch.limitedBy.find("operator 'groups'"), std::string::npos) << batch.limitedBy;
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, MovesWithItsDimension)
{
    Model model;
    model.tensor("x", {8, 4}, Role::Input)
        .op(Kind::Transpose, "a b -> b a", {"x"}, "t", {4, 8})
        .op(Kind::Softmax, "b^ a -> b^ a", {"t"}, "y", {4, 8});
    const BatchInfo batch = analyseBatch(model.graph);
    EXPECT_EQ(batch.mostMicroBatches, 8);
    EXPECT_EQ(roleOf(batch, model, "y"), "split:1");
    expectSlicesMeet(batch, model.graph);
}

TEST(Batch, IsWhatTheFloatingInputsShareElseWhatMostHave)
{
    const auto sizeOf = [](const std::vector<std::pair<Shape, DataType>> &inputs) {
        Model model;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            model.tensor("x" + std::to_string(i), inputs[i].first, Role::Input, inputs[i].second);
        return analyseBatch(model.graph).size;
    };
    const DataType f = DataType::Float32;
    const DataType i = DataType::Int64;
    EXPECT_EQ(sizeOf({{{5}, i}, {{5}, i}, {{3, 2}, f}}), 3);
    EXPECT_EQ(sizeOf({{{4}, f}, {{5}, i}, {{5, 2}, f}}), 5);
    EXPECT_EQ(sizeOf({{{4}, i}, {{5}, i}}), 4);
    EXPECT_EQ(sizeOf({{{}, f}, {{6}, i}}), 6);
    EXPECT_EQ(sizeOf({{{}, f}}), 0);
    EXPECT_EQ(sizeOf({}), 0);
}

TEST(Batch, OfNoneOrOneSampleRunsInOnePiece)
{
    Model none;
    none.tensor("x", {}, Role::Input).op(Kind::Exp, "1 -> 1", {"x"}, "y", {});
    EXPECT_EQ(analyseBatch(none.graph).mostMicroBatches, 1);
    EXPECT_NE(analyseBatch(none.graph).limitedBy, "");
    Model one;
    one.tensor("x", {1, 4}, Role::Input).op(Kind::Exp, "1 a -> 1 a", {"x"}, "y", {1, 4});
    EXPECT_EQ(analyseBatch(one.graph).mostMicroBatches, 1);
    EXPECT_EQ(analyseBatch(one.graph).limitedBy, "");
}

TEST(Batch, IsCutBeforeAndBehindWhatNeedsAllOfIt)
{
    Model m;
    m.tensor("x", {8, 4}, TensorRole::Input).tensor("w", {4, 3}, TensorRole::Weight);
    m.op(OperatorKind::Linear, "b k+, k+ n -> b n", {"x", "w"}, "y", {8, 3}, {0});
    m.op(OperatorKind::CumSum, "8 n -> 8 n", {"y"}, "sums", {8, 3});
    m.op(OperatorKind::Tanh, "b n -> b n", {"sums"}, "z", {8, 3});
    m.op(OperatorKind::ReduceSum, "b+ n+ -> 1", {"z"}, "loss", {});
    m.train("loss");
    const BatchInfo info = analyseBatch(m.graph);
    EXPECT_EQ(info.mostMicroBatches, 1);
    EXPECT_EQ(info.limitedBy.substr(0, 15), "operator 'sums'");
    ASSERT_EQ(info.obstacles.size(), 1U);
    EXPECT_EQ(m.graph.at(info.obstacles.front().op).name, "sums");
    EXPECT_EQ(std::vector(info.operatorDimension.begin(), info.operatorDimension.begin() + 4),
        (std::vector<std::int32_t>{0, -1, 0, 0}));
}

TEST(Batch, PicturesThatATextPicksFromAreSamples)
{
    // Without the pictures the rest could be cut, but the network before the pick would be computed whole.
    Model m;
    m.tensor("pictures", {8, 4}, TensorRole::Input).tensor("w", {4, 3}, TensorRole::Weight);
    m.tensor("places", {8}, TensorRole::Input, DataType::Int64);
    m.op(OperatorKind::Linear, "b k+, k+ n -> b n", {"pictures", "w"}, "features", {8, 3}, {0});
    m.op(OperatorKind::Gather, "8 n, b -> b n", {"features", "places"}, "picked", {8, 3}, {0});
    m.op(OperatorKind::ReduceSum, "b+ n+ -> 1", {"picked"}, "loss", {}, {0});
    m.train("loss");
    const BatchInfo info = analyseBatch(m.graph);
    EXPECT_EQ(info.mostMicroBatches, 1);
    EXPECT_EQ(info.limitedBy.substr(0, 17), "operator 'picked'");
    EXPECT_EQ(std::vector(info.operatorDimension.begin(), info.operatorDimension.begin() + 3),
        (std::vector<std::int32_t>{0, 2, 0})); // the pick by its places
}

TEST(Batch, LiesBehindASequenceThatIsAttendedAlong)
{
    Model m; // [sequence batch width], of which 6 x 6 scores
    m.tensor("x", {6, 8, 4}, TensorRole::Input).tensor("w", {4, 4}, TensorRole::Weight);
    m.op(OperatorKind::Linear, "s b k+, k+ n -> s b n", {"x", "w"}, "y", {6, 8, 4}, {0});
    m.op(OperatorKind::Einsum, "s b k+, t b k+ -> b s t", {"y", "y"}, "scores", {8, 6, 6});
    m.op(OperatorKind::ReduceSum, "b+ s+ t+ -> 1", {"scores"}, "loss", {});
    m.train("loss");
    EXPECT_EQ(batchInputOf(m.graph).dimension, 1);
    EXPECT_EQ(analyseBatch(m.graph).mostMicroBatches, 8);

    Model pairs; // every sample against every other: dimension 1 is the width
    pairs.tensor("x", {8, 4}, TensorRole::Input).tensor("w", {4, 4}, TensorRole::Weight);
    pairs.op(OperatorKind::Linear, "b k+, k+ n -> b n", {"x", "w"}, "y", {8, 4}, {0});
    pairs.op(OperatorKind::Einsum, "b k+, c k+ -> b c", {"y", "y"}, "scores", {8, 8});
    pairs.op(OperatorKind::ReduceSum, "b+ c+ -> 1", {"scores"}, "loss", {});
    pairs.train("loss");
    EXPECT_EQ(batchInputOf(pairs.graph).dimension, 0);
    EXPECT_EQ(analyseBatch(pairs.graph).mostMicroBatches, 1);
}

TEST(Batch, WhatIsMadeOfValuesOfTheStepIsOfTheStepToo)
{
    Model m; // a value over the whole batch, and shares of what it was made from
    m.tensor("x", {8, 4}, TensorRole::Input).tensor("a", {8}, TensorRole::Input);
    m.tensor("w", {4}, TensorRole::Weight);
    m.op(OperatorKind::Neg, "b -> b", {"a"}, "n", {8});
    m.op(OperatorKind::ReduceMax, "8 -> 1", {"n"}, "top", {});
    m.op(OperatorKind::Sub, "b, 1 -> b", {"n", "top"}, "distance", {8});
    m.op(OperatorKind::ReduceMax, "8 -> 1", {"distance"}, "spread", {});
    m.op(OperatorKind::Div, "b, 1 -> b", {"n", "spread"}, "scaled", {8});
    m.op(OperatorKind::Einsum, "b k+, k+ -> b", {"x", "w"}, "y", {8}, {0});
    m.op(OperatorKind::Mul, "b, b -> b", {"y", "scaled"}, "z", {8}, {0});
    m.op(OperatorKind::ReduceSum, "b+ -> 1", {"z"}, "loss", {});
    m.train("loss");
    const BatchInfo info = analyseBatch(m.graph);
    EXPECT_EQ(info.mostMicroBatches, 8);
    const std::vector<bool> once(info.oncePerStep.begin(), info.oncePerStep.begin() + 8);
    EXPECT_EQ(once, (std::vector<bool>{true, true, true, true, true, false, false, false}));
}

TEST(Batch, WhatIsReadWithValuesOfTheStepIsMadeBeforeThem)
{
    Model m; // a value over the whole batch times one of a constant that no sample belongs to
    m.tensor("x", {8, 4}, TensorRole::Input).tensor("c", {4}, TensorRole::Buffer);
    m.tensor("w", {4}, TensorRole::Weight);
    m.op(OperatorKind::ReduceMax, "8 4 -> 4", {"x"}, "top", {4});
    m.op(OperatorKind::Neg, "4 -> 4", {"c"}, "n", {4});
    m.op(OperatorKind::Mul, "4, 4 -> 4", {"top", "n"}, "scaled", {4});
    m.op(OperatorKind::Mul, "b 4, 4 -> b 4", {"x", "scaled"}, "y", {8, 4}, {0});
    m.op(OperatorKind::Einsum, "b k+, k+ -> b", {"y", "w"}, "z", {8}, {0});
    m.op(OperatorKind::ReduceSum, "b+ -> 1", {"z"}, "loss", {});
    m.train("loss");
    const BatchInfo info = analyseBatch(m.graph);
    EXPECT_EQ(info.mostMicroBatches, 8);
    const std::vector<bool> once(info.oncePerStep.begin(), info.oncePerStep.begin() + 6);
    EXPECT_EQ(once, (std::vector<bool>{true, true, true, false, false, false}));
}

} // namespace planloom
