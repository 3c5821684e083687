#include "engine/table/kinds/all_kinds.h"
#include "engine/table/table_json.h"
#include "engine/table/table_text.h"
#include "tests/engine/table/random_table.h"

#include "planloom_paths.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>

namespace planloom {
namespace {

using Json = nlohmann::json;

Json ruleSchemas()
{
    std::ifstream file(PLANLOOM_SOURCE_DIR "/resources/schema/table.json");
    return Json::parse(file).at("$defs").at("rule").at("oneOf");
}

/// Whether `rule` is of the schema's type and has the members it asks for, and no others.
bool isOf(const Json &schema, const Json &rule)
{
    const Json &properties = schema.at("properties");
    if (properties.at("type").at("const") != rule.at("type"))
        return false;
    for (const Json &name : schema.at("required")) {
        if (!rule.contains(name.get<std::string>()))
            return false;
    }
    for (const auto &[name, value] : rule.items()) {
        if (!properties.contains(name))
            return false;
    }
    return true;
}

/// `visit(rules)` with many random rules of each kind.
template<typename Visit> void forSamples(Visit visit)
{
    anyKind([&]<typename R>(std::type_identity<R>) {
        SCOPED_TRACE(RuleTraits<R>::words.front());
        RandomValues random(11);
        for (int i = 0; i < 200; ++i)
            visit(RandomRule<R>::make(random));
        return false;
    });
}

TEST(Kinds, HaveWordsOfTheirOwn)
{
    const auto &names = ruleNames();
    EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
    for (const std::string_view name : names)
        EXPECT_TRUE(shapeOf(name)) << name;
    EXPECT_FALSE(shapeOf("dance"));
    EXPECT_EQ(shapeOf("replicate"), RuleShape::Colon);
    EXPECT_EQ(shapeOf("order"), RuleShape::Open);
    EXPECT_EQ(shapeOf("mesh"), RuleShape::Plain);
}

TEST(Kinds, AreAllExpectedWhereNoRowBegins)
{
    const auto row = parseRow("dance all");
    ASSERT_FALSE(row);
    const std::string &said = row.error().message;
    EXPECT_EQ(said.find("expected a row: mesh, micro-batches, split, replicate, coshard, place, "), 0u)
        << said;
    EXPECT_NE(said.find(" or " + std::string(ruleNames().back()) + ", found 'dance'"), said.npos) << said;
    for (const std::string_view name : ruleNames())
        EXPECT_NE(said.find(name), said.npos) << name;
}

TEST(Kinds, PrintRowsThatBeginWithTheirWordAndReadBack)
{
    std::set<std::string> seen;
    forSamples([&](const auto &rule) {
        using R = std::decay_t<decltype(rule)>;
        Row row{.rule = rule};
        const std::string text = print(row);
        const std::string word = text.substr(0, text.find(' '));
        EXPECT_NE(std::find(RuleTraits<R>::words.begin(), RuleTraits<R>::words.end(), word),
            RuleTraits<R>::words.end())
            << text;
        if (RuleTraits<R>::shape != RuleShape::Plain) {
            const std::string start = word + (RuleTraits<R>::shape == RuleShape::Colon ? " all : " : " all");
            EXPECT_EQ(text.substr(0, start.size()), start);
        }
        const auto read = parseRow(text);
        ASSERT_TRUE(read) << text << ": " << describe(read.error());
        EXPECT_EQ(*read, row) << text;
        seen.insert(word);
    });
    EXPECT_EQ(seen.size(), ruleNames().size()); // samples use every word
}

TEST(Kinds, WriteJsonThatTheSchemaKnows)
{
    const Json schemas = ruleSchemas();
    std::set<std::size_t> used;
    forSamples([&](const auto &rule) {
        const Json json = toJson(ConstraintTable{.rows = {Row{.rule = rule}}}).at("rows").at(0).at("rule");
        std::size_t fitting = 0;
        for (std::size_t i = 0; i < schemas.size(); ++i) {
            if (isOf(schemas[i], json)) {
                ++fitting;
                used.insert(i);
            }
        }
        EXPECT_EQ(fitting, 1u) << json;
    });
    EXPECT_EQ(used.size(), schemas.size()); // and the schema no other kinds
}

TEST(Kinds, RefuseMembersThatAreNotTheirOwn)
{
    forSamples([&](const auto &rule) {
        Json table = toJson(ConstraintTable{.rows = {Row{.rule = rule}}});
        table["rows"][0]["rule"]["dance"] = 1;
        const auto read = tableFromJson(table);
        ASSERT_FALSE(read) << table;
        EXPECT_EQ(read.error().where, "rows/0/rule");
        EXPECT_EQ(read.error().message, "there is no member 'dance' here");
    });
}

TEST(Kinds, SayWhatTheirRowsDo)
{
    anyKind([]<typename R>(std::type_identity<R>) {
        EXPECT_FALSE(std::string_view(RuleTraits<R>::verb).empty()) << RuleTraits<R>::words.front();
        return false;
    });
    EXPECT_STREQ(RuleTraits<StageRule>::verb, "give a stage to");
}

} // namespace
} // namespace planloom
