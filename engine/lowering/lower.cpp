#include "engine/lowering/lower.h"

#include "engine/base/background_disposal.h"
#include "engine/base/words.h"
#include "engine/lowering/offload.h"
#include "engine/lowering/optimizer_emitter.h"
#include "engine/lowering/pass_emitter.h"
#include "engine/lowering/program/instruction_cost.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

/// What instructions take; collectives are asked for once each.
class InstructionTimes
{
public:
    InstructionTimes(const ExecutionPlan &plan, const Cluster &cluster, const CostModel &costs)
        : m_plan(plan)
        , m_cluster(cluster)
        , m_costs(costs)
    {
    }

    /// Of a segment on its device: what it computes, and communicates in these queues.
    double of(std::size_t device, std::int32_t segment)
    {
        const DeviceProgram &program = m_plan.devices[device];
        const Segment &own = program.segments[static_cast<std::size_t>(segment)];
        const std::int32_t deviceClass =
            m_costs.classOf(m_plan.units.deviceOf(0, DeviceId{static_cast<std::int32_t>(device)}));
        double seconds = 0;
        const std::vector<Bytes> spared = sparedBytes(program, own.instructions);
        for (std::size_t i = 0; i < own.instructions.size(); ++i) {
            const Instruction &instruction = own.instructions[i];
            const QueueKind queue = queueOf(instruction);
            if (const auto kind = collectiveOf(instruction.kind)) {
                // What runs with a product, or in another queue beside the block, takes nothing of its own.
                if (!instruction.overlaps && !instruction.acrossUnits
                    && (queue == QueueKind::Tensor || isBetweenStages(queue)))
                    seconds +=
                        of(*kind, collectiveBytes(program, instruction), membersOf(device, instruction));
                continue;
            }
            if (queue != QueueKind::Compute)
                continue;
            seconds += 1e-9
                * static_cast<double>(
                    localDuration(m_plan, program, instruction, m_costs, spared[i], deviceClass)
                        .usual.count());
        }
        return seconds;
    }

private:
    std::vector<DeviceId> membersOf(std::size_t device, const Instruction &instruction) const
    {
        if (instruction.group >= 0)
            return m_plan.groups[static_cast<std::size_t>(instruction.group)];
        return {DeviceId{static_cast<std::int32_t>(device)}, instruction.peer};
    }

    double of(CollectiveKind kind, Bytes bytes, const std::vector<DeviceId> &members)
    {
        const auto [found, isNew] = m_known.try_emplace({kind, bytes.count, members}, 0);
        if (isNew)
            found->second = m_costs.collective(kind, bytes, groupShape(m_cluster, members));
        return found->second;
    }

    const ExecutionPlan &m_plan;
    const Cluster &m_cluster;
    const CostModel &m_costs;
    std::map<std::tuple<CollectiveKind, std::int64_t, std::vector<DeviceId>>, double> m_known{};
};

/// Gives the blocks of a pipeline the durations that their instructions have, one by one, as the simulator
/// books them, in place of estimates from operators alone: passes what one device computes and the
/// collectives that it waits for in between, transfers what a device sends. What is ordered by these stays
/// in order when it runs (received_runs.h). Passes are as long on all of their devices, or nearly so: the
/// first stands for all. Plans without transfers stay as they are.
/// O(instructions of the devices that are looked at)
void measureBlocks(MaterializedPlan &materialized, const Cluster &cluster, const CostModel &costs)
{
    constexpr double kLeast = 1e-9; // what follows a block must come after it in time
    const auto isTransfer = [](const BlockInfo &block) { return block.kind == SegmentKind::Transfer; };
    if (std::none_of(materialized.blocks.begin(), materialized.blocks.end(), isTransfer))
        return;
    InstructionTimes times(materialized.programs, cluster, costs);
    for (std::size_t b = 0; b < materialized.blocks.size(); ++b) {
        BlockInfo &block = materialized.blocks[b];
        if (!isTransfer(block) && !isPass(block.kind))
            continue;
        double most = 0;
        for (const DeviceId device : block.devices) {
            const auto d = static_cast<std::size_t>(device.index);
            if (const std::int32_t segment = materialized.segmentOf[d][b]; segment >= 0)
                most = std::max(most, times.of(d, segment));
            if (!isTransfer(block))
                break;
        }
        block.seconds = isTransfer(block) ? most : most + kLeast;
    }
}

