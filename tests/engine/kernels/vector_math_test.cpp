#include "engine/kernels/reductions/vector_reduce.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace planloom {

namespace {

/// Largest error of `function` against `exact` over [low, high], in units of `exact`'s size (at least
/// `floor`).
template<typename Function, typename Exact>
double worstError(double low, double high, double floor, Function function, Exact exact)
{
    constexpr int kPoints = 400000;
    double worst = 0;
    for (int i = 0; i <= kPoints; ++i) {
        const auto x = static_cast<float>(low + (high - low) * i / kPoints);
        const double expected = exact(static_cast<double>(x));
        worst = std::max(worst,
            std::fabs(static_cast<double>(function(x)) - expected) / std::max(floor, std::fabs(expected)));
    }
    return worst;
}

} // namespace

TEST(VectorMath, ExpIsAccurateToTwoUnitsInTheLastPlace)
{
    EXPECT_LT(worstError(
                  -86, 88.7, 0, [](float x) { return expOf(x); }, [](double x) { return std::exp(x); }),
        2.5e-7);
}

TEST(VectorMath, ExpKnowsItsLimits)
{
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(expOf(0.0f), 1.0f);
    EXPECT_EQ(expOf(-infinity), 0.0f);
    EXPECT_EQ(expOf(-1e9f), 0.0f);
    EXPECT_EQ(expOf(infinity), infinity);
    EXPECT_EQ(expOf(89.0f), infinity);
    EXPECT_TRUE(std::isnan(expOf(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, TanhIsAccurateNearZeroToo)
{
    const auto function = [](float x) { return tanhOf(x); };
    const auto exact = [](double x) { return std::tanh(x); };
    EXPECT_LT(worstError(-12, 12, 0, function, exact), 3e-7);
    EXPECT_LT(worstError(-1e-4, 1e-4, 0, function, exact), 3e-7);
    EXPECT_EQ(tanhOf(std::numeric_limits<float>::infinity()), 1.0f);
    EXPECT_EQ(tanhOf(0.0f), 0.0f);
    EXPECT_TRUE(std::isnan(tanhOf(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, ErfIsAccurateNearZeroToo)
{
    const auto function = [](float x) { return erfOf(x); };
    const auto exact = [](double x) { return std::erf(x); };
    EXPECT_LT(worstError(-6, 6, 0, function, exact), 3e-7);
    EXPECT_LT(worstError(-1e-4, 1e-4, 0, function, exact), 3e-7);
    EXPECT_EQ(erfOf(std::numeric_limits<float>::infinity()), 1.0f);
    EXPECT_TRUE(std::isnan(erfOf(std::numeric_limits<float>::quiet_NaN())));
}

TEST(VectorMath, SumsKeepSmallTerms)
{
    std::vector<float> numbers(1 << 20, 0.1f);
    EXPECT_NEAR(sumOf(numbers.data(), static_cast<std::int64_t>(numbers.size())),
        static_cast<double>(0.1f) * static_cast<double>(numbers.size()), 1e-6);
    EXPECT_EQ(maximumOf(numbers.data(), 0), -std::numeric_limits<float>::infinity());
}

} // namespace planloom
