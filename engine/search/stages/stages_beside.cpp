#include "engine/search/stages/stages_beside.h"

#include <algorithm>
#include <limits>

namespace planloom {

StagesBeside::StagesBeside(const Graph &graph, std::size_t count)
{
    std::vector<double> until(count + 1, 0); // how many are before an operator, of those that train
    for (std::size_t i = 0; i < count; ++i)
        until[i + 1] = until[i] + (graph.operators[i].mirror ? 1 : 0);
    const double all = until[count];
    if (all <= 0)
        return;
    std::vector<std::vector<std::size_t>> readers(graph.tensors.size());
    std::vector<bool> hasGradient(graph.tensors.size(), false);
    for (const Tensor &tensor : graph.tensors)
        if (tensor.role == TensorRole::Gradient && tensor.of)
            hasGradient[at(tensor.of)] = true;
    const bool trains = std::find(hasGradient.begin(), hasGradient.end(), true) != hasGradient.end();
    for (std::size_t i = 0; i < count; ++i)
        for (const TensorId input : graph.operators[i].inputs)
            if (input)
                readers[at(input)].push_back(i);
    // By cut, behind an operator: the shortest stages before and behind it that a tensor goes between.
    std::vector<double> shortest(count, std::numeric_limits<double>::infinity());
    for (std::size_t p = 0; p < count; ++p)
        for (const TensorId output : graph.operators[p].outputs) {
            if (!output || (trains && !hasGradient[at(output)]))
                continue;
            std::size_t cut = p;
            for (const std::size_t reader : readers[at(output)])
                for (; cut < reader; ++cut)
                    shortest[cut] = std::min(shortest[cut],
                        std::max(until[cut + 1] - until[p], until[reader + 1] - until[cut + 1]));
        }
    for (std::size_t cut = 0; cut + 1 < count; ++cut)
        m_share = std::max(m_share, std::min({shortest[cut], until[cut + 1], all - until[cut + 1]}) / all);
}

bool StagesBeside::mayBe(std::int32_t stages) const
{
    constexpr double kShortest = 0.5; // as a multiple of the mean
    return stages > 1 && m_share >= kShortest / stages;
}

} // namespace planloom
