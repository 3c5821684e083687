#include "widgets/lesson/lesson_progress.h"

#include <gtest/gtest.h>

#include <string>

namespace planloom {
namespace {

TEST(LessonProgress, IsReadAsItWasWritten)
{
    LessonProgress progress;
    progress.lesson = "pipelines";
    progress.folder = "/a folder/with \"quotes\"";
    progress.cluster = "dgx-h100";
    progress.step = 3;
    progress.reached = 5;
    progress.open = 1;
    progress.begins = {{0, 0}, {3, 17}};
    progress.done = {1, 3};
    progress.hints = {{3, 2}};
    progress.answers = {{"0/1", "2"}, {"3/0", "41 ms"}};
    EXPECT_EQ(lessonProgressFromJson(toJson(progress)), progress);
    EXPECT_TRUE(progress.isSeen(3));
    EXPECT_FALSE(progress.isSeen(4)) << "it has begun nowhere";
}

/// Sessions come from strangers.
TEST(LessonProgress, OfOtherTextsNothingIsTaken)
{
    for (const char *text :
        {"", "[]", "{", "null", "7", "{\"lesson\": 3, \"step\": -1, \"begins\": 4, \"done\": {}}",
            "{\"step\": 1e300, \"hints\": {\"x\": 1, \"-2\": 3}, \"answers\": [1], \"done\": [-4, \"a\", "
            "99999999999]}"})
        EXPECT_EQ(lessonProgressFromJson(text), LessonProgress()) << text;
}

} // namespace
} // namespace planloom
