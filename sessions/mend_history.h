#pragma once

#include "sessions/history.h"

#include <map>
#include <string>
#include <vector>

namespace planloom {

/// A history as a file gave it; anything may be missing or wrong.
struct StoredHistory {
    DesignState root{};
    std::vector<HistoryStep> steps{};
    std::map<StepId, DesignState> states{}; ///< Whole states of some steps, without the root's.
    std::vector<Branch> branches{};
    std::map<std::string, StepId> names{};
    StepId current = 0;
    std::int32_t branch = 0;
};

/// What could be made of it.
struct MendedHistory {
    History history{};
    std::vector<StepId>
        storedIds{}; ///< Of `history.steps()[i]`, its id in the file; empty if all ids are as stored.
    std::vector<std::string> losses{}; ///< A sentence each; empty if nothing was lost.
};

/// Puts a history back together. Steps that do not fit are left out, and those after them too, up to the next
/// one whose whole state is known: that one then follows the root directly. The ids of steps change where
/// some are missing.
MendedHistory mendHistory(StoredHistory stored);

} // namespace planloom
