#include "engine/design/make_plan.h"

#include "engine/analyse/limits.h"
#include "tests/engine/design/small_model.h"

#include "engine/design/remembered.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

constexpr const char *kDataParallel = "mesh dp=2\nsplit all : batch over dp\n";

ModelSnapshot smallModel()
{
    static const auto model = openModel({kSmall, {}, {}});
    EXPECT_TRUE(model) << describe(model.error());
    return *model;
}

PlanRequest requestFor(std::string_view rows, std::string gallery = {})
{
    PlanRequest request;
    request.revision = 7;
    request.model = smallModel();
    request.table = TableDocument(rows);
    request.gallery = std::move(gallery);
    request.target = {"dgx-a100", {}, 2};
    return request;
}

std::vector<PlanAnswer> answersTo(const PlanRequest &request, std::stop_token stop = {})
{
    std::vector<PlanAnswer> answers;
    makePlan(request, stop, [&](const PlanAnswer &answer) { answers.push_back(answer); });
    return answers;
}

TEST(MakePlan, ComesInGradesAndEndsVerified)
{
    const auto answers = answersTo(requestFor(kDataParallel));
    const std::vector<PlanGrade> grades{
        PlanGrade::Checked, PlanGrade::Planned, PlanGrade::Timed, PlanGrade::Simulated, PlanGrade::Verified};
    ASSERT_EQ(answers.size(), grades.size());
    for (std::size_t i = 0; i < answers.size(); ++i) {
        EXPECT_EQ(answers[i].revision, 7u);
        EXPECT_EQ(answers[i].grade, grades[i]);
        EXPECT_EQ(answers[i].final, i + 1 == answers.size());
        EXPECT_EQ(answers[i].plan != nullptr, grades[i] >= PlanGrade::Planned);
        EXPECT_EQ(answers[i].execution != nullptr, grades[i] >= PlanGrade::Lowered);
        EXPECT_EQ(answers[i].timeline != nullptr, grades[i] >= PlanGrade::Simulated);
        if (answers[i].isTimed()) { // figures come first and stay as they are
            EXPECT_EQ(answers[i].summary, answers.back().summary);
        }
        EXPECT_FALSE(answers[i].error) << describe(*answers[i].error);
    }
    const PlanAnswer &last = answers.back();
    ASSERT_TRUE(last.verdict);
    EXPECT_TRUE(last.verdict->ok()) << last.verdict->failure->reason;
    EXPECT_GT(last.summary.stepSeconds, 0);
    EXPECT_EQ(last.summary, summaryOf(*last.timeline));
    EXPECT_GT(last.solveSeconds, 0);
    EXPECT_EQ(last.cluster.name, "dgx-a100:2");
    EXPECT_EQ(last.deviceCount, 2);
    EXPECT_EQ(last.execution->origin, originOf(*smallModel(), last.cluster, last.table.text()));
    // The times of operators add up to the busy time of kernels.
    std::int64_t sum = 0;
    for (const std::int64_t time : last.operatorNanoseconds)
        sum += time;
    std::int64_t busy = 0;
    for (const Nanoseconds time : last.timeline->busy)
        busy += time.count();
    EXPECT_GT(sum, 0);
    EXPECT_LE(sum, busy);
}

TEST(MakePlan, GoesAsFarAsAsked)
{
    for (const PlanGrade grade :
        {PlanGrade::Planned, PlanGrade::Lowered, PlanGrade::Timed, PlanGrade::Simulated}) {
        PlanRequest request = requestFor(kDataParallel);
        request.upTo = grade;
        const auto answers = answersTo(request);
        ASSERT_FALSE(answers.empty());
        const PlanAnswer &last = answers.back();
        EXPECT_TRUE(last.final);
        EXPECT_EQ(last.grade, grade);
        EXPECT_EQ(last.execution != nullptr, grade >= PlanGrade::Lowered);
        EXPECT_EQ(last.summary.stepSeconds > 0, grade >= PlanGrade::Timed);
        EXPECT_EQ(last.timeline != nullptr, grade >= PlanGrade::Simulated);
        EXPECT_FALSE(last.verdict);
        EXPECT_EQ(
            std::count_if(answers.begin(), answers.end(), [](const PlanAnswer &a) { return a.final; }), 1);
    }
}

