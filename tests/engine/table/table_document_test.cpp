#include "engine/table/table_document.h"

#include "engine/table/table_text.h"
#include "tests/engine/table/random_table.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

/// Texts as people, spreadsheets and accidents make them.
class RandomText
{
public:
    explicit RandomText(std::uint32_t seed)
        : m_random(seed)
    {
    }

    RandomTable &random() { return m_random; }

    std::string line()
    {
        switch (m_random.number(0, 9)) {
        case 0:
            return "";
        case 1:
            return m_random.chance(50) ? "   " : "\t \t";
        case 2:
            return "# " + garbage(20);
        case 3:
            return "  #" + garbage(3);
        case 4:
            return garbage(30);
        case 5:
            return m_random.chance(3) ? garbage(20'000) : "split all batch by 2 # not yet";
        default: {
            std::string text = print(m_random.row());
            if (m_random.chance(30))
                text = "  " + text + " ";
            if (m_random.chance(30))
                text += m_random.chance(50) ? " #" : "  # note " + garbage(4);
            if (m_random.chance(10))
                text += " @gesture";
            return text;
        }
        }
    }

    std::string text()
    {
        std::string text;
        const bool returns = m_random.chance(20);
        for (int n = m_random.number(0, 12); n > 0; --n) {
            text += line();
            if (returns || m_random.chance(3))
                text += m_random.chance(95) ? "\r" : "\r\r";
            if (n > 1 || m_random.chance(70))
                text += '\n';
        }
        return text;
    }

    /// Any bytes but line ends.
    std::string garbage(int most)
    {
        std::string text;
        for (int n = m_random.number(0, most); n > 0; --n) {
            const char c = static_cast<char>(m_random.number(0, 255));
            text += c == '\n' ? ':' : c;
        }
        return text;
    }

    std::int32_t lineOf(const TableDocument &document)
    {
        return m_random.number(-1, document.lineCount() + 1);
    }
    std::vector<std::int32_t> linesOf(const TableDocument &document)
    {
        std::vector<std::int32_t> lines;
        for (int n = m_random.number(0, 6); n > 0; --n)
            lines.push_back(lineOf(document));
        return lines;
    }

    /// One of the ways to change a table.
    TableEdit edit(const TableDocument &document)
    {
        switch (m_random.number(0, 8)) {
        case 0:
            return appendRows(document, {m_random.row(), m_random.row()});
        case 1:
            return replaceRow(document, lineOf(document), m_random.row());
        case 2:
            return replaceLine(document, lineOf(document), line());
        case 3:
            return insertText(document, lineOf(document), text());
        case 4:
            return removeLines(document, linesOf(document));
        case 5:
            return setEnabled(document, linesOf(document), m_random.chance(50));
        case 6:
            return moveLines(document, linesOf(document), lineOf(document));
        case 7:
            return difference(document, TableDocument(text()));
        default: {
            const TableEdit first = edit(document);
            TableDocument between = document;
            EXPECT_TRUE(between.apply(first));
            return joined(first, edit(between));
        }
        }
    }

private:
    RandomTable m_random;
};

TableDocument applied(TableDocument document, const TableEdit &edit)
{
    const auto done = document.apply(edit);
    EXPECT_TRUE(done) << describe(done.error());
    return document;
}

TEST(TableDocument, EveryTextStaysByteForByteAndReadsAsTheTablesReaderDoes)
{
    RandomText random(11);
    for (int i = 0; i < 10'000; ++i) {
        const std::string text = random.text();
        const TableDocument document(text);
        ASSERT_EQ(document.text(), text);
        const TableText read = readTable(text);
        ASSERT_EQ(document.table(), read.table) << text;
        ASSERT_EQ(document.errors(), read.errors) << text;
        ASSERT_EQ(document.rowLines().size(), read.table.rows.size());
    }
}

TEST(TableDocument, PrintedRowsReadBackEqual)
{
    RandomTable random(12);
    for (int i = 0; i < 2000; ++i) {
        const ConstraintTable table = random.table();
        const TableDocument document(print(table));
        ASSERT_EQ(document.table(), table) << print(table);
        EXPECT_TRUE(document.errors().empty());
    }
}

TEST(TableDocument, LinesSayWhatTheyAre)
{
    const TableDocument document("# note\nsplit all : m by 2  # why\n\nsplit all m\nstage all : 1");
    ASSERT_EQ(document.lineCount(), 5);
    EXPECT_TRUE(document.lines()[0]->isRemark());
    ASSERT_TRUE(document.lines()[1]->row);
    EXPECT_EQ(document.lines()[1]->row->note, "why");
    EXPECT_TRUE(document.lines()[2]->isRemark());
    ASSERT_TRUE(document.lines()[3]->error);
    EXPECT_EQ(document.lines()[3]->error->where, "line:1:11");
    EXPECT_EQ(document.rowLines(), (std::vector<std::int32_t>{1, 4}));
    EXPECT_EQ(document.table().rows[0].note, "note\nwhy");
    ASSERT_EQ(document.errors().size(), 1u);
    EXPECT_EQ(document.errors()[0].where, "line:4:11");
}

TEST(TableDocument, AThousandRandomEditsUndoneGiveTheFirstTextByteForByte)
{
    for (std::uint32_t seed = 0; seed < 5; ++seed) {
        RandomText random(100 + seed);
        const std::string first = random.text();
        TableDocument document(first);
        std::vector<TableEdit> done;
        std::vector<std::string> texts;
        for (int i = 0; i < 1000; ++i) {
            if (document.lineCount() > 60) {
                done.push_back(difference(document, TableDocument(random.text())));
            } else {
                done.push_back(random.edit(document));
            }
            texts.push_back(document.text());
            ASSERT_TRUE(document.apply(done.back()));
            const TableText read = readTable(document.text());
            ASSERT_EQ(document.table(), read.table);
            ASSERT_EQ(document.errors(), read.errors);
        }
        const std::string last = document.text();
        while (!done.empty()) {
            ASSERT_TRUE(document.apply(inverse(done.back())));
            ASSERT_EQ(document.text(), texts.back());
            ASSERT_TRUE(document.apply(inverse(inverse(done.back())))) << "redo";
            ASSERT_TRUE(document.apply(inverse(done.back())));
            done.pop_back();
            texts.pop_back();
        }
        EXPECT_EQ(document.text(), first);
        EXPECT_NE(last, first);
    }
}

TEST(TableDocument, DifferenceLeadsFromOneTextToTheOther)
{
    RandomText random(13);
    for (int i = 0; i < 3000; ++i) {
        const TableDocument before(random.text());
        const TableDocument after =
            random.random().chance(50) ? TableDocument(random.text()) : applied(before, random.edit(before));
        const TableEdit edit = difference(before, after);
        ASSERT_EQ(edit.empty(), before == after);
        ASSERT_LE(edit.splices.size(), 1u);
        ASSERT_EQ(applied(before, edit).text(), after.text());
        ASSERT_EQ(applied(after, inverse(edit)).text(), before.text());
    }
}

TEST(TableDocument, DifferenceKeepsTheLinesThatAreTheSame)
{
    const TableDocument before("a\nb\nc\n");
    const TableSplice expected{1, {"b"}, {"x", "y"}};
    EXPECT_EQ(difference(before, TableDocument("a\nx\ny\nc\n")), TableEdit{{expected}});
    EXPECT_EQ(
        difference(before, TableDocument("a\nb\nc")).splices.front().removed, std::vector<std::string>{""});
    EXPECT_TRUE(difference(before, before).empty());
}

TEST(TableDocument, AnEditThatDoesNotFitChangesNothing)
{
    TableDocument document("a\nb\nc");
    const TableEdit misfits[] = {{{{1, {"x"}, {}}}}, {{{3, {"d"}, {}}}}, {{{-1, {}, {"x"}}}},
        {{{5, {}, {"x"}}}}, {{{0, {"a"}, {"two\nlines"}}}}, {{{0, {"a"}, {"z"}}, {2, {"x"}, {}}}},
        {{{0, {"a", "b", "c", ""}, {}}}}};
    for (const TableEdit &edit : misfits) {
        const auto done = document.apply(edit);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, ErrorCode::InvalidInput);
        EXPECT_FALSE(done.error().where.empty());
        EXPECT_EQ(document.text(), "a\nb\nc");
    }
}

