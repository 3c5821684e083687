// Steps of optimizers, and kinds that files name: Custom, Unknown.

#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/kind_entry.h"
#include "engine/graph/operators/weight_update.h"

#include <cmath>

namespace planloom {

namespace {

TypesOutcome inferOptimizer(const InferCall &call)
{
    std::vector<TensorType> types{call.type(0)};
    for (std::size_t slot = 1; slot < call.inputs.size(); ++slot) {
        if (!call.has(slot))
            continue;
        if (slot == factorSlotOf(call.kind)) {
            if (!call.in(slot).empty() || call.type(slot).dataType != DataType::Float32)
                return call.misfit(slot, "one Float32 number to multiply the gradient with");
            continue;
        }
        if (call.in(slot) != call.in(0))
            return call.misfit(slot, "the weight's shape, " + toString(call.in(0)));
        if (slot >= 2)
            types.push_back(call.type(slot));
    }
    return types;
}

TypesOutcome inferClipFactor(const InferCall &call)
{
    if (!call.in(0).empty() || call.type(0).dataType != DataType::Float32)
        return call.misfit(0, "one Float32 number, the sum of squares");
    if (const double norm = call.attributes.real("clip_norm"); !(norm > 0) || !std::isfinite(norm))
        return call.badAttribute("clip_norm", "a number above 0");
    return one(DataType::Float32, {});
}

/// Weight, gradient and state are cut alike.
std::string annotateOptimizer(const AnnotateCall &call, AnnotationBuilder &builder)
{
    const DimensionList weight = builder.freshAll(call.in(0));
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, slot == factorSlotOf(call.kind) ? DimensionList{} : weight);
    }
    // The second output of a momentum step is absent where its third input is.
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        if (slot == 0 || call.has(slot + 1))
            builder.output(slot, weight);
    }
    return {};
}

/// Parts make summands of the sum; its identifiers are those of the weight's update.
std::string annotateSquareSum(const AnnotateCall &call, AnnotationBuilder &builder)
{
    builder.input(0, builder.freshAll(call.in(0), kReduce));
    builder.output(0, DimensionList{});
    return {};
}

std::string annotateClipFactor(const AnnotateCall & /*call*/, AnnotationBuilder &builder)
{
    builder.input(0, DimensionList{});
    builder.output(0, DimensionList{});
    return {};
}

TypesOutcome inferSquareSum(const InferCall & /*call*/)
{
    return one(DataType::Float32, {});
}

TypesOutcome inferCustom(const InferCall &call)
{
    return customTypes(call.attributes, call.inputs, call.present);
}

TypesOutcome inferUnknown(const InferCall &call)
{
    if (call.declared.empty())
        return call.badOutput("declared output types, since Planloom does not know this operator");
    return call.declared;
}

std::string annotateUnknown(const AnnotateCall &call, AnnotationBuilder & /*builder*/)
{
    return "Planloom does not know how " + call.attributes.text("onnx_type", "this operator")
        + " may be split";
}

} // namespace

std::vector<KindEntry> optimizerKinds()
{
    using enum OperatorKind;
    constexpr auto kOptimizer = OperatorCategory::Optimizer;
    constexpr auto kOther = OperatorCategory::Other;
    const auto perElement = [](double operations) -> WorkRule { return {operations, firstInput}; };
    return {
        {SgdStep, "SgdStep", kOptimizer, {2, 4}, inferOptimizer, {annotateOptimizer}, {}, perElement(6)},
        {AdamWStep, "AdamWStep", kOptimizer, {4, 5}, inferOptimizer, {annotateOptimizer}, {}, perElement(16)},
        {SquareSum, "SquareSum", kOptimizer, {}, inferSquareSum, {annotateSquareSum}, {}, perElement(2)},
        {ClipFactor, "ClipFactor", kOptimizer, {}, inferClipFactor, {annotateClipFactor}, {}, perElement(6)},
        {Custom, "Custom", kOther, {0, kAnyNumber}, inferCustom},
        {Unknown, "Unknown", kOther, {0, kAnyNumber}, inferUnknown, {annotateUnknown}},
    };
}

} // namespace planloom
