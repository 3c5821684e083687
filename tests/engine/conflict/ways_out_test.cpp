#include "engine/conflict/ways_out.h"

#include "engine/conflict/order_cycle.h"
#include "tests/engine/conflict/conflict_words.h"
#include "tests/engine/conflict/random_rows.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

bool carriesOut(const Model &model, std::int32_t devices, const ConstraintTable &table)
{
    const auto completion = completePlan(model, devices, table);
    return completion && completion->plan.graph
        && orderCycle(completion->plan, *model.index, *batchOf(completion->plan)).empty();
}

std::vector<std::vector<WayOut>> waysOf(
    const Model &model, std::int32_t devices, const ConstraintTable &table)
{
    const auto answer = findConflict(model, devices, table, {.limit = kAnyTime, .mostSets = 16});
    EXPECT_TRUE(answer) << describe(answer.error());
    auto ways = waysOut(model, devices, table, answer->sets, {.limit = kAnyTime});
    EXPECT_TRUE(ways) << describe(ways.error());
    return *std::move(ways);
}

TEST(WaysOut, AreTheNearestValuesThatHold)
{
    struct Case {
        const char *text;
        std::vector<std::string> ways;
    };
    const Case cases[] = {
        {"split name:a : n by 5\n", {"0: split name:a : n by 4", "0: split name:a : n by 12", "0 off"}},
        {"mesh dp=8\n", {"0: mesh dp=4", "0 off"}},
        {"micro-batches 3\n", {"0: micro-batches 2", "0: micro-batches 4", "0 off"}},
        {"mesh dp=2 tp=2\nsplit name:a : n over dq\n", {"1: split name:a : n over dp", "1 off"}},
        {"split set{a, bb} : n by 2\n", {"0: split set{a, b} : n by 2", "0 off"}},
        {"order name:a before kind:Rellu\n", {"0: order name:a before kind:Relu", "0 off"}},
        {"stage name:a : 1\nstage name:b : 0\n",
            {"0: stage name:a : 0", "0 off", "1: stage name:b : 1", "1 off"}},
        {"split name:a : n by 2\nplace name:a : devices 0,1,2\n",
            {"0: split name:a : n by 3", "0 off", "1: place name:a : devices 0,1",
                "1: place name:a : devices 0,1,2,3", "1 off"}},
    };
    for (const Case &each : cases) {
        const auto table = parseTable(each.text);
        ASSERT_TRUE(table) << each.text;
        const auto ways = waysOf(tinyMlp(), 4, *table);
        ASSERT_EQ(ways.size(), 1u) << each.text;
        EXPECT_EQ(wordsOf(ways.front()), each.ways) << each.text;
    }
}

TEST(WaysOut, SayWhichOtherConflictIsLeft)
{
    const auto table = parseTable("place name:a : devices 0\nplace name:a : devices 1\n"
                                  "split name:b : n by 2\nsplit name:b : k by 2\n");
    ASSERT_TRUE(table);
    const auto ways = waysOf(tinyMlp(), 4, *table);
    ASSERT_EQ(ways.size(), 2u);
    for (std::size_t c = 0; c < 2; ++c)
        for (const WayOut &way : ways[c]) {
            EXPECT_FALSE(way.holds);
            EXPECT_EQ(way.left, std::vector<std::size_t>{1 - c});
        }
}

/// Rows are read with the mesh that there are too few devices for: it alone is in conflict, and what helps it
/// helps them all.
TEST(WaysOut, OfAMeshThatIsTooLargeAreThoseOfTheMeshAlone)
{
    const auto table = parseTable("mesh dp=4 tp=4\nsplit name:a : batch over dp\nzero1 all over dp\n");
    ASSERT_TRUE(table);
    const auto ways = waysOf(tinyMlp(), 4, *table);
    ASSERT_EQ(ways.size(), 1u);
    EXPECT_TRUE(std::any_of(ways.front().begin(), ways.front().end(),
        [](const WayOut &way) { return way.holds && way.changed; }));
    const WayOut &off = ways.front().back(); // what was hidden behind it
    EXPECT_FALSE(off.holds);
    EXPECT_TRUE(off.behind);
}

/// Every way out that says so makes the whole table hold.
TEST(WaysOut, OnRandomTablesMakeThemHold)
{
    const auto graph = tinyMlp();
    const Model model(graph);
    int holding = 0;
    int loosened = 0;
    for (std::uint32_t seed = 0; seed < 150; ++seed) {
        const std::string text = RandomRows(*graph, 4, seed + 10'000).draw(4);
        const auto table = parseTable(text);
        ASSERT_TRUE(table) << text;
        for (const auto &ways : waysOf(model, 4, *table)) {
            EXPECT_FALSE(ways.empty()) << text;
            for (const WayOut &way : ways) {
                if (!way.holds)
                    continue;
                ++holding;
                loosened += way.changed ? 1 : 0;
                EXPECT_TRUE(carriesOut(model, 4, applied(*table, way))) << text << wordsOf({way}).front();
            }
        }
    }
    EXPECT_GT(holding, 50);
    EXPECT_GT(loosened, 20);
}

} // namespace
} // namespace planloom
