#pragma once

#include "engine/graph/operator.h"
#include "engine/kernels/iteration.h"

#include <algorithm>
#include <cstdint>

namespace planloom {

/// Strides with which the output is addressed from the input's dimensions: 0 along those reduced.
inline Shape reducedStrides(const Operator &op, const Shape &x)
{
    const auto axes = op.attributes.integers("axes");
    const bool all = !op.attributes.has("axes");
    Shape kept = x;
    for (std::size_t d = 0; d < kept.size(); ++d) {
        if (all || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end())
            kept[d] = 1;
    }
    return broadcastStrides(kept, x);
}

/// What a mean is divided by: that of the whole pTensor, whatever part this is.
inline double divisorOf(const Operator &op, std::int64_t inputs, std::int64_t outputs)
{
    if (op.attributes.has("count"))
        return op.attributes.real("count", static_cast<double>(op.attributes.integer("count", 1)));
    return outputs == 0 ? 1.0 : static_cast<double>(inputs) / static_cast<double>(outputs);
}

} // namespace planloom
