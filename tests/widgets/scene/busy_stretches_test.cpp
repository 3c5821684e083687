#include "widgets/scene/busy_stretches.h"

#include <gtest/gtest.h>

#include <utility>

namespace planloom {
namespace {

/// A stream of spans [begin, end), with its sums.
struct Stream {
    SpanColumns spans{};
    std::vector<BusyBefore> before{};
};

Stream streamOf(const std::vector<std::pair<std::int64_t, std::int64_t>> &times)
{
    Stream stream;
    BusyBefore sum;
    for (const auto &[begin, end] : times) {
        stream.spans.start.push_back(begin);
        stream.spans.duration.push_back(end - begin);
        stream.before.push_back(sum);
        sum.busy += end - begin;
    }
    stream.before.push_back(sum);
    return stream;
}

std::vector<BusyStretch> of(const Stream &stream, LaneRows rows, const TimeAxis &axis)
{
    return busyStretches(stream.spans, stream.before, rows, axis, 100, 16);
}

TEST(BusyStretches, AreCutWhereTheLaneIsIdleForLong)
{
    //  0    20      50  60 64   100     10 ns a pixel
    //  |####|-------|###|-|#####|
    const Stream stream = streamOf({{0, 200}, {500, 600}, {640, 1000}});
    EXPECT_EQ(of(stream, {0, 3}, {0, 10}), (std::vector<BusyStretch>{{0, 20}, {50, 100}}));
    EXPECT_EQ(of(stream, {1, 3}, {0, 10}), (std::vector<BusyStretch>{{50, 100}}));
    EXPECT_EQ(of(stream, {2, 2}, {0, 10}), std::vector<BusyStretch>{});
}

TEST(BusyStretches, AreOneWherePausesAddUpButAreShort)
{
    const Stream stream = streamOf({{0, 100}, {200, 300}, {400, 500}, {600, 1000}});
    EXPECT_EQ(of(stream, {0, 4}, {0, 10}), (std::vector<BusyStretch>{{0, 100}}));
    // Seen from near, each pause is long.
    EXPECT_EQ(of(stream, {0, 3}, {0, 5}), (std::vector<BusyStretch>{{0, 20}, {40, 60}, {80, 100}}));
}

TEST(BusyStretches, OfAScrolledAxisLieWhereTheSpansAre)
{
    const Stream stream = streamOf({{0, 200}, {500, 600}});
    EXPECT_EQ(of(stream, {0, 2}, {100, 10}), (std::vector<BusyStretch>{{-10, 10}, {40, 50}}));
}

} // namespace
} // namespace planloom
