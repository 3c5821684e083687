// What becomes of rows about a stage that a gesture dissolves: none is lost without a word.

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/gesture/contexts.h"

#include "engine/gesture/gesture.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace planloom;

namespace {

constexpr const char *kSpec = "zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=160&batch=4";

TableDocument documentAfter(const GestureContext &context, const Proposal &proposal)
{
    EXPECT_FALSE(proposal.refusal) << proposal.refusal->message;
    TableDocument document = context.document;
    EXPECT_TRUE(document.apply(proposal.edit));
    return document;
}

std::vector<RowReport> reportsOf(const GestureContext &context, const TableDocument &document)
{
    auto completion = completePlan(context.index().snapshot(), context.deviceCount, document.table());
    EXPECT_TRUE(completion);
    return completion ? completion->rows : std::vector<RowReport>{};
}

} // namespace

namespace {

/// A pipeline of two stages with a limit on the second one.
GestureContext twoStages()
{
    const auto index = indexOf(kSpec);
    const auto table = galleryTable("3d:dp=1,tp=1,pp=2,micro-batches=4,schedule=1f1b", index->snapshot(), 2);
    EXPECT_TRUE(table);
    return contextOf(
        index, 2, table ? print(*table) + "in-flight 1 stage 1  # little memory there\n" : std::string());
}

} // namespace

TEST(StageRows, OfADissolvedStageAreReportedAtTheirRow)
{
    const GestureContext context = twoStages();
    ASSERT_TRUE(context.plan) << context.document.text();
    ASSERT_EQ(context.plan->stageCount, 2) << context.document.text();
    const TableDocument document =
        documentAfter(context, proposeStage(context, forward(context, "forward"), StageId{0}));
    const std::string text = document.text();
    // The limit stays, with its note, and says what is wrong; no row of the table is in the way of the
    // others.
    EXPECT_NE(text.find("in-flight 1 stage 1  # little memory there"), std::string::npos) << text;
    const ConstraintTable table = document.table();
    const auto reports = reportsOf(context, document);
    ASSERT_EQ(reports.size(), table.rows.size());
    bool told = false;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        if (std::holds_alternative<InFlightRule>(table.rows[i].rule)) {
            ASSERT_TRUE(reports[i].error) << text;
            told = reports[i].error->message.find("there is no stage 1") != std::string::npos;
        } else {
            EXPECT_FALSE(reports[i].error)
                << text << print(table.rows[i]) << ": " << reports[i].error->message;
        }
    }
    EXPECT_TRUE(told) << text;
}

TEST(StageRows, KeepTheOperatorsThatTheGestureLeavesThem)
{
    const GestureContext context = twoStages();
    ASSERT_TRUE(context.plan);
    // One operator of the second stage goes to the first one.
    const auto operators = forward(context, "layer:1");
    const OperatorId first = operators.front();
    const TableDocument document = documentAfter(context, proposeStage(context, {first}, StageId{0}));
    for (const RowReport &report : reportsOf(context, document))
        EXPECT_FALSE(report.error) << document.text() << report.error->message;
    const GestureContext next = contextOf(context.model.index, 2, document);
    ASSERT_TRUE(next.plan) << document.text();
    EXPECT_EQ(next.plan->stageCount, 2);
    EXPECT_EQ(next.plan->decisions[static_cast<std::size_t>(first.index)].stage, StageId{0});
    EXPECT_EQ(next.plan->decisions[static_cast<std::size_t>(operators.back().index)].stage, StageId{1});
}