/// The first half of lowering at work on one plan; used once. Between the parts of operators, on their
/// devices, it puts what the materializer finds (materialize.h), and sorts all of it by block.
class Lowering
{
public:
    /// @param versioned, costs  must outlive this
    Lowering(const VersionedPlan &versioned, const Cluster &cluster, const CostModel &costs,
        TransformedGraph transformed, std::shared_ptr<PathMemory> paths, std::stop_token stop)
        : m_work(versioned, cluster, costs, std::move(transformed), std::move(paths), std::move(stop))
        , m_blocks(m_work)
        , m_kept(m_work, m_blocks)
        , m_sharded(m_work, m_blocks, m_kept)
        , m_gradients(m_work, m_blocks)
        , m_cut(m_work, m_blocks, m_sharded, m_gradients)
        , m_sums(m_work, m_cut)
        , m_inputs(m_work, m_blocks, m_kept, m_sharded)
        , m_operators(m_work, m_blocks, m_inputs, m_gradients, m_cut, m_sums)
        , m_passes(m_work, m_blocks, m_inputs, m_operators, m_sums)
    {
    }

    Result<MaterializedPlan> run()
    {
        TRY_VOID(m_work.goesOn());
        TRY_VOID(m_blocks.assign());
        TRY_VOID(m_work.goesOn());
        reserveRoom();
        m_blocks.estimate();
        TRY_VOID(m_work.goesOn());
        m_sharded.find();
        TRY_VOID(emitPasses());
        m_gradients.reduce();
        forgetPasses();
        TRY_VOID(OptimizerEmitter(m_work, m_blocks, m_inputs, m_kept, m_sharded, m_gradients, m_cut).emit());
        m_work.materializer.forgetAll();
        m_work.transformed.operators.clear();
        TRY_VOID(m_work.goesOn());
        m_work.builder.join(m_work.graph, m_work.plan.overlap);
        TRY_VOID(m_work.goesOn());
        offload(m_work.plan, m_work.costs, m_blocks.kernelSeconds(), m_work.builder);
        return takeResult();
    }

private:
    Result<void> emitPasses()
    {
        TRY_VOID(emitBlock(m_blocks.prologue()));
        for (const auto &ofStage : m_blocks.forward())
            for (const std::int32_t block : ofStage)
                TRY_VOID(emitBlock(block));
        TRY_VOID(storeOutputs());
        for (const auto *pass : {&m_blocks.backward(), &m_blocks.weightGradient()})
            for (std::size_t s = pass->size(); s-- > 0;)
                for (std::size_t i = (*pass)[s].size(); i-- > 0;)
                    TRY_VOID(emitBlock((*pass)[s][i]));
        return {};
    }

    Result<void> emitBlock(std::int32_t block)
    {
        m_inputs.beginBlock();
        TRY_VOID(m_sharded.beginBlock(block));
        const auto &sequence = m_blocks.sequence(block);
        m_work.reserveRoom(block, sequence);
        for (std::size_t place = 0; place < sequence.size();) {
            TRY_VOID(m_work.goesOn());
            const std::size_t begin = place;
            const std::size_t end = m_passes.regionEnd(sequence, begin);
            for (; place < end; ++place)
                m_sharded.gatherAhead(place, block);
            TRY_VOID(m_passes.emit({sequence.begin() + static_cast<std::ptrdiff_t>(begin),
                                       sequence.begin() + static_cast<std::ptrdiff_t>(end)},
                block, false));
            for (std::size_t done = begin; done < end; ++done) {
                m_gradients.markCompletions(sequence[done], block);
                if (m_blocks.weightBlockOf(sequence[done]) == block)
                    m_cut.note(sequence[done], block);
            }
            if (m_sharded.anyGroupEnds(begin, end))
                TRY_VOID(m_cut.cut(block));
        }
        return m_cut.endBlock(block);
    }

