#include "engine/table/table_text.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(TableText, RandomTablesReadBackEqual)
{
    RandomTable random(3);
    for (int i = 0; i < 3000; ++i) {
        const ConstraintTable table = random.table();
        const std::string text = print(table);
        const auto parsed = parseTable(text);
        ASSERT_TRUE(parsed) << describe(parsed.error()) << "\n" << text;
        ASSERT_EQ(*parsed, table) << text;
        EXPECT_EQ(print(*parsed), text);
    }
}

TEST(TableText, CanonicalTextStaysAsItIs)
{
    const std::string text = "mesh dp=2 pp=2 tp=2\n"
                             "micro-batches 4\n"
                             "split all : batch by 2 over dp\n"
                             "split name:*.attn.c_attn : out0.-1 over tp\n"
                             "split set{x} : m into 3,5 then value by 2\n"
                             "replicate kind:LayerNorm : by 2 over tp\n"
                             "coshard in:h.0.mlp : n by 4\n"
                             "coshard in:h.1.mlp : n by 4 keep\n"
                             "place layer:0-5 : pp=0\n"
                             "place layer:6-11 : pp=1,dp=0  @gesture  # half\n"
                             "# two\n"
                             "# lines\n"
                             "place name:foo : devices 0,1,1,2\n"
                             "place name:bar : mesh\n"
                             "order name:a before name:b at +1\n"
                             "order name:a before name:b at -2\n"
                             "order name:a before name:b at +1 of 3\n"
                             "order name:a before name:b of 0\n"
                             "in-flight 3\n"
                             "in-flight 3 stage 0\n"
                             "limit memory 40GiB\n"
                             "limit time 50ms\n"
                             "schedule 1f1b\n"
                             "stage layer:0-5 : 0\n"
                             "recompute layer:* per layer\n"
                             "recompute forward\n"
                             "zero1 weight:* over dp\n"
                             "zero1 weight:*\n"
                             "off split all : \"batch\" by 2\n"
                             "# the end\n";
    const auto table = parseTable(text);
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(print(*table), text);
    EXPECT_EQ(table->rows.size(), 27u);
    EXPECT_EQ(table->rows[10].note, "two\nlines");
    EXPECT_EQ(table->note, "the end");
    EXPECT_FALSE(table->rows.back().enabled);
    EXPECT_EQ(std::get<OpTransRule>(table->rows.back().rule).steps[0].dimension.kind,
        DimensionRef::Kind::Identifier);
    EXPECT_EQ(
        std::get<OpTransRule>(table->rows[2].rule).steps[0].dimension.kind, DimensionRef::Kind::Meaning);
}

TEST(TableText, MeaningsAreWordsAndIdentifiersOfTheSameNameAreQuoted)
{
    const std::string text = "split all : sequence over sp then heads by 2\n"
                             "split all : \"heads\" by 2\n"
                             "coshard in:h.0 : feed-forward by 4\n";
    const auto table = parseTable(text);
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(print(*table), text);
    const auto &steps = std::get<OpTransRule>(table->rows[0].rule).steps;
    EXPECT_EQ(steps[0].dimension,
        (DimensionRef{.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Sequence}));
    EXPECT_EQ(steps[1].dimension,
        (DimensionRef{.kind = DimensionRef::Kind::Meaning, .meaning = DimensionMeaning::Heads}));
    EXPECT_EQ(std::get<OpTransRule>(table->rows[1].rule).steps[0].dimension,
        (DimensionRef{.kind = DimensionRef::Kind::Identifier, .name = "heads"}));
    EXPECT_EQ(std::get<CoshardRule>(table->rows[2].rule).dimension.meaning, DimensionMeaning::FeedForward);
}

TEST(TableText, SpacesCommentsAndLineEndsOfOtherSystemsAreTaken)
{
    const auto table = parseTable("\r\n  mesh   dp = 2   tp= 4\r\n\n split all:batch over dp#note\r\n");
    ASSERT_TRUE(table) << describe(table.error());
    EXPECT_EQ(print(*table), "mesh dp=2 tp=4\nsplit all : batch over dp  # note\n");
}

TEST(TableText, EachBadLineIsReportedAndTheOthersAreKept)
{
    const auto result = readTable(
        "mesh dp=2\nsplit all batch by 2\n\nstage all : x\nschedule 1f1b\nplace all : devices -1\n");
    EXPECT_EQ(result.table.rows.size(), 2u);
    ASSERT_EQ(result.errors.size(), 3u);
    EXPECT_EQ(result.errors[0].where, "line:2:11");
    EXPECT_EQ(result.errors[1].where, "line:4:13");
    EXPECT_EQ(result.errors[2].where, "line:6:21");
}

