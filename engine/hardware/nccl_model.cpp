#include "engine/hardware/nccl_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>

namespace planloom {

namespace {

// All figures: NCCL 2.28.9, src/graph/tuning.cc, as collected in runtime-facts.md, section 5.
constexpr double kMicrosecond = 1e-6;
constexpr double kGigabyte = 1e9;

using PerProtocol = std::array<double, kCollectiveProtocolCount>; // LL, LL128, Simple

struct HopLatencies { // Microseconds.
    PerProtocol ring;
    PerProtocol tree;
};
constexpr HopLatencies kNvlinkHop{{0.6, 1.9, 3.4}, {0.6, 1.25, 4.0}};
constexpr HopLatencies kPcieHop{{1.0, 2.5, 5.7}, {1.0, 1.9, 4.0}};
constexpr HopLatencies kNetworkHop{{2.7, 4.0, 14.0}, {5.0, 8.5, 14.0}};
constexpr double kNvlsHop = 25;
constexpr double kNvlsTreeNetworkHop = 20.9;
constexpr PerProtocol kRingBase{6.6, 14.0, 8.4};
constexpr PerProtocol kTreeBase{6.8, 14.0, 8.4};
constexpr double kPatBase = 8;
constexpr double kPatPerRank = 2.8;
constexpr double kPatNetworkShare = 1 / 3.5;
constexpr double kNetworkOverhead = 1.0; // Of the processor, per step; three times for Simple.

// GB/s for groups on one, two, and more nodes.
using PerNodes = std::array<double, 3>;
struct ArchitectureLimits {
    PerNodes lowLatency; // Of the whole bus.
    PerNodes ringLowLatency128; // Per channel, as the next two.
    PerNodes treeLowLatency128;
    PerNodes tree;
    double nvlsEfficiency; // 0 where the switch cannot add.
};
constexpr ArchitectureLimits kVolta{{39, 39, 20.4}, {20, 20, 20}, {20, 20, 20}, {26.5, 18.5, 10}, 0};
constexpr ArchitectureLimits kAmpere{{87.7, 22.5, 19}, {20, 20, 20}, {20, 20, 20}, {24, 23.6, 17.8}, 0};
constexpr ArchitectureLimits kHopper{
    {141, 45, 35}, {36.7, 36.7, 36.7}, {36.7, 36.7, 29}, {38.7, 41.4, 36}, 0.85};
constexpr ArchitectureLimits kBlackwell{
    {282, 90, 70}, {73.4, 73.4, 73.4}, {73.4, 73.4, 58}, {70, 42.8, 24}, 0.74};

// Trees fall short of the model at medium sizes: share of the bandwidth at 64 B, 128 B, ... 128 MB.
constexpr int kTreeCorrectionSizes = 22;
constexpr std::array<std::array<double, kTreeCorrectionSizes>, kCollectiveProtocolCount> kTreeCorrection{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9},
}};

bool isNvlink(LinkArchitecture architecture)
{
    return architecture != LinkArchitecture::PcieOnly && architecture != LinkArchitecture::SharedMemory;
}

const ArchitectureLimits &limitsOf(LinkArchitecture architecture)
{
    switch (architecture) {
    case LinkArchitecture::Volta:
        return kVolta;
    case LinkArchitecture::Hopper:
        return kHopper;
    case LinkArchitecture::Blackwell:
        return kBlackwell;
    case LinkArchitecture::Ampere:
    case LinkArchitecture::PcieOnly: // Consumer cards of compute capability 8.x.
    case LinkArchitecture::SharedMemory:
        break;
    }
    return kAmpere;
}

int log2Floor(std::int64_t value)
{
    return value < 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(value)) - 1;
}

int stepsOf(CollectiveKind kind, std::int32_t ranks)
{
    switch (kind) {
    case CollectiveKind::AllReduce:
        return 2 * (ranks - 1);
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
        return ranks - 1;
    default:
        return ranks;
    }
}

/// Seconds that the hops between racks, sites ... take longer than those between nodes, on one way through
/// all: a ring steps from each group of a level to the next, a tree climbs to the top. NCCL's own model ends
/// at nodes; this is its rule for them, one level further each time.
double outerHops(const Interconnect &links, GroupShape shape, bool tree)
{
    double seconds = 0;
    double below = links.interLatency.value;
    for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level) {
        const double own = links.outer[level].latency.value;
        seconds +=
            std::max(own - below, 0.0) * (tree ? log2Floor(shape.outer[level]) : shape.outer[level] - 1);
        below = own;
    }
    return seconds;
}

