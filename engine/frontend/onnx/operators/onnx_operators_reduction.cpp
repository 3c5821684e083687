#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/writer/emit_functions.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

/// What a reduction does to a single element: all that is left of it where it has no axes.
Result<void> reduceNothing(Context &context, OperatorKind kind)
{
    using enum OperatorKind;
    const TensorId x = context.input(0);
    switch (kind) {
    case ReduceL1: // the root of the square is the magnitude
    case ReduceL2:
        return context.finish(Abs, {x});
    case ReduceLogSum:
        return context.finish(Log, {x});
    case ReduceSumSquare:
        return context.finish(Mul, {x, x});
    default: // sums, products, means and extremes of one element, and log-sum-exp, are the element
        return context.bind(0, x);
    }
}

/// Axes as attribute before `since`, as input from then on; none means all of them.
Result<void> reduce(Context &context, OperatorKind kind, std::int64_t since)
{
    TRY_VOID(context.require(1));
    TRY(const auto given, context.attributeOrInput("axes", 1, since));
    TRY(const std::int64_t keep, context.integer("keepdims", 1));
    TRY(const std::int64_t noop, context.integer("noop_with_empty_axes", 0));
    const std::int64_t rank = context.rank(0);
    std::set<std::int64_t> axes;
    for (const std::int64_t axis : given.value_or(std::vector<std::int64_t>{})) {
        TRY(const std::int64_t resolved, context.axis(axis, rank));
        axes.insert(resolved);
    }
    if (axes.empty()) {
        if (noop != 0)
            return reduceNothing(context, kind);
        for (std::int64_t axis = 0; axis < rank; ++axis)
            axes.insert(axis);
    }
    return context.finish(
        emitReduction(context, kind, context.input(0), {axes.begin(), axes.end()}, keep != 0));
}

template<OperatorKind kind> Result<void> importReduction(Context &context)
{
    return reduce(context, kind, kind == OperatorKind::ReduceSum ? 13 : 18);
}

template<OperatorKind kind> Result<void> importArgument(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(0));
    TRY(const std::int64_t keep, context.integer("keepdims", 1));
    TRY(const std::int64_t last, context.integer("select_last_index", 0));
    return context.finish(kind, {context.input(0)},
        attributesFrom({{"axis", axis}, {"keepdims", std::int64_t{keep != 0 ? 1 : 0}},
            {"select_last_index", std::int64_t{last != 0 ? 1 : 0}}}));
}

/// The spatial axes of [n c ..]. @return InvalidInput if there are none
Result<std::vector<std::int64_t>> spatialAxes(Context &context)
{
    TRY_VOID(context.require(1));
    if (context.rank(0) < 3)
        return context.invalid("its input has the shape " + toString(context.shape(0))
            + ", where [n c ..] with spatial dimensions was expected");
    std::vector<std::int64_t> axes;
    for (std::int64_t axis = 2; axis < context.rank(0); ++axis)
        axes.push_back(axis);
    return axes;
}

Result<void> importGlobalAveragePool(Context &context)
{
    TRY(const auto axes, spatialAxes(context));
    return context.finish(emitReduction(context, OperatorKind::ReduceMean, context.input(0), axes, true));
}

Result<void> importGlobalMaxPool(Context &context)
{
    TRY(const auto axes, spatialAxes(context));
    return context.finish(emitReduction(context, OperatorKind::ReduceMax, context.input(0), axes, true));
}

Result<void> importGlobalLpPool(Context &context)
{
    TRY(const auto axes, spatialAxes(context));
    TRY(const std::int64_t p, context.integer("p", 2));
    const Attributes attributes = attributesFrom({{"axes", axes}, {"keepdims", std::int64_t{1}}});
    if (p == 1 || p == 2)
        return context.finish(
            p == 1 ? OperatorKind::ReduceL1 : OperatorKind::ReduceL2, {context.input(0)}, attributes);
    if (p < 1)
        return context.invalid("attribute 'p' is " + std::to_string(p) + ", where at least 1 was expected");
    const DataType type = context.type(0).dataType;
    TRY(const TensorId magnitude, context.make(OperatorKind::Abs, {context.input(0)}, {}, {}, "abs"));
    TRY(const TensorId powers,
        context.make(
            OperatorKind::Pow, {magnitude, context.scalar(type, static_cast<double>(p))}, {}, {}, "pow"));
    TRY(const TensorId sum, context.make(OperatorKind::ReduceSum, {powers}, attributes, {}, "sum"));
    return context.finish(OperatorKind::Pow, {sum, context.scalar(type, 1.0 / static_cast<double>(p))});
}

