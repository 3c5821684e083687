#include "engine/hardware/cost.h"

#include "engine/hardware/nccl_model.h"

#include <algorithm>
#include <cassert>

namespace planloom {

namespace {

/// Bytes one member of an n-device group passes on, by the ring algorithm.
double ringBytes(CollectiveKind kind, double bytes, double n)
{
    switch (kind) {
    case CollectiveKind::AllReduce:
        return 2 * (n - 1) / n * bytes;
    case CollectiveKind::AllGather:
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllToAll:
        return (n - 1) / n * bytes;
    case CollectiveKind::Broadcast:
    case CollectiveKind::SendRecv:
    case CollectiveKind::Shift:
        return bytes;
    }
    return bytes;
}

/// Devices that are threads of one process: one rendezvous, then copies at the memory's rate.
double sharedMemorySeconds(const Interconnect &links, CollectiveKind kind, double bytes, double n)
{
    const double phases = kind == CollectiveKind::AllReduce ? 2 : 1;
    return phases * links.intraLatency.value + ringBytes(kind, bytes, n) / links.intraBandwidth.value;
}

/// Each member sends its own chunk to every peer at once; what leaves the node takes its share of the
/// network.
double allToAllSeconds(const Interconnect &links, double bytes, GroupShape shape)
{
    const double n = shape.ranks;
    if (shape.nodes == 1)
        return links.intraLatency.value + (n - 1) / n * bytes / links.intraBandwidth.value;
    const double within = (shape.ranksPerNode() - 1) / n * bytes;
    const double across = (n - shape.ranksPerNode()) / n * bytes;
    const double perNode = std::max(shape.ranksPerNode(), 1.0);
    // Each has its part of what the network gives to the members of a node.
    const double share = links.sharesPorts() ? networkShare(links, perNode) / perNode
                                             : links.interBandwidth.value / links.devicesPerNode;
    double slowest = std::max(within / links.intraBandwidth.value, across / share);
    for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level) {
        const double here = n / shape.outer[level]; // members in one rack, site ...
        slowest = std::max(slowest, here * (n - here) / n * bytes / links.outer[level].bandwidth.value);
    }
    return links.interLatency.value + outerLatency(links, shape) + slowest;
}

double sendSeconds(const Interconnect &links, double bytes, GroupShape shape)
{
    if (shape.nodes == 1)
        return links.intraLatency.value + bytes / links.intraBandwidth.value;
    // Its own card; those who share one fill it, and slow each other down in the simulation.
    double share = std::min(links.intraBandwidth.value, networkShare(links, 1));
    for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level)
        share = std::min(share, links.outer[level].bandwidth.value);
    return links.interLatency.value + outerLatency(links, shape) + bytes / share;
}

} // namespace

const Sourced &matrixRateOf(const DeviceModel &device, DataType dataType)
{
    const auto orElse = [](const Sourced &own, const Sourced &other) -> const Sourced & {
        return own.value > 0 ? own : other;
    };
    switch (dataType) {
    case DataType::Float16:
    case DataType::BFloat16:
        return orElse(device.float16Flops, device.float32Flops);
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
        return orElse(device.float8Flops, matrixRateOf(device, DataType::BFloat16));
    case DataType::TensorFloat32:
        return orElse(device.tensorFloat32Flops, device.float32Flops);
    case DataType::Float64:
        return orElse(device.float64Flops, device.float32Flops);
    default:
        return device.float32Flops;
    }
}

double matrixFlopsOf(const DeviceModel &device, DataType dataType)
{
    return matrixRateOf(device, dataType).value;
}

double operatorSeconds(
    const DeviceModel &device, OperatorCategory category, const Work &work, DataType dataType)
{
    const bool product = category == OperatorCategory::Product || category == OperatorCategory::Attention
        || category == OperatorCategory::Recurrent;
    const double rate = product         ? matrixFlopsOf(device, dataType) * device.productEfficiency.value
        : dataType == DataType::Float64 ? matrixFlopsOf(device, dataType)
                                        : device.float32Flops.value;
    const double computing = work.flops / rate;
    const double moving = work.bytes / (device.memoryBandwidth.value * device.memoryEfficiency.value);
    return std::max(computing, moving) + device.launchLatency.value;
}

