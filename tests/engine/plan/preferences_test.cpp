#include "engine/plan/preferences.h"

#include "tests/engine/table/models.h"

namespace planloom {

namespace {

ConstraintTable tableOf(std::string_view text)
{
    auto table = parseTable(text);
    EXPECT_TRUE(table) << describe(table.error());
    return table ? *std::move(table) : ConstraintTable{};
}

Completion completed(const GraphSnapshot &graph, std::string_view text, std::int32_t devices = 4)
{
    auto completion = completePlan(graph, devices, tableOf(text));
    EXPECT_TRUE(completion) << describe(completion.error());
    return completion ? *std::move(completion) : Completion{};
}

std::vector<std::int32_t> leftOut(const Completion &completion)
{
    std::vector<std::int32_t> rows;
    for (std::size_t i = 0; i < completion.rows.size(); ++i) {
        if (completion.rows[i].leftOut)
            rows.push_back(static_cast<std::int32_t>(i));
    }
    return rows;
}

std::vector<DeviceId> devicesOf(const Completion &completion, std::string_view name)
{
    const OperatorId op = operatorNamed(*completion.plan.graph, name);
    return completion.plan.decisions[static_cast<std::size_t>(op.index)].devices;
}

} // namespace

TEST(Preferences, AreWrittenBeforeTheRule)
{
    const ConstraintTable table =
        tableOf("prefer split all : batch by 2\noff prefer 7 place all : devices 0\nplace all : devices 0\n");
    EXPECT_EQ(table.rows[0].preference, 1);
    EXPECT_EQ(table.rows[1].preference, 7);
    EXPECT_FALSE(table.rows[1].enabled);
    EXPECT_EQ(table.rows[2].preference, 0);
    EXPECT_EQ(print(table),
        "prefer split all : batch by 2\noff prefer 7 place all : devices 0\nplace all : devices 0\n");
    const auto wrong = parseRow("prefer 0 place all : devices 0");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("weight"), std::string::npos) << wrong.error().message;
    EXPECT_FALSE(parseRow("prefer 1000001 place all : devices 0"));
    EXPECT_FALSE(parseRow("prefer"));
}

TEST(Preferences, HoldLikeOtherRowsWhereTheyCan)
{
    const GraphSnapshot graph = tinyMlp();
    const Completion soft =
        completed(graph, "prefer place name:a : devices 1\nprefer 3 place name:b : devices 2\n");
    const Completion hard = completed(graph, "place name:a : devices 1\nplace name:b : devices 2\n");
    EXPECT_TRUE(leftOut(soft).empty());
    EXPECT_EQ(soft.plan.decisions, hard.plan.decisions);
    EXPECT_EQ(soft.rows, hard.rows);
}

TEST(Preferences, GiveWayToRowsThatMustHold)
{
    const Completion completion =
        completed(tinyMlp(), "prefer place all : devices 0\nplace name:a : devices 1\n");
    EXPECT_FALSE(firstError(completion));
    ASSERT_EQ(leftOut(completion), (std::vector<std::int32_t>{0}));
    EXPECT_EQ(completion.rows[0].warning, "left out: row 2 (must) says otherwise");
    EXPECT_FALSE(completion.rows[1].leftOut);
    EXPECT_EQ(devicesOf(completion, "a"), (std::vector<DeviceId>{{1}}));
}

TEST(Preferences, HeavierOnesComeFirstThenThoseAbove)
{
    const Completion completion = completed(tinyMlp(),
        "prefer place name:a : devices 0\nprefer 5 place name:a : devices 1\nprefer 5 place name:a : devices "
        "2\n"
        "prefer 2 place name:b : devices 3\n");
    EXPECT_EQ(leftOut(completion), (std::vector<std::int32_t>{0, 2}));
    EXPECT_EQ(completion.rows[2].warning, "left out: row 2 (prefer 5) says otherwise");
    EXPECT_EQ(devicesOf(completion, "a"), (std::vector<DeviceId>{{1}}));
    EXPECT_EQ(devicesOf(completion, "b"), (std::vector<DeviceId>{{3}}));
}

TEST(Preferences, WhatCannotBeAppliedAtAllSaysWhy)
{
    const Completion completion =
        completed(tinyMlp(), "prefer micro-batches 3\nprefer place name:nothing : devices 0\n");
    EXPECT_FALSE(firstError(completion));
    ASSERT_TRUE(completion.plan.graph);
    EXPECT_EQ(leftOut(completion), (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(completion.rows[0].warning.rfind("left out: 3 micro-batches", 0), 0U)
        << completion.rows[0].warning;
    EXPECT_NE(completion.rows[1].warning.find("no operator is called 'nothing'"), std::string::npos);
}

TEST(Preferences, ErrorsOfOtherRowsStayErrors)
{
    const Completion completion = completed(tinyMlp(), "prefer place name:a : devices 0\nmicro-batches 3\n");
    ASSERT_TRUE(firstError(completion));
    EXPECT_EQ(firstError(completion)->where, "row:1/rule");
    EXPECT_EQ(leftOut(completion), (std::vector<std::int32_t>{0}));
}

TEST(Preferences, OnesThatAreOffSayNothing)
{
    const Completion completion =
        completed(tinyMlp(), "off prefer place all : devices 0\nplace all : devices 1\n");
    EXPECT_TRUE(leftOut(completion).empty());
    EXPECT_TRUE(completion.rows[0].warning.empty());
}

TEST(Preferences, ManyAreAppliedWithFewCompletions)
{
    const GraphSnapshot graph = tinyMlp();
    std::string text = "place name:b : devices 0\n";
    for (int i = 0; i < 64; ++i)
        text += i == 40 ? "prefer place name:b : devices 1\n" : "prefer place name:a : devices 2\n";
    int completions = 0;
    const auto applied = appliedRows(tableOf(text), [&](const ConstraintTable &table) {
        ++completions;
        EXPECT_FALSE(hasPreferences(table));
        return completePlan(graph, 4, table);
    });
    ASSERT_TRUE(applied);
    ASSERT_EQ(applied->leftOut.size(), 1U);
    EXPECT_EQ(applied->leftOut.front().row, 41);
    EXPECT_LE(completions, 2 + 2 * 6);
}

} // namespace planloom
