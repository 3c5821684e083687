#include "engine/base/place.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(TextPlaceOf, ReadsLineAndColumn)
{
    Error error;
    error.where = "line:12:7";
    EXPECT_EQ(textPlaceOf(error), (TextPlace {12, 7}));
    error.where = "row:3/rule";
    EXPECT_FALSE(textPlaceOf(error));
}

} // namespace
} // namespace planloom
