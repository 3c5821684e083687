#pragma once

#include "engine/table/selector_index.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Seconds of an operator on the devices of its stage.
struct StagedSeconds {
    double forward = 0; ///< Of one micro-batch; as the next two.
    double backward = 0; ///< That a stage before it waits for.
    double apart = 0; ///< Of gradients of weights, in a pass of their own.
    double update = 0; ///< Of its weights, once a step.
};

/// By forward operator: stages of a chain, one after another and not empty, of which the one that ends last
/// ends as early as can be. Where a step has few micro-batches that is another cut than the one which makes
/// stages take equally long: a stage at the end of the chain has made its last gradients while those before
/// it still wait for them, so it may have more to do.
///
/// A stage ends no earlier than one micro-batch has come to it through all stages and has its gradients of
/// weights made, and no earlier than it has done its own part of all of them; links between stages take no
/// time here.
/// @param seconds  by forward operator
/// @param betweenLayers  cuts lie between layers alone
/// @return nothing if there are too few places to cut. O(operators + stages x operators x precision)
std::vector<std::int32_t> stagesEndingEarly(const SelectorIndex &index, std::int32_t stages,
    const std::vector<StagedSeconds> &seconds, std::int32_t microBatches, bool betweenLayers);

} // namespace planloom
