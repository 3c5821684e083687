#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/kind_entry.h"

#include <algorithm>

namespace planloom {

namespace {

/// Extents whose products cannot overflow; type inference lets no others through.
bool hasCountableElements(const Shape &shape)
{
    std::int64_t product = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0 || __builtin_mul_overflow(product, std::max<std::int64_t>(extent, 1), &product))
            return false;
    }
    return true;
}

/// The operator in one piece; absent inputs are opaque.
Annotation whole(const AnnotateCall &call)
{
    AnnotationBuilder builder(call);
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        if (call.has(slot))
            builder.input(slot, builder.literals(call.in(slot)));
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot)
        builder.output(slot, builder.literals(call.out(slot)));
    std::string problem;
    return builder.finish(call, problem);
}

/// Whether a tensor is absent without which the operator cannot be described.
bool lacksTensors(const KindEntry &entry, const AnnotateCall &call)
{
    for (std::size_t slot = 0; slot < entry.inputs.required; ++slot) {
        if (!call.has(slot))
            return true;
    }
    return call.outputs.empty() && entry.kind != OperatorKind::Unknown;
}

std::string annotateKind(const KindEntry &entry, const AnnotateCall &call, AnnotationBuilder &builder)
{
    const auto sane = [](const TensorType &type) { return hasCountableElements(type.shape); };
    if (!std::all_of(call.inputs.begin(), call.inputs.end(), sane)
        || !std::all_of(call.outputs.begin(), call.outputs.end(), sane))
        return std::string(entry.name) + " has a tensor with impossible extents";
    if (lacksTensors(entry, call))
        return missing(call);
    if (std::string problem = entry.splits.annotate(call, builder); !problem.empty())
        return problem;
    if (!entry.splits.linear.empty() && isFloating(call.outputs[0].dataType)
        && isFloating(call.inputs[static_cast<std::size_t>(entry.splits.linear[0])].dataType))
        builder.linear(entry.splits.linear);
    return {};
}

} // namespace

AnnotationOutcome annotate(OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const std::vector<TensorType> &outputs)
{
    if (kind == OperatorKind::Custom)
        return customAnnotation(attributes, inputs, present, outputs);
    const KindEntry &entry = entryOf(kind);
    const AnnotateCall call{kind, attributes, inputs, present, outputs};
    AnnotationBuilder builder(call, entry.splits.letters);
    AnnotationOutcome outcome;
    outcome.problem = annotateKind(entry, call, builder);
    if (outcome.problem.empty())
        outcome.annotation = builder.finish(call, outcome.problem);
    if (!outcome.problem.empty())
        outcome.annotation = whole(call);
    for (Dimension &dimension : outcome.annotation.dimensions)
        if (dimension.mark == DimensionMark::Frozen && dimension.lock == DimensionLock::Whole)
            dimension.lock = entry.splits.lock;
    return outcome;
}

} // namespace planloom