TEST(TableText, ErrorsSayWhatWasExpected)
{
    struct Case {
        const char *text;
        const char *where;
        const char *mentions;
    };
    const Case cases[] = {
        {"splitt all : m by 2", "line:1:1", "expected a row"},
        {"split all : m", "line:1:14", "'by'"},
        {"split all : m by 0", "line:1:18", "between 1 and"},
        {"split all : m by two", "line:1:18", "number of parts"},
        {"split all : m into 3,", "line:1:22", "size of a part"},
        {"split all : m by 2 then", "line:1:24", "a dimension"},
        {"split all : m by 2 over", "line:1:24", "mesh axis"},
        {"mesh dp", "line:1:8", "'='"},
        {"mesh", "line:1:5", "mesh axis"},
        {"place all : pp", "line:1:15", "'='"},
        {"order all after all", "line:1:11", "'before'"},
        {"schedule 2f2b", "line:1:10", "gpipe"},
        {"recompute all per module", "line:1:19", "selection"},
        {"micro-batches 4 5", "line:1:17", "end of the row"},
        {"mesh dp=2 @human", "line:1:12", "an origin"},
        {"off", "line:1:4", "expected a row"},
        {"order all before all of", "line:1:24", "number of a micro-batch"},
        {"order all before all of -1", "line:1:25", "between 0 and"},
        {"in-flight", "line:1:10", "in-flight 3"},
        {"in-flight 0", "line:1:11", "between 1 and"},
        {"in-flight 2 stage", "line:1:18", "number of a stage"},
        {"limit", "line:1:6", "limit memory 40GiB"},
        {"limit memory", "line:1:13", "as 40GiB"},
        {"limit memory 40", "line:1:14", "as 40GiB"},
        {"limit memory 40ms", "line:1:14", "as 40GiB, found '40ms'"},
        {"limit memory 0KiB", "line:1:14", "more than nothing"},
        {"limit memory 1.0000001GiB", "line:1:14", "6 decimals"},
        {"limit memory 1.5B", "line:1:14", "whole number of bytes"},
        {"limit memory 1025TiB", "line:1:14", "at most 1024TiB"},
        {"limit memory 99999999999999999999B", "line:1:14", "at most 1024TiB"},
        {"limit time 50", "line:1:12", "as 50ms"},
        {"limit time 50 years", "line:1:12", "as 50ms"},
        {"limit time 50ms 3", "line:1:17", "end of the row"},
    };
    for (const Case &one : cases) {
        const auto parsed = parseTable(one.text);
        ASSERT_FALSE(parsed) << one.text;
        EXPECT_EQ(parsed.error().where, one.where) << one.text << ": " << parsed.error().message;
        EXPECT_NE(parsed.error().message.find(one.mentions), std::string::npos)
            << one.text << ": " << parsed.error().message;
    }
}

TEST(TableText, AmountsAreTakenInEveryUnitAndPrintedInOne)
{
    const std::pair<const char *, const char *> cases[] = {
        {"limit memory 40 GiB", "limit memory 40GiB"},
        {"limit memory 1.5GiB", "limit memory 1536MiB"},
        {"limit memory 1.50 KB", "limit memory 1500B"},
        {"limit memory 40GB", "limit memory 40GB"},
        {"limit memory 1024000B", "limit memory 1000KiB"},
        {"limit memory 1024TiB", "limit memory 1024TiB"},
        {"limit memory 1048576 B", "limit memory 1MiB"},
        {"limit time 0.05s", "limit time 50ms"},
        {"limit time 1500\xc2\xb5s", "limit time 1500us"},
        {"limit time 1500 \xce\xbcs", "limit time 1500us"},
        {"limit time 7ns", "limit time 7ns"},
        {"limit time 60000ms", "limit time 60s"},
    };
    for (const auto &[text, canonical] : cases) {
        const auto parsed = parseTable(text);
        ASSERT_TRUE(parsed) << text << ": " << describe(parsed.error());
        EXPECT_EQ(print(*parsed), std::string(canonical) + "\n");
        const auto again = parseTable(canonical);
        ASSERT_TRUE(again);
        EXPECT_EQ(*again, *parsed) << text;
    }
}

TEST(TableText, TornTextNeverCrashes)
{
    RandomTable random(4);
    int good = 0;
    for (int i = 0; i < 3000; ++i) {
        std::string text = print(random.table());
        for (int n = random.number(1, 4); n > 0 && !text.empty(); --n) {
            const auto at = static_cast<std::size_t>(random.number(0, static_cast<int>(text.size()) - 1));
            if (random.chance(50))
                text.erase(at, static_cast<std::size_t>(random.number(1, 4)));
            else
                text.insert(at, 1, static_cast<char>(random.number(1, 255)));
        }
        const auto result = readTable(text);
        const std::string again = print(result.table);
        const auto parsed = parseTable(again);
        ASSERT_TRUE(parsed) << again;
        good += result.errors.empty() ? 1 : 0;
    }
    EXPECT_GT(good, 100);
    EXPECT_LT(good, 2900);
}

} // namespace
} // namespace planloom