TEST(MakePlan, TimesWithoutSpansAsWithThem)
{
    PlanRequest request = requestFor(kDataParallel);
    request.upTo = PlanGrade::Timed;
    const auto timed = planOf(request);
    request.upTo = PlanGrade::Simulated;
    const auto simulated = planOf(request);
    ASSERT_TRUE(timed && simulated);
    EXPECT_EQ((*timed)->summary, (*simulated)->summary);
}

TEST(MakePlan, GoesOnFromAnEarlierAnswer)
{
    PlanRequest request = requestFor(kDataParallel);
    request.upTo = PlanGrade::Simulated;
    const auto begun = planOf(request);
    ASSERT_TRUE(begun);
    request.upTo = PlanGrade::Verified;
    request.revision = 8;
    request.begin = *begun;
    const auto answers = answersTo(request);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].revision, 8u);
    EXPECT_EQ(answers[0].timeline, (*begun)->timeline) << "nothing is done twice";
    EXPECT_TRUE(answers[0].verdict && answers[0].verdict->ok());
}

TEST(MakePlan, GoesOnFromAPlanAlone)
{
    PlanRequest request = requestFor(kDataParallel);
    request.upTo = PlanGrade::Planned;
    const auto begun = planOf(request);
    ASSERT_TRUE(begun);
    request.upTo = PlanGrade::Verified;
    request.begin = *begun;
    const auto answers = answersTo(request);
    ASSERT_EQ(answers.size(), 3u); // Timed, Simulated, Verified
    EXPECT_EQ(answers.back().plan, (*begun)->plan);
    request.begin = nullptr;
    const auto whole = planOf(request);
    ASSERT_TRUE(whole);
    EXPECT_EQ(answers.back().summary, (*whole)->summary);
    EXPECT_EQ(answers.back().rows, (*whole)->rows);
    EXPECT_EQ(answers.back().operatorNanoseconds, (*whole)->operatorNanoseconds);
}

TEST(MakePlan, TakesOverWhatOnlyTheOrderChanged)
{
    const std::string rows = std::string(kDataParallel) + "micro-batches 4\n";
    PlanRequest request = requestFor(rows);
    request.upTo = PlanGrade::Verified;
    const auto first = std::make_shared<const PlanAnswer>(answersTo(request).back());
    ASSERT_TRUE(first->materialized);
    PlanRequest moved = requestFor(rows + "order forward before backward at -1 of 2\n");
    moved.last = first;
    const PlanAnswer second = answersTo(moved).back();
    ASSERT_TRUE(second.verdict);
    EXPECT_TRUE(second.verdict->ok());
    EXPECT_EQ(second.materialized, first->materialized);
    EXPECT_NE(second.execution->devices[0].schedule, first->execution->devices[0].schedule);
    PlanRequest other = requestFor("micro-batches 2\n");
    other.last = first;
    EXPECT_NE(answersTo(other).back().materialized, first->materialized);
}

TEST(MakePlan, PutsTheRowsOfAGalleryPlanFirst)
{
    const auto answer = planOf(requestFor("# mine\nlimit memory 40GiB", "data-parallel"));
    ASSERT_TRUE(answer) << describe(answer.error());
    const std::string text = (*answer)->table.text();
    EXPECT_NE(text.find("batch over dp"), std::string::npos);
    EXPECT_TRUE(text.ends_with("# mine\nlimit memory 40GiB")) << text;
    EXPECT_EQ((*answer)->grade, PlanGrade::Verified);
    const auto alone = planOf(requestFor("", "data-parallel"));
    ASSERT_TRUE(alone);
    EXPECT_EQ((*alone)->table.text() + "# mine\nlimit memory 40GiB", text);
}

