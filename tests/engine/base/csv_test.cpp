#include "engine/base/csv.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Csv, CellsAreQuotedWhereTheyMust)
{
    EXPECT_EQ(csvCell("plain"), "plain");
    EXPECT_EQ(csvCell(""), "");
    EXPECT_EQ(csvCell("a,b"), "\"a,b\"");
    EXPECT_EQ(csvCell("say \"so\""), "\"say \"\"so\"\"\"");
    EXPECT_EQ(csvCell("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, LinesEndAsTheStandardSays)
{
    EXPECT_EQ(csvLine({"a\"b", "c", ""}), "\"a\"\"b\",c,\r\n");
    EXPECT_EQ(csvLine({}), "\r\n");
}

} // namespace
} // namespace planloom
