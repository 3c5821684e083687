#include "planloom_paths.h"
#include "sessions/session_store.h"

#include "sessions/session_schema.h"

#include "tests/sessions/session_fixture.h"

#include <algorithm>
#include <random>
#include <set>

namespace planloom {
namespace {

class SessionDamageTest : public SessionFixture
{
protected:
    void SetUp() override
    {
        SessionFixture::SetUp();
        contents = sample(300); // has whole states behind the root
        ASSERT_TRUE(SessionStore::create(path, contents));
    }

    SessionContents contents;
};

TEST_F(SessionDamageTest, WhateverByteIsWrongWhatIsReadIsTrueOrItsLossIsSaid)
{
    const std::string good = bytesOf(path);
    std::set<std::string> wordsOfSteps;
    for (const HistoryStep &step : contents.history.steps())
        wordsOfSteps.insert(step.words);
    std::mt19937 random(7);
    int sound = 0;
    int readOnly = 0;
    int refused = 0;
    std::size_t steps = 0;
    for (int trial = 0; trial < 150; ++trial) {
        SCOPED_TRACE(testing::Message() << "trial " << trial);
        std::string bad = good;
        if (trial % 5 == 0) {
            bad.resize(random() % bad.size());
        } else if (trial % 5 == 1) {
            const std::size_t begin = random() % bad.size();
            std::fill(bad.begin() + static_cast<std::ptrdiff_t>(begin),
                bad.begin() + static_cast<std::ptrdiff_t>(std::min(bad.size(), begin + 6000)), '\0');
        } else {
            for (int change = 0; change < 1 + trial % 20; ++change)
                bad[random() % bad.size()] = static_cast<char>(random());
        }
        writeBytes(path, bad);
        std::filesystem::remove(path.string() + "-wal");
        std::filesystem::remove(path.string() + "-shm");
        const auto opened = SessionStore::open(path);
        if (!opened) {
            EXPECT_FALSE(opened.error().message.empty());
            EXPECT_EQ(bytesOf(path), bad);
            ++refused;
            continue;
        }
        const SessionContents &found = opened->contents;
        EXPECT_TRUE(found.model.content.empty() || found.model.sha256 == sha256(found.model.content));
        EXPECT_EQ(found.readOnly, opened->store.isReadOnly());
        if (found.readOnly) {
            EXPECT_FALSE(found.remark.empty());
            EXPECT_EQ(bytesOf(path), bad);
            EXPECT_FALSE(checkSession(path)->empty() && found.remark.find("damaged") != std::string::npos);
            ++readOnly;
            steps += found.history.steps().size();
        } else {
            // Nothing is missing: the history is guarded by checksums.
            EXPECT_EQ(found.history.steps().size(), contents.history.steps().size());
            EXPECT_EQ(found.history.root(), contents.history.root());
            EXPECT_EQ(found.history.state().table, contents.history.stateAt(found.history.current())->table);
            ++sound;
        }
        for (const HistoryStep &step : found.history.steps())
            EXPECT_EQ(wordsOfSteps.count(step.words), 1U) << step.words;
    }
    EXPECT_GT(readOnly, 30);
    EXPECT_GT(steps, static_cast<std::size_t>(readOnly) * 10); // much of it was read
    std::printf("%d sound, %d read-only with %zu steps, %d refused\n", sound, readOnly, steps, refused);
}

TEST_F(SessionDamageTest, GoesOnBehindAStepThatIsLost)
{
    sql("UPDATE step SET words = 'forged' WHERE id = 100");
    auto opened = SessionStore::open(path);
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_TRUE(opened->contents.readOnly);
    EXPECT_NE(opened->contents.remark.find("damaged"), std::string::npos);
    const History &found = opened->contents.history;
    // Steps 1 to 99, then from the whole state after 256 on; the branch from step 3 is whole.
    EXPECT_EQ(found.steps().size(), 99U + (300 - 255) + 2);
    EXPECT_EQ(found.state(), contents.history.state());
    ASSERT_TRUE(opened->contents.history.switchBranch(0));
    EXPECT_EQ(opened->contents.history.state().table, contents.history.stateAt(300)->table);
    EXPECT_EQ(opened->contents.history.state().values, contents.history.stateAt(300)->values);
    const auto problems = checkSession(path);
    ASSERT_TRUE(problems);
    EXPECT_FALSE(problems->empty());
}

TEST_F(SessionDamageTest, PlansAndRunsStayWithTheirStepsWhereIdsChange)
{
    {
        auto opened = SessionStore::open(path);
        ASSERT_TRUE(opened);
        ASSERT_TRUE(opened->store.cachePlan(50, "fifty"));
        ASSERT_TRUE(opened->store.cachePlan(301, "three hundred and one"));
        ASSERT_TRUE(opened->store.addRun({0, 301, 1, "run of 301", "done", "{}", "[]"}));
        ASSERT_TRUE(opened->store.addRun({0, 100, 1, "run of 100", "done", "{}", "[]"}));
    }
    sql("DELETE FROM step WHERE id = 100");
    const auto opened = SessionStore::open(path);
    ASSERT_TRUE(opened);
    const History &found = opened->contents.history;
    EXPECT_EQ(opened->store.loadPlan(50).value_or("?"), "fifty");
    StepId moved = 0;
    for (const HistoryStep &step : found.steps()) {
        if (step.words == "edit 301")
            moved = step.id;
    }
    ASSERT_NE(moved, 0);
    EXPECT_NE(moved, 301);
    EXPECT_EQ(opened->store.loadPlan(moved).value_or("?"), "three hundred and one");
    EXPECT_EQ(opened->store.loadPlan(301).value_or("?"), "");
    ASSERT_EQ(opened->contents.runs.size(), 4U);
    EXPECT_EQ(opened->contents.runs[2].step, moved);
    EXPECT_EQ(opened->contents.runs[3].step, 0);
}

TEST_F(SessionDamageTest, SchemasThatAreNotItsOwnAreOnlyRead)
{
    sql("CREATE TRIGGER bad AFTER INSERT ON view_state BEGIN DELETE FROM step; END");
    const std::string before = bytesOf(path);
    {
        auto opened = SessionStore::open(path);
        ASSERT_TRUE(opened) << describe(opened.error());
        EXPECT_TRUE(opened->contents.readOnly);
        expectSame(opened->contents.history, contents.history);
        EXPECT_FALSE(opened->store.setView({{"a", "b"}}));
    }
    EXPECT_EQ(bytesOf(path), before);
    // A view in the place of a table could compute for ever.
    sql("DROP TRIGGER bad; DROP TABLE run; CREATE VIEW run AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL "
        "SELECT id + 1 FROM n) "
        "SELECT id, id AS step, 0 AS created, '' AS title, '' AS state, '' AS details FROM n");
    const auto opened = SessionStore::open(path);
    ASSERT_TRUE(opened);
    EXPECT_TRUE(opened->contents.runs.empty());
    EXPECT_NE(opened->contents.remark.find("\"run\""), std::string::npos);
}

TEST_F(SessionDamageTest, AnOldVersionThatIsDamagedIsReadAndNotChanged)
{
    std::filesystem::remove(path);
    SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec(bytesOf(std::string(PLANLOOM_SOURCE_DIR) + "/tests/sessions/version1.sql"));
    sql("UPDATE model SET sha256 = 'wrong'");
    const std::string before = bytesOf(path);
    const auto opened = SessionStore::open(path);
    ASSERT_TRUE(opened) << describe(opened.error());
    EXPECT_TRUE(opened->contents.readOnly);
    EXPECT_NE(opened->contents.remark.find("do not match their digest"), std::string::npos)
        << opened->contents.remark;
    EXPECT_EQ(opened->contents.history.state().table.lineCount(), 6);
    EXPECT_EQ(bytesOf(path), before);
}

} // namespace
} // namespace planloom
