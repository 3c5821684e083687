#include "engine/hardware/full_bucket.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(FullBucket, IsOneWhoseLatencyIsLessThanATenthOfItsTime)
{
    EXPECT_FALSE(isFullBucket(1, 10));
    EXPECT_TRUE(isFullBucket(1, 10.01));
    EXPECT_FALSE(isFullBucket(1, 1)) << "an empty one";
    EXPECT_FALSE(isFullBucket(0, 0)) << "what takes no time waits for more";
    EXPECT_TRUE(isFullBucket(0, 1e-9));
}

} // namespace
} // namespace planloom
