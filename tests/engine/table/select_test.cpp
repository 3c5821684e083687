#include "engine/table/selector_index.h"
#include "tests/engine/table/models.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

std::vector<std::string> namesOf(const SelectorIndex &index, std::string_view text)
{
    const auto selector = parseSelector(text);
    EXPECT_TRUE(selector) << describe(selector.error());
    std::vector<std::string> names;
    for (const OperatorId op : index.select(*selector))
        names.push_back(index.graph().at(op).name);
    return names;
}

TEST(Select, AtomsOfASmallModel)
{
    const SelectorIndex index(tinyMlp());
    using Names = std::vector<std::string>;
    EXPECT_EQ(namesOf(index, "name:a"), (Names{"a"}));
    EXPECT_EQ(namesOf(index, "name:?"), (Names{"a", "r", "b"}));
    EXPECT_EQ(namesOf(index, "kind:Linear & forward"), (Names{"a", "b"}));
    EXPECT_EQ(namesOf(index, "kind:R* & forward & !name:sum"), (Names{"r"}));
    EXPECT_EQ(namesOf(index, "set{b, a}"), (Names{"a", "b"}));
    EXPECT_EQ(namesOf(index, "weight:w1"), (Names{"a", "w1.step"}));
    EXPECT_EQ(namesOf(index, "weight:w1 & optimizer | name:r"), (Names{"r", "w1.step"}));
    EXPECT_EQ(namesOf(index, "layer:*"), Names{});
    EXPECT_EQ(namesOf(index, "all").size(), index.graph().operators.size());
}

TEST(Select, WeightsByTheNameThatFilesKnow)
{
    auto graph = std::make_shared<Graph>(*tinyMlp());
    for (Tensor &tensor : graph->tensors) {
        if (tensor.name != "w1")
            continue;
        Shape whole = tensor.type.shape;
        whole[0] += 1;
        tensor.filePart = FilePart{"fused", whole, 0, 0};
    }
    const SelectorIndex index(graph);
    using Names = std::vector<std::string>;
    for (const char *text : {"weight:w1", "weight:fused", "weight:fu*"}) {
        EXPECT_EQ(namesOf(index, text), (Names{"a", "w1.step"})) << text;
        EXPECT_TRUE(index.check(*parseSelector(text))) << text;
    }
}

TEST(Select, LayersAndModulesOfATransformer)
{
    const SelectorIndex index(tinyGpt());
    const Graph &graph = index.graph();
    EXPECT_EQ(index.layers().scopes.size(), 2u);
    const auto layer = namesOf(index, "layer:1");
    EXPECT_GT(layer.size(), 20u);
    EXPECT_EQ(layer, namesOf(index, "in:h.1"));
    EXPECT_EQ(namesOf(index, "layer:0-1"), namesOf(index, "in:h.*"));
    EXPECT_EQ(namesOf(index, "layer:*"), namesOf(index, "layer:0-*"));
    for (const std::string &name : namesOf(index, "in:h.0.mlp"))
        EXPECT_EQ(pathOf(graph, graph.at(operatorNamed(graph, name)).scope).substr(0, 7), "h.0.mlp");
    // What was one operator when a row was written may be two today.
    EXPECT_EQ(namesOf(index, "kind:CrossEntropy & forward"),
        (std::vector<std::string>{"loss.statistics", "loss.cross_entropy"}));
    EXPECT_EQ(namesOf(index, "in:h.*.mlp & forward & kind:Linear"),
        (std::vector<std::string>{"h.0.mlp.c_fc", "h.0.mlp.c_proj", "h.1.mlp.c_fc", "h.1.mlp.c_proj"}));
}

TEST(Select, EncoderAndDecoderLayersAreNumberedOn)
{
    const SelectorIndex index(zooTraining("zoo:t5?layers=3&hidden=32&heads=4&vocab=50"));
    ASSERT_EQ(index.layers().scopes.size(), 6u);
    EXPECT_NE(index.pathOf(index.layers().scopes[2]), index.pathOf(index.layers().scopes[3]));
    // All of the encoder's come before all of the decoder's.
    const auto stackOf = [&](std::size_t i) { return index.graph().at(index.layers().scopes[i]).parent; };
    EXPECT_EQ(stackOf(0), stackOf(2));
    EXPECT_EQ(stackOf(3), stackOf(5));
    EXPECT_NE(stackOf(2), stackOf(3));
}

/// Set algebra over a selection by name sets.
TEST(Select, ExpressionsAreSetAlgebra)
{
    const SelectorIndex index(tinyGpt());
    RandomTable random(11);
    const auto all = index.select(selectAll());
    for (int i = 0; i < 300; ++i) {
        Selector a = random.selector(2);
        Selector b = random.selector(2);
        const auto left = index.select(a);
        const auto right = index.select(b);
        EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
        std::vector<OperatorId> both;
        std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
        std::vector<OperatorId> either;
        std::set_union(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(either));
        std::vector<OperatorId> rest;
        std::set_difference(all.begin(), all.end(), left.begin(), left.end(), std::back_inserter(rest));
        EXPECT_EQ(index.select({.kind = SelectorKind::And, .text = {}, .children = {a, b}}), both);
        EXPECT_EQ(index.select({.kind = SelectorKind::Or, .text = {}, .children = {a, b}}), either);
        EXPECT_EQ(index.select({.kind = SelectorKind::Not, .text = {}, .children = {a}}), rest);
    }
}

} // namespace
} // namespace planloom
