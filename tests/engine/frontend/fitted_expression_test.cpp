// Expressions are found from what came out for some choices of their numbers, and none where there is none.

#include "engine/frontend/onnx/functions/fitted_expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace planloom {
namespace {

std::vector<NumberSample> samples()
{
    std::vector<NumberSample> made;
    const std::vector<double> primes{
        11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97};
    for (std::size_t i = 0; i < 7; ++i)
        made.push_back({{"b", primes[3 * i]}, {"s", primes[3 * i + 1]}, {"h", primes[3 * i + 2]}});
    return made;
}

std::vector<double> valuesOf(const std::string &text, const std::vector<NumberSample> &given)
{
    std::size_t at = 0;
    const auto expression = parseSizeExpression(text, at);
    EXPECT_TRUE(expression) << text;
    std::vector<double> values;
    for (const NumberSample &sample : given)
        values.push_back(*evaluate(
            *expression, [&](const std::string &name, bool) { return std::optional(sample.at(name)); }));
    return values;
}

std::string fittedTo(const std::string &text)
{
    const auto given = samples();
    const auto expression = ExpressionFitter(given).fit(valuesOf(text, given), 1e-12);
    return expression ? toString(*expression) : "none";
}

TEST(FittedExpression, IsTheOneThatTheValuesCameFrom)
{
    for (const char *text :
        {"7", "-3", "h", "4 * h", "h / 8", "b * s", "b * h * s", "h * s / b", "h + 1", "2 * h - 5",
            "1 / sqrt(h)", "sqrt(h)", "1 / h", "b + s", "h + 3 * b * s - 2", "h * h", "h / (b * s)"})
        EXPECT_EQ(fittedTo(text), text);
    EXPECT_EQ(fittedTo("(h + h) / 4"), "h / 2");
}

TEST(FittedExpression, IsNoneWhereNoneFits)
{
    EXPECT_EQ(fittedTo("ceil(h / 8)"), "none");
    EXPECT_EQ(fittedTo("b + s * h + h / 3 + s"), "none");
    std::mt19937 random(1);
    std::uniform_int_distribution<int> any(1, 1000);
    const ExpressionFitter fitter(samples());
    for (int i = 0; i < 200; ++i) {
        std::vector<double> values;
        for (int k = 0; k < 7; ++k)
            values.push_back(any(random));
        EXPECT_FALSE(fitter.fit(values, 1e-12));
    }
    EXPECT_FALSE(fitter.fit({1, 2}, 1e-12)); // not one of each sample
    EXPECT_FALSE(fitter.fit(std::vector<double>(7, std::nan("")), 1e-12));
}

TEST(FittedExpression, TakesRoundedNumbers)
{
    const auto given = samples();
    std::vector<double> values;
    for (const double value : valuesOf("2 / sqrt(h)", given))
        values.push_back(static_cast<float>(value));
    const auto expression = ExpressionFitter(given).fit(values, 1e-6);
    ASSERT_TRUE(expression);
    EXPECT_EQ(toString(*expression), "2 / sqrt(h)");
}

} // namespace
} // namespace planloom