/// What these links need beyond NCCL's own latencies, in microseconds. What its tuner has is that of 8 bytes
/// with their flag; the other protocols' starts and hops are taken to be off by as much.
double startBeyond(const Interconnect &links)
{
    const double own = links.startLatency.value;
    return own > 0 ? own / kMicrosecond - kRingBase[0] : 0;
}

double hopBeyond(const Interconnect &links, const HopLatencies &hop)
{
    const double own = links.hopLatency.value;
    return own > 0 ? own / kMicrosecond - hop.ring[0] : 0;
}

CollectiveCost ringCost(
    const Interconnect &links, CollectiveKind kind, CollectiveProtocol protocol, GroupShape shape)
{
    const auto p = static_cast<std::size_t>(protocol);
    const ArchitectureLimits &limits = limitsOf(links.architecture);
    const auto scale = static_cast<std::size_t>(std::min(shape.nodes, 3) - 1);
    const HopLatencies &hop = isNvlink(links.architecture) ? kNvlinkHop : kPcieHop;
    const int steps = stepsOf(kind, shape.ranks);

    double bus = busBandwidth(links, shape);
    if (protocol == CollectiveProtocol::LowLatency)
        bus = std::min(limits.lowLatency[scale] * kGigabyte, bus * 0.5);
    else if (protocol == CollectiveProtocol::LowLatency128)
        bus = std::min(bus * 0.92, links.intraChannels.value * limits.ringLowLatency128[scale] * kGigabyte);

    double intraHop = hop.ring[p] + hopBeyond(links, hop);
    if (shape.nodes > 1) // Every step then costs the processor time.
        intraHop = std::max(intraHop, kNetworkOverhead * (protocol == CollectiveProtocol::Simple ? 3 : 1));
    const int interSteps = (kind == CollectiveKind::AllReduce ? 2 : 1) * (shape.nodes - 1);
    const double latency = kRingBase[p] + startBeyond(links) + (steps - interSteps) * intraHop
        + interSteps * kNetworkHop.ring[p];
    const int passes = kind == CollectiveKind::AllReduce ? 2 : 1;
    const double own = links.ownCopyBandwidth.value;
    const double bandwidth = own > 0 ? shape.ranks / (steps / bus + 1 / own) : bus * shape.ranks / steps;
    return {latency * kMicrosecond + passes * outerHops(links, shape, false), bandwidth};
}

CollectiveCost treeCost(const Interconnect &links, CollectiveProtocol protocol, GroupShape shape)
{
    const auto p = static_cast<std::size_t>(protocol);
    const ArchitectureLimits &limits = limitsOf(links.architecture);
    const auto scale = static_cast<std::size_t>(std::min(shape.nodes, 3) - 1);
    const HopLatencies &hop = isNvlink(links.architecture) ? kNvlinkHop : kPcieHop;
    const double channels = links.intraChannels.value;

    double bus = std::min(busBandwidth(links, shape) * 0.92, channels * limits.tree[scale] * kGigabyte);
    if (protocol == CollectiveProtocol::LowLatency)
        bus = std::min(bus / 3.8, limits.lowLatency[scale] * kGigabyte);
    else if (protocol == CollectiveProtocol::LowLatency128)
        bus = std::min(bus * (shape.nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
            channels * limits.treeLowLatency128[scale] * kGigabyte);
    const double latency = kTreeBase[p] + startBeyond(links)
        + 2
            * ((shape.ranks / shape.nodes - 1) * (hop.tree[p] + hopBeyond(links, hop))
                + log2Floor(shape.nodes) * kNetworkHop.tree[p]);
    return {latency * kMicrosecond + 2 * outerHops(links, shape, true), bus / 2};
}

CollectiveCost nvlsCost(const Interconnect &links, GroupShape shape)
{
    double bus = links.intraBandwidth.value;
    if (shape.nodes > 1) { // Beyond two nodes a node's share passes up and down the tree.
        const double network = busBandwidth(links, shape);
        bus = std::min(bus, shape.nodes > 2 ? network / 2 : network);
    }
    const double efficiency = limitsOf(links.architecture).nvlsEfficiency;
    const double latency = kNvlsHop + startBeyond(links) + 2 * log2Floor(shape.nodes) * kNvlsTreeNetworkHop;
    return {latency * kMicrosecond + 2 * outerHops(links, shape, true), bus * efficiency * 5.0 / 6.0};
}

CollectiveCost patCost(const Interconnect &links, GroupShape shape)
{
    const auto simple = static_cast<std::size_t>(CollectiveProtocol::Simple);
    const double latency = kPatBase + log2Floor(shape.nodes) * kNetworkHop.tree[simple] * kPatNetworkShare
        + shape.ranks * kPatPerRank;
    return {latency * kMicrosecond + outerHops(links, shape, true), busBandwidth(links, shape) * 0.75};
}

} // namespace

