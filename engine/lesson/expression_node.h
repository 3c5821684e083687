#pragma once

#include "engine/lesson/expression.h"

namespace planloom {

/// What a node of an expression does with those below it.
enum class ExpressionKind : std::uint8_t {
    Constant,
    Figure,
    Negate,
    Add,
    Subtract,
    Multiply,
    Divide,
    Least,
    Most,
    Percent, ///< The same value, written as a share.
    Less,
    AtMost,
    Greater,
    AtLeast,
    Equal,
    Unequal,
    And,
    Or,
    Not,
};

/// A node, with the unit that its value has whatever the plan.
struct ExpressionNode {
    ExpressionKind kind = ExpressionKind::Constant;
    FigureUnit unit = FigureUnit::Number;
    FigureValue value{}; ///< Of a constant.
    FigureName figure{};
    std::shared_ptr<const ExpressionNode> left{};
    std::shared_ptr<const ExpressionNode> right{};
    std::string text{}; ///< As written.
};

constexpr bool isComparison(ExpressionKind kind)
{
    return kind >= ExpressionKind::Less && kind <= ExpressionKind::Unequal;
}

} // namespace planloom
