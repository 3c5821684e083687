#pragma once

#include "engine/graph/graph.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planloom {

/// Something that should not be: where in the trial, and what.
struct TrialFinding {
    std::string stage{};
    std::string what{};
    /// What it has in common with others of its cause: the text without numbers and names.
    std::string cause() const;
};

struct TrialOutcome {
    std::vector<TrialFinding> findings{};
    std::map<std::string, std::int64_t> counts{}; ///< As `TrialEvents::count`.
};

struct TrialLimits {
    int seconds = 30; ///< Of one processor.
    std::int64_t memoryBytes = std::int64_t{3} << 30; ///< Not kept to under sanitizers, which reserve more.
};

/// `tryModel` in a process of its own, which may crash, hang or ask for too much memory: that is a finding of
/// the stage it was in.
TrialOutcome tryWatched(const Graph &forward, std::uint64_t seed, const TrialLimits &limits);

} // namespace planloom
