#include "widgets/history/history_lanes.h"

#include "widgets/common/delta.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace planloom {
namespace {

/// Adds a step that sets a value.
StepId addStep(History &history, const std::string &words)
{
    const auto before = history.state().values.find("v");
    ValueChange change{"v", std::nullopt, words};
    if (before != history.state().values.end())
        change.before = before->second;
    return *history.record(words, {{}, {change}}, 1000);
}

/// The tree as text, a row a line: lane by lane "*" for the step (">" current, "o" to be redone, "."
/// elsewhere), "|" for lines that pass, and behind it the lanes of lines that leave.
std::string drawn(const HistoryLanes &lanes)
{
    std::string text;
    for (std::size_t r = 0; r < lanes.rowCount(); ++r) {
        const LaneRow row = lanes.row(r);
        std::string line(static_cast<std::size_t>(lanes.laneCount()), ' ');
        for (const BranchLine &through : row.through)
            line[static_cast<std::size_t>(through.lane)] = '|';
        line[static_cast<std::size_t>(row.lane)] = "*>o."[static_cast<int>(lanes.placeOf(r))];
        for (const BranchLine &fork : row.forks)
            line += "\\" + std::to_string(fork.lane);
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    return text;
}

TEST(HistoryLanes, OfAnEmptyHistoryAreTheBeginning)
{
    const HistoryLanes lanes{History()};
    EXPECT_EQ(drawn(lanes), ">\n");
    EXPECT_EQ(lanes.laneCount(), 1);
}

TEST(HistoryLanes, MarkWhatIsToBeRedone)
{
    History history;
    addStep(history, "a");
    addStep(history, "b");
    addStep(history, "c");
    history.undo();
    history.undo();
    EXPECT_EQ(drawn(HistoryLanes(history)), "*\n>\no\no\n");
}

TEST(HistoryLanes, ABranchGetsALaneOfItsOwnFromItsFork)
{
    History history;
    addStep(history, "a");
    addStep(history, "b");
    history.undo();
    addStep(history, "c"); // behind the head of main: a new branch
    EXPECT_EQ(drawn(HistoryLanes(history)), "*\n* \\1\n.|\n >\n");
    ASSERT_TRUE(history.switchBranch(0));
    addStep(history, "d");
    EXPECT_EQ(drawn(HistoryLanes(history)), "*\n* \\1\n*|\n|.\n>\n");
}

TEST(HistoryLanes, BranchesThatDoNotMeetShareALane)
{
    History history;
    const StepId a = addStep(history, "a");
    addStep(history, "b");
    ASSERT_TRUE(history.goTo(a));
    addStep(history, "c");
    ASSERT_TRUE(history.switchBranch(0));
    const StepId d = addStep(history, "d");
    addStep(history, "e");
    ASSERT_TRUE(history.goTo(d));
    addStep(history, "f");
    EXPECT_EQ(drawn(HistoryLanes(history)), "*\n* \\1\n*|\n|.\n* \\1\n.|\n >\n");
    // Branch 2 grows over the rows of branch 3: now they need a lane each.
    ASSERT_TRUE(history.switchBranch(1));
    addStep(history, "g");
    EXPECT_EQ(HistoryLanes(history).laneCount(), 3);
}

TEST(HistoryLanes, OfABranchWithoutStepsAreNone)
{
    History history;
    addStep(history, "a");
    history.addBranch("try");
    const HistoryLanes lanes(history);
    EXPECT_EQ(lanes.lines().size(), 1U);
    EXPECT_EQ(drawn(lanes), "*\n>\n");
}

TEST(HistoryLanes, NeverLetTwoLinesMeet)
{
    std::mt19937 random(7);
    History history;
    for (int i = 0; i < 400; ++i) {
        if (random() % 4 == 0) {
            ASSERT_TRUE(history.goTo(static_cast<StepId>(random() % (history.steps().size() + 1))));
        }
        addStep(history, std::to_string(i));
    }
    const HistoryLanes lanes(history);
    EXPECT_GT(lanes.laneCount(), 3);
    for (std::size_t r = 0; r < lanes.rowCount(); ++r) {
        const LaneRow row = lanes.row(r);
        std::vector<int> taken(static_cast<std::size_t>(lanes.laneCount()), 0);
        ++taken[static_cast<std::size_t>(row.lane)];
        for (const BranchLine &line : row.through)
            ++taken[static_cast<std::size_t>(line.lane)];
        for (const BranchLine &line : row.forks)
            ++taken[static_cast<std::size_t>(line.lane)];
        for (const int count : taken)
            ASSERT_LE(count, 1) << "row " << r;
        // Each step's parent is on its own line, or is where its line leaves.
        if (r == 0)
            continue;
        const auto parent = static_cast<std::size_t>(history.steps()[r - 1].parent);
        if (lanes.branchOf(parent) != row.branch) {
            const LaneRow from = lanes.row(parent);
            ASSERT_TRUE(std::any_of(from.forks.begin(), from.forks.end(),
                [&](const BranchLine &line) { return line.branch == row.branch && line.lane == row.lane; }));
        }
    }
}

TEST(Delta, SaysWhatADifferenceMeans)
{
    EXPECT_EQ(judged(100, 94, 1e-9), Change::Better);
    EXPECT_EQ(judged(100, 106, 1e-9), Change::Worse);
    EXPECT_EQ(judged(100, 106, 1e-9, false), Change::Better);
    EXPECT_EQ(judged(100, 100.4, 1e-9), Change::Same); // below half a percent
    EXPECT_EQ(judged(1e-9, 2e-9, 1e-9), Change::Same); // one tick
    EXPECT_EQ(judged(0, 1, 1e-9), Change::Worse);
    EXPECT_EQ(percentText(100, 93.9), "\u22126.1%");
    EXPECT_EQ(percentText(100, 103.2), "+3.2%");
    EXPECT_EQ(percentText(100, 350), "+250%");
    EXPECT_EQ(percentText(100, 100.01), "0.0%");
    EXPECT_EQ(percentText(0, 0), "0.0%");
    EXPECT_EQ(percentText(0, 5), "new");
}

} // namespace
} // namespace planloom
