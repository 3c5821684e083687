#include "engine/search/partition/summand_joins.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace planloom {

std::vector<bool> summandJoins(const Model &model)
{
    const Graph &graph = *model.graph;
    const std::size_t count = model.index->forwardCount();
    constexpr std::int32_t kNone = -1;
    constexpr std::int32_t kSeveral = -2;
    std::vector<std::int32_t> reader(graph.tensors.size(), kNone); // the only forward one
    std::vector<bool> isSummands(graph.tensors.size(), false); // may be, where it is made
    for (std::size_t i = 0; i < count; ++i)
        for (const TensorId input : graph.operators[i].inputs)
            if (input) {
                std::int32_t &only = reader[at(input)];
                only = only == kNone ? static_cast<std::int32_t>(i) : kSeveral;
            }
    const auto isOpen = [&](const Operator &op, std::int32_t slot) {
        const TensorId input = op.inputs[static_cast<std::size_t>(slot)];
        return input && isSummands[at(input)] && reader[at(input)] >= 0;
    };
    std::vector<bool> joins(count, false);
    for (std::size_t i = 0; i < count; ++i) {
        const Operator &op = graph.operators[i];
        const std::vector<std::int32_t> &linear = op.annotation.linearInputs;
        const auto open =
            std::count_if(linear.begin(), linear.end(), [&](std::int32_t slot) { return isOpen(op, slot); });
        joins[i] = isView(op) ? open == 1 : open > 1;
        const bool adds = std::any_of(op.annotation.dimensions.begin(), op.annotation.dimensions.end(),
            [](const Dimension &dimension) { return dimension.mark == DimensionMark::Reduce; });
        if (op.outputs.size() == 1 && op.outputs.front())
            isSummands[at(op.outputs.front())] =
                (adds && combinationOf(op.annotation, 0) == Combination::Sum) || joins[i];
    }
    for (std::size_t i = count; i-- > 0;) // views that lead nowhere
        if (joins[i] && isView(graph.operators[i])) {
            const std::int32_t only =
                reader[static_cast<std::size_t>(graph.operators[i].outputs.front().index)];
            joins[i] = only >= 0 && joins[static_cast<std::size_t>(only)];
        }
    return joins;
}

} // namespace planloom
