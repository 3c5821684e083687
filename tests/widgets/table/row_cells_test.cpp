#include "widgets/table/row_cells.h"
#include "widgets/table/row_clipboard.h"

#include "engine/table/table_document.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace planloom {
namespace {

RowCells cells(std::string selector, std::string rule, std::string value)
{
    RowCells made;
    made.selector = std::move(selector);
    made.rule = std::move(rule);
    made.value = std::move(value);
    return made;
}

TEST(RowCells, OfRowsAreTheirTexts)
{
    EXPECT_EQ(cellsOf("split layer:0-5 & kind:Linear : batch by 2 over dp"),
        cells("layer:0-5 & kind:Linear", "split", "batch by 2 over dp"));
    EXPECT_EQ(cellsOf("order name:a before name:b at +1"), cells("name:a", "order", "before name:b at +1"));
    EXPECT_EQ(cellsOf("recompute layer:* per layer"), cells("layer:*", "recompute", "per layer"));
    EXPECT_EQ(cellsOf("recompute all"), cells("all", "recompute", ""));
    EXPECT_EQ(cellsOf("zero1 weight:* over dp"), cells("weight:*", "zero1", "over dp"));
    EXPECT_EQ(cellsOf("mesh dp=2 tp=2"), cells("", "mesh", "dp=2 tp=2"));
    EXPECT_EQ(cellsOf("place name:\"a : b\" : devices 0,1"), cells("name:\"a : b\"", "place", "devices 0,1"));
    RowCells full = cells("all", "split", "batch by 2");
    full.enabled = false;
    full.origin = "gesture";
    full.note = "why # so";
    EXPECT_EQ(cellsOf("off  split all :  batch by 2  @gesture # why # so"), full);
    EXPECT_EQ(lineOf(full), "off split all : batch by 2  @gesture  # why # so");
    full.strength = "prefer 12";
    EXPECT_EQ(cellsOf("off prefer 12 split all :  batch by 2  @gesture # why # so"), full);
    EXPECT_EQ(lineOf(full), "off prefer 12 split all : batch by 2  @gesture  # why # so");
    full.strength = "must";
    EXPECT_EQ(lineOf(full), "off split all : batch by 2  @gesture  # why # so");
    full.strength = "3";
    EXPECT_EQ(lineOf(full), "off prefer 3 split all : batch by 2  @gesture  # why # so");
    EXPECT_EQ(cellsOf("prefer schedule gpipe").strength, "prefer");
    EXPECT_EQ(cellsOf("prefer x schedule gpipe").strength, "prefer x");
}

TEST(RowCells, KeepEveryPartOfALineThatIsNoRow)
{
    EXPECT_EQ(cellsOf("split layer:x : batch by 2"), cells("layer:x", "split", "batch by 2"));
    EXPECT_EQ(cellsOf("split layer:0 foo : batch by 2"), cells("layer:0 foo", "split", "batch by 2"));
    EXPECT_EQ(cellsOf("splitt all : batch by 2"), cells("all", "splitt", "batch by 2"));
    EXPECT_EQ(cellsOf("order name:a befor name:b"), cells("name:a befor name:b", "order", ""));
    EXPECT_EQ(cellsOf("hello"), cells("", "hello", ""));
}

TEST(RowCells, AreTheLineAgain)
{
    for (const char *line : {"split layer:0-5 : m by 2 then value by 2",
             "replicate kind:LayerNorm : by 2 over tp", "coshard in:h.0.mlp : n by 4",
             "place all : pp=0,tp=1", "place all : mesh", "order name:a before name:b", "schedule 1f1b",
             "stage layer:0-5 : 0", "recompute layer:*", "zero1 weight:*", "micro-batches 4 whole",
             "in-flight 3 stage 0", "prefer schedule gpipe", "off prefer 20 place all : mesh",
             "limit memory 40GiB", "off split all : batch by 2  @gesture  # note"}) {
        SCOPED_TRACE(line);
        ASSERT_TRUE(readLine(line)->row) << readLine(line)->error->message;
        EXPECT_FALSE(checkCells(cellsOf(line)));
        EXPECT_EQ(lineOf(cellsOf(line)), line);
    }
}

/// 100 wrong cells: each error names the column and what is expected, and shows an example that is right.
TEST(CellProblems, NameColumnExpectationAndExample)
{
    struct Wrong {
        TableColumn column;
        RowCells cells;
    };
    std::vector<Wrong> wrong;
    for (const char *selector : {"", "layer:x", "layer:5-2", "layer:", "nme:a", "name:", "name: ", "all all",
             "set{", "set{a", "set{}", "(all", "all)", "!", "all &", "& all", "|",
             "kind:", "weight:", "in:", "layer:-1", "name:a b", "layer:0-5 : x", "#", "all @gesture",
             "name:\"a", "set{a,}", "all |", "\xc3\xbc", "forward backward"})
        wrong.push_back({TableColumn::Selector, cells(selector, "split", "batch by 2")});
    for (const char *rule : {"", "splitt", "Split", "place!", "spli t", "1", "by", "all", "off", "mesh dp=2",
             "#", ":", "microbatches", "in flight", "zeros", "limits", "\xc3\xbc"})
        wrong.push_back({TableColumn::Rule, cells("all", rule, "batch by 2")});
    const std::vector<std::pair<const char *, std::vector<const char *>>> values{
        {"split",
            {"", "batch", "by 2", "batch by", "batch by x", "batch by 0", "batch by -1", "batch by 2 over",
                "batch into", "batch into 2,", "value into 2", "m by 2 then", "m by 2 n by 2",
                "batch by 99999999999", "m by 2 # why", "m by 2 @text"}},
        {"replicate", {"", "2", "by", "by two", "over", "by 2 over", "batch by 2"}},
        {"place",
            {"", "devices", "devices x", "devices 0,", "devices -1", "0", "pp", "pp=", "pp=x", "pp=0,",
                "mesh 1"}},
        {"order", {"", "name:b", "before", "before x", "before all at", "before all at x", "after all"}},
        {"stage", {"", "x", "-1", "0 1"}},
        {"recompute", {"per", "per stage", "layer"}},
        {"coshard", {"", "batch", "batch by", "by 2"}},
        {"zero1", {"over", "by", "by x"}},
    };
    for (const auto &[rule, texts] : values) {
        for (const char *text : texts)
            wrong.push_back({TableColumn::Value, cells("all", rule, text)});
    }
    for (const auto &[rule, text] :
        std::vector<std::pair<const char *, const char *>>{{"mesh", ""}, {"mesh", "dp"}, {"mesh", "dp=0"},
            {"mesh", "=2"}, {"micro-batches", ""}, {"micro-batches", "0"}, {"micro-batches", "four"},
            {"schedule", ""}, {"schedule", "fast"}, {"schedule", "1f1b x"}, {"limit", "memory"},
            {"limit", "80GiB"}, {"limit", "memory 80"}, {"in-flight", "x"}, {"in-flight", "2 stage"}})
        wrong.push_back({TableColumn::Value, cells("", rule, text)});
    for (const char *origin : {"me", "gesture text", "@text"}) {
        RowCells made = cells("all", "split", "batch by 2");
        made.origin = origin;
        wrong.push_back({TableColumn::Origin, made});
    }
    for (const char *strength :
        {"preferred", "prefer x", "prefer 0", "2.5", "prefer -1", "should", "prefer 2 3"}) {
        RowCells made = cells("all", "split", "batch by 2");
        made.strength = strength;
        wrong.push_back({TableColumn::Strength, made});
    }
    ASSERT_GE(wrong.size(), 100u);
    for (const Wrong &one : wrong) {
        SCOPED_TRACE(
            one.cells.selector + " | " + one.cells.rule + " | " + one.cells.value + " | " + one.cells.origin);
        const auto problem = checkCells(one.cells);
        ASSERT_TRUE(problem);
        EXPECT_EQ(problem->column, one.column);
        EXPECT_EQ(problem->message.rfind(std::string(nameOf(one.column)) + ": ", 0), 0u) << problem->message;
        EXPECT_NE(problem->message.find("expected"), std::string::npos) << problem->message;
        const std::size_t example = problem->message.find("For example: ");
        ASSERT_NE(example, std::string::npos) << problem->message;
        // The line it makes is kept with an error, and comes apart into a wrong cell again.
        EXPECT_TRUE(readLine(lineOf(one.cells))->error || lineOf(one.cells).find('#') != std::string::npos
            || lineOf(one.cells).find('@') != std::string::npos || lineOf(one.cells).rfind("off", 0) == 0)
            << lineOf(one.cells);
        if (one.column == TableColumn::Value) {
            RowCells repaired = one.cells;
            repaired.value = problem->message.substr(example + 13);
            EXPECT_FALSE(checkCells(repaired)) << repaired.value;
        }
    }
}

TEST(PastedRows, AreRowsAsText)
{
    const auto pasted = readPastedRows("# remark\nsplit all : batch by 2\r\n\nnonsense here\nschedule 1f1b");
    ASSERT_TRUE(pasted) << pasted.error().message;
    EXPECT_EQ(pasted->rows, 2);
    EXPECT_EQ(pasted->unreadable, 1);
    EXPECT_FALSE(pasted->fromSpreadsheet);
    EXPECT_EQ(pasted->lines,
        (std::vector<std::string>{"# remark", "split all : batch by 2", "nonsense here", "schedule 1f1b"}));
}

TEST(PastedRows, AreCellsOfASpreadsheet)
{
    const auto plain =
        readPastedRows("layer:0\tsplit\tbatch by 2\tfirst\n\tschedule\t1f1b\nlayer:1\tplace\tdevices x\n");
    ASSERT_TRUE(plain) << plain.error().message;
    EXPECT_TRUE(plain->fromSpreadsheet);
    EXPECT_EQ(plain->lines,
        (std::vector<std::string>{
            "split layer:0 : batch by 2  # first", "schedule 1f1b", "place layer:1 : devices x"}));
    EXPECT_EQ(plain->rows, 2);
    EXPECT_EQ(plain->unreadable, 1);
    const auto headed = readPastedRows("Note\tValue\tRule\tOn\tSelector\nn\t\"by "
                                       "\"\"2\"\"\"\treplicate\toff\tall\n\tby 2\tReplicate\tyes\tlayer:1\n");
    ASSERT_TRUE(headed) << headed.error().message;
    EXPECT_EQ(headed->lines,
        (std::vector<std::string>{"off replicate all : by \"2\"  # n", "replicate layer:1 : by 2"}));
    EXPECT_EQ(headed->unreadable, 1);
}

TEST(PastedRows, GarbageIsRefused)
{
    for (const char *text : {"", "hello world\nfoo", "a\tb\tc\n1\t2\t3", "\x01\x02\x03", "# only a remark"}) {
        const auto pasted = readPastedRows(text);
        ASSERT_FALSE(pasted) << text;
        EXPECT_FALSE(pasted.error().advice.empty());
    }
    const auto huge = readPastedRows(std::string(kMostPastedLines + 10, '\n'));
    ASSERT_FALSE(huge);
    EXPECT_EQ(huge.error().code, ErrorCode::ResourceLimit);
}

} // namespace
} // namespace planloom
