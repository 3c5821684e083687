#include "engine/lowering/order/order.h"

#include "engine/table/table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>

namespace planloom {

Result<std::vector<OperatorId>> orderInBlock(const Graph &graph, const Uses &uses,
    const std::vector<OperatorId> &operators, const std::vector<OrderConstraint> &rows,
    const std::vector<std::int32_t> &regionOf)
{
    std::vector<std::vector<OperatorId>> units; // what stays together
    std::map<OperatorId, std::size_t> position; // index into `units`
    std::map<std::int32_t, std::size_t> unitOf; // by region
    for (const OperatorId op : operators) {
        const std::int32_t region = regionOf.empty() ? -1 : regionOf[static_cast<std::size_t>(op.index)];
        std::size_t unit = units.size();
        if (region >= 0)
            unit = unitOf.try_emplace(region, unit).first->second;
        if (unit == units.size())
            units.emplace_back();
        units[unit].push_back(op);
        position[op] = unit;
    }
    // Behind the units stand the joints of rows that order all with all: every first before the joint, it
    // before every second.
    std::map<RowId, std::size_t> joint;
    for (const OrderConstraint &row : rows)
        if (row.allWithAll)
            joint.emplace(row.row, units.size() + joint.size());
    std::vector<std::vector<std::size_t>> next(units.size() + joint.size());
    std::vector<std::int32_t> waiting(units.size() + joint.size(), 0);
    const auto link = [&](std::size_t from, std::size_t to) {
        if (from == to)
            return; // inside a region, whose operators are in order
        next[from].push_back(to);
        ++waiting[to];
    };
    for (const OperatorId op : operators)
        for (const TensorId input : graph.at(op).inputs)
            if (input)
                for (const OperatorId producer : uses.producers[static_cast<std::size_t>(input.index)])
                    if (const auto it = position.find(producer); it != position.end())
                        link(it->second, position.at(op));
    for (const OrderConstraint &row : rows) {
        if (row.allWithAll) {
            link(position.at(row.first), joint.at(row.row));
            link(joint.at(row.row), position.at(row.second));
        } else {
            link(position.at(row.first), position.at(row.second));
        }
    }
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    std::vector<OperatorId> ordered;
    const auto release = [&](const auto &self, std::size_t i) -> void {
        if (i < units.size())
            return ready.push(i);
        for (const std::size_t n : next[i]) // joints lead to operators alone
            if (--waiting[n] == 0)
                self(self, n);
    };
    for (std::size_t i = 0; i < units.size(); ++i)
        if (waiting[i] == 0)
            ready.push(i);
    while (!ready.empty()) {
        const std::size_t i = ready.top();
        ready.pop();
        ordered.insert(ordered.end(), units[i].begin(), units[i].end());
        for (const std::size_t n : next[i])
            if (--waiting[n] == 0)
                release(release, n);
    }
    if (ordered.size() != operators.size()) {
        // A row both of whose ends are left lies on a cycle or behind one.
        const auto isLeft = [&](OperatorId op) { return waiting[position.at(op)] > 0; };
        const auto left = std::find_if(rows.begin(), rows.end(),
            [&](const OrderConstraint &row) { return isLeft(row.first) && isLeft(row.second); });
        if (left == rows.end() && !unitOf.empty()) {
            const auto stuck = std::find_if(operators.begin(), operators.end(), [&](OperatorId op) {
                return isLeft(op) && regionOf[static_cast<std::size_t>(op.index)] >= 0;
            });
            const std::string name = graph.at(stuck == operators.end() ? operators.front() : *stuck).name;
            return Error{ErrorCode::InvalidInput,
                "the parts of '" + name
                    + "' cannot take turns: what is outside their region reads and feeds it",
                "coshard fewer operators together", "operator:" + name};
        }
        const OrderConstraint &row = left == rows.end() ? rows.front() : *left;
        return Error{ErrorCode::InvalidInput,
            "operator '" + graph.at(row.first).name + "' cannot run before '" + graph.at(row.second).name
                + "': the data flow or another order row runs the other way",
            "remove the row, or turn it around", placeOf(row.row, "rule")};
    }
    return ordered;
}

} // namespace planloom
