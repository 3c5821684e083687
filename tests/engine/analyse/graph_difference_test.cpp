#include "engine/analyse/graph_difference.h"

#include "engine/frontend/zoo/zoo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace planloom {
namespace {

/// A graph of element-wise operators that read one or two earlier tensors of one shape, all of whose results
/// are used or returned.
Graph randomGraph(std::mt19937 &random, std::size_t operators)
{
    Graph graph;
    const TensorType type{DataType::Float32, {4, 6}};
    const auto add = [&](const std::string &name, TensorRole role) {
        graph.tensors.push_back({.name = name, .type = type, .role = role});
        return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
    };
    std::vector<TensorId> made{add("input", TensorRole::Input)};
    graph.inputs = made;
    const OperatorKind unary[] = {OperatorKind::Relu, OperatorKind::Exp, OperatorKind::Sin, OperatorKind::Neg,
        OperatorKind::Sigmoid, OperatorKind::Sqrt};
    for (std::size_t i = 0; i < operators; ++i) {
        Operator op;
        op.name = "op" + std::to_string(i);
        const bool isBinary = made.size() > 1 && random() % 3 == 0;
        op.kind =
            isBinary ? (random() % 2 == 0 ? OperatorKind::Add : OperatorKind::Mul) : unary[random() % 6];
        const std::size_t reach = std::min<std::size_t>(made.size(), 4);
        for (int slot = 0; slot < (isBinary ? 2 : 1); ++slot)
            op.inputs.push_back(made[made.size() - 1 - random() % reach]);
        op.outputs = {add("t" + std::to_string(i), TensorRole::Activation)};
        op.scope = ScopeId{0};
        made.push_back(op.outputs.front());
        graph.operators.push_back(std::move(op));
    }
    std::vector<bool> isRead(graph.tensors.size(), false);
    for (const Operator &op : graph.operators)
        for (const TensorId input : op.inputs)
            isRead[static_cast<std::size_t>(input.index)] = true;
    for (const TensorId tensor : made)
        if (!isRead[static_cast<std::size_t>(tensor.index)])
            graph.outputs.push_back(tensor);
    return graph;
}

GraphDifference difference(const Graph &a, const Graph &b)
{
    return differenceOf(
        SelectorIndex(std::make_shared<const Graph>(a)), SelectorIndex(std::make_shared<const Graph>(b)));
}

/// `graph` with all names of operators and tensors made anew, so that none is left.
Graph renamed(Graph graph)
{
    for (Operator &op : graph.operators)
        op.name = "other/" + op.name + "/name";
    for (Tensor &tensor : graph.tensors)
        tensor.name = "other/" + tensor.name;
    return graph;
}

/// `graph` with an operator between what makes `tensor` and one of those who read it.
Graph withInserted(Graph graph, OperatorId reader, std::size_t slot, OperatorKind kind)
{
    Operator &reads = graph.at(reader);
    const TensorId from = reads.inputs[slot];
    Tensor tensor = graph.at(from);
    tensor.name = "inserted output";
    tensor.role = TensorRole::Activation;
    graph.tensors.push_back(tensor);
    const TensorId made{static_cast<std::int32_t>(graph.tensors.size()) - 1};
    graph.at(reader).inputs[slot] = made;
    Operator op;
    op.name = "inserted";
    op.kind = kind;
    op.scope = ScopeId{0};
    op.inputs = {from};
    op.outputs = {made};
    graph.operators.insert(graph.operators.begin() + reader.index, std::move(op));
    return graph;
}

std::vector<Graph> someGraphs()
{
    std::vector<Graph> graphs;
    std::mt19937 random(20);
    for (int i = 0; i < 60; ++i)
        graphs.push_back(randomGraph(random, 4 + random() % 40));
    for (const char *model : {"zoo:gpt?layers=3&hidden=32&heads=4&seq=8&batch=2&vocab=24", "zoo:mlp?layers=5",
             "zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&seq=4&batch=2&vocab=24"})
        graphs.push_back(*buildZooModel(model));
    return graphs;
}

TEST(GraphDifference, OfAModelWithItselfIsEmpty)
{
    for (const Graph &graph : someGraphs()) {
        const GraphDifference found = difference(graph, graph);
        EXPECT_TRUE(found.empty());
        EXPECT_EQ(found.same, static_cast<std::int32_t>(graph.operators.size()));
    }
}

TEST(GraphDifference, OfARenamedCopyIsRenamesAlone)
{
    for (const Graph &graph : someGraphs()) {
        const Graph other = renamed(graph);
        const GraphDifference found = difference(graph, other);
        EXPECT_TRUE(found.added.empty());
        EXPECT_TRUE(found.removed.empty());
        EXPECT_EQ(found.changed.size(), graph.operators.size());
        for (const ChangedOperator &change : found.changed) {
            EXPECT_EQ(change, (ChangedOperator{.a = change.a, .b = change.b, .renamed = true}));
            EXPECT_EQ(wordsOf(change, graph, other), "");
        }
    }
}

TEST(GraphDifference, OfAnInsertedOperatorIsOneAdditionAndTheOtherWayRoundOneRemoval)
{
    std::mt19937 random(3);
    for (const Graph &graph : someGraphs())
        for (int round = 0; round < 4; ++round) {
            const OperatorId reader{static_cast<std::int32_t>(random() % graph.operators.size())};
            const auto &inputs = graph.at(reader).inputs;
            const std::size_t slot = random() % inputs.size();
            if (!inputs[slot] || graph.at(inputs[slot]).type.dataType != DataType::Float32)
                continue;
            const Graph other = withInserted(graph, reader, slot, OperatorKind::Tanh);
            const GraphDifference found = difference(graph, other);
            ASSERT_EQ(found.added.size(), 1U);
            EXPECT_EQ(other.at(found.added.front()).name, "inserted");
            EXPECT_TRUE(found.removed.empty());
            EXPECT_TRUE(found.changed.empty());
            const GraphDifference back = difference(other, graph);
            EXPECT_EQ(back.removed, found.added);
            EXPECT_TRUE(back.added.empty());
            EXPECT_TRUE(back.changed.empty());
        }
}

TEST(GraphDifference, TellsKindsShapesAndAttributesApart)
{
    const Graph graph = *buildZooModel("zoo:gpt?layers=3&hidden=32&heads=4&seq=8&batch=2&vocab=24");
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        Graph other = graph;
        other.operators[i].attributes.set("planloom_test", std::int64_t{3});
        GraphDifference found = difference(graph, other);
        ASSERT_EQ(found.changed.size(), 1U);
        EXPECT_TRUE(found.changed.front().attributes);
        EXPECT_FALSE(
            found.changed.front().shapes || found.changed.front().kind || found.changed.front().renamed);
        EXPECT_EQ(wordsOf(found.changed.front(), graph, other), "attribute planloom_test 3, was none");
        EXPECT_TRUE(found.added.empty() && found.removed.empty());
    }
    const auto gelu = std::find_if(graph.operators.begin(), graph.operators.end(),
        [](const Operator &op) { return op.kind == OperatorKind::Gelu; });
    ASSERT_NE(gelu, graph.operators.end());
    Graph other = graph;
    other.operators[static_cast<std::size_t>(gelu - graph.operators.begin())].kind = OperatorKind::Relu;
    const GraphDifference kinds = difference(graph, other);
    ASSERT_EQ(kinds.changed.size(), 1U);
    EXPECT_EQ(kinds.changed.front().a.index, gelu - graph.operators.begin());
    EXPECT_EQ(wordsOf(kinds.changed.front(), graph, other), "kind Relu, was Gelu");
    EXPECT_TRUE(kinds.added.empty() && kinds.removed.empty());
    // Wider: the same operators, other shapes.
    const Graph wide = *buildZooModel("zoo:gpt?layers=3&hidden=64&heads=4&seq=8&batch=2&vocab=24");
    const GraphDifference shapes = difference(graph, wide);
    EXPECT_TRUE(shapes.added.empty() && shapes.removed.empty());
    EXPECT_GT(shapes.changed.size(), graph.operators.size() / 2);
    for (const ChangedOperator &change : shapes.changed) {
        EXPECT_TRUE(change.shapes || change.attributes);
        EXPECT_FALSE(change.kind || change.renamed || change.wiring);
        EXPECT_NE(wordsOf(change, graph, wide).find(", was "), std::string::npos);
    }
}

