#include "engine/gesture/acting.h"

#include "engine/gesture/row_edits.h"
#include "engine/table/selector_matcher.h"

#include <algorithm>

namespace planloom {

std::vector<OperatorId> actingForward(const GestureContext &context, const std::vector<OperatorId> &operators)
{
    const Graph &graph = context.graph();
    std::vector<OperatorId> acting;
    for (const OperatorId op : operators) {
        if (op.index < 0 || static_cast<std::size_t>(op.index) >= graph.operators.size())
            continue;
        const bool backward = graph.at(op).direction == Direction::Backward && graph.at(op).mirror.valid();
        acting.push_back(backward ? graph.at(op).mirror : op);
    }
    return forwardOnes(graph, std::move(acting));
}

Error nothingSelected()
{
    return refusalOf(
        "no forward operator is selected", "selection", "select operators on the graph or the timeline");
}

} // namespace planloom
