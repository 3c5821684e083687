#include "engine/base/words.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(Words, HaveAsManyDigitsAsAreAskedFor)
{
    const Bytes fortyAndOne{(std::int64_t{40} << 30) + 1};
    EXPECT_EQ(formatBytes(fortyAndOne), "40.0 GiB");
    EXPECT_EQ(formatBytes(fortyAndOne, 12), "40.0000000009 GiB");
    EXPECT_EQ(formatBytes({999'999}, 1), "1 MiB");
    EXPECT_EQ(formatBytes({1023}, 1), "1023 B"); // bytes are whole
    EXPECT_EQ(formatSeconds(0.0712), "71.2 ms");
    EXPECT_EQ(formatSeconds(0.0712, 5), "71.200 ms");
    EXPECT_EQ(formatSeconds(0.99999), "1.00 s"); // in the unit that is written
}

TEST(Words, CountThings)
{
    EXPECT_EQ(counted(1, "process"), "1 process");
    EXPECT_EQ(counted(2, "process"), "2 processes");
    EXPECT_EQ(counted(0, "micro-batch"), "0 micro-batches");
    EXPECT_EQ(counted(3, "entry"), "3 entries");
    EXPECT_EQ(counted(3, "array"), "3 arrays");
    EXPECT_EQ(counted(4, "network card"), "4 network cards");
    EXPECT_EQ(counted(4, "box"), "4 boxes");
}

TEST(Words, OfIndicesAreRangesInTheirOrder)
{
    const auto text = [](std::vector<std::int32_t> indices, std::size_t most = 10) {
        return rangesOf(indices, most);
    };
    EXPECT_EQ(text({}), "");
    EXPECT_EQ(text({3}), "3");
    EXPECT_EQ(text({0, 1}), "0-1");
    EXPECT_EQ(text({0, 2, 3, 7}), "0, 2-3, 7");
    EXPECT_EQ(text({1, 0}), "1, 0"); // parts dealt out to devices have an order
    EXPECT_EQ(text({0, 2, 4, 6}, 2), "0, 2, ...");
    EXPECT_EQ(rangesOf(std::vector<DeviceId>{{4}, {5}, {6}}), "4-6");
}

TEST(Words, OfAnIndexSayWhereItCountsFrom)
{
    EXPECT_EQ(indexAmong(1, 2), "1 (0-1)");
    EXPECT_EQ(indexAmong(0, 8), "0 (0-7)");
    EXPECT_EQ(indexAmong(0, 1), "0");
}

} // namespace
} // namespace planloom
