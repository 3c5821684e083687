#include "engine/interop/configs/rank_order.h"

#include "engine/base/words.h"

#include <algorithm>
#include <numeric>

namespace planloom {

std::vector<DeviceId> devicesOfRanks(const std::vector<MeshAxis> &ranks, const std::vector<MeshAxis> &devices)
{
    if (ranks == devices || !std::is_permutation(ranks.begin(), ranks.end(), devices.begin(), devices.end()))
        return {};
    // How far apart neighbours along each axis of `ranks` are in `devices`.
    std::vector<std::int32_t> strides;
    for (const MeshAxis &axis : ranks) {
        std::int32_t stride = 1;
        for (auto inner = devices.rbegin(); inner->name != axis.name; ++inner)
            stride *= inner->size;
        strides.push_back(stride);
    }
    std::int32_t count = 1;
    for (const MeshAxis &axis : ranks)
        count *= axis.size;
    std::vector<DeviceId> order;
    for (std::int32_t rank = 0; rank < count; ++rank) {
        std::int32_t rest = rank;
        std::int32_t device = 0;
        for (std::size_t axis = ranks.size(); axis-- > 0; rest /= ranks[axis].size)
            device += rest % ranks[axis].size * strides[axis];
        order.push_back(DeviceId{device});
    }
    const bool isAlike = std::is_sorted(order.begin(), order.end()); // axes of one device may lie anywhere
    return isAlike ? std::vector<DeviceId>{} : order;
}

namespace {

std::string hostName(const std::vector<std::string> &hosts, std::int32_t node, const char *unnamed)
{
    return hosts.empty() ? unnamed + std::to_string(node) : hosts[static_cast<std::size_t>(node)];
}

/// A line for each node, in the order of the framework's: its host and its devices in the order of ranks.
Result<std::string> visibleDevicesText(
    const std::vector<DeviceId> &devices, std::int32_t devicesPerNode, const std::vector<std::string> &hosts)
{
    std::string text =
        "# The node that torchrun calls --node-rank N, and the order in which it is to see its GPUs.\n";
    const auto perNode = static_cast<std::size_t>(devicesPerNode);
    for (std::size_t first = 0; first < devices.size(); first += perNode) {
        const std::size_t end = std::min(first + perNode, devices.size());
        const std::int32_t node = devices[first].index / devicesPerNode;
        std::string visible;
        for (std::size_t rank = first; rank < end; ++rank) {
            if (devices[rank].index / devicesPerNode != node)
                return Error{ErrorCode::InvalidInput,
                    "ranks " + std::to_string(first) + " to " + std::to_string(end - 1)
                        + " are on several nodes in this plan, and torchrun gives the ranks of a node "
                          "numbers that follow on one another",
                    "start it by mpirun or srun: mpirun, slurm", "ranks"};
            visible += (visible.empty() ? "" : ",") + std::to_string(devices[rank].index % devicesPerNode);
        }
        text += "--node-rank " + std::to_string(first / perNode) + " on " + hostName(hosts, node, "node")
            + ": CUDA_VISIBLE_DEVICES=" + visible + "\n";
    }
    return text;
}

} // namespace

Result<std::string> rankFileText(RankFile kind, const std::vector<DeviceId> &devices,
    std::int32_t devicesPerNode, const std::vector<std::string> &hosts)
{
    const auto last = std::max_element(devices.begin(), devices.end());
    const std::int32_t nodes = last->index / devicesPerNode + 1;
    if (!hosts.empty() && hosts.size() < static_cast<std::size_t>(nodes))
        return Error{ErrorCode::InvalidInput,
            "the plan has " + counted(nodes, "node") + ", and "
                + counted(static_cast<std::int64_t>(hosts.size()), "host")
                + (hosts.size() == 1 ? " is" : " are") + " named",
            "name a host for each node", "--hosts"};
    if (kind == RankFile::VisibleDevices)
        return visibleDevicesText(devices, devicesPerNode, hosts);
    std::string text;
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        const std::int32_t node = devices[rank].index / devicesPerNode;
        text += kind == RankFile::Slurm ? hostName(hosts, node, "node") + "\n"
                                        : "rank " + std::to_string(rank) + "=" + hostName(hosts, node, "+n")
                + " slot=" + std::to_string(devices[rank].index % devicesPerNode) + "\n";
    }
    return text;
}

const std::vector<std::string> &rankFileNames()
{
    static const std::vector<std::string> kNames{"mpirun", "slurm", "cuda-visible-devices"};
    return kNames;
}

Result<RankFile> rankFileNamed(std::string_view name)
{
    const std::vector<std::string> &names = rankFileNames();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        return Error{ErrorCode::NotFound,
            "there is no rank file for \"" + std::string(name.substr(0, 40)) + "\"",
            "there are mpirun, slurm, cuda-visible-devices", "--ranks"};
    return static_cast<RankFile>(found - names.begin());
}

} // namespace planloom
