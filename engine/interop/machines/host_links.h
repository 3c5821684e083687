#pragma once

#include "engine/hardware/cluster.h"
#include "engine/interop/machines/host_topology.h"

#include <string>
#include <vector>

namespace planloom {

/// What links of one generation carry, bytes/s and direction; 0 where the architecture has none. NCCL's
/// constants (src/graph/topo.h).
double nvlinkRate(LinkArchitecture architecture);

/// The links of a node whose devices are those of `host`, from the figures of the devices' profile.
///
/// Devices that all reach one another over NVLink have, through a switch, all of their links for each other,
/// and else the sum of those to their neighbours; the device with the fewest counts. Where two of them do
/// not, a ring passes PCI Express.
/// @param profile  of the devices
/// @param assumed  takes a sentence for each figure that the file does not say
/// @return InvalidInput where a device has more links than its kind
Result<Interconnect> linksOfHost(
    const HostTopology &host, const Cluster &profile, std::vector<std::string> &assumed);

/// Puts the cards of `host` in place of the profile's network; the slower half as fast or less, as those for
/// management, are left out.
void addNetwork(Interconnect &links, const HostTopology &host, std::vector<std::string> &assumed);

} // namespace planloom
