#include "engine/report/html_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <random>

namespace planloom {
namespace {

TEST(HtmlText, LeavesNoMarkupOfWhatStrangersWrote)
{
    EXPECT_EQ(htmlText("</script><b a=\"1\" c='2'>&amp;"),
        "&lt;/script&gt;&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
    EXPECT_EQ(htmlText("caf\xC3\xA9 \xE2\x86\x92"), "caf\xC3\xA9 \xE2\x86\x92");
}

TEST(HtmlText, ReplacesWhatIsNoText)
{
    const std::string replaced = "\xEF\xBF\xBD";
    EXPECT_EQ(htmlText(std::string_view("a\0b", 3)), "a" + replaced + "b");
    EXPECT_EQ(htmlText("\x1b[31m"), replaced + "[31m");
    EXPECT_EQ(htmlText("\xC0\xBC"), replaced + replaced); // '<' in two bytes
    EXPECT_EQ(htmlText("\xE0\x80\xBC"), replaced + replaced + replaced);
    EXPECT_EQ(htmlText("\xED\xA0\x80"), replaced + replaced + replaced); // half of a surrogate pair
    EXPECT_EQ(htmlText("\xF4\x90\x80\x80"), replaced + replaced + replaced + replaced);
    EXPECT_EQ(htmlText("a\xE2\x86"), "a" + replaced + replaced); // cut off
}

TEST(HtmlText, OfAnyBytesHasNoTagsAndNoQuotes)
{
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
        std::string bytes(random() % 40, '\0');
        for (char &c : bytes)
            c = static_cast<char>(
                random() % 4 == 0 ? "<>&\"'"[random() % 5] : static_cast<int>(random() % 256));
        const std::string html = htmlText(bytes);
        EXPECT_EQ(html.find_first_of("<>\"'"), std::string::npos);
        EXPECT_EQ(htmlText(html).find("\xEF\xBF\xBD") == std::string::npos,
            html.find("\xEF\xBF\xBD") == std::string::npos); // what it makes is text
    }
}

TEST(ScriptText, SaysTheSameWithoutEndingItsElement)
{
    const nlohmann::json object{{"</script><!--", "<script>&\"\\"}, {"n", {1, 2, 3}}};
    const std::string text = scriptText(object.dump());
    EXPECT_EQ(text.find_first_of("<>&"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(text), object);
}

TEST(HtmlTable, AlignsNumbersAndEscapesHeadings)
{
    const std::string html = htmlTable({{"a<b"}, {"n", true}}, {{"<i>x</i>", "1"}});
    EXPECT_NE(html.find("<th>a&lt;b</th><th class=\"n\">n</th>"), std::string::npos) << html;
    EXPECT_NE(html.find("<tr><td><i>x</i></td><td class=\"n\">1</td></tr>"), std::string::npos) << html;
}

} // namespace
} // namespace planloom
