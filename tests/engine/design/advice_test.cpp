#include "engine/design/explain/free_decisions.h"
#include "engine/design/explain/suggestions.h"
#include "engine/design/live_solver.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <numeric>

namespace planloom {
namespace {

class Advice : public testing::Test
{
protected:
    static PlanRequest request(std::string_view rows, bool search, const char *cluster = "dgx-h100:4")
    {
        const auto model =
            openModel({.source = "zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=160&batch=8"});
        EXPECT_TRUE(model) << describe(model.error());
        PlanRequest request;
        request.model = *model;
        request.table = TableDocument(rows);
        request.target.cluster = cluster;
        request.search = search;
        request.upTo = PlanGrade::Timed;
        return request;
    }
    static PlanAnswerSnapshot answer(const PlanRequest &request)
    {
        auto answer = answerOf(request);
        EXPECT_TRUE(answer) << describe(answer.error());
        EXPECT_FALSE((*answer)->firstError());
        return *answer;
    }
    static GestureContext contextOf(const PlanAnswer &answer)
    {
        GestureContext context = gestureContextOf(*answer.model, answer.table, answer.deviceCount);
        context.plan = answer.plan;
        context.cluster = answer.cluster;
        return context;
    }
    static std::vector<OperatorId> all(const std::vector<FreeDecision> &free)
    {
        std::vector<OperatorId> operators;
        for (const FreeDecision &each : free)
            operators.insert(operators.end(), each.operators.begin(), each.operators.end());
        std::sort(operators.begin(), operators.end());
        return operators;
    }
    /// Keeps them; the plan must be as before.
    static PlanAnswerSnapshot kept(
        const PlanRequest &asked, const PlanAnswer &before, const std::vector<OperatorId> &operators)
    {
        auto edit = keepDecisions(contextOf(before), operators);
        EXPECT_TRUE(edit) << describe(edit.error());
        PlanRequest again = asked;
        again.table = before.table;
        again.search = false;
        EXPECT_TRUE(again.table.apply(*edit));
        auto after = answer(again);
        for (std::size_t i = 0; i < before.plan->decisions.size(); ++i) {
            EXPECT_EQ(after->plan->decisions[i].partition, before.plan->decisions[i].partition) << i;
            EXPECT_EQ(after->plan->decisions[i].devices, before.plan->decisions[i].devices) << i;
        }
        return after;
    }
};

TEST_F(Advice, FreeDecisionsAreWhatNoRowSays)
{
    const PlanRequest asked = request("mesh tp=4\nsplit layer:0 & kind:Linear : n over tp\n", false);
    const auto before = answer(asked);
    const auto free = freeDecisionsOf(*before->model, *before->plan, before->table.table());
    ASSERT_FALSE(free.empty());
    EXPECT_EQ(static_cast<std::int32_t>(all(free).size()), countFree(*before->plan, before->table.table()));
    for (const FreeDecision &each : free) {
        EXPECT_FALSE(each.bySearch);
        EXPECT_FALSE(each.chosen.empty());
        for (const OperatorId op : each.operators)
            EXPECT_EQ(typeNameOf(before->model->graph->at(op)), each.kind);
    }
    const auto after = kept(asked, *before, all(free));
    EXPECT_EQ(countFree(*after->plan, after->table.table()), 0);
}

TEST_F(Advice, RowsOfAnyKindHoldTheirOperators)
{
    const auto left = [&](const char *rows) {
        const auto known = answer(request(rows, false));
        return countFree(*known->plan, known->table.table());
    };
    const std::int32_t all = left("");
    EXPECT_EQ(left("place layer:0 : devices 1\n"), left("recompute layer:0\n"));
    EXPECT_LT(left("place layer:0 : devices 1\n"), all);
    EXPECT_LT(left("order layer:0 before layer:1\n"), left("place layer:0 : devices 1\n"));
    EXPECT_EQ(left("place all : devices 0,1  @solver\n"), all);
    EXPECT_EQ(left("place all : devices 0,1\n"), 0);
}

TEST_F(Advice, WhatTheSearchChoseIsKeptWholeOrInPart)
{
    const PlanRequest asked = request("degree tensor at least 2\n", true);
    const auto before = answer(asked);
    ASSERT_TRUE(before->search);
    const auto free = freeDecisionsOf(*before->model, *before->plan, before->table.table());
    ASSERT_FALSE(free.empty());
    std::size_t forward = 0;
    for (const Operator &op : before->model->graph->operators)
        forward += op.direction == Direction::Forward ? 1 : 0;
    EXPECT_EQ(all(free).size(), forward); // the search's rows are no person's
    const auto some = kept(asked, *before, free.front().operators);
    EXPECT_LT(countFree(*some->plan, some->table.table()), static_cast<std::int32_t>(forward));
    const auto whole = kept(asked, *before, all(free));
    EXPECT_EQ(countFree(*whole->plan, whole->table.table()), 0);
    const auto rows = whole->table.table().rows;
    EXPECT_TRUE(std::none_of(
        rows.begin(), rows.end(), [](const Row &row) { return row.origin == RowOrigin::Solver; }));
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const Row &row) {
        return std::holds_alternative<MeshRule>(row.rule) && row.origin == RowOrigin::Text;
    }));
}

