#include "engine/schedule/search/least_value.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::int64_t kFirstAttempt = 2000; ///< Nodes.

} // namespace

LeastValue leastValue(std::int64_t least, std::int64_t most, const ScheduleLimits &limits,
    const std::function<bool(std::int64_t)> &holds,
    const std::function<ValueAttempt(std::int64_t, std::int64_t)> &attempt)
{
    LeastValue value{.bound = least};
    if (!holds(most)) {
        value.none = true;
        return value;
    }
    for (std::int64_t high = most; value.bound < high;) {
        const std::int64_t middle = value.bound + (high - value.bound) / 2;
        if (holds(middle))
            high = middle;
        else
            value.bound = middle + 1;
    }
    std::int64_t nodes = kFirstAttempt;
    std::map<std::int64_t, std::int64_t> stoppedAfter; // by value: nodes of the longest attempt
    const auto take = [&](std::int64_t tried) {
        std::int64_t &longest = stoppedAfter[tried];
        if (longest >= nodes)
            return SearchOutcome::Stopped; // the same would come of it
        const ValueAttempt found = attempt(tried, nodes);
        longest = nodes;
        if (found.outcome == SearchOutcome::Found)
            value.found = found.achieved;
        else if (found.outcome == SearchOutcome::None)
            value.bound = std::max(value.bound, tried + 1);
        return found.outcome;
    };
    std::int64_t step = 0;
    std::int64_t stopped = -1; // the largest within which a search was
    while (value.found < 0 && !limits.areOver()) {
        const std::int64_t tried = std::min(std::max(value.bound, stopped) + step, most);
        const SearchOutcome outcome = take(tried);
        if (outcome == SearchOutcome::None && tried == most) {
            value.none = true;
            return value;
        }
        if (outcome == SearchOutcome::Stopped) {
            stopped = tried;
            if (tried == most)
                nodes *= 4;
        }
        step = std::max({std::int64_t{1}, 2 * step, value.bound / 512});
    }
    // Halves where searches end, and from both sides where they do not.
    std::int32_t turn = 0;
    while (value.found >= 0 && value.bound < value.found && !limits.areOver()) {
        const std::int64_t room = value.found - value.bound;
        const std::int64_t tried = turn == 0 ? value.bound + (room - 1) / 2
            : turn == 1                      ? value.found - 1
                                             : value.bound;
        if (take(tried) != SearchOutcome::Stopped) {
            turn = 0;
        } else if (++turn == 3) {
            turn = 0;
            nodes *= 4;
        }
    }
    return value;
}

} // namespace planloom
