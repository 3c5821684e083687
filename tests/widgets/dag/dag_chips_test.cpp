#include "widgets/dag/dag_chips.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

std::vector<DimensionChip> linearChips()
{
    const auto chip = [](const char *label, bool output, std::int32_t slot, DimensionMark mark) {
        DimensionChip made;
        made.label = label;
        made.output = output;
        made.slot = slot;
        made.mark = mark;
        made.size = 64;
        made.counts = {2, 4, 8, 16, 32, 64};
        return made;
    };
    return {chip("m", false, 0, DimensionMark::Spatial), chip("k+", false, 0, DimensionMark::Reduce),
        chip("n", false, 1, DimensionMark::Spatial), chip("m", true, 0, DimensionMark::Spatial),
        chip("n", true, 0, DimensionMark::Spatial)};
}

TEST(DagChips, InputsStandAtTheTopAndOutputsAtTheBottom)
{
    const auto chips = linearChips();
    const SceneRect node{300, 200, 200, 40};
    const auto placed = placeChips(chips, node, {10, 20, 10, 10, 10}, 1000, 800, {});
    ASSERT_EQ(placed.size(), chips.size());
    for (const auto &chip : placed) {
        SCOPED_TRACE(chips[static_cast<std::size_t>(chip.index)].label);
        if (chips[static_cast<std::size_t>(chip.index)].output) {
            EXPECT_GT(chip.rect.bottom(), node.bottom());
        } else {
            EXPECT_LT(chip.rect.y, node.y);
        }
        EXPECT_EQ(chipAt(placed, chip.rect.x + 1, chip.rect.y + 1), chip.index);
    }
    EXPECT_EQ(chipAt(placed, node.x + 100, node.y + 20), -1);
}

TEST(DagChips, KeepTheirSizeWhateverTheNodes)
{
    for (const double width : {60.0, 90.0, 500.0, 5000.0}) {
        SCOPED_TRACE(width);
        const auto placed =
            placeChips(linearChips(), {100, 100, width, width / 5}, {10, 20, 10, 10, 10}, 9000, 9000, {});
        ASSERT_EQ(placed.size(), 5U);
        for (const auto &chip : placed)
            EXPECT_EQ(chip.rect.height, ChipMetrics{}.height);
        for (std::size_t i = 1; i < placed.size(); ++i)
            EXPECT_FALSE(placed[i].rect.intersects(placed[i - 1].rect));
    }
}

TEST(DagChips, OfANarrowNodeStandInOneBarAboveIt)
{
    const SceneRect node{300, 200, 30, 8};
    const auto placed = placeChips(linearChips(), node, {10, 20, 10, 10, 10}, 1000, 800, {});
    ASSERT_EQ(placed.size(), 5U);
    for (const auto &chip : placed) {
        EXPECT_EQ(chip.rect.y, placed.front().rect.y);
        EXPECT_LE(chip.rect.bottom(), node.y);
    }
}

/// Nodes, badges and handles beside the node stay in sight; only where all is taken does a row cover some.
TEST(DagChips, CoverNothing)
{
    const SceneRect node{300, 200, 120, 40};
    const std::vector<SceneRect> beside{
        {160, 190, 120, 60}, {430, 170, 120, 40}, {250, 150, 60, 20}, {404, 242, 16, 16}, {280, 262, 90, 20}};
    for (const double wide : {10.0, 40.0, 90.0}) {
        const auto placed =
            placeChips(linearChips(), node, {wide, wide, wide, wide, wide}, 1000, 800, {}, beside);
        ASSERT_EQ(placed.size(), 5U);
        for (const auto &chip : placed) {
            EXPECT_FALSE(chip.rect.intersects(node));
            for (const SceneRect &other : beside)
                EXPECT_FALSE(chip.rect.intersects(other)) << wide << " " << chip.rect.x << " " << chip.rect.y;
        }
    }
    // At the window's edge the row goes to the other side.
    for (const double y : {0.0, 360.0}) {
        const SceneRect edge{300, y, 120, 40};
        for (const auto &chip : placeChips(linearChips(), edge, {10, 20, 10, 10, 10}, 1000, 400, {}))
            EXPECT_FALSE(chip.rect.intersects(edge)) << y;
    }
    const std::vector<SceneRect> all{{0, 0, 1000, 800}};
    EXPECT_EQ(placeChips(linearChips(), node, {10, 20, 10, 10, 10}, 1000, 800, {}, all),
        placeChips(linearChips(), node, {10, 20, 10, 10, 10}, 1000, 800, {}));
}

TEST(DagChips, StayInTheWindowWhileTheirNodeReachesIntoIt)
{
    const auto placed = placeChips(linearChips(), {-50, -30, 400, 900}, {10, 20, 10, 10, 10}, 300, 200, {});
    ASSERT_EQ(placed.size(), 5U);
    for (const auto &chip : placed) {
        EXPECT_GE(chip.rect.y, 0);
        EXPECT_LE(chip.rect.bottom(), 200);
    }
    EXPECT_TRUE(placeChips(linearChips(), {400, 10, 50, 50}, {10, 20, 10, 10, 10}, 300, 200, {}).empty());
}