TEST_F(Advice, HelpfulRowsGiveWhatTheySay)
{
    const PlanRequest asked = request("mesh dp=4\nsplit all : batch over dp\nlimit memory 300KiB\n", false);
    auto limited = answerOf(asked);
    ASSERT_TRUE(limited);
    const auto helpful = helpfulRows(asked, **limited, 100);
    ASSERT_TRUE(helpful);
    ASSERT_FALSE(helpful->empty());
    for (const HelpfulRow &each : *helpful) {
        PlanRequest with = asked;
        ASSERT_TRUE(with.table.apply(each.edit)) << each.row;
        const auto outcome = answerOf(with);
        ASSERT_TRUE(outcome);
        EXPECT_DOUBLE_EQ((*outcome)->summary.stepSeconds, each.stepSeconds) << each.row;
        EXPECT_EQ((*outcome)->summary.largestPeak.count, each.peakBytes) << each.row;
        EXPECT_EQ(!(*outcome)->firstError(), each.fits) << each.row;
    }
    const StepLimits limits = limitsOf(**limited);
    EXPECT_NEAR(limits.computing + limits.communication + limits.idle, 1, 1e-9);
    EXPECT_TRUE(shrinkingRows(**limited).empty()); // nothing was searched
}

/// A limit that the search's plan breaks: without it another plan is the best.
TEST_F(Advice, ALimitSwitchedOffGivesWhatTheSearchFindsThen)
{
    PlanRequest asked = request("limit memory 1KiB\n", true);
    asked.explains = true;
    const auto limited = answerOf(asked);
    ASSERT_TRUE(limited);
    ASSERT_EQ((*limited)->conflicts.size(), 1u);
    const std::vector<RowWayOut> &ways = (*limited)->conflicts.front().waysOut;
    const auto off = std::find_if(
        ways.begin(), ways.end(), [](const RowWayOut &way) { return way.text.starts_with("off "); });
    ASSERT_NE(off, ways.end());
    PlanRequest without = asked;
    without.table = (*limited)->table;
    ASSERT_TRUE(without.table.apply(off->edit));
    const auto outcome = answerOf(without);
    ASSERT_TRUE(outcome);
    EXPECT_FALSE((*outcome)->firstError());
    EXPECT_DOUBLE_EQ((*outcome)->summary.stepSeconds, off->stepSeconds);
    EXPECT_EQ((*outcome)->summary.largestPeak, off->peak);
    EXPECT_LT(off->stepSeconds, (*limited)->summary.stepSeconds);
    EXPECT_EQ(&ways.front(), &*off);
}

