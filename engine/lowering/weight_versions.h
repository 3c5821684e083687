#pragma once

#include "engine/lowering/order/sequence.h"
#include "engine/plan/plan.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// A weight as it was some updates ago.
struct WeightVersion {
    TensorId weight{};
    std::int32_t staleness = 0; ///< In updates; see `BufferInfo`.
    friend auto operator<=>(const WeightVersion &, const WeightVersion &) = default;
};

/// A plan in which older versions of weights are tensors of their own, which the operators that ask for them
/// read: so whatever brings tensors to operators keeps versions apart without knowing of them. They stand
/// behind the tensors of the plan's graph, from which nothing else differs. Optimizer operators read the
/// weights themselves.
struct VersionedPlan {
    Plan plan{};
    std::vector<WeightVersion> versions{}; ///< By tensor, from the first that the plan's graph lacks.
};

/// `plan` itself, with no versions, where all operators keep one. O(operators + tensors) else.
VersionedPlan withWeightVersions(const Plan &plan);

/// Turns what `versioned` was lowered to into programs of `plan`: buffers of versions name their weight.
void nameWeights(MaterializedPlan &materialized, const Plan &plan, const VersionedPlan &versioned);

} // namespace planloom
