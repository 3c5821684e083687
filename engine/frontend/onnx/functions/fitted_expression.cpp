#include "engine/frontend/onnx/functions/fitted_expression.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr double kMostDenominator = 64;
constexpr std::size_t kManyNames = 16;

/// The fraction with a small denominator that a number is but for rounding; else the number.
double snapped(double number, double tolerance)
{
    for (double denominator = 1; denominator <= kMostDenominator; ++denominator) {
        const double nearest = std::round(number * denominator) / denominator;
        if (std::fabs(nearest - number) <= tolerance * std::max(std::fabs(number), 1e-3))
            return nearest;
    }
    return number;
}

std::string product(const std::vector<std::string> &names)
{
    std::string text;
    for (const std::string &name : names)
        text += (text.empty() ? "" : " * ") + name;
    return text;
}

std::string textOfTerm(double term)
{
    return term == 0 ? std::string() : (term < 0 ? " - " : " + ") + textOfNumber(std::fabs(term));
}

} // namespace

ExpressionFitter::ExpressionFitter(std::vector<NumberSample> samples)
    : m_samples(std::move(samples))
{
    for (const auto &[name, number] : m_samples.front())
        m_names.push_back(name);
    grow({}, 0);
    std::stable_sort(m_monomials.begin(), m_monomials.end(),
        [](const Monomial &a, const Monomial &b) { return a.size() < b.size(); });
}

/// Adds all products that go on from `begun` with names from `next`.
void ExpressionFitter::grow(const Monomial &begun, std::size_t next)
{
    const std::size_t mostNames = m_names.size() > kManyNames ? 2 : 3;
    constexpr std::size_t kMostRooted = 2;
    for (const bool root : {false, true}) {
        if (begun.size() == 0 || (root && begun.size() > kMostRooted))
            continue;
        Monomial whole = begun;
        whole.root = root;
        if (evaluate(whole))
            m_monomials.push_back(std::move(whole));
    }
    if (begun.size() == mostNames)
        return;
    for (std::size_t i = next; i < m_names.size(); ++i) { // a name may stand twice
        for (const bool above : {true, false}) {
            Monomial longer = begun;
            (above ? longer.above : longer.below).push_back(m_names[i]);
            grow(longer, i);
        }
    }
}

bool ExpressionFitter::evaluate(Monomial &monomial) const
{
    for (const NumberSample &sample : m_samples) {
        double value = 1;
        for (const std::string &name : monomial.above)
            value *= sample.at(name);
        for (const std::string &name : monomial.below)
            value /= sample.at(name);
        monomial.values.push_back(monomial.root ? std::sqrt(value) : value);
        if (!std::isfinite(monomial.values.back()))
            return false;
    }
    return true;
}

/// Whether `factors` of `terms`, and a last one alone, add up to the values.
bool ExpressionFitter::fits(const std::vector<double> &values, double tolerance,
    const std::vector<double> &factors, const std::vector<const Monomial *> &terms)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        double sum = factors.back();
        for (std::size_t t = 0; t < terms.size(); ++t)
            sum += factors[t] * terms[t]->values[i];
        if (!(std::fabs(sum - values[i]) <= tolerance * std::max(std::fabs(values[i]), 1e-6)))
            return false;
    }
    return true;
}

std::optional<std::string> ExpressionFitter::fitOne(
    const std::vector<double> &values, double tolerance, const Monomial &monomial, bool withTerm)
{
    std::size_t far = 0;
    for (std::size_t i = 1; i < values.size(); ++i)
        if (std::fabs(monomial.values[i] - monomial.values[0])
            > std::fabs(monomial.values[far] - monomial.values[0]))
            far = i;
    if (far == 0)
        return std::nullopt;
    const double factor =
        snapped(withTerm ? (values[far] - values[0]) / (monomial.values[far] - monomial.values[0])
                         : values[0] / monomial.values[0],
            tolerance);
    const double term = withTerm ? snapped(values[0] - factor * monomial.values[0], tolerance) : 0;
    if (!std::isfinite(factor) || factor == 0 || !fits(values, tolerance, {factor, term}, {&monomial}))
        return std::nullopt;
    return textOf(factor, monomial) + textOfTerm(term);
}

/// Two products of names, as a concatenation has them: three equations for three unknowns.
std::optional<std::string> ExpressionFitter::fitTwo(const std::vector<double> &values, double tolerance) const
{
    if (values.size() <= 3)
        return std::nullopt;
    std::vector<const Monomial *> products;
    for (const Monomial &monomial : m_monomials)
        if (!monomial.root && monomial.below.empty())
            products.push_back(&monomial);
    const double v1 = values[1] - values[0];
    const double v2 = values[2] - values[0];
    for (std::size_t i = 0; i < products.size(); ++i) {
        for (std::size_t j = i + 1; j < products.size(); ++j) {
            const auto &a = products[i]->values;
            const auto &b = products[j]->values;
            const double determinant = (a[1] - a[0]) * (b[2] - b[0]) - (a[2] - a[0]) * (b[1] - b[0]);
            if (determinant == 0)
                continue;
            const double c = snapped((v1 * (b[2] - b[0]) - v2 * (b[1] - b[0])) / determinant, tolerance);
            const double d = snapped(((a[1] - a[0]) * v2 - (a[2] - a[0]) * v1) / determinant, tolerance);
            const double k = snapped(values[0] - c * a[0] - d * b[0], tolerance);
            if (c != 0 && d != 0 && fits(values, tolerance, {c, d, k}, {products[i], products[j]}))
                return textOf(c, *products[i]) + (d < 0 ? " - " : " + ") + textOf(std::fabs(d), *products[j])
                    + textOfTerm(k);
        }
    }
    return std::nullopt;
}

/// "3 * b * h / s", "h / 8", "2 / sqrt(h)".
std::string ExpressionFitter::textOf(double factor, const Monomial &monomial)
{
    const double inverse = 1 / factor;
    const bool divides = std::fabs(factor) < 1 && inverse == std::round(inverse);
    std::string above = product(monomial.above);
    std::string below = product(monomial.below);
    if (monomial.root && !above.empty())
        above = "sqrt(" + above + ")";
    if (!below.empty() && (monomial.root || monomial.below.size() > 1))
        below = (monomial.root ? "sqrt(" : "(") + below + ")";
    std::string text;
    if (!divides && (factor != 1 || above.empty()))
        text = textOfNumber(factor);
    else if (above.empty())
        text = "1";
    if (!above.empty())
        text += (text.empty() ? "" : " * ") + above;
    if (!below.empty())
        text += " / " + below;
    return divides ? text + " / " + textOfNumber(inverse) : text;
}

std::optional<std::string> ExpressionFitter::textOf(const std::vector<double> &values, double tolerance) const
{
    if (std::equal(values.begin() + 1, values.end(), values.begin()))
        return textOfNumber(values.front());
    for (const bool withTerm : {false, true})
        for (const Monomial &monomial : m_monomials)
            if (auto text = fitOne(values, tolerance, monomial, withTerm))
                return text;
    return fitTwo(values, tolerance);
}

std::optional<SizeExpression> ExpressionFitter::fit(const std::vector<double> &values, double tolerance) const
{
    if (values.size() != m_samples.size()
        || !std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); }))
        return std::nullopt;
    const auto text = textOf(values, tolerance);
    std::size_t at = 0;
    auto expression = text ? parseSizeExpression(*text, at) : Error{};
    return expression && at == text->size() ? std::optional(*std::move(expression)) : std::nullopt;
}

} // namespace planloom
