#pragma once

#include "engine/traces/trace.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planloom {

/// A process group as all ranks know it.
struct JoinedGroup {
    std::string name{};
    std::string description{}; ///< "tp"; empty if no trace says.
    std::vector<std::int32_t> ranks{}; ///< Ascending; those that were seen where no trace lists them.
    std::int32_t size = 0; ///< As the traces say; else how many were seen.
    /// "tp: 0-3", "group 7: 0, 2, ...": for people.
    std::string words() const;
    friend bool operator==(const JoinedGroup &, const JoinedGroup &) = default;
};

/// One rank's part in a collective.
struct JoinedMember {
    std::uint32_t rank = 0; ///< Index into `Trace::ranks`.
    std::uint32_t event = 0; ///< Index into its events.
    friend bool operator==(const JoinedMember &, const JoinedMember &) = default;
};

/// A collective, or a message with its sender and receiver, of all ranks that took part and have a trace.
struct JoinedCollective {
    TraceKind kind{};
    std::uint32_t group = 0; ///< Index into `JoinedCollectives::groups`.
    std::int64_t sequence = -1; ///< In its group; -1 where the traces don't say and order decided.
    std::int64_t bytes = -1; ///< The larger of what a member gives and gets; -1 if unknown.
    std::uint32_t begin = 0; ///< Its members are [begin, end) of `JoinedCollectives::members`.
    std::uint32_t end = 0;
    friend bool operator==(const JoinedCollective &, const JoinedCollective &) = default;
};

struct JoinedCollectives {
    std::vector<JoinedGroup> groups{};
    std::vector<JoinedCollective> collectives{}; ///< By group, then in the order in which they ran.
    std::vector<JoinedMember> members{}; ///< Of a collective by rank.
    std::int64_t alone = 0; ///< Events of communication that nobody else's was found for.
    friend bool operator==(const JoinedCollectives &, const JoinedCollectives &) = default;
};

/// Joins communication over ranks: by group (name and members), kind and sequence number; where the number is
/// missing, by the order inside the training step of that number, or of the whole trace without steps.
/// Messages by sender, receiver and order. O(events log events)
JoinedCollectives joinCollectives(const Trace &trace);

} // namespace planloom
