#include "engine/conflict/ways_out.h"
#include "tests/engine/conflict/planted.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

/// Three rows that only conflict together, among two hundred on a GPT of 96 layers, are found as those three.
TEST(PlantedConflict, OfThreeRowsAmongTwoHundredIsThoseThree)
{
    const Model model(zooTraining(kBigGpt));
    const auto table = parseTable(plantedTable(kPlantedOrders));
    ASSERT_TRUE(table) << describe(table.error());
    const auto count = static_cast<std::int32_t>(table->rows.size());
    ASSERT_EQ(count, 200);
    const auto answer = findConflict(model, 8, *table, {.limit = std::chrono::seconds(60)});
    ASSERT_TRUE(answer) << describe(answer.error());
    ASSERT_EQ(answer->sets.size(), 1u);
    EXPECT_TRUE(answer->all);
    EXPECT_EQ(answer->sets.front().rows, (std::vector<RowId>{{count - 3}, {count - 2}, {count - 1}}));
    EXPECT_LE(answer->completions, 20);
    const auto ways = waysOut(model, 8, *table, answer->sets, {.limit = std::chrono::seconds(60)});
    ASSERT_TRUE(ways);
    EXPECT_GE(ways->front().size(), 6u);
    EXPECT_TRUE(
        std::all_of(ways->front().begin(), ways->front().end(), [](const auto &way) { return way.holds; }));
}

} // namespace
} // namespace planloom
