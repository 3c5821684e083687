#include "engine/lowering/order/block_times.h"

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

} // namespace

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

} // namespace planloom
