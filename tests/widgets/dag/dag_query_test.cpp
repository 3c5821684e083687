#include "widgets/dag/dag_query.h"

#include "tests/widgets/dag/fake_gesture_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace planloom {
namespace {

class DagQueries : public testing::Test
{
protected:
    static void SetUpTestSuite()
    {
        graph = trainingStepOf("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=128");
        world.index = std::make_shared<const SelectorIndex>(graph);
        auto completion = completePlan(graph, 2,
            TableDocument("place layer:0-1 : devices 0\nplace layer:2-3 : devices 1\nstage layer:0-1 : "
                          "0\nstage layer:2-3 : 1\n")
                .table());
        if (completion && completion->plan.graph)
            world.plan = std::make_shared<const Plan>(std::move(completion->plan));
        for (std::size_t i = 0; i < graph->operators.size(); ++i)
            world.seconds.push_back(static_cast<double>(i) * 1e-6);
    }
    static void TearDownTestSuite()
    {
        graph = nullptr;
        world = {};
    }
    /// Names found; the error's message alone if there is one.
    static std::set<std::string> find(const std::string &text)
    {
        const auto query = parseDagQuery(text);
        if (!query)
            return {"! " + query.error().message};
        std::set<std::string> names;
        for (const auto op : askDagQuery(*query, world))
            names.insert(graph->at(op).name);
        return names;
    }
    static inline GraphSnapshot graph;
    static inline DagQueryWorld world;
};

TEST_F(DagQueries, ABareWordIsInNameOrKind)
{
    const auto found = find("ATTENTION");
    EXPECT_TRUE(found.contains("h.0.attn.attention"));
    EXPECT_EQ(found.size(), 8U) << "four layers, forward and backward";
    EXPECT_GT(find("linear").size(), 8U);
    EXPECT_TRUE(find("no such thing").empty());
}

TEST_F(DagQueries, SelectorsOfRowsAreUnderstood)
{
    for (const char *text : {"kind:Linear & layer:0-1", "in:h.2.mlp", "weight:*c_fc*", "name:h.?.mlp.*",
             "forward", "set{h.0.attn.attention, h.1.attn.attention}", "!forward & layer:0",
             "(kind:Add | kind:Gelu) & forward"}) {
        SCOPED_TRACE(text);
        const auto selector = parseSelector(text);
        ASSERT_TRUE(selector);
        std::set<std::string> expected;
        for (const auto op : world.index->select(*selector))
            expected.insert(graph->at(op).name);
        EXPECT_FALSE(expected.empty());
        EXPECT_EQ(find(text), expected);
    }
}

TEST_F(DagQueries, RegularExpressionsLookAtNames)
{
    EXPECT_EQ(
        find("/H\\.[01]\\.mlp\\.c_fc$/ & forward"), (std::set<std::string>{"h.0.mlp.c_fc", "h.1.mlp.c_fc"}));
    EXPECT_EQ(find("/[/").begin()->substr(0, 2), "! ");
    EXPECT_EQ(*find("/abc").begin(), "! the regular expression is not closed by /");
}

TEST_F(DagQueries, ComparisonsKnowUnits)
{
    std::size_t most = 0;
    for (const auto &op : graph->operators) {
        std::size_t bytes = 0;
        for (const auto output : op.outputs) {
            if (output.valid())
                bytes += static_cast<std::size_t>(
                    elementCount(graph->at(output).type.shape) * sizeOf(graph->at(output).type.dataType));
        }
        most += bytes > 32768 ? 1 : 0;
    }
    EXPECT_GT(most, 0U);
    EXPECT_EQ(find("bytes>32KiB").size(), most);
    EXPECT_EQ(find("bytes <= 32 KiB").size(), graph->operators.size() - most);
    EXPECT_EQ(find("time<3us").size(), 3U);
    EXPECT_EQ(find("layer>=2 & kind:Attention & forward"),
        (std::set<std::string>{"h.2.attn.attention", "h.3.attn.attention"}));
    ASSERT_TRUE(world.plan);
    EXPECT_EQ(find("stage=1 & attention & forward"),
        (std::set<std::string>{"h.2.attn.attention", "h.3.attn.attention"}));
    EXPECT_FALSE(find("device=1").empty());
    EXPECT_TRUE(find("device>7").empty());
}

TEST_F(DagQueries, MistakesAreSaid)
{
    EXPECT_EQ(
        *find("size>3").begin(), "! \"size\" can't be compared; bytes, time, device, stage and layer can");
    EXPECT_EQ(*find("bytes>").begin(), "! expected a number, found \"\"");
    EXPECT_EQ(*find("bytes>3 apples").begin(), "! \"apples\" is no unit here");
    EXPECT_EQ(*find("(attention").begin(), "! a bracket is not closed");
    EXPECT_EQ(*find("attention &").begin(), "! expected a word, a selector or a comparison");
    EXPECT_EQ(find("kind:").begin()->substr(0, 2), "! ");
    EXPECT_EQ(*find(std::string(5000, '(')).begin(), "! too many brackets");
}

TEST_F(DagQueries, NothingAskedIsEverything)
{
    EXPECT_EQ(find("").size(), graph->operators.size());
    EXPECT_EQ(find("  ").size(), graph->operators.size());
}

} // namespace
} // namespace planloom
