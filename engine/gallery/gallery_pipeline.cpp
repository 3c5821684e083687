#include "engine/gallery/gallery_pipeline.h"

#include "engine/base/words.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/graph/catalogue.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace planloom {

namespace {

/// How much slower the slowest stage may be for the cuts to lie between layers.
constexpr double kLayerTolerance = 1.25;

std::vector<TensorType> typesOf(const Graph &graph, const std::vector<TensorId> &tensors)
{
    std::vector<TensorType> types;
    for (const TensorId tensor : tensors)
        types.push_back(tensor.valid() ? graph.at(tensor).type : TensorType{});
    return types;
}

double secondsOf(const Graph &graph, const Operator &op, const CostModel &costs)
{
    if (isView(op))
        return 0;
    const auto inputs = typesOf(graph, op.inputs);
    const auto outputs = typesOf(graph, op.outputs);
    return costs.kernel({op, inputs, outputs, computeTypeOf(inputs, outputs)});
}

/// Fewest runs with no run above `limit`; more than the number of links if a piece alone is above.
std::size_t runsNeeded(const std::vector<std::int64_t> &pieces, std::int64_t limit)
{
    std::size_t runs = 1;
    std::int64_t sum = 0;
    for (const std::int64_t piece : pieces) {
        if (piece > limit)
            return pieces.size() + 1;
        if (sum + piece > limit) {
            ++runs;
            sum = 0;
        }
        sum += piece;
    }
    return runs;
}

/// Bytes of activations that pass each position of `order`.
std::vector<std::int64_t> crossingBytes(const SelectorIndex &index, const std::vector<OperatorId> &order)
{
    const Graph &graph = index.graph();
    std::vector<std::int32_t> position(graph.operators.size(), -1);
    for (std::size_t i = 0; i < order.size(); ++i)
        position[static_cast<std::size_t>(order[i].index)] = static_cast<std::int32_t>(i);
    std::vector<std::int64_t> change(order.size() + 1, 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (const TensorId output : graph.at(order[i]).outputs) {
            if (!output.valid())
                continue;
            std::int32_t last = -1;
            for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(output.index)])
                last = std::max(last, position[static_cast<std::size_t>(user.index)]);
            if (last <= static_cast<std::int32_t>(i))
                continue;
            const TensorType &type = graph.at(output).type;
            const std::int64_t bytes = elementCount(type.shape) * sizeOf(type.dataType);
            change[i + 1] += bytes;
            change[static_cast<std::size_t>(last) + 1] -= bytes;
        }
    }
    std::partial_sum(change.begin(), change.end(), change.begin());
    change.pop_back();
    return change;
}

std::int64_t largestRun(const std::vector<std::int64_t> &cost, const std::vector<std::size_t> &cuts)
{
    std::int64_t largest = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
        const std::size_t end = i < cuts.size() ? cuts[i] : cost.size();
        largest = std::max(largest,
            std::accumulate(cost.begin() + static_cast<std::ptrdiff_t>(begin),
                cost.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{0}));
        begin = end;
    }
    return largest;
}

} // namespace

