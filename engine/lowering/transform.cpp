#include "engine/lowering/transform.h"

#include "engine/base/in_parallel.h"
#include "engine/base/words.h"
#include "engine/graph/operators/attention.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::size_t kOperatorsPerThread = 64; ///< Some 50 microseconds.

/// Constants of the batch's extent, and values computed once per step, are read in slices by operators that
/// run per micro-batch: gives those tensors the dimension that is cut, so that their views move with the
/// micro-batch.
Result<void> sliceConstants(const Graph &graph, BatchInfo &batch)
{
    std::vector<bool> readWhole(graph.tensors.size(), false);
    std::vector<bool> sliced(graph.tensors.size(), false);
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const std::int32_t identifier = batch.operatorDimension[o];
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot])
                continue;
            const auto tensor = static_cast<std::size_t>(op.inputs[slot].index);
            if (batch.tensorRole[tensor] == BatchRole::Split)
                continue;
            const TensorTerms &terms = op.annotation.inputs[slot];
            std::int32_t dimension = -1;
            for (std::size_t d = 0; identifier >= 0 && d < terms.terms.size(); ++d)
                if (disjointFactor(op.annotation, terms.terms[d]) == identifier)
                    dimension = static_cast<std::int32_t>(d);
            if (dimension < 0) {
                readWhole[tensor] = true;
                continue;
            }
            if (batch.tensorDimension[tensor] >= 0 && batch.tensorDimension[tensor] != dimension)
                return Error{ErrorCode::NotSupported,
                    "micro-batches would read '" + graph.tensors[tensor].name
                        + "' in slices of two dimensions",
                    "use one micro-batch", "operator:" + op.name};
            batch.tensorDimension[tensor] = dimension;
            sliced[tensor] = true;
        }
    }
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        if (!sliced[t] || batch.tensorRole[t] == BatchRole::Step)
            continue;
        if (readWhole[t])
            return Error{ErrorCode::NotSupported,
                "'" + graph.tensors[t].name
                    + "' is read whole by some operators and in micro-batches by others",
                "use one micro-batch", "tensor:" + graph.tensors[t].name};
        batch.tensorRole[t] = BatchRole::Split;
    }
    return {};
}

/// Whether slices of `op` make summands that do not reach everywhere.
bool reachesLess(const Operator &op, const OperatorDecision &decision)
{
    return sliceCount(decision.partition) > 1 && op.direction == Direction::Backward && attentionAxes(op)
        && attentionReach(op.attributes).causal;
}

} // namespace

std::int32_t SummandSets::append(TensorId tensor, std::int32_t count)
{
    std::int32_t &all = m_count[static_cast<std::size_t>(tensor.index)];
    if (all > 0)
        m_firsts[static_cast<std::size_t>(tensor.index)].push_back(all);
    return std::exchange(all, all + count);
}

std::size_t SummandSets::producerOf(TensorId tensor, std::int32_t summand) const
{
    const auto &firsts = m_firsts[static_cast<std::size_t>(tensor.index)];
    return static_cast<std::size_t>(std::upper_bound(firsts.begin(), firsts.end(), summand) - firsts.begin());
}

void SummandSets::reachTo(TensorId tensor, std::int32_t summand, const IndexMask &box)
{
    m_reach[tensor][summand].push_back(box);
}

bool SummandSets::complete(TensorId tensor, const SummandSet &summands, const IndexMask &box) const
{
    if (summands.empty() || static_cast<std::int32_t>(summands.size()) == count(tensor))
        return true;
    const auto reach = m_reach.find(tensor);
    if (reach == m_reach.end())
        return false;
    for (std::int32_t summand = 0; summand < count(tensor); ++summand) {
        if (std::binary_search(summands.begin(), summands.end(), summand))
            continue;
        const auto boxes = reach->second.find(summand);
        if (boxes == reach->second.end()
            || std::any_of(boxes->second.begin(), boxes->second.end(), [&](const IndexMask &made) {
                   const auto both = intersection(made, box);
                   return both && elementCount(shapeOf(*both)) > 0;
               }))
            return false;
    }
    return true;
}

