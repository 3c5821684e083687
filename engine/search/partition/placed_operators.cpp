#include "engine/search/partition/placed_operators.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/table/domain.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

std::vector<DeviceId> deviceSet(std::vector<DeviceId> devices)
{
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return devices;
}

constexpr std::int32_t kEverywhere = -1;
constexpr std::int32_t kAside = -2;

} // namespace

Result<PlacedOperators> placedOperators(const BoundTable &bound, std::string_view rankAxis)
{
    const RowSetting &setting = bound.setting;
    const Graph &graph = setting.index().graph();
    const std::size_t count = setting.index().forwardCount();
    std::map<std::vector<DeviceId>, std::int32_t> known; // the rank, or one of the numbers above
    known[deviceSet(everywhere(setting.mesh, setting.deviceCount).devices)] = kEverywhere;
    const auto ranks = std::find_if(setting.mesh.begin(), setting.mesh.end(),
        [&](const MeshAxis &axis) { return axis.name == rankAxis && axis.size > 1; });
    if (ranks != setting.mesh.end())
        for (std::int32_t rank = 0; rank < ranks->size; ++rank)
            known[deviceSet(domainOnMesh(setting.mesh, {{ranks->name, rank}}).devices)] = rank;

    PlacedOperators result;
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto &place = bound.bindings[i].allowed.place;
        const Domain *domain = place ? place->preferred() : nullptr;
        if (!domain) {
            left += isView(graph.operators[i]) ? 0 : 1;
            continue;
        }
        if (result.placed.empty())
            result.placed.assign(count, false);
        result.placed[i] = true;
        const auto found = known.find(deviceSet(domain->devices));
        const std::int32_t where = found == known.end() ? kAside : found->second;
        if (where == kEverywhere && ranks != setting.mesh.end())
            return Error{ErrorCode::InvalidInput,
                "rows place operator '" + graph.operators[i].name
                    + "' on all devices, and no stage of a pipeline is there",
                "use a mesh without ranks", "search"};
        if (where == kAside) {
            if (result.aside.empty())
                result.aside.assign(count, false);
            result.aside[i] = true;
            continue;
        }
        left += isView(graph.operators[i]) ? 0 : 1;
        if (where == kEverywhere)
            continue;
        if (result.ranks.empty())
            result.ranks.assign(count, -1);
        result.ranks[i] = where;
    }
    if (left == 0)
        return Error{ErrorCode::InvalidInput, "rows place every operator apart from the mesh",
            "switch off what places them, or go on by hand", "search"};
    return result;
}

} // namespace planloom
