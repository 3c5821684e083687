#include "engine/lesson/player.h"

#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <map>

namespace planloom {
namespace {

/// A small lesson without a fault; `from` is replaced by `to` where it is given.
std::string lessonText(const std::string &from = {}, const std::string &to = {})
{
    std::string text = R"(# Pipelines

```lesson
order: 1
minutes: 5
idea: A pipeline trades waiting for memory.
```

```open
model: zoo:gpt?layers=4&hidden=64&heads=4&seq=32&vocab=64&batch=8
cluster: dgx-a100
devices: 4
gallery: gpipe:micro-batches=8
```

```plan one-by-one
gallery: gpipe:micro-batches=1
```

The plan *{name}* has {stages} stages; one by one the bubble is {bubble in one-by-one}.

```claim
bubble in one-by-one > bubble
verified in one-by-one
```

```choice
Which bubble is larger?
? bubble > bubble in one-by-one | Of eight micro-batches | No.
? bubble < bubble in one-by-one | Of one | {bubble in one-by-one}.
```

```number
question: How many are in flight?
answer: in flight of stage 0
right: Yes.
```

## Less memory

```show
select: layer:0
```

```point
at: forward 7 of stage 3
words: The last of {micro-batches}.
```

```task
goal: Hold at most {stages} micro-batches.
- in flight of stage 0 <= stages | Stage 0 still holds {in flight of stage 0}.
- stages = 4
- micro-batches = 8
```

```hint
Now stage 0 holds {in flight of stage 0}; in the solution {in flight of stage 0 in goal}.
```

```solution
say: One forward, one backward.
replace: schedule gpipe -> schedule 1f1b
```

```wrong
says: still holds 8
row: limit time 1s
```

```wrong
says: number of micro-batches is 1; it has to be 8
gallery: gpipe:micro-batches=1
```

## Further

Now {in flight of stage 0} are in flight.

```claim
schedule = 1f1b
```
)";
    if (!from.empty()) {
        const std::size_t at = text.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        text.replace(at, from.size(), to);
    }
    return text;
}

/// Line and sentence of all findings; those that are no fault behind "remark".
std::string findingsOf(const std::string &text, const LessonTarget &target = {})
{
    std::string all;
    for (const LessonFinding &finding : checkLesson(lessonFromText("mine", text), target))
        all +=
            std::to_string(finding.line) + (finding.isWrong ? ": " : " remark: ") + finding.sentence + "\n";
    return all;
}

TEST(CheckLesson, FindsNothingInALessonThatHolds)
{
    EXPECT_EQ(findingsOf(lessonText()), "");
    EXPECT_EQ(findingsOf(lessonText(), {"dgx-h100", "megatron"}), "");
}

TEST(CheckLesson, FindsEachMistake)
{
    const std::tuple<const char *, const char *, const char *> mistakes[]{
        {"hidden=64", "hiden=64", "The design cannot be opened: "},
        {"gallery: gpipe:micro-batches=8", "gallery: gpipe:micro-batches=7",
            "The design has no plan that holds: "},
        {"gallery: gpipe:micro-batches=1\n", "gallery: gpipe:micro-batches=3\n",
            "The plan \"one-by-one\" is none: "},
        {"has {stages} stages", "has {warm-up of stage 9} stages",
            "{warm-up of stage 9}: there is no stage 9"},
        {"bubble in one-by-one > bubble", "bubble in one-by-one < bubble",
            "This does not hold: the bubble in \"one-by-one\" is "},
        {"? bubble < bubble in", "? bubble = bubble in", "No answer of this choice is right here."},
        {"? bubble < bubble in one-by-one", "? busy of device 7 < step",
            "Whether this answer is right cannot be told: there is no device 7"},
        {"answer: in flight of stage 0", "answer: in flight of stage 9",
            "\"in flight of stage 9\" cannot be worked out: there is no stage 9"},
        {"select: layer:0", "select: layer:77", "No operator of the model is \"layer:77\"."},
        {"forward 7 of stage 3", "forward 8 of stage 3",
            "There is no such block: the plan has 4 stages and 8 micro-batches."},
        {"forward 7 of stage 3", "device 4", "There is no device 4."},
        {"forward 7 of stage 3", "row zero1", "There is no row with \"zero1\"."},
        {"- in flight of stage 0 <= stages", "- in flight of stage 0 <= 9",
            "The task is done before anything was done."},
        {"- stages = 4", "- stages = 5",
            "The solution does not do the task: The number of stages is 4; it has to be 5."},
        {"replace: schedule gpipe", "replace: schedule zb-h1",
            "The solution cannot be carried out: there is no row that begins \"schedule zb-h1\""},
        {"replace: schedule gpipe -> schedule 1f1b", "row: schedule 1f1b",
            "The solution does not do the task: "},
        {"says: still holds 8", "says: still holds 7",
            "The task does not say \"still holds 7\" to this plan, but: Stage 0 still holds 8."},
        {"row: limit time 1s", "replace: schedule gpipe -> schedule 1f1b",
            "The task takes this plan, which is to be wrong."},
        {"row: limit time 1s", "remove: no such row",
            "The wrong plan cannot be made: there is no row that begins \"no such row\""},
        {"still holds {in flight of stage 0}", "still holds {peak of device 7}",
            "{peak of device 7}: there is no device 7"},
        {"in the solution {in flight", "in the solution {warm-up of stage 8 in goal} {in flight",
            "{warm-up of stage 8 in goal}: there is no stage 8"},
        {"The plan *{name}*", "The plan {peak in goal}",
            "{peak in goal}: no task before this has a solution"},
        {"schedule = 1f1b\n", "schedule = gpipe\n",
            "This does not hold: the schedule is 1f1b; it has to be gpipe."},
        {"minutes: 5\n", "minuts: 5\n", "expected a line that begins with a key, found \"minuts\""},
    };
    for (const auto &[from, to, expected] : mistakes) {
        const std::string found = findingsOf(lessonText(from, to));
        EXPECT_NE(found.find(expected), std::string::npos) << from << " -> " << to << " gives\n" << found;
        EXPECT_NE(found.find(": "), std::string::npos);
    }
    const std::string claim = findingsOf(lessonText("verified in one-by-one", "not verified in one-by-one"));
    EXPECT_TRUE(claim.starts_with(
        "24: This does not hold: the plan is proven to compute the model in \"one-by-one\""))
        << claim;
}

TEST(CheckLesson, PassesByWhatIsKnownOnceThePlanHasRun)
{
    EXPECT_EQ(findingsOf(lessonText("- stages = 4", "- run and measured > 1 ns")),
        "53 remark: \"run and measured > 1 ns\" is known once the plan has run.\n");
    EXPECT_EQ(findingsOf(lessonText("{name}", "{measured}")), "");
}

TEST(CheckLesson, TakesAConflictForWhatTheStepIsAbout)
{
    const std::string text = R"(# Conflicts
```lesson
minutes: 1
idea: Rows can contradict each other.
```
```open
model: zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24
cluster: dgx-a100
devices: 2
rows:
place all : devices 0
place all : devices 1
```
```claim
conflicts > 0
not planned
```
)";
    const std::string found = findingsOf(text);
    EXPECT_TRUE(found.starts_with("6 remark: The design has no plan that holds: ")) << found;
    EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 1) << found;
    const std::string other = findingsOf(text.substr(0, text.find("```claim")));
    EXPECT_TRUE(other.starts_with("6: The design has no plan that holds: ")) << other;
}

