#include "engine/gesture/selection.h"

#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace planloom {
namespace {

const std::shared_ptr<const SelectorIndex> &threeLayers()
{
    static const auto kIndex = indexOf("zoo:gpt?layers=3&hidden=32&heads=2&seq=8&vocab=64&batch=4&fused=0");
    return kIndex;
}

OperatorId called(const std::string &name)
{
    const OperatorId op = threeLayers()->findOperator(name);
    EXPECT_TRUE(op.valid()) << name;
    return op;
}

std::set<std::string> namesOf(const std::vector<OperatorId> &operators)
{
    EXPECT_TRUE(std::is_sorted(operators.begin(), operators.end()));
    std::set<std::string> names;
    for (const OperatorId op : operators)
        names.insert(threeLayers()->graph().at(op).name);
    return names;
}

using Names = std::set<std::string>;

TEST(Similar, AreInTheSamePlaceOfEveryCopy)
{
    const Graph &graph = threeLayers()->graph();
    EXPECT_EQ(namesOf(similarOperators(graph, {called("h.1.mlp.c_fc")})),
        (Names{"h.0.mlp.c_fc", "h.1.mlp.c_fc", "h.2.mlp.c_fc"}));
    // The two normalizations of a layer have equal shapes, and so have its four products of the hidden size.
    EXPECT_EQ(
        namesOf(similarOperators(graph, {called("h.0.ln_1")})), (Names{"h.0.ln_1", "h.1.ln_1", "h.2.ln_1"}));
    EXPECT_EQ(namesOf(similarOperators(graph, {called("h.0.attn.k_attn"), called("h.2.ln_2")})),
        (Names{"h.0.attn.k_attn", "h.1.attn.k_attn", "h.2.attn.k_attn", "h.0.ln_2", "h.1.ln_2", "h.2.ln_2"}));
}

TEST(Similar, StayInTheirDirection)
{
    const Graph &graph = threeLayers()->graph();
    const OperatorId backward = graph.at(called("h.1.mlp.c_fc")).mirror;
    ASSERT_TRUE(backward.valid());
    const auto similar = similarOperators(graph, {backward});
    EXPECT_EQ(similar.size(), 3U);
    for (const OperatorId op : similar)
        EXPECT_EQ(graph.at(op).direction, Direction::Backward);
}

TEST(Similar, AreThemselvesAmongThose)
{
    const Graph &graph = threeLayers()->graph();
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        const auto similar = similarOperators(graph, {op});
        ASSERT_TRUE(std::binary_search(similar.begin(), similar.end(), op)) << graph.at(op).name;
        for (const OperatorId other : similar) {
            EXPECT_EQ(graph.at(other).kind, graph.at(op).kind);
            EXPECT_EQ(graph.at(other).direction, graph.at(op).direction);
        }
        // What is similar to one is similar to the other.
        if (similar.size() > 1) {
            EXPECT_EQ(similarOperators(graph, {similar.front()}), similarOperators(graph, {similar.back()}));
        }
    }
    EXPECT_TRUE(similarOperators(graph, {}).empty());
}

TEST(Similar, OfANameAloneAreThoseOfItsShapes)
{
    // Three operators in no module, as exporters without scopes number them; two of them compute alike.
    Graph graph;
    for (const std::int64_t size : {4, 4, 8}) {
        Tensor tensor;
        tensor.type.shape = {size};
        graph.tensors.push_back(tensor);
        Operator op;
        op.name = "Relu_" + std::to_string(graph.operators.size());
        op.kind = OperatorKind::Relu;
        op.outputs = {TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1}};
        graph.operators.push_back(op);
    }
    EXPECT_EQ(similarOperators(graph, {{0}}), (std::vector<OperatorId>{{0}, {1}}));
    EXPECT_EQ(similarOperators(graph, {{2}}), (std::vector<OperatorId>{{2}}));
}

TEST(Similar, AreNoneWhereTheSearchIsStopped)
{
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(similarOperators(threeLayers()->graph(), {called("h.0.ln_1")}, stop.get_token()).empty());
}

