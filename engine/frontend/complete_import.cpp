#include "engine/frontend/complete_import.h"

#include "engine/frontend/class_statistics.h"
#include "engine/frontend/collapse_batch.h"
#include "engine/frontend/dead_code.h"
#include "engine/frontend/fuse.h"
#include "engine/frontend/import_notes.h"
#include "engine/frontend/part_projections.h"
#include "engine/frontend/route_experts.h"
#include "engine/frontend/scopes.h"
#include "engine/frontend/unsort_rows.h"

#include <utility>

namespace planloom {

Result<Graph> completeImport(Graph graph, const ImportOptions &options, bool mayMerge)
{
    removeDeadCode(graph);
    if (graph.operators.empty())
        return Error{
            ErrorCode::InvalidInput, "the model computes nothing", "export the model anew", graph.name};
    unsortRows(graph);
    removeDeadCode(graph);
    routeExperts(graph, options);
    collapseBatch(graph);
    noteTraining(graph, mayMerge);
    if (options.fuse) {
        graph = fuseOperators(std::move(graph));
        partProjections(graph);
    }
    if (options.stop.stop_requested())
        return Error{ErrorCode::Cancelled, "the import was cancelled", "", graph.name};
    separateClassStatistics(graph);
    buildScopes(graph);
    annotateOperators(graph);
    TRY_VOID(validate(graph));
    return graph;
}

} // namespace planloom
