#include "engine/base/divisors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace planloom {
namespace {

TEST(Divisors, AreThoseThatTryingFinds)
{
    for (std::int32_t number = -2; number <= 1500; ++number) {
        std::vector<std::int32_t> tried;
        for (std::int32_t each = 1; each <= number; ++each)
            if (number % each == 0)
                tried.push_back(each);
        EXPECT_EQ(divisorsOf(number), tried) << number;
    }
}

TEST(Divisors, OfLargeNumbersOverflowNothing)
{
    const auto most = std::numeric_limits<std::int32_t>::max(); // a prime
    EXPECT_EQ(divisorsOf(most), (std::vector<std::int32_t>{1, most}));
    EXPECT_EQ(divisorsOf(std::int64_t{1} << 40).size(), 41U);
}

} // namespace
} // namespace planloom