const char *nameOf(CollectiveAlgorithm algorithm)
{
    static constexpr std::array<const char *, kCollectiveAlgorithmCount> kNames{
        "ring", "tree", "NVLS", "PAT"};
    return kNames[static_cast<std::size_t>(algorithm)];
}

const char *nameOf(CollectiveProtocol protocol)
{
    static constexpr std::array<const char *, kCollectiveProtocolCount> kNames{"LL", "LL128", "Simple"};
    return kNames[static_cast<std::size_t>(protocol)];
}

namespace {

/// Distinct values of `places`, which it sorts.
std::int32_t distinctOf(std::vector<std::int32_t> &places)
{
    std::sort(places.begin(), places.end());
    return static_cast<std::int32_t>(std::unique(places.begin(), places.end()) - places.begin());
}

/// @param devices  by their numbers in the whole cluster
GroupShape shapeOfDevices(const Cluster &cluster, const std::vector<std::int32_t> &devices)
{
    GroupShape shape{.ranks = static_cast<std::int32_t>(devices.size())};
    std::vector<std::int32_t> places;
    places.reserve(devices.size());
    for (const std::int32_t device : devices)
        places.push_back(device / cluster.links.devicesPerNode);
    shape.nodes = std::max(distinctOf(places), 1);
    for (std::size_t level = 0; level < cluster.links.outer.size(); ++level) {
        const std::int32_t size = cluster.links.devicesPerNode * nodesOf(cluster.links, level);
        places.clear();
        for (const std::int32_t device : devices)
            places.push_back(device / size);
        shape.outer[level] = std::max(distinctOf(places), 1);
    }
    if (!cluster.otherClasses.empty()) {
        shape.classes = 0;
        for (const std::int32_t device : devices)
            shape.classes |= 1U << cluster.classAt(device);
    }
    return shape;
}

} // namespace

GroupShape groupShape(const Cluster &cluster, const std::vector<DeviceId> &members)
{
    std::vector<std::int32_t> devices;
    devices.reserve(members.size());
    for (const DeviceId member : members)
        devices.push_back(cluster.units.deviceOf(0, member).index);
    return shapeOfDevices(cluster, devices);
}

GroupShape shapeAcrossUnits(const Cluster &unit, DeviceId local)
{
    std::vector<std::int32_t> devices;
    for (std::int32_t u = 0; u < unit.units.count; ++u)
        devices.push_back(unit.units.deviceOf(u, local).index);
    return shapeOfDevices(unit, devices);
}

Interconnect jointLinks(const Cluster &cluster, std::uint32_t classes)
{
    Interconnect joint;
    bool first = true;
    const auto slower = [&first](Sourced &one, const Sourced &other, bool larger = false) {
        one.value = first ? other.value
            : larger      ? std::max(one.value, other.value)
                          : std::min(one.value, other.value);
    };
    for (std::int32_t c = 0; c <= static_cast<std::int32_t>(cluster.otherClasses.size()); ++c) {
        if (((classes >> c) & 1U) == 0)
            continue;
        const Interconnect &links = cluster.linksOfClass(c);
        // In the order of the enumeration: old before new, then those without NVLink.
        const bool isNvlinks = isNvlink(joint.architecture) && isNvlink(links.architecture);
        if (first
            || (isNvlinks ? links.architecture < joint.architecture
                          : links.architecture > joint.architecture))
            joint.architecture = links.architecture;
        slower(joint.intraBandwidth, links.intraBandwidth);
        slower(joint.intraChannels, links.intraChannels);
        slower(joint.intraLatency, links.intraLatency, true);
        slower(joint.startLatency, links.startLatency, true);
        slower(joint.hopLatency, links.hopLatency, true);
        const auto orElse = [](const Sourced &own, const Sourced &usual) {
            return Sourced{own.value > 0 ? own.value : usual.value, {}};
        };
        joint.ownCopyBandwidth = orElse(joint.ownCopyBandwidth, links.ownCopyBandwidth);
        slower(joint.ownCopyBandwidth, orElse(links.ownCopyBandwidth, joint.ownCopyBandwidth));
        slower(joint.allToAllBandwidth, orElse(links.allToAllBandwidth, links.intraBandwidth));
        slower(joint.allToAllLatency, orElse(links.allToAllLatency, links.intraLatency), true);
        slower(joint.interBandwidth, links.interBandwidth);
        slower(joint.interLatency, links.interLatency, true);
        const double ports = links.portsPerNode();
        joint.interPorts.value = first ? ports : std::min(joint.interPorts.value, ports);
        first = false;
    }
    joint.devicesPerNode = cluster.links.devicesPerNode;
    for (const LinkLevel &level : cluster.links.outer)
        joint.outer.push_back({{}, level.size, {level.bandwidth.value, {}}, {level.latency.value, {}}});
    return joint;
}

