#include "engine/verify/batch_rules.h"

#include "engine/graph/annotation/partition.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

const char *nameOf(BatchRole role)
{
    static constexpr std::array<const char *, 5> kNames{
        "cut", "the same in every micro-batch", "a summand", "of each micro-batch alone", "of the step"};
    const auto index = static_cast<std::size_t>(role);
    return index < kNames.size() ? kNames[index] : "of no known kind";
}

std::string quoted(const std::string &name)
{
    return "'" + name + "'";
}

/// Constants as long as the batch, and values of the step, which operators read in slices: gives them the
/// dimension that moves with the micro-batch. @return why that cannot be
std::string sliceWhatIsReadInSlices(const Graph &graph, std::int32_t microBatches, BatchInfo &batch)
{
    std::vector<bool> readWhole(graph.tensors.size(), false);
    std::vector<bool> sliced(graph.tensors.size(), false);
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        const std::vector<Range> first = microBatchRanges(batch, graph, id, 0, microBatches);
        const std::vector<Range> last = microBatchRanges(batch, graph, id, microBatches - 1, microBatches);
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (!op.inputs[slot])
                continue;
            const auto t = static_cast<std::size_t>(op.inputs[slot].index);
            if (batch.tensorRole[t] == BatchRole::Split)
                continue;
            const IndexMask begin = inputView(graph, op, Partition{}, 0, slot, first).index;
            const IndexMask end = inputView(graph, op, Partition{}, 0, slot, last).index;
            const auto moved =
                std::mismatch(begin.ranges.begin(), begin.ranges.end(), end.ranges.begin()).first;
            if (moved == begin.ranges.end()) {
                readWhole[t] = true;
                continue;
            }
            const auto dimension = static_cast<std::int32_t>(moved - begin.ranges.begin());
            if (batch.tensorDimension[t] >= 0 && batch.tensorDimension[t] != dimension)
                return "micro-batches would read " + quoted(graph.tensors[t].name)
                    + " in slices of two dimensions";
            batch.tensorDimension[t] = dimension;
            sliced[t] = true;
        }
    }
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        if (!sliced[t] || batch.tensorRole[t] == BatchRole::Step)
            continue;
        if (readWhole[t])
            return quoted(graph.tensors[t].name) + " would be read whole and in micro-batches";
        batch.tensorRole[t] = BatchRole::Split;
    }
    return {};
}

/// Why the batch cannot be cut in so many; empty if it can.
std::string checkCut(const Graph &graph, std::int32_t microBatches, const BatchInfo &batch)
{
    const std::string count = std::to_string(microBatches);
    if (batch.mostMicroBatches < microBatches || batch.size % microBatches != 0)
        return "the batch cannot be cut in " + count + " micro-batches: "
            + (batch.limitedBy.empty() ? "it holds " + std::to_string(batch.size) + " samples"
                                       : batch.limitedBy);
    for (std::size_t o = 0; o < graph.operators.size(); ++o)
        if (const std::int32_t d = batch.operatorDimension[o]; d >= 0
            && graph.operators[o].annotation.dimensions[static_cast<std::size_t>(d)].size % microBatches != 0)
            return count + " micro-batches do not divide the batch's dimension of " + graph.operators[o].name;
    for (std::size_t t = 0; t < graph.tensors.size(); ++t)
        if (const std::int32_t d = batch.tensorDimension[t];
            d >= 0 && graph.tensors[t].type.shape[static_cast<std::size_t>(d)] % microBatches != 0)
            return count + " micro-batches do not divide " + quoted(graph.tensors[t].name);
    return {};
}

/// The loss is a mean over whole batches: all its gradients are made from a buffer that belongs to it, and
/// that buffer serves nothing else.
std::string checkMean(const Graph &graph)
{
    if (!graph.loss)
        return {};
    const auto belongs = [&](TensorId id) {
        return id && graph.at(id).role == TensorRole::Buffer && graph.at(id).of == graph.loss;
    };
    const DataType type = graph.at(graph.loss).type.dataType;
    for (const Operator &op : graph.operators) {
        const std::size_t gradients =
            op.direction == Direction::Backward ? graph.at(op.mirror).outputs.size() : 0;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            if (!input)
                continue;
            const bool begins = slot < gradients && graph.at(op.mirror).outputs[slot] == graph.loss;
            if (begins != belongs(input))
                return begins ? op.name + " begins the backward pass with " + quoted(graph.at(input).name)
                        + ", which does not say that it belongs to the loss: it would not be divided by the "
                          "micro-batches"
                              : op.name + " reads " + quoted(graph.at(input).name)
                        + ", which is divided by the micro-batches and only begins the backward pass";
            if (begins && !isFloating(type))
                return std::string("a loss of type ") + planloom::nameOf(type)
                    + " cannot be a mean over micro-batches";
        }
    }
    return {};
}

