#include "engine/plan/run_again.h"

#include <algorithm>
#include <set>

namespace planloom {

std::vector<OperatorId> runAgain(const Graph &graph, const std::vector<OperatorId> &operators,
    const std::function<bool(OperatorId maker, TensorId output)> &isWanted)
{
    std::set<TensorId> needed;
    std::vector<OperatorId> again;
    for (auto it = operators.rbegin(); it != operators.rend(); ++it) {
        const auto &outputs = graph.at(*it).outputs;
        if (std::none_of(outputs.begin(), outputs.end(), [&](TensorId output) {
                return output && (needed.contains(output) || isWanted(*it, output));
            }))
            continue;
        again.push_back(*it);
        for (const TensorId read : graph.at(*it).inputs)
            if (read)
                needed.insert(read);
    }
    std::reverse(again.begin(), again.end());
    return again;
}

} // namespace planloom
