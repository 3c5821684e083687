#include "engine/frontend/rooms.h"

#include <set>
#include <string>

namespace planloom {

Result<void> checkCapacities(const Graph &graph, const Capacities &capacities)
{
    std::set<std::string> takers;
    for (const Operator &op : graph.operators) {
        if (op.kind == OperatorKind::NonZero)
            takers.insert(op.name);
    }
    for (const auto &[name, capacity] : capacities) {
        if (name == "*" || takers.count(name) != 0)
            continue;
        std::string names;
        for (const std::string &taker : takers)
            names += (names.empty() ? "'" : ", '") + taker + "'";
        return Error{ErrorCode::NotFound, "no operator '" + name + "' needs room for what data choose",
            names.empty() ? "in this model all sizes are known" : "those that do are " + names, "--capacity"};
    }
    return {};
}

void noteRooms(Graph &graph, const Capacities &capacities, const Capacity &usual)
{
    for (const Operator &op : graph.operators) {
        if (op.kind == OperatorKind::NonZero && op.direction == Direction::Forward)
            graph.rooms[op.name] = capacityOf(capacities, op.name, usual);
    }
    if (!graph.rooms.empty())
        graph.rooms["all"] = capacityOf(capacities, "*", usual);
}

} // namespace planloom
