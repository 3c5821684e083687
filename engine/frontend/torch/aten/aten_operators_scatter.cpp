// What writes rows or elements at indices, and combines what comes to one place.
#include "engine/frontend/torch/aten/aten_operators.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- elements ----------------------------------------------------------------------------------------------

/// Where the values of an operator go: elements at indices along a dimension, or whole rows of it.
struct Targets {
    TensorId indices{}; ///< Of elements as many as values; of rows [k].
    std::int64_t axis = 0;
    bool isRows = false;
};

/// Element indices: the first elements of `source` count.
Result<TensorId> sourceLike(AtenContext &context, TensorId source, TensorId indices)
{
    if (context.shapeOf(source) == context.shapeOf(indices))
        return source;
    if (context.shapeOf(source).empty())
        return context.expand(source, Shape(context.shapeOf(indices)), "values");
    for (std::int64_t d = 0; d < context.rankOf(indices); ++d) {
        const std::int64_t extent = context.shapeOf(indices)[axisIndex(d)];
        TRY(source, context.slice(source, d, 0, extent, 1, "values"));
    }
    return source;
}

/// Dimension `axis` first: ScatterND writes along that one.
Integers axisFirst(std::int64_t axis, std::int64_t rank)
{
    Integers order{axis};
    for (std::int64_t d = 0; d < rank; ++d) {
        if (d != axis)
            order.push_back(d);
    }
    return order;
}

/// x with `source` written at the targets, or combined with what is there: reduction "none", "add", "mul",
/// "max" or "min".
Result<TensorId> written(AtenContext &context, TensorId x, const Targets &targets, TensorId source,
    const std::string &reduction, std::string_view suffix)
{
    if (!targets.isRows)
        return context.part(suffix, emitScatterElements, x, targets.indices, source, targets.axis, reduction);
    TRY(const TensorId places,
        context.reshape(targets.indices, {elementCount(context.shapeOf(targets.indices)), 1}, "places"));
    const std::int64_t axis = targets.axis;
    if (axis == 0 || context.rankOf(x) < 2)
        return context.part(suffix, emitScatterND, x, places, source, reduction);
    const Integers order = axisFirst(axis, context.rankOf(x));
    Integers back(order.size());
    for (std::size_t d = 0; d < order.size(); ++d)
        back[axisIndex(order[d])] = static_cast<std::int64_t>(d);
    TRY(const TensorId turned, context.permute(x, order, "turned"));
    TRY(const TensorId rows, context.permute(source, order, "source"));
    TRY(const TensorId made, context.part("written", emitScatterND, turned, places, rows, reduction));
    return context.permute(made, back, suffix);
}

/// The operator's own arguments: x, targets and, in the type of x, values.
struct Scatter {
    TensorId x{};
    Targets targets{};
    TensorId source{};
};

Result<Scatter> scatterOf(AtenContext &context, const char *sourceName, bool isRows)
{
    Scatter scatter;
    TRY(scatter.x, context.tensor("self"));
    const DataType type = context.typeOf(scatter.x).dataType;
    TRY(scatter.targets.indices, context.tensor("index"));
    TRY(scatter.targets.indices, context.cast(scatter.targets.indices, DataType::Int64, "index"));
    TRY(scatter.targets.axis, context.dimension("dim", context.rankOf(scatter.x), 0));
    scatter.targets.isRows = isRows;
    TRY(scatter.source, context.operand(sourceName, type));
    TRY(scatter.source, context.cast(scatter.source, type));
    if (!isRows) {
        TRY(scatter.source, sourceLike(context, scatter.source, scatter.targets.indices));
    } else if (context.shapeOf(scatter.source).empty()) { // one value, or one element of a vector
        Shape rows = context.shapeOf(scatter.x);
        if (!rows.empty())
            rows[axisIndex(scatter.targets.axis)] = elementCount(context.shapeOf(scatter.targets.indices));
        TRY(scatter.source, context.expand(scatter.source, rows, "values"));
    }
    return scatter;
}

Result<void> finishWritten(AtenContext &context, const Scatter &scatter, const std::string &reduction)
{
    TRY(const TensorId y, written(context, scatter.x, scatter.targets, scatter.source, reduction, ""));
    return context.bind(0, y);
}

