#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Each bad row on tinyMlp (batch 4) with 4 devices, and what its error says.
TEST(CompletePlan, EachBadRowIsReportedWithItsPlaceAndReason)
{
    struct Case {
        const char *text;
        const char *where;
        const char *mentions;
    };
    const Case cases[] = {
        {"mesh dp=8", "row:0/rule", "the mesh needs 8 devices, the plan has 4"},
        {"mesh dp=3 tp=2", "row:0/rule", "the mesh needs 3 x 2 = 6 devices, the plan has 4"},
        {"mesh dp=2\nmesh tp=2", "row:1/rule", "the mesh is given already, by row 1"},
        {"mesh dp=2 dp=2", "row:0/rule", "two axes"},
        {"micro-batches 3", "row:0/rule", "do not divide"},
        {"micro-batches 2\nmicro-batches 4", "row:1/rule", "given already, by row 1"},
        {"schedule 1f1b\nschedule gpipe", "row:1/rule", "given already, by row 1"},
        {"split name:a : n by 5", "row:0/rule", "12"},
        {"split name:a : n over tp", "row:0/rule", "no mesh"},
        {"mesh dp=2\nsplit name:a : n over tp", "row:1/rule", "no axis 'tp'"},
        {"mesh tp=2\nsplit name:a : n by 4 over tp", "row:1/rule", "which has 2"},
        {"mesh dp=2 tp=2\nsplit name:a : n over tp then b over dp then k over tp", "row:1/rule", "two steps"},
        {"split name:a : n into 3,4", "row:0/rule", "12"},
        {"split name:a : n by 2\nsplit name:a : k by 2", "row:0/rule", "row 2 "},
        {"mesh tp=2\nsplit name:a : n over tp\nsplit name:a : k over tp", "row:1/rule", "row 3 "},
        {"split name:nobody : n by 2", "row:0/selector", "no operator is called 'nobody'"},
        {"split set{a, nobody} : n by 2", "row:0/selector", "'nobody'"},
        {"split kind:Linaer : n by 2", "row:0/selector", "no operator kind"},
        {"split in:h.0 : n by 2", "row:0/selector", "no module"},
        {"split layer:0 : n by 2", "row:0/selector", "0 layers"},
        {"split weight:w9 : n by 2", "row:0/selector", "no weight"},
        {"split backward : n by 2", "row:0/rule", "as their forward"},
        {"place name:a : devices 4", "row:0/rule", "no device 4: the plan has 4 devices"},
        {"place name:a : pp=0", "row:0/rule", "no mesh"},
        {"mesh dp=2\nplace name:a : dp=2", "row:1/rule", "has 2 places"},
        {"mesh dp=2\nplace name:a : dp=0,dp=1", "row:1/rule", "two places"},
        {"place name:a : devices 0\nplace name:a : devices 1", "row:0/rule", "row 2 "},
        {"split name:a : n by 2\nplace name:a : devices 0,1,2", "row:1/rule", "2 parts on 3 devices"},
        {"mesh dp=2 tp=2\nsplit name:a : n over tp\nplace name:a : tp=0", "row:1/rule", "one point"},
        {"coshard name:a : n by 5", "row:0/rule", "12"},
        {"split name:a : n by 6\nplace name:a : devices 0\ncoshard name:a : n by 4", "row:2/rule",
            "with the other rows"},
        {"coshard name:a : n by 2\ncoshard name:a : n by 2 keep", "row:0/rule",
            "cut, or keep, in different ways"},
        {"stage name:a : 1\nstage name:b : 0", "row:1/rule", "reads"},
        {"stage name:a : 1\nstage name:a : 0", "row:0/rule", "row 2 "},
        {"recompute name:a\nrecompute name:a", "row:0/rule", "row 2 "},
        {"order name:a before name:a", "row:0/rule", "before itself"},
        {"order name:a before all", "row:0/rule", "before itself"},
        {"order name:a before name:b of 1", "row:0/rule", "no micro-batch 1"},
        {"micro-batches 2\norder name:a before name:b at +1 of 1", "row:1/rule", "no micro-batch 2"},
        {"micro-batches 2\norder name:a before name:b at -1 of 0", "row:1/rule", "no micro-batch -1"},
        {"in-flight 1 stage 1", "row:0/rule", "no stage 1: the plan has 1 stage"},
        {"in-flight 1\nin-flight 2", "row:0/rule", "row 2 "},
        {"in-flight 1\nstage name:b : 1\nin-flight 2 stage 1", "row:0/rule", "row 3 "},
        {"zero1 all over dp", "row:0/rule", "no axis 'dp'"},
        {"micro-batches 4\nsplit name:a : batch by 2", "row:0/rule", "not possible"},
    };
    const auto graph = tinyMlp();
    for (const Case &one : cases) {
        const auto table = parseTable(one.text);
        ASSERT_TRUE(table) << one.text << ": " << describe(table.error());
        const auto completion = completePlan(graph, 4, *table);
        ASSERT_TRUE(completion) << one.text << ": " << describe(completion.error());
        EXPECT_FALSE(completion->plan.graph) << one.text;
        const auto error = firstError(*completion);
        ASSERT_TRUE(error) << one.text;
        EXPECT_EQ(error->where, one.where) << one.text << ": " << error->message;
        EXPECT_NE(error->message.find(one.mentions), std::string::npos) << one.text << ": " << error->message;
    }
}

