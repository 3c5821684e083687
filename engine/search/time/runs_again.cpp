#include "engine/search/time/runs_again.h"

#include "engine/plan/run_again.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <map>

namespace planloom {

std::vector<std::int32_t> runsAgain(const Model &model, const StagePlan &plan)
{
    const Graph &graph = *model.graph;
    const Uses &uses = model.index->uses();
    const auto forwardOf = [&](OperatorId op) {
        return graph.at(op).direction == Direction::Forward ? op : graph.at(op).mirror;
    };
    const auto regionOf = [&](OperatorId op) {
        const OperatorId forward = forwardOf(op);
        return plan.regionOf.empty() || !forward ? -1 : plan.regionOf[at(forward)];
    };
    const auto groupOf = [&](OperatorId op) {
        const std::int32_t with = plan.recomputedWith[at(op)];
        return with < 0 ? -1 - op.index : with; // alone
    };
    std::map<std::int32_t, std::vector<OperatorId>> groups;
    std::map<std::int32_t, std::vector<OperatorId>> regions;
    for (std::size_t i = 0; i < plan.recomputed.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (!plan.recomputed[i])
            continue;
        groups[groupOf(op)].push_back(op);
        if (regionOf(op) >= 0)
            regions[regionOf(op)].push_back(op);
    }
    std::vector<std::int32_t> runs(plan.recomputed.size(), 0);
    const auto run = [&](const std::vector<OperatorId> &operators, const auto &isReader) {
        const auto again = runAgain(graph, operators, [&](OperatorId maker, TensorId output) {
            const auto &readers = uses.consumers[at(output)];
            return std::any_of(
                readers.begin(), readers.end(), [&](OperatorId reader) { return isReader(reader, maker); });
        });
        for (const OperatorId op : again)
            ++runs[at(op)];
    };
    for (const auto &[group, operators] : groups)
        run(operators, [&, number = group](OperatorId reader, OperatorId maker) {
            if (regionOf(reader) >= 0 && regionOf(reader) == regionOf(maker))
                return false;
            return graph.at(reader).direction == Direction::Backward
                || (graph.at(reader).direction == Direction::Forward && regionOf(reader) >= 0
                    && plan.recomputed[at(reader)] && groupOf(reader) == number);
        });
    for (const auto &[region, operators] : regions)
        run(operators, [&, number = region](OperatorId reader, OperatorId) {
            return graph.at(reader).direction == Direction::Backward && regionOf(reader) == number;
        });
    return runs;
}

} // namespace planloom