Result<void> atenScatter(AtenContext &context)
{
    TRY(const std::string reduce, context.text("reduce", ""));
    const std::map<std::string, std::string> kReductions{{"", "none"}, {"add", "add"}, {"multiply", "mul"}};
    const auto found = kReductions.find(reduce);
    if (found == kReductions.end())
        return context.invalid("argument 'reduce' is '" + reduce + "'");
    TRY(const Scatter scatter, scatterOf(context, context.given("src") ? "src" : "value", false));
    return finishWritten(context, scatter, found->second);
}

Result<void> scatterAdd(AtenContext &context)
{
    TRY(const Scatter scatter, scatterOf(context, "src", false));
    return finishWritten(context, scatter, "add");
}

/// x with rows of `source`, `alpha` times, added at the indices along a dimension.
Result<void> indexAdd(AtenContext &context)
{
    TRY(Scatter scatter, scatterOf(context, "source", true));
    TRY(const double factor, context.real("alpha", 1));
    if (factor != 1) {
        const TensorId alpha = context.scalar(context.typeOf(scatter.x).dataType, factor);
        TRY(scatter.source, context.make(OperatorKind::Mul, {scatter.source, alpha}, {}, {}, "scaled"));
    }
    return finishWritten(context, scatter, "add");
}

Result<void> indexCopy(AtenContext &context)
{
    TRY(const Scatter scatter, scatterOf(context, "source", true));
    return finishWritten(context, scatter, "none");
}

Result<void> indexFill(AtenContext &context)
{
    TRY(const Scatter scatter, scatterOf(context, "value", true));
    return finishWritten(context, scatter, "none");
}

// --- combining ---------------------------------------------------------------------------------------------

/// How several values become one: by which reduction of ScatterND, and what it begins with.
struct Combination {
    std::string reduction{};
    double neutral = 0;
    bool isMean = false;
};

std::optional<Combination> combinationNamed(const std::string &name)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    static const std::map<std::string, Combination> kCombinations{{"sum", {"add", 0, false}},
        {"mean", {"add", 0, true}}, {"prod", {"mul", 1, false}}, {"amax", {"max", -kInfinity, false}},
        {"max", {"max", -kInfinity, false}}, {"amin", {"min", kInfinity, false}},
        {"min", {"min", kInfinity, false}}};
    const auto found = kCombinations.find(name);
    return found == kCombinations.end() ? std::nullopt : std::optional(found->second);
}

/// scatter_reduce and index_reduce: without `include_self` the elements that something goes to begin anew.
Result<void> reduced(AtenContext &context, const char *sourceName, bool isRows)
{
    TRY(const std::string name, context.text("reduce", "sum"));
    const auto combination = combinationNamed(name);
    if (!combination)
        return context.invalid("argument 'reduce' is '" + name + "'");
    TRY(Scatter scatter, scatterOf(context, sourceName, isRows));
    TRY(const bool includesSelf, context.flag("include_self", true));
    const TensorType type = context.typeOf(scatter.x);
    if (!isFloating(type.dataType) && (combination->isMean || !includesSelf))
        return context.unsupported("means, and results without the elements that are there, are computed of "
                                   "floating numbers",
            "convert to float before and back behind it");
    if (includesSelf && !combination->isMean)
        return finishWritten(context, scatter, combination->reduction);
    TRY(const TensorId none, context.filled(type, AtenValue(0.0), "none"));
    TRY(const TensorId ones,
        context.filled({type.dataType, context.shapeOf(scatter.source)}, AtenValue(1.0), "ones"));
    TRY(TensorId counts, written(context, none, scatter.targets, ones, "add", "counts"));
    const TensorId one = context.scalar(type.dataType, 1);
    if (!includesSelf) {
        TRY(const TensorId isReached,
            context.make(OperatorKind::GreaterOrEqual, {counts, one}, {}, {}, "is_reached"));
        const TensorId neutral = context.scalar(type.dataType, combination->neutral);
        TRY(scatter.x, context.make(OperatorKind::Where, {isReached, neutral, scatter.x}, {}, {}, "rest"));
        TRY(counts, context.make(OperatorKind::Max, {counts, one}, {}, {}, "divisors"));
    } else {
        TRY(counts, context.make(OperatorKind::Add, {counts, one}, {}, {}, "divisors"));
    }
    if (!combination->isMean)
        return finishWritten(context, scatter, combination->reduction);
    TRY(const TensorId sum, written(context, scatter.x, scatter.targets, scatter.source, "add", "sum"));
    return context.finish(OperatorKind::Div, {sum, counts});
}

