#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Splits the names of modules that trainers write behind Megatron-LM's `--recompute-modules` and
/// `--offload-modules`, joined by '+', ',' or spaces:
///
///     core_attn         attention between its projections
///     mla_up_proj       products that make heads of what is compressed (DeepSeek-V2, arXiv:2405.04434), and
///                       what lies between them and the attention
///     layernorm         normalisations of the model's width
///     mlp               feed-forward parts of layers without experts
///     moe               whole mixtures, with router and shared experts
///     moe_act           activations of experts
///     shared_experts    feed-forward parts beside experts
///
/// @return InvalidInput for another word, or none
Result<std::vector<std::string>> readLayerModules(std::string_view text);

/// The words that `readLayerModules` knows, the widest first.
std::span<const std::string_view> layerModuleWords();

/// Rows that recompute such modules in all layers, found by what operators do and what dimensions mean, not
/// by names. What several words name belongs to the widest.
/// @param words  that `readLayerModules` reads
/// @return InvalidInput where no layer has such a module
Result<ConstraintTable> recomputedModuleRows(const Model &model, std::string_view words);

/// Rows by which what such modules make waits in host memory for the backward pass, found alike.
/// @return as `recomputedModuleRows`
Result<ConstraintTable> offloadedModuleRows(const Model &model, std::string_view words);

} // namespace planloom
