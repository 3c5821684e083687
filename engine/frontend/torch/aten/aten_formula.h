#pragma once

#include "engine/frontend/torch/aten/aten_operators.h"

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace planloom {

/// A value of a formula: a tensor, a number, or why there is none.
class AtenTerm
{
public:
    AtenTerm(TensorId tensor)
        : m_value(tensor)
    {
    }
    AtenTerm(double number)
        : m_value(number)
    {
    }
    AtenTerm(Result<TensorId> tensor)
    {
        if (tensor)
            m_value = *tensor;
        else
            m_value = tensor.error();
    }

    const TensorId *tensor() const { return std::get_if<TensorId>(&m_value); }
    const double *number() const { return std::get_if<double>(&m_value); }
    const Error *error() const { return std::get_if<Error>(&m_value); }

private:
    std::variant<TensorId, double, Error> m_value{};
};

/// Writes the operators that a call stands for as formulas: what a function makes can be the argument of the
/// next one, and an error among the arguments is returned. Numbers take the type of the tensors beside them.
class AtenFormula
{
public:
    using Made = Result<TensorId>;
    using Axes = std::vector<std::int64_t>;

    explicit AtenFormula(AtenContext &context)
        : m_context(context)
    {
    }

    /// A term that is no number.
    static Made tensorOf(const AtenTerm &term);

    Made make(OperatorKind kind, std::vector<AtenTerm> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {});

    Made add(AtenTerm a, AtenTerm b) { return make(OperatorKind::Add, {std::move(a), std::move(b)}); }
    Made sub(AtenTerm a, AtenTerm b) { return make(OperatorKind::Sub, {std::move(a), std::move(b)}); }
    Made mul(AtenTerm a, AtenTerm b) { return make(OperatorKind::Mul, {std::move(a), std::move(b)}); }
    Made div(AtenTerm a, AtenTerm b) { return make(OperatorKind::Div, {std::move(a), std::move(b)}); }
    Made pow(AtenTerm a, AtenTerm b) { return make(OperatorKind::Pow, {std::move(a), std::move(b)}); }
    Made greater(AtenTerm a, AtenTerm b) { return make(OperatorKind::Greater, {std::move(a), std::move(b)}); }
    Made atLeast(AtenTerm a, AtenTerm b)
    {
        return make(OperatorKind::GreaterOrEqual, {std::move(a), std::move(b)});
    }
    Made equal(AtenTerm a, AtenTerm b) { return make(OperatorKind::Equal, {std::move(a), std::move(b)}); }
    Made both(AtenTerm a, AtenTerm b) { return make(OperatorKind::And, {std::move(a), std::move(b)}); }
    Made where(AtenTerm condition, AtenTerm a, AtenTerm b)
    {
        return make(OperatorKind::Where, {std::move(condition), std::move(a), std::move(b)});
    }
    Made of(OperatorKind kind, AtenTerm x) { return make(kind, {std::move(x)}); }
    Made clip(AtenTerm x, std::optional<double> least, std::optional<double> most = {});
    /// Taken for a constant by derivatives.
    Made detached(AtenTerm x);

    /// Over `axes`; none where there are none.
    Made reduce(OperatorKind kind, AtenTerm x, const Axes &axes, bool keeps = false);
    Made sum(AtenTerm x, const Axes &axes, bool keeps = false)
    {
        return reduce(OperatorKind::ReduceSum, std::move(x), axes, keeps);
    }
    /// The place of the largest or smallest element along a dimension, the first of equal ones; kept as 1.
    Made placeOf(OperatorKind kind, AtenTerm x, std::int64_t axis);
    /// As many sums as elements.
    Made runningSum(AtenTerm x, std::int64_t axis);

    Made cast(AtenTerm x, DataType type);
    Made reshape(AtenTerm x, Shape shape);
    /// With a dimension of 1 before dimension `axis`.
    Made unsqueeze(AtenTerm x, std::int64_t axis);
    Made expand(AtenTerm x, const Shape &shape);
    Made permute(AtenTerm x, Axes order);
    Made slice(AtenTerm x, std::int64_t axis, std::int64_t begin, std::int64_t end);
    /// What was there before dimension `axis` moves by one, with `value` in front.
    Made pad(AtenTerm x, std::int64_t axis, std::int64_t before, std::int64_t behind, double value);
    Made concat(const std::vector<AtenTerm> &parts, std::int64_t axis);
    Made gather(AtenTerm x, AtenTerm indices, std::int64_t axis);
    /// One element of x for each index, along a dimension.
    Made pick(AtenTerm x, AtenTerm indices, std::int64_t axis);
    /// `updates` combined with rows of x at `indices`, a list.
    Made scatterRows(AtenTerm x, AtenTerm indices, AtenTerm updates, const char *reduction);

    /// Known values.
    Made number(DataType type, double value) { return m_context.scalar(type, value); }
    Made integers(Axes values, Shape shape);
    Made reals(DataType type, const std::vector<double> &values, Shape shape);
    Made filled(const TensorType &type, double value);

    Result<void> finish(AtenTerm x, std::size_t slot = 0);

    const TensorType &typeOf(TensorId id) { return m_context.typeOf(id); }
    const Shape &shapeOf(TensorId id) { return m_context.shapeOf(id); }
    std::int64_t rankOf(TensorId id) { return m_context.rankOf(id); }
    /// All dimensions of a value.
    Axes allOf(TensorId id);

private:
    AtenContext &m_context;
};

/// The handler of an operator that is written as a formula: `write(context, f)`.
template<auto write> Result<void> formula(AtenContext &context)
{
    AtenFormula f(context);
    return write(context, f);
}

/// The handler of an operator of tensor "self": `handler(context, self)`, or `handler(context, f, self)` of
/// one that is written as a formula.
template<auto handler> Result<void> ofSelf(AtenContext &context)
{
    TRY(const TensorId self, context.tensor("self"));
    AtenFormula f(context);
    if constexpr (std::is_invocable_v<decltype(handler), AtenContext &, AtenFormula &, TensorId>)
        return handler(context, f, self);
    else
        return handler(context, self);
}

/// The mean or sum of all elements, or each of them, as argument "reduction" says, as result 0.
Result<void> finishAtenLoss(AtenContext &context, AtenTerm each);

} // namespace planloom
