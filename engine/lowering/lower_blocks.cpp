#include "engine/lowering/lowering.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/lowering/offload.h"
#include "engine/lowering/order/block_times.h"
#include "engine/lowering/order/order_rows.h"
#include "engine/plan/interleaves.h"

#include <algorithm>
#include <array>

namespace planloom {

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

/// Adds a block of a stage: that of one lane and slice.
std::int32_t Lowering::addBlockOf(SegmentKind kind, std::int32_t stage, std::int32_t cell, double rank)
{
    const std::int32_t added = m_builder.addBlock(kind, StageId{stage}, rank);
    BlockInfo &block = m_builder.blocks()[static_cast<std::size_t>(added)];
    const auto s = static_cast<std::size_t>(stage);
    block.slices = m_transformed.places.slices[s];
    block.lanes = m_transformed.places.lanes[s];
    block.slice = cell % block.slices;
    block.lane = cell / block.slices;
    return added;
}

/// Which block of its stage and pass it is: lanes one after the other, each in the order of its slices.
std::size_t Lowering::cellOf(std::int32_t block) const
{
    const BlockInfo &info = m_builder.block(block);
    return static_cast<std::size_t>(info.lane * info.slices + info.slice);
}

void Lowering::makeBlocks()
{
    m_prologue = m_builder.addBlock(SegmentKind::Prologue, StageId{0}, 0);
    const auto cellsOf = [this](std::int32_t stage) {
        const auto s = static_cast<std::size_t>(stage);
        return m_transformed.places.slices[s] * m_transformed.places.lanes[s];
    };
    double rank = 1;
    for (std::int32_t s = 0; s < m_plan.stageCount; ++s) {
        auto &blocks = m_forward.emplace_back();
        for (std::int32_t i = 0; i < cellsOf(s); ++i)
            blocks.push_back(addBlockOf(SegmentKind::Forward, s, i, rank++));
    }
    const double backward = std::max(1e4, rank);
    double behind = backward + rank;
    for (std::int32_t s = 0; s < m_plan.stageCount; ++s) {
        auto &blocks = m_backward.emplace_back();
        for (std::int32_t i = 0; i < cellsOf(s); ++i)
            blocks.push_back(addBlockOf(SegmentKind::Backward, s, i, --behind));
    }
    splitBackwardPasses();
    for (std::int32_t s = 0; s <= m_plan.stageCount; ++s)
        m_optimizer.push_back(
            m_builder.addBlock(SegmentKind::Optimizer, StageId{std::min(s, m_plan.stageCount - 1)}, 2e6 + s));
}

/// In which blocks of its stage an operator runs (`cellOf`), in the order in which they are made: forward
/// ones ascending.
std::vector<std::size_t> Lowering::cellsOf(OperatorId id) const
{
    const auto o = static_cast<std::size_t>(id.index);
    const BlockPlaces &places = m_transformed.places;
    const auto stage = static_cast<std::size_t>(m_plan.decisions[o].stage.index);
    std::vector<std::size_t> cells;
    for (std::int32_t lane = 0; lane < places.lanes[stage]; ++lane)
        for (std::int32_t slice = 0; slice < places.slices[stage]; ++slice)
            if ((places.laneOf[o] < 0 || places.laneOf[o] == lane)
                && (places.sliceOf[o] < 0 || places.sliceOf[o] == slice))
                cells.push_back(static_cast<std::size_t>(lane * places.slices[stage] + slice));
    if (m_graph.at(id).direction == Direction::Backward)
        std::reverse(cells.begin(), cells.end());
    return cells;
}

/// Runs in a pass of the stage, not once per step.
bool Lowering::isInStage(OperatorId id, Direction direction, StageId stage) const
{
    const BlockInfo &block = m_builder.block(m_blocksOf[static_cast<std::size_t>(id.index)].front());
    return m_graph.at(id).direction == direction && isPass(block.kind) && block.stage == stage;
}

/// The forward operators of the stage and lane of `block`, of all slices, in an order that runs them rightly.
std::vector<OperatorId> Lowering::forwardOperators(std::int32_t block) const
{
    const BlockInfo &info = m_builder.block(block);
    std::vector<OperatorId> operators;
    std::set<OperatorId> known;
    for (const std::int32_t forward : m_forward[static_cast<std::size_t>(info.stage.index)]) {
        if (m_builder.block(forward).lane != info.lane)
            continue;
        for (const OperatorId id : m_sequence[static_cast<std::size_t>(forward)])
            if (info.slices == 1 || known.insert(id).second)
                operators.push_back(id);
    }
    return operators;
}

Result<void> Lowering::assignBlocks()
{
    m_sequence.resize(m_builder.blocks().size());
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const Operator &op = m_graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        const auto stage = static_cast<std::size_t>(std::max(m_plan.decisions[o].stage.index, 0));
        const bool halves = m_halves.contains(id.index);
        if (op.direction == Direction::Optimizer)
            m_blocksOf[o] = {m_optimizer.back()};
        else if (m_transformed.batch.oncePerStep[o])
            m_blocksOf[o] = {m_prologue};
        else
            for (const std::size_t i : cellsOf(id)) {
                m_blocksOf[o].push_back(op.direction == Direction::Forward ? m_forward[stage][i]
                        : m_inWeightGradient[o] && !halves                 ? m_weightGradient[stage][i]
                                                                           : m_backward[stage][i]);
                if (halves)
                    m_sequence[static_cast<std::size_t>(m_weightGradient[stage][i])].push_back(id);
            }
        for (const std::int32_t block : m_blocksOf[o])
            m_sequence[static_cast<std::size_t>(block)].push_back(id);
    }
    TRY(auto orders, sortOrders(m_plan, m_builder.blocks(), m_blocksOf));
    const bool regions = std::any_of(m_regionOf.begin(), m_regionOf.end(), [](auto r) { return r >= 0; });
    orders.inside.resize(m_sequence.size());
    for (std::size_t block = 0; block < orders.inside.size(); ++block) {
        const auto &rows = orders.inside[block];
        if (!rows.empty()) {
            TRY(m_sequence[block], orderInBlock(m_graph, m_uses, m_sequence[block], rows));
        }
        if (regions) {
            TRY(m_sequence[block], orderInBlock(m_graph, m_uses, m_sequence[block], rows, m_regionOf));
        }
    }
    m_ordersInside = std::move(orders.inside);
    return {};
}