TEST(LessonFigures, WorkOutTextsAndKeepNamedPlans)
{
    const Lesson lesson = lessonFromText("mine", lessonText());
    ASSERT_TRUE(lesson.problems.empty());
    LessonFigures figures(lesson, 1);
    const auto text =
        lessonTextFrom("{stages in start} stages, {in flight of stage 0 in goal} in flight, {measured}");
    ASSERT_TRUE(text);
    EXPECT_EQ(figures.textOf(*text).value_or(""), "4 stages, 4 in flight, not run yet");
    const auto first = figures.plan("one-by-one");
    ASSERT_TRUE(first) << describe(first.error());
    EXPECT_TRUE((*first)->timeline) << "pictures are painted of it";
    EXPECT_EQ(figures.textOf(*lessonTextFrom("{step}")).error().message, "{step}: there is no plan yet");
    figures.setOwn(*first);
    EXPECT_EQ(*figures.plan("one-by-one"), *first) << "kept";
    EXPECT_EQ(figures.textOf(*lessonTextFrom("{micro-batches}")).value_or(""), "1");
    EXPECT_EQ(figures.textOf(*lessonTextFrom("{verified in one-by-one}")).value_or(""), "yes");
    LessonFigures next(figures, 2);
    EXPECT_EQ(next.textOf(*lessonTextFrom("{in flight of stage 0 in goal}")).value_or(""), "4")
        << "of the task before";
    EXPECT_EQ(LessonFigures(lesson, 0).plan("goal").error().code, ErrorCode::NotFound);
    EXPECT_EQ(figures.plan("nobody").error().code, ErrorCode::NotFound);
    std::stop_source stop;
    stop.request_stop();
    EXPECT_EQ(figures({.figure = Figure::Step, .plan = "start"}, stop.get_token()).error().code,
        ErrorCode::Cancelled);
}

