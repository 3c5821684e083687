#include "engine/plan/sharing_rule.h"

#include "engine/binding/followers.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

struct Together {
    std::vector<OperatorId> operators{}; ///< Ascending.
    std::int32_t row = -1; ///< The last that says so.
};

/// Who runs together with whom, whatever the rows that say so.
std::vector<Together> setsTogether(const BoundTable &bound)
{
    std::map<OperatorId, OperatorId> parent;
    const auto find = [&](OperatorId op) {
        while (parent.try_emplace(op, op).first->second != op)
            op = parent.at(op);
        return op;
    };
    std::map<OperatorId, std::int32_t> rows;
    const auto join = [&](OperatorId a, OperatorId b, std::int32_t row) {
        rows[a] = std::max(rows.try_emplace(a, row).first->second, row);
        rows[b] = std::max(rows.try_emplace(b, row).first->second, row);
        const OperatorId one = find(a);
        const OperatorId other = find(b);
        parent[std::max(one, other)] = std::min(one, other);
    };
    for (const BoundTable::Sharing &sharing : bound.sharings) {
        if (sharing.apart)
            continue;
        const auto &[first, second] = sharing.sides;
        for (std::size_t i = 0; i < std::max(first.size(), second.size()); ++i)
            join(first[std::min(i, first.size() - 1)], second[std::min(i, second.size() - 1)], sharing.row);
        if (sharing.sides.paired())
            continue;
        for (const auto *side : {&first, &second})
            for (const OperatorId op : *side)
                join(side->front(), op, sharing.row);
    }
    std::map<OperatorId, Together> sets;
    for (const auto &[op, row] : rows) {
        Together &set = sets[find(op)];
        set.operators.push_back(op);
        set.row = std::max(set.row, row);
    }
    std::vector<Together> all;
    for (auto &[first, set] : sets)
        all.push_back(std::move(set));
    return all;
}

std::vector<DeviceId> sorted(std::vector<DeviceId> devices)
{
    std::sort(devices.begin(), devices.end());
    devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
    return devices;
}

} // namespace

void followPlacesTogether(PlanDraft &draft, std::vector<std::int32_t> &place)
{
    const auto sets = setsTogether(draft.bound);
    std::vector<std::int32_t> free = place;
    if (!sets.empty())
        followPlaces(draft.index(), free);
    for (const Together &set : sets) {
        OperatorId placed;
        for (const OperatorId op : set.operators) {
            if (place[at(op)] < 0 || draft.failed())
                continue;
            if (!placed)
                placed = op;
            const auto devicesOf = [&](OperatorId which) {
                return sorted(draft.domains[static_cast<std::size_t>(place[at(which)])].devices);
            };
            if (devicesOf(placed) != devicesOf(op)) {
                draft.fail(set.row,
                    "operators '" + draft.graph().at(placed).name + "' and '" + draft.graph().at(op).name
                        + "' are to run together, and rows place them on different devices",
                    "place them alike, or take one of them out of the row");
                const std::int32_t other = draft.bindingOf(op).rowOf(Aspect::Place);
                if (other >= 0)
                    draft.bound.failBoth(draft.table, set.row, other,
                        "run '" + draft.graph().at(op).name + "' on different devices",
                        "switch one of the rows off, or narrow its selector");
            }
        }
        for (const OperatorId op : set.operators)
            if (place[at(op)] < 0)
                place[at(op)] = placed ? place[at(placed)] : free[at(set.operators.front())];
    }
    followPlaces(draft.index(), place);
}

void checkSharing(PlanDraft &draft)
{
    for (const BoundTable::Sharing &sharing : draft.bound.sharings) {
        const auto runsOn = [&](const std::vector<OperatorId> &side) {
            std::map<DeviceId, OperatorId> on;
            for (const OperatorId op : side)
                for (const DeviceId device : draft.decisionOf(op).devices)
                    on.try_emplace(device, op);
            return on;
        };
        if (!sharing.apart)
            continue;
        const auto first = runsOn(sharing.sides.first);
        for (const auto &[device, op] : runsOn(sharing.sides.second)) {
            const auto other = first.find(device);
            if (other == first.end())
                continue;
            draft.fail(sharing.row,
                "operators '" + draft.graph().at(other->second).name + "' and '" + draft.graph().at(op).name
                    + "' both run on device " + std::to_string(device.index),
                "place one of them elsewhere, or solve: the search looks for stages that keep them apart");
            for (const OperatorId each : {other->second, op})
                if (const std::int32_t row = draft.bindingOf(each).rowOf(Aspect::Place); row >= 0)
                    draft.bound.failBoth(draft.table, sharing.row, row,
                        "have '" + draft.graph().at(other->second).name + "' and '"
                            + draft.graph().at(op).name + "' share a device",
                        "switch one of the rows off, or narrow its selector");
            break;
        }
    }
}

} // namespace planloom
