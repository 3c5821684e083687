#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// What is reduced: `dim`, or all dimensions where none is named.
struct Reduced {
    TensorId x{};
    Integers axes{};
    std::int64_t keeps = 0;
    std::int64_t count = 1; ///< Elements that become one.

    Attributes attributes() const { return attributesFrom({{"axes", axes}, {"keepdims", keeps}}); }
};

Result<Reduced> reducedOf(AtenContext &context)
{
    Reduced reduced;
    TRY(reduced.x, context.tensor("self"));
    const std::int64_t rank = context.rankOf(reduced.x);
    Integers all(static_cast<std::size_t>(rank));
    std::iota(all.begin(), all.end(), 0);
    TRY(reduced.axes, context.dimensions("dim", rank, all));
    std::sort(reduced.axes.begin(), reduced.axes.end());
    TRY(const bool keeps, context.flag("keepdim", false));
    reduced.keeps = keeps ? 1 : 0;
    for (const std::int64_t axis : reduced.axes)
        reduced.count *= context.shapeOf(reduced.x)[static_cast<std::size_t>(axis)];
    return reduced;
}

/// A reduction that makes the type of its input; of a scalar it is the scalar.
Result<void> reduceBy(AtenContext &context, OperatorKind kind, const Reduced &reduced)
{
    if (reduced.axes.empty())
        return context.bind(0, reduced.x);
    Attributes attributes = reduced.attributes();
    if (kind == OperatorKind::ReduceMean)
        attributes.set("count", reduced.count);
    return context.finish(kind, {reduced.x}, std::move(attributes));
}

/// Sums and products of integers and truth values are int64.
template<OperatorKind kind> Result<void> atenSum(AtenContext &context)
{
    TRY(Reduced reduced, reducedOf(context));
    const DataType own = context.typeOf(reduced.x).dataType;
    TRY(const DataType type, context.dataType(isFloating(own) ? own : DataType::Int64));
    TRY(reduced.x, context.cast(reduced.x, type));
    return reduceBy(context, kind, reduced);
}

Result<void> atenMean(AtenContext &context)
{
    TRY(Reduced reduced, reducedOf(context));
    TRY(const DataType type, context.dataType(context.typeOf(reduced.x).dataType));
    TRY(reduced.x, context.cast(reduced.x, type));
    return reduceBy(context, OperatorKind::ReduceMean, reduced);
}

/// amax and amin: gradients of equal elements are shared, as ReduceMax's are.
template<OperatorKind kind> Result<void> atenExtremes(AtenContext &context)
{
    TRY(const Reduced reduced, reducedOf(context));
    return reduceBy(context, kind, reduced);
}

/// max and min: of all, along one dimension with the places, or of two tensors.
template<bool largest> Result<void> atenExtreme(AtenContext &context)
{
    if (context.given("other")) {
        TRY(const DataType type, context.promotedType({"self", "other"}));
        TRY(TensorId a, context.operand("self", type));
        TRY(TensorId b, context.operand("other", type));
        TRY(a, context.cast(a, type, "self"));
        TRY(b, context.cast(b, type, "other"));
        return context.finish(largest ? OperatorKind::Max : OperatorKind::Min, {a, b});
    }
    TRY(const Reduced reduced, reducedOf(context));
    const OperatorKind kind = largest ? OperatorKind::ReduceMax : OperatorKind::ReduceMin;
    if (!context.given("dim") || reduced.axes.empty())
        return reduceBy(context, kind, reduced);
    // The gradient is that of the element at the place, as PyTorch has it, also where others are equal.
    TRY(const TensorId place,
        context.make(largest ? OperatorKind::ArgMax : OperatorKind::ArgMin, {reduced.x},
            attributesFrom({{"axis", reduced.axes.front()}, {"keepdims", std::int64_t{1}},
                {"select_last_index", std::int64_t{0}}}),
            {}, "place"));
    Shape shape = context.shapeOf(place);
    if (reduced.keeps == 0)
        shape.erase(shape.begin() + reduced.axes.front());
    TRY(const TensorId picked,
        context.part("picked", emitGatherElements, reduced.x, place, reduced.axes.front()));
    TRY(const TensorId values, context.reshape(picked, shape, ""));
    TRY_VOID(context.bind(0, values));
    if (context.resultCount() < 2 || !context.wants(1))
        return {};
    TRY(const TensorId places, context.reshape(place, shape, "places"));
    return context.bind(1, places);
}