TEST(MakePlan, ReportsLinesAndRowsInErrorAndMakesNoPlan)
{
    const auto answers = answersTo(requestFor(
        "# note\nmesh dp=2\n\nsplit all batch\noff micro-batches 2\nsplit all : batch over nowhere\n"));
    ASSERT_EQ(answers.size(), 1u);
    const PlanAnswer &answer = answers.front();
    EXPECT_TRUE(answer.final);
    EXPECT_EQ(answer.errorCount(), 2u);
    EXPECT_EQ(answer.plan, nullptr);
    ASSERT_EQ(answer.textErrors.size(), 1u);
    EXPECT_EQ(answer.textErrors[0].where.rfind("line:4:", 0), 0u);
    EXPECT_EQ(answer.firstError(), answer.textErrors[0]);
    ASSERT_EQ(answer.rows.size(), 3u);
    const std::int32_t lines[]{1, 4, 5};
    for (std::size_t row = 0; row < 3; ++row) {
        EXPECT_EQ(answer.rows[row].row, RowId{static_cast<std::int32_t>(row)});
        EXPECT_EQ(answer.rows[row].line, lines[row]);
    }
    EXPECT_EQ(answer.rows[2].text, "split all : batch over nowhere");
    EXPECT_TRUE(answer.rows[2].report.error);
}

TEST(MakePlan, NamesConflicts)
{
    const auto answers = answersTo(requestFor("mesh dp=2\nplace all : devices 0\nplace all : devices 1\n"));
    ASSERT_EQ(answers.size(), 1u);
    ASSERT_FALSE(answers[0].conflicts.empty());
    EXPECT_EQ(answers[0].conflicts[0].lines, (std::vector<std::int32_t>{1, 2}));
    ASSERT_TRUE(answers[0].firstError());
    EXPECT_EQ(answers[0].firstError(), answers[0].rows[1].report.error);
    EXPECT_EQ(answers[0].firstError()->code, ErrorCode::Conflict);
}

TEST(MakePlan, ExplainsConflictsWithWaysOutThatHold)
{
    PlanRequest request = requestFor("mesh dp=2\n# a note\nplace all : devices 0\nplace all : devices 1\n");
    request.explains = true;
    const auto answers = answersTo(request);
    ASSERT_GT(answers.size(), 1u);
    EXPECT_FALSE(answers.front().final);
    EXPECT_FALSE(answers.front().conflicts.front().minimal);
    const PlanAnswer &last = answers.back();
    EXPECT_TRUE(last.final);
    ASSERT_FALSE(last.conflicts.empty());
    const RowConflict &conflict = last.conflicts.front();
    EXPECT_TRUE(conflict.minimal);
    EXPECT_EQ(conflict.lines, (std::vector<std::int32_t>{2, 3}));
    EXPECT_EQ(conflict.devices, (std::vector<DeviceId>{{0}, {1}}));
    EXPECT_NE(conflict.words.find("3 and 4"), std::string::npos) << conflict.words;
    ASSERT_FALSE(conflict.waysOut.empty());
    for (const RowWayOut &way : conflict.waysOut) {
        if (!way.holds)
            continue;
        EXPECT_GT(way.stepSeconds, 0) << way.words;
        PlanRequest solved = requestFor("");
        solved.table = last.table;
        ASSERT_TRUE(solved.table.apply(way.edit)) << way.words;
        EXPECT_TRUE(planOf(solved)) << way.words;
    }
}

