#include "engine/base/place.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

Place read(const std::string &where)
{
    Error error;
    error.where = where;
    return placeOf(error);
}

TEST(Place, IsReadFromAnError)
{
    EXPECT_EQ(read(""), Place{});
    EXPECT_EQ(read("line:12:7"), (Place{TextPlace{12, 7}}));
    EXPECT_EQ(read("line:12"), (Place{TextPlace{12, 0}}));
    EXPECT_EQ(read("row:3/rule"), (Place{RowPlace{{3}, "rule"}}));
    EXPECT_EQ(read("row:0"), (Place{RowPlace{{0}, {}}}));
    EXPECT_EQ(read("operator:h.0.mlp"), (Place{OperatorPlace{"h.0.mlp", {}}}));
    EXPECT_EQ(read("operator:h.0/fc/k+"), (Place{OperatorPlace{"h.0/fc", "k+"}}));
    EXPECT_EQ(read("--devices"), (Place{NamedPlace{"--devices"}}));
    EXPECT_EQ(read("rows.txt:line:3:7"), (Place{NamedPlace{"rows.txt:line:3:7"}}));
}

TEST(Place, IsWrittenAsItWasRead)
{
    for (const char *where : {"", "line:1:1", "line:4", "line:", "line:x", "line:3:", "line:3:0", "line:03:7",
             "line:3:7x", "row:5", "row:5/selector", "row:-1", "row:5/", "row:5x", "row:99999999999",
             "operator:", "operator:a", "operator:a/k", "operator:a/", "operator:/", "operator:/k",
             "model.onnx@1024", "memory"})
        EXPECT_EQ(toString(read(where)), where);
}

} // namespace
} // namespace planloom
