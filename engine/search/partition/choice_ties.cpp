#include "engine/search/partition/choice_ties.h"

#include "engine/binding/alike.h"
#include "engine/plan/followed_split.h"
#include "engine/plan/part_counts.h"
#include "engine/table/selector_index.h"

#include <limits>
#include <map>
#include <utility>

namespace planloom {

std::vector<CostFactor> choiceTies(const AxisSetting &setting,
    const std::vector<const OperatorChoices *> &choices, const ChoiceFinder &finder)
{
    const Graph &graph = *setting.model->graph;
    std::vector<CostFactor> ties;
    if (!setting.bound)
        return ties;
    const auto sameCut = [](const Split &a, const Split &b) {
        return a.kind == b.kind
            && (a.kind != SplitKind::Dimension || (a.dimension == b.dimension && a.sizes == b.sizes));
    };
    std::map<std::vector<std::int64_t>, CostTable> known; // of operators that are alike
    const auto tie = [&](OperatorId first, OperatorId second, std::vector<std::int64_t> key, auto holds) {
        key.push_back(choices[at(first)]->kind);
        key.push_back(choices[at(second)]->kind);
        CostTable &table = known[std::move(key)];
        if (!table) {
            std::vector<double> costs;
            for (const OperatorChoice &one : choices[at(first)]->choices)
                for (const OperatorChoice &other : choices[at(second)]->choices)
                    costs.push_back(holds(one, other) ? 0 : std::numeric_limits<double>::infinity());
            table = std::make_shared<const std::vector<double>>(std::move(costs));
        }
        ties.push_back({{first.index, second.index}, table});
    };
    for (std::size_t i = 0; i < choices.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (setting.isAside(i))
            continue;
        if (const OperatorId first = setting.bound->alikeOf(op).leader;
            first && first != op && !setting.isAside(at(first)))
            tie(first, op, {-1}, [&](const OperatorChoice &one, const OperatorChoice &other) {
                const auto isAlike = [&](const Split &theirs, const Split &own) {
                    const auto mine = splitAlike(graph, first, op, theirs);
                    return mine && sameCut(*mine, own);
                };
                return isAlike(one.split, other.split)
                    && (setting.outerParts < 2 || isAlike(one.outer, other.outer));
            });
        if (!setting.bound->of(op).allowed.follows)
            continue;
        const Leader leader = leaderOf(*setting.model->index, op);
        if (leader.op && leader.op < op && !setting.isAside(at(leader.op)))
            tie(leader.op, op,
                {static_cast<std::int64_t>(leader.output), static_cast<std::int64_t>(leader.input)},
                [&](const OperatorChoice &one, const OperatorChoice &other) {
                    std::vector<Split> all = finder.otherSplits(op);
                    const auto follows = [&](const Split &theirs, const Split &own) {
                        const auto mine = followed(graph, leader, graph.at(op), theirs, all);
                        all.push_back(mine.value_or(own));
                        const bool can = mine && checkPartition(graph.at(op), {all})
                            && leavesBatchWhole(graph.at(op), setting.model->batch->operatorDimension[i],
                                setting.batchCuts / setting.replicas, all);
                        all.back() = own;
                        return can ? sameCut(*mine, own) : own.kind == SplitKind::Replicate;
                    };
                    return (setting.outerParts < 2 || follows(one.outer, other.outer))
                        && follows(one.split, other.split);
                });
    }
    return ties;
}

} // namespace planloom
