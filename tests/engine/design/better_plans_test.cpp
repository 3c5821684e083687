#include "engine/design/explain/better_plans.h"
#include "engine/design/live_solver.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

namespace planloom {
namespace {

using namespace std::chrono_literals;

class BetterPlansOfASearch : public testing::Test
{
protected:
    static PlanRequest request(std::string_view rows)
    {
        const auto model =
            openModel({.source = "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=160&batch=16"});
        EXPECT_TRUE(model) << describe(model.error());
        PlanRequest request;
        request.model = *model;
        request.table = TableDocument(rows);
        request.target.cluster = "dgx-h100:4";
        request.search = true;
        request.upTo = PlanGrade::Simulated;
        request.betterEvery = 1ms;
        return request;
    }

    std::mutex m_mutex{};
    std::condition_variable m_told{};
};

TEST_F(BetterPlansOfASearch, AreAnsweredWholeWithTheirRows)
{
    const PlanRequest asked = request("# mine\nmicro-batches 2\n");
    const auto found = answerOf(asked);
    ASSERT_TRUE(found);
    ASSERT_TRUE((*found)->search);
    PlanAnswer heard;
    // Rows that an earlier search chose give way.
    PlanRequest before = asked;
    before.table = TableDocument("# mine\nmicro-batches 2\nmesh dp=4 @solver\n");
    BetterPlans plans(before, [&](const PlanAnswer &answer) {
        const std::lock_guard lock(m_mutex);
        heard = answer;
        m_told.notify_all();
    });
    plans.offer(*(*found)->search);
    std::unique_lock lock(m_mutex);
    m_told.wait(lock, [&] { return heard.timeline != nullptr; });
    EXPECT_EQ(heard.table.text(), (*found)->table.text());
    EXPECT_EQ(heard.summary.stepSeconds, (*found)->search->best.simulatedSeconds);
    EXPECT_EQ(heard.searchedRow, (*found)->searchedRow);
    ASSERT_TRUE(heard.search);
    EXPECT_EQ(print(heard.search->rows), print((*found)->search->rows));
    EXPECT_FALSE(heard.final);
    EXPECT_FALSE(heard.firstError());
}

TEST_F(BetterPlansOfASearch, AreNotToldOfBehindTheEnd)
{
    const PlanRequest asked = request("");
    const auto found = answerOf(asked);
    ASSERT_TRUE(found && (*found)->search);
    int told = 0;
    BetterPlans plans(asked, [&](const PlanAnswer &) { ++told; });
    plans.end();
    plans.offer(*(*found)->search);
    plans.end();
    EXPECT_EQ(told, 0);
}

TEST_F(BetterPlansOfASearch, TheNewestOfThoseThatComeTooEarlyIsAnswered)
{
    PlanRequest asked = request("");
    asked.betterEvery = 50ms;
    const auto found = answerOf(asked);
    ASSERT_TRUE(found && (*found)->search);
    std::vector<double> gaps;
    BetterPlans plans(asked, [&](const PlanAnswer &answer) {
        const std::lock_guard lock(m_mutex);
        gaps.push_back(answer.search->bound);
        m_told.notify_all();
    });
    SearchResult better = *(*found)->search;
    for (int i = 0; i <= 20; ++i) {
        better.bound = i;
        plans.offer(better);
    }
    std::unique_lock lock(m_mutex);
    m_told.wait(lock, [&] { return !gaps.empty() && gaps.back() == 20; });
    EXPECT_LE(gaps.size(), 3u);
}

/// Whether a search is long enough for one is the machine's to say; never are they told of behind an answer.
TEST_F(BetterPlansOfASearch, ComeBeforeTheAnswersOfTheSearch)
{
    std::vector<LiveGrade> grades;
    bool whole = true;
    {
        LiveSolver solver;
        solver.solve(request(""), [&](const LiveReport &report) {
            const std::lock_guard lock(m_mutex);
            grades.push_back(report.grade);
            if (report.grade == LiveGrade::Better && report.answer)
                whole = whole && report.answer->timeline && report.answer->search && !report.better;
            m_told.notify_all();
        });
        std::unique_lock lock(m_mutex);
        m_told.wait(lock, [&] { return !grades.empty() && grades.back() == LiveGrade::Final; });
    }
    EXPECT_TRUE(whole);
    const auto planned = std::find(grades.begin(), grades.end(), LiveGrade::Planned);
    EXPECT_EQ(std::find(planned, grades.end(), LiveGrade::Better), grades.end());
}

/// What a live solver tells of a search, until it is over.
struct Told {
    LiveGrade grade{};
    PlanAnswer answer{}; ///< Of grades that have one.
};

std::vector<Told> toldOf(PlanRequest request)
{
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Told> told;
    LiveSolver solver;
    std::unique_lock lock(mutex);
    solver.solve(std::move(request), [&](const LiveReport &report) {
        const std::lock_guard own(mutex);
        told.push_back({report.grade, report.answer ? *report.answer : PlanAnswer{}});
        changed.notify_all();
    });
    changed.wait(lock, [&] { return !told.empty() && told.back().grade == LiveGrade::Final; });
    return told;
}

TEST_F(BetterPlansOfASearch, StandBesideThePlanOfTheRowsAsTheyAre)
{
    PlanRequest asked = request("micro-batches 2\n");
    const auto before = answerOf(asked);
    ASSERT_TRUE(before && (*before)->search);
    // As after an edit: the solver's rows of before are there, and give way.
    const TableDocument rows = (*before)->table;
    asked.table = rows;
    asked.meanwhile = rows;
    const std::vector<Told> told = toldOf(asked);
    EXPECT_EQ(told.front().grade, LiveGrade::Checked);
    const auto asTheyAre = std::find_if(
        told.begin(), told.end(), [](const Told &each) { return each.answer.timeline != nullptr; });
    ASSERT_NE(asTheyAre, told.end());
    EXPECT_EQ(asTheyAre->grade, LiveGrade::Meanwhile);
    EXPECT_EQ(asTheyAre->answer.table, rows);
    EXPECT_FALSE(asTheyAre->answer.search);
    EXPECT_FALSE(asTheyAre->answer.final);
    EXPECT_EQ(asTheyAre->answer.summary.stepSeconds, (*before)->summary.stepSeconds);
    const auto planned = std::find_if(
        told.begin(), told.end(), [](const Told &each) { return each.grade >= LiveGrade::Planned; });
    for (auto each = planned; each != told.end(); ++each)
        EXPECT_TRUE(each->grade >= LiveGrade::Planned && each->answer.search);
}

TEST_F(BetterPlansOfASearch, AreAloneWhereTheRowsAsTheyAreDoNotHold)
{
    PlanRequest asked = request("degree data at most 2\n");
    asked.meanwhile = TableDocument("degree data at most 2\nmesh dp=4 @solver\n");
    asked.table = *asked.meanwhile;
    for (const Told &each : toldOf(asked))
        EXPECT_NE(each.grade, LiveGrade::Meanwhile);
}

} // namespace
} // namespace planloom
