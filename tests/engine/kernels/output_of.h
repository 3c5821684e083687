#pragma once

#include "engine/check/part_runner.h"

#include <utility>

namespace planloom {

/// Numbers of output `slot` of an example, run whole on values drawn with `seed`; `values`, if given,
/// receives all.
inline Result<std::vector<double>> outputOf(const OperatorExample &example, std::size_t slot = 0,
    std::uint64_t seed = 1, OperatorValues *values = nullptr)
{
    TRY(const Graph graph, graphOf(example));
    OperatorValues drawn = drawValues(example, graph, seed);
    TRY_VOID(runParts(graph, graph.operators[0], {}, drawn));
    std::vector<double> numbers = numbersOf(graph, graph.operators[0].outputs[slot], drawn);
    if (values != nullptr)
        *values = std::move(drawn);
    return numbers;
}

} // namespace planloom