double busBandwidth(const Interconnect &links, GroupShape shape)
{
    const double intra = links.intraBandwidth.value;
    if (shape.nodes == 1)
        return intra;
    double inter = networkShare(links, shape.ranksPerNode());
    for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level)
        inter = std::min(inter, links.outer[level].bandwidth.value);
    return shape.ranksPerNode() > 1 ? std::min(intra, inter) : inter;
}

double networkShare(const Interconnect &links, double devices)
{
    const double cards =
        links.sharesPorts() ? std::max(devices, 1.0) / links.portsPerNode() : devices / links.devicesPerNode;
    return links.interBandwidth.value * std::min(cards, 1.0);
}

double outerLatency(const Interconnect &links, GroupShape shape)
{
    double latency = 0;
    for (std::size_t level = 0; level < links.outer.size(); ++level)
        if (shape.outer[level] > 1)
            latency = std::max(latency, links.outer[level].latency.value - links.interLatency.value);
    return latency;
}

std::optional<CollectiveCost> collectiveCost(const Interconnect &links, CollectiveKind kind,
    CollectiveAlgorithm algorithm, CollectiveProtocol protocol, GroupShape shape)
{
    assert(shape.nodes >= 1 && shape.nodes <= shape.ranks);
    if (shape.ranks < 2 || kind == CollectiveKind::SendRecv || kind == CollectiveKind::Shift
        || kind == CollectiveKind::AllToAll || links.architecture == LinkArchitecture::SharedMemory)
        return std::nullopt;
    if (protocol == CollectiveProtocol::LowLatency128 && !isNvlink(links.architecture))
        return std::nullopt; // Needs 128-byte stores to arrive whole.
    switch (algorithm) {
    case CollectiveAlgorithm::Ring:
        return ringCost(links, kind, protocol, shape);
    case CollectiveAlgorithm::Tree:
        if (kind != CollectiveKind::AllReduce)
            return std::nullopt;
        return treeCost(links, protocol, shape);
    case CollectiveAlgorithm::Nvls:
        if (kind != CollectiveKind::AllReduce || protocol != CollectiveProtocol::Simple
            || limitsOf(links.architecture).nvlsEfficiency == 0 || shape.ranks < 2 * shape.nodes)
            return std::nullopt;
        return nvlsCost(links, shape);
    case CollectiveAlgorithm::Pat:
        if ((kind != CollectiveKind::AllGather && kind != CollectiveKind::ReduceScatter)
            || protocol != CollectiveProtocol::Simple || shape.nodes != shape.ranks)
            return std::nullopt;
        return patCost(links, shape);
    }
    return std::nullopt;
}

std::optional<double> collectiveTime(const Interconnect &links, CollectiveKind kind,
    CollectiveAlgorithm algorithm, CollectiveProtocol protocol, GroupShape shape, Bytes bytes)
{
    auto cost = collectiveCost(links, kind, algorithm, protocol, shape);
    if (!cost)
        return std::nullopt;
    if (algorithm == CollectiveAlgorithm::Tree) {
        const int size = log2Floor(bytes.count / 64);
        if (size < kTreeCorrectionSizes)
            cost->bandwidth *=
                kTreeCorrection[static_cast<std::size_t>(protocol)][static_cast<std::size_t>(size)];
    }
    if (algorithm == CollectiveAlgorithm::Ring && protocol == CollectiveProtocol::Simple && shape.nodes > 1
        && kind == CollectiveKind::AllReduce
        && static_cast<double>(bytes.count) >= 64.0 * links.intraChannels.value * shape.ranks)
        cost->latency *= links.architecture == LinkArchitecture::Volta ? 1.9 : 1.4;
    return cost->latency + static_cast<double>(bytes.count) / cost->bandwidth;
}

CollectiveChoice fastestCollective(
    const Interconnect &links, CollectiveKind kind, GroupShape shape, Bytes bytes)
{
    CollectiveChoice best{.seconds = std::numeric_limits<double>::infinity()};
    for (int a = 0; a < kCollectiveAlgorithmCount; ++a) {
        for (int p = 0; p < kCollectiveProtocolCount; ++p) {
            const auto algorithm = static_cast<CollectiveAlgorithm>(a);
            const auto protocol = static_cast<CollectiveProtocol>(p);
            const auto seconds = collectiveTime(links, kind, algorithm, protocol, shape, bytes);
            if (seconds && *seconds < best.seconds)
                best = {algorithm, protocol, *seconds};
        }
    }
    return best;
}

} // namespace planloom
