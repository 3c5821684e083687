#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cluster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What a file says of machines.
enum class MachineFile : std::uint8_t {
    NcclTopology,
    SmiTopology, ///< `nvidia-smi topo -m`
    SmiQuery, ///< `nvidia-smi -q`
    SlurmConf,
    SlurmYaml,
    SimumaxSystem,
    AiconfiguratorSystem,
};
const char *nameOf(MachineFile kind); ///< "NCCL topology"

/// Recognises a file by what it holds, never by its name. O(length).
std::optional<MachineFile> machineFileOf(std::string_view text);

/// A file with its content.
struct NamedText {
    std::string name{};
    std::string text{};
};

/// Files of one cluster, and what they do not say.
struct MachineRequest {
    std::vector<NamedText> files{};
    std::string device{}; ///< Words that name the devices, or a profile; empty: as the files say.
    std::int32_t hosts = 0; ///< So many like the one of the files; 0: as the files say.
};

struct MachineCluster {
    Cluster cluster{};
    std::vector<std::string> read{}; ///< A sentence for each file: what it said.
    std::vector<std::string> assumed{}; ///< A sentence each: what none of them said.
};

/// Makes a cluster of topologies: hosts (of NCCL, of nvidia-smi) with their links and cards, domains of
/// NVLink over several hosts, switches above them, or a whole machine of another simulator. Devices are known
/// by their product or their number on the bus, and have the figures of the profile; links count as often as
/// the files have them, at the rate of their generation.
///
/// Hosts stand in the order of the files. One host stands for all where Slurm's file or `hosts` says how many
/// there are. A query (`nvidia-smi -q`) is of the host whose links stand at the same place among the files.
/// @return InvalidInput with the file and its place, also for files that contradict one another; NotFound,
///   `where` "--device", for devices without a profile
/// O(bytes of all). Thread-safe.
Result<MachineCluster> machineCluster(const MachineRequest &request);

/// The same of files by their paths. Waits for the disk.
Result<MachineCluster> machineClusterOf(
    const std::vector<std::string> &paths, const std::string &device, std::int32_t hosts);

} // namespace planloom
