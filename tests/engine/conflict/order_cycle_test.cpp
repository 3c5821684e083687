#include "engine/conflict/order_cycle.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/lower.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

std::vector<RowId> cycleOf(const Plan &plan)
{
    return orderCycle(plan, SelectorIndex(plan.graph), *batchOf(plan));
}

TEST(OrderCycle, IsThatOfTheRowsOnIt)
{
    struct Case {
        const char *text;
        std::vector<RowId> rows;
    };
    const Case cases[] = {
        {"order name:a before name:b\n", {}},
        {"order name:b before name:a\n", {{0}}},
        {"order name:b before name:a at +1\nmicro-batches 2\n", {}},
        {"micro-batches 2\nstage name:b : 1\nstage name:a : 0\norder name:b before name:a at +1\n"
         "order name:a before name:b at -1\n",
            {{3}, {4}}},
        {"micro-batches 2\nstage name:b : 1\norder name:b before name:a\n", {{2}}},
        // Of blocks that run side by side, rows order pieces: forth and back again is no circle.
        {"micro-batches 2\norder name:b before backward & name:b* at -1\n"
         "order backward & name:b* before name:a at +1\n",
            {{1}, {2}}},
        {"micro-batches 2\ninterleave forward with backward at -1\n"
         "order name:b before backward & name:b* at -1\norder backward & name:b* before name:a at +1\n",
            {}},
    };
    const auto graph = tinyMlp();
    for (const Case &each : cases)
        EXPECT_EQ(cycleOf(planOf(graph, 2, each.text)), each.rows) << each.text;
}

/// What has a cycle is what lowering refuses for its orders, and nothing else is.
TEST(OrderCycle, IsFoundWhereLoweringFindsOne)
{
    const auto graph = tinyGpt();
    const Cluster cluster = *clusterNamed("cpu:4");
    std::vector<std::string> names;
    for (const Operator &op : graph->operators)
        if (op.direction != Direction::Optimizer)
            names.push_back(op.name);
    int cycles = 0;
    constexpr std::uint32_t kSeeds = 150;
    for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
        std::mt19937 random(seed);
        const auto number = [&](int least, int most) {
            return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
        };
        std::string text;
        const int microBatches = number(0, 1) == 0 ? 1 : 4;
        text += "micro-batches " + std::to_string(microBatches) + "\n";
        if (number(0, 1) == 0)
            text += "stage layer:1 : 1\nplace layer:1 : devices 1\nplace layer:0 : devices 0\n";
        for (int i = 0, rows = number(1, 5); i < rows; ++i) {
            const auto op = [&] { return names[random() % names.size()]; };
            const std::string first = op();
            const std::string second = op();
            if (first == second)
                continue;
            text += "order name:\"" + first + "\" before name:\"" + second + "\"";
            if (microBatches > 1 && number(0, 1) == 0)
                text += number(0, 2) == 0 ? " at -1" : " at +1";
            text += "\n";
        }
        SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
        const auto table = parseTable(text);
        ASSERT_TRUE(table) << describe(table.error());
        const auto completion = completePlan(graph, 4, *table);
        ASSERT_TRUE(completion);
        if (firstError(*completion))
            continue;
        const auto cycle = cycleOf(completion->plan);
        const auto lowered = lower(completion->plan, cluster, costModelOf(cluster));
        EXPECT_EQ(cycle.empty(), lowered.has_value()) << (lowered ? "lowered" : describe(lowered.error()));
        cycles += cycle.empty() ? 0 : 1;
    }
    EXPECT_GT(cycles, 20);
    EXPECT_LT(cycles, static_cast<int>(kSeeds) - 20);
}

} // namespace
} // namespace planloom