TEST(DagChips, SaySumAndLock)
{
    auto chips = linearChips();
    EXPECT_EQ(chipText(chips[0]), "m");
    EXPECT_EQ(chipText(chips[1]), "Σ k+");
    chips[1].meaning = "hidden";
    EXPECT_EQ(chipText(chips[1]), "Σ k+ hidden");
    EXPECT_FALSE(isLocked(chips[0]));
    chips[0].mark = DimensionMark::Frozen;
    EXPECT_TRUE(isLocked(chips[0]));
}

TEST(Pulling, GoesThroughTheCountsWithTheDistance)
{
    const std::vector<std::int32_t> counts{2, 4, 8, 16};
    EXPECT_EQ(snapParts(0, counts, {}), 1);
    EXPECT_EQ(snapParts(kPullStart, counts, {}), 1);
    EXPECT_EQ(snapParts(kPullStart + 1, counts, {}), 2);
    EXPECT_EQ(snapParts(kPullStart + kPullStep + 1, counts, {}), 4);
    EXPECT_EQ(snapParts(kPullStart + 2 * kPullStep + 1, counts, {}), 8);
    EXPECT_EQ(snapParts(10000, counts, {}), 16);
    EXPECT_EQ(snapParts(10000, {}, {}), 1);
}

TEST(Pulling, RestsLongerAtTheSizeOfAMeshAxis)
{
    const std::vector<std::int32_t> counts{2, 4, 8, 16};
    const std::vector<MeshAxis> mesh{{"tp", 4}};
    const auto widthOf = [&](std::int32_t parts, const std::vector<MeshAxis> &axes) {
        int width = 0;
        for (int distance = 0; distance < 400; ++distance)
            width += snapParts(distance, counts, axes) == parts ? 1 : 0;
        return width;
    };
    EXPECT_GT(widthOf(4, mesh), widthOf(4, {}));
    EXPECT_EQ(widthOf(2, mesh), widthOf(2, {}));
}

TEST(Pulling, NeverGoesBackWithMoreDistance)
{
    const std::vector<std::int32_t> counts{2, 3, 4, 6, 8, 12, 24};
    std::int32_t last = 1;
    for (double distance = 0; distance < 500; distance += 0.5) {
        const auto parts = snapParts(distance, counts, {{"tp", 4}, {"dp", 6}});
        EXPECT_GE(parts, last);
        last = parts;
    }
    EXPECT_EQ(last, 24);
}

TEST(Stepping, FindsTheNextCountFromAnyNumber)
{
    const std::vector<std::int32_t> counts{2, 4, 8};
    EXPECT_EQ(stepParts(2, counts, 1), 4);
    EXPECT_EQ(stepParts(3, counts, 1), 4);
    EXPECT_EQ(stepParts(3, counts, -1), 2);
    EXPECT_EQ(stepParts(8, counts, 1), 8);
    EXPECT_EQ(stepParts(2, counts, -1), 2);
    EXPECT_EQ(stepParts(1, counts, 2), 4);
    EXPECT_EQ(stepParts(5, {}, 1), 5);
}

TEST(ReplicaCounts, AreDivisorsOfTheDevicesAndAxes)
{
    EXPECT_EQ(replicaCounts(8, {{"tp", 4}}), (std::vector<std::int32_t>{2, 4, 8}));
    EXPECT_EQ(replicaCounts(6, {{"pp", 5}}), (std::vector<std::int32_t>{2, 3, 5, 6}));
    EXPECT_EQ(replicaCounts(1, {}), (std::vector<std::int32_t>{2, 4, 8}));
}

TEST(Slices, CoverTheDimensionInOrder)
{
    EXPECT_EQ(
        sliceRanges(768, 4, 16), (std::vector<SliceRange>{{0, 192}, {192, 384}, {384, 576}, {576, 768}}));
    EXPECT_EQ(sliceRanges(64, 32, 2), (std::vector<SliceRange>{{0, 2}, {2, 4}}));
}

TEST(Slices, AreDrawnApartAndInTheWindow)
{
    for (const bool below : {true, false}) {
        const SceneRect node{20, below ? 100.0 : 400.0, 120, 30};
        const auto cells = placeSlices(node, 16, below, 50, 20, 600, 500);
        ASSERT_EQ(cells.size(), 16U);
        for (std::size_t i = 0; i < cells.size(); ++i) {
            EXPECT_GE(cells[i].x, 0);
            EXPECT_LE(cells[i].right(), 600);
            EXPECT_FALSE(cells[i].intersects(node));
            for (std::size_t other = 0; other < i; ++other)
                EXPECT_FALSE(cells[i].intersects(cells[other]));
        }
    }
    EXPECT_TRUE(placeSlices({0, 0, 10, 10}, 0, true, 50, 20, 600, 500).empty());
}

TEST(Tag, IsNeverCutOff)
{
    for (double x = 0; x <= 800; x += 40) {
        for (double y = 0; y <= 600; y += 40) {
            const auto tag = placeTag(x, y, 300, 60, 800, 600);
            EXPECT_GE(tag.x, 0);
            EXPECT_GE(tag.y, 0);
            EXPECT_LE(tag.right(), 800);
            EXPECT_LE(tag.bottom(), 600);
            EXPECT_FALSE(tag.contains(x, y)) << "it would hide what it speaks of";
        }
    }
}

} // namespace
} // namespace planloom