TEST(SameDevices, AreExactlyThose)
{
    const GestureContext context = contextOf(threeLayers(), 3,
        "place !layer:1 & !name:h.2.mlp.c_fc : devices 0\nplace layer:1 : devices 1\nsplit name:h.2.mlp.c_fc "
        ": n by 2\n"
        "place name:h.2.mlp.c_fc : devices 0,1\n");
    ASSERT_TRUE(context.plan);
    const auto same = [&](const char *name) {
        return namesOf(operatorsOnSameDevices(*context.plan, {called(name)}));
    };
    // What runs on 0 and 1 shares a device with everything, and is alone with both.
    EXPECT_TRUE(same("h.2.mlp.c_fc").contains("h.2.mlp.c_fc"));
    EXPECT_FALSE(same("h.2.mlp.c_fc").contains("h.0.mlp.c_fc"));
    EXPECT_TRUE(same("h.0.mlp.c_fc").contains("h.2.ln_1"));
    EXPECT_FALSE(same("h.0.mlp.c_fc").contains("h.1.ln_1"));
    EXPECT_FALSE(same("h.0.mlp.c_fc").contains("h.2.mlp.c_fc"));
    const auto on1 = namesOf(operatorsOnDevice(*context.plan, DeviceId{1}));
    EXPECT_TRUE(on1.contains("h.1.ln_1"));
    EXPECT_TRUE(on1.contains("h.2.mlp.c_fc"));
    EXPECT_FALSE(on1.contains("h.0.ln_1"));
    // Of several, each one's.
    const auto both =
        namesOf(operatorsOnSameDevices(*context.plan, {called("h.0.ln_1"), called("h.1.ln_1")}));
    EXPECT_TRUE(both.contains("h.1.ln_2"));
    EXPECT_TRUE(both.contains("h.2.ln_2"));
    EXPECT_FALSE(both.contains("h.2.mlp.c_fc"));
    EXPECT_TRUE(operatorsOnSameDevices(Plan{}, {called("h.0.ln_1")}).empty());
}

TEST(SameStages, ComeFromThePlan)
{
    const GestureContext context = contextOf(threeLayers(), 2,
        "mesh pp=2\nstage layer:0-1 : 0\nstage layer:2 : 1\nplace layer:0-1 : devices 0\nplace layer:2 : "
        "devices 1\n");
    ASSERT_TRUE(context.plan);
    const auto stage = operatorsOfSameStages(*context.plan, {called("h.2.ln_1")});
    EXPECT_TRUE(namesOf(stage).contains("h.2.mlp.c_fc"));
    for (const OperatorId op : stage)
        EXPECT_EQ(context.plan->decisions[static_cast<std::size_t>(op.index)].stage, StageId{1});
}

TEST(Cones, FollowTheDataAndStayInTheForwardPass)
{
    const auto all = forwardOnes(threeLayers()->graph(), allOperators(threeLayers()->graph()));
    const auto down = successorsOf(*threeLayers(), {all.front()});
    const auto up = predecessorsOf(*threeLayers(), {all.back()});
    EXPECT_TRUE(std::binary_search(down.begin(), down.end(), all.back()));
    EXPECT_GT(up.size(), all.size() / 2);
    for (const auto &cone : {down, up}) {
        for (const OperatorId op : cone)
            EXPECT_EQ(threeLayers()->graph().at(op).direction, Direction::Forward);
    }
    // What comes before and what comes after meet only in the operator itself.
    const OperatorId middle = all[all.size() / 2];
    const auto before = predecessorsOf(*threeLayers(), {middle});
    const auto after = successorsOf(*threeLayers(), {middle});
    std::vector<OperatorId> both;
    std::set_intersection(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(both));
    EXPECT_EQ(both, (std::vector<OperatorId>{middle}));
}

TEST(Inverting, GivesTheOthersAndTwiceTheSelection)
{
    const Graph &graph = threeLayers()->graph();
    const auto all = allOperators(graph);
    EXPECT_EQ(all.size(), graph.operators.size());
    const std::vector<OperatorId> some{all[1], all[3], all.back()};
    EXPECT_EQ(invertedSelection(graph, some).size(), all.size() - 3);
    EXPECT_EQ(invertedSelection(graph, invertedSelection(graph, some)), some);
    EXPECT_EQ(invertedSelection(graph, all), std::vector<OperatorId>{});
}

} // namespace
} // namespace planloom
