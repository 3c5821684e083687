// Any bytes are refused with a place, or read as a description of machines; what is made is a cluster that a
// file may hold.

#include "engine/hardware/cluster_json.h"
#include "engine/interop/machines/machine_cluster.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

using namespace planloom;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string bytes(reinterpret_cast<const char *>(data), size);
    for (const char *device : {"", "H100"}) {
        const auto made = machineCluster({{{"file", bytes}}, device, 0});
        if (!made) {
            require(made.error().code != ErrorCode::Internal && !made.error().message.empty()
                && !made.error().where.empty());
            continue;
        }
        const auto again = clusterFromJson(toJson(made->cluster));
        require(again && *again == made->cluster);
    }
    return 0;
}
