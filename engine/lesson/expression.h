#pragma once

#include "engine/base/result.h"
#include "engine/lesson/figure.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A figure of a plan: "peak of stage 0 in start".
struct FigureName {
    Figure figure{};
    std::int32_t index = -1; ///< Of the device or stage, where it has one.
    bool ofStage = false;
    std::string text{}; ///< Selector, kind of instruction, part of a row, where it has one.
    std::string plan{}; ///< Empty for the learner's own.
    friend bool operator==(const FigureName &, const FigureName &) = default;
};

/// What figures are asked of.
/// @return the figure's value; NotFound where the plan has none, or is not known (any longer)
using FigureSource = std::function<Result<FigureValue>(const FigureName &)>;

struct ExpressionNode; // expression_node.h

/// A sum, product or quotient of figures and numbers. A value; copies share what they hold.
class Expression
{
public:
    Expression() = default;
    explicit Expression(std::shared_ptr<const ExpressionNode> root, std::string text);

    const std::string &text() const { return m_text; } ///< As written.
    bool isEmpty() const { return m_root == nullptr; }
    FigureUnit unit() const; ///< Of its value, whatever the plan.
    /// Figures that it asks for, each once.
    std::vector<FigureName> figures() const;
    /// @return what `source` says of a figure; InvalidInput where units do not go together
    Result<FigureValue> valueOf(const FigureSource &source) const;
    const std::shared_ptr<const ExpressionNode> &root() const { return m_root; }

private:
    std::shared_ptr<const ExpressionNode> m_root{};
    std::string m_text{};
};

/// A comparison of expressions, or several joined by and, or, not.
class Condition
{
public:
    Condition() = default;
    explicit Condition(std::shared_ptr<const ExpressionNode> root, std::string text);

    const std::string &text() const { return m_text; }
    std::vector<FigureName> figures() const;
    /// @return as `Expression::valueOf`
    Result<bool> holds(const FigureSource &source) const;
    /// Why it does not hold, for people: "the peak of stage 0 is 12.6 GiB; it has to be below 10.1 GiB".
    /// @return empty where it holds
    std::string whyNot(const FigureSource &source) const;
    const std::shared_ptr<const ExpressionNode> &root() const { return m_root; }

private:
    std::shared_ptr<const ExpressionNode> m_root{};
    std::string m_text{};
};

constexpr std::size_t kLongestExpression = 1000; ///< Letters.

/// "the peak of stage 0", "the step in \"one-by-one\"": for sentences.
std::string wordsOf(const FigureName &name);

/// @return InvalidInput with what was expected, `where` the column from 1; nearest names where a figure is
/// unknown; where units do not go together. Depth and length are bounded. O(length)
Result<Expression> expressionFromText(std::string_view text);
Result<Condition> conditionFromText(std::string_view text);

} // namespace planloom
