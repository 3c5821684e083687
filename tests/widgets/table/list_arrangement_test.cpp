#include <QtCore/QCoreApplication>

#include "widgets/table/id_index.h"
#include "widgets/table/list_arrangement.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace planloom;

namespace {

constexpr const char *kArrangedRows = "mesh dp=2 tp=2\n"
                                      "# heavy\n"
                                      "split Layer:1 : batch over dp\n"
                                      "off place layer:0 : devices 0 @gesture\n"
                                      "prefer 2 split layer:0 : batch over dp  # Light\n"
                                      "nonsense\n";

std::vector<int> linesOf(const ConstraintTableModel &rows, const ArrangedRows &shown)
{
    std::vector<int> lines;
    for (const auto id : shown.ids) {
        if (id != 0 && (id & ListArrangement::kHeading) == 0)
            lines.push_back(rows.lineAt(rows.rowOfKey(id)));
    }
    return lines;
}

class Arranging : public testing::Test
{
protected:
    Arranging() { m_rows.setDocument(TableDocument(kArrangedRows)); }
    std::vector<int> lines(const ListArrangement &wanted) const
    {
        return linesOf(m_rows, arranged(m_rows, wanted));
    }

    int m_count = 1;
    char m_name[5] = "test";
    char *m_arguments[2] = {m_name, nullptr};
    QCoreApplication m_application{m_count, m_arguments}; // the model prepares rows while idle
    ConstraintTableModel m_rows;
};

TEST(IdIndexTest, FindsEachIdWhereItStands)
{
    const std::uint64_t far = std::uint64_t{1} << 63;
    const std::vector<std::uint64_t> ids{70'000, 70'003, far, 5, 0, 70'001, 9'000'000, 70'003};
    const IdIndex index(ids);
    EXPECT_EQ(index.find(70'000), 0);
    EXPECT_EQ(index.find(70'003), 1) << "the first of equal ones";
    EXPECT_EQ(index.find(far), 2);
    EXPECT_EQ(index.find(5), 3);
    EXPECT_EQ(index.find(0), 4);
    EXPECT_EQ(index.find(70'001), 5);
    EXPECT_EQ(index.find(9'000'000), 6);
    EXPECT_EQ(index.find(70'002), -1);
    EXPECT_EQ(index.find(6), -1);
    EXPECT_FALSE(IdIndex{}.contains(0));
    EXPECT_FALSE(IdIndex({0}).contains(1));
    EXPECT_TRUE(IdIndex({0}).contains(0));
}

TEST_F(Arranging, IsTheTextsOrderIfNothingIsAsked)
{
    EXPECT_EQ(lines({}), (std::vector<int>{0, 2, 3, 4, 5}));
    EXPECT_EQ(arranged(m_rows, {}).ids.back(), 0u) << "the row that is not there yet is the last";
    EXPECT_TRUE(ListArrangement{}.isInTextOrder());
}

TEST_F(Arranging, SortsByTextsAndNumbersAndKeepsEqualOnesAsTheyStand)
{
    ListArrangement wanted;
    wanted.sortColumn = static_cast<int>(TableColumn::Selector);
    EXPECT_EQ(lines(wanted), (std::vector<int>{0, 5, 3, 4, 2})) << "case does not count";
    wanted.sortOrder = Qt::DescendingOrder;
    EXPECT_EQ(lines(wanted), (std::vector<int>{2, 3, 4, 0, 5}));
    wanted.sortColumn = static_cast<int>(TableColumn::On);
    EXPECT_EQ(lines(wanted), (std::vector<int>{3, 0, 2, 4, 5}));
    wanted.sortColumn = static_cast<int>(TableColumn::Strength);
    wanted.sortOrder = Qt::AscendingOrder;
    EXPECT_EQ(lines(wanted).front(), 4);
    wanted.sortColumn = static_cast<int>(TableColumn::Note);
    wanted.sortOrder = Qt::DescendingOrder;
    EXPECT_EQ(lines(wanted), (std::vector<int>{4, 2, 0, 3, 5})) << "remarks above a row are its note";
}

TEST_F(Arranging, FiltersByAllWordsInAnyCell)
{
    ListArrangement wanted;
    wanted.words = filterWords(QStringLiteral("LAYER:0  split"));
    EXPECT_EQ(lines(wanted), (std::vector<int>{4}));
    wanted.words = filterWords(QStringLiteral("heavy dp"));
    EXPECT_EQ(lines(wanted), (std::vector<int>{2}));
    wanted.words = filterWords(QStringLiteral("gesture"));
    EXPECT_EQ(lines(wanted), (std::vector<int>{3}));
}

TEST_F(Arranging, PutsGroupsUnderHeadingsAndCountsCollapsedOnes)
{
    ListArrangement wanted;
    wanted.grouping = RowGrouping::Origin;
    wanted.collapsed = {0};
    const ArrangedRows shown = arranged(m_rows, wanted);
    EXPECT_EQ(linesOf(m_rows, shown), (std::vector<int>{3}));
    EXPECT_EQ(std::count_if(shown.ids.begin(), shown.ids.end(),
                  [](auto id) { return (id & ListArrangement::kHeading) != 0; }),
        2);
    EXPECT_EQ(shown.groupSizes, (std::vector<int>{4, 1}));
    EXPECT_EQ(titleOfGroup(RowGrouping::Origin, 1), QStringLiteral("gesture"));
}

TEST_F(Arranging, ShowsChosenRowsAloneOrFirst)
{
    ListArrangement wanted;
    wanted.chosen = {m_rows.keyAt(m_rows.rowOfLine(4)), m_rows.keyAt(m_rows.rowOfLine(3))};
    wanted.chosenFirst = true;
    EXPECT_EQ(lines(wanted), (std::vector<int>{3, 4, 0, 2, 5}));
    EXPECT_FALSE(wanted.isInTextOrder());
    wanted.chosenOnly = true;
    EXPECT_EQ(lines(wanted), (std::vector<int>{3, 4}));
}

} // namespace
