#include "engine/interop/machines/host_topology.h"

#include "engine/base/text.h"
#include "engine/interop/machines/number_text.h"

#include <array>
#include <utility>

namespace planloom {

namespace {

struct PciDevice {
    std::string_view vendor{};
    std::string_view device{};
    std::string_view words{};
};

/// Numbers of the PCI ID repository (pci-ids.ucw.cz).
constexpr std::array<PciDevice, 23> kPciDevices{{{"0x10de", "0x1db5", "V100 32GB"},
    {"0x10de", "0x1db8", "V100 32GB"}, {"0x10de", "0x20b0", "A100 SXM 40GB"},
    {"0x10de", "0x20b2", "A100 SXM 80GB"}, {"0x10de", "0x20b5", "A100 80GB PCIe"},
    {"0x10de", "0x20f1", "A100 40GB PCIe"}, {"0x10de", "0x2324", "H800 SXM"},
    {"0x10de", "0x2330", "H100 SXM 80GB"}, {"0x10de", "0x2331", "H100 PCIe"},
    {"0x10de", "0x2335", "H200 SXM 141GB"}, {"0x10de", "0x2684", "RTX 4090"},
    {"0x10de", "0x2901", "B200 SXM"}, {"0x10de", "0x2941", "GB200"}, {"0x10de", "0x3182", "B300 SXM"},
    {"0x10de", "0x31c2", "GB300"}, {"0x1002", "0x74a1", "MI300X"}, {"0x1002", "0x74b5", "MI300X"},
    {"0x1002", "0x74a5", "MI325X"}, {"0x1002", "0x74b9", "MI325X"}, {"0x1002", "0x75a0", "MI350X"},
    {"0x1002", "0x75b0", "MI350X"}, {"0x1002", "0x75a3", "MI355X"}, {"0x1002", "0x75b3", "MI355X"}}};

} // namespace

Error atDevice(const HostDevice &device, std::string message, std::string advice)
{
    Error error = atLine(device.line, std::move(message), std::move(advice));
    if (!device.file.empty())
        error.where = device.file + ":" + error.where;
    return error;
}

double pcieBandwidth(double gigatransfers, std::int32_t lanes)
{
    constexpr double kPerLane = 0.09375e9; // 12 GB/s over 8 GT/s and 16 lanes
    return gigatransfers * static_cast<double>(lanes) * kPerLane;
}

std::string deviceOfPci(std::string_view vendor, std::string_view device)
{
    for (const PciDevice &each : kPciDevices)
        if (sameLetters(each.vendor, vendor) && sameLetters(each.device, device))
            return std::string(each.words);
    return {};
}

} // namespace planloom
