#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The row behind a usual word for recomputation: "none" is no row; "full" recomputes every layer (Chen et
/// al., arXiv:1604.06174); "selective" what takes little time for the memory it holds, activations and
/// normalisations (Korthikanti et al., arXiv:2205.05198, section 5; attention keeps no scores anyway).
/// @return InvalidInput for another word, or where the model has nothing of the kind
Result<std::string> recomputeRow(const Model &model, std::string_view word);

/// Rows that recompute every layer, and what lies between the layers and feeds them, module by module
/// (embeddings of patches, their merging, masks): the backward pass then finds nothing but what passes from
/// one of these to the next.
/// @return InvalidInput where the model has no layers
Result<ConstraintTable> recomputeRows(const Model &model);

/// The rows behind a usual word for what waits in host memory: "none" is no row, "states", "activations",
/// "both".
/// @return InvalidInput for another word
Result<std::vector<std::string>> offloadRows(std::string_view word);

} // namespace planloom
