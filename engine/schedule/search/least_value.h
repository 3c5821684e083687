#pragma once

#include "engine/schedule/search/start_search.h"

#include <cstdint>
#include <functional>

namespace planloom {

/// The least value for which something can be found, and what is known of it.
struct LeastValue {
    std::int64_t bound = 0; ///< Nothing less can be found.
    std::int64_t found = -1; ///< The least that was found; -1 if none was.
    bool none = false; ///< It is proven that none can be found up to the given end.
    bool proven() const { return found == bound; }
};

/// What a search within a value came to.
struct ValueAttempt {
    SearchOutcome outcome = SearchOutcome::Stopped;
    std::int64_t achieved = 0; ///< Where it found something: at most the value.
};

/// Looks for the least value in [least, most] within which `attempt` finds something. Whatever holds within
/// a value holds within a larger one. First at the bound, then further and further above it until something
/// is found; then between the two, where attempts that are stopped get ever more nodes.
/// @param holds    what can be seen without search: false proves that there is nothing
/// @param attempt  with a value and how many nodes it may take
LeastValue leastValue(std::int64_t least, std::int64_t most, const ScheduleLimits &limits,
    const std::function<bool(std::int64_t)> &holds,
    const std::function<ValueAttempt(std::int64_t, std::int64_t)> &attempt);

} // namespace planloom
