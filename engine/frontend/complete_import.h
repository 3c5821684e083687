#pragma once

#include "engine/base/result.h"
#include "engine/frontend/import_options.h"
#include "engine/graph/graph.h"

namespace planloom {

/// What follows for every imported graph of forward operators: dead ones are removed, the batch is taken out
/// of what is stored, patterns are fused, fused projections parted, scopes and annotations made, the whole
/// checked.
/// @param mayMerge  what wrote the graph stores equal parameters once: notes say where it seems to have
/// @return InvalidInput if nothing is left to compute; Cancelled; what `validate` finds
Result<Graph> completeImport(Graph graph, const ImportOptions &options, bool mayMerge);

} // namespace planloom
