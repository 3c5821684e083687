#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace planloom {
namespace {

using Json = nlohmann::json;

enum class Colour : std::uint8_t { Plain, Red, Blue };

const char *nameOf(Colour colour)
{
    constexpr std::array kNames{"plain", "red", "blue"};
    return kNames[static_cast<std::size_t>(colour)];
}

struct Bead {
    std::string name{};
    std::int32_t size = 1;
    friend bool operator==(const Bead &, const Bead &) = default;
};

/// "red from x to +2 beads a=1,b=2": a part of every kind.
struct Thread {
    Colour colour = Colour::Plain;
    std::string from{};
    std::int32_t to = 0;
    bool knotted = false;
    std::vector<Bead> beads{};
    friend bool operator==(const Thread &, const Thread &) = default;
};

void describeThread(RuleForm &form, Thread &thread)
{
    form.option("colour", thread.colour, std::array{Colour::Plain, Colour::Red, Colour::Blue});
    form.word("from", "'from' and a name");
    form.name("from", thread.from, "a name");
    form.numberAfter("to", "to", thread.to, {"a number", 1, 9, true});
    form.flag("knotted", thread.knotted);
    const auto bead = [](RuleForm &part, Bead &each) {
        part.name("name", each.name, "a bead");
        part.symbol('=', "and its size", true);
        part.number("size", each.size, {"its size", 1});
    };
    if (form.has("beads", "beads", !thread.beads.empty()))
        form.list(
            "beads", thread.beads, bead, [&](auto &, const auto *) { return form.another(',', true); }, true);
}

Result<Thread> fromText(const char *text)
{
    TextCursor cursor(text);
    RuleForm form = RuleForm::readText(cursor, "thread");
    Thread thread;
    describeThread(form, thread);
    TRY_VOID(form.finish());
    return thread;
}

Result<Thread> fromJson(const Json &json)
{
    RuleForm form = RuleForm::readJson(json, "rule");
    Thread thread;
    describeThread(form, thread);
    TRY_VOID(form.finish());
    return thread;
}

Json toJson(Thread thread)
{
    Json json = Json::object();
    RuleForm form = RuleForm::writeJson(json);
    describeThread(form, thread);
    return json;
}

TEST(RuleForm, ReadsAndWritesTextAndJsonByOneDescription)
{
    const std::pair<const char *, const char *> cases[] = {
        {"from x", R"({"from": "x"})"},
        {"red from x to +2", R"({"colour": "red", "from": "x", "to": 2})"},
        {"blue from \"a b\" knotted beads a=1,\"c d\"=2",
            R"({"colour": "blue", "from": "a b", "knotted": true,
                "beads": [{"name": "a", "size": 1}, {"name": "c d", "size": 2}]})"},
    };
    for (const auto &[text, json] : cases) {
        const auto read = fromText(text);
        ASSERT_TRUE(read) << text << ": " << describe(read.error());
        EXPECT_EQ(textOf(describeThread, *read), text);
        EXPECT_EQ(toJson(*read), Json::parse(json)) << text;
        const auto again = fromJson(Json::parse(json));
        ASSERT_TRUE(again) << json << ": " << describe(again.error());
        EXPECT_EQ(*again, *read) << text;
    }
}

TEST(RuleForm, KeepsTheFirstErrorOfText)
{
    const std::pair<const char *, const char *> cases[] = {
        {"green from x", "line:1:1: expected 'from' and a name, found 'green'"},
        {"plain from x", "line:1:1: expected 'from' and a name, found 'plain'"},
        {"red from", "line:1:9: expected a name, found the end of the row"},
        {"from x to 10 beads", "line:1:11: expected a number between 1 and 9, found 10"},
        {"from x beads a=1,=", "line:1:18: expected a bead, found '='"},
    };
    for (const auto &[text, error] : cases) {
        const auto read = fromText(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(describe(read.error()), error);
    }
}

TEST(RuleForm, SaysWhereJsonIsWrongAndRefusesMembersThatNoPartAsksFor)
{
    const std::pair<const char *, const char *> cases[] = {
        {R"({"colour": "green", "from": "x"})", "rule/colour: expected plain, red or blue"},
        {R"({})", "rule/from: expected a text"},
        {R"({"from": "x", "to": 10})", "rule/to: expected a number from 1 to 9, found 10"},
        {R"({"from": "x", "beads": []})", "rule/beads: expected a list that is not empty"},
        {R"({"from": "x", "beads": [{"name": "a", "size": 1}, 7]})", "rule/beads/1: expected an object"},
        {R"({"from": "x", "beads": [{"name": "a", "size": 1, "hue": 2}]})",
            "rule/beads/0: there is no member 'hue' here"},
        {R"({"from": "x", "hue": 2})", "rule: there is no member 'hue' here"},
    };
    for (const auto &[json, error] : cases) {
        const auto read = fromJson(Json::parse(json));
        ASSERT_FALSE(read) << json;
        EXPECT_EQ(read.error().where + ": " + read.error().message, error);
    }
    EXPECT_EQ(fromJson(Json::parse(R"({"colour": "plain", "from": "x"})"))->colour, Colour::Plain)
        << "what is not said may be said";
}

} // namespace
} // namespace planloom
