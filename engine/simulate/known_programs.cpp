#include "engine/simulate/known_programs.h"

namespace planloom {

bool isOf(const KnownPrograms &known, const ExecutionPlan &plan)
{
    if (known.graph != plan.graph || known.units != plan.units || known.microBatches != plan.microBatches
        || known.updates != plan.updates || known.devices.size() != plan.devices.size()
        || known.groups != plan.groups)
        return false;
    for (std::size_t d = 0; d < plan.devices.size(); ++d)
        if (!known.devices[d].buffers.sharesWith(plan.devices[d].buffers)
            || !known.devices[d].segments.sharesWith(plan.devices[d].segments))
            return false;
    return true;
}

KnownPrograms nothingKnown(const ExecutionPlan &plan)
{
    KnownPrograms known{.graph = plan.graph,
        .groups = plan.groups,
        .units = plan.units,
        .microBatches = plan.microBatches,
        .updates = plan.updates};
    for (const DeviceProgram &device : plan.devices)
        known.devices.push_back({device.buffers, device.segments, nullptr});
    return known;
}

} // namespace planloom