TEST_F(Advice, WaysWithinALimitGiveWhatTheySay)
{
    const PlanRequest asked =
        request("# mine\nmesh pp=2\nstage layer:0 : 0\nstage layer:1 : 1\nplace layer:0 : pp=0\n"
                "place layer:1 : pp=1\nschedule gpipe\nlimit memory 1MiB\n",
            false);
    auto limited = answerOf(asked);
    ASSERT_TRUE(limited);
    EXPECT_EQ((*limited)->brokenLimitCount(), 1u);
    EXPECT_TRUE(exceedsLimits(**limited));
    const auto ways = waysWithinLimits(asked, **limited, 100);
    ASSERT_TRUE(ways);
    ASSERT_FALSE(ways->empty());
    for (const RowWayOut &way : *ways) {
        PlanRequest with = asked;
        ASSERT_TRUE(with.table.apply(way.edit)) << way.words;
        const auto outcome = answerOf(with);
        ASSERT_TRUE(outcome);
        EXPECT_DOUBLE_EQ((*outcome)->summary.stepSeconds, way.stepSeconds) << way.words;
        EXPECT_EQ((*outcome)->summary.largestPeak, way.peak) << way.words;
        EXPECT_LT(way.peak, (*limited)->summary.largestPeak) << way.words;
        EXPECT_EQ(!(*outcome)->firstError(), way.holds) << way.words;
        EXPECT_EQ(way.left.empty(), way.holds) << way.words;
        EXPECT_EQ(way.words, (way.row.valid() ? "make row 7: " : "add ") + way.text); // by line
    }
    EXPECT_TRUE(
        std::is_partitioned(ways->begin(), ways->end(), [](const RowWayOut &way) { return way.holds; }));
    // A row that a person wrote is not met by a second of its kind, but changed.
    EXPECT_TRUE(std::none_of(ways->begin(), ways->end(),
        [](const RowWayOut &way) { return way.words.starts_with("add schedule"); }));
    PlanRequest enough = asked;
    enough.table = TableDocument("mesh pp=2\nlimit memory 1GiB\n");
    EXPECT_FALSE(exceedsLimits(*answer(enough)));
    enough.table = TableDocument("mesh pp=64\n"); // no plan at all
    EXPECT_FALSE(exceedsLimits(**answerOf(enough)));
}

TEST_F(Advice, ShrinkingRowsLeaveTheBestPlan)
{
    const PlanRequest asked = request("", true);
    const auto before = answer(asked);
    const auto rows = shrinkingRows(*before);
    ASSERT_FALSE(rows.empty());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_LT(rows[i].left, rows[i].of);
        EXPECT_EQ(rows[i].of, before->search->configurations);
        EXPECT_TRUE(i == 0 || rows[i - 1].left <= rows[i].left);
    }
    const auto again = answer(request(rows.front().row + "\n", true));
    EXPECT_EQ(again->search->configurations, rows.front().left);
    EXPECT_LE(again->summary.stepSeconds, before->summary.stepSeconds * (1 + 1e-9));
}

TEST_F(Advice, TheLiveSolverAnswersTheNewestAlone)
{
    std::mutex mutex;
    std::condition_variable done;
    std::vector<std::pair<std::uint64_t, LiveGrade>> told;
    const auto last = [&] { return told.empty() ? 0 : told.back().first; };
    std::uint64_t newest = 0;
    {
        const auto hear = [&](const LiveReport &report) {
            const std::lock_guard lock(mutex);
            told.emplace_back(report.revision, report.grade);
            EXPECT_TRUE(
                report.grade == LiveGrade::Better ? report.better != nullptr : report.answer != nullptr);
            done.notify_all();
        };
        LiveSolver solver;
        for (int i = 0; i < 5; ++i)
            newest = solver.solve(request(i % 2 == 0 ? "" : "degree data at most 2\n", true), hear);
        std::unique_lock lock(mutex);
        done.wait(lock, [&] { return last() == newest && told.back().second == LiveGrade::Final; });
    }
    EXPECT_EQ(newest, 5u);
    EXPECT_TRUE(std::is_sorted(
        told.begin(), told.end(), [](const auto &a, const auto &b) { return a.first < b.first; }));
    std::vector<LiveGrade> grades;
    for (const auto &[revision, grade] : told)
        if (revision == newest)
            grades.push_back(grade);
    EXPECT_EQ(grades.front(), LiveGrade::Checked);
    EXPECT_NE(std::find(grades.begin(), grades.end(), LiveGrade::Better), grades.end());
}

} // namespace
} // namespace planloom
