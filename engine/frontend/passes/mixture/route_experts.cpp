#include "engine/frontend/passes/mixture/route_experts.h"

#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/passes/mixture/mixture_writer.h"

#include <set>
#include <utility>
#include <vector>

namespace planloom {

namespace {

constexpr std::size_t kMostMixtures = 4096; ///< Each is looked for in the whole graph.

/// Puts operators behind those that make what they read, and else leaves them in order.
void sortOperators(Graph &graph)
{
    std::vector<std::size_t> producer(graph.tensors.size(), graph.operators.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        for (const TensorId id : graph.operators[i].outputs)
            producer[static_cast<std::size_t>(id.index)] = i;
    }
    std::vector<std::size_t> waits(graph.operators.size(), 0);
    std::vector<std::vector<std::size_t>> readers(graph.operators.size());
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        for (const TensorId id : graph.operators[i].inputs) {
            const std::size_t made =
                id ? producer[static_cast<std::size_t>(id.index)] : graph.operators.size();
            if (made == graph.operators.size())
                continue;
            readers[made].push_back(i);
            ++waits[i];
        }
        if (waits[i] == 0)
            ready.insert(i);
    }
    std::vector<Operator> sorted;
    while (!ready.empty()) {
        const std::size_t next = *ready.begin();
        ready.erase(ready.begin());
        for (const std::size_t reader : readers[next]) {
            if (--waits[reader] == 0)
                ready.insert(reader);
        }
        sorted.push_back(std::move(graph.operators[next]));
    }
    graph.operators = std::move(sorted);
}

/// Rewrites the first mixture that is not in `seen` yet, and sees it. @return false if there is none
bool routeNext(Graph &graph, const ImportOptions &options, std::set<TensorId> &seen)
{
    MixtureFinder finder(graph);
    for (std::size_t i = 0; i < graph.operators.size() && seen.size() < kMostMixtures; ++i) {
        const Operator &op = graph.operators[i];
        const TensorId choice = op.inputs.empty() || !op.inputs[0] ? TensorId{} : finder.choiceOf(op);
        if (!choice || !seen.insert(choice).second)
            continue;
        const auto mixture = finder.mixtureAt(i);
        if (!mixture)
            continue;
        BatchDimensions batch;
        batch.update(graph);
        MixtureWriter writer(graph, finder, *mixture, batch.of(op.inputs[1]) == 0 ? batch.size() : 1);
        if (!writer.write(capacityOf(options.capacities, writer.placesName())))
            continue;
        writer.commit();
        sortOperators(graph);
        return true;
    }
    return false;
}

} // namespace

void routeExperts(Graph &graph, const ImportOptions &options)
{
    std::set<TensorId> seen;
    bool any = false;
    while (routeNext(graph, options, seen))
        any = true;
    if (any)
        removeDeadCode(graph);
}

} // namespace planloom
