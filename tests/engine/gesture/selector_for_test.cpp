#include "engine/gesture/gesture.h"
#include "engine/gesture/narrow.h"
#include "engine/table/selector_matcher.h"
#include "tests/engine/table/models.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

std::vector<OperatorId> forwardOf(const Graph &graph)
{
    std::vector<OperatorId> forward;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction == Direction::Forward)
            forward.push_back({static_cast<std::int32_t>(i)});
    }
    return forward;
}

std::vector<OperatorId> exactly(const SelectorIndex &index, const Selector &selector)
{
    return forwardOnes(index.graph(), index.select(selector));
}

SelectorIndex gptOfLayers(int layers)
{
    return SelectorIndex(zooTraining(
        "zoo:gpt?layers=" + std::to_string(layers) + "&hidden=64&heads=4&seq=16&vocab=160&batch=4"));
}

std::vector<OperatorId> selectText(const SelectorIndex &index, std::string_view text)
{
    const auto selector = parseSelector(text);
    EXPECT_TRUE(selector) << text;
    return exactly(index, *selector);
}

TEST(SelectorFor, WritesWhatAPersonWould)
{
    const SelectorIndex index = gptOfLayers(12);
    const auto written = [&](std::string_view text) {
        return toString(selectorFor(index, selectText(index, text)));
    };
    EXPECT_EQ(written("all"), "all");
    EXPECT_EQ(written("layer:3"), "layer:3");
    EXPECT_EQ(written("layer:0-5"), "layer:0-5");
    EXPECT_EQ(written("layer:0-2 | layer:5"), "layer:0-2 | layer:5");
    EXPECT_EQ(written("name:*.4.mlp.c_fc"),
        "name:" + index.graph().at(selectText(index, "name:*.4.mlp.c_fc").front()).name);
    EXPECT_EQ(written("in:h.4.mlp"), "in:h.4.mlp");
    EXPECT_EQ(written("in:h.*.mlp"), "in:h.*.mlp");
    EXPECT_EQ(written("in:h.*.mlp & layer:2-6"), "in:h.*.mlp & layer:2-6");
    EXPECT_EQ(written("name:h.*.mlp.c_proj"), "name:h.*.mlp.c_proj");
    EXPECT_EQ(written("!in:h.4.mlp"), "!in:h.4.mlp");
    EXPECT_EQ(toString(selectorFor(index, {})), "!all");
}

TEST(SelectorFor, SelectsExactlyTheOperatorsGiven)
{
    RandomTable random(5);
    for (const char *spec : {"zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=4", "zoo:t5?layers=3",
             "zoo:resnet?depth=18", "zoo:moe?layers=4", "zoo:swin?layers=4", "zoo:evoformer?layers=3",
             "zoo:mlp"}) {
        const auto model = buildZooModel(spec);
        if (!model)
            continue;
        const SelectorIndex index(zooTraining(spec));
        const auto forward = forwardOf(index.graph());
        for (int i = 0; i < 60; ++i) {
            std::vector<OperatorId> wanted;
            const int kind = random.number(0, 3);
            const int percent = random.number(1, 99);
            const auto layers = static_cast<std::int32_t>(index.layers().scopes.size());
            const std::int32_t layer = random.number(0, std::max(layers - 1, 0));
            for (const OperatorId op : forward) {
                const bool inLayer = index.layerOf(op) == layer;
                const bool chosen = kind == 0 ? random.chance(percent)
                    : kind == 1               ? inLayer || random.chance(2)
                    : kind == 2               ? index.layerOf(op) >= layer && !random.chance(2)
                                              : inLayer && random.chance(percent);
                if (chosen)
                    wanted.push_back(op);
            }
            const Selector selector = selectorFor(index, wanted);
            ASSERT_EQ(exactly(index, selector), wanted) << spec << " " << toString(selector);
            ASSERT_TRUE(index.check(selector)) << toString(selector);
            const auto again = parseSelector(toString(selector));
            ASSERT_TRUE(again);
            ASSERT_EQ(*again, selector);
        }
    }
}

