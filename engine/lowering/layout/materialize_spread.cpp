// One box for many: a broadcast from somebody who holds it.

#include "engine/lowering/layout/materialize.h"

#include <algorithm>

namespace planloom {

namespace {

/// Who passes the box on, and to whom.
struct SpreadRoles {
    const Holding *root = nullptr;
    std::vector<DeviceId> members{}; ///< The root first.
};

/// Nothing if more than one box is wanted, nobody holds it, or fewer than two lack it.
std::optional<SpreadRoles> spreadRolesOf(const std::vector<Holding> &from, const std::vector<Need> &needs)
{
    const Need &first = needs.front();
    if (!first.value.complete()
        || std::any_of(needs.begin(), needs.end(),
            [&](const Need &need) { return need.box != first.box || need.value != first.value; })
        || std::any_of(
            from.begin(), from.end(), [&](const Holding &h) { return h.summands != from.front().summands; }))
        return std::nullopt;
    const auto holds = [&](const Holding &h) { return contains(h.box, first.box); };
    SpreadRoles roles;
    for (const Holding &h : from)
        if (holds(h) && !roles.root)
            roles.root = &h;
    if (!roles.root)
        return std::nullopt;
    roles.members.push_back(roles.root->device);
    for (const Need &need : needs)
        if (std::none_of(from.begin(), from.end(),
                [&](const Holding &h) { return h.device == need.device && holds(h); }))
            roles.members.push_back(need.device);
    if (roles.members.size() < 3)
        return std::nullopt;
    return roles;
}

} // namespace

std::optional<double> Materializer::spreadSeconds(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task) const
{
    const auto roles = spreadRolesOf(from, needs);
    if (!roles)
        return std::nullopt;
    const IndexMask &box = needs.front().box;
    const Bytes bytes{elementCount(shapeOf(box)) * sizeOf(task.dataType)};
    return (roles->root->box == box ? 0 : m_costs.copy(bytes, m_cluster.classOf(roles->root->device)))
        + m_costs.collective(CollectiveKind::Broadcast, bytes, groupShape(m_cluster, roles->members));
}

std::optional<std::vector<Holding>> Materializer::spread(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task)
{
    const auto seconds = spreadSeconds(from, needs, task);
    if (!seconds)
        return std::nullopt;
    if (const auto otherwise = generalSeconds(from, needs, task); otherwise && *otherwise <= *seconds)
        return std::nullopt;
    const auto roles = spreadRolesOf(from, needs);
    const IndexMask &box = needs.front().box;
    std::vector<Holding> received;
    broadcast(select(*roles->root, box, task), roles->members, task, received);
    for (const Need &need : needs) // who had it already
        if (std::find(roles->members.begin(), roles->members.end(), need.device) == roles->members.end())
            received.push_back(
                select(*std::find_if(from.begin(), from.end(),
                           [&](const Holding &h) { return h.device == need.device && contains(h.box, box); }),
                    box, task));
    return received;
}

} // namespace planloom
