#include "widgets/timeline/timeline_colours.h"

#include "engine/analyse/statistics.h"
#include "tests/widgets/timeline/scene_for_tests.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom {
namespace {

int distance(const QColor &a, const QColor &b)
{
    return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue());
}

/// A stretch of pixels over spans [row, row + count).
DrawRecord stretch(std::size_t row, std::int32_t count)
{
    return {0, 1, row, count, 1, true};
}

TEST(TimelineColours, OfAStretchAreMixedInProportion)
{
    const Palette &palette = lightPalette();
    // One device: 8 spans of micro-batch 0, then 8 of micro-batch 1.
    const TimelineSceneSnapshot scene = sceneForTests({.devices = 1, .microBatches = 2, .operators = 4});
    const QColor zero = microBatchColour(palette, 0);
    const QColor one = microBatchColour(palette, 1);
    const auto colour = [&](std::size_t row, std::int32_t count) {
        return runColour(palette, *scene, TimelineColouring::MicroBatch, stretch(row, count));
    };
    EXPECT_LE(distance(colour(0, 8), zero), 3);
    EXPECT_LE(distance(colour(8, 8), one), 3);
    EXPECT_LE(distance(colour(0, 16), mixed(zero, one, 0.5)), 6);
    EXPECT_LE(distance(colour(7, 4), mixed(zero, one, 0.75)), 6); // few spans are all looked at
    EXPECT_LE(distance(colour(3, 6), mixed(zero, one, 1.0 / 6)), 6);
    // Of many some are: the share of one of them may be missed.
    const int step = distance(mixed(zero, one, 0), mixed(zero, one, 1.0 / 6));
    EXPECT_LE(distance(colour(6, 8), mixed(zero, one, 0.75)), step + 6);
    EXPECT_LE(distance(colour(4, 8), mixed(zero, one, 0.5)), 6);
}

TEST(TimelineColours, OfDirectionsAreExactHoweverManySpansThereAre)
{
    const Palette &palette = lightPalette();
    const TimelineSceneSnapshot scene = sceneForTests({.devices = 1, .microBatches = 1, .operators = 5000});
    const QColor all = runColour(palette, *scene, TimelineColouring::Direction, stretch(0, 10'000));
    EXPECT_LE(distance(all,
                  mixed(directionColour(palette, Direction::Forward),
                      directionColour(palette, Direction::Backward), 0.5)),
        6);
}

/// Updates belong to no micro-batch, and are not coloured as its first.
TEST(TimelineColours, OfUpdatesAreThoseOfTheOptimizerAmongMicroBatches)
{
    const Palette &palette = lightPalette();
    const TimelineSceneSnapshot scene = sceneOfOneKind(SegmentKind::Optimizer);
    const QColor update = directionColour(palette, Direction::Optimizer);
    EXPECT_EQ(computeColour(palette, *scene, TimelineColouring::MicroBatch, 0), update);
    EXPECT_LE(distance(runColour(palette, *scene, TimelineColouring::MicroBatch, stretch(0, 8)), update), 3);
    EXPECT_EQ(blockColour(palette, scene->lanes.front(), TimelineColouring::MicroBatch,
                  scene->lanes.front().blocks.front()),
        update);
    EXPECT_GT(distance(update, microBatchColour(palette, 0)), 60);
}

/// A block, its spans, and a stretch of many of them are painted as one pass, of whatever kind their segment
/// is.
TEST(TimelineColours, OfAPassAreTheSameNearAndFar)
{
    const Palette &palette = lightPalette();
    for (const auto &[kind, direction] : {std::pair{SegmentKind::Prologue, Direction::Forward},
             std::pair{SegmentKind::Forward, Direction::Forward},
             std::pair{SegmentKind::Backward, Direction::Backward},
             std::pair{SegmentKind::Reduce, Direction::Optimizer},
             std::pair{SegmentKind::Optimizer, Direction::Optimizer}}) {
        const TimelineSceneSnapshot scene = sceneOfOneKind(kind);
        const QColor expected = directionColour(palette, direction);
        EXPECT_EQ(directionOf(kind), direction);
        EXPECT_LE(distance(computeColour(palette, *scene, TimelineColouring::Direction, 0), expected), 3)
            << nameOf(kind);
        EXPECT_LE(
            distance(runColour(palette, *scene, TimelineColouring::Direction, stretch(0, 8)), expected), 3)
            << nameOf(kind);
        EXPECT_LE(distance(blockColour(palette, scene->lanes.front(), TimelineColouring::Direction,
                               scene->lanes.front().blocks.front()),
                      expected),
            3)
            << nameOf(kind);
    }
}

TEST(TimelineColours, DecidedByIsTheLeastOfABlocksOperators)
{
    constexpr auto kDefault = DecidedBy::Default;
    constexpr auto kImplied = DecidedBy::Implied;
    constexpr auto kRow = DecidedBy::Row;
    const Palette &palette = lightPalette();
    const TimelineSceneSnapshot scene = sceneForTests({.devices = 1,
        .microBatches = 2,
        .operators = 3,
        .decidedBy = {kRow, kRow, kRow, kRow, kImplied, kRow}});
    const auto &blocks = scene->lanes.front().blocks;
    ASSERT_EQ(blocks.size(), 4u); // F0 B0 F1 B1
    for (const TimelineBlock &block : blocks) {
        const DecidedBy expected = block.kind == SegmentKind::Forward ? kRow : kImplied;
        EXPECT_EQ(block.decidedBy, expected);
        EXPECT_EQ(blockColour(palette, scene->lanes.front(), TimelineColouring::DecidedBy, block),
            decidedByColour(palette, expected));
    }
    EXPECT_EQ(scene->decidedByOf(0), kRow);
    EXPECT_EQ(scene->decidedByOf(4), kImplied);
    EXPECT_EQ(
        computeColour(palette, *scene, TimelineColouring::DecidedBy, 4), decidedByColour(palette, kImplied));
    // One free operator makes its block free; where nothing is known, nothing is held.
    const auto free =
        sceneForTests({.devices = 1, .operators = 3, .decidedBy = {kRow, kDefault, kRow, kRow, kRow, kRow}});
    EXPECT_EQ(free->lanes.front().blocks.front().decidedBy, kDefault);
    const auto unknown = sceneForTests({.devices = 1});
    EXPECT_EQ(unknown->lanes.front().blocks.front().decidedBy, kDefault);
    EXPECT_EQ(unknown->decidedByOf(0), kDefault);
    EXPECT_NE(decidedByColour(palette, kRow), decidedByColour(palette, kImplied));
}

} // namespace
} // namespace planloom
