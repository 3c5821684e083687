#include "engine/graph/operator_files/size_expression.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

using Action = SizeExpression::Action;

constexpr std::size_t kMostSteps = 1'000;
constexpr int kDeepestExpression = 64;
constexpr double kLargestSize = 281'474'976'710'656.0; // 2^48

struct NamedFunction {
    std::string_view name;
    Action action;
    int arguments;
};
constexpr std::array<NamedFunction, 6> kFunctions{
    {{"min", Action::Minimum, 2}, {"max", Action::Maximum, 2}, {"ceil", Action::Ceil, 1},
        {"floor", Action::Floor, 1}, {"sqrt", Action::Sqrt, 1}, {"log2", Action::Log2, 1}}};

bool isNameLetter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Sums of products of factors, by recursive descent.
class ExpressionReader
{
public:
    ExpressionReader(std::string_view text, std::size_t at)
        : m_text(text)
        , m_at(at)
    {
    }

    Result<SizeExpression> read(std::size_t &end)
    {
        TRY_VOID(readSum());
        end = m_at;
        return std::move(m_result);
    }

private:
    Error fail(std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            "position:" + std::to_string(std::min(m_at, m_text.size()))};
    }

    char peek()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t'))
            ++m_at;
        return m_at < m_text.size() ? m_text[m_at] : '\0';
    }

    std::string found() { return peek() == '\0' ? "the end" : std::string("'") + m_text[m_at] + "'"; }

    Result<void> add(SizeExpression::Step step)
    {
        if (m_result.steps.size() == kMostSteps)
            return fail("expected an expression of at most " + std::to_string(kMostSteps) + " terms");
        m_result.steps.push_back(std::move(step));
        return {};
    }
    Result<void> add(Action action) { return add({action, 0, {}}); }

    Result<void> expect(char wanted)
    {
        if (peek() != wanted)
            return fail(std::string("expected '") + wanted + "', found " + found());
        ++m_at;
        return {};
    }

    Result<void> readSum()
    {
        TRY_VOID(readProduct());
        for (char c = peek(); c == '+' || c == '-'; c = peek()) {
            if (m_text.substr(m_at, 2) == "->")
                break;
            ++m_at;
            TRY_VOID(readProduct());
            TRY_VOID(add(c == '+' ? Action::Add : Action::Subtract));
        }
        return {};
    }

    Result<void> readProduct()
    {
        TRY_VOID(readFactor());
        for (char c = peek(); c == '*' || c == '/'; c = peek()) {
            ++m_at;
            TRY_VOID(readFactor());
            TRY_VOID(add(c == '*' ? Action::Multiply : Action::Divide));
        }
        return {};
    }

    Result<void> readFactor()
    {
        if (m_depth == kDeepestExpression)
            return fail("expected brackets at most " + std::to_string(kDeepestExpression) + " deep");
        ++m_depth;
        auto outcome = readFactorInside();
        --m_depth;
        return outcome;
    }

    Result<void> readFactorInside()
    {
        const char c = peek();
        if (c == '-') {
            ++m_at;
            TRY_VOID(readFactor());
            return add(Action::Negate);
        }
        if (c == '(') {
            ++m_at;
            TRY_VOID(readSum());
            return expect(')');
        }
        if (isDigit(c) || c == '.')
            return readNumber();
        if (isNameLetter(c))
            return readName();
        return fail("expected a number, a name or '(', found " + found());
    }

    Result<void> readNumber()
    {
        double number = 0;
        const char *begin = m_text.data() + m_at;
        const auto [end, failure] = std::from_chars(begin, m_text.data() + m_text.size(), number);
        if (failure != std::errc{} || !std::isfinite(number))
            return fail("expected a number, found " + found());
        m_at += static_cast<std::size_t>(end - begin);
        return add({Action::Number, number, {}});
    }

    std::string takeWord()
    {
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (isNameLetter(m_text[m_at]) || isDigit(m_text[m_at])))
            ++m_at;
        return std::string(m_text.substr(begin, m_at - begin));
    }

    Result<void> readName()
    {
        const std::size_t begin = m_at;
        std::string name = takeWord();
        if (peek() != '(')
            return add({Action::Name, 0, std::move(name)});
        ++m_at;
        if (name == "whole") {
            if (!isNameLetter(peek()))
                return fail("expected the name of a dimension, found " + found());
            TRY_VOID(add({Action::Whole, 0, takeWord()}));
            return expect(')');
        }
        const auto *function = std::find_if(
            kFunctions.begin(), kFunctions.end(), [&](const NamedFunction &f) { return f.name == name; });
        if (function == kFunctions.end()) {
            m_at = begin;
            return fail("'" + name + "' is no function", "known: whole, min, max, ceil, floor, sqrt, log2");
        }
        TRY_VOID(readSum());
        if (function->arguments == 2) {
            TRY_VOID(expect(','));
            TRY_VOID(readSum());
        }
        TRY_VOID(expect(')'));
        return add(function->action);
    }

    std::string_view m_text;
    std::size_t m_at;
    int m_depth = 0;
    SizeExpression m_result;
};

