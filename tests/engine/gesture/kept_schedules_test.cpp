// A table keeps a schedule for each number of micro-batches: which holds, and how one is taken.

#include "engine/gesture/kept_schedules.h"
#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

const std::string kPipeline =
    "mesh pp=4\nstage layer:0 : 0\nstage layer:1 : 1\nstage layer:2 : 2\nstage layer:3 : 3\n";

std::string withRows(const std::string &rows)
{
    return kPipeline + rows;
}

ScheduleKind scheduleOf(const std::string &rows)
{
    const GestureContext context = gpt(4, withRows(rows));
    EXPECT_TRUE(context.plan) << rows;
    return context.plan ? context.plan->schedule : ScheduleKind::Sequential;
}

TEST(KeptSchedules, TheOneForTheNumberComesBeforeTheOneForAny)
{
    const std::string kept =
        "schedule gpipe\nschedule zb-h1 at 8 micro-batches\nschedule 1f1b at 4 micro-batches\n";
    EXPECT_EQ(scheduleOf(kept + "micro-batches 8\n"), ScheduleKind::ZeroBubbleH1);
    EXPECT_EQ(scheduleOf(kept + "micro-batches 4\n"), ScheduleKind::OneFOneB);
    EXPECT_EQ(scheduleOf(kept + "micro-batches 2\n"), ScheduleKind::GPipe);
    // Wherever the rows stand.
    EXPECT_EQ(scheduleOf("schedule 1f1b at 4 micro-batches\nmicro-batches 4\nschedule gpipe\n"),
        ScheduleKind::OneFOneB);
    // A row that is off gives nothing.
    EXPECT_EQ(scheduleOf("micro-batches 4\nschedule gpipe\noff schedule 1f1b at 4 micro-batches\n"),
        ScheduleKind::GPipe);
}

TEST(KeptSchedules, TwoForOneNumberMeet)
{
    const auto refused = [](const std::string &rows) {
        const auto index = indexOf(kModel);
        const auto completion = completePlan(index->snapshot(), 4, TableDocument(withRows(rows)).table());
        if (!completion)
            return describe(completion.error());
        const auto error = firstError(*completion);
        return error ? describe(*error) : std::string{};
    };
    EXPECT_NE(
        refused("micro-batches 4\nschedule 1f1b at 4 micro-batches\nschedule gpipe at 4 micro-batches\n")
            .find("the schedule at 4 micro-batches is given already"),
        std::string::npos);
    EXPECT_NE(refused("micro-batches 4\nschedule 1f1b\nschedule gpipe\n").find("is given already"),
        std::string::npos);
    EXPECT_EQ(refused("micro-batches 4\nschedule 1f1b at 4 micro-batches\nschedule gpipe at 8 "
                      "micro-batches\nschedule zb-h1\n"),
        "");
}

TEST(KeptSchedules, AreListedByTheirNumbers)
{
    const TableDocument document(
        "# mine\nschedule zb-h1 at 16 micro-batches\nschedule gpipe\nschedule 1f1b at 2 micro-batches\n");
    const auto kept = keptSchedules(document);
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[0].rule, (ScheduleRule{ScheduleKind::OneFOneB, {}, 2}));
    EXPECT_EQ(kept[0].line, 3);
    EXPECT_EQ(kept[1].rule, (ScheduleRule{ScheduleKind::ZeroBubbleH1, {}, 16}));
    EXPECT_EQ(kept[1].line, 1);
    EXPECT_TRUE(kept[1].enabled);
}

TEST(KeptSchedules, OneIsTakenWithItsNumber)
{
    const GestureContext context =
        gpt(4, withRows("micro-batches 8\nschedule gpipe\nschedule 1f1b at 4 micro-batches\n"));
    const auto line = static_cast<std::int32_t>(keptSchedules(context.document).front().line);
    EXPECT_EQ(after(context, proposeKeptSchedule(context, line)),
        withRows("micro-batches 4\nschedule gpipe\nschedule 1f1b at 4 micro-batches\n"));
    EXPECT_EQ(refusal(proposeKeptSchedule(context, 0)).find("no schedule is kept in"), 0u);
}

TEST(KeptSchedules, AScheduleByNameSwitchesOffWhatIsKeptForTheNumber)
{
    const GestureContext context = gpt(4,
        withRows("micro-batches 4\nschedule gpipe\nschedule 1f1b at 4 micro-batches\nschedule zb-h1 at 8 "
                 "micro-batches\n"));
    TableDocument changed(after(context, proposeSchedule(context, {ScheduleKind::ZeroBubbleH1, {}})));
    const auto kept = keptSchedules(changed);
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_FALSE(kept[0].enabled); // it can be had again
    EXPECT_TRUE(kept[1].enabled);
    const GestureContext by = contextOf(indexOf(kModel), 4, changed);
    ASSERT_TRUE(by.plan);
    EXPECT_EQ(by.plan->schedule, ScheduleKind::ZeroBubbleH1);
    const GestureContext again =
        contextOf(indexOf(kModel), 4, TableDocument(after(by, proposeKeptSchedule(by, kept[0].line))));
    ASSERT_TRUE(again.plan);
    EXPECT_EQ(again.plan->schedule, ScheduleKind::OneFOneB);
}

TEST(KeptSchedules, OneForANumberStandsBesideTheOneForAny)
{
    const GestureContext context = gpt(4, withRows("micro-batches 4\nschedule gpipe\n"));
    const std::string text = after(context, proposeSchedule(context, {ScheduleKind::OneFOneB, {}, 4}));
    EXPECT_NE(text.find("schedule gpipe\n"), std::string::npos);
    EXPECT_NE(text.find("schedule 1f1b at 4 micro-batches"), std::string::npos);
    EXPECT_EQ(contextOf(indexOf(kModel), 4, text).plan->schedule, ScheduleKind::OneFOneB);
    // Updates that would not divide another number are dropped with it.
    TableDocument document("micro-batches 8 update every 4\n");
    ASSERT_TRUE(document.apply(withMicroBatches(document, 6)));
    EXPECT_EQ(document.text(), "micro-batches 6\n");
}

} // namespace
} // namespace planloom
