#include "engine/gesture/blocking.h"

#include "engine/gesture/conflicts.h"
#include "tests/engine/gesture/contexts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace planloom {
namespace {

TEST(LinesWrittenBy, AreThoseThatSplicesInsert)
{
    EXPECT_TRUE(linesWrittenBy({}, 3).empty());
    EXPECT_EQ(linesWrittenBy({{{1, {"b"}, {"x", "y"}}}}, 3), (std::vector<std::int32_t>{1, 2}));
    // A later splice moves what an earlier one wrote, and may take some of it away.
    EXPECT_EQ(linesWrittenBy({{{2, {}, {"x", "y"}}, {0, {"a"}, {}}, {1, {"x"}, {}}}}, 3),
        (std::vector<std::int32_t>{1}));
}

TEST(LinesWrittenBy, AgreesWithTheTextsOfRandomEdits)
{
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> lines;
        for (std::size_t i = 0, count = random() % 12; i < count; ++i)
            lines.push_back("old");
        const auto before = static_cast<std::int32_t>(lines.size());
        TableEdit edit;
        for (int s = 0; s < 4; ++s) {
            TableSplice splice;
            splice.line = static_cast<std::int32_t>(random() % (lines.size() + 1));
            const auto at = lines.begin() + splice.line;
            const auto most = static_cast<std::size_t>(lines.end() - at);
            const auto removed = static_cast<std::ptrdiff_t>(random() % (std::min<std::size_t>(most, 3) + 1));
            splice.removed.assign(at, at + removed);
            splice.inserted.assign(random() % 3, "new");
            lines.insert(lines.erase(at, at + removed), splice.inserted.begin(), splice.inserted.end());
            edit.splices.push_back(std::move(splice));
        }
        std::vector<std::int32_t> expected;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            if (lines[i] == "new")
                expected.push_back(static_cast<std::int32_t>(i));
        }
        EXPECT_EQ(linesWrittenBy(edit, before), expected);
    }
}

TEST(SwitchingOff, LetsTheGestureHoldInOneEdit)
{
    const auto index = indexOf(kModel);
    const GestureContext context = contextOf(index, 4, "# note\nmesh tp=4\nplace layer:1 : tp=1\n");
    Proposal split;
    split.words = "split n over tp";
    split.edit = appendRows(context.document, readTable("split name:h.1.mlp.c_fc : n over tp\n").table.rows);
    TableDocument wouldBe = context.document;
    ASSERT_TRUE(wouldBe.apply(split.edit));
    const auto failing = completePlan(index->snapshot(), 4, wouldBe.table());
    ASSERT_TRUE(failing && firstError(*failing));
    GestureContext there = context;
    there.document = wouldBe;
    const auto conflicts = findConflicts(there, *failing);
    ASSERT_EQ(conflicts.size(), 1u);
    std::vector<std::int32_t> blocking = conflicts.front().lines;
    for (const std::int32_t own : linesWrittenBy(split.edit, context.document.lineCount()))
        std::erase(blocking, own);
    EXPECT_EQ(blocking, std::vector<std::int32_t>{2});

    const Proposal both = switchingOff(context, split, blocking);
    EXPECT_EQ(both.words, "split n over tp, row 3 off");
    TableDocument after = context.document;
    ASSERT_TRUE(after.apply(both.edit));
    EXPECT_FALSE(after.lines()[2]->row->enabled);
    EXPECT_TRUE(after.lines()[3]->row->enabled);
    const auto holding = completePlan(index->snapshot(), 4, after.table());
    ASSERT_TRUE(holding);
    EXPECT_FALSE(firstError(*holding));
    // One edit: taking it back gives the first table.
    ASSERT_TRUE(after.apply(inverse(both.edit)));
    EXPECT_EQ(after.text(), context.document.text());
}

TEST(SwitchingOff, LeavesAloneWhatHasNothingInTheWay)
{
    const auto index = indexOf(kModel);
    const GestureContext context = contextOf(index, 4, "mesh tp=4\n");
    Proposal proposal;
    proposal.words = "split";
    proposal.edit =
        appendRows(context.document, readTable("split name:h.1.mlp.c_fc : n over tp\n").table.rows);
    EXPECT_EQ(switchingOff(context, proposal, {}).edit, proposal.edit);
    EXPECT_EQ(switchingOff(context, proposal, {-1, 99}).edit, proposal.edit);
    proposal.refusal = Error{ErrorCode::InvalidInput, "no"};
    EXPECT_EQ(switchingOff(context, proposal, {0}).edit, proposal.edit);
    EXPECT_EQ(switchingOff(context, proposal, {0}).words, "split");
}

} // namespace
} // namespace planloom
