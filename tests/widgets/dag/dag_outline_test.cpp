#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_outline.h"

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "widgets/dag/visible_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace planloom {
namespace {

/// What holds of every outline of every graph.
void expectSound(const DagOutline &outline)
{
    std::set<std::int32_t> operators;
    for (std::size_t i = 0; i < outline.items.size(); ++i) {
        const auto &item = outline.items[i];
        SCOPED_TRACE(item.label);
        EXPECT_EQ(item.parent < 0, i == 0);
        EXPECT_LE(item.children.size(), DagOutline::kMostChildren);
        std::int32_t next = item.begin;
        for (const auto child : item.children) {
            EXPECT_GT(child, static_cast<std::int32_t>(i));
            EXPECT_EQ(outline.at(child).parent, static_cast<std::int32_t>(i));
            EXPECT_EQ(outline.at(child).begin, next) << "units of an item are consecutive";
            next = outline.at(child).end;
        }
        if (item.kind == OutlineItem::Kind::Operator) {
            EXPECT_EQ(item.end, item.begin + 1);
            const auto &unit = outline.units[static_cast<std::size_t>(item.begin)];
            EXPECT_EQ(unit.item, static_cast<std::int32_t>(i));
            EXPECT_TRUE(operators.insert(unit.op.index).second);
            if (unit.backward.valid()) {
                EXPECT_TRUE(operators.insert(unit.backward.index).second);
            }
            for (const auto step : unit.optimizers)
                EXPECT_TRUE(operators.insert(step.index).second);
        } else {
            EXPECT_EQ(next, item.end);
        }
        if (item.kind == OutlineItem::Kind::Stack) {
            EXPECT_GE(item.children.size(), 2U);
            for (const auto copy : item.children)
                EXPECT_EQ(
                    (outline.at(copy).end - outline.at(copy).begin) * static_cast<int>(item.children.size()),
                    item.end - item.begin);
        }
    }
    std::size_t expected = 0;
    for (const auto &op : outline.graph->operators)
        expected += outline.mode != DagMode::ForwardOnly || op.direction == Direction::Forward ? 1 : 0;
    EXPECT_EQ(operators.size(), expected) << "every operator is shown once";
}

const OutlineItem *itemCalled(const DagOutline &outline, const std::string &label)
{
    const auto found = std::find_if(outline.items.begin(), outline.items.end(),
        [&](const OutlineItem &item) { return item.label == label; });
    return found == outline.items.end() ? nullptr : &*found;
}

TEST(DagOutline, OfAnEmptyGraphIsTheModelAlone)
{
    const auto outline = buildOutline(std::make_shared<const Graph>(), DagMode::Folded);
    ASSERT_EQ(outline.items.size(), 1U);
    EXPECT_TRUE(outline.units.empty());
    expectSound(outline);
    EXPECT_EQ(visibleGraph(outline, initialState(outline)).boxes.size(), 1U);
}

TEST(DagOutline, OfGptHasOneStackOfItsLayers)
{
    const auto outline =
        buildOutline(trainingStepOf("zoo:gpt?layers=24&hidden=64&heads=4&seq=16&vocab=100"), DagMode::Folded);
    expectSound(outline);
    const auto *stack = itemCalled(outline, "h");
    ASSERT_NE(stack, nullptr);
    EXPECT_EQ(stack->kind, OutlineItem::Kind::Stack);
    EXPECT_EQ(stack->children.size(), 24U);
    EXPECT_EQ(outline.at(stack->children[3]).label, "h.3");
    EXPECT_EQ(std::count_if(outline.items.begin(), outline.items.end(),
                  [](const auto &item) { return item.kind == OutlineItem::Kind::Stack; }),
        1);
}

TEST(DagOutline, FoldsBackwardAndOptimizerIntoForward)
{
    const auto graph = trainingStepOf("zoo:mlp?layers=3");
    const auto folded = buildOutline(graph, DagMode::Folded);
    const auto forward = buildOutline(graph, DagMode::ForwardOnly);
    const auto unrolled = buildOutline(graph, DagMode::Unrolled);
    for (const auto *outline : {&folded, &forward, &unrolled})
        expectSound(*outline);
    EXPECT_EQ(unrolled.units.size(), graph->operators.size());
    EXPECT_EQ(unrolled.at(0).children.size(), 3U);
    for (const auto &unit : folded.units) {
        const auto &op = graph->at(unit.op);
        if (op.direction == Direction::Forward && op.mirror.valid()) {
            EXPECT_EQ(unit.backward, op.mirror);
        }
        if (op.kind == OperatorKind::Linear) {
            EXPECT_GE(unit.optimizers.size(), 1U) << op.name;
        }
    }
    for (const auto &unit : forward.units) {
        EXPECT_FALSE(unit.backward.valid());
        EXPECT_TRUE(unit.optimizers.empty());
    }
}

TEST(DagOutline, EveryZooModelIsSoundInEveryMode)
{
    for (const char *spec : {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=100", "zoo:t5?layers=2",
             "zoo:moe?layers=4", "zoo:resnet", "zoo:evoformer?layers=3", "zoo:swin", "zoo:vgg"}) {
        SCOPED_TRACE(spec);
        const auto model = buildZooModel(spec);
        if (!model) {
            ADD_FAILURE() << describe(model.error());
            continue;
        }
        const auto graph = trainingStepOf(spec);
        for (const auto mode : {DagMode::ForwardOnly, DagMode::Folded, DagMode::Unrolled})
            expectSound(buildOutline(graph, mode));
    }
}

TEST(DagOutline, LongListsAreCutIntoGroups)
{
    Graph graph;
    graph.tensors.resize(50001);
    graph.operators.resize(50000);
    for (std::int32_t i = 0; i < 50000; ++i) {
        auto &op = graph.operators[static_cast<std::size_t>(i)];
        op.name = "op" + std::to_string(i);
        op.kind = OperatorKind::Relu;
        op.scope = ScopeId{0};
        op.inputs = {TensorId{i}};
        op.outputs = {TensorId{i + 1}};
    }
    const auto outline = buildOutline(std::make_shared<const Graph>(graph), DagMode::Folded);
    expectSound(outline);
    EXPECT_EQ(outline.edges.size(), 49999U);
    EXPECT_EQ(outline.at(0).children.size(), 2U);
}

TEST(DagOutline, ScopesNestedWithoutEndAreCutOff)
{
    Graph graph;
    graph.tensors.resize(3);
    for (std::int32_t depth = 0; depth < 20000; ++depth)
        graph.scopes.push_back({.name = "s", .parent = ScopeId{depth}});
    for (std::int32_t i = 0; i < 2; ++i) {
        Operator op;
        op.name = "op" + std::to_string(i);
        op.kind = OperatorKind::Relu;
        op.scope = ScopeId{20000};
        op.inputs = {TensorId{i}};
        op.outputs = {TensorId{i + 1}};
        graph.operators.push_back(op);
    }
    expectSound(buildOutline(std::make_shared<const Graph>(graph), DagMode::Folded));
}

} // namespace
} // namespace planloom