/// Where each segment ends along a dimension of `extent`, [1 segments], and how long it is, [segments].
struct Segments {
    TensorId ends{};
    TensorId lengths{};
};
Result<Segments> segmentsOf(AtenContext &context)
{
    const bool byLength = context.given("lengths");
    TRY(const TensorId given, context.tensor(byLength ? "lengths" : "offsets"));
    TRY(const TensorId numbers, context.cast(given, DataType::Int64, "numbers"));
    if (context.rankOf(numbers) != 1)
        return context.unsupported("segments of several dimensions are not computed",
            "use scatter_reduce with the number of each element's segment");
    Segments segments;
    if (byLength) {
        segments.lengths = numbers;
        TRY(segments.ends, context.other("cumsum", {{"self", numbers}, {"dim", std::int64_t{0}}}, "ends"));
    } else {
        const std::int64_t count = context.shapeOf(numbers)[0];
        TRY(segments.ends, context.slice(numbers, 0, 1, count, 1, "ends"));
        TRY(const TensorId begins, context.slice(numbers, 0, 0, count - 1, 1, "begins"));
        TRY(segments.lengths, context.make(OperatorKind::Sub, {segments.ends, begins}, {}, {}, "lengths"));
    }
    const std::int64_t count = elementCount(context.shapeOf(segments.lengths));
    TRY(segments.ends, context.reshape(segments.ends, {1, count}, "ends_in_row"));
    return segments;
}

/// Rows that lie behind one another are combined segment by segment.
Result<void> segmentReduce(AtenContext &context)
{
    TRY(const TensorId x, context.tensor("data"));
    TRY(const std::string name, context.text("reduce", "sum"));
    TRY(const std::int64_t axis, context.dimension("axis", context.rankOf(x), 0));
    const auto combination = combinationNamed(name);
    const TensorType type = context.typeOf(x);
    if (!combination || axis != 0 || type.shape.empty())
        return context.unsupported("segments along other dimensions than the first are not computed",
            "use scatter_reduce with the number of each element's segment");
    TRY(const Segments segments, segmentsOf(context));
    TRY(const double initial, context.real("initial", combination->neutral));
    // A row's segment is as many as end at it or before.
    TRY(const TensorId rows,
        context.make(OperatorKind::Range, {},
            attributesFrom({{"start", std::int64_t{0}}, {"delta", std::int64_t{1}}}),
            TensorType{DataType::Int64, {type.shape[0]}}, "rows"));
    TRY(const TensorId column, context.reshape(rows, {type.shape[0], 1}, "rows_in_column"));
    TRY(const TensorId isBehind,
        context.make(OperatorKind::GreaterOrEqual, {column, segments.ends}, {}, {}, "is_behind"));
    TRY(const TensorId owners, context.other("sum", {{"self", isBehind}, {"dim", Integers{1}}}, "segments"));
    Shape shape = type.shape;
    shape[0] = elementCount(context.shapeOf(segments.lengths));
    TRY(const TensorId begin, context.filled({type.dataType, shape}, AtenValue(initial), "initial"));
    TRY(const TensorId made,
        written(
            context, begin, {owners, 0, true}, x, combination->reduction, combination->isMean ? "sum" : ""));
    if (!combination->isMean)
        return context.bind(0, made);
    TRY(TensorId counts, context.cast(segments.lengths, type.dataType, "counts"));
    Shape beside(shape.size(), 1);
    beside[0] = shape[0];
    TRY(counts, context.reshape(counts, std::move(beside), "divisors"));
    if (!context.given("initial")) // of nothing: 0 / 0
        return context.finish(OperatorKind::Div, {made, counts});
    TRY(counts,
        context.make(OperatorKind::Max, {counts, context.scalar(type.dataType, 1)}, {}, {}, "at_least_one"));
    return context.finish(OperatorKind::Div, {made, counts});
}

} // namespace

const AtenHandlers &atenScatterHandlers()
{
    static const AtenHandlers kHandlers = {{"scatter", atenScatter}, {"scatter_add", scatterAdd},
        {"scatter_reduce", [](AtenContext &context) { return reduced(context, "src", false); }},
        {"index_add", indexAdd}, {"index_copy", indexCopy}, {"index_fill", indexFill},
        {"index_reduce", [](AtenContext &context) { return reduced(context, "source", true); }},
        {"segment_reduce", segmentReduce}};
    return kHandlers;
}

} // namespace planloom