TEST(CompletePlan, SeveralBadRowsAreAllReported)
{
    const auto table = parseTable("split name:a : n by 5\nsplit name:b : n by 2\nplace all : devices 9");
    ASSERT_TRUE(table);
    const auto completion = completePlan(tinyMlp(), 4, *table);
    ASSERT_TRUE(completion);
    EXPECT_TRUE(completion->rows[0].error);
    EXPECT_FALSE(completion->rows[1].error);
    EXPECT_TRUE(completion->rows[2].error);
}

/// Units cut the batch without a row about micro-batches: the row that cuts it once more is told.
TEST(CompletePlan, ABatchThatReplicasLeaveTooSmallIsToldToItsRow)
{
    const auto table = parseTable("mesh x=2 y=4\nsplit all : batch over x\nsplit all : batch over y");
    ASSERT_TRUE(table);
    const auto completion = completePlan(tinyMlp(), 8, *table, {.units = UseUnits::WherePossible});
    ASSERT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(completion->plan.graph);
    const auto error = firstError(*completion);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->where, "row:2/rule") << error->message;
    EXPECT_NE(error->message.find("2 replicas with 1 micro-batch of equal parts"), std::string::npos)
        << error->message;
}

TEST(CompletePlan, ImpossibleArgumentsAreErrors)
{
    EXPECT_FALSE(completePlan(Model{}, 1, {}));
    EXPECT_FALSE(completePlan(tinyMlp(), 0, {}));
    EXPECT_FALSE(completePlan(tinyMlp(), 1 << 20, {}));
}

TEST(Plan, ValidateRefusesBrokenDecisions)
{
    const auto graph = tinyMlp();
    const Plan good = planOf(graph, 2, "mesh tp=2\nsplit name:a : n over tp");
    ASSERT_TRUE(validate(good));
    const auto a = static_cast<std::size_t>(operatorNamed(*graph, "a").index);
    const auto backward = static_cast<std::size_t>(operatorNamed(*graph, "a'").index);
    const auto breaks = [&](auto change) {
        Plan plan = good;
        change(plan);
        return !validate(plan).has_value();
    };
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.graph = nullptr; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions.pop_back(); }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions[a].devices.pop_back(); }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions[a].devices[0] = {2}; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions[a].partition.splits[0].parts = 5; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions[a].stage = {1}; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions[backward].devices = {{1}, {0}}; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.decisions[backward].recomputeGroup = 0; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.microBatches = 3; }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.orders.push_back({{0}, {99999}, 0, {0}}); }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.orders.push_back({{0}, {1}, 0, {0}, 1}); }));
    EXPECT_TRUE(breaks([&](Plan &plan) { plan.inFlight = {1}; }));
    EXPECT_TRUE(breaks([&](Plan &plan) {
        plan.inFlight = {-1};
        plan.inFlightRows = {{0}};
    }));
    EXPECT_TRUE(breaks([&](Plan &plan) { // a stage later than its consumers'
        plan.stageCount = 2;
        plan.decisions[a].stage = {1};
        plan.decisions[backward].stage = {1};
    }));
}

} // namespace
} // namespace planloom