/// What is made of values of the step alone may be made anew in every micro-batch, with the same result; and
/// what is not cut in micro-batches may go without the dimension along which it could be. Plans of earlier
/// versions say so.
BatchInfo withWhatPlansMaySay(BatchInfo asked, const BatchInfo &said, const Graph &graph)
{
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const auto roleOf = [&](TensorId id) { return asked.tensorRole[static_cast<std::size_t>(id.index)]; };
        if (asked.mostMicroBatches == 1 && said.operatorDimension[o] < 0)
            asked.operatorDimension[o] = -1;
        if (op.direction != Direction::Forward || said.oncePerStep[o] || !asked.oncePerStep[o]
            || std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId id) {
                   return id && roleOf(id) != BatchRole::Step && roleOf(id) != BatchRole::Same;
               }))
            continue;
        asked.oncePerStep[o] = false;
        for (const TensorId id : op.outputs)
            if (id)
                asked.tensorRole[static_cast<std::size_t>(id.index)] = BatchRole::Same;
    }
    return asked;
}

/// The first place where the plan's statement is not what the graph asks for.
std::string differenceOf(const BatchInfo &said, const BatchInfo &asked, const Graph &graph)
{
    if (said.tensorRole.size() != asked.tensorRole.size()
        || said.tensorDimension.size() != asked.tensorDimension.size()
        || said.operatorDimension.size() != asked.operatorDimension.size()
        || said.oncePerStep.size() != asked.oncePerStep.size())
        return "the plan's batch does not have one entry per tensor and per operator";
    const auto dimension = [](std::int32_t d) { return d < 0 ? std::string("none") : std::to_string(d); };
    for (std::size_t t = 0; t < asked.tensorRole.size(); ++t) {
        const auto of = [&] { return " of the batch's tensor " + quoted(graph.tensors[t].name); };
        if (said.tensorRole[t] != asked.tensorRole[t])
            return "the role" + of() + " is '" + nameOf(asked.tensorRole[t]) + "', the plan says '"
                + nameOf(said.tensorRole[t]) + "'";
        if (said.tensorDimension[t] != asked.tensorDimension[t])
            return "the dimension" + of() + " is " + dimension(asked.tensorDimension[t]) + ", the plan says "
                + dimension(said.tensorDimension[t]);
    }
    for (std::size_t o = 0; o < asked.operatorDimension.size(); ++o) {
        const std::string &name = graph.operators[o].name;
        if (said.operatorDimension[o] != asked.operatorDimension[o])
            return "the batch's dimension in " + name + " is " + dimension(asked.operatorDimension[o])
                + ", the plan says " + dimension(said.operatorDimension[o]);
        if (said.oncePerStep[o] != asked.oncePerStep[o])
            return name + " runs once " + (asked.oncePerStep[o] ? "per step" : "in every micro-batch")
                + " of the batch, the plan says otherwise";
    }
    if (said.size != asked.size)
        return "the batch holds " + std::to_string(asked.size) + " samples, the plan says "
            + std::to_string(said.size);
    if (said.mostMicroBatches != asked.mostMicroBatches)
        return "the batch can be cut in " + std::to_string(asked.mostMicroBatches)
            + " micro-batches at most, the plan says " + std::to_string(said.mostMicroBatches);
    return {};
}

} // namespace

std::string checkBatch(const ExecutionPlan &plan)
{
    const Graph &graph = *plan.graph;
    const bool whole = plan.batch.wholeBatches;
    BatchInfo asked = whole ? wholeBatchInfo(graph) : analyseBatch(graph);
    if (!whole && plan.batch.operatorDimension.size() == graph.operators.size()
        && plan.batch.oncePerStep.size() == graph.operators.size())
        asked = withWhatPlansMaySay(std::move(asked), plan.batch, graph);
    if (const std::int32_t cuts = batchCuts(plan); cuts > 1) {
        if (std::string reason = whole ? checkMean(graph) : checkCut(graph, cuts, asked); !reason.empty())
            return reason;
        if (std::string reason = sliceWhatIsReadInSlices(graph, cuts, asked); !reason.empty())
            return reason;
        if (std::string reason = whole ? std::string{} : checkCut(graph, cuts, asked); !reason.empty())
            return reason; // of what is read in slices too
    }
    return differenceOf(plan.batch, asked, graph);
}

} // namespace planloom
