#include "engine/schedule/search/block_starts.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

Placement twoStages()
{
    Placement placement{.devices = 2, .memoryLimit = {2, 2}};
    placement.blocks = {{0, "forward", {0}, 0, 1, 1, false}, {1, "forward", {1}, 0, 1, 1, false},
        {2, "backward", {1}, 0, 2, -1, false}, {3, "backward", {0}, 0, 2, -1, false}};
    placement.edges = {{0, 1, 0}, {1, 2, 0}, {2, 3, 0}};
    return placement;
}

const std::vector<BlockStart> kValid{
    {0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 0, 4}, {0, 1, 1}, {1, 1, 4}, {2, 1, 5}, {3, 1, 7}};

TEST(ViolationsOf, AreNoneOfAValidSchedule)
{
    EXPECT_TRUE(violationsOf(twoStages(), 2, kValid).empty());
    const ScheduleFigures figures = figuresOf(twoStages(), kValid);
    EXPECT_EQ(figures.makespan, 9);
    EXPECT_EQ(figures.peakMemory, (std::vector<std::int64_t>{2, 1}));
    EXPECT_EQ(figures.busy, (std::vector<std::int64_t>{6, 6}));
    EXPECT_EQ(figures.inFlight, 2);
}

TEST(ViolationsOf, NamesBothBlocksOfADependency)
{
    auto starts = kValid;
    starts[1].start = 0;
    const auto found = violationsOf(twoStages(), 2, starts);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].kind, ViolationKind::Dependency);
    EXPECT_EQ(found[0].first, (BlockStart{0, 0, 0}));
    EXPECT_EQ(found[0].second, (BlockStart{1, 0, 0}));
    EXPECT_EQ(found[0].text,
        "forward block 1 of micro-batch 0 starts at 0 and waits for forward block 0 of micro-batch 0, which "
        "ends at 1");
}

TEST(ViolationsOf, NamesBothBlocksOfAnOverlap)
{
    auto starts = kValid;
    starts[5].start = 3;
    const auto found = violationsOf(twoStages(), 2, starts);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].kind, ViolationKind::Overlap);
    EXPECT_EQ(found[0].device, 1);
    EXPECT_EQ(found[0].first, (BlockStart{2, 0, 2}));
    EXPECT_EQ(found[0].second, (BlockStart{1, 1, 3}));
}

TEST(ViolationsOf, NamesWhatTakesTooMuchAndWhatWouldHaveToComeFirst)
{
    Placement placement = twoStages();
    placement.memoryLimit = {1, 1};
    const auto found = violationsOf(placement, 2, kValid);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].kind, ViolationKind::Memory);
    EXPECT_EQ(found[0].device, 0);
    EXPECT_EQ(found[0].first, (BlockStart{0, 1, 1}));
    EXPECT_EQ(found[0].second, (BlockStart{3, 0, 4}));
}

TEST(ViolationsOf, GivesBackAtTheEndWhereABlockSaysSo)
{
    Placement placement = twoStages();
    placement.memoryLimit = {1, 1};
    const std::vector<BlockStart> oneByOne{
        {0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 0, 4}, {0, 1, 6}, {1, 1, 7}, {2, 1, 8}, {3, 1, 10}};
    placement.blocks[3].givesBackAtEnd = true;
    EXPECT_TRUE(violationsOf(placement, 2, oneByOne).empty()); // given back first at 6
    placement.blocks[3].queue = 1;
    auto earlier = oneByOne;
    for (std::size_t i = 4; i < earlier.size(); ++i)
        --earlier[i].start;
    const auto found = violationsOf(placement, 2, earlier);
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].kind, ViolationKind::Memory);
    placement.blocks[3].givesBackAtEnd = false;
    EXPECT_TRUE(violationsOf(placement, 2, earlier).empty());
}

TEST(ViolationsOf, NamesWhatIsMissingAndWhatStartsTwice)
{
    auto starts = kValid;
    starts[7] = starts[6];
    const auto found = violationsOf(twoStages(), 2, starts);
    ASSERT_EQ(found.size(), 2);
    EXPECT_EQ(found[0].text, "backward block 2 of micro-batch 1 starts twice");
    EXPECT_EQ(found[1].text, "backward block 3 of micro-batch 1 never starts");
}

} // namespace
} // namespace planloom
