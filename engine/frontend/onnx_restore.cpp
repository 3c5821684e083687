#include "engine/frontend/onnx_restore.h"

#include "engine/base/words.h"
#include "engine/frontend/onnx_metadata.h"
#include "engine/frontend/onnx_ties.h"

#include <string_view>
#include <unordered_set>

namespace planloom {

namespace {

/// True if most elements have a value that others have, too: a table that was read more than once at a place.
bool repeats(const OnnxTensor &tensor)
{
    if (!tensor.data)
        return false;
    const auto size = static_cast<std::size_t>(sizeOf(tensor.type.dataType));
    std::unordered_set<std::string_view> values;
    const auto *bytes = reinterpret_cast<const char *>(tensor.data->bytes.data()); // to be compared
    for (std::size_t i = 0; i + size <= tensor.data->bytes.size(); i += size)
        values.emplace(bytes + i, size);
    return values.size() * 2 <= tensor.data->bytes.size() / size;
}

/// Parameters that the exporter worked into others, so that they cannot be trained as they are.
void noteFolded(const OnnxGraph &graph, std::vector<std::string> &notes)
{
    std::int64_t statistics = 0;
    std::int64_t tables = 0;
    for (const OnnxTensor &tensor : graph.initializers) {
        const auto found = graph.provenance.find(tensor.name);
        if (found == graph.provenance.end() || !isFloating(tensor.type.dataType))
            continue;
        bool parameter = false;
        bool buffer = false;
        bool variance = false;
        for (const std::string &name : found->second.foldedFrom) {
            const auto kind = graph.signature.find(name);
            parameter =
                parameter || (kind != graph.signature.end() && kind->second == OnnxSpecKind::Parameter);
            buffer = buffer || (kind != graph.signature.end() && kind->second == OnnxSpecKind::Buffer);
            variance = variance || name.ends_with(".running_var");
        }
        statistics += variance ? 1 : 0;
        tables += parameter && buffer && !variance && repeats(tensor) ? 1 : 0;
    }
    if (statistics > 0)
        notes.push_back("the exporter folded the stored statistics of batch normalisation into "
            + counted(statistics, "tensor") + ", which train otherwise than in PyTorch");
    if (tables > 0)
        notes.push_back("the exporter worked " + counted(tables, "tensor")
            + " out from parameters and buffers (such as tables of relative positions): their elements are "
              "trained one by one, otherwise than in PyTorch (export with optimize=False)");
}

} // namespace

std::vector<std::string> restoreFromMetadata(OnnxGraph &graph)
{
    std::vector<std::string> notes;
    for (const auto &[kept, copies] : untieMerged(graph))
        notes.push_back("the exporter merged "
            + counted(static_cast<std::int64_t>(copies.size()), "parameter") + " with the equal '" + kept
            + "'; they are trained apart again ('" + copies.front() + "')");
    if (const auto biases = restoreZeroBiases(graph); !biases.empty())
        notes.push_back("the exporter left out " + std::to_string(biases.size())
            + (biases.size() == 1 ? " bias" : " biases") + " that were zero; they are trained again ('"
            + biases.front() + "')");
    if (const std::int64_t copies = tieCopies(graph); copies > 0)
        notes.push_back("the exporter stored parameters that are tied several times; "
            + std::to_string(copies) + (copies == 1 ? " copy was" : " copies were") + " tied again");
    nameByModules(graph);
    noteFolded(graph, notes);
    if (graph.unreadMetadata > 0)
        notes.push_back("metadata of " + counted(graph.unreadMetadata, "value")
            + " are not well formed and were passed by");
    return notes;
}

} // namespace planloom
