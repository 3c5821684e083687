// What expressions and conditions come to.

#include "engine/lesson/expression.h"
#include "engine/lesson/expression_node.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

using Kind = ExpressionKind;

constexpr double kRounding = 1e-6; ///< By what share of themselves equal values may differ.

bool isEqual(double a, double b)
{
    return std::abs(a - b) <= kRounding * std::max(std::abs(a), std::abs(b));
}

bool compares(Kind kind, const FigureValue &a, const FigureValue &b)
{
    const bool equal = a.unit == FigureUnit::Word ? a.word == b.word : isEqual(a.number, b.number);
    switch (kind) {
    case Kind::Less:
        return !equal && a.number < b.number;
    case Kind::AtMost:
        return equal || a.number < b.number;
    case Kind::Greater:
        return !equal && a.number > b.number;
    case Kind::AtLeast:
        return equal || a.number > b.number;
    case Kind::Unequal:
        return !equal;
    default:
        return equal;
    }
}

FigureValue truth(bool holds)
{
    return {.unit = FigureUnit::Truth, .number = holds ? 1.0 : 0.0};
}

Result<FigureValue> valueOf(const ExpressionNode &node, const FigureSource &source);

/// What is decided by the one side does not ask whether the other is known.
Result<FigureValue> joinedValue(const ExpressionNode &node, const FigureSource &source)
{
    const bool decides = node.kind == Kind::Or;
    auto left = valueOf(*node.left, source);
    if (left && (left->number != 0) == decides)
        return left;
    auto right = valueOf(*node.right, source);
    if (right && (right->number != 0) == decides)
        return right;
    return left ? right : left;
}

Result<FigureValue> numberValue(const ExpressionNode &node, const FigureValue &left, const FigureValue &right)
{
    FigureValue value{.unit = node.unit};
    switch (node.kind) {
    case Kind::Negate:
        value.number = -left.number;
        break;
    case Kind::Add:
        value.number = left.number + right.number;
        break;
    case Kind::Subtract:
        value.number = left.number - right.number;
        break;
    case Kind::Multiply:
        value.number = left.number * right.number;
        break;
    case Kind::Divide:
        if (right.number == 0)
            return Error{ErrorCode::InvalidInput,
                "\"" + node.right->text + "\" is 0: nothing can be divided by it", {}, {}};
        value.number = left.number / right.number;
        break;
    case Kind::Least:
        value.number = std::min(left.number, right.number);
        break;
    case Kind::Most:
        value.number = std::max(left.number, right.number);
        break;
    default: // Percent
        value.number = left.number;
        value.asPercent = true;
        break;
    }
    return value;
}

Result<FigureValue> valueOf(const ExpressionNode &node, const FigureSource &source)
{
    if (node.kind == Kind::Constant)
        return node.value;
    if (node.kind == Kind::Figure)
        return source(node.figure);
    if (node.kind == Kind::And || node.kind == Kind::Or)
        return joinedValue(node, source);
    TRY(const FigureValue left, valueOf(*node.left, source));
    if (node.kind == Kind::Not)
        return truth(left.number == 0);
    FigureValue right;
    if (node.right) {
        TRY(right, valueOf(*node.right, source));
    }
    if (isComparison(node.kind))
        return truth(compares(node.kind, left, right));
    return numberValue(node, left, right);
}

std::string subjectOf(const ExpressionNode &node)
{
    return node.kind == Kind::Figure ? wordsOf(node.figure) : "\"" + node.text + "\"";
}

Kind opposite(Kind kind)
{
    switch (kind) {
    case Kind::Less:
        return Kind::AtLeast;
    case Kind::AtMost:
        return Kind::Greater;
    case Kind::Greater:
        return Kind::AtMost;
    case Kind::AtLeast:
        return Kind::Less;
    case Kind::Equal:
        return Kind::Unequal;
    default:
        return Kind::Equal;
    }
}

/// The comparison with its sides exchanged.
Kind mirrored(Kind kind)
{
    switch (kind) {
    case Kind::Less:
        return Kind::Greater;
    case Kind::AtMost:
        return Kind::AtLeast;
    case Kind::Greater:
        return Kind::Less;
    case Kind::AtLeast:
        return Kind::AtMost;
    default:
        return kind;
    }
}

const char *demandOf(Kind kind)
{
    switch (kind) {
    case Kind::Less:
        return "it has to be below ";
    case Kind::AtMost:
        return "it may be at most ";
    case Kind::Greater:
        return "it has to be above ";
    case Kind::AtLeast:
        return "it has to be at least ";
    case Kind::Unequal:
        return "it must not be ";
    default:
        return "it has to be ";
    }
}

/// A comparison that should be `kind` and is not.
std::string whyUnequal(
    const ExpressionNode &node, Kind kind, const FigureValue &left, const FigureValue &right)
{
    const bool swaps = node.left->kind == Kind::Constant && node.right->kind != Kind::Constant;
    const FigureValue &is = swaps ? right : left;
    const FigureValue &asked = swaps ? left : right;
    std::string isText = toString(is);
    std::string askedText = toString(asked);
    constexpr int kMostDigits = 9;
    for (int digits = 4; isText == askedText && is.unit != FigureUnit::Word && digits <= kMostDigits
         && is.number != asked.number;
         ++digits) {
        isText = toString(is, digits);
        askedText = toString(asked, digits);
    }
    return subjectOf(swaps ? *node.right : *node.left) + " is " + isText + "; "
        + demandOf(swaps ? mirrored(kind) : kind) + askedText;
}

/// Why `node` is not as it is wanted, true or not; empty where it is.
std::string reasonOf(const ExpressionNode &node, bool wanted, const FigureSource &source)
{
    const auto value = valueOf(node, source);
    if (value && (value->number != 0) == wanted)
        return {};
    if (node.kind == Kind::Not)
        return reasonOf(*node.left, !wanted, source);
    if (node.kind == Kind::And || node.kind == Kind::Or) {
        const std::string left = reasonOf(*node.left, wanted, source);
        const std::string right = reasonOf(*node.right, wanted, source);
        if (left.empty() || right.empty())
            return left + right;
        return left + ((node.kind == Kind::And) == wanted ? "; " : "; or: ") + right;
    }
    if (!value)
        return value.error().message;
    if (isComparison(node.kind)) {
        const auto left = valueOf(*node.left, source);
        const auto right = valueOf(*node.right, source);
        return whyUnequal(node, wanted ? node.kind : opposite(node.kind), *left, *right);
    }
    const FigureEntry &entry = entryOf(node.figure.figure);
    const std::string plan = wordsOf(node.figure).substr(entry.words.size()); // that it is of
    return std::string(wanted ? entry.otherwise : entry.words) + plan;
}

} // namespace

Result<FigureValue> Expression::valueOf(const FigureSource &source) const
{
    if (!m_root)
        return Error{ErrorCode::InvalidInput, "there is no expression", {}, {}};
    return planloom::valueOf(*m_root, source);
}

Result<bool> Condition::holds(const FigureSource &source) const
{
    if (!m_root)
        return Error{ErrorCode::InvalidInput, "there is no condition", {}, {}};
    TRY(const FigureValue value, valueOf(*m_root, source));
    return value.number != 0;
}

std::string Condition::whyNot(const FigureSource &source) const
{
    return m_root ? reasonOf(*m_root, true, source) : std::string();
}

} // namespace planloom
