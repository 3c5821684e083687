#include "engine/table/table_json.h"
#include "engine/table/table_text.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace planloom {
namespace {

TEST(TableJson, RandomTablesReadBackEqual)
{
    RandomTable random(5);
    for (int i = 0; i < 2000; ++i) {
        const ConstraintTable table = random.table();
        const std::string text = toJson(table).dump(2);
        const auto parsed = tableFromJson(std::string_view(text));
        ASSERT_TRUE(parsed) << describe(parsed.error()) << "\n" << text;
        ASSERT_EQ(*parsed, table) << text;
    }
}

TEST(TableJson, ErrorsNameThePathInTheDocument)
{
    const auto rowsOf = [](const std::string &rows) {
        return R"({"format":"planloom-table","version":1,"rows":[)" + rows + "]}";
    };
    struct Case {
        std::string text;
        const char *where;
    };
    const Case cases[] = {
        {"", "table@1"},
        {"[1,2", "table@5"},
        {"[]", "table"},
        {"{}", "table/format"},
        {R"({"format":"x"})", "table/format"},
        {R"({"format":"planloom-table","version":2,"rows":[]})", "table/version"},
        {R"({"format":"planloom-table","version":1})", "rows"},
        {R"({"format":"planloom-table","version":1,"rows":[],"extra":0})", "table"},
        {rowsOf("7"), "rows/0"},
        {rowsOf(R"({"rule":{"type":"mesh","axes":[]}})"), "rows/0/rule/axes"},
        {rowsOf(R"({"rule":{"type":"micro-batches","count":0}})"), "rows/0/rule/count"},
        {rowsOf(R"({"rule":{"type":"micro-batches","count":18446744073709551615}})"), "rows/0/rule/count"},
        {rowsOf(R"({"rule":{"type":"micro-batches","count":1.5}})"), "rows/0/rule/count"},
        {rowsOf(R"({"rule":{"type":"stage","index":1}})"), "rows/0/selector"},
        {rowsOf(R"({"selector":"name:","rule":{"type":"stage","index":1}})"), "rows/0/selector@6"},
        {rowsOf(R"({"selector":"all","rule":{"type":"split","steps":[{"split":"value"}]}})"),
            "rows/0/rule/steps/0"},
        {rowsOf(R"({"selector":"all","rule":{"type":"dance"}})"), "rows/0/rule/type"},
        {rowsOf(R"({"selector":"all","rule":{"type":"place","devices":[-1]}})"), "rows/0/rule/devices"},
        {rowsOf(R"({"selector":"all","rule":{"type":"place","devices":[1],"coordinates":[]}})"),
            "rows/0/rule"},
        {rowsOf(R"({"selector":"all","rule":{"type":"stage","index":1},"origin":"dream"})"), "rows/0/origin"},
        {rowsOf(R"({"selector":"all","rule":{"type":"schedule","schedule":"1f1b"}})") + "x", nullptr},
        {rowsOf(R"({"rule":{"type":"in-flight"}})"), "rows/0/rule/count"},
        {rowsOf(R"({"rule":{"type":"in-flight","count":1,"stage":-1}})"), "rows/0/rule/stage"},
        {rowsOf(R"({"rule":{"type":"limit"}})"), "rows/0/rule/bytes"},
        {rowsOf(R"({"rule":{"type":"limit","bytes":1,"nanoseconds":1}})"), "rows/0/rule"},
        {rowsOf(R"({"rule":{"type":"limit","nanoseconds":0}})"), "rows/0/rule/nanoseconds"},
        {rowsOf(R"({"rule":{"type":"limit","bytes":1125899906842625}})"), "rows/0/rule/bytes"},
        {rowsOf(R"({"selector":"all","rule":{"type":"order","second":"all","micro_batch":-1}})"),
            "rows/0/rule/micro_batch"},
        {rowsOf(R"({"selector":"layer:0","rule":{"type":"schedule","schedule":"1f1b"}})"), "rows/0/selector"},
    };
    for (const Case &one : cases) {
        const auto parsed = tableFromJson(std::string_view(one.text));
        ASSERT_FALSE(parsed) << one.text;
        if (one.where) {
            EXPECT_EQ(parsed.error().where, one.where) << one.text;
        }
    }
}

TEST(TableJson, NumbersBeyondAllRangesAreRefused)
{
    for (const char *text :
        {"91E9991", "{\"version\": 1e999, \"rows\": []}", "{\"version\": 1, \"rows\": [-1e400]}"}) {
        const auto parsed = tableFromJson(std::string_view(text));
        ASSERT_FALSE(parsed) << text;
        EXPECT_EQ(parsed.error().code, ErrorCode::InvalidInput) << text;
    }
}

TEST(TableJson, DeepNestingIsRefused)
{
    const std::string deep(200000, '[');
    EXPECT_FALSE(tableFromJson(std::string_view(deep)));
}

} // namespace
} // namespace planloom
