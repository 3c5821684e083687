#pragma once

#include "engine/frontend/import_options.h"
#include "engine/graph/graph.h"

namespace planloom {

/// Mixtures of experts that pick each row's weights (`weights[expert_of_row]`, then a product row by row:
/// what exporters make of a loop over experts) become products by expert:
///
///   before  W [e f h], expert [n] -> W[expert] [n f h];  x [n h] -> y [n f]
///   after   places [e c] of each expert's rows;  x -> x[places] [e c h] -> y' [e c f];  y[places] += y'
///
/// Weights are not copied for every row, and the experts are a dimension that can be split. All between the
/// first and the last such product goes along, as long as it works row by row. Each expert has room for c
/// rows (`ImportOptions::capacities`, by the name of the operator that finds the places: that of the first
/// pick and "_places"); rows without room have zeros for y. Found by data flow alone, not by names.
///
/// Works on forward graphs before their operators are fused and annotated; returns what a user should know of
/// in `Graph::notes`. O(operators).
void routeExperts(Graph &graph, const ImportOptions &options);

} // namespace planloom