std::vector<std::size_t> balancedCuts(const std::vector<std::int64_t> &cost,
    const std::vector<std::int64_t> &crossing, const std::vector<bool> &allowed, std::int32_t stages)
{
    if (cost.empty() || stages < 2)
        return {};
    // Pieces between the places where the chain may be cut.
    std::vector<std::int64_t> pieces;
    std::vector<std::size_t> start;
    for (std::size_t i = 0; i < cost.size(); ++i) {
        if (i == 0 || allowed[i]) {
            pieces.push_back(0);
            start.push_back(i);
        }
        pieces.back() += cost[i];
    }
    const auto count = static_cast<std::size_t>(stages);
    if (pieces.size() < count)
        return {};

    std::int64_t least = *std::max_element(pieces.begin(), pieces.end());
    std::int64_t most = std::accumulate(pieces.begin(), pieces.end(), std::int64_t{0});
    while (least < most) {
        const std::int64_t middle = least + (most - least) / 2;
        if (runsNeeded(pieces, middle) <= count)
            most = middle;
        else
            least = middle + 1;
    }

    // Least crossing of exactly s runs over the first j pieces, none above the limit.
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    const std::size_t n = pieces.size();
    std::vector<std::int64_t> best(n + 1, kNever);
    best[0] = 0;
    std::vector<std::vector<std::uint32_t>> from(count + 1, std::vector<std::uint32_t>(n + 1, 0));
    for (std::size_t s = 1; s <= count; ++s) {
        std::vector<std::int64_t> next(n + 1, kNever);
        for (std::size_t j = s; j <= n; ++j) {
            std::int64_t sum = 0;
            for (std::size_t i = j; i-- > s - 1;) {
                sum += pieces[i];
                if (sum > least)
                    break;
                if (best[i] == kNever)
                    continue;
                const std::int64_t total = best[i] + (i == 0 ? 0 : crossing[start[i]]);
                if (total < next[j]) {
                    next[j] = total;
                    from[s][j] = static_cast<std::uint32_t>(i);
                }
            }
        }
        best = std::move(next);
    }
    std::vector<std::size_t> cuts(count - 1);
    std::size_t end = n;
    for (std::size_t s = count; s > 1; --s) {
        end = from[s][end];
        cuts[s - 2] = start[end];
    }
    return cuts;
}

std::int64_t nanosecondsOf(const Graph &graph, OperatorId forward, const CostModel &costs)
{
    const Operator &op = graph.at(forward);
    double seconds = secondsOf(graph, op, costs);
    if (op.mirror.valid())
        seconds += secondsOf(graph, graph.at(op.mirror), costs);
    return static_cast<std::int64_t>(std::min(std::ceil(seconds * 1e9), 1e15));
}

Result<std::vector<std::vector<OperatorId>>> pipelineStages(
    const SelectorIndex &index, std::int32_t stages, const CostModel &costs)
{
    const Graph &graph = index.graph();
    const auto without = weightless(index);
    std::vector<OperatorId> order;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].direction == Direction::Forward && !without[i])
            order.push_back({static_cast<std::int32_t>(i)});
    }
    std::vector<std::int64_t> cost;
    for (const OperatorId op : order)
        cost.push_back(nanosecondsOf(graph, op, costs));
    std::vector<bool> anywhere(order.size(), true);
    std::vector<bool> betweenLayers(order.size(), false);
    for (std::size_t i = 1; i < order.size(); ++i)
        betweenLayers[i] = index.layerOf(order[i - 1]) != index.layerOf(order[i]);
    const auto crossing = crossingBytes(index, order);
    auto cuts = balancedCuts(cost, crossing, anywhere, stages);
    if (stages > 1 && cuts.empty()) {
        return Error{ErrorCode::InvalidInput,
            "the model has " + counted(static_cast<std::int64_t>(order.size()), "operator")
                + " with weights, too few for " + counted(stages, "stage"),
            "use fewer stages", ""};
    }
    const auto layerCuts = balancedCuts(cost, crossing, betweenLayers, stages);
    if (!layerCuts.empty()
        && static_cast<double>(largestRun(cost, layerCuts))
            <= kLayerTolerance * static_cast<double>(largestRun(cost, cuts)))
        cuts = layerCuts;

    std::vector<std::int32_t> stageOf(graph.operators.size(), -1);
    std::int32_t stage = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (static_cast<std::size_t>(stage) < cuts.size() && cuts[static_cast<std::size_t>(stage)] == i)
            ++stage;
        stageOf[static_cast<std::size_t>(order[i].index)] = stage;
    }
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        if (!without[i])
            continue;
        std::int32_t first = stages;
        for (const TensorId output : graph.operators[i].outputs) {
            if (!output.valid())
                continue;
            for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(output.index)]) {
                if (graph.at(user).direction == Direction::Forward)
                    first = std::min(first, stageOf[static_cast<std::size_t>(user.index)]);
            }
        }
        stageOf[i] = first == stages ? 0 : first;
    }
    std::vector<std::vector<OperatorId>> result(static_cast<std::size_t>(stages));
    for (std::size_t i = 0; i < stageOf.size(); ++i) {
        if (stageOf[i] >= 0)
            result[static_cast<std::size_t>(stageOf[i])].push_back({static_cast<std::int32_t>(i)});
    }
    return result;
}

} // namespace planloom