/// Rows that leave the search no plan are in conflict: what they are completed to would break them.
TEST(MakePlan, RowsThatLeaveTheSearchNoPlanAreAConflict)
{
    PlanRequest request =
        requestFor("degree data exactly 2\n# a note\nzero1 all\ndegree pipeline exactly 2\n");
    request.search = true;
    const PlanAnswer plain = answersTo(request).back(); // as previews ask
    EXPECT_FALSE(plain.plan);
    ASSERT_EQ(plain.conflicts.size(), 1U);
    EXPECT_FALSE(plain.conflicts.front().minimal);
    EXPECT_EQ(plain.conflicts.front().lines, (std::vector<std::int32_t>{0, 3}));

    request.explains = true;
    const auto answers = answersTo(request);
    for (const PlanAnswer &answer : answers) {
        EXPECT_FALSE(answer.plan);
        EXPECT_FALSE(answer.conflicts.empty());
    }
    const PlanAnswer &last = answers.back();
    EXPECT_TRUE(last.final);
    EXPECT_TRUE(last.searchProblem);
    ASSERT_EQ(last.conflicts.size(), 1U);
    const RowConflict &conflict = last.conflicts.front();
    EXPECT_TRUE(conflict.minimal);
    EXPECT_EQ(conflict.lines, (std::vector<std::int32_t>{0, 3}));
    EXPECT_NE(
        conflict.words.find("Rows 1 and 4 can't hold together: no mesh of 2 devices"), std::string::npos)
        << conflict.words;
    for (std::size_t row = 0; row < last.rows.size(); ++row)
        EXPECT_EQ(last.rows[row].report.error.has_value(), row != 1) << row;
    EXPECT_EQ(last.firstError()->code, ErrorCode::Conflict);
    EXPECT_EQ(conflict.waysOut.size(), 4U);
    for (const RowWayOut &way : conflict.waysOut) {
        EXPECT_TRUE(way.holds) << way.words;
        EXPECT_GT(way.stepSeconds, 0) << way.words;
        PlanRequest solved = request;
        solved.table = last.table;
        ASSERT_TRUE(solved.table.apply(way.edit)) << way.words;
        const auto answer = planOf(solved);
        ASSERT_TRUE(answer) << way.words << describe(answer.error());
        EXPECT_TRUE((*answer)->search) << way.words;
    }

    request.search = false; // then degrees bound nothing
    EXPECT_TRUE(planOf(request));
}

/// Rows that a row of the search's choice is about are not told of with a search before, whose rows are none
/// that must hold.
TEST(MakePlan, WhatASearchBeforeChoseTakesNoPartInConflicts)
{
    PlanRequest request = requestFor("degree data at least 2\n");
    request.search = true;
    const auto found = planOf(request);
    ASSERT_TRUE(found) << describe(found.error());
    request.table = (*found)->table;
    ASSERT_GT(request.table.lineCount(), 1);
    ASSERT_TRUE(request.table.apply(insertText(request.table, 1, "degree pipeline at least 2\n")));
    request.explains = true;
    const PlanAnswer last = answersTo(request).back();
    EXPECT_FALSE(last.plan);
    ASSERT_EQ(last.conflicts.size(), 1U);
    EXPECT_EQ(last.conflicts.front().lines, (std::vector<std::int32_t>{0, 1}));
    EXPECT_EQ(last.table, request.table);
    for (std::size_t row = 0; row < last.rows.size(); ++row) {
        EXPECT_EQ(last.rows[row].report.error.has_value(), row < 2) << row;
        EXPECT_FALSE(last.rows[row].text.starts_with("off ")) << row;
    }
}

/// Nothing is wrong with rows that the search has no plan for and their completion keeps to; nor with a
/// search that was stopped.
TEST(MakePlan, RowsThatHoldWithoutTheSearchStandWithAWarning)
{
    PlanRequest request = requestFor("degree data exactly 2\nsplit all : batch by 2\n");
    request.search = true;
    request.explains = true;
    const auto held = planOf(request);
    ASSERT_TRUE(held) << describe(held.error());
    EXPECT_TRUE((*held)->searchProblem);
    EXPECT_TRUE((*held)->conflicts.empty());
    std::stop_source enough;
    enough.request_stop();
    request.enough = enough.get_token();
    request.table = TableDocument("degree pipeline exactly 2\n");
    const auto stopped = planOf(request);
    ASSERT_TRUE(stopped) << describe(stopped.error());
    EXPECT_EQ((*stopped)->searchProblem->code, ErrorCode::Cancelled);
}

/// No plan of a model needs less than the bound that its limit is held against.
TEST(MakePlan, LeastMemoryIsBelowThatOfEveryPlan)
{
    for (const char *rows : {"", "mesh dp=2\nsplit all : batch over dp\n",
             "mesh dp=2\nsplit all : batch over dp\nzero3 all over dp\n",
             "mesh tp=2\nsplit kind:Linear : out0.-1 over tp\nprecision all : bf16\n"}) {
        const auto answer = planOf(requestFor(rows));
        ASSERT_TRUE(answer) << rows << describe(answer.error());
        const Bytes least = leastMemory(*(*answer)->plan, (*answer)->deviceCount);
        EXPECT_GT(least.count, 0) << rows;
        EXPECT_LE(least, (*answer)->summary.largestPeak) << rows;
    }
}