/// What an operator works along: a value, and a dimension of it.
struct Line {
    TensorId x{};
    std::int64_t axis = 0;
    bool isFlat = false; ///< x is not the input.
};

/// Before opset 13, (log-)softmax and hardmax work on the matrix that is made by flattening the input in
/// front of `axis`.
Result<Line> maximumLine(Context &context)
{
    TRY_VOID(context.require(1));
    TRY(const std::int64_t axis, context.axisAttribute(context.opset() < 13 ? 1 : -1));
    if (context.opset() >= 13 || axis + 1 >= context.rank(0))
        return Line{context.input(0), axis};
    const Shape shape = context.shape(0);
    const auto middle = shape.begin() + axis;
    TRY(const TensorId flat,
        context.reshape(context.input(0),
            {elementCount(Shape(shape.begin(), middle)), elementCount(Shape(middle, shape.end()))},
            "flatten"));
    return Line{flat, 1, true};
}

template<OperatorKind kind> Result<void> importSoftmax(Context &context)
{
    TRY(const Line line, maximumLine(context));
    const Attributes attributes = attributesFrom({{"axis", line.axis}});
    if (!line.isFlat)
        return context.finish(kind, {line.x}, attributes);
    TRY(const TensorId y, context.make(kind, {line.x}, attributes, {}, "softmax"));
    return context.finish(OperatorKind::Reshape, {y}, {}, context.type(0));
}

/// One where the largest element along `axis` stands first, zero elsewhere.
Result<void> importHardmax(Context &context)
{
    TRY(const Line line, maximumLine(context));
    const TensorType type = context.graph().typeOf(line.x);
    TRY(const TensorId best,
        context.make(OperatorKind::ArgMax, {line.x},
            attributesFrom(
                {{"axis", line.axis}, {"keepdims", std::int64_t{0}}, {"select_last_index", std::int64_t{0}}}),
            {}, "argmax"));
    const Attributes attributes = attributesFrom({{"axis", line.axis},
        {"depth", type.shape[static_cast<std::size_t>(line.axis)]}, {"on", 1.0}, {"off", 0.0}});
    if (!line.isFlat)
        return context.finish(OperatorKind::OneHot, {best}, attributes, type);
    TRY(const TensorId y, context.make(OperatorKind::OneHot, {best}, attributes, type, "hardmax"));
    return context.finish(OperatorKind::Reshape, {y}, {}, context.type(0));
}

} // namespace

const OnnxHandlers &onnxReductionHandlers()
{
    using enum OperatorKind;
    static const OnnxHandlers kHandlers = {{"ReduceSum", importReduction<ReduceSum>},
        {"ReduceMean", importReduction<ReduceMean>}, {"ReduceMax", importReduction<ReduceMax>},
        {"ReduceMin", importReduction<ReduceMin>}, {"ReduceProd", importReduction<ReduceProd>},
        {"ReduceL1", importReduction<ReduceL1>}, {"ReduceL2", importReduction<ReduceL2>},
        {"ReduceLogSum", importReduction<ReduceLogSum>},
        {"ReduceLogSumExp", importReduction<ReduceLogSumExp>},
        {"ReduceSumSquare", importReduction<ReduceSumSquare>}, {"ArgMax", importArgument<ArgMax>},
        {"ArgMin", importArgument<ArgMin>}, {"GlobalAveragePool", importGlobalAveragePool},
        {"GlobalMaxPool", importGlobalMaxPool}, {"GlobalLpPool", importGlobalLpPool},
        {"Softmax", importSoftmax<Softmax>}, {"LogSoftmax", importSoftmax<LogSoftmax>},
        {"Hardmax", importHardmax}};
    return kHandlers;
}

} // namespace planloom
