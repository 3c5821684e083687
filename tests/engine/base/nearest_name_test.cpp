#include "engine/base/nearest_name.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(NearestName, HasTheFewestLettersChanged)
{
    EXPECT_EQ(
        nearestNames("tensr", {"data", "tensor", "pp"}, 2), (std::vector<std::string>{"tensor", "data"}));
    EXPECT_EQ(nearestNames("dq", {"tp", "dp", "dp"}, 2), (std::vector<std::string>{"dp", "tp"}));
    EXPECT_TRUE(nearestNames("a", {}).empty());
    EXPECT_EQ(didYouMean("slove", {"solve", "sieve"}), "did you mean 'solve'?"); // two have changed places
    EXPECT_EQ(didYouMean("ab", {"ba"}), "did you mean 'ba'?");
}

TEST(NearestName, IsOnlyAskedForWhereItIsNear)
{
    EXPECT_EQ(didYouMean("h.0.attn.c_atn", {"h.0.attn.c_attn", "h.1.attn.c_attn"}),
        "did you mean 'h.0.attn.c_attn'?");
    EXPECT_EQ(didYouMean("nobody", {"a", "b"}), "");
}

} // namespace
} // namespace planloom
