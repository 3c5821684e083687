#include "widgets/scene/timeline_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace planloom {
namespace {

/// A stream of spans with random lengths and pauses, and its sums.
struct RandomStream {
    SpanColumns spans{};
    std::vector<BusyBefore> before{};
    LaneRows rows{};
};

RandomStream randomStream(std::mt19937 &random, std::size_t count)
{
    RandomStream stream;
    std::int64_t now = static_cast<std::int64_t>(random() % 50);
    BusyBefore sum;
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t length = random() % 8 == 0 ? 200 + random() % 2000 : 1 + random() % 40;
        stream.spans.start.push_back(now);
        stream.spans.duration.push_back(length);
        stream.before.push_back(sum);
        sum.busy += length;
        now += length + (random() % 3 == 0 ? static_cast<std::int64_t>(random() % 300) : 0);
    }
    stream.before.push_back(sum);
    stream.rows = {0, count};
    return stream;
}

/// Busy pixels in [x, x + 1): of the records, and by brute force of the spans.
double painted(const std::vector<DrawRecord> &records, double x)
{
    double busy = 0;
    for (const DrawRecord &record : records)
        busy += std::max(0.0, std::min(record.x1, x + 1) - std::max(record.x0, x)) * record.busy;
    return busy;
}

double trulyBusy(const RandomStream &stream, const TimeAxis &axis, double x)
{
    double busy = 0;
    for (std::size_t row = 0; row < stream.spans.size(); ++row) {
        const double x0 = axis.xOf(static_cast<double>(stream.spans.start[row]));
        const double x1 = axis.xOf(static_cast<double>(stream.spans.start[row] + stream.spans.duration[row]));
        busy += std::max(0.0, std::min(x1, x + 1) - std::max(x0, x));
    }
    return busy;
}

TEST(FoldSpans, KeepsTheBusyTimeOfEveryPixelColumn)
{
    std::mt19937 random(11);
    for (int trial = 0; trial < 120; ++trial) {
        SCOPED_TRACE(testing::Message() << "trial " << trial);
        const RandomStream stream = randomStream(random, 1 + random() % 400);
        const double end = static_cast<double>(stream.spans.start.back() + stream.spans.duration.back());
        const double width = 200 + random() % 300;
        TimeAxis axis = fitted(end, width);
        if (trial % 2 == 1)
            axis = {end * (random() % 100) / 100, axis.nanosecondsPerPixel / (1 + random() % 50)};
        std::vector<DrawRecord> records;
        foldSpans(stream.spans, stream.before, stream.rows, axis, width, records);
        double previous = -1e18;
        for (const DrawRecord &record : records) {
            EXPECT_GE(record.x0, previous - 1e-9); // nothing is painted twice
            EXPECT_GT(record.x1, record.x0);
            EXPECT_GT(record.busy, 0);
            EXPECT_LE(record.busy, 1);
            previous = record.x1;
        }
        for (double x = 0; x < width; ++x)
            ASSERT_NEAR(painted(records, x), trulyBusy(stream, axis, x), 0.01) << "at pixel " << x;
    }
}

/// Spans of nearly the same density everywhere, far smaller than a pixel: what stretches join over several
/// columns.
TEST(FoldSpans, JoinsLikeColumnsWithoutLosingAHundredthOfAny)
{
    std::mt19937 random(21);
    RandomStream stream;
    std::int64_t now = 0;
    BusyBefore sum;
    constexpr std::size_t kSpans = 60'000;
    for (std::size_t i = 0; i < kSpans; ++i) {
        // Slowly ever denser, so that neighbours are alike and ends are not.
        const auto length = static_cast<std::int64_t>(20 + 60 * i / kSpans + random() % 3);
        stream.spans.start.push_back(now);
        stream.spans.duration.push_back(length);
        stream.before.push_back(sum);
        sum.busy += length;
        now += 100;
    }
    stream.before.push_back(sum);
    stream.rows = {0, kSpans};
    constexpr double kWidth = 300;
    const TimeAxis axis = fitted(static_cast<double>(now), kWidth);
    std::vector<DrawRecord> records;
    foldSpans(stream.spans, stream.before, stream.rows, axis, kWidth, records);
    EXPECT_LT(records.size(), 200u); // several columns to a stretch
    EXPECT_TRUE(std::any_of(
        records.begin(), records.end(), [](const DrawRecord &record) { return record.x1 - record.x0 > 2; }));
    for (double x = 0; x < kWidth; ++x)
        ASSERT_NEAR(painted(records, x), trulyBusy(stream, axis, x), 0.01) << "at pixel " << x;
}

TEST(FoldSpans, DrawsEverySpanInSight)
{
    std::mt19937 random(12);
    for (int trial = 0; trial < 100; ++trial) {
        const RandomStream stream = randomStream(random, 1 + random() % 300);
        const double end = static_cast<double>(stream.spans.start.back() + stream.spans.duration.back());
        const double width = 100 + random() % 300;
        const TimeAxis axis = fitted(end, width);
        std::vector<DrawRecord> records;
        foldSpans(stream.spans, stream.before, stream.rows, axis, width, records);
        std::vector<bool> drawn(stream.spans.size(), false);
        for (const DrawRecord &record : records) {
            for (std::int32_t i = 0; i < record.count; ++i)
                drawn[record.row + static_cast<std::size_t>(i)] = true;
            if (!record.folded) {
                EXPECT_EQ(record.count, 1);
                EXPECT_DOUBLE_EQ(record.x0, axis.xOf(static_cast<double>(stream.spans.start[record.row])));
            }
        }
        EXPECT_TRUE(std::all_of(drawn.begin(), drawn.end(), [](bool each) { return each; }));
    }
}