TEST(TableDocument, AnEmptyTableHasOnePieceHoweverItBecameEmpty)
{
    for (const char *text : {"# a", "# a\n", "x\ny", "\n", "x\n\n"}) {
        SCOPED_TRACE(text);
        const TableDocument full(text);
        std::vector<std::int32_t> all;
        for (std::int32_t line = 0; line < full.lineCount(); ++line)
            all.push_back(line);
        const TableEdit removal = removeLines(full, all);
        TableDocument empty = full;
        ASSERT_TRUE(empty.apply(removal));
        EXPECT_EQ(empty, TableDocument(""));
        EXPECT_EQ(empty.pieces().size(), 1U);
        // What fits the one fits the other: a step of a history may be made on either.
        TableDocument written("");
        const TableEdit insertion = insertText(empty, 0, "new");
        ASSERT_TRUE(empty.apply(insertion));
        ASSERT_TRUE(written.apply(insertion));
        EXPECT_EQ(empty.text(), written.text());
        ASSERT_TRUE(written.apply(inverse(insertion)));
        ASSERT_TRUE(written.apply(inverse(removal)));
        EXPECT_EQ(written.text(), text);
    }
    // Edits of older versions left no piece at all; that is not the table the empty text makes, and no edit
    // is lost over it.
    TableDocument none("# a");
    ASSERT_TRUE(none.apply({{{0, {"# a"}, {}}}}));
    EXPECT_EQ(none.text(), "");
    EXPECT_NE(none, TableDocument(""));
    TableDocument there("");
    ASSERT_TRUE(there.apply(difference(there, none)));
    EXPECT_EQ(there, none);
}

