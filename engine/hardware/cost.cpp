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

double allToAllBandwidth(const Interconnect &links)
{
    return links.allToAllBandwidth.value > 0 ? links.allToAllBandwidth.value : links.intraBandwidth.value;
}

double allToAllLatency(const Interconnect &links, GroupShape shape)
{
    if (shape.nodes > 1)
        return links.interLatency.value + outerLatency(links, shape);
    return links.allToAllLatency.value > 0 ? links.allToAllLatency.value : links.intraLatency.value;
}

/// Each member sends its own chunk to every peer at once; what leaves the node takes its share of the
/// network.
double allToAllSeconds(const Interconnect &links, double bytes, GroupShape shape)
{
    const double n = shape.ranks;
    const double inside = allToAllBandwidth(links);
    const double own = links.ownCopyBandwidth.value > 0 ? bytes / n / links.ownCopyBandwidth.value : 0;
    if (shape.nodes == 1)
        return allToAllLatency(links, shape) + (n - 1) / n * bytes / inside + own;
    const double within = (shape.ranksPerNode() - 1) / n * bytes;
    const double across = (n - shape.ranksPerNode()) / n * bytes;
    const double perNode = std::max(shape.ranksPerNode(), 1.0);
    // Each has its part of what the network gives to the members of a node.
    const double share = links.sharesPorts() ? networkShare(links, perNode) / perNode
                                             : links.interBandwidth.value / links.devicesPerNode;
    double slowest = std::max(within / inside, across / share);
    for (std::size_t level = 0; level < links.outer.size() && shape.outer[level] > 1; ++level) {
        const double here = n / shape.outer[level]; // members in one rack, site ...
        slowest = std::max(slowest, here * (n - here) / n * bytes / links.outer[level].bandwidth.value);
    }
    return allToAllLatency(links, shape) + slowest;
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

namespace {

/// The format by whose name a device has the rates of `dataType`.
DataType formatOf(DataType dataType)
{
    switch (dataType) {
    case DataType::BFloat16:
        return DataType::Float16;
    case DataType::Float8E5M2:
        return DataType::Float8E4M3;
    default:
        return dataType;
    }
}

struct RateMembers {
    Sourced FormatEfficiency::*ofFormat;
    Sourced DeviceModel::*ofDevice;
};

RateMembers membersOf(KernelRate rate)
{
    switch (rate) {
    case KernelRate::Tile:
        return {&FormatEfficiency::tile, &DeviceModel::tileEfficiency};
    case KernelRate::Grouped:
        return {&FormatEfficiency::grouped, &DeviceModel::groupedEfficiency};
    case KernelRate::Attention:
        return {&FormatEfficiency::attention, &DeviceModel::attentionEfficiency};
    case KernelRate::AttentionBackward:
        return {&FormatEfficiency::attentionBackward, &DeviceModel::attentionBackwardEfficiency};
    case KernelRate::Product:
        break;
    }
    return {&FormatEfficiency::product, &DeviceModel::productEfficiency};
}

} // namespace

const Sourced &efficiencyOf(const DeviceModel &device, KernelRate rate, DataType dataType)
{
    const RateMembers members = membersOf(rate);
    for (const FormatEfficiency &each : device.formats) {
        if (each.format != formatOf(dataType))
            continue;
        if (const Sourced &own = each.*members.ofFormat; own.value > 0)
            return own;
        // What its own products reach says more of it than what those of other formats do.
        if (each.product.value > 0 && (rate == KernelRate::Tile || rate == KernelRate::Grouped))
            return each.product;
    }
    const Sourced &general = device.*members.ofDevice;
    return general.value > 0 || rate == KernelRate::Product
        ? general
        : efficiencyOf(device, KernelRate::Product, dataType);
}

double operatorSeconds(
    const DeviceModel &device, OperatorCategory category, const Work &work, DataType dataType)
{
    const bool product = category == OperatorCategory::Product || category == OperatorCategory::Attention
        || category == OperatorCategory::Recurrent;
    const double rate = product
        ? matrixFlopsOf(device, dataType) * efficiencyOf(device, KernelRate::Product, dataType).value
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
    } else if (kind == CollectiveKind::AllToAll) {
        load.latency = allToAllLatency(links, shape);
    } else if (kind == CollectiveKind::SendRecv || kind == CollectiveKind::Shift) {
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