void Lowering::estimateBlocks()
{
    m_seconds.assign(m_graph.operators.size(), 0);
    std::vector<TensorType> inputs;
    std::vector<TensorType> outputs;
    const auto typeInto = [](TensorType &type, const TensorView &view, DataType dataType) {
        type.shape.clear();
        type.dataType = view.tensor ? dataType : TensorType{}.dataType;
        for (const Range &range : view.index.ranges)
            type.shape.push_back(range.size());
    };
    for (std::size_t block = 0; block < m_sequence.size(); ++block) {
        std::vector<double> busy(static_cast<std::size_t>(m_plan.deviceCount), 0);
        for (const OperatorId id : m_sequence[block]) {
            const Operator &op = shareOf(id, static_cast<std::int32_t>(block));
            const auto &parts = m_transformed.operators[static_cast<std::size_t>(id.index)];
            // One part stands for all of its block: they are equal, or nearly so.
            const Partition &partition = m_plan.decisions[static_cast<std::size_t>(id.index)].partition;
            const std::int32_t slices = sliceCount(partition);
            const std::int32_t lanes = laneCount(partition);
            const std::size_t inBlock = parts.size() / static_cast<std::size_t>(slices * lanes);
            const BlockInfo &info = m_builder.block(static_cast<std::int32_t>(block));
            const std::size_t first = inBlock
                * static_cast<std::size_t>(
                    (lanes > 1 ? info.lane * slices : 0) + (slices > 1 ? info.slice : 0));
            const TransformedPart &part = parts[first];
            inputs.resize(part.inputs.size());
            for (std::size_t slot = 0; slot < inputs.size(); ++slot)
                typeInto(
                    inputs[slot], op.inputs[slot] ? part.inputs[slot] : TensorView{}, m_types.read(id, slot));
            outputs.resize(part.outputs.size());
            for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                typeInto(outputs[slot], op.outputs[slot] ? part.outputs[slot] : TensorView{},
                    m_types.made(id, slot));
            const OperatorDecision &decision = m_plan.decisions[static_cast<std::size_t>(id.index)];
            std::array<double, kMostDeviceClasses> seconds{}; // by class
            const auto sliced = operatorOfSlice(op, partition, static_cast<std::int32_t>(first));
            const Operator &local = sliced ? *sliced : op;
            for (std::size_t i = first; i < first + inBlock; ++i) {
                const DeviceId device = parts[i].device;
                const std::int32_t c = m_cluster.classOf(device);
                double &own = seconds[static_cast<std::size_t>(c)];
                if (own == 0)
                    own = m_costs.kernel({local, inputs, outputs,
                        arithmeticOf(m_graph, op, decision.precision), false, {}, decision.attention, c});
                busy[static_cast<std::size_t>(device.index)] += own;
            }
            double &most = m_seconds[static_cast<std::size_t>(id.index)];
            most = std::max(most, *std::max_element(seconds.begin(), seconds.end()));
        }
        // Never zero: what follows a block must come after it in time.
        m_builder.blocks()[block].seconds = 1e-9 + *std::max_element(busy.begin(), busy.end());
    }
}

