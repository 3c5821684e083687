#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

constexpr std::size_t kMostTopologyBytes = std::size_t{4} << 20; ///< Of one file.
constexpr std::size_t kMostHostDevices = 1024; ///< That one file may have.

/// One device of a host, as its file has it. What the file does not say is empty or 0.
struct HostDevice {
    std::string name{}; ///< "GPU0", or where it is on the bus: "0000:53:00.0".
    std::string product{}; ///< "NVIDIA H100 80GB HBM3", or the name that its number stands for.
    std::string architecture{}; ///< "sm 90", "gfx942"
    double memory = 0; ///< Bytes.
    double pcieBandwidth = 0; ///< Bytes/s and direction by lanes and speed, as NCCL counts them.
    std::int32_t switchLinks = 0; ///< Links into a switch that joins devices.
    std::string domain{}; ///< Of NVLink, over several hosts: the cluster's and the clique's numbers.
    std::string file{}; ///< Set by who reads several.
    std::int32_t line = 0; ///< In it, from 1.
    friend bool operator==(const HostDevice &, const HostDevice &) = default;
};

/// A network card.
struct HostNic {
    std::string name{};
    double bandwidth = 0; ///< Bytes/s and direction of the line; 0 where the file does not say.
    friend bool operator==(const HostNic &, const HostNic &) = default;
};

/// One host, or all that one file speaks of.
struct HostTopology {
    std::string source{}; ///< For people: "NCCL topology of node1.xml".
    std::vector<HostDevice> devices{};
    std::vector<HostNic> nics{};
    /// Links of devices to one another: [a * devices + b]; empty where the file says nothing of links.
    std::vector<std::int32_t> links{};
    bool isAmd = false;
    friend bool operator==(const HostTopology &, const HostTopology &) = default;

    std::int32_t linksBetween(std::size_t a, std::size_t b) const { return links[a * devices.size() + b]; }
};

/// InvalidInput at a device's place in its file.
Error atDevice(const HostDevice &device, std::string message, std::string advice = {});

/// Bytes/s of `lanes` lanes of PCI Express at so many GT/s, by NCCL's constants (src/graph/topo.h: 12 GB/s
/// for generation 3, and in proportion): three quarters of the line rate.
double pcieBandwidth(double gigatransfers, std::int32_t lanes);

/// The device that a number of PCI's register stands for ("0x10de", "0x2330"), in words that
/// `profileOfDevice` knows; empty for those that Planloom has no profile of.
std::string deviceOfPci(std::string_view vendor, std::string_view device);

/// The file that NCCL (version 1) and RCCL (version 2) write where NCCL_TOPO_DUMP_FILE says, and read again.
/// @return InvalidInput with its place: what is no such file; devices twice; links to devices that the file
/// does not have, or that the other side has otherwise; ResourceLimit
Result<HostTopology> readNcclTopology(std::string_view text);

/// What `nvidia-smi topo -m` prints: a matrix of devices and cards, and its legend.
/// @return InvalidInput with its place, also where the matrix is not its own mirror image
Result<HostTopology> readSmiTopology(std::string_view text);

/// What `nvidia-smi -q` prints: products, memory, PCI Express, domains of NVLink.
/// @return InvalidInput with its place
Result<HostTopology> readSmiQuery(std::string_view text);

} // namespace planloom
