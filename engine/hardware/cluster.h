#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/scale_units.h"
#include "engine/base/units.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A figure with where it comes from.
struct Sourced {
    double value = 0;
    std::string source{};
    friend bool operator==(const Sourced &, const Sourced &) = default;
};

/// Shares of peak that kernels reach in one number format, 0..1; 0 where they are the device's general ones.
struct FormatEfficiency {
    DataType format = DataType::Float16; ///< Float16 is bfloat16's too, Float8E4M3 that of all with 8 bits.
    Sourced product{};
    Sourced tile{};
    Sourced grouped{};
    Sourced attention{};
    Sourced attentionBackward{};
    friend bool operator==(const FormatEfficiency &, const FormatEfficiency &) = default;
};

/// What an operator is made of where a framework has no kernel of its own for it: several kernels, each of
/// which reads and writes what the next one reads.
struct ComposedOperator {
    OperatorKind kind = OperatorKind::Identity;
    Sourced forward{}; ///< Bytes that all of them move for an element of its largest operand.
    Sourced backward{};
    Sourced forwardKernels{}; ///< How many they are.
    Sourced backwardKernels{};
    friend bool operator==(const ComposedOperator &, const ComposedOperator &) = default;
};

/// One kind of device.
struct DeviceModel {
    std::string name{};
    std::vector<std::string> aliases{}; ///< What else its users call it: "H100 SXM".
    Sourced float32Flops{}; ///< Peak, FLOP/s, dense.
    Sourced tensorFloat32Flops{};
    Sourced float16Flops{}; ///< Also bfloat16.
    Sourced float64Flops{};
    Sourced float8Flops{}; ///< 0 where the device has no such units; files may leave it out.
    Sourced productEfficiency{}; ///< Achieved share of peak on large products, 0..1.
    /// Achieved share of its part of the peak that a multiprocessor reaches while many others have nothing to
    /// do, so that the board's power allows for more than of all; 0 is `productEfficiency`.
    Sourced tileEfficiency{};
    Sourced groupedEfficiency{}; ///< Of many products at once, as of experts; 0 is `productEfficiency`.
    Sourced multiprocessors{}; ///< That share the tiles of a product out; 0 if products have no tiles.
    /// Achieved share of peak of attention whose scores stay on the chip, 0..1; 0 is `productEfficiency`.
    Sourced attentionEfficiency{};
    Sourced attentionBackwardEfficiency{};
    Sourced
        attentionKeysLost{}; ///< Keys of a causal sequence that its start costs; 0: see `kernel_cost.cpp`.
    std::vector<FormatEfficiency> formats{}; ///< Each format at most once.
    Sourced memory{}; ///< Bytes.
    Sourced memoryBandwidth{}; ///< Bytes/s.
    Sourced memoryEfficiency{}; ///< Achieved share of it, 0..1.
    Sourced launchLatency{}; ///< Seconds per kernel.
    // What a framework makes of the device (framework.h).
    Sourced hostTime{}; ///< Seconds that its host takes to launch a kernel: shorter ones take as long.
    Sourced
        unfused{}; ///< 1 where every element-wise operator is a launch by itself; 0: those that meet are one.
    std::vector<ComposedOperator> composed{}; ///< Each kind at most once.
    /// Share of its multiprocessors that is left for what is computed while a collective runs; 0: all.
    Sourced besideCollectives{};
    /// Bytes of its node's host memory, as many as each of the node's devices can have; 0 where nothing is
    /// known.
    Sourced hostMemory{};
    Sourced hostBandwidth{}; ///< Bytes/s of copies to its host, and of those back; 0: see `hostCopySeconds`.
    Sourced hostLatency{}; ///< Seconds per such copy.
    friend bool operator==(const DeviceModel &, const DeviceModel &) = default;
};

/// The architecture whose constants NCCL's model uses.
enum class LinkArchitecture : std::uint8_t { Volta, Ampere, Hopper, Blackwell, PcieOnly, SharedMemory };

const char *nameOf(LinkArchitecture architecture); ///< "hopper"

/// A level of links above those between the nodes of one group of nodes: it joins groups of them.
struct LinkLevel {
    std::string name{}; ///< Of a group: "rack", "site".
    std::int32_t size = 1; ///< How many groups of the level below are in one (of the first level: nodes).
    /// Bytes/s of one group and direction towards the others, which all of its devices share.
    Sourced bandwidth{};
    Sourced latency{}; ///< Seconds per hop between groups.
    friend bool operator==(const LinkLevel &, const LinkLevel &) = default;
};
constexpr std::size_t kMostOuterLevels = 4;

/// How devices are joined: `devicesPerNode` over `intra` links inside a node, nodes over `inter`, and groups
/// of nodes over `outer` links:
///
///     device  ==intra==  node  ==inter==  rack  ==outer[0]==  site  ==outer[1]==  ...
struct Interconnect {
    LinkArchitecture architecture = LinkArchitecture::Hopper;
    std::int32_t devicesPerNode = 8;
    Sourced intraBandwidth{}; ///< Bytes/s per device and direction, as NCCL's graph search would find it.
    Sourced intraChannels{};
    Sourced intraLatency{}; ///< Seconds per hop (send/recv).
    /// Seconds that the first hop of a collective of few bytes takes, and each further one; 0: as NCCL's
    /// tuning model has them.
    Sourced startLatency{};
    Sourced hopLatency{};
    /// Bytes/s at which a member copies what it has of a collective's result itself; 0: in no time.
    Sourced ownCopyBandwidth{};
    Sourced allToAllBandwidth{}; ///< Bytes/s per device and direction; 0: `intraBandwidth`.
    Sourced allToAllLatency{}; ///< Seconds; 0: `intraLatency`.
    Sourced interBandwidth{}; ///< Bytes/s per node and direction.
    Sourced interLatency{};
    /// Network cards of a node. 0: one for each device, which no other device uses. Fewer than devices are
    /// shared by runs of them, each of which may fill the card while the others are silent.
    Sourced interPorts{};
    std::vector<LinkLevel> outer{}; ///< From the inside out; at most `kMostOuterLevels`.
    friend bool operator==(const Interconnect &, const Interconnect &) = default;

