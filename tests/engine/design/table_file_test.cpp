#include "engine/design/models/table_file.h"

#include "engine/base/files.h"
#include "engine/table/table_json.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace planloom {
namespace {

std::string fileWith(const std::string &bytes)
{
    std::string path =
        testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".rows";
    EXPECT_TRUE(writeFile(path, bytes));
    return path;
}

TEST(TableFile, KeepsTextAsItIs)
{
    const std::string text = "# mine\r\n\n  mesh dp=2   # two\n";
    const auto table = readTableFile(fileWith(text));
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(table->text(), text);
}

TEST(TableFile, ReadsJson)
{
    const auto rows = parseTable("mesh dp=2\nsplit all : batch over dp  # a note\n");
    ASSERT_TRUE(rows);
    const auto table = readTableFile(fileWith("\n " + toJson(*rows).dump()));
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(table->table(), *rows);
}

TEST(TableFile, NamesTheFirstLineThatIsNoRow)
{
    const std::string path = fileWith("mesh dp=2\nsplit all batch\nnonsense\n");
    const auto table = readTableFile(path);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(table.error().where.rfind(path + ":line:2:", 0), 0u) << table.error().where;
    EXPECT_EQ(readTableFile("/no/such/file").error().code, ErrorCode::NotFound);
}

} // namespace
} // namespace planloom