TEST(LessonDeeds, AreCarriedOutByTableEdits)
{
    const auto deed = [](DeedKind kind, std::string what, std::string by = {}) {
        return LessonDeed{.kind = kind, .what = std::move(what), .by = std::move(by), .line = 7};
    };
    TableDocument table(
        "# kept\nmesh pp=4   # four\nschedule gpipe\nsplit all : batch by 2\nsplit all : batch by 20\n");
    const auto after = [&table](const LessonDeed &each) {
        const auto edit = editOf(table, each);
        if (!edit)
            return describe(edit.error());
        TableDocument changed = table;
        EXPECT_TRUE(changed.apply(*edit));
        return changed.text();
    };
    EXPECT_EQ(after(deed(DeedKind::Row, "micro-batches 4")), table.text() + "micro-batches 4\n");
    EXPECT_EQ(after(deed(DeedKind::Replace, "schedule", "schedule 1f1b")),
        "# kept\nmesh pp=4   # four\nschedule 1f1b\nsplit all : batch by 2\nsplit all : batch by 20\n");
    EXPECT_EQ(after(deed(DeedKind::Remove, "split all : batch by 2")),
        "# kept\nmesh pp=4   # four\nschedule gpipe\nsplit all : batch by 20\n");
    EXPECT_EQ(after(deed(DeedKind::Remove, "split all :")),
        "lesson.md:7: 2 rows begin \"split all :\" (write more of the row)");
    EXPECT_TRUE(
        after(deed(DeedKind::Remove, "zero1"))
            .starts_with("lesson.md:7: there is no row that begins \"zero1\" (there are: mesh pp=4; "));
    EXPECT_EQ(after(deed(DeedKind::Gallery, "gpipe")), "lesson.md:7: this is about no row");
}

TEST(LessonDeeds, ChangeDesignsOneAfterAnother)
{
    const Lesson lesson = lessonFromText("mine", lessonText());
    auto request = beginningOf(lesson, 2);
    ASSERT_TRUE(request) << describe(request.error());
    EXPECT_NE(request->table.text().find("schedule 1f1b"), std::string::npos)
        << "the solution of the step before";
    EXPECT_TRUE(request->gallery.empty());
    const auto other = afterDeeds(*request,
        {{.kind = DeedKind::Cluster, .what = "dgx-h100"}, {.kind = DeedKind::Devices, .devices = 2},
            {.kind = DeedKind::Gallery, .what = "data-parallel"}, {.kind = DeedKind::Search}});
    ASSERT_TRUE(other) << describe(other.error());
    EXPECT_EQ(other->target.cluster, "dgx-h100");
    EXPECT_EQ(other->target.deviceCount, 2);
    EXPECT_EQ(other->table.text().find("schedule"), std::string::npos);
    EXPECT_TRUE(other->search);
    EXPECT_EQ(beginningOf(lessonFromText("none", "# a\n"), 0).error().code, ErrorCode::NotFound);
    EXPECT_EQ(requestOf(lesson, {.model = "a.onnx", .cluster = "cpu"}).error().code, ErrorCode::InvalidInput);
}

} // namespace
} // namespace planloom
