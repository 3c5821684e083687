#pragma once

#include "engine/graph/graph.h"

#include <cstdint>
#include <functional>
#include <string>

namespace planloom {

/// What the trial of a model tells while it goes on: what ends it says where.
struct TrialEvents {
    std::function<void(const std::string &stage)> stage{}; ///< Begins: "import", "solve dgx-h100:8", ...
    std::function<void(const std::string &what)> finding{}; ///< Of the last stage, which goes on.
    std::function<void(const std::string &what)> count{}; ///< "planned", "refused", "run".
};

/// Takes a forward graph through all that is done with a model: the passes of the importers, its training
/// step, then for each of several clusters (of threads, of GPUs, of two kinds of GPUs, an odd number) a plan,
/// of the search, of an entry of the gallery or of random rows, with its timeline and its proof, written and
/// read back; and the run of a plan for threads, compared with the unpartitioned model.
/// @param seed  decides what is asked of the model
void tryModel(const Graph &forward, std::uint64_t seed, const TrialEvents &events);

} // namespace planloom
