#include "engine/frontend/complete_import.h"

#include "engine/frontend/import_notes.h"
#include "engine/frontend/passes/batch/collapse_batch.h"
#include "engine/frontend/passes/batch/separate_batch.h"
#include "engine/frontend/passes/batch/separate_windows.h"
#include "engine/frontend/passes/batch/unroll_recurrence.h"
#include "engine/frontend/passes/class_statistics.h"
#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/passes/mixture/route_experts.h"
#include "engine/frontend/passes/mixture/unsort_rows.h"
#include "engine/frontend/passes/projections/part_projections.h"
#include "engine/frontend/passes/scopes/scopes.h"
#include "engine/frontend/rooms.h"

#include <utility>

namespace planloom {

namespace {

/// Leaves the obstacles that are in the way of something, under the names that their operators have now.
void settleObstacles(Graph &graph)
{
    std::vector<Obstacle> kept;
    for (Obstacle &each : graph.obstacles) {
        if (each.op.empty()) // an input
            kept.push_back(each);
    }
    for (const Operator &op : graph.operators) {
        const auto index = static_cast<std::size_t>(op.attributes.integer("obstacle", -1));
        if (index >= graph.obstacles.size())
            continue;
        kept.push_back(graph.obstacles[index]);
        kept.back().op = op.name;
    }
    graph.obstacles = std::move(kept);
}

} // namespace

Result<Graph> completeImport(Graph graph, const ImportOptions &options, bool mayMerge)
{
    removeDeadCode(graph);
    if (graph.operators.empty())
        return Error{
            ErrorCode::InvalidInput, "the model computes nothing", "export the model anew", graph.name};
    unsortRows(graph);
    removeDeadCode(graph);
    routeExperts(graph, options);
    TRY_VOID(checkCapacities(graph, options.capacities));
    collapseBatch(graph);
    noteTraining(graph, mayMerge);
    if (options.fuse) {
        graph = fuseOperators(std::move(graph));
        partProjections(graph);
        separateWindows(graph);
        annotateOperators(graph);
        if (separateBatch(graph) > 0)
            graph = tidyReshapes(std::move(graph));
    }
    if (options.stop.stop_requested())
        return Error{ErrorCode::Cancelled, "the import was cancelled", "", graph.name};
    separateClassStatistics(graph);
    removeDeadCode(graph);
    buildScopes(graph);
    TRY(const std::int32_t unrolled, unrollRecurrences(graph, options.unroll));
    if (unrolled > 0) {
        removeDeadCode(graph);
        findCopies(graph);
    }
    annotateOperators(graph);
    settleObstacles(graph);
    noteRooms(graph, options.capacities);
    TRY_VOID(validate(graph));
    return graph;
}

} // namespace planloom
