#include "engine/frontend/fuse.h"

#include "engine/frontend/fuse_editor.h"
#include "engine/graph/catalogue.h"

namespace planloom {

namespace {

std::vector<TensorType> typesOf(
    const Graph &graph, const std::vector<TensorId> &ids, std::vector<bool> *present)
{
    std::vector<TensorType> types;
    types.reserve(ids.size());
    for (const TensorId id : ids) {
        types.push_back(id ? graph.at(id).type : TensorType{});
        if (present)
            present->push_back(id.valid());
    }
    return types;
}

} // namespace

Graph fuseOperators(Graph graph)
{
    FuseEditor editor(std::move(graph));
    removeNoOperations(editor);
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
        std::vector<bool> present;
        const std::vector<TensorType> inputs = typesOf(graph, op.inputs, &present);
        AnnotationOutcome outcome =
            annotate(op.kind, op.attributes, inputs, present, typesOf(graph, op.outputs, nullptr));
        op.annotation = std::move(outcome.annotation);
        op.annotationProblem = std::move(outcome.problem);
    }
}

} // namespace planloom
