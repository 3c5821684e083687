#pragma once

#include "engine/table/model.h"

#include <vector>

namespace planloom {

/// By forward operator: those that are worth running on summands, each device on its own (SplitKind::Value).
/// They add up several tensors that operators may each make in summands and nobody else reads: so all of them
/// are reduced at once, behind the sum, and not one by one before it (attention and feed-forward side by
/// side, as in GPT-J; a product beside its low-rank update, as in LoRA). And the views on the way there.
/// O(operators).
std::vector<bool> summandJoins(const Model &model);

} // namespace planloom
