#include "widgets/lesson/lesson_words.h"

#include "widgets/lesson/lesson_work.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(LessonWords, MarkupBecomesRichText)
{
    EXPECT_EQ(richTextOf("a **strong** and *soft* `x < y`"),
        "a <b>strong</b> and <i>soft</i> <code>x &lt; y</code>");
    EXPECT_EQ(richTextOf("the [bubble](glossary:bubble) grows"),
        "the <a href=\"glossary:bubble\">bubble</a> grows");
}

/// A lesson opens nothing but the glossary, and no text becomes an element that it is not.
TEST(LessonWords, StrangersTextsStayTexts)
{
    EXPECT_EQ(richTextOf("<script>1</script> & \"x\""), "&lt;script&gt;1&lt;/script&gt; &amp; &quot;x&quot;");
    EXPECT_EQ(richTextOf("[here](file:///etc/passwd)"), "here (file:///etc/passwd)");
    EXPECT_EQ(richTextOf("[x](glossary:\"><b>)"), "<a href=\"glossary:&quot;&gt;&lt;b&gt;\">x</a>");
    EXPECT_EQ(richTextOf("**<i>**"), "<b>&lt;i&gt;</b>");
}

TEST(LessonWords, MarksThatMarkNothingAreLetters)
{
    for (const char *text : {"2 * 3 * 4", "a ** b", "`", "**", "*", "[x] (y)", "[x](", "](", "a * b *"})
        EXPECT_EQ(richTextOf(text), QString::fromUtf8(text)) << text;
}

TEST(LessonNumbers, AreTakenInTheUnitOfTheAnswerOrInTheirOwn)
{
    const FigureValue time{.unit = FigureUnit::Time, .number = 41.3e6};
    EXPECT_EQ(unitOfAnswer(time), "ms");
    EXPECT_NEAR(typedNumber("41", time).value_or(0), 41e6, 1);
    EXPECT_NEAR(typedNumber(" 0.041 s ", time).value_or(0), 41e6, 1);
    EXPECT_NEAR(typedNumber("41,5", time).value_or(0), 41.5e6, 1);
    EXPECT_FALSE(typedNumber("12 GiB", time)) << "a size is no time";
    for (const char *text : {"", "ms", "forty", "{step}", "step", "41 ms ms", "1e"})
        EXPECT_FALSE(typedNumber(QString::fromUtf8(text), time)) << text;
    const FigureValue share{.unit = FigureUnit::Share, .number = 0.34};
    EXPECT_EQ(unitOfAnswer(share), "%");
    EXPECT_NEAR(typedNumber("34", share).value_or(0), 0.34, 1e-9);
    EXPECT_NEAR(typedNumber("34 %", share).value_or(0), 0.34, 1e-9);
    const FigureValue ratio{.unit = FigureUnit::Number, .number = 0.08, .asPercent = true};
    EXPECT_EQ(unitOfAnswer(ratio), "%");
    EXPECT_NEAR(typedNumber("8", ratio).value_or(0), 0.08, 1e-9);
    EXPECT_NEAR(typedNumber("8%", ratio).value_or(0), 0.08, 1e-9);
    EXPECT_FALSE(typedNumber("8%", time)) << "a share is no time";
    const FigureValue count{.unit = FigureUnit::Count, .number = 4};
    EXPECT_EQ(unitOfAnswer(count), "");
    EXPECT_EQ(typedNumber("4", count), 4);
}

} // namespace
} // namespace planloom
