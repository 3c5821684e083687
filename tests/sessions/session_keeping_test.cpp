// What keeps a session whole whatever is written to it: the root as a step, amended steps, writing all of it
// anew, and telling a wrong write from a bad disk.

#include "tests/sessions/session_fixture.h"

#include <filesystem>

namespace planloom {
namespace {

using SessionKeepingTest = SessionFixture;

TEST_F(SessionKeepingTest, TheRootIsAStepLikeAnyOther)
{
    SessionContents contents;
    contents.history = History({TableDocument("mesh dp=2\n"), {{"devices", "2"}}});
    RandomEditor editor(9);
    step(contents.history, editor);
    History &history = contents.history;
    {
        auto store = SessionStore::create(path, contents);
        ASSERT_TRUE(store);
        history.undo();
        ASSERT_TRUE(store->setPosition(history.current(), history.branches(), history.branch()));
        EXPECT_EQ(readSummary(path)->stepSeconds, 0);
        history.setFigures(kRootStep, {0.1, std::int64_t{5} << 40, true});
        const auto kept = store->setFigures(kRootStep, *history.figuresOf(kRootStep));
        ASSERT_TRUE(kept) << describe(kept.error());
        ASSERT_TRUE(store->setThumbnail(kRootStep, "picture"));
        ASSERT_TRUE(store->cachePlan(kRootStep, "{}"));
        EXPECT_EQ(store->loadPlan(kRootStep).value_or("?"), "{}");
        const auto run = store->addRun({0, kRootStep, 1, "a run", "done", "{}", {}});
        ASSERT_TRUE(run);
        contents.runs = {{*run, kRootStep, 1, "a run", "done", "{}", {}}};
        EXPECT_EQ(readSummary(path)->stepSeconds, 0.1);
        EXPECT_EQ(readSummary(path)->thumbnail, "picture");
        step(history, editor);
        const StepId second = history.current();
        ASSERT_TRUE(store->addStep(*history.find(second), second, history.branches(), history.branch()));
        EXPECT_EQ(history.branches().size(), 2U);
        EXPECT_EQ(readSummary(path)->stepSeconds, 0); // not planned yet
        EXPECT_EQ(readSummary(path)->thumbnail, "");
    }
    contents.thumbnail = "picture";
    contents.thumbnailStep = kRootStep;
    contents.model.sha256 = sha256("");
    expectStored(contents);
}

TEST_F(SessionKeepingTest, AnAmendedStepKeepsNothingOfWhatItWas)
{
    SessionContents contents = sample();
    contents.history.setFigures(contents.history.current(), {0.25, 1, false});
    auto store = SessionStore::create(path, contents);
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->cachePlan(*contents.thumbnailStep, "{}"));
    EXPECT_EQ(readSummary(path)->thumbnail, contents.thumbnail);
    HistoryStep amended = *contents.history.find(contents.history.current());
    amended.words = "amended";
    amended.figures.reset();
    ASSERT_TRUE(store->replaceStep(amended));
    EXPECT_EQ(readSummary(path)->thumbnail, "");
    EXPECT_EQ(readSummary(path)->stepSeconds, 0);
    EXPECT_EQ(store->loadPlan(amended.id).value_or("?"), "");
}

TEST_F(SessionKeepingTest, RewritingBringsBackWhatTheFileLacks)
{
    SessionContents contents = sample();
    auto store = SessionStore::create(path, contents);
    ASSERT_TRUE(store);
    const auto run = store->addRun({0, 2, 1, "measured", "done", "{}", "[1]"});
    ASSERT_TRUE(run);
    contents.runs.push_back({*run, 2, 1, "measured", "done", "{}", {}});
    sql("DELETE FROM step WHERE id = 3; DELETE FROM branch; INSERT INTO run VALUES (99, 0, 0, '', '', '')");
    const HistoryStep *lost = contents.history.find(3);
    EXPECT_EQ(store->setFigures(3, {}).error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(store->replaceStep(*lost).error().code, ErrorCode::InvalidInput);
    RandomEditor editor(5);
    step(contents.history, editor);
    contents.model = {"zoo:mlp?layers=3", {}, sha256(""), {}};
    const auto rewritten = store->rewrite(contents);
    ASSERT_TRUE(rewritten) << describe(rewritten.error());
    EXPECT_EQ(store->loadRunTimeline(*run).value_or("?"), "[1]");
    store = SessionStore::create(folder / "other.planloom", {}); // lets go of the file
    expectStored(contents);
}

TEST_F(SessionKeepingTest, WhatIsWrongWithAWriteIsToldFromWhatIsWrongWithTheDisk)
{
    auto store = SessionStore::create(path, sample());
    ASSERT_TRUE(store);
    sql("DROP TABLE thumbnail"); // stands for any mistake in a statement
    EXPECT_EQ(store->setThumbnail(kRootStep, "x").error().code, ErrorCode::Internal);
    EXPECT_EQ(store->setNames({{"x", 99}}).error().code, ErrorCode::InvalidInput);
    std::filesystem::rename(path, folder / "aside");
    EXPECT_EQ(store->setView({}).error().code, ErrorCode::Io);
    std::filesystem::rename(folder / "aside", path);
    EXPECT_TRUE(store->setView({})); // the same write, later
}

} // namespace
} // namespace planloom
