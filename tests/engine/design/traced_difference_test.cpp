#include "engine/design/explain/traced_difference.h"

#include "engine/design/make_plan.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

class Traced : public testing::Test
{
protected:
    static PlanAnswerSnapshot plan(const std::string &rows, std::int32_t devices = 4)
    {
        const auto model = openModel({"zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=128&batch=8", {}, {}});
        EXPECT_TRUE(model);
        PlanRequest request;
        request.model = *model;
        request.table = TableDocument(rows);
        request.target = {"dgx-h100", {}, devices};
        request.upTo = PlanGrade::Simulated;
        const auto planned = planOf(request);
        EXPECT_TRUE(planned) << describe(planned.error());
        return *planned;
    }

    static std::vector<DifferenceCause> trace(const PlanAnswerSnapshot &a, const PlanAnswerSnapshot &b)
    {
        const ConstraintTable rowsA = a->table.table();
        const ConstraintTable rowsB = b->table.table();
        const auto difference = differenceOf(*a->execution, *b->execution);
        const auto causes = traceDifference({a->plan.get(), &rowsA, &a->operatorNanoseconds},
            {b->plan.get(), &rowsB, &b->operatorNanoseconds}, *difference);
        std::set<std::string> told; // every operator that differs, once
        std::int64_t nanoseconds = 0;
        for (const DifferenceCause &cause : *causes) {
            EXPECT_FALSE(cause.operators.empty());
            nanoseconds += cause.nanoseconds.value_or(0);
            for (const OperatorDifference &each : cause.operators)
                EXPECT_TRUE(told.insert(each.name).second) << each.name;
        }
        EXPECT_EQ(told.size(), difference->operators.size());
        return *causes;
    }
};

TEST_F(Traced, APlanDoesNotDifferFromItself)
{
    const auto one = plan("mesh dp=4\nsplit all : batch over dp\n");
    EXPECT_TRUE(trace(one, one).empty());
    // Nor from one with its rows in another order.
    EXPECT_TRUE(trace(one, plan("split all : batch over dp\nmesh dp=4\n")).empty());
}

TEST_F(Traced, ARowThatOneTableHasIsTheReason)
{
    const std::string rows = "mesh dp=2 tp=2\nsplit all : batch over dp\n";
    const auto a = plan(rows);
    const auto b = plan(rows + "split name:*attn* : heads over tp\n");
    const auto there = trace(a, b);
    ASSERT_FALSE(there.empty());
    bool direct = false;
    for (const DifferenceCause &cause : there) {
        EXPECT_TRUE(cause.a.empty());
        ASSERT_EQ(cause.b.size(), 1u);
        EXPECT_EQ(cause.b.front(), RowId{2});
        direct = direct || !cause.inherited;
    }
    EXPECT_TRUE(direct);
    const auto back = trace(b, a); // the mirror image
    ASSERT_EQ(back.size(), there.size());
    for (std::size_t i = 0; i < back.size(); ++i) {
        EXPECT_EQ(back[i].a, there[i].b);
        EXPECT_EQ(back[i].b, there[i].a);
        EXPECT_EQ(back[i].nanoseconds.value(), -there[i].nanoseconds.value());
    }
}

TEST_F(Traced, TheMeshIsAReasonWhereOperatorsAreCutOverIt)
{
    const auto causes = trace(
        plan("mesh dp=4\nsplit all : batch over dp\n"), plan("mesh dp=2\nsplit all : batch over dp\n", 2));
    ASSERT_FALSE(causes.empty());
    for (const DifferenceCause &cause : causes) {
        EXPECT_EQ(cause.a, std::vector<RowId>{RowId{0}});
        EXPECT_EQ(cause.b, std::vector<RowId>{RowId{0}});
    }
}

TEST_F(Traced, ARowThatIsOffIsNone)
{
    const auto causes = trace(plan("place layer:0 : devices 0\noff place layer:1 : devices 1\n"),
        plan("place layer:0 : devices 0\nplace layer:1 : devices 1\n"));
    ASSERT_FALSE(causes.empty());
    for (const DifferenceCause &cause : causes) {
        EXPECT_TRUE(cause.a.empty());
        EXPECT_EQ(cause.b, std::vector<RowId>{RowId{1}});
    }
}

TEST_F(Traced, OfTwoPlanFiles)
{
    const auto a = plan("mesh dp=4\nsplit all : batch over dp\n");
    const auto b = plan("mesh dp=4\nsplit all : batch over dp\nzero1 all over dp\n");
    const auto difference = differenceOf(*a->execution, *b->execution);
    const auto traced =
        traceDifference(*a->execution, *a->timeline, *b->execution, *b->timeline, *difference);
    ASSERT_TRUE(traced) << describe(traced.error());
    ASSERT_FALSE(traced->causes.empty());
    for (const DifferenceCause &cause : traced->causes)
        EXPECT_EQ(cause.b, std::vector<RowId>{RowId{2}});
    ExecutionPlan old = *a->execution;
    old.origin.erase("rows");
    const auto refused = traceDifference(old, *a->timeline, *b->execution, *b->timeline, *difference);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().where, "/origin/rows");
}

} // namespace
} // namespace planloom
