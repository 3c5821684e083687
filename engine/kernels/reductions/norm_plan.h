#pragma once

#include "engine/graph/operator.h"
#include "engine/kernels/iteration.h"

#include <algorithm>
#include <cstdint>

namespace planloom {

/// How the rows of a norm lie, and which scale and bias belong to each.
struct NormPlan {
    std::int64_t rows = 1;
    std::int64_t width = 1;
    std::int64_t channels = 0; ///< InstanceNorm: scale and bias of row r are those of channel r % channels.
    bool centred = true;
    double epsilon = 1e-5;

    std::int64_t affineSize() const { return channels != 0 ? channels : width; }
    std::int64_t affineOffset(std::int64_t row) const { return channels != 0 ? row % channels : 0; }
    std::int64_t affineStep() const { return channels != 0 ? 0 : 1; }
    /// That are worth a thread of their own.
    std::int64_t rowsAtOnce() const
    {
        return std::max<std::int64_t>(1, kElementStretch / std::max<std::int64_t>(width, 1));
    }
};

inline NormPlan planNorm(const Operator &op, const Shape &x)
{
    NormPlan plan;
    plan.epsilon = op.attributes.real("epsilon", 1e-5);
    plan.centred = op.kind != OperatorKind::RmsNorm;
    std::int64_t axis = op.attributes.integer("axis", static_cast<std::int64_t>(x.size()) - 1);
    if (op.kind == OperatorKind::InstanceNorm) {
        axis = 2;
        plan.channels = x[1];
    }
    for (std::size_t d = 0; d < x.size(); ++d)
        (static_cast<std::int64_t>(d) < axis ? plan.rows : plan.width) *= x[d];
    return plan;
}

} // namespace planloom
