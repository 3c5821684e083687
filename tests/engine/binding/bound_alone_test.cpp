#include "engine/binding/bound_table.h"
#include "engine/table/table_text.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Each row is counted off as it is bound on.
TEST(BoundAlone, IsWhatARowActsOnOnceItIsOn)
{
    const GraphSnapshot graph =
        zooTraining("zoo:gpt?layers=2&hidden=32&heads=2&seq=8&vocab=64&batch=4&fused=0");
    const Model model(graph);
    const auto on = parseTable(
        "mesh dp=2 tp=2\nmicro-batches 2\nsplit all : batch over dp\nsplit name:*.mlp.c_fc : n over tp\n"
        "stage layer:0 : 0\nrecompute layer:1\nzero1 weight:* over dp\nplace layer:0 : dp=0\n"
        "order name:h.0.attn.k_attn before name:h.0.attn.q_attn\ncoshard layer:1 : batch by 2\n");
    ASSERT_TRUE(on) << describe(on.error());
    int counted = 0;
    int fewer = 0;
    for (std::size_t row = 0; row < on->rows.size(); ++row) {
        if (!hasSelector(on->rows[row].rule))
            continue;
        ConstraintTable others;
        others.rows.assign(on->rows.begin(), on->rows.begin() + 2); // mesh, micro-batches
        others.rows.push_back(on->rows[row]);
        const auto bound = completePlan(model, 4, others);
        ASSERT_TRUE(bound);
        ASSERT_FALSE(firstError(*bound)) << firstError(*bound)->message;
        ConstraintTable off = *on;
        off.rows[row].enabled = false;
        EXPECT_EQ(boundAlone(settingOf(model, 4, off), 2, off.rows[row]), bound->rows.back().bound)
            << print(on->rows[row]);
        EXPECT_GT(bound->rows.back().bound, 0) << print(on->rows[row]);
        ++counted;
        fewer += bound->rows.back().bound < bound->rows.back().selected ? 1 : 0;
    }
    EXPECT_EQ(counted, 8);
    EXPECT_GT(fewer, 0) << "of what a selector names a rule takes a part";
}

TEST(BoundAlone, IsNothingForARowThatCantHold)
{
    const GraphSnapshot graph = zooTraining("zoo:mlp?layers=2&hidden=16&batch=16");
    const Model model(graph);
    const auto table = parseTable("off place all : devices 9\noff split all : n over tp\n");
    ASSERT_TRUE(table);
    for (std::size_t row = 0; row < table->rows.size(); ++row)
        EXPECT_EQ(boundAlone(settingOf(model, 2, *table), 1, table->rows[row]), 0);
}

} // namespace
} // namespace planloom
