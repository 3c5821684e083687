// Reductions over axes.

#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

TypesOutcome inferReduction(const InferCall &call)
{
    using enum OperatorKind;
    const Shape &x = call.in(0);
    const bool arg = call.kind == ArgMax || call.kind == ArgMin;
    const bool logarithm = call.kind == ReduceLogSum || call.kind == ReduceLogSumExp;
    const bool extreme = call.kind == ReduceMax || call.kind == ReduceMin; // of booleans: any, all
    if (!arg && !isFloating(call.type(0).dataType)
        && (logarithm || (call.type(0).dataType == DataType::Bool && !extreme)))
        return call.misfit(0, "numbers");
    std::vector<bool> reduced(x.size(), !arg && !call.attributes.has("axes"));
    if (arg) {
        TRY(const std::size_t axis, call.axis(x.size()));
        reduced[axis] = true;
    } else {
        for (const std::int64_t axis : call.attributes.integers("axes")) {
            if (axis < 0 || static_cast<std::size_t>(axis) >= x.size())
                return call.badAttribute(
                    "axes", "dimensions of input 0, " + toString(x) + ", found " + std::to_string(axis));
            reduced[static_cast<std::size_t>(axis)] = true;
        }
    }
    const bool keep = call.attributes.integer("keepdims", 1) != 0;
    Shape y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!reduced[i])
            y.push_back(x[i]);
        else if (keep)
            y.push_back(1);
    }
    return one(arg ? DataType::Int64 : call.type(0).dataType, std::move(y));
}

std::string annotateReduction(const AnnotateCall &call, AnnotationBuilder &builder)
{
    using enum OperatorKind;
    const bool other = call.kind == ReduceMax || call.kind == ReduceLogSumExp;
    const bool cut = call.kind == ReduceSum || call.kind == ReduceMean || call.kind == ReduceL1
        || call.kind == ReduceSumSquare || other;
    const bool arg = call.kind == ArgMax || call.kind == ArgMin;
    std::vector<std::int64_t> axes =
        arg ? std::vector<std::int64_t>{call.attributes.integer("axis")} : call.attributes.integers("axes");
    const bool all = !arg && !call.attributes.has("axes");
    const auto reduced = [&](std::size_t i) {
        return all || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) != axes.end();
    };
    const DimensionList x = dimensionsWith(builder, call.in(0), cut ? kReduce : kFrozen, reduced);
    DimensionList y;
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (!reduced(i))
            y.push_back(x[i]);
        else if (call.attributes.integer("keepdims", 1) != 0)
            y.push_back(builder.literal(1));
    }
    builder.input(0, x);
    builder.output(0, y);
    if (other)
        builder.combines(0, call.kind == ReduceMax ? Combination::Max : Combination::LogSumExp);
    return {};
}

} // namespace

std::vector<KindEntry> reductionKinds()
{
    using enum OperatorKind;
    constexpr auto kReduction = OperatorCategory::Reduction;
    const auto entry = [](OperatorKind kind, const char *name, double operations, GradientNeeds gradients,
                           DimensionLock lock = DimensionLock::Reduced,
                           std::vector<std::int32_t> linear = {}) -> KindEntry {
        return {kind, name, kReduction, {}, inferReduction, {annotateReduction, lock, std::move(linear)},
            std::move(gradients), {operations, firstInput}};
    };
    constexpr auto kWhole = DimensionLock::Whole;
    const GradientNeeds nothing{{NeedOfInput{}}};
    const GradientNeeds input{{NeedOfInput{{0}}}};
    const GradientNeeds both{{NeedOfInput{{0}, {0}}}}; // input and output
    return {entry(ReduceSum, "ReduceSum", 1, nothing, kWhole, {0}),
        entry(ReduceMean, "ReduceMean", 1, nothing, kWhole, {0}),
        entry(ReduceMax, "ReduceMax", 1, both, kWhole), entry(ReduceMin, "ReduceMin", 1, both),
        entry(ReduceProd, "ReduceProd", 1, both), entry(ReduceL1, "ReduceL1", 2, input),
        entry(ReduceL2, "ReduceL2", 2, both),
        entry(ReduceLogSum, "ReduceLogSum", 2, {{NeedOfInput{{}, {0}}}}),
        entry(ReduceLogSumExp, "ReduceLogSumExp", 12, both, kWhole),
        entry(ReduceSumSquare, "ReduceSumSquare", 2, input), entry(ArgMax, "ArgMax", 1, {}),
        entry(ArgMin, "ArgMin", 1, {})};
}

} // namespace planloom