/// A limit that the plan breaks can be raised to what the plan needs.
TEST(MakePlan, OffersTheLimitThatWouldHold)
{
    const auto answers = answersTo(requestFor("limit memory 1KiB\n"));
    ASSERT_EQ(answers.back().conflicts.size(), 1u);
    const RowConflict &conflict = answers.back().conflicts.front();
    EXPECT_NE(conflict.words.find("no plan on 2 devices does"), std::string::npos) << conflict.words;
    ASSERT_EQ(conflict.waysOut.size(), 2u);
    PlanRequest raised = requestFor("");
    raised.table = answers.back().table;
    ASSERT_TRUE(raised.table.apply(conflict.waysOut.front().edit));
    EXPECT_TRUE(planOf(raised)) << raised.table.text();
}

TEST(MakePlan, HoldsLimitsAgainstThePlan)
{
    const auto answers = answersTo(requestFor("limit memory 1KiB\nlimit time 1s\n"));
    ASSERT_FALSE(answers.empty());
    const PlanAnswer &last = answers.back();
    EXPECT_TRUE(last.final);
    ASSERT_TRUE(last.rows[0].report.error);
    EXPECT_EQ(last.rows[0].report.error->code, ErrorCode::ResourceLimit);
    EXPECT_EQ(last.rows[1].remark.rfind("step ", 0), 0u) << last.rows[1].remark;
    EXPECT_EQ(last.firstError(), last.rows[0].report.error);
}

TEST(MakePlan, WarnsOfPreferencesThatDoNotHold)
{
    const auto answer = planOf(requestFor("place all : devices 0\nprefer place all : devices 1\n"));
    ASSERT_TRUE(answer) << describe(answer.error());
    ASSERT_EQ((*answer)->warnings.size(), 1u);
    EXPECT_EQ((*answer)->warnings[0].row, RowId{1});
    EXPECT_EQ((*answer)->warnings[0].sentence, (*answer)->rows[1].report.warning);
}

TEST(MakePlan, SaysWhyThereIsNone)
{
    PlanRequest request = requestFor("");
    request.target.cluster = "no-such-cluster";
    const auto answers = answersTo(request);
    ASSERT_EQ(answers.size(), 1u);
    ASSERT_TRUE(answers[0].error);
    EXPECT_EQ(answers[0].error->code, ErrorCode::NotFound);
    EXPECT_TRUE(answers[0].final);
    const auto gallery = answersTo(requestFor("", "3d:dp=3,tp=1,pp=1"));
    ASSERT_EQ(gallery.size(), 1u);
    EXPECT_TRUE(gallery[0].error);
    EXPECT_FALSE(planOf(requestFor("", "3d:dp=3,tp=1,pp=1")));
}

TEST(MakePlan, RefusesWhatNeedsTrainingWithoutIt)
{
    OpenedModel untrained = *smallModel();
    untrained.trainingProblem = Error{ErrorCode::NotSupported, "no gradient of TopK", {}, "operator:top"};
    PlanRequest request = requestFor("");
    request.model = std::make_shared<const OpenedModel>(untrained);
    EXPECT_TRUE(planOf(request)) << "its forward pass can be planned";
    request.needsTraining = true;
    const auto refused = planOf(request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), *untrained.trainingProblem);
}

TEST(MakePlan, StaysSilentOnceStopped)
{
    std::stop_source stop;
    stop.request_stop();
    EXPECT_TRUE(answersTo(requestFor("mesh dp=2\n"), stop.get_token()).empty());
    EXPECT_EQ(planOf(requestFor("mesh dp=2\n"), stop.get_token()).error().code, ErrorCode::Cancelled);
}

TEST(GestureContextOf, TakesTheMeshThatThePlanTakes)
{
    const TableDocument table("off mesh pp=4\nmesh dp=2\nmesh tp=2\n");
    const GestureContext context = gestureContextOf(*smallModel(), table, 2);
    ASSERT_EQ(context.mesh.size(), 1u);
    EXPECT_EQ(context.mesh[0].name, "dp");
    EXPECT_EQ(context.model.index, smallModel()->index);
    EXPECT_EQ(context.document, table);
}

} // namespace
} // namespace planloom
