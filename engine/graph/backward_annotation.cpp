#include "engine/graph/catalogue.h"

namespace planloom {

Annotation backwardAnnotation(const Annotation &forward)
{
    Annotation backward;
    backward.dimensions = forward.dimensions;
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
    backward.linearInputs = forward.linearInputs;
    for (std::int32_t &slot : backward.linearInputs)
        slot += static_cast<std::int32_t>(outputs);
    return backward;
}

} // namespace planloom