TEST(Matching, AgreesWithTheIndexOnRandomSelectors)
{
    RandomTable random(6);
    const SelectorIndex index = gptOfLayers(3);
    const Graph &graph = index.graph();
    const char *const kReal[] = {"layer:1", "in:h.1", "kind:Linear", "weight:*", "name:*.attn.*", "forward",
        "set{h.0.mlp.c_fc, h.1.mlp.c_fc}", "all", "name:h.0.mlp.c_fc", "layer:1-*"};
    const auto randomSelector = [&](auto &self, int depth) -> Selector {
        if (depth == 0 || random.chance(30))
            return *parseSelector(kReal[random.number(0, 9)]);
        Selector made{.kind = random.chance(33) ? SelectorKind::Not
                : random.chance(50)             ? SelectorKind::And
                                                : SelectorKind::Or};
        for (int n = made.kind == SelectorKind::Not ? 1 : 2; n > 0; --n)
            made.children.push_back(self(self, depth - 1));
        return made;
    };
    for (int i = 0; i < 1500; ++i) {
        const Selector selector = random.chance(20) ? random.selector() : randomSelector(randomSelector, 3);
        const auto all = index.select(selector);
        std::vector<OperatorId> some;
        for (std::size_t o = 0; o < graph.operators.size(); ++o) {
            if (random.chance(20))
                some.push_back({static_cast<std::int32_t>(o)});
        }
        std::vector<OperatorId> expected;
        std::set_intersection(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(expected));
        ASSERT_EQ(Subset(index, some).selected(selector), expected) << toString(selector);
        ASSERT_EQ(forwardSelected(index, selector), forwardOnes(graph, all)) << toString(selector);
        const auto forward = forwardOnes(graph, all);
        const auto within = forwardOnes(graph, some);
        ASSERT_EQ(selectsForwardBeyond(index, selector, within), !subtracted(forward, within).empty());

        const auto dropped = forwardOnes(graph, expected);
        const auto narrowed = without(index, selector, dropped);
        ASSERT_EQ(narrowed.has_value(), dropped.empty() || !subtracted(forward, dropped).empty())
            << toString(selector);
        if (narrowed) {
            ASSERT_EQ(exactly(index, *narrowed), subtracted(forward, dropped))
                << toString(selector) << " -> " << toString(*narrowed);
        }
    }
}

TEST(Without, IsWrittenAsAPersonWould)
{
    const SelectorIndex index = gptOfLayers(12);
    const auto narrowed = [&](std::string_view text, std::string_view dropped) {
        const Selector selector = *parseSelector(text);
        const auto all = exactly(index, selector);
        std::vector<OperatorId> both;
        const auto gone = selectText(index, dropped);
        std::set_intersection(all.begin(), all.end(), gone.begin(), gone.end(), std::back_inserter(both));
        const auto rest = without(index, selector, both);
        return rest ? toString(*rest) : std::string("gone");
    };
    EXPECT_EQ(narrowed("all", "layer:3"), "!layer:3");
    EXPECT_EQ(narrowed("!layer:3", "layer:4"), "!layer:3-4");
    EXPECT_EQ(narrowed("layer:0-11", "layer:3"), "layer:0-2 | layer:4-11");
    EXPECT_EQ(narrowed("layer:0-6", "layer:6"), "layer:0-5");
    EXPECT_EQ(narrowed("layer:0-6", "in:h.6.mlp"), "layer:0-6 & !in:h.6.mlp");
    EXPECT_EQ(narrowed("layer:2-*", "layer:2"), "layer:3-*");
    EXPECT_EQ(narrowed("layer:3", "layer:3"), "gone");
    EXPECT_EQ(narrowed("layer:0-2 | set{h.4.mlp.c_fc, h.5.mlp.c_fc}", "layer:0-4"), "set{h.5.mlp.c_fc}");
    EXPECT_EQ(narrowed("name:h.*.mlp.c_fc", "layer:0"), "name:h.*.mlp.c_fc & !name:h.0.mlp.c_fc");
    EXPECT_EQ(narrowed("name:h.*.mlp.c_fc & !name:h.0.mlp.c_fc", "layer:1"),
        "name:h.*.mlp.c_fc & !(name:h.*.mlp.c_fc & layer:0-1)");
}

TEST(WordsFor, NamesWhatIsMeant)
{
    const SelectorIndex index = gptOfLayers(12);
    const auto words = [&](std::string_view text) { return wordsFor(index, selectText(index, text)); };
    EXPECT_EQ(words("layer:0-5"), "layers 0-5");
    EXPECT_EQ(words("layer:3"), "layer 3");
    EXPECT_EQ(words("layer:3 | layer:5-6"), "layers 3, 5-6");
    EXPECT_EQ(words("name:h.3.mlp.c_fc"), "h.3.mlp.c_fc");
    EXPECT_EQ(words("in:h.3.mlp"), "h.3.mlp");
    EXPECT_EQ(words("in:h.*.mlp & layer:2-3"), "h.*.mlp of layers 2-3");
    EXPECT_EQ(words("all"), "all operators");
}

} // namespace
} // namespace planloom
