#include "widgets/common/chores.h"

#include <QtCore/QCoreApplication>

#include <gtest/gtest.h>

#include <string>

namespace planloom {
namespace {

class ChoresTest : public testing::Test
{
protected:
    void settle()
    {
        for (int i = 0; i < 100 && !m_chores.isEmpty(); ++i)
            QCoreApplication::processEvents();
    }
    std::function<void()> writes(char letter)
    {
        return [this, letter] { m_done += letter; };
    }

    int m_count = 1;
    char m_name[5] = "test";
    char *m_arguments[2] = {m_name, nullptr};
    QCoreApplication m_application{m_count, m_arguments};
    Chores m_chores;
    std::string m_done;
};

TEST_F(ChoresTest, AreDoneInTheirOrderAndLater)
{
    m_chores.add("a", writes('a'));
    m_chores.add("b", writes('b'));
    EXPECT_EQ(m_done, "");
    settle();
    EXPECT_EQ(m_done, "ab");
}

TEST_F(ChoresTest, TheNewestOfANameIsDoneInThePlaceOfTheFirst)
{
    m_chores.add("a", writes('a'));
    m_chores.add("b", writes('b'));
    m_chores.add("a", writes('A'));
    settle();
    EXPECT_EQ(m_done, "Ab");
}

TEST_F(ChoresTest, CanBeDoneAtOnceOrNotAtAll)
{
    m_chores.add("a", writes('a'));
    m_chores.add("b", writes('b'));
    m_chores.add("c", writes('c'));
    m_chores.finish("b");
    EXPECT_EQ(m_done, "b");
    m_chores.drop("a");
    m_chores.finishAll();
    EXPECT_EQ(m_done, "bc");
    EXPECT_TRUE(m_chores.isEmpty());
    settle();
    EXPECT_EQ(m_done, "bc");
}

TEST_F(ChoresTest, MayAskForMore)
{
    m_chores.add("a", [this] { m_chores.add("b", writes('b')); });
    settle();
    EXPECT_EQ(m_done, "b");
}

} // namespace
} // namespace planloom