Result<void> Lowering::emitBlock(std::int32_t block)
{
    // What the host fed to other blocks is not at hand in this one.
    for (const TensorId tensor : m_fed)
        m_persistent[static_cast<std::size_t>(tensor.index)].clear();
    findGatherGroups(block);
    TRY_VOID(scheduleGathers(block));
    const auto &sequence = m_sequence[static_cast<std::size_t>(block)];
    reserveRoom(block, sequence);
    for (std::size_t place = 0; place < sequence.size();) {
        TRY_VOID(goesOn());
        const std::size_t begin = place;
        const std::size_t end = regionEnd(sequence, begin);
        for (; place < end; ++place)
            gatherAhead(place, block);
        TRY_VOID(emitInOrder({sequence.begin() + static_cast<std::ptrdiff_t>(begin),
                                 sequence.begin() + static_cast<std::ptrdiff_t>(end)},
            block, false));
        for (std::size_t done = begin; done < end; ++done) {
            markCompletions(sequence[done], block);
            if (weightBlockOf(sequence[done]) == block)
                noteCut(sequence[done], block);
        }
        if (std::any_of(m_gatherGroups.begin(), m_gatherGroups.end(),
                [&](const GatherGroup &group) { return group.last >= begin && group.last < end; }))
            TRY_VOID(cutGradients(block));
    }
    TRY_VOID(cutGradients(block));
    addShards(std::exchange(m_cutShards, {}), block);
    return {};
}

/// Slices of a stage run one behind the other in every micro-batch, lane by lane: those of the forward pass
/// ascending, then those of the backward pass descending.
void Lowering::addSliceOrder(MaterializedPlan &materialized) const
{
    const auto chain = [&](const std::vector<std::int32_t> &order, std::int32_t lane) {
        std::int32_t before = -1;
        for (const std::int32_t block : order) {
            if (m_builder.block(block).lane != lane || m_builder.block(block).devices.empty())
                continue;
            if (before >= 0)
                materialized.dataFlow.push_back({before, block, 0, RowId{}});
            before = block;
        }
    };
    for (std::size_t s = 0; s < m_forward.size(); ++s) {
        if (m_transformed.places.slices[s] == 1)
            continue;
        std::vector<std::int32_t> passes = m_forward[s];
        passes.insert(passes.end(), m_backward[s].rbegin(), m_backward[s].rend());
        for (std::int32_t lane = 0; lane < m_transformed.places.lanes[s]; ++lane) {
            chain(passes, lane);
            chain({m_weightGradient[s].rbegin(), m_weightGradient[s].rend()}, lane);
        }
    }
}

/// Lists of a program are long, and copying them whenever they outgrow their room takes longer than counting
/// what will be in them: what operators make, and about as much for what is brought to them.
void Lowering::reserveRoom()
{
    const auto devices = static_cast<std::size_t>(m_plan.deviceCount);
    std::vector<std::size_t> buffers(devices, 0), setup(devices, 0);
    for (const auto &boxes : m_persistentBoxes)
        for (const Persistent &box : boxes)
            ++setup[static_cast<std::size_t>(box.device.index)];
    for (const auto &parts : m_transformed.operators)
        for (const TransformedPart &part : parts)
            buffers[static_cast<std::size_t>(part.device.index)] += part.outputs.size();
    for (std::size_t d = 0; d < devices; ++d)
        m_builder.reserve(
            DeviceId{static_cast<std::int32_t>(d)}, setup[d] + buffers[d] + buffers[d] / 4, setup[d]);
}

/// The same for what a block is to run.
void Lowering::reserveRoom(std::int32_t block, const std::vector<OperatorId> &operators)
{
    std::vector<std::size_t> runs(static_cast<std::size_t>(m_plan.deviceCount), 0); // by device
    for (const OperatorId id : operators)
        for (const TransformedPart &part : m_transformed.operators[static_cast<std::size_t>(id.index)])
            ++runs[static_cast<std::size_t>(part.device.index)];
    for (std::size_t d = 0; d < runs.size(); ++d)
        if (runs[d] > 0)
            m_builder.reserve(DeviceId{static_cast<std::int32_t>(d)}, block, runs[d] + runs[d] / 2);
}

