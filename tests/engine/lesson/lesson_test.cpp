#include "engine/lesson/lesson.h"

#include "planloom_paths.h"
#include "tests/temporary_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace planloom {
namespace {

const std::string kStart = R"(# Pipelines

```lesson
order: 5
minutes: 8
idea: A pipeline trades waiting for communication.
```

```open
model: zoo:gpt?layers=4
cluster: dgx-a100
devices: 4
gallery: gpipe
```
)";
constexpr std::int32_t kStartLines = 14;

std::string problemsOf(const Lesson &lesson)
{
    std::string text;
    for (const Error &problem : lesson.problems)
        text += describe(problem) + "\n";
    return text;
}

/// The problems of a lesson with `text` behind its start; the line of `text` that each is in, counted from 1.
std::string problemsWith(const std::string &text)
{
    const Lesson lesson = lessonFromText("mine", kStart + text);
    std::string result;
    for (const Error &problem : lesson.problems) {
        const std::string start = "lesson.md:";
        EXPECT_TRUE(problem.where.starts_with(start)) << problem.where;
        EXPECT_EQ(problem.code, ErrorCode::InvalidInput);
        Error shown = problem;
        shown.where = std::to_string(std::stoi(problem.where.substr(start.size())) - kStartLines);
        result += describe(shown) + "\n";
    }
    return result;
}

TEST(Lesson, IsReadWhole)
{
    const Lesson lesson = lessonFromText("mine", kStart + R"(
Each device computes for {compute} of
a step of {step in one-by-one}.
- An item with `code`
  that goes on.
1. Another {bubble} \{so\}.

```plan one-by-one
gallery: gpipe:micro-batches=1
```

## Less of it

```show
canvas: timeline
colour: micro-batch
dock: memory
select: layer:0 | layer:1
moment: peak of device 1
```

```point
at: backward 2 of stage 1
words: It waits for {waits of device 3}.
```

```choice
Which is longer?
- The one | No: {step}.
+ The other
# a remark
? parts of (layer:0 | layer:1) > 1 | The \| third {parts of (all | all)} | Why
  not?
```

```number
question: How long?
answer: step
tolerance: 1 ms
right: Yes.
wrong: No, {step}.
```

````task
goal: Bring it below {0.8 * peak}.
- peak < 0.8 * peak in start
- stages = 4 | It is to stay a pipeline of {stages}.
````

```hint
A backward pass sets free
what its forward pass kept.
```

```solution
say: One forward, one backward.
replace: schedule gpipe -> schedule 1f1b
search:
devices: 8
```

```wrong
says: no slower
gallery: gpipe
```

```wrong
says: stages
remove: schedule
row: schedule 1f1b
```

```claim
step in one-by-one > step
step in goal < step
```

## Rows

```open
rows:
# a note
mesh pp=4
schedule 1f1b
```
)");
    ASSERT_EQ(problemsOf(lesson), "");
    EXPECT_EQ(lesson.title, "Pipelines");
    EXPECT_EQ(lesson.idea, "A pipeline trades waiting for communication.");
    EXPECT_EQ(std::pair(lesson.order, lesson.minutes), std::pair(5, 8));
    ASSERT_EQ(lesson.steps.size(), 3U);
    ASSERT_EQ(lesson.designs.size(), 2U);
    EXPECT_EQ(lesson.designs[1].rows, "# a note\nmesh pp=4\nschedule 1f1b\n");
    EXPECT_EQ(lesson.designs[1].gallery, "") << "rows take its place";
    EXPECT_EQ(lesson.designs[1].model, "zoo:gpt?layers=4");
    EXPECT_EQ(lesson.designs[1].devices, 4);
    ASSERT_EQ(lesson.plans.size(), 1U);
    EXPECT_EQ(filledUp(lesson.plans[0].design, lesson.designs[0]).gallery, "gpipe:micro-batches=1");

    ASSERT_EQ(lesson.steps[0].parts.size(), 3U);
    const auto &paragraph = std::get<Prose>(lesson.steps[0].parts[0]);
    ASSERT_EQ(paragraph.text.pieces.size(), 5U);
    EXPECT_EQ(std::get<std::string>(paragraph.text.pieces[2]), " of a step of ");
    EXPECT_EQ(std::get<Expression>(paragraph.text.pieces[3]).text(), "step in one-by-one");
    const auto &item = std::get<Prose>(lesson.steps[0].parts[1]);
    EXPECT_EQ(item.kind, ProseKind::Item);
    EXPECT_EQ(std::get<std::string>(item.text.pieces[0]), "An item with `code` that goes on.");
    EXPECT_EQ(std::get<std::string>(std::get<Prose>(lesson.steps[0].parts[2]).text.pieces[2]), " {so}.");

    const LessonStep &step = lesson.steps[1];
    EXPECT_EQ(step.title, "Less of it");
    EXPECT_EQ(std::pair(step.open, step.opens), std::pair(0, false));
    EXPECT_EQ(step.show->select, "layer:0 | layer:1");
    EXPECT_EQ(step.points[0].kind, PlaceKind::Block);
    EXPECT_EQ(std::tuple(step.points[0].backward, step.points[0].microBatch, step.points[0].stage),
        std::tuple(true, 2, 1));
    const auto &choice = std::get<LessonChoice>(std::get<LessonQuestion>(step.parts[0]));
    ASSERT_EQ(choice.answers.size(), 3U);
    EXPECT_FALSE(choice.answers[0].right);
    EXPECT_TRUE(choice.answers[1].right);
    ASSERT_TRUE(choice.answers[2].condition);
    EXPECT_EQ(std::get<std::string>(choice.answers[2].text.pieces[0]), "The | third ");
    EXPECT_EQ(std::get<std::string>(choice.answers[2].reply.pieces[0]), "Why not?");
    EXPECT_FALSE(std::get<LessonNumber>(std::get<LessonQuestion>(step.parts[1])).relative);
    ASSERT_TRUE(step.task);
    ASSERT_EQ(step.task->needs.size(), 2U);
    EXPECT_FALSE(step.task->needs[0].otherwise);
    EXPECT_TRUE(step.task->needs[1].otherwise);
    EXPECT_EQ(step.task->hints.size(), 1U);
    ASSERT_EQ(step.task->solution.size(), 4U);
    EXPECT_EQ(step.task->solution[1].by, "schedule 1f1b");
    EXPECT_EQ(step.task->solution[2].kind, DeedKind::Search);
    ASSERT_EQ(step.task->wrong.size(), 2U);
    EXPECT_TRUE(step.task->wrong[0].design);
    EXPECT_EQ(step.task->wrong[1].deeds.size(), 2U);
    EXPECT_EQ(step.claims.size(), 2U);
    EXPECT_TRUE(lesson.steps[2].opens);
}

