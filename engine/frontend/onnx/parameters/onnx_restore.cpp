#include "engine/frontend/onnx/parameters/onnx_restore.h"

#include "engine/base/words.h"
#include "engine/frontend/onnx/onnx_metadata.h"
#include "engine/frontend/onnx/parameters/onnx_folded.h"
#include "engine/frontend/onnx/parameters/onnx_replaced.h"
#include "engine/frontend/onnx/parameters/onnx_ties.h"

#include <iterator>
#include <utility>

namespace planloom {

std::vector<std::string> restoreFromMetadata(OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand)
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
    for (std::vector<std::string> found : {restoreFolded(graph, byHand), findReplaced(graph)})
        std::move(found.begin(), found.end(), std::back_inserter(notes));
    nameByModules(graph);
    if (graph.unreadMetadata > 0)
        notes.push_back("metadata of " + counted(graph.unreadMetadata, "value")
            + " are not well formed and were passed by");
    return notes;
}

} // namespace planloom