template<OperatorKind kind> Result<void> atenArgument(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    const bool flat = !context.given("dim");
    if (flat) {
        TRY(x, context.reshape(x, {elementCount(context.shapeOf(x))}, "flat"));
    }
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const bool keeps, context.flag("keepdim", false));
    return context.finish(kind, {x},
        attributesFrom({{"axis", axis}, {"keepdims", std::int64_t{keeps && !flat ? 1 : 0}},
            {"select_last_index", std::int64_t{0}}}));
}

/// Whether any, or each, element is true: the largest, or least, of zeros and ones.
template<OperatorKind kind> Result<void> atenTruth(AtenContext &context)
{
    TRY(Reduced reduced, reducedOf(context));
    TRY(reduced.x, context.cast(reduced.x, DataType::Bool, "truth"));
    if (reduced.axes.empty())
        return context.bind(0, reduced.x);
    TRY(const TensorId numbers, context.cast(reduced.x, DataType::Int32, "numbers"));
    TRY(const TensorId extreme, context.make(kind, {numbers}, reduced.attributes(), {}, "extreme"));
    return context.finish(
        OperatorKind::Cast, {extreme}, {}, TensorType{DataType::Bool, context.shapeOf(extreme)});
}

/// The mean of what `reduced` says, kept as a dimension of 1.
Result<TensorId> keptMean(AtenContext &context, const Reduced &reduced)
{
    Attributes attributes = attributesFrom({{"axes", reduced.axes}, {"keepdims", std::int64_t{1}}});
    attributes.set("count", reduced.count);
    return context.make(OperatorKind::ReduceMean, {reduced.x}, std::move(attributes), {}, "mean");
}

/// Sum of squared distances from the mean, over count - correction.
Result<TensorId> varianceOf(
    AtenContext &context, const Reduced &reduced, TensorId mean, std::string_view suffix)
{
    TRY(const bool unbiased, context.flag("unbiased", true));
    TRY(const double correction, context.real("correction", unbiased ? 1 : 0));
    const double divisor = std::max(0.0, static_cast<double>(reduced.count) - correction);
    TRY(const TensorId distance, context.make(OperatorKind::Sub, {reduced.x, mean}, {}, {}, "distance"));
    TRY(const TensorId square, context.make(OperatorKind::Mul, {distance, distance}, {}, {}, "square"));
    TRY(const TensorId sum,
        context.make(OperatorKind::ReduceSum, {square}, reduced.attributes(), {}, "squares"));
    return context.make(OperatorKind::Div, {sum, context.scalar(context.typeOf(reduced.x).dataType, divisor)},
        {}, {}, suffix);
}

template<bool root, bool withMean> Result<void> atenVariance(AtenContext &context)
{
    TRY(const Reduced reduced, reducedOf(context));
    if (reduced.axes.empty())
        return context.keepUnknown("the variance of a scalar is not computed");
    TRY(const TensorId mean, keptMean(context, reduced));
    TRY(TensorId variance, varianceOf(context, reduced, mean, root ? "variance" : ""));
    if (root) {
        TRY(variance, context.make(OperatorKind::Sqrt, {variance}));
    }
    TRY_VOID(context.bind(0, variance));
    if (!withMean)
        return {};
    TRY(const TensorId shaped, context.reshape(mean, Shape(context.shapeOf(variance)), "mean_shape"));
    return context.bind(1, shaped);
}

template<OperatorKind kind> Result<void> atenReduction(AtenContext &context)
{
    TRY(const Reduced reduced, reducedOf(context));
    return reduceBy(context, kind, reduced);
}

Result<void> atenCumSum(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    const DataType own = context.typeOf(x).dataType;
    TRY(const DataType type, context.dataType(isFloating(own) ? own : DataType::Int64));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(x, context.cast(x, type));
    if (context.rankOf(x) == 0)
        return context.bind(0, x);
    return context.finish(OperatorKind::CumSum, {x},
        attributesFrom({{"axis", axis}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}}));
}