    /// The materialized plan, once all is emitted; nothing is left here.
    Result<MaterializedPlan> takeResult()
    {
        MaterializedPlan materialized;
        for (const auto &[earlier, later] : m_work.builder.sharedBufferDependencies())
            materialized.dataFlow.push_back({earlier, later, 0, RowId{}});
        TRY_VOID(m_work.goesOn());
        m_blocks.handOver(materialized);
        for (const BlockInfo &block : m_work.builder.blocks())
            if (block.kind == SegmentKind::Transfer)
                materialized.dataFlow.push_back({block.source, block.target, 0, RowId{}});
        m_gradients.handOver(materialized);

        const Plan &plan = m_work.plan;
        ExecutionPlan &result = materialized.programs;
        result.graph = plan.graph;
        result.units = plan.units;
        result.microBatches = plan.microBatches;
        result.updates = plan.updates;
        result.precisions = m_work.precisions;
        result.stageCount = plan.stageCount;
        result.partitions.reserve(plan.decisions.size());
        result.placement.reserve(plan.decisions.size());
        result.attention.reserve(plan.decisions.size());
        for (const OperatorDecision &decision : plan.decisions) {
            result.partitions.push_back(decision.partition);
            result.placement.push_back(decision.devices);
            result.attention.push_back(decision.attention);
        }
        result.batch = std::move(m_work.transformed.batch);
        TRY_VOID(m_work.goesOn());
        m_work.builder.finish(materialized);
        TRY_VOID(m_work.goesOn());
        measureBlocks(materialized, m_work.cluster, m_work.costs);
        return materialized;
    }

    /// Lists of a program are long, and copying them whenever they outgrow their room takes longer than
    /// counting what will be in them: what operators make, and about as much for what is brought to them.
    void reserveRoom()
    {
        const auto devices = static_cast<std::size_t>(m_work.plan.deviceCount);
        std::vector<std::size_t> buffers(devices, 0), setup(devices, 0);
        for (std::size_t t = 0; t < m_work.graph.tensors.size(); ++t)
            for (const KeptBox &box : m_kept.boxesOf(TensorId{static_cast<std::int32_t>(t)}))
                ++setup[at(box.device)];
        for (const auto &parts : m_work.transformed.operators)
            for (const TransformedPart &part : parts)
                buffers[at(part.device)] += part.outputs.size();
        for (std::size_t d = 0; d < devices; ++d)
            m_work.builder.reserve(
                DeviceId{static_cast<std::int32_t>(d)}, setup[d] + buffers[d] + buffers[d] / 4, setup[d]);
    }

    /// What the passes alone read and make, and how their operators are taken apart: at the end of a step it
    /// takes memory for nothing.
    void forgetPasses()
    {
        const auto isOfUpdate = [this](OperatorId op) {
            return m_work.graph.at(op).direction == Direction::Optimizer;
        };
        for (std::size_t t = 0; t < m_work.graph.tensors.size(); ++t) {
            const auto &consumers = m_work.uses.consumers[t];
            const auto &producers = m_work.uses.producers[t];
            const TensorId tensor{static_cast<std::int32_t>(t)};
            if (!m_work.isPersistent(tensor) && std::none_of(consumers.begin(), consumers.end(), isOfUpdate)
                && std::none_of(producers.begin(), producers.end(), isOfUpdate))
                m_work.materializer.forget(tensor);
        }
        m_work.transformed.forgetPasses(m_work.graph);
    }

    /// Writes what `needs` ask for of an output of the graph to the host.
    Result<void> store(TensorId tensor, const std::vector<Need> &needs, std::int32_t block)
    {
        const auto &producers = m_work.uses.producers[at(tensor)];
        const OperatorId op = producers.empty() ? OperatorId{} : producers.front();
        TRY(const auto buffers, m_inputs.of(tensor, needs, m_work.types.accumulated(tensor), block, op));
        for (std::size_t i = 0; i < needs.size(); ++i)
            m_work.builder.emit(
                needs[i].device, block, {.kind = InstructionKind::Store, .op = op, .inputs = {buffers[i]}});
        return {};
    }