double apply(Action action, double a, double b)
{
    switch (action) {
    case Action::Add:
        return a + b;
    case Action::Subtract:
        return a - b;
    case Action::Multiply:
        return a * b;
    case Action::Divide:
        return a / b;
    case Action::Minimum:
        return std::min(a, b);
    case Action::Maximum:
        return std::max(a, b);
    case Action::Negate:
        return -a;
    case Action::Ceil:
        return std::ceil(a);
    case Action::Floor:
        return std::floor(a);
    case Action::Sqrt:
        return std::sqrt(a);
    case Action::Log2:
        return std::log2(a);
    default:
        return a;
    }
}

bool takesTwo(Action action)
{
    return (action >= Action::Add && action <= Action::Divide) || action == Action::Minimum
        || action == Action::Maximum;
}

/// A text and how tightly its outermost operation binds: 0 sum, 1 product, 2 factor.
struct Printed {
    std::string text{};
    int strength = 2;
};

std::string bracketed(const Printed &printed, int least)
{
    return printed.strength < least ? "(" + printed.text + ")" : printed.text;
}

} // namespace

std::string textOfNumber(double number)
{
    std::array<char, 32> text;
    const auto [end, failure] = std::to_chars(text.data(), text.data() + text.size(), number);
    return failure == std::errc{} ? std::string(text.data(), end) : std::string{};
}

Result<SizeExpression> parseSizeExpression(std::string_view text, std::size_t &at)
{
    return ExpressionReader(text, at).read(at);
}

std::string toString(const SizeExpression &expression)
{
    std::vector<Printed> stack;
    for (const SizeExpression::Step &step : expression.steps) {
        if (step.action == Action::Number) {
            stack.push_back({textOfNumber(step.number)});
            continue;
        }
        if (step.action == Action::Name || step.action == Action::Whole) {
            stack.push_back({step.action == Action::Name ? step.name : "whole(" + step.name + ")"});
            continue;
        }
        Printed b = std::move(stack.back());
        stack.pop_back();
        if (step.action == Action::Negate) {
            stack.push_back({"-" + bracketed(b, 2)});
            continue;
        }
        const auto *function = std::find_if(kFunctions.begin(), kFunctions.end(),
            [&](const NamedFunction &f) { return f.action == step.action; });
        if (!takesTwo(step.action)) {
            stack.push_back({std::string(function->name) + "(" + b.text + ")"});
            continue;
        }
        Printed a = std::move(stack.back());
        stack.pop_back();
        if (function != kFunctions.end()) {
            stack.push_back({std::string(function->name) + "(" + a.text + ", " + b.text + ")"});
            continue;
        }
        const int strength = step.action == Action::Add || step.action == Action::Subtract ? 0 : 1;
        static constexpr const char *kSigns[] = {" + ", " - ", " * ", " / "};
        const auto sign = static_cast<std::size_t>(step.action) - static_cast<std::size_t>(Action::Add);
        stack.push_back({bracketed(a, strength) + kSigns[sign] + bracketed(b, strength + 1), strength});
    }
    return stack.empty() ? std::string{} : stack.back().text;
}

Result<double> evaluate(const SizeExpression &expression, const NumberLookup &numberOf)
{
    std::vector<double> stack;
    for (const SizeExpression::Step &step : expression.steps) {
        if (step.action == Action::Number) {
            stack.push_back(step.number);
        } else if (step.action == Action::Name || step.action == Action::Whole) {
            const auto number = numberOf(step.name, step.action == Action::Whole);
            if (!number)
                return Error{ErrorCode::InvalidInput, "'" + step.name + "' has no size and no number here",
                    "use dimensions that the annotation binds to an input, or attributes that are numbers",
                    {}};
            stack.push_back(*number);
        } else {
            const double b = stack.back();
            if (takesTwo(step.action))
                stack.pop_back();
            stack.back() = apply(step.action, stack.back(), b);
        }
    }
    const double result = stack.empty() ? 0 : stack.back();
    if (!std::isfinite(result))
        return Error{ErrorCode::InvalidInput,
            "'" + toString(expression) + "' comes out as " + textOfNumber(result), {}, {}};
    return result;
}

Result<std::int64_t> evaluateSize(const SizeExpression &expression, const NumberLookup &numberOf)
{
    TRY(const double number, evaluate(expression, numberOf));
    if (number != std::floor(number) || number < 0 || number > kLargestSize)
        return Error{ErrorCode::InvalidInput,
            "'" + toString(expression) + "' comes out as " + textOfNumber(number)
                + ", where a whole number from 0 on was expected",
            {}, {}};
    return static_cast<std::int64_t>(number);
}

} // namespace planloom