TEST(FoldSpans, DrawsAtMostARecordAPixel)
{
    std::mt19937 random(5);
    const RandomStream stream = randomStream(random, 200'000);
    const double end = static_cast<double>(stream.spans.start.back() + stream.spans.duration.back());
    std::vector<DrawRecord> records;
    foldSpans(stream.spans, stream.before, stream.rows, fitted(end, 1000), 1000, records);
    EXPECT_LE(records.size(), 1010u);
}

TEST(BusyIn, IsTheTimeInsideTheRange)
{
    RandomStream stream;
    stream.spans.start = {100, 300, 310};
    stream.spans.duration = {50, 10, 90};
    stream.before = {{0, 0, 0}, {50, 0, 0}, {60, 0, 0}, {150, 0, 0}};
    stream.rows = {0, 3};
    EXPECT_DOUBLE_EQ(busyIn(stream.spans, stream.before, stream.rows, 0, 1000), 150);
    EXPECT_DOUBLE_EQ(busyIn(stream.spans, stream.before, stream.rows, 120, 305), 35);
    EXPECT_DOUBLE_EQ(busyIn(stream.spans, stream.before, stream.rows, 110, 120), 10);
    EXPECT_DOUBLE_EQ(busyIn(stream.spans, stream.before, stream.rows, 160, 290), 0);
    EXPECT_EQ(rowsIn(stream.spans, stream.rows, 120, 305), (LaneRows{0, 2}));
    EXPECT_EQ(rowsIn(stream.spans, stream.rows, 160, 290), (LaneRows{1, 1}));
}

TEST(FoldSpans, OfAnEmptyLaneIsNothing)
{
    std::vector<DrawRecord> records;
    foldSpans({}, {BusyBefore{}}, {0, 0}, {0, 1}, 100, records);
    EXPECT_TRUE(records.empty());
}

TEST(SpanAt, FindsTheSpanOrTheNearestWithinReach)
{
    SpanColumns spans;
    spans.start = {100, 300, 310};
    spans.duration = {50, 10, 90};
    const LaneRows rows{0, 3};
    EXPECT_EQ(spanAt(spans, rows, 120, 0), 0u);
    EXPECT_EQ(spanAt(spans, rows, 305, 0), 1u);
    EXPECT_EQ(spanAt(spans, rows, 399, 0), 2u);
    EXPECT_EQ(spanAt(spans, rows, 200, 10), 3u);
    EXPECT_EQ(spanAt(spans, rows, 155, 10), 0u);
    EXPECT_EQ(spanAt(spans, rows, 295, 10), 1u);
    EXPECT_EQ(spanAt(spans, rows, 95, 10), 0u);
    EXPECT_EQ(spanAt(spans, rows, 405, 10), 2u);
    EXPECT_EQ(spanAt(spans, rows, 500, 10), 3u);
}

TEST(PeakIndex, FindsTheLargestEntryOfAnyStretch)
{
    std::mt19937 random(23);
    for (int trial = 0; trial < 60; ++trial) {
        MemoryCurve curve;
        std::int64_t now = static_cast<std::int64_t>(random() % 20);
        const std::size_t count = 1 + random() % 600;
        for (std::size_t i = 0; i < count; ++i) {
            curve.time.push_back(now);
            std::array<std::int64_t, kMemoryKindCount> bytes{};
            for (auto &kind : bytes)
                kind = static_cast<std::int64_t>(random() % 1000);
            curve.bytes.push_back(bytes);
            now += 1 + static_cast<std::int64_t>(random() % 5);
        }
        const PeakIndex index(curve);
        for (int query = 0; query < 40; ++query) {
            const double begin = static_cast<double>(random() % (now + 10)) - 5;
            const double end = begin + 1 + random() % 300;
            std::int64_t largest = -1;
            for (std::size_t i = 0; i < count; ++i) {
                const double from = static_cast<double>(curve.time[i]);
                const double to = i + 1 < count ? static_cast<double>(curve.time[i + 1]) : 1e18;
                if (from < end && to > begin)
                    largest = std::max(largest, index.total(i));
            }
            const std::int64_t found = index.largestIn(curve, begin, end);
            EXPECT_EQ(found < 0 ? -1 : index.total(static_cast<std::size_t>(found)), largest);
        }
        // One stretch after the other, as columns of pixels are.
        const double width = 1 + random() % 20;
        std::size_t from = 0;
        for (double begin = -10; begin < static_cast<double>(now) + 30; begin += width)
            EXPECT_EQ(index.largestIn(curve, begin, begin + width, from),
                index.largestIn(curve, begin, begin + width));
        EXPECT_EQ(index.largestIn(curve, 0, width, from), index.largestIn(curve, 0, width)); // and back again
    }
}

} // namespace
} // namespace planloom