TEST(GraphDifference, OfADeeperModelIsItsLayersOperators)
{
    const Graph graph = *buildZooModel("zoo:gpt?layers=3&hidden=32&heads=4&seq=8&batch=2&vocab=24");
    const Graph deeper = *buildZooModel("zoo:gpt?layers=4&hidden=32&heads=4&seq=8&batch=2&vocab=24");
    const GraphDifference found = difference(graph, deeper);
    EXPECT_TRUE(found.removed.empty());
    EXPECT_EQ(found.added.size(), deeper.operators.size() - graph.operators.size());
}

TEST(GraphDifference, SaysWhatReadsAnotherOperator)
{
    std::mt19937 random(5);
    Graph graph = randomGraph(random, 30);
    // The last operator reads what the third one makes.
    Graph other = graph;
    Operator &last = other.operators.back();
    const TensorId early = other.operators[2].outputs.front();
    ASSERT_NE(last.inputs.front(), early);
    last.inputs.front() = early;
    const GraphDifference found = difference(graph, other);
    EXPECT_TRUE(found.added.empty() && found.removed.empty());
    ASSERT_EQ(found.changed.size(), 1U);
    EXPECT_TRUE(found.changed.front().wiring);
    EXPECT_EQ(wordsOf(found.changed.front(), graph, other), "reads what another operator makes");
}

} // namespace
} // namespace planloom
