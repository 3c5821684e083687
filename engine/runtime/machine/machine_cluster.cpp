#include "engine/runtime/machine/machine_cluster.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace planloom {

namespace {

/// Which profile has the figures of a GPU whose name no profile knows.
struct KnownGpu {
    std::int32_t computeCapability;
    const char *profile;
};
constexpr std::array<KnownGpu, 5> kKnownGpus{
    {{90, "dgx-h100"}, {100, "hgx-b200"}, {80, "dgx-a100"}, {89, "rtx4090"}, {70, "dgx2-v100"}}};

/// Bytes/s of one NVLink and direction as NCCL counts them (NCCL 2.28.9, src/graph/topo.h), by version.
double linkBandwidth(std::int32_t version)
{
    return version >= 5 ? 40.1e9 : version == 4 ? 20.6e9 : 20.0e9;
}

/// NCCL's 12 GB/s of 16 lanes of generation 3, which double with each generation.
double pcieBandwidth(std::int32_t generation, std::int32_t lanes)
{
    double bandwidth = 12e9 * (lanes > 0 ? lanes : 16) / 16;
    for (std::int32_t g = 3; g < generation; ++g)
        bandwidth *= 2;
    return bandwidth;
}

/// The profile whose figures stand for a GPU without one: of the newest that is not newer. Null if none comes
/// near.
const KnownGpu *nearestGpu(const ProbedGpu &gpu)
{
    const KnownGpu *nearest = nullptr;
    for (const KnownGpu &known : kKnownGpus)
        if (known.computeCapability <= gpu.computeCapability
            && (nearest == nullptr || known.computeCapability >= nearest->computeCapability))
            nearest = &known;
    return nearest;
}

Result<Cluster> clusterOfGpus(const std::vector<ProbedGpu> &gpus)
{
    const ProbedGpu &gpu = gpus.front();
    auto profile = profileOfDevice(gpu.name);
    const bool isOwn = profile.has_value();
    if (const KnownGpu *const nearest = nearestGpu(gpu); !isOwn && nearest)
        profile = nearest->profile;
    if (!profile)
        return Error{ErrorCode::NotSupported, "nothing is known of how fast a " + gpu.name + " is",
            "describe the cluster in a file (resources/schema/cluster.json)", {}};
    const auto count = static_cast<std::int32_t>(gpus.size());
    TRY(Cluster cluster, clusterNamed(*profile + ":" + std::to_string(count)));
    cluster.name = kThisMachine;
    cluster.deviceCount = count;
    cluster.otherClasses.clear();
    DeviceModel &device = cluster.device;
    if (!isOwn)
        for (Sourced *figure : {&device.float32Flops, &device.tensorFloat32Flops, &device.float16Flops,
                 &device.float64Flops, &device.float8Flops, &device.memoryBandwidth})
            figure->source = "taken for " + gpu.name + ": of " + device.name + ", " + figure->source;
    device.name = gpu.name;
    device.aliases.clear();
    device.memory = {static_cast<double>(gpu.memory.count), "found by NVIDIA's driver"};
    Interconnect &links = cluster.links;
    links.devicesPerNode = count;
    links.outer.clear();
    double nvlink = 0;
    std::int32_t total = 0;
    for (const ProbedLinks &each : gpu.links) {
        nvlink += each.count * linkBandwidth(each.version);
        total += each.count;
    }
    if (nvlink > 0) {
        // What was measured of all links is taken to be as much less with fewer.
        links.allToAllBandwidth.value *= nvlink / links.intraBandwidth.value;
        links.intraBandwidth = {
            nvlink, std::to_string(total) + " NVLinks found, as many GB/s each as NCCL 2.28.9 counts"};
    } else if (gpu.pcieGeneration > 0) {
        links.architecture = LinkArchitecture::PcieOnly;
        for (Sourced *figure : {&links.startLatency, &links.hopLatency, &links.ownCopyBandwidth,
                 &links.allToAllBandwidth, &links.allToAllLatency})
            *figure = {};
        links.intraChannels = {2, "NCCL's graph search without NVLink: one ring, used twice"};
        links.intraBandwidth = {pcieBandwidth(gpu.pcieGeneration, gpu.pcieWidth) / 1.2,
            "PCIe " + std::to_string(gpu.pcieGeneration) + " x" + std::to_string(gpu.pcieWidth)
                + " found (NCCL's 12 GB/s of generation 3 x16, scaled), divided by its factor 6/5 for "
                  "passing "
                  "through the host"};
    }
    return cluster;
}

Result<Cluster> clusterOfCores(const ProbedCpu &cpu, const std::optional<MachineProfile> &measured)
{
    TRY(Cluster cluster, clusterNamed("cpu:" + std::to_string(cpu.cores)));
    cluster.name = kThisMachine;
    DeviceModel &device = cluster.device;
    device.name = cpu.name.empty() ? "a core" : "a core of " + cpu.name;
    if (cpu.memory.count > 0)
        device.memory = {static_cast<double>(cpu.memory.count) / cpu.cores, "its share of the memory found"};
    if (!measured)
        return cluster;
    const std::string source = "measured on this machine";
    double best = 0;
    for (const auto &[key, kernel] : measured->kernels)
        if (kernel.category == OperatorCategory::Product && kernel.coreSeconds > 0)
            best = std::max(best, kernel.flops / kernel.coreSeconds);
    if (best > 0)
        device.float32Flops = {best / device.productEfficiency.value,
            source + ": the fastest product, divided by the efficiency below"};
    if (measured->copyRate > 0)
        device.memoryBandwidth = {measured->copyRate, source};
    if (measured->taskSeconds > 0)
        device.launchLatency = {measured->taskSeconds, source};
    if (measured->exchangeRate > 0)
        cluster.links.intraBandwidth = {measured->exchangeRate / 2 / cpu.cores,
            source + ": each byte is read and written, by devices that share the memory"};
    if (measured->exchangeSeconds > 0)
        cluster.links.intraLatency = {measured->exchangeSeconds, source};
    return cluster;
}

} // namespace

Result<Cluster> machineCluster(const Probe &probe, const std::optional<MachineProfile> &measured)
{
    std::vector<ProbedGpu> usable;
    for (const ProbedGpu &gpu : probe.gpus)
        if (gpu.problem.empty() && (usable.empty() || gpu.name == usable.front().name))
            usable.push_back(gpu);
    return usable.empty() ? clusterOfCores(probe.cpu, measured) : clusterOfGpus(usable);
}

} // namespace planloom
