#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cstddef>

namespace planloom {

namespace {

/// What the backward operator has of an output of its forward, or of an input whose value it needs. A part
/// makes the gradient of its share, to which windows of its neighbours contribute; where the gradient depends
/// on more than the windows' own elements (the largest of a pool), it needs theirs, too.
///
///     forward          x[windows] -> y           x[met] -> y[share]      (transposed)
///     gradient of y    y[met]                    y[covered]
///     x, y             x[windows] or x[around], y[met]
///     gradient of x    x[share]                  x
WindowReach inBackward(WindowReach forward, bool counted, bool linear)
{
    switch (forward) {
    case WindowReach::Windows:
        return linear ? WindowReach::Windows : WindowReach::Around;
    case WindowReach::Share:
        return WindowReach::Covered;
    case WindowReach::Met:
        return WindowReach::Own;
    default:
        return counted ? WindowReach::Met : forward;
    }
}

void setReach(const Annotation &annotation, TensorTerms &tensor, bool output, bool linear)
{
    for (Term &term : tensor.terms) {
        const bool counted = output && term.factors.size() == 1 && findWindow(annotation, term.factors[0]);
        term.reach = inBackward(term.reach, counted, linear);
    }
}

/// True if windows read an input whose gradient is made, or the forward operator itself needs those of
/// neighbours.
bool sharesWindows(const Annotation &forward, const std::vector<TensorId> &gradients)
{
    for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
        const bool isMade = gradients.empty() || (slot < gradients.size() && gradients[slot].valid());
        for (const Term &term : forward.inputs[slot].terms) {
            if ((isMade && term.reach == WindowReach::Windows)
                || (term.reach != WindowReach::Windows && term.reach != WindowReach::Own))
                return true;
        }
    }
    return false;
}

} // namespace

Annotation backwardAnnotation(const Annotation &forward, const std::vector<TensorId> &gradients)
{
    Annotation backward;
    backward.dimensions = forward.dimensions;
    backward.windows = forward.windows;
    const std::size_t outputs = forward.outputs.size();
    for (std::size_t i = 0; i < backward.dimensions.size(); ++i) {
        Dimension &dimension = backward.dimensions[i];
        // Forward Reduce identifiers stay so too: the gradient of an input that lacks one (a bias) is made by
        // the part at 0, and zero in the others, which again is a sum.
        if (dimension.mark == DimensionMark::Spatial)
            dimension.mark = DimensionMark::Reduce;
        // Equal largest elements share the gradient, which takes all of them to count.
        else if (dimension.mark == DimensionMark::Reduce
            && isLargestOver(forward, static_cast<std::int32_t>(i)))
            dimension.mark = DimensionMark::Frozen;
    }
    backward.inputs.reserve(2 * outputs + forward.inputs.size());
    backward.inputs.insert(backward.inputs.end(), forward.outputs.begin(), forward.outputs.end());
    backward.inputs.insert(backward.inputs.end(), forward.inputs.begin(), forward.inputs.end());
    backward.inputs.insert(backward.inputs.end(), forward.outputs.begin(), forward.outputs.end());
    backward.outputs = forward.inputs;
    if (!forward.windows.empty()) {
        const auto &linear = forward.linearInputs;
        const bool shares = sharesWindows(forward, gradients);
        for (std::size_t slot = 0; shares && slot < backward.inputs.size(); ++slot) {
            const bool output = slot < outputs || slot >= outputs + forward.inputs.size();
            const auto input = static_cast<std::int32_t>(slot) - static_cast<std::int32_t>(outputs);
            setReach(forward, backward.inputs[slot], output,
                std::find(linear.begin(), linear.end(), input) != linear.end());
        }
        for (TensorTerms &gradient : backward.outputs)
            for (Term &term : gradient.terms)
                term.reach = term.reach == WindowReach::Windows ? WindowReach::Share : WindowReach::Own;
    }
    backward.linearInputs = forward.linearInputs;
    for (std::int32_t &slot : backward.linearInputs)
        slot += static_cast<std::int32_t>(outputs);
    return backward;
}

} // namespace planloom
