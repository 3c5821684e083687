#pragma once

#include "engine/hardware/nccl_model.h"
#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// What a communicator does again and again in one step: launches of one kind, of one size, in one queue.
/// Groups of which all of this is equal, down to the nanoseconds, share a line.
struct CommunicationLine {
    InstructionKind kind{}; ///< Send stands for both ends.
    QueueKind queue{};
    /// Members by their numbers in the whole cluster, in the order of the communicator; of a message, the
    /// sender and the receiver. Those inside scale units are unit 0's.
    std::vector<std::vector<DeviceId>> groups{};
    std::int32_t groupCount = 0; ///< In the whole cluster: of every unit.
    GroupShape shape{}; ///< Of each group.
    std::set<SegmentKind> passes{}; ///< That the launches stand in.
    /// Of one launch, as nccl-tests count sizes: see `collectiveSeconds`. A bucket is one launch.
    Bytes bytes{};
    std::int64_t count = 0; ///< Launches of one group.
    /// What NCCL is taken to choose; nothing for what it has no choice in (messages, all-to-all), and
    /// where devices share memory.
    std::optional<CollectiveChoice> choice{};
    std::string link{}; ///< The outermost that it crosses: "inside a node", "between nodes", "between racks".
    Nanoseconds alone{}; ///< One launch while nobody else uses its links, and nothing is computed beside it.
    Nanoseconds time{}; ///< All launches of one group.
    /// Of that, while a member computes nothing: the mean over the members (both ends of a message). What
    /// two queues communicate at once counts for both.
    Nanoseconds exposed{};
    std::vector<Nanoseconds> starts{}; ///< From the begin of the step, ascending.
    std::vector<OperatorId> operators{}; ///< That it serves, ascending.

    Nanoseconds hidden() const { return time - exposed; }
};

/// From the spans of `timeline`, predicted or measured. Copies to and from the host are none.
/// @return by exposed time, the longest first; nothing if stopped.
/// O(communication spans x log spans)
std::optional<std::vector<CommunicationLine>> communicationLines(
    const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster, std::stop_token stop = {});

/// Bytes/s as nccl-tests print them in "busbw": what each member sends by the ring algorithm, over the mean
/// time of a launch; 0 for what takes no time.
double busBandwidthOf(const CommunicationLine &line);

/// "ring LL128"; empty where nothing is assumed.
std::string algorithmWords(const CommunicationLine &line);

/// "0-3": members of a line's first groups, "0-3; 4-7; ...", at most `most` of them.
std::string groupWords(const CommunicationLine &line, std::size_t most);

/// "forward, input-gradient"
std::string passWords(const CommunicationLine &line);

/// Devices and links that `instruction` of `device` (within a unit) meets on. `unit`: see `unitOf`.
GroupShape groupShapeOf(
    const ExecutionPlan &plan, const Cluster &unit, DeviceId device, const Instruction &instruction);

} // namespace planloom
