#pragma once

#include "engine/graph/operator_files/size_expression.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// One choice of numbers, by name.
using NumberSample = std::map<std::string, double>;

/// Finds expressions of names from what came out for some choices of their numbers.
class ExpressionFitter
{
public:
    /// @param samples  at least one; all of the same names
    explicit ExpressionFitter(std::vector<NumberSample> samples);

    /// The simplest expression that came out as these values, one of each sample: c, c * m, c * m + k or
    /// c * m + d * n + k, where m is a product of at most three names or their reciprocals (two where there
    /// are more than 16 names), or the square root of one of at most two, and n a product of names. What
    /// three samples give is tried on all others, so an expression is as certain as there are more of them.
    /// @param tolerance  of values, relative
    /// @return nothing if none of these fits. O(samples x names^4) at worst.
    std::optional<SizeExpression> fit(const std::vector<double> &values, double tolerance) const;

private:
    /// A product of names to powers, and what it is in each sample.
    struct Monomial {
        std::vector<std::string> above{};
        std::vector<std::string> below{};
        bool root = false; ///< The square root of all of it.
        std::vector<double> values{};

        std::size_t size() const { return above.size() + below.size(); }
    };

    void grow(const Monomial &begun, std::size_t next);
    bool evaluate(Monomial &monomial) const;
    static std::string textOf(double factor, const Monomial &monomial);
    static bool fits(const std::vector<double> &values, double tolerance, const std::vector<double> &factors,
        const std::vector<const Monomial *> &terms);
    static std::optional<std::string> fitOne(
        const std::vector<double> &values, double tolerance, const Monomial &monomial, bool withTerm);
    std::optional<std::string> fitTwo(const std::vector<double> &values, double tolerance) const;
    std::optional<std::string> textOf(const std::vector<double> &values, double tolerance) const;

    std::vector<NumberSample> m_samples;
    std::vector<std::string> m_names{};
    std::vector<Monomial> m_monomials{}; ///< The shorter first.
};

} // namespace planloom
