#pragma once

#include "engine/hardware/cost.h"

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

/// How the members of a communicator lie over the nodes.
struct GroupShape {
    std::int32_t ranks = 1;
    std::int32_t nodes = 1;

    double ranksPerNode() const { return static_cast<double>(ranks) / nodes; }
    friend bool operator==(const GroupShape &, const GroupShape &) = default;
};
GroupShape groupShape(const Cluster &cluster, const std::vector<DeviceId> &members);
/// Of one device of every scale unit.
GroupShape shapeAcrossUnits(const Cluster &unit, DeviceId local);

/// What NCCL's tuner knows of one algorithm and protocol. Time = latency + bytes / bandwidth.
struct CollectiveCost {
    double latency = 0; ///< Seconds.
    double bandwidth = 0; ///< Bytes/s of algorithm bandwidth (bytes of the collective over its time).
};

/// Bytes/s at which data can stream through every member at once: the link inside a node, or the group's fair
/// share of the node's network if it spans nodes and that is less.
double busBandwidth(const Interconnect &links, GroupShape shape);

/// Latency and bandwidth of one algorithm and protocol, by NCCL 2.28's tuning model (src/graph/tuning.cc;
/// constants in runtime-facts.md, section 5). Without the corrections that depend on the size; see
/// `collectiveTime`.
/// @return nothing where NCCL does not offer the combination (also for SendRecv and AllToAll)
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
