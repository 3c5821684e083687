#pragma once

#include "engine/hardware/cost.h"

#include <array>
#include <cstdint>
#include <optional>

namespace planloom {

/// NCCL's ways through the devices of a communicator.
enum class CollectiveAlgorithm : std::uint8_t {
    Ring,
    Tree, ///< A double binary tree; AllReduce only.
    Nvls, ///< Sums in the NVLink switch, and a tree between nodes; AllReduce from Hopper on.
    Pat, ///< Parallel aggregated trees: AllGather and ReduceScatter with one device a node.
};
constexpr int kCollectiveAlgorithmCount = 4;

/// NCCL's ways over one link: flags with each 8 bytes, with each 128 bytes, or with each chunk.
enum class CollectiveProtocol : std::uint8_t { LowLatency, LowLatency128, Simple };
constexpr int kCollectiveProtocolCount = 3;

const char *nameOf(CollectiveAlgorithm algorithm); ///< "ring"
const char *nameOf(CollectiveProtocol protocol); ///< "LL128"

/// How the members of a communicator lie over the nodes and what is around them.
struct GroupShape {
    std::int32_t ranks = 1;
    std::int32_t nodes = 1;
    /// By outer level: over how many of its groups they lie; 0, as 1, where they stay inside one.
    std::array<std::int32_t, kMostOuterLevels> outer{};
    std::uint32_t classes = 1; ///< Bit c: a member is of device class c.

    double ranksPerNode() const { return static_cast<double>(ranks) / nodes; }
    friend bool operator==(const GroupShape &, const GroupShape &) = default;
};
GroupShape groupShape(const Cluster &cluster, const std::vector<DeviceId> &members);
/// Of one device of every scale unit.
GroupShape shapeAcrossUnits(const Cluster &unit, DeviceId local);

/// The links of a group with members of the classes in this set (as in `GroupShape::classes`): at each level
/// the slowest of them, for a ring is as fast as its slowest link. Its figures have no sources.
Interconnect jointLinks(const Cluster &cluster, std::uint32_t classes);

/// What a collective asks of the links while it runs alone. Its time is `latency`, and then a stretch in
/// which each member sends, and receives, at these rates: bytes/s, averaged over the members.
struct CommunicationLoad {
    double latency = 0; ///< Seconds in which no bytes that count are on the way.
    double device = 0; ///< Through the member's own port inside its node.
    double network = 0; ///< Through its network card.
    std::array<double, kMostOuterLevels> outer{}; ///< Its part of what leaves its rack, site ...
    friend bool operator==(const CommunicationLoad &, const CommunicationLoad &) = default;
};

/// The load of what `collectiveSeconds` prices. The bytes are those of the ring algorithm, which no algorithm
/// without sums in the switch falls below, and twice as many where each 8 bytes carry a flag (LL).
CommunicationLoad collectiveLoad(
    const Interconnect &links, CollectiveKind kind, Bytes bytes, GroupShape shape);

/// What NCCL's tuner knows of one algorithm and protocol. Time = latency + bytes / bandwidth.
struct CollectiveCost {
    double latency = 0; ///< Seconds.
    double bandwidth = 0; ///< Bytes/s of algorithm bandwidth (bytes of the collective over its time).
};

/// Bytes/s at which data can stream through every member at once: the link inside a node, or the group's fair
/// share of the node's network if it spans nodes and that is less (of cards that devices share: the cards it
/// can reach, as if nobody else sent), or the links between racks and further out that it crosses, whole.
double busBandwidth(const Interconnect &links, GroupShape shape);

/// Bytes/s of a node's network that `devices` of its devices may use together.
double networkShare(const Interconnect &links, double devices);
/// Seconds that a message between members of this group may take longer than one between nodes of a rack.
double outerLatency(const Interconnect &links, GroupShape shape);

/// Latency and bandwidth of one algorithm and protocol, by NCCL 2.28's tuning model (src/graph/tuning.cc;
/// constants in runtime-facts.md, section 5). Without the corrections that depend on the size; see
/// `collectiveTime`.
/// @return nothing where NCCL does not offer the combination (also for SendRecv, Shift and AllToAll)
std::optional<CollectiveCost> collectiveCost(const Interconnect &links, CollectiveKind kind,
    CollectiveAlgorithm algorithm, CollectiveProtocol protocol, GroupShape shape);

/// Seconds of one algorithm and protocol, with NCCL's corrections for medium sizes (trees) and for the
/// plateau of rings over several nodes. @return nothing where NCCL does not offer the combination
std::optional<double> collectiveTime(const Interconnect &links, CollectiveKind kind,
    CollectiveAlgorithm algorithm, CollectiveProtocol protocol, GroupShape shape, Bytes bytes);

/// The fastest choice.
struct CollectiveChoice {
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
    CollectiveProtocol protocol = CollectiveProtocol::Simple;
    double seconds = 0;
};
/// For AllReduce, AllGather, ReduceScatter and Broadcast over at least two ranks.
CollectiveChoice fastestCollective(
    const Interconnect &links, CollectiveKind kind, GroupShape shape, Bytes bytes);

/// `collectiveSeconds` by the shape of the group alone, which is all that it depends on. Any kind, any shape.
double collectiveSeconds(const Interconnect &links, CollectiveKind kind, Bytes bytes, GroupShape shape);

} // namespace planloom