TEST(Lesson, SaysWhatIsWrongAndWhere)
{
    const std::pair<const char *, const char *> cases[]{
        {"```opne\n```\n", "1: expected the name of a block, found \"opne\" (did you mean 'open'?)"},
        {"```\n```\n", "1: expected the name of a block, found \"\""},
        {"```show now\n```\n", "1: expected nothing behind \"show\", found \"now\""},
        {"```show\ncanvas: graph\n",
            "1: the block \"show\" is not closed (close it with a line of 3 backticks)"},
        {"```show\ncanvas: grahp\n```\n", "2: expected a canvas, found \"grahp\" (did you mean 'graph'?)"},
        {"```show\ncanvs: graph\n```\n",
            "2: expected a line that begins with a key, found \"canvs\" (did you mean 'canvas'?)"},
        {"```show\ncanvas: graph\ncanvas: both\n```\n", "3: \"canvas\" is said twice"},
        {"```show\ncanvas:\n```\n", "2: nothing stands behind \"canvas\""},
        {"```show\nmoment: 1.5\n```\n", "2: expected a share of the step from 0 to 1"},
        {"```show\nmoment: nan\n```\n", "2: expected a share of the step from 0 to 1"},
        {"```show\nselect: layer:(\n```\n", "2: "},
        {"```show\n```\n```show\n```\n", "3: there is a second block \"show\" in this step"},
        {"```open\n```\n", "1: there is a second block \"open\" in this step"},
        {"```lesson\n```\n", "1: there is a second block \"lesson\" in this lesson"},
        {"## a\n```lesson\n```\n", "2: the block \"lesson\" stands behind a heading"},
        {"```hint\nx\n```\n", "1: the block \"hint\" stands behind no task"},
        {"```solution\nrow: x\n```\n", "1: the block \"solution\" stands behind no task"},
        {"```plan start\n```\n", "1: expected a plan's name of letters, digits and -, found \"start\""},
        {"```plan a\n```\n```plan a\n```\n", "3: there is a second plan \"a\""},
        {"```plan a\ndevices: many\n```\n",
            "2: expected a number of devices from 1 to 16384, found \"many\""},
        {"```plan a\ndevices: 99999999999999\n```\n", "2: expected a number of devices from 1 to 16384"},
        {"```plan a\nmodel: /etc/passwd\n```\n", "2: \"/etc/passwd\" is not inside the lesson's folder"},
        {"```plan a\nmodel: a/../../b.onnx\n```\n",
            "2: \"a/../../b.onnx\" is not inside the lesson's folder"},
        {"```plan a\ncluster: /etc/passwd\n```\n", "2: expected the profile of a cluster"},
        {"```plan a\ncluster: dgx-h10\n```\n",
            "2: expected the profile of a cluster, found \"dgx-h10\" (did you mean 'dgx-h100'?)"},
        {"```plan a\ncluster: dgx-a100:x\n```\n", "2: expected a number of devices"},
        {"```plan a\nframework: megatro\n```\n",
            "2: expected a framework, found \"megatro\" (did you mean 'megatron'?)"},
        {"```plan a\ngallery: gpip:pp=2\n```\n",
            "2: expected a plan of the gallery, found \"gpip\" (did you mean 'gpipe'?)"},
        {"```plan a\nsearch: maybe\n```\n", "2: expected yes or no"},
        {"```plan a\nrows:\nmesh pp=4\nshcedule x\n```\n", "4: "},
        {"```choice\n- a\n```\n", "1: a choice begins with its question"},
        {"```choice\nQ?\n+ a\n```\n", "1: a choice has two answers at least"},
        {"```choice\nQ?\n- a\n- b\n```\n", "1: no answer of this choice is right"},
        {"```choice\nQ?\na\n+ b\n```\n", "3: expected an answer"},
        {"```choice\nQ?\n? stepp > 1 ms | a\n+ b\n```\n", "3: in \"stepp > 1 ms\": "},
        {"```choice\nQ?\n? verified\n+ b\n```\n", "3: this answer has no text"},
        {"```number\nquestion: a\n```\n", "1: the block \"number\" lacks \"answer\""},
        {"```number\nquestion: a\nanswer: name\n```\n", "3: the answer is no number"},
        {"```number\nquestion: a\nanswer: step\ntolerance: 5\n```\n", "4: the tolerance lacks a unit"},
        {"```number\nquestion: a\nanswer: step\ntolerance: 5 GiB\n```\n",
            "4: the tolerance has another unit"},
        {"```task\ngoal: x\n```\n", "1: this task asks for nothing"},
        {"```task\n- step < 1 ms\n```\n", "1: the block \"task\" lacks \"goal\""},
        {"```task\ngoal: x\n- step < 1 ms in\n```\n", "3: in \"step < 1 ms in\": "},
        {"```task\ngoal: x\n- fits\n```\n```solution\nreplace: a\n```\n", "6: expected \"ROW -> ROW\""},
        {"```task\ngoal: x\n- fits\n```\n```solution\nrow: splt all\n```\n", "6: "},
        {"```task\ngoal: x\n- fits\n```\n```wrong\ngallery: gpipe\n```\n",
            "5: the block \"wrong\" lacks \"says\""},
        {"```task\ngoal: x\n- fits\n```\n```wrong\nsays: y\nsay: z\nmodel: zoo:gpt\n```\n",
            "8: a wrong plan is rows, or the lines of a solution, not both"},
        {"```claim\n```\n", "1: this block claims nothing"},
        {"```claim\nstep in statr > step\n```\n",
            "2: expected the name of a plan, found \"statr\" (did you mean 'start'?)"},
        {"```point\nat: device x\nwords: y\n```\n", "2: expected the number of a device"},
        {"```point\nat: deivce 1\nwords: y\n```\n", "2: expected a place to point at"},
        {"```point\nat: forward 1\nwords: y\n```\n", "2: expected \"forward M of stage N\""},
        {"A {stepp} text.\n", "1: in {stepp}: expected a figure or a number, found \"stepp\""},
        {"A {step text.\n", "1: a brace opens a value and is not closed"},
        {"A {step in nowhere} text.\n", "1: expected the name of a plan, found \"nowhere\""},
        {"# Again\n", "1: the lesson has a second title"},
        {"### deep\n", "1: headings have one or two levels"},
        {"![a](/etc/passwd)\n", "1: \"/etc/passwd\" is not inside the lesson's folder"},
        {"![a\n", "1: expected a picture in a line of its own"},
        {"bad \xff byte\n", "1: this line has bytes that are no text"},
    };
    for (const auto &[text, expected] : cases) {
        const std::string problems = problemsWith(text);
        EXPECT_TRUE(problems.starts_with(expected)) << text << "gives\n" << problems;
        EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 1) << text << "gives\n" << problems;
    }
    EXPECT_TRUE(
        problemsWith(std::string("a\0b\n", 4)).starts_with("1: this line has bytes that are no text"));
    EXPECT_TRUE(
        problemsOf(lessonFromText("mine", "text\n")).starts_with("lesson.md:1: the lesson has no title"));
    const std::string none =
        problemsOf(lessonFromText("mine", "# a\n```plan b\n```\n```open\ncluster: cpu\n```\n"));
    EXPECT_EQ(none,
        "lesson.md:2: a plan needs an \"open\" before it (move it behind one)\n"
        "lesson.md:4: the first block \"open\" lacks \"model\" (add a line \"model: ...\")\n");
}