TEST(TableDocument, RowsAreAppendedBehindTheLastRow)
{
    const Row row = *parseRow("stage all : 1");
    const auto append = [&](std::string_view text) {
        const TableDocument document(text);
        return applied(document, appendRows(document, {row})).text();
    };
    EXPECT_EQ(append(""), "stage all : 1\n");
    EXPECT_EQ(append("schedule 1f1b\n"), "schedule 1f1b\nstage all : 1\n");
    EXPECT_EQ(append("schedule 1f1b"), "schedule 1f1b\nstage all : 1");
    EXPECT_EQ(append("schedule 1f1b\n\n# the end\n"), "schedule 1f1b\nstage all : 1\n\n# the end\n");
    EXPECT_EQ(append("schedule 1f1b\r\n"), "schedule 1f1b\r\nstage all : 1\r\n");
}

TEST(TableDocument, AReplacedRowKeepsItsRemarksUnlessItsNoteChanges)
{
    const TableDocument document("# above\n\nstage all : 1  @gesture  # own\nschedule 1f1b\n");
    Row row = document.table().rows.front();
    EXPECT_EQ(row.note, "above\nown");
    row.rule = StageRule{2};
    EXPECT_EQ(applied(document, replaceRow(document, 2, row)).text(),
        "# above\n\nstage all : 2  @gesture  # own\nschedule 1f1b\n");
    row.note = "own";
    EXPECT_EQ(applied(document, replaceRow(document, 2, row)).text(),
        "# above\n\nstage all : 2  @gesture  # own\nschedule 1f1b\n");
    row.note = "new";
    EXPECT_EQ(applied(document, replaceRow(document, 2, row)).text(),
        "\nstage all : 2  @gesture  # new\nschedule 1f1b\n");
    EXPECT_TRUE(replaceRow(document, 9, row).empty());
    EXPECT_TRUE(replaceRow(document, 2, document.table().rows.front()).empty());
}

TEST(TableDocument, SwitchingChangesNothingButTheSwitch)
{
    const TableDocument document("  stage   all : 1 # a\r\noff\tschedule 1f1b\n# no row\nsplit\n");
    const TableDocument off = applied(document, setEnabled(document, {0, 1, 2, 3, 4, -1}, false));
    EXPECT_EQ(off.text(), "  off stage   all : 1 # a\r\noff\tschedule 1f1b\n# no row\nsplit\n");
    const TableDocument on = applied(off, setEnabled(off, {0, 1}, true));
    EXPECT_EQ(on.text(), "  stage   all : 1 # a\r\nschedule 1f1b\n# no row\nsplit\n");
    EXPECT_TRUE(setEnabled(on, {0, 1}, true).empty());
}

TEST(TableDocument, LinesMoveInTheirOrder)
{
    const TableDocument document("a\nb\nc\nd\ne\n");
    const auto moved = [&](const std::vector<std::int32_t> &lines, std::int32_t to) {
        return applied(document, moveLines(document, lines, to)).text();
    };
    EXPECT_EQ(moved({0}, 5), "b\nc\nd\ne\na\n");
    EXPECT_EQ(moved({4}, 0), "e\na\nb\nc\nd\n");
    EXPECT_EQ(moved({0, 4}, 2), "b\na\ne\nc\nd\n");
    EXPECT_EQ(moved({3, 1}, 3), "a\nc\nb\nd\ne\n");
    EXPECT_TRUE(moveLines(document, {1, 2}, 3).empty());
    EXPECT_TRUE(moveLines(document, {7}, 0).empty());
}

TEST(TableDocument, LinesThatNoSpliceTouchesAreShared)
{
    std::string text;
    for (int i = 0; i < 10'000; ++i)
        text += "place name:op." + std::to_string(i) + " : devices 0\n";
    const TableDocument document(text);
    TableDocument changed = document;
    ASSERT_TRUE(changed.apply(joined(removeLines(document, {5000}), {{{2, {}, {"schedule 1f1b"}}}})));
    EXPECT_EQ(changed.lines()[0], document.lines()[0]);
    EXPECT_EQ(changed.lines()[9999], document.lines()[9999]);
    EXPECT_EQ(changed.lines()[3], document.lines()[2]);
    std::vector<std::int32_t> every;
    for (std::int32_t i = 0; i < 10'000; i += 2)
        every.push_back(i);
    const TableEdit edit = removeLines(document, every);
    const TableDocument half = applied(document, edit);
    EXPECT_EQ(half.lineCount(), 5000);
    EXPECT_EQ(half.lines()[4999], document.lines()[9999]);
    EXPECT_EQ(applied(half, inverse(edit)).text(), text);
}

} // namespace
} // namespace planloom
