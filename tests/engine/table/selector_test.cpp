#include "engine/table/selector.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Selector, TextFormReadsBackAsTheSameExpression)
{
    RandomTable random(1);
    for (int i = 0; i < 3000; ++i) {
        const Selector selector = random.selector();
        const std::string text = toString(selector);
        const auto parsed = parseSelector(text);
        ASSERT_TRUE(parsed) << text << ": " << describe(parsed.error());
        EXPECT_EQ(*parsed, selector) << text;
    }
}

TEST(Selector, AndBindsCloserThanOr)
{
    const auto selector = parseSelector("name:a | kind:Linear & !layer:0-3 | set{x, \"y z\"}");
    ASSERT_TRUE(selector) << describe(selector.error());
    EXPECT_EQ(selector->kind, SelectorKind::Or);
    ASSERT_EQ(selector->children.size(), 3u);
    EXPECT_EQ(selector->children[1].kind, SelectorKind::And);
    EXPECT_EQ(selector->children[2].names, (std::vector<std::string>{"x", "y z"}));
    EXPECT_EQ(toString(*selector), "name:a | kind:Linear & !layer:0-3 | set{x, \"y z\"}");
}

TEST(Selector, ErrorsNameTheColumnAndWhatWasExpected)
{
    struct Case {
        const char *text;
        const char *where;
        const char *mentions;
    };
    const Case cases[] = {
        {"", "line:1:1", "expected a selector"},
        {"nam:x", "line:1:1", "expected a selector"},
        {"name x", "line:1:6", "':'"},
        {"name:", "line:1:6", "name or pattern"},
        {"(all", "line:1:5", "')'"},
        {"all &", "line:1:6", "expected a selector"},
        {"all all", "line:1:5", "&, |"},
        {"set{}", "line:1:5", "operator's name"},
        {"set{a b}", "line:1:7", "'}'"},
        {"layer:5-3", "line:1:7", "layers"},
        {"layer:x", "line:1:7", "layers"},
        {"name:\"abc", "line:1:6", "closing quote"},
        {"name:\"a\\q\"", "line:1:8", "escape"},
    };
    for (const Case &one : cases) {
        const auto parsed = parseSelector(one.text);
        ASSERT_FALSE(parsed) << one.text;
        EXPECT_EQ(parsed.error().where, one.where) << one.text;
        EXPECT_NE(parsed.error().message.find(one.mentions), std::string::npos)
            << one.text << ": " << parsed.error().message;
    }
}

TEST(Selector, DeepNestingIsRefusedNotFollowed)
{
    EXPECT_TRUE(parseSelector(std::string(50, '(') + "all" + std::string(50, ')')));
    EXPECT_FALSE(parseSelector(std::string(100000, '(')));
    EXPECT_FALSE(parseSelector(std::string(100000, '!') + "all"));
}

/// Tries every way to spend the stars.
bool matchesSlowly(std::string_view glob, std::string_view text)
{
    if (glob.empty())
        return text.empty();
    if (glob.front() == '*') {
        for (std::size_t n = 0; n <= text.size(); ++n) {
            if (matchesSlowly(glob.substr(1), text.substr(n)))
                return true;
        }
        return false;
    }
    std::size_t width = 1;
    char wanted = glob.front();
    bool any = wanted == '?';
    if (wanted == '\\' && glob.size() > 1) {
        wanted = glob[1];
        width = 2;
        any = false;
    }
    return !text.empty() && (any || text.front() == wanted)
        && matchesSlowly(glob.substr(width), text.substr(1));
}

TEST(Selector, GlobsMatchAsTheirDefinition)
{
    RandomTable random(2);
    int matches = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string glob;
        std::string text;
        for (int n = random.number(0, 6); n > 0; --n)
            glob += "ab*?\\"[random.number(0, 4)];
        for (int n = random.number(0, 6); n > 0; --n)
            text += "ab*"[random.number(0, 2)];
        EXPECT_EQ(globMatches(glob, text), matchesSlowly(glob, text)) << glob << " on " << text;
        matches += globMatches(glob, text) ? 1 : 0;
        EXPECT_TRUE(globMatches(globOf(text), text));
    }
    EXPECT_GT(matches, 500);
}

} // namespace
} // namespace planloom