TEST(Lesson, OpensWithoutTheBlocksThatAreWrong)
{
    const Lesson lesson = lessonFromText("mine", kStart + R"(
```show
canvs: graph
```

Text with {stepp}.

```claim
step > 1 ns

## A step

```point
at: device 0
words: Here.
```
)");
    EXPECT_EQ(lesson.problems.size(), 3U) << problemsOf(lesson);
    EXPECT_FALSE(lesson.steps[0].show);
    ASSERT_EQ(lesson.steps[0].parts.size(), 1U);
    EXPECT_EQ(std::get<std::string>(std::get<Prose>(lesson.steps[0].parts[0]).text.pieces[0]),
        "Text with {stepp}.");
    ASSERT_EQ(lesson.steps.size(), 2U) << "an open block ends before the next step";
    EXPECT_EQ(lesson.steps[1].points.size(), 1U);
}

TEST(Lesson, StaysInsideItsFolder)
{
    const TemporaryFolder folder;
    const std::filesystem::path mine = folder.path() / "mine";
    std::filesystem::create_directory(mine);
    std::ofstream(folder.path() / "secret.png") << "x";
    std::ofstream(mine / "a.png") << "x";
    std::filesystem::create_symlink(folder.path() / "secret.png", mine / "link.png");
    std::filesystem::create_symlink(mine / "a.png", mine / "inner.png");
    EXPECT_TRUE(fileOf(mine, "a.png"));
    EXPECT_TRUE(fileOf(mine, "inner.png"));
    for (const char *name : {"link.png", "../secret.png", "/etc/passwd", "", "a/../../secret.png"}) {
        const auto file = fileOf(mine, name);
        ASSERT_FALSE(file) << name;
        EXPECT_EQ(file.error().code, ErrorCode::InvalidInput) << name;
    }
    EXPECT_EQ(fileOf(mine, "b.png").error().code, ErrorCode::NotFound);

    std::ofstream(mine / kLessonFile) << "# Mine\n![a](a.png)\n\n![b](link.png)\n\n![c](c.png)\n";
    const auto lesson = readLesson(mine);
    ASSERT_TRUE(lesson) << describe(lesson.error());
    EXPECT_EQ(lesson->name, "mine");
    EXPECT_EQ(lesson->steps[0].parts.size(), 1U);
    EXPECT_EQ(problemsOf(*lesson),
        "lesson.md:4: \"link.png\" is not inside the lesson's folder (copy it there, and name it without a "
        "way "
        "out of the folder)\nlesson.md:6: there is no file \"c.png\" in the lesson's folder\n");
    EXPECT_EQ(readLesson(folder.path() / "none").error().code, ErrorCode::NotFound);
    std::ofstream(mine / kLessonFile) << std::string(kMostLessonBytes + 1, 'a');
    EXPECT_EQ(readLesson(mine).error().code, ErrorCode::ResourceLimit);
}

TEST(Lesson, OfBytesByChanceIsReadInReasonableTime)
{
    std::string many;
    for (int i = 0; i < 40000; ++i)
        many += "```claim\n## x\n{((((\n";
    many.resize(kMostLessonBytes, '`');
    const Lesson lesson = lessonFromText("mine", many);
    EXPECT_EQ(lesson.problems.size(), 100U) << "and no more";
    EXPECT_GT(lesson.steps.size(), 10000U);
    EXPECT_FALSE(lessonFromText("mine", std::string(kMostLessonBytes, '{')).problems.empty());
    EXPECT_FALSE(lessonFromText("mine", std::string(kMostLessonBytes + 1, 'a')).problems.empty());
}

TEST(Lesson, ThatComesWithPlanloomHasNoProblems)
{
    std::int32_t last = 0;
    for (const Lesson &lesson : bundledLessons()) {
        EXPECT_EQ(problemsOf(lesson), "") << lesson.name;
        EXPECT_GE(lesson.order, last);
        last = lesson.order;
    }
    std::size_t folders = 0;
    if (const std::filesystem::path all = PLANLOOM_SOURCE_DIR "/resources/lessons";
        std::filesystem::exists(all))
        for (const auto &each : std::filesystem::directory_iterator(all))
            folders += std::filesystem::exists(each.path() / kLessonFile) ? 1 : 0;
    EXPECT_EQ(bundledLessons().size(), folders);
}

} // namespace
} // namespace planloom