    Result<void> storeOutput(TensorId tensor)
    {
        const auto makers = m_work.materializer.makersOf(tensor);
        IndexMask whole = wholeMask(m_work.graph.at(tensor).type.shape);
        const auto index = at(tensor);
        if (m_work.transformed.batch.tensorRole[index] == BatchRole::Split)
            whole.ranges[at(m_work.transformed.batch.tensorDimension[index])].end /= batchCuts(m_work.plan);
        if (makers.empty())
            return store(tensor, {{DeviceId{0}, whole}}, m_blocks.forward().front().front());
        // Every distinct box once, from the first device that made it, if they tile the tensor; slices of it
        // by their own blocks.
        std::map<std::int32_t, std::vector<Need>> needs; // by block
        std::vector<Need> all;
        std::int64_t volume = 0;
        bool overlap = false;
        for (const std::int32_t block : makers)
            for (const Holding &h : *m_work.materializer.holdingsOf(tensor, block)) {
                if (std::any_of(all.begin(), all.end(), [&](const Need &n) { return n.box == h.box; }))
                    continue;
                for (const Need &need : all)
                    overlap = overlap || intersection(need.box, h.box).has_value();
                all.push_back({h.device, h.box});
                needs[block].push_back(all.back());
                volume += elementCount(shapeOf(h.box));
            }
        const bool summed = makers.size() > 1 && m_work.isInParts(tensor); // over slices
        if (overlap || summed || volume != elementCount(shapeOf(whole)))
            return store(tensor, {{all.front().device, whole}}, makers.back());
        for (const std::int32_t block : makers)
            if (const auto own = needs.find(block); own != needs.end())
                TRY_VOID(store(tensor, own->second, block));
        return {};
    }

    Result<void> storeOutputs()
    {
        const auto &outputs = m_work.graph.outputs;
        for (auto tensor = outputs.begin(); tensor != outputs.end(); ++tensor)
            if (std::find(outputs.begin(), tensor, *tensor)
                == tensor) // one that is listed twice reaches the host once
                TRY_VOID(storeOutput(*tensor));
        return {};
    }

    LoweringWork m_work;
    LoweredBlocks m_blocks;
    KeptWeights m_kept;
    ShardedWeights m_sharded;
    GradientBuckets m_gradients;
    CutGradients m_cut;
    TurnSums m_sums;
    BlockInputs m_inputs;
    OperatorEmitter m_operators;
    PassEmitter m_passes;
};

} // namespace

Result<ExecutionPlan> lower(const Plan &plan, const Cluster &cluster, std::stop_token stop)
{
    return lower(plan, cluster, costModelOf(cluster), std::move(stop));
}

Result<ExecutionPlan> lower(
    const Plan &plan, const Cluster &cluster, const CostModel &costs, std::stop_token stop)
{
    TRY(auto materialized, materialize(plan, cluster, costs, std::move(stop)));
    auto execution = sequenceAsMade(materialized, plan);
    disposeInBackground([materialized = std::move(materialized)] {});
    return execution;
}

Result<MaterializedPlan> materialize(const Plan &plan, const Cluster &cluster, const CostModel &costs,
    std::stop_token stop, std::shared_ptr<PathMemory> paths)
{
    if (std::int64_t{plan.deviceCount} * plan.units.count > cluster.deviceCount)
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + counted(std::int64_t{plan.deviceCount} * plan.units.count, "device")
                + ", the cluster has " + std::to_string(cluster.deviceCount),
            "choose a larger cluster", "cluster"};
    TRY_VOID(validate(plan));
    const VersionedPlan versioned = withWeightVersions(plan);
    TRY(auto transformed, transform(versioned.plan));
    auto lowering = std::make_shared<Lowering>(
        versioned, cluster, costs, std::move(transformed), std::move(paths), std::move(stop));
    auto materialized = lowering->run();
    if (materialized)
        nameWeights(*materialized, plan, versioned);
    disposeInBackground([lowering = std::move(lowering)] {}); // millions of small parts
    return materialized;
}

} // namespace planloom
