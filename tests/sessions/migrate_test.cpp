#include "sessions/migrate.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <string>

namespace planloom {
namespace {

const std::vector<Migration> kSteps{
    {0, "CREATE TABLE note (text TEXT NOT NULL)"},
    {1, "ALTER TABLE note ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody'; CREATE TABLE tag (name TEXT)"},
    {2, "INSERT INTO tag SELECT text FROM note"},
};

SQLite::Database memory()
{
    return SQLite::Database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
}

TEST(Migrate, BringsAnEmptyDatabaseToTheNewestVersionOnce)
{
    auto database = memory();
    const auto first = migrate(database, kSteps);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(*first, 3);
    EXPECT_EQ(*schemaVersion(database), 3);
    const auto second = migrate(database, kSteps);
    ASSERT_TRUE(second);
    EXPECT_EQ(*second, 0);
}

TEST(Migrate, KeepsTheDataOfAnOldVersion)
{
    auto database = memory();
    ASSERT_TRUE(migrate(database, {kSteps.begin(), kSteps.begin() + 1}));
    database.exec("INSERT INTO note VALUES ('first')");
    const auto ran = migrate(database, kSteps);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(*ran, 2);
    EXPECT_EQ(database.execAndGet("SELECT author FROM note WHERE text = 'first'").getString(), "nobody");
    EXPECT_EQ(database.execAndGet("SELECT name FROM tag").getString(), "first");
}

TEST(Migrate, LeavesAnOldDatabaseAsItWasIfAStepFails)
{
    auto database = memory();
    ASSERT_TRUE(migrate(database, {kSteps.begin(), kSteps.begin() + 1}));
    database.exec("INSERT INTO note VALUES ('first')");
    std::vector<Migration> steps = kSteps;
    steps[2].sql = "INSERT INTO no_such_table VALUES (1)";
    const auto ran = migrate(database, steps);
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(*schemaVersion(database), 1);
    EXPECT_FALSE(database.tableExists("tag"));
    EXPECT_EQ(database.execAndGet("SELECT count(*) FROM pragma_table_info('note')").getInt(), 1);
}

TEST(Migrate, RefusesVersionsOfTheFutureAndImpossibleOnes)
{
    auto database = memory();
    database.exec("PRAGMA user_version = 4");
    const auto newer = migrate(database, kSteps);
    ASSERT_FALSE(newer);
    EXPECT_EQ(newer.error().code, ErrorCode::NotSupported);
    EXPECT_NE(newer.error().message.find("version 4"), std::string::npos);
    database.exec("PRAGMA user_version = -1");
    const auto negative = migrate(database, kSteps);
    ASSERT_FALSE(negative);
    EXPECT_EQ(negative.error().code, ErrorCode::InvalidInput);
}

} // namespace
} // namespace planloom
