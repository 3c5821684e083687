#pragma once

#include "engine/base/result.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <stop_token>
#include <vector>

namespace planloom {

/// Why a span waits for another one.
enum class WaitKind : std::uint8_t {
    Data, ///< It reads what the other one writes.
    Order, ///< The other one stands before it in its queue.
    Reuse, ///< It writes over what the other one reads or writes.
    Peer, ///< The other one is another end of the same communication; they start together.
};
const char *nameOf(WaitKind kind); ///< "data", "order", "reuse", "peer"

/// One end of an arrow between spans: rows of `Timeline::spans`.
struct Dependency {
    std::int32_t span = -1;
    WaitKind kind = WaitKind::Data;
    friend bool operator==(const Dependency &, const Dependency &) = default;
};

/// What every span of a timeline waits for, as the simulator sees it: a span starts once all that it needs
/// has ended, and all ends of a communication start together. Columns; lists of span s lie in [begin[s],
/// begin[s + 1]).
struct TimelineDependencies {
    std::vector<std::int32_t> needBegin{}; ///< By span; one more entry at the end.
    std::vector<Dependency>
        needs{}; ///< Without peers. A span that is needed for several reasons stands once.
    std::vector<std::int32_t> unblockBegin{};
    std::vector<Dependency> unblocks{}; ///< The same the other way round.
    std::vector<std::int32_t> meeting{}; ///< By span: the communication it is an end of; -1 for none.
    std::vector<std::int32_t> memberBegin{}; ///< By meeting; one more entry at the end.
    std::vector<std::int32_t> members{}; ///< Spans, by device.
    std::vector<std::int32_t>
        order{}; ///< All spans, each behind what it needs; members of a meeting stand together.

    std::size_t size() const { return meeting.size(); }
    std::size_t meetingCount() const { return memberBegin.empty() ? 0 : memberBegin.size() - 1; }
};

/// Finds them from the program: writers and readers of buffers, the order of queues, and the k-th use of
/// each group and the tags, which match the ends of a communication. `timeline` is predicted or measured;
/// instructions without a span are passed over.
/// @return InvalidInput if `timeline` does not belong to `plan`; Cancelled
/// O(spans + dependencies).
Result<TimelineDependencies> dependenciesOf(
    const ExecutionPlan &plan, const Timeline &timeline, std::stop_token stop = {});

/// Everything that `span` waits for, peers included. O(result).
std::vector<Dependency> needsOf(const TimelineDependencies &dependencies, std::int32_t span);
/// Everything that waits for `span`, peers included. O(result).
std::vector<Dependency> unblocksOf(const TimelineDependencies &dependencies, std::int32_t span);

} // namespace planloom
