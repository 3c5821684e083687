#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/table/kinds/partition/mesh.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The device that each rank of a framework runs on, so that it does what a plan has that device do.
/// @param ranks, devices  one mesh, with its axes as the framework numbers ranks and as the plan numbers
/// devices
/// @return by rank; empty where both number alike, or are not one mesh. O(devices x axes).
std::vector<DeviceId> devicesOfRanks(
    const std::vector<MeshAxis> &ranks, const std::vector<MeshAxis> &devices);

/// Where ranks are started, in the words of what starts them.
enum class RankFile : std::uint8_t {
    OpenMpi, ///< A rankfile of mpirun: "rank 0=+n0 slot=0".
    Slurm, ///< A host for each rank, for SLURM_HOSTFILE with --distribution=arbitrary.
    VisibleDevices, ///< CUDA_VISIBLE_DEVICES by node, for torchrun and the like, which number ranks by node.
};

/// Text of a file that starts rank r on device `devices[r]`; hosts are "+n0" (Open MPI) or "node0", where
/// none are named.
/// @param devices  of ranks; not empty
/// @param devicesPerNode  at least 1
/// @param hosts  a name for each node, or none
/// @return InvalidInput where fewer hosts are named than there are nodes, or where torchrun can't: its ranks
/// of one node are not on one node of the plan
Result<std::string> rankFileText(RankFile kind, const std::vector<DeviceId> &devices,
    std::int32_t devicesPerNode, const std::vector<std::string> &hosts = {});

/// "mpirun", "slurm", "cuda-visible-devices". @return NotFound with the names there are
Result<RankFile> rankFileNamed(std::string_view name);
const std::vector<std::string> &rankFileNames();

} // namespace planloom
