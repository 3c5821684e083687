#include "engine/hardware/device_word.h"

namespace planloom {

std::string deviceWord(const Cluster &cluster)
{
    return cluster.links.architecture == LinkArchitecture::SharedMemory ? "CPU" : "GPU";
}

} // namespace planloom
