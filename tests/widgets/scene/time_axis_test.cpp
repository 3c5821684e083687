#include "widgets/scene/time_axis.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

TEST(TimeAxis, MapsTimeToPixelsAndBack)
{
    const TimeAxis axis{500, 20};
    EXPECT_DOUBLE_EQ(axis.xOf(500), 0);
    EXPECT_DOUBLE_EQ(axis.xOf(700), 10);
    EXPECT_DOUBLE_EQ(axis.timeAt(axis.xOf(1234)), 1234);
}

TEST(TimeAxis, ZoomKeepsTheTimeUnderThePointer)
{
    std::mt19937 random(3);
    std::uniform_real_distribution<double> share(0.3, 0.7);
    for (int trial = 0; trial < 200; ++trial) {
        const double extent = 1e9;
        const TimeAxis axis{share(random) * 0.5 * extent, 1000 + 10000 * share(random)};
        const double x = 1000 * share(random);
        const TimeAxis closer = zoomed(axis, 1.3, x, extent, 1000);
        EXPECT_NEAR(closer.timeAt(x), axis.timeAt(x), 1e-3);
        EXPECT_LT(closer.nanosecondsPerPixel, axis.nanosecondsPerPixel);
    }
}

TEST(TimeAxis, ZoomHasLimits)
{
    TimeAxis axis = fitted(1e6, 1000);
    for (int i = 0; i < 100; ++i)
        axis = zoomed(axis, 2, 400, 1e6, 1000);
    EXPECT_DOUBLE_EQ(axis.nanosecondsPerPixel, 0.5);
    for (int i = 0; i < 100; ++i)
        axis = zoomed(axis, 0.5, 400, 1e6, 1000);
    EXPECT_NEAR(axis.xOf(1e6) - axis.xOf(0), 125, 1);
}

TEST(TimeAxis, FittedShowsAllOfTheStep)
{
    const TimeAxis axis = fitted(62.7e6, 800);
    EXPECT_DOUBLE_EQ(axis.xOf(0), 0);
    EXPECT_LT(axis.xOf(62.7e6), 800);
    EXPECT_GT(axis.xOf(62.7e6), 770);
}

TEST(TimeAxis, ClampedNeverLosesTheStep)
{
    for (const double origin : {-1e12, -10.0, 0.0, 5e5, 1e12}) {
        const TimeAxis axis = clamped({origin, 100}, 1e6, 1000);
        EXPECT_LT(axis.xOf(0), 1000);
        EXPECT_GT(axis.xOf(1e6), 0);
    }
}

TEST(TimeAxis, TicksAreRoundAndFarEnoughApart)
{
    const TimeTicks ticks = ticksOf(fitted(62.7e6, 1000), 1000, 90);
    EXPECT_EQ(ticks.unit, "ms");
    std::vector<std::string> labels;
    double last = -1e9;
    for (const TimeTick &tick : ticks.ticks) {
        if (tick.label.empty())
            continue;
        labels.push_back(tick.label);
        const double x = fitted(62.7e6, 1000).xOf(tick.nanoseconds);
        EXPECT_GE(x - last, 90);
        last = x;
    }
    EXPECT_EQ(labels, (std::vector<std::string>{"0", "10", "20", "30", "40", "50", "60"}));
}

TEST(TimeAxis, TicksOfEveryZoomAreFewAndAscend)
{
    for (double scale = 0.5; scale < 1e9; scale *= 3.1) {
        const TimeTicks ticks = ticksOf({1e6, scale}, 1000, 90);
        EXPECT_LE(ticks.ticks.size(), 80u);
        for (std::size_t i = 1; i < ticks.ticks.size(); ++i)
            EXPECT_LT(ticks.ticks[i - 1].nanoseconds, ticks.ticks[i].nanoseconds);
    }
}

} // namespace
} // namespace planloom