Result<void> ordered(AtenContext &context, std::int64_t k, bool largest, bool placesOnly)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), -1));
    if (context.rankOf(x) == 0)
        return context.keepUnknown("sorting a scalar is not computed");
    const std::int64_t extent = context.shapeOf(x)[static_cast<std::size_t>(axis)];
    TRY(const auto made,
        context.makeMany(OperatorKind::TopK, {x},
            attributesFrom({{"axis", axis}, {"k", k < 0 ? extent : k},
                {"largest", std::int64_t{largest ? 1 : 0}}, {"sorted", std::int64_t{1}}}),
            ""));
    if (placesOnly)
        return context.bind(0, made[1]);
    TRY_VOID(context.bind(0, made[0]));
    return context.bind(1, made[1]);
}
Result<void> atenTopK(AtenContext &context)
{
    TRY(const std::int64_t k, context.integer("k"));
    TRY(const bool largest, context.flag("largest", true));
    if (k < 0)
        return context.invalid("it takes the first " + std::to_string(k));
    return ordered(context, k, largest, false);
}
/// How many elements lie in each of equal ranges; those outside of all are left out.
Result<void> histogram(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t bins, context.integer("bins", 100));
    TRY(const double low, context.real("min", 0));
    TRY(const double high, context.real("max", 0));
    const DataType type = context.typeOf(x).dataType;
    if (low == 0 && high == 0 && bins == 1) { // one range, from the least to the largest: a single expert
        TRY(const TensorId all,
            context.filled({type, {1}}, static_cast<double>(elementCount(context.shapeOf(x))), "all"));
        context.graph().chosen().setCounted(all, x);
        return context.bind(0, all);
    }
    if (!(low < high) || bins < 1)
        return context.keepUnknown("ranges that are found from data are not computed");
    const DataType real = isFloating(type) ? type : DataType::Float32;
    TRY(TensorId list, context.reshape(x, {elementCount(context.shapeOf(x))}, "list"));
    TRY(list, context.cast(list, real, "numbers"));
    const auto with = [&](OperatorKind kind, TensorId a, double b, const char *suffix) {
        return context.make(kind, {a, context.scalar(real, b)}, {}, {}, suffix);
    };
    TRY(const TensorId above, with(OperatorKind::Sub, list, low, "above"));
    TRY(const TensorId share, with(OperatorKind::Div, above, high - low, "share"));
    TRY(const TensorId scaled, with(OperatorKind::Mul, share, static_cast<double>(bins), "scaled"));
    TRY(const TensorId range, context.make(OperatorKind::Floor, {scaled}, {}, {}, "range"));
    TRY(const TensorId last, with(OperatorKind::Min, range, static_cast<double>(bins - 1), "last"));
    TRY(const TensorId enough, with(OperatorKind::GreaterOrEqual, list, low, "enough"));
    TRY(const TensorId little, with(OperatorKind::LessOrEqual, list, high, "little"));
    TRY(const TensorId inside, context.make(OperatorKind::And, {enough, little}, {}, {}, "inside"));
    TRY(const TensorId kept,
        context.make(OperatorKind::Where, {inside, last, context.scalar(real, static_cast<double>(bins))}, {},
            {}, "kept"));
    TRY(const TensorId index, context.cast(kept, DataType::Int64, "index"));
    TRY(const TensorId ones,
        context.make(OperatorKind::OneHot, {index},
            attributesFrom({{"axis", std::int64_t{1}}, {"depth", bins}, {"on", 1.0}, {"off", 0.0}}),
            TensorType{type, {elementCount(context.shapeOf(x)), bins}}, "ones"));
    TRY(const TensorId counts,
        context.make(OperatorKind::ReduceSum, {ones},
            attributesFrom({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", std::int64_t{0}}})));
    if (low == 0 && high == static_cast<double>(bins - 1))
        context.graph().chosen().setCounted(counts, x); // of integers: each has a range of its own
    return context.bind(0, counts);
}

Result<void> atenSort(AtenContext &context)
{
    TRY(const bool descending, context.flag("descending", false));
    return ordered(context, -1, descending, false);
}
Result<void> atenArgSort(AtenContext &context)
{
    TRY(const bool descending, context.flag("descending", false));
    return ordered(context, -1, descending, true);
}

} // namespace

const AtenHandlers &atenReductionHandlers()
{
    using enum OperatorKind;
    static const AtenHandlers kHandlers = {{"sum", atenSum<ReduceSum>}, {"prod", atenSum<ReduceProd>},
        {"mean", atenMean}, {"amax", atenExtremes<ReduceMax>}, {"amin", atenExtremes<ReduceMin>},
        {"max", atenExtreme<true>}, {"min", atenExtreme<false>}, {"argmax", atenArgument<ArgMax>},
        {"argmin", atenArgument<ArgMin>}, {"any", atenTruth<ReduceMax>}, {"all", atenTruth<ReduceMin>},
        {"var", atenVariance<false, false>}, {"std", atenVariance<true, false>},
        {"var_mean", atenVariance<false, true>}, {"std_mean", atenVariance<true, true>},
        {"logsumexp", atenReduction<ReduceLogSumExp>}, {"cumsum", atenCumSum}, {"topk", atenTopK},
        {"histc", ofSelf<histogram>}, {"sort", atenSort}, {"argsort", atenArgSort}};
    return kHandlers;
}

} // namespace planloom
