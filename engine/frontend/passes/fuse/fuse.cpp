#include "engine/frontend/passes/fuse/fuse.h"

#include "engine/frontend/passes/fuse/fuse_editor.h"
#include "engine/graph/operators/catalogue.h"

namespace planloom {

Graph fuseOperators(Graph graph)
{
    FuseEditor editor(std::move(graph));
    removeNoOperations(editor);
    untangleSamples(editor);
    fuseProducts(editor);
    fuseNormalizations(editor);
    fuseActivations(editor);
    fuseAttentions(editor);
    mergeReshapes(editor);
    return editor.finish();
}

Graph tidyReshapes(Graph graph)
{
    FuseEditor editor(std::move(graph));
    removeNoOperations(editor);
    mergeReshapes(editor);
    return editor.finish();
}

void annotateOperators(Graph &graph)
{
    // Forward operators stand before backward ones, so a mirror is annotated before it is read.
    for (Operator &op : graph.operators) {
        if (op.direction == Direction::Backward) {
            const Operator &forward = graph.at(op.mirror);
            op.annotation = backwardAnnotation(forward.annotation, op.outputs);
            op.annotationProblem = forward.annotationProblem;
            continue;
        }
        AnnotationOutcome outcome = annotate(op.kind, op.attributes, typesOf(graph, op.inputs),
            presentAmong(op.inputs), typesOf(graph, op.outputs));
        op.annotation = std::move(outcome.annotation);
        op.annotationProblem = std::move(outcome.problem);
    }
}

} // namespace planloom
