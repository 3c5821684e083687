#include "engine/plan/plan.h"

#include "engine/base/words.h"
#include "engine/plan/block_places.h"
#include "engine/plan/coshard_regions.h"
#include "engine/plan/ring.h"

#include <string>

namespace planloom {

namespace {

Error broken(const Operator &op, std::string message)
{
    return {ErrorCode::InvalidInput, "operator '" + op.name + "': " + std::move(message), "",
        "operator:" + op.name};
}

Result<void> checkDecision(const Plan &plan, const Operator &op, const OperatorDecision &decision)
{
    TRY_VOID(checkPartition(op, decision.partition));
    const std::int32_t parts = partCount(decision.partition) / unitParts(decision.partition);
    if (static_cast<std::int64_t>(decision.devices.size()) != parts) {
        return broken(
            op, std::to_string(parts) + " parts, but devices for " + std::to_string(decision.devices.size()));
    }
    for (const DeviceId device : decision.devices) {
        if (device.index < 0 || device.index >= plan.deviceCount) {
            return broken(op,
                "placed on device " + std::to_string(device.index) + ", but the plan has "
                    + counted(plan.deviceCount, "device") + ", numbered from 0");
        }
    }
    if (op.direction != Direction::Optimizer
        && (decision.stage.index < 0 || decision.stage.index >= plan.stageCount)) {
        return broken(op,
            "in stage " + std::to_string(decision.stage.index) + ", but the plan has "
                + counted(plan.stageCount, "stage") + ", numbered from 0");
    }
    if (op.direction != Direction::Forward && decision.recomputeGroup >= 0)
        return broken(op, "only forward operators can be recomputed");
    if (op.kind != OperatorKind::Attention && decision.attention != AttentionMode::Fused)
        return broken(op, "only an Attention keeps its probabilities");
    if (op.direction == Direction::Backward && decision.offloaded)
        return broken(op, "what it makes is not kept, and cannot wait in host memory");
    if (decision.weightVersions < 1 || decision.weightVersions > kMostWeightVersions)
        return broken(op,
            "keeps " + std::to_string(decision.weightVersions) + " versions of its weights, expected 1 to "
                + std::to_string(kMostWeightVersions));
    if (decision.weightVersions > 1 && op.direction == Direction::Optimizer)
        return broken(op, "an update changes the newest version of its weight, and reads no other");
    const Precision &precision = decision.precision;
    if (!isComputeType(precision.compute) || !isStorageType(precision.storage)
        || !isStorageType(precision.gradient) || !isStorageType(precision.reduction)
        || !isStorageType(precision.optimizer) || !(precision.lossScale >= 1))
        return broken(op, "a precision of types that it cannot have: " + toString(precision));
    return {};
}

/// `one` is what a lane of `all` does, which all lanes do alike: an operator that every lane runs may have a
/// backward operator that one lane runs for all, and the other way round.
bool isOneLaneOf(const OperatorDecision &one, const OperatorDecision &all)
{
    const std::int32_t lanes = laneCount(all.partition);
    if (lanes == 1 || all.partition.splits.front().kind != SplitKind::Replicate
        || !std::equal(one.partition.splits.begin(), one.partition.splits.end(),
            all.partition.splits.begin() + 1, all.partition.splits.end())
        || one.devices.size() * static_cast<std::size_t>(lanes) != all.devices.size())
        return false;
    for (std::size_t begin = 0; begin < all.devices.size(); begin += one.devices.size())
        if (std::equal(one.devices.begin(), one.devices.end(),
                all.devices.begin() + static_cast<std::ptrdiff_t>(begin)))
            return true;
    return false;
}

Result<void> checkMirror(const Plan &plan, const Operator &op, const OperatorDecision &decision)
{
    if (!op.mirror.valid())
        return broken(op, "a backward operator without its forward operator");
    const auto &forward = plan.decisions[static_cast<std::size_t>(op.mirror.index)];
    const bool mirrors =
        decision.partition == mirrored(op, forward.partition) && decision.devices == forward.devices;
    if ((!mirrors && !isOneLaneOf(decision, forward) && !isOneLaneOf(forward, decision))
        || decision.stage != forward.stage || decision.precision != forward.precision
        || decision.coshardRegion != forward.coshardRegion || decision.ringSplit != forward.ringSplit)
        return broken(
            op, "partition, devices, stage, precision or region differ from those of its forward operator");
    if (decision.splitBackward != forward.splitBackward)
        return broken(op, "its forward operator divides its backward pass otherwise");
    if (decision.weightVersions != forward.weightVersions)
        return broken(op, "would read other versions of the weights than its forward operator");
    if (decision.attention != forward.attention)
        return broken(op, "would not read the probabilities as its forward operator keeps them");
    return {};
}

/// Stages never decrease from a forward operator to those that use its outputs.
Result<void> checkDataFlow(const Plan &plan)
{
    const Graph &graph = *plan.graph;
    std::vector<OperatorId> maker(graph.tensors.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        const std::int32_t stage = plan.decisions[i].stage.index;
        for (const TensorId input : op.inputs) {
            if (!input.valid())
                continue;
            const OperatorId from = maker[static_cast<std::size_t>(input.index)];
            if (from.valid() && plan.decisions[static_cast<std::size_t>(from.index)].stage.index > stage) {
                return broken(op,
                    "in stage " + std::to_string(stage) + ", before stage "
                        + std::to_string(plan.decisions[static_cast<std::size_t>(from.index)].stage.index)
                        + " of '" + graph.at(from).name + "', whose output it reads");
            }
        }
        for (const TensorId output : op.outputs) {
            if (output.valid())
                maker[static_cast<std::size_t>(output.index)] = {static_cast<std::int32_t>(i)};
        }
    }
    return {};
}

} // namespace

std::shared_ptr<const BatchInfo> batchOf(const Plan &plan)
{
    return plan.batch ? plan.batch : std::make_shared<const BatchInfo>(analyseBatch(*plan.graph));
}

Result<void> validate(const Plan &plan)
{
    const auto wrong = [](std::string message) {
        return Error{ErrorCode::InvalidInput, std::move(message), "", "plan"};
    };
    if (!plan.graph)
        return wrong("a plan without a model");
    const Graph &graph = *plan.graph;
    if (plan.decisions.size() != graph.operators.size()) {
        return wrong("decisions for " + std::to_string(plan.decisions.size())
            + " operators, but the model has " + std::to_string(graph.operators.size()));
    }
    if (plan.deviceCount < 1 || plan.microBatches < 1 || plan.stageCount < 1)
        return wrong("expected at least one device, micro-batch and stage");
    if (plan.updates < 1 || plan.microBatches % plan.updates != 0)
        return wrong(std::to_string(plan.updates) + " updates in a step of "
            + counted(plan.microBatches, "micro-batch") + ", expected a divisor of them");
    if (const std::int32_t cuts = batchCuts(plan); cuts > 1 && !plan.wholeBatches) {
        const auto sharedBatch = batchOf(plan);
        const BatchInfo &batch = *sharedBatch;
        if (cuts > batch.mostMicroBatches || batch.size % cuts != 0) {
            return wrong(std::to_string(cuts) + " micro-batches of a mini-batch of "
                + std::to_string(batch.size) + ", at most " + std::to_string(batch.mostMicroBatches)
                + (batch.limitedBy.empty() ? "" : ": " + batch.limitedBy));
        }
    }
    std::vector<std::int32_t> stageOfGroup;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const OperatorDecision &decision = plan.decisions[i];
        TRY_VOID(checkDecision(plan, op, decision));
        if (op.direction == Direction::Backward)
            TRY_VOID(checkMirror(plan, op, decision));
        if (decision.recomputeGroup >= 0) {
            const auto group = static_cast<std::size_t>(decision.recomputeGroup);
            if (group >= graph.operators.size())
                return broken(op, "recompute groups are numbered from 0, below the number of operators");
            if (stageOfGroup.size() <= group)
                stageOfGroup.resize(group + 1, -1);
            if (stageOfGroup[group] >= 0 && stageOfGroup[group] != decision.stage.index)
                return broken(op, "its recompute group reaches over several stages");
            stageOfGroup[group] = decision.stage.index;
        }
    }
    for (const OrderConstraint &order : plan.orders) {
        const auto count = static_cast<std::int32_t>(graph.operators.size());
        if (order.first.index < 0 || order.first.index >= count || order.second.index < 0
            || order.second.index >= count)
            return wrong("an order between operators that the model does not have");
        if (order.microBatch >= plan.microBatches)
            return wrong("an order of micro-batch " + std::to_string(order.microBatch) + ", but the plan has "
                + counted(plan.microBatches, "micro-batch") + ", numbered from 0");
    }
    for (const CommunicationOrder &order : plan.communicationOrders) {
        const auto isMissing = [&](OperatorId op) {
            return op.index < 0 || op.index >= static_cast<std::int32_t>(graph.operators.size());
        };
        if (order.part == CommunicationPart::None || order.microBatch >= plan.microBatches
            || std::any_of(order.first.begin(), order.first.end(), isMissing)
            || std::any_of(order.second.begin(), order.second.end(), isMissing))
            return wrong("an order of communication that the plan does not have");
    }
    if (plan.inFlight.size() != plan.inFlightRows.size()
        || (!plan.inFlight.empty() && plan.inFlight.size() != static_cast<std::size_t>(plan.stageCount)))
        return wrong("limits of micro-batches in flight, but not one for each stage");
    for (const std::int32_t limit : plan.inFlight)
        if (limit < 0)
            return wrong("a limit of less than no micro-batches in flight");
    TRY_VOID(checkDataFlow(plan));
    TRY_VOID(checkRings(plan));
    TRY_VOID(checkCoshardRegions(plan));
    if (const auto placed = placeBlocks(plan); !placed)
        return placed.error();
    return {};
}

} // namespace planloom
