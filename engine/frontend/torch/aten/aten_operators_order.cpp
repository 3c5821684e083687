// What depends on the order of elements, and running combinations of them.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace planloom {

namespace {

using Made = AtenFormula::Made;

/// What is ordered: a dimension, or all elements as one list.
struct Ordered {
    TensorId x{};
    std::int64_t axis = 0;
    std::int64_t extent = 1;
    Shape shape{}; ///< Of the result.
    bool whole = false;
};

Result<Ordered> orderedOf(AtenContext &context, bool wholeByDefault)
{
    Ordered ordered;
    TRY(ordered.x, context.tensor("self"));
    TRY(const bool keeps, context.flag("keepdim", false));
    ordered.whole = wholeByDefault && !context.given("dim");
    const std::int64_t rank = context.rankOf(ordered.x);
    if (ordered.whole || rank == 0) {
        if (ordered.whole && keeps)
            ordered.shape.assign(axisIndex(rank), 1);
        TRY(ordered.x, context.reshape(ordered.x, {elementCount(context.shapeOf(ordered.x))}, "list"));
    } else {
        TRY(ordered.axis, context.dimension("dim", rank, -1));
        ordered.shape = context.shapeOf(ordered.x);
        if (keeps)
            ordered.shape[axisIndex(ordered.axis)] = 1;
        else
            ordered.shape.erase(ordered.shape.begin() + ordered.axis);
    }
    ordered.extent = context.shapeOf(ordered.x)[axisIndex(ordered.axis)];
    if (ordered.extent < 1)
        return context.invalid("it has no elements to order");
    return ordered;
}

/// The first `k` in ascending order, and their places.
Result<std::vector<TensorId>> ascending(AtenContext &context, TensorId x, std::int64_t axis, std::int64_t k)
{
    return context.makeMany(OperatorKind::TopK, {x},
        attributesFrom({{"axis", axis}, {"k", k}, {"largest", std::int64_t{0}}, {"sorted", std::int64_t{1}}}),
        "sorted");
}

/// Values at places [.. 1 ..] of an ordered dimension, and the places.
Result<void> finishPlaced(AtenContext &context, const Ordered &ordered, AtenTerm place)
{
    AtenFormula f(context);
    TRY_VOID(f.finish(f.reshape(f.pick(ordered.x, place, ordered.axis), ordered.shape)));
    return context.wants(1) ? f.finish(f.reshape(place, ordered.shape), 1) : Result<void>{};
}

/// Element `k`, counted from 0, in ascending order.
Result<void> elementInOrder(AtenContext &context, const Ordered &ordered, std::int64_t k)
{
    AtenFormula f(context);
    TRY(const auto sorted, ascending(context, ordered.x, ordered.axis, k + 1));
    return finishPlaced(context, ordered, f.slice(sorted[1], ordered.axis, k, k + 1));
}

Result<void> kthValue(AtenContext &context)
{
    TRY(const Ordered ordered, orderedOf(context, false));
    TRY(const std::int64_t k, context.integer("k"));
    if (k < 1 || k > ordered.extent)
        return context.invalid(
            "it asks for element " + std::to_string(k) + " of " + std::to_string(ordered.extent));
    return elementInOrder(context, ordered, k - 1);
}

/// A value of all elements whose gradient all that are equal to it share.
Result<void> finishShared(AtenContext &context, TensorId list, AtenTerm value)
{
    AtenFormula f(context);
    const DataType type = context.typeOf(list).dataType;
    const auto same = f.cast(f.equal(list, f.detached(std::move(value))), type);
    TRY(const TensorId chosen, f.detached(same));
    const auto clean = f.where(f.equal(chosen, 0.0), 0.0, list);
    return f.finish(f.div(f.sum(clean, {0}), f.sum(chosen, {0})));
}

/// The lower of the two in the middle.
Result<void> atenMedian(AtenContext &context, AtenFormula &f)
{
    TRY(const Ordered ordered, orderedOf(context, true));
    const std::int64_t k = (ordered.extent - 1) / 2;
    if (!ordered.whole || context.wants(1))
        return elementInOrder(context, ordered, k);
    TRY(const auto sorted, ascending(context, ordered.x, 0, k + 1));
    return finishShared(context, ordered.x, f.reshape(f.slice(sorted[0], 0, k, k + 1), {}));
}

/// The same of what is a number: others are ordered last.
Result<void> nanMedian(AtenContext &context, AtenFormula &f)
{
    TRY(const Ordered ordered, orderedOf(context, true));
    const DataType type = context.typeOf(ordered.x).dataType;
    TRY(const TensorId missing, f.of(OperatorKind::IsNaN, ordered.x));
    TRY(const TensorId last, f.number(type, std::numeric_limits<double>::infinity()));
    TRY(const TensorId numbers, f.where(missing, last, ordered.x));
    TRY(const auto sorted, ascending(context, numbers, ordered.axis, ordered.extent));
    const auto present = f.cast(f.of(OperatorKind::Not, missing), DataType::Float32);
    const auto count = f.sum(present, {ordered.axis}, true);
    const auto middle = f.of(OperatorKind::Floor, f.div(f.sub(count, 1.0), 2.0));
    TRY(const TensorId rank, f.cast(f.clip(middle, 0.0), DataType::Int64));
    if (ordered.whole)
        return finishShared(context, numbers, f.reshape(f.pick(sorted[0], rank, 0), {}));
    return finishPlaced(context, ordered, f.pick(sorted[1], rank, ordered.axis));
}

/// The value that occurs most often, the least of several.
Result<void> atenMode(AtenContext &context, AtenFormula &f)
{
    TRY(const Ordered ordered, orderedOf(context, false));
    TRY(const auto sorted, ascending(context, ordered.x, ordered.axis, ordered.extent));
    const auto same = f.equal(f.unsqueeze(sorted[0], ordered.axis), f.unsqueeze(sorted[0], ordered.axis + 1));
    const auto count = f.sum(f.cast(same, DataType::Float32), {ordered.axis + 1});
    const auto first = f.placeOf(OperatorKind::ArgMax, count, ordered.axis);
    return finishPlaced(context, ordered, f.pick(sorted[1], first, ordered.axis));
}

// --- quantiles ---------------------------------------------------------------------------------------------

/// Between the elements in order beside `share` of the way through them; with several shares their dimension
/// is the first.
Result<void> atenQuantile(AtenContext &context, AtenFormula &f)
{
    TRY(const Ordered ordered, orderedOf(context, true));
    TRY(const std::string way, context.text("interpolation", "linear"));
    TRY(const TensorId given, context.operand("q", context.typeOf(ordered.x).dataType));
    const auto values = context.graph().valuesOf(given);
    if (!values || (way != "linear" && way != "lower" && way != "higher"))
        return context.keepUnknown(values ? "quantiles with interpolation '" + way + "' are not computed"
                                          : "quantiles that are not known before a run are not computed");
    TRY(const auto sorted, ascending(context, ordered.x, ordered.axis, ordered.extent));
    std::vector<AtenTerm> parts;
    for (const double share : realsOf(*values)) {
        const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(ordered.extent - 1);
        const auto low = static_cast<std::int64_t>(at);
        const double rest = at - static_cast<double>(low);
        const std::int64_t high = rest > 0 ? low + 1 : low;
        const auto element = [&](std::int64_t i) {
            return f.reshape(f.slice(sorted[0], ordered.axis, i, i + 1), ordered.shape);
        };
        if (way != "linear" || rest == 0)
            parts.push_back(element(way == "higher" ? high : low));
        else
            parts.push_back(f.add(f.mul(element(low), 1 - rest), f.mul(element(high), rest)));
    }
    if (context.shapeOf(given).empty())
        return f.finish(parts.front());
    for (AtenTerm &part : parts)
        part = f.unsqueeze(part, 0);
    return f.finish(f.concat(parts, 0));
}

Result<void> atenMsort(AtenContext &context, TensorId x)
{
    TRY(const auto sorted, ascending(context, x, 0, context.shapeOf(x)[0]));
    return context.bind(0, sorted[0]);
}

/// The least and the largest.
Result<void> leastAndLargest(AtenContext &context, AtenFormula &f)
{
    TRY(const Ordered ordered, orderedOf(context, true));
    std::size_t slot = 0;
    for (const auto kind : {OperatorKind::ReduceMin, OperatorKind::ReduceMax})
        TRY_VOID(f.finish(f.reshape(f.reduce(kind, ordered.x, {ordered.axis}, true), ordered.shape), slot++));
    return {};
}

// --- running combinations ----------------------------------------------------------------------------------

/// Each element combined with all before it, in as many steps as the extent has binary digits: step k joins
/// what came 2^k before.
template<typename Join>
Made running(AtenFormula &f, TensorId x, std::int64_t axis, double neutral, const Join &join)
{
    const std::int64_t extent = f.shapeOf(x)[axisIndex(axis)];
    for (std::int64_t step = 1; step < extent; step *= 2) {
        const auto before = f.pad(f.slice(x, axis, 0, extent - step), axis, step, 0, neutral);
        TRY(x, join(x, before));
    }
    return x;
}

Result<void> runningProduct(AtenContext &context, AtenFormula &f)
{
    TRY(TensorId x, context.tensor("self"));
    const DataType own = context.typeOf(x).dataType;
    TRY(const DataType type, context.dataType(isFloating(own) ? own : DataType::Int64));
    TRY(x, context.cast(x, type));
    if (context.rankOf(x) == 0)
        return context.bind(0, x);
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    return f.finish(running(f, x, axis, 1, [&](TensorId a, const Made &b) { return f.mul(a, b); }));
}

/// log(exp(a) + exp(b)) as a + softplus(b - a).
Result<void> runningLogSumExp(AtenContext &context, AtenFormula &f)
{
    constexpr double kNothing = -1e30; // its exponential is 0, and the difference of two of them is a number
    TRY(const TensorId x, context.tensor("self"));
    if (context.rankOf(x) == 0)
        return context.bind(0, x);
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    return f.finish(running(f, x, axis, kNothing,
        [&](TensorId a, const Made &b) { return f.add(a, f.of(OperatorKind::Softplus, f.sub(b, a))); }));
}

/// The largest (least) element so far, and its place: the last of equal ones.
template<bool largest> Result<void> runningExtreme(AtenContext &context, AtenFormula &f, TensorId x)
{
    if (context.rankOf(x) == 0)
        return context.keepUnknown("the running extreme of a scalar is not computed");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
    AtenFormula::Axes numbers(axisIndex(extent));
    for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = static_cast<std::int64_t>(i);
    Shape shape(context.shapeOf(x).size(), 1);
    shape[axisIndex(axis)] = extent;
    TRY(TensorId place, f.expand(f.integers(numbers, shape), Shape(context.shapeOf(x))));
    for (std::int64_t step = 1; step < extent; step *= 2) {
        const auto front = f.slice(place, axis, 0, step);
        TRY(const TensorId before, f.concat({front, f.slice(place, axis, 0, extent - step)}, axis));
        TRY(const TensorId own, f.pick(f.detached(x), place, axis));
        TRY(const TensorId other, f.pick(f.detached(x), before, axis));
        TRY(place, f.where(largest ? f.atLeast(own, other) : f.atLeast(other, own), place, before));
    }
    TRY_VOID(f.finish(f.pick(x, place, axis)));
    return context.wants(1) ? f.finish(place, 1) : Result<void>{};
}

} // namespace

const AtenHandlers &atenOrderHandlers()
{
    static const AtenHandlers kHandlers = {{"median", formula<atenMedian>}, {"nanmedian", formula<nanMedian>},
        {"kthvalue", kthValue}, {"mode", formula<atenMode>}, {"quantile", formula<atenQuantile>},
        {"msort", ofSelf<atenMsort>}, {"aminmax", formula<leastAndLargest>},
        {"cumprod", formula<runningProduct>}, {"logcumsumexp", formula<runningLogSumExp>},
        {"cummax", ofSelf<runningExtreme<true>>}, {"cummin", ofSelf<runningExtreme<false>>}};
    return kHandlers;
}

} // namespace planloom
