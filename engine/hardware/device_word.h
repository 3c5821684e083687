#pragma once

#include "engine/hardware/cluster.h"

#include <string>

namespace planloom {

/// What the devices of a cluster are called: "GPU" for accelerators, "CPU" for CPU devices.
std::string deviceWord(const Cluster &cluster);

} // namespace planloom
