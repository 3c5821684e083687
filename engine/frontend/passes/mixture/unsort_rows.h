#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Leaves rows where they are that are sorted only to be brought back: what lies between a sort's picks,
/// `x[order]`, and the pick by its inverse works row by row, so that the order changes nothing. Sorts mix the
/// samples of a batch; without them the batch can be cut. (Mixtures of experts whose tokens are sorted by
/// expert for a grouped product.)
///
/// Works on forward graphs before they are fused and annotated, without dead operators; leaves some behind.
/// O(operators x sorts).
void unsortRows(Graph &graph);

} // namespace planloom