Result<void> Lowering::goesOn() const
{
    if (m_stop.stop_requested())
        return cancelled("lowering was stopped");
    return {};
}

/// What the passes alone read and make, and how their operators are taken apart: at the end of a step it
/// takes memory for nothing.
void Lowering::forgetPasses()
{
    const auto isOfUpdate = [this](
                                OperatorId op) { return m_graph.at(op).direction == Direction::Optimizer; };
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t) {
        const auto &consumers = m_uses.consumers[t];
        const auto &producers = m_uses.producers[t];
        const TensorId tensor{static_cast<std::int32_t>(t)};
        if (!isPersistent(tensor) && std::none_of(consumers.begin(), consumers.end(), isOfUpdate)
            && std::none_of(producers.begin(), producers.end(), isOfUpdate))
            m_materializer.forget(tensor);
    }
    m_transformed.forgetPasses(m_graph);
}

Result<MaterializedPlan> Lowering::run()
{
    TRY_VOID(goesOn());
    if (mayInterleave(m_plan))
        m_builder.keepPlaces();
    makeBlocks();
    findTurns();
    TRY_VOID(assignBlocks());
    TRY_VOID(goesOn());
    collectPersistentBoxes();
    TRY_VOID(goesOn());
    reserveRoom();
    estimateBlocks();
    TRY_VOID(goesOn());

    findSharded();
    for (std::size_t t = 0; t < m_graph.tensors.size(); ++t)
        if (const TensorId tensor{static_cast<std::int32_t>(t)};
            m_uses.producers[t].empty() && !isPersistent(tensor))
            m_fed.push_back(tensor);
    TRY_VOID(emitBlock(m_prologue));
    for (const auto &slices : m_forward)
        for (const std::int32_t block : slices)
            TRY_VOID(emitBlock(block));
    TRY_VOID(storeOutputs());
    for (const BlocksByStage *pass : {&m_backward, &m_weightGradient})
        for (std::size_t s = pass->size(); s-- > 0;)
            for (std::size_t i = (*pass)[s].size(); i-- > 0;)
                TRY_VOID(emitBlock((*pass)[s][i]));
    fillBuckets();
    reduceAccumulators();
    forgetPasses();
    TRY_VOID(emitOptimizer());
    m_materializer.forgetAll();
    m_transformed.operators.clear();

    TRY_VOID(goesOn());
    m_builder.join(m_graph, m_plan.overlap);
    TRY_VOID(goesOn());
    offload(m_plan, m_costs, m_seconds, m_builder);
    MaterializedPlan materialized;
    for (const auto &[earlier, later] : m_builder.sharedBufferDependencies())
        materialized.dataFlow.push_back({earlier, later, 0, RowId{}});
    for (std::size_t s = 0; s < m_weightGradient.size(); ++s)
        for (std::size_t i = 0; i < m_weightGradient[s].size(); ++i)
            materialized.dataFlow.push_back({m_backward[s][i], m_weightGradient[s][i], 0, RowId{}});
    TRY_VOID(goesOn());
    addSliceOrder(materialized);
    for (const BlockInfo &block : m_builder.blocks())
        if (block.kind == SegmentKind::Transfer)
            materialized.dataFlow.push_back({block.source, block.target, 0, RowId{}});
    for (const Bucket &bucket : m_buckets)
        materialized.reductions.push_back({bucket.block, bucket.after.marks});
    for (const auto &[gradient, bucket] : m_bucketOf)
        materialized.reductions[static_cast<std::size_t>(bucket)].gradients.push_back(gradient);
    materialized.optimizers = m_optimizer;
    materialized.blocksOf = std::move(m_blocksOf);
    materialized.inside = std::move(m_ordersInside);

    ExecutionPlan &result = materialized.programs;
    result.graph = m_plan.graph;
    result.units = m_plan.units;
    result.microBatches = m_plan.microBatches;
    result.updates = m_plan.updates;
    result.precisions = m_precisions;
    result.stageCount = m_plan.stageCount;
    result.partitions.reserve(m_plan.decisions.size());
    result.placement.reserve(m_plan.decisions.size());
    result.attention.reserve(m_plan.decisions.size());
    for (const OperatorDecision &decision : m_plan.decisions) {
        result.partitions.push_back(decision.partition);
        result.placement.push_back(decision.devices);
        result.attention.push_back(decision.attention);
    }
    result.batch = std::move(m_transformed.batch);
    TRY_VOID(goesOn());
    m_builder.finish(materialized);
    TRY_VOID(goesOn());
    measureBlocks(materialized, m_cluster, m_costs);
    return materialized;
}

} // namespace planloom
