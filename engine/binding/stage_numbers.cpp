#include "engine/binding/stage_numbers.h"

#include "engine/binding/followers.h"

#include <algorithm>

namespace planloom {

std::vector<bool> freeOperators(const SelectorIndex &index, const std::vector<bool> &named, bool weightsCount)
{
    const Graph &graph = index.graph();
    std::vector<bool> isFree(graph.operators.size(), false);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || named[i])
            continue;
        isFree[i] = std::all_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
            if (!input.valid())
                return true;
            if (weightsCount && graph.at(input).role == TensorRole::Weight)
                return false;
            const auto &makers = index.uses().producers[static_cast<std::size_t>(input.index)];
            return std::all_of(makers.begin(), makers.end(), [&](OperatorId maker) {
                return static_cast<bool>(isFree[static_cast<std::size_t>(maker.index)]);
            });
        });
    }
    return isFree;
}

void joinConsumers(
    const SelectorIndex &index, const std::vector<bool> &isFree, std::vector<std::int32_t> &stage)
{
    for (std::size_t i = isFree.size(); i-- > 0;) {
        if (!isFree[i])
            continue;
        std::int32_t first = -1;
        for (const OperatorId user : forwardConsumers(index, {static_cast<std::int32_t>(i)})) {
            const std::int32_t theirs = stage[static_cast<std::size_t>(user.index)];
            first = first < 0 ? theirs : std::min(first, theirs);
        }
        stage[i] = std::max(first, 0);
    }
}

StageNumbers numberStages(const SelectorIndex &index, const std::vector<std::int32_t> &byRow)
{
    const Graph &graph = index.graph();
    std::vector<bool> named(byRow.size());
    std::transform(byRow.begin(), byRow.end(), named.begin(), [](std::int32_t stage) { return stage >= 0; });
    const auto isFree = freeOperators(index, named, true);
    StageNumbers numbers;
    numbers.stage.assign(graph.operators.size(), 0);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction != Direction::Forward || isFree[i])
            continue;
        const OperatorId op{static_cast<std::int32_t>(i)};
        std::int32_t last = 0;
        OperatorId from;
        for (const OperatorId maker : forwardProducers(index, op)) {
            const auto at = static_cast<std::size_t>(maker.index);
            if (!isFree[at] && numbers.stage[at] >= last) {
                last = numbers.stage[at];
                from = maker;
            }
        }
        numbers.stage[i] = named[i] ? byRow[i] : last;
        if (named[i] && byRow[i] < last)
            numbers.violations.push_back({op, from, byRow[i], last});
    }
    joinConsumers(index, isFree, numbers.stage);
    return numbers;
}

} // namespace planloom
