#pragma once

#include "engine/base/result.h"
#include "engine/table/selector_index.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace planloom {

/// What one stage of a layout runs, in this order.
struct LayoutStage {
    bool embedding = false;
    std::int32_t layers = 0;
    std::int32_t modules = 0; ///< That predict further tokens (MTP layers).
    bool loss = false;
    friend bool operator==(const LayoutStage &, const LayoutStage &) = default;
};

/// The stages of a pipeline in Megatron-LM's notation (`--pipeline-model-parallel-layout`):
///
///     Et*4|(t*4|)*14tmL       16 stages: the embedding and 4 layers; 14 times 4 layers; the last layer, a
///                             module that predicts one token further, and the loss
///     E|t*3|t*3|L             the embedding and the loss in stages of their own
///
/// `E` is the embedding, `t` a layer, `m` an MTP layer, `L` norm, head and loss behind them, each followed by
/// `*N` where there are several; `|` ends a stage; what stands in brackets is repeated; commas and spaces say
/// nothing.
/// @return InvalidInput with the place from 1, what was found there and what was expected; for a stage that
///   runs nothing, and where E, t, m and L are not in the order of the model
Result<std::vector<LayoutStage>> parseLayout(std::string_view text);

/// By operator: the stage of `stages` that it is of; -1 for those that are no forward ones.
///
/// Layers are those of the model (layers.h), MTP layers the numbered modules of one that is called `mtp`,
/// without what follows their own layer: their head and loss. What is outside of layers belongs to the
/// embedding if it comes before them, and to the loss if it comes behind; where a layer reads it, to the
/// first one that does, and so does what is made of weights or inputs alone.
/// @return InvalidInput if the layout has another number of layers than the model, or a stage without an
///   operator
/// O(operators).
Result<std::vector<std::int32_t>> stagesOfLayout(
    const SelectorIndex &index, const std::vector<LayoutStage> &stages);

} // namespace planloom