double copySeconds(const DeviceModel &device, Bytes bytes)
{
    const double touched = 2.0 * static_cast<double>(bytes.count); // Read and written.
    return touched / (device.memoryBandwidth.value * device.memoryEfficiency.value)
        + device.launchLatency.value;
}

double hostCopySeconds(const DeviceModel &device, Bytes bytes)
{
    // PCI Express 4.0, 16 lanes: 31.5 GB/s by the specification, of which copies of pinned memory reach 80%.
    constexpr double kUsualBandwidth = 25e9;
    constexpr double kUsualLatency = 10e-6;
    const bool known = device.hostBandwidth.value > 0;
    return static_cast<double>(bytes.count) / (known ? device.hostBandwidth.value : kUsualBandwidth)
        + (known ? device.hostLatency.value : kUsualLatency);
}

CommunicationLoad collectiveLoad(
    const Interconnect &links, CollectiveKind kind, Bytes bytes, GroupShape shape)
{
    CommunicationLoad load;
    const double count = static_cast<double>(bytes.count);
    if (shape.ranks < 2 || bytes.count <= 0)
        return load;
    const double n = shape.ranks;
    const double seconds = collectiveSeconds(links, kind, bytes, shape);
    double sent = ringBytes(kind, count, n); // by one member
    if (links.architecture == LinkArchitecture::SharedMemory) {
        load.latency = (kind == CollectiveKind::AllReduce ? 2 : 1) * links.intraLatency.value;
    } else if (kind == CollectiveKind::SendRecv || kind == CollectiveKind::Shift
        || kind == CollectiveKind::AllToAll) {
        load.latency = shape.nodes == 1 ? links.intraLatency.value
                                        : links.interLatency.value + outerLatency(links, shape);
    } else {
        const CollectiveChoice choice = fastestCollective(links, kind, shape, bytes);
        // Without the corrections, which are shares of the whole.
        load.latency =
            std::min(collectiveCost(links, kind, choice.algorithm, choice.protocol, shape)->latency, seconds);
        if (choice.protocol == CollectiveProtocol::LowLatency)
            sent *= 2;
        if (choice.algorithm == CollectiveAlgorithm::Nvls)
            sent = count; // goes into the switch once, and its sum comes back once
    }
    const double moving = seconds - load.latency;
    if (moving <= 0)
        return {seconds};
    const double rate = sent / moving;
    const double perNode = shape.ranksPerNode();
    if (shape.nodes == 1) {
        load.device = rate;
        return load;
    }
    if (kind == CollectiveKind::SendRecv) {
        load.network = rate;
        for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level)
            load.outer[level] = rate;
        return load;
    }
    if (kind == CollectiveKind::AllToAll) { // what goes to whom is known
        load.device = (perNode - 1) / n * count / moving;
        load.network = (n - perNode) / n * count / moving;
        for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level)
            load.outer[level] = (n - n / shape.outer[level]) / n * count / moving;
        return load;
    }
    // A ring passes every node, rack and site once: one flow leaves each, which is its members' together.
    load.device = perNode > 1 ? rate : 0;
    load.network = rate / perNode;
    for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level)
        load.outer[level] = rate * shape.outer[level] / n;
    return load;
}

double collectiveSeconds(const Interconnect &links, CollectiveKind kind, Bytes bytes, GroupShape shape)
{
    assert(bytes.count >= 0);
    if (shape.ranks < 2)
        return 0;
    const double count = static_cast<double>(bytes.count);
    if (links.architecture == LinkArchitecture::SharedMemory)
        return sharedMemorySeconds(links, kind, count, shape.ranks);
    if (kind == CollectiveKind::SendRecv || kind == CollectiveKind::Shift) // each has a card of its own
        return sendSeconds(links, count, shape);
    if (kind == CollectiveKind::AllToAll)
        return allToAllSeconds(links, count, shape);
    return fastestCollective(links, kind, shape, bytes).seconds;
}

double collectiveSeconds(
    const Cluster &cluster, CollectiveKind kind, Bytes bytes, const std::vector<DeviceId> &members)
{
    if (members.size() < 2)
        return 0;
    const GroupShape shape = groupShape(cluster, members);
    if (cluster.otherClasses.empty())
        return collectiveSeconds(cluster.links, kind, bytes, shape);
    return collectiveSeconds(jointLinks(cluster, shape.classes), kind, bytes, shape);
}

} // namespace planloom