void TransformedGraph::takeApart(const Plan &plan)
{
    const Graph &graph = *plan.graph;
    const std::int32_t cuts = batchCuts(plan);
    const auto isOptimizer = [&](std::size_t o) {
        return graph.operators[o].direction == Direction::Optimizer;
    };
    operators.resize(graph.operators.size());
    std::vector<std::size_t> first(graph.operators.size()); // of its views
    std::size_t ofPasses = 0;
    std::size_t ofOptimizer = 0;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const std::size_t parts = plan.decisions[o].devices.size();
        operators[o].resize(parts);
        std::size_t &count = isOptimizer(o) ? ofOptimizer : ofPasses;
        first[o] = count;
        count += parts * (op.inputs.size() + op.outputs.size());
    }
    m_passViews.resize(ofPasses);
    m_optimizerViews.resize(ofOptimizer);
    inParallel(graph.operators.size(), kOperatorsPerThread, [&](std::size_t begin, std::size_t end) {
        for (std::size_t o = begin; o < end; ++o) {
            const Operator &op = graph.operators[o];
            const OperatorDecision &decision = plan.decisions[o];
            const std::vector<Range> outer =
                microBatchRanges(batch, graph, OperatorId{static_cast<std::int32_t>(o)}, 0, cuts);
            const std::int32_t shards = unitParts(decision.partition);
            std::span<TensorView> views = std::span(isOptimizer(o) ? m_optimizerViews : m_passViews);
            views = views.subspan(first[o]);
            for (std::size_t p = 0; p < decision.devices.size(); ++p) {
                const auto inputs = views.first(op.inputs.size());
                const auto outputs = views.subspan(op.inputs.size(), op.outputs.size());
                fillPartViews(graph, op, decision.partition, static_cast<std::int32_t>(p) * shards, outer,
                    inputs, outputs);
                operators[o][p] = {decision.devices[p], inputs, outputs};
                views = views.subspan(op.inputs.size() + op.outputs.size());
            }
        }
    });
}

void TransformedGraph::forgetPasses(const Graph &graph)
{
    for (std::size_t o = 0; o < graph.operators.size(); ++o)
        if (graph.operators[o].direction != Direction::Optimizer)
            operators[o] = std::vector<TransformedPart>();
    m_passViews = std::vector<TensorView>(); // `{}` would keep the room
}

Result<TransformedGraph> transform(const Plan &plan)
{
    const Graph &graph = *plan.graph;
    const std::int32_t cuts = batchCuts(plan);
    TransformedGraph result;
    result.batch = plan.wholeBatches ? wholeBatchInfo(graph) : *batchOf(plan);
    if (plan.microBatches < 1)
        return Error{ErrorCode::InvalidInput, "a plan needs at least one micro-batch", {}, "micro-batches"};
    if (cuts > 1 && !plan.wholeBatches) {
        if (result.batch.mostMicroBatches < cuts)
            return Error{ErrorCode::InvalidInput,
                "the mini-batch cannot be cut into " + counted(cuts, "micro-batch") + ": "
                    + (result.batch.limitedBy.empty() ? "it holds " + counted(result.batch.size, "sample")
                                                      : result.batch.limitedBy),
                "use at most " + std::to_string(result.batch.mostMicroBatches), "micro-batches"};
        if (result.batch.size % cuts != 0)
            return Error{ErrorCode::InvalidInput,
                std::to_string(cuts) + " micro-batches do not divide the mini-batch of "
                    + counted(result.batch.size, "sample"),
                "use a divisor of " + std::to_string(result.batch.size), "micro-batches"};
    }

    if (cuts > 1)
        TRY_VOID(sliceConstants(graph, result.batch));

    result.summandBase.resize(graph.operators.size());
    result.summands.resize(graph.tensors.size());
    TRY(result.places, placeBlocks(plan));
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const OperatorDecision &decision = plan.decisions[o];
        const std::int32_t parts = partCount(decision.partition) / unitParts(decision.partition);
        const auto where = [&] { return "operator:" + op.name; };
        const OperatorId id{static_cast<std::int32_t>(o)};
        const std::vector<Range> outer = microBatchRanges(result.batch, graph, id, 0, cuts);
        if (!outer.empty() || parts > 1) {
            // The partition applies to what a micro-batch leaves of every identifier.
            if (auto legal = checkPartition(op, decision.partition, outer); !legal) {
                Error error = std::move(legal).error();
                error.where = where();
                if (cuts > 1 && !outer.empty())
                    error.advice = "the mini-batch is cut in " + std::to_string(cuts) + " micro-batches first"
                        + (error.advice.empty() ? "" : "; " + error.advice);
                return error;
            }
        }
        if (static_cast<std::int32_t>(decision.devices.size()) != parts)
            return Error{ErrorCode::InvalidInput,
                "operator '" + op.name + "' has " + counted(parts, "part") + " but "
                    + counted(static_cast<std::int64_t>(decision.devices.size()), "device"),
                "give every part a device", where()};
    }
    result.takeApart(plan);
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        auto &base = result.summandBase[o];
        base.reserve(op.outputs.size());
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            if (!op.outputs[slot]) {
                base.push_back(0);
                continue;
            }
            const std::int32_t count = result.operators[o].front().outputs[slot].value.count;
            base.push_back(result.summands.append(op.outputs[slot], count));
            if (count > 1 && reachesLess(op, plan.decisions[o]))
                for (const TransformedPart &part : result.operators[o])
                    result.summands.reachTo(op.outputs[slot], base.back() + part.outputs[slot].value.index,
                        part.outputs[slot].index);
        }
    }
    return result;
}

} // namespace planloom
