#include "engine/lowering/lowering_work.h"

#include "engine/graph/operators/attention.h"
#include "engine/plan/interleaves.h"

#include <algorithm>

namespace planloom {

IndexMask UnitShard::joined(IndexMask box) const
{
    Range &range = box.ranges[at(dimension)];
    range.end = range.begin + extent;
    return box;
}

void UnitShard::mark(BufferInfo &info) const
{
    info.share = UnitShare::Shard;
    info.shardDimension = static_cast<std::int8_t>(dimension);
    info.shardEnd = info.index.ranges[at(dimension)].begin + extent;
}

namespace {

std::vector<Precision> precisionsOf(const Plan &plan)
{
    if (std::all_of(plan.decisions.begin(), plan.decisions.end(),
            [](const OperatorDecision &decision) { return decision.precision == Precision{}; }))
        return {};
    std::vector<Precision> precisions;
    precisions.reserve(plan.decisions.size());
    for (const OperatorDecision &decision : plan.decisions)
        precisions.push_back(decision.precision);
    return precisions;
}

/// The storage types of the graph without versions, and of these.
StorageTypes typesOf(const VersionedPlan &versioned, const std::vector<Precision> &precisions)
{
    if (versioned.versions.empty())
        return StorageTypes(*versioned.plan.graph, precisions);
    // Who reads a version reads the weight: the types follow from all of its readers together.
    Graph graph = *versioned.plan.graph;
    const std::size_t tensors = graph.tensors.size() - versioned.versions.size();
    for (Operator &op : graph.operators)
        for (TensorId &input : op.inputs)
            if (input && static_cast<std::size_t>(input.index) >= tensors)
                input = versioned.versions[static_cast<std::size_t>(input.index) - tensors].weight;
    graph.tensors.resize(tensors);
    StorageTypes types(graph, precisions);
    for (const WeightVersion &version : versioned.versions)
        types.addVersion(version.weight);
    return types;
}

} // namespace

LoweringWork::LoweringWork(const VersionedPlan &versioned, const Cluster &ofAllUnits, const CostModel &ofAll,
    TransformedGraph parts, std::shared_ptr<PathMemory> paths, std::stop_token stopped)
    : plan(versioned.plan)
    , versions(versioned.versions)
    , graph(*plan.graph)
    , cluster(unitOf(ofAllUnits, plan.units))
    , costs(ofAll)
    , transformed(std::move(parts))
    , stop(std::move(stopped))
    , uses(usesOf(graph))
    , precisions(precisionsOf(plan))
    , types(typesOf(versioned, precisions))
    , builder(plan.deviceCount)
    , materializer(graph, transformed.batch, transformed.summands, types, cluster, costs, plan.units,
          batchCuts(plan), std::move(paths), builder)
{
    if (mayInterleave(plan))
        builder.keepPlaces();
}

Result<void> LoweringWork::goesOn() const
{
    if (stop.stop_requested())
        return cancelled("lowering was stopped");
    return {};
}

std::optional<UnitShard> LoweringWork::unitShardOf(OperatorId id) const
{
    const Partition &partition = decisionOf(id).partition;
    if (unitParts(partition) == 1)
        return std::nullopt;
    const Operator &op = graph.at(id);
    const auto &terms = op.annotation.inputs.front().terms;
    for (std::size_t d = 0; d < terms.size(); ++d)
        if (splittableFactor(op.annotation, terms[d]) == partition.splits.back().dimension) {
            Partition whole = partition;
            whole.splits.pop_back();
            const TensorView view = inputView(graph, op, whole, 0, 0);
            return UnitShard{static_cast<std::int32_t>(d), view.index.ranges[d].size()};
        }
    return std::nullopt;
}

bool LoweringWork::isLeftOut(OperatorId id, bool output, std::size_t slot) const
{
    const Operator &op = graph.at(id);
    const std::int32_t probabilities = output ? probabilitiesOutput(op) : probabilitiesInput(op);
    return static_cast<std::int32_t>(slot) == probabilities
        && decisionOf(id).attention == AttentionMode::Fused;
}

bool LoweringWork::isPersistent(TensorId tensor) const
{
    const auto index = at(tensor);
    if (!uses.producers[index].empty())
        return false;
    switch (graph.at(tensor).role) {
    case TensorRole::Weight:
    case TensorRole::OptimizerState:
        return true;
    case TensorRole::Buffer:
        return transformed.batch.tensorRole[index] != BatchRole::Split;
    default:
        return false;
    }
}

bool LoweringWork::isWeightGradient(TensorId tensor) const
{
    const Tensor &info = graph.at(tensor);
    return info.role == TensorRole::Gradient && info.of && graph.at(info.of).role == TensorRole::Weight;
}

bool LoweringWork::isWanted(TensorId tensor) const
{
    return !uses.consumers[at(tensor)].empty()
        || std::find(graph.outputs.begin(), graph.outputs.end(), tensor) != graph.outputs.end();
}

bool LoweringWork::isInParts(TensorId tensor) const
{
    return tensor && transformed.summands.count(tensor) > 1;
}

MemoryKind LoweringWork::memoryOf(TensorId tensor) const
{
    if (isWeightGradient(tensor))
        return MemoryKind::Gradient;
    switch (graph.at(tensor).role) {
    case TensorRole::Input:
        return MemoryKind::Input;
    case TensorRole::Weight:
    case TensorRole::Buffer:
        return MemoryKind::Weight;
    case TensorRole::OptimizerState:
        return MemoryKind::OptimizerState;
    default:
        return MemoryKind::Activation;
    }
}

WeightVersion LoweringWork::versionOf(TensorId tensor) const
{
    const auto index = at(tensor);
    return index < firstVersion() ? WeightVersion{tensor, 0} : versions[index - firstVersion()];
}

void LoweringWork::reserveRoom(std::int32_t block, const std::vector<OperatorId> &operators)
{
    std::vector<std::size_t> runs(static_cast<std::size_t>(plan.deviceCount), 0); // by device
    for (const OperatorId id : operators)
        for (const TransformedPart &part : partsOf(id))
            ++runs[static_cast<std::size_t>(part.device.index)];
    for (std::size_t d = 0; d < runs.size(); ++d)
        if (runs[d] > 0)
            builder.reserve(DeviceId{static_cast<std::int32_t>(d)}, block, runs[d] + runs[d] / 2);
}

std::int32_t LoweringWork::castBuffer(
    DeviceId device, std::int32_t block, OperatorId op, std::int32_t buffer, DataType type, TensorId as)
{
    BufferInfo info = builder.buffer(device, buffer);
    if (as) {
        info.tensor = as;
        info.staleness = 0;
    }
    info.dataType = type;
    info.persistent = false;
    info.versions = 1;
    info.memory = memoryOf(info.tensor);
    return builder.make(
        device, block, std::move(info), {.kind = InstructionKind::Cast, .op = op, .inputs = {buffer}});
}

Holding LoweringWork::gatherAcrossUnits(TensorId tensor, DataType type, const UnitShard &shard,
    const Holding &share, std::int32_t block, OperatorId op)
{
    Holding whole{share.device, shard.joined(share.box), {}, -1};
    whole.buffer = builder.make(whole.device, block,
        {.tensor = tensor,
            .dataType = type,
            .index = whole.box,
            .perMicroBatch = runsInMicroBatches(block),
            .memory = memoryOf(tensor)},
        {.kind = InstructionKind::AllGather,
            .op = op,
            .acrossUnits = true,
            .dimension = shard.dimension,
            .inputs = {share.buffer}});
    return whole;
}

} // namespace planloom
