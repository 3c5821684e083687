#include "engine/interop/machines/host_links.h"

#include "engine/base/words.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace planloom {

namespace {

constexpr double kNetworkShare =
    0.96; ///< Of a card's line rate: 48 of 50 GB/s, NCCL's author, nccl-tests issue 119.
constexpr double kThroughHost = 1.2; ///< By so much NCCL counts PCI Express slower where it passes the host.

std::string gigabytes(double rate)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.4g GB/s", rate * 1e-9);
    return text;
}

/// Links that a device of this profile has.
std::int32_t linksOfProfile(const Cluster &profile)
{
    const double rate = nvlinkRate(profile.links.architecture);
    return rate > 0 ? static_cast<std::int32_t>(std::lround(profile.links.intraBandwidth.value / rate)) : 0;
}

/// Links of one device of a host.
struct DeviceLinks {
    std::int32_t sum = 0; ///< With those into a switch.
    std::int32_t least = std::numeric_limits<std::int32_t>::max(); ///< To one other device.
    std::int32_t largest = 0;
};

DeviceLinks linksAt(const HostTopology &host, std::size_t device)
{
    DeviceLinks links{.sum = host.devices[device].switchLinks};
    for (std::size_t other = 0; other < host.devices.size(); ++other) {
        if (other == device)
            continue;
        const std::int32_t count = host.linksBetween(device, other);
        links.sum += count;
        links.least = std::min(links.least, count);
        links.largest = std::max(links.largest, count);
    }
    return links;
}

/// How many links each device has for the others together, the fewest of all; 0 where two have no way by
/// them.
/// @param most  that such a device has; 0 where it is not known
Result<std::int32_t> commonLinks(const HostTopology &host, std::int32_t most)
{
    std::int32_t fewest = std::numeric_limits<std::int32_t>::max();
    for (std::size_t d = 0; d < host.devices.size(); ++d) {
        const HostDevice &device = host.devices[d];
        const DeviceLinks links = linksAt(host, d);
        // A matrix shows the links into a switch beside each device that they lead to.
        const bool isSwitch =
            device.switchLinks == 0 && links.least == links.largest && links.largest <= most;
        if (most > 0 && links.sum > most && !isSwitch)
            return atDevice(device,
                device.name + " has " + std::to_string(links.sum) + " links in all, where its kind has "
                    + std::to_string(most),
                "--device says which devices these are");
        const bool reachesAll = device.switchLinks > 0 || links.least > 0;
        fewest = std::min(fewest, !reachesAll ? 0 : most > 0 && links.sum > most ? links.largest : links.sum);
    }
    return fewest;
}

/// A node without links of its own between its devices.
Interconnect overPcie(
    const HostTopology &host, const Interconnect &profile, std::vector<std::string> &assumed)
{
    const auto card = clusterNamed("h100-pcie:1");
    Interconnect links = profile.architecture == LinkArchitecture::PcieOnly || !card ? profile : card->links;
    links.interBandwidth = profile.interBandwidth;
    links.interLatency = profile.interLatency;
    links.interPorts = profile.interPorts;
    double slowest = std::numeric_limits<double>::infinity();
    for (const HostDevice &device : host.devices)
        slowest = std::min(slowest, device.pcieBandwidth);
    if (std::isfinite(slowest) && slowest > 0) {
        links.intraBandwidth = {slowest / kThroughHost,
            host.source + ": PCI Express at " + gigabytes(slowest)
                + " (NCCL's constant), divided by its factor 6/5 for passing through the host"};
    } else {
        assumed.push_back("devices reach one another over PCI Express, whose width is not said: taken as "
            + gigabytes(links.intraBandwidth.value));
    }
    assumed.emplace_back("latencies over PCI Express are those of the profile h100-pcie");
    return links;
}

} // namespace

double nvlinkRate(LinkArchitecture architecture)
{
    switch (architecture) {
    case LinkArchitecture::Volta:
    case LinkArchitecture::Ampere:
        return 20e9;
    case LinkArchitecture::Hopper:
        return 20.6e9;
    case LinkArchitecture::Blackwell:
        return 40.1e9;
    case LinkArchitecture::PcieOnly:
    case LinkArchitecture::SharedMemory:
        break;
    }
    return 0;
}

Result<Interconnect> linksOfHost(
    const HostTopology &host, const Cluster &profile, std::vector<std::string> &assumed)
{
    Interconnect links = profile.links;
    if (host.links.empty() || host.devices.size() < 2) {
        assumed.push_back("links inside of a node are those of the profile " + profile.name + ": "
            + gigabytes(links.intraBandwidth.value) + " a device");
        return links;
    }
    const double rate = host.isAmd ? 0 : nvlinkRate(links.architecture);
    TRY(const std::int32_t common, commonLinks(host, host.isAmd ? 0 : linksOfProfile(profile)));
    if (common == 0)
        return overPcie(host, links, assumed);
    if (rate == 0) {
        assumed.push_back("every two devices are joined; what their links carry is the profile's: "
            + gigabytes(links.intraBandwidth.value) + " a device");
        return links;
    }
    const double bandwidth = common * rate;
    if (links.allToAllBandwidth.value > 0)
        links.allToAllBandwidth.value *= bandwidth / links.intraBandwidth.value;
    links.intraBandwidth = {bandwidth,
        host.source + ": " + std::to_string(common) + " NVLinks at " + gigabytes(rate)
            + " each (NCCL's constant)"};
    assumed.push_back("latencies inside of a node are those of the profile " + profile.name);
    return links;
}

void addNetwork(Interconnect &links, const HostTopology &host, std::vector<std::string> &assumed)
{
    if (host.nics.empty()) {
        assumed.push_back("the network between nodes is the profile's: "
            + gigabytes(links.interBandwidth.value) + " a node");
        return;
    }
    double fastest = 0;
    for (const HostNic &nic : host.nics)
        fastest = std::max(fastest, nic.bandwidth);
    double sum = 0;
    std::int32_t cards = 0;
    std::int32_t leftOut = 0;
    for (const HostNic &nic : host.nics) {
        const bool isUsed = fastest == 0 || nic.bandwidth * 2 > fastest;
        sum += isUsed ? nic.bandwidth : 0;
        ++(isUsed ? cards : leftOut);
    }
    if (leftOut > 0)
        assumed.push_back(counted(leftOut, "card") + " at most half as fast as the fastest "
            + (leftOut == 1 ? "is" : "are") + " left out");
    if (sum > 0) {
        links.interBandwidth = {sum * kNetworkShare,
            host.source + ": " + counted(cards, "card") + " of " + gigabytes(sum / cards)
                + ", of which 96% are reached (nccl-tests issue 119)"};
    } else {
        const double each = links.interBandwidth.value / links.portsPerNode();
        links.interBandwidth = {each * cards,
            host.source + ": " + counted(cards, "card") + "; " + gigabytes(each)
                + " each, as in the profile"};
        assumed.push_back(
            "how fast a card is does not stand in the file: " + gigabytes(each) + ", as in the profile");
    }
    links.interPorts = {};
    if (cards < static_cast<std::int32_t>(host.devices.size()))
        links.interPorts = {static_cast<double>(cards), host.source};
}

} // namespace planloom
