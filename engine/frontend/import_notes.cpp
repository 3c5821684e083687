#include "engine/frontend/import_notes.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"

#include <algorithm>

namespace planloom {

namespace {

/// True if modules have a scale or bias of their own in that input.
bool isOwnInput(const Operator &op, std::size_t slot)
{
    switch (op.kind) {
    case OperatorKind::LayerNorm:
    case OperatorKind::RmsNorm:
    case OperatorKind::InstanceNorm:
        return slot == 1 || slot == 2;
    case OperatorKind::BatchNormalize:
        return slot == 3 || slot == 4;
    case OperatorKind::Linear:
    case OperatorKind::Conv:
    case OperatorKind::ConvTranspose:
        return slot == 2;
    default:
        return false;
    }
}

void noteMerged(Graph &graph)
{
    std::vector<std::int64_t> readers(graph.tensors.size());
    for (const Operator &op : graph.operators) {
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot] && isOwnInput(op, slot))
                ++readers[at(op.inputs[slot])];
        }
    }
    std::int64_t others = -1;
    std::size_t most = 0;
    for (std::size_t i = 0; i < readers.size(); ++i) {
        if (graph.tensors[i].role != TensorRole::Weight || readers[i] < 2)
            continue;
        ++others;
        if (others == 0 || readers[i] > readers[most])
            most = i;
    }
    if (others < 0)
        return;
    graph.notes.push_back(counted(readers[most], "operator") + " read '" + graph.tensors[most].name
        + "' as their scale or bias"
        + (others > 0 ? ", and " + counted(others, "more parameter") + " likewise" : "")
        + ": exporters merge equal initializers, which are trained as one then (export a trained model, or "
          "with "
          "optimize=False, to keep them apart)");
}

void noteEvaluationMode(Graph &graph)
{
    const auto stored =
        std::count_if(graph.operators.begin(), graph.operators.end(), [&](const Operator &op) {
            return op.kind == OperatorKind::BatchNormalize && op.inputs.size() > 2 && op.inputs[1]
                && graph.at(op.inputs[1]).role == TensorRole::Buffer;
        });
    if (stored > 0)
        graph.notes.push_back(counted(stored, "batch normalisation") + (stored == 1 ? " uses" : " use")
            + " stored statistics (evaluation mode): PyTorch in training mode uses those of the batch");
}

} // namespace

void noteTraining(Graph &graph, bool mayMerge)
{
    if (!graph.loss)
        return; // nothing is trained
    if (mayMerge)
        noteMerged(graph);
    noteEvaluationMode(graph);
}

} // namespace planloom