    bool sharesPorts() const { return interPorts.value > 0 && interPorts.value < devicesPerNode; }
    std::int32_t portsPerNode() const
    {
        return sharesPorts() ? static_cast<std::int32_t>(interPorts.value) : devicesPerNode;
    }
};

/// Devices first, first + 1, ... first + count - 1, and again every `every` devices.
struct DeviceRange {
    std::int32_t first = 0;
    std::int32_t count = 1;
    std::int32_t every = 0; ///< 0: not again.
    bool has(std::int32_t device) const
    {
        const std::int32_t at = device - first;
        return at >= 0 && (every > 0 ? at % every : at) < count;
    }
    friend bool operator==(const DeviceRange &, const DeviceRange &) = default;
};

/// Devices of another kind than most of a cluster.
struct DeviceClass {
    DeviceModel device{};
    Interconnect links{}; ///< `devicesPerNode` and `outer` are the cluster's.
    std::vector<DeviceRange> where{};
    friend bool operator==(const DeviceClass &, const DeviceClass &) = default;
};
constexpr std::size_t kMostDeviceClasses = 8;

/// Where the communication of a device waits for its turn, as it is simulated.
enum class CommunicationQueues : std::uint8_t {
    /// Collectives inside blocks, gradients and weights between them, and transfers between stages in the
    /// forward and in the backward pass each have a queue (stream) of their own: what is not needed next does
    /// not hold up what is.
    Own,
    /// All of it waits in one queue, in the order of the program, as with a single communication stream.
    One,
};

/// A cluster: device d is on node d / devicesPerNode. Class 0 are the devices of `device` and `links`, which
/// no other class claims; class c is `otherClasses[c - 1]`.
struct Cluster {
    std::string name{}; ///< "dgx-h100:16"
    std::string framework{}; ///< Whose figures the devices have (framework.h); may be empty.
    DeviceModel device{};
    Interconnect links{};
    std::int32_t deviceCount = 1;
    /// Devices are numbered as inside one of so many scale units: see `unitOf`.
    ScaleUnits units{};
    std::vector<DeviceClass> otherClasses{};
    CommunicationQueues communicationQueues = CommunicationQueues::Own;
    /// A device computes nothing while it sends to another stage, and sends only what is behind all that it
    /// was to compute before: as with sends on the stream that computes.
    bool blockingSends = false;
    friend bool operator==(const Cluster &, const Cluster &) = default;

    /// Of unit 0's device, where there are units; so are the others.
    std::int32_t nodeOf(DeviceId d) const { return units.deviceOf(0, d).index / links.devicesPerNode; }
    std::int32_t classOf(DeviceId d) const
    {
        return otherClasses.empty() ? 0 : classAt(units.deviceOf(0, d).index);
    }
    const DeviceModel &deviceAt(DeviceId d) const { return deviceOfClass(classOf(d)); }
    const Interconnect &linksAt(DeviceId d) const { return linksOfClass(classOf(d)); }

    const DeviceModel &deviceOfClass(std::int32_t c) const
    {
        return c == 0 ? device : otherClasses[static_cast<std::size_t>(c) - 1].device;
    }
    const Interconnect &linksOfClass(std::int32_t c) const
    {
        return c == 0 ? links : otherClasses[static_cast<std::size_t>(c) - 1].links;
    }
    /// Class of the device with this number in the whole cluster.
    std::int32_t classAt(std::int32_t index) const;
};

/// Bytes that a device has which plans know as `device` of one of `units`. `cluster` is the whole one.
double memoryOf(const Cluster &cluster, const ScaleUnits &units, std::int32_t device);

/// Nodes in one group of outer level `level`.
std::int32_t nodesOf(const Interconnect &links, std::size_t level);

/// The least memory of the cluster's classes, bytes.
double leastMemory(const Cluster &cluster);

/// What the devices are called, in the order of classes: "H100-SXM5-80GB, A100-SXM4-80GB".
std::string deviceNames(const Cluster &cluster);

/// Whether `units` of the cluster look alike: their devices are of the same classes, lie together on nodes
/// and in racks, sites ... in the same way, and share links with the same devices of other units. Only then
/// does one unit's timeline stand for all. O(devices x levels x log).
bool unitsAlike(const Cluster &cluster, const ScaleUnits &units);

/// The devices of one scale unit of `cluster`, with their places in it.
Cluster unitOf(Cluster cluster, const ScaleUnits &units);

/// A profile with a size ("dgx-h100:8", "cpu:4") or the path of a JSON file of the same schema as
/// resources/clusters/*.json. The profiles are compiled in from resources/.
/// @return NotFound listing the known names; InvalidInput with the JSON pointer of what is wrong
Result<Cluster> clusterNamed(std::string_view nameOrPath);

/// The compiled-in profile whose devices `words` name, as people and benchmarks write them: "8x H100 SXM",
/// "gb200", "a100_40gb". That of whose name, aliases or device all words are there, of the most words; of a
/// device with another memory than is said, none.
std::optional<std::string> profileOfDevice(std::string_view words);

/// Names of the compiled-in profiles, sorted.
std::vector<std::string> clusterNames();

} // namespace planloom
