#include "engine/lowering/program/expand_units.h"

namespace planloom {

namespace {

class Expansion
{
public:
    explicit Expansion(const ExecutionPlan &plan)
        : m_plan(plan)
        , m_units(plan.units)
    {
    }

    ExecutionPlan run()
    {
        ExecutionPlan whole;
        whole.graph = m_plan.graph;
        whole.batch = m_plan.batch;
        whole.microBatches = batchCuts(m_plan);
        whole.updates = m_plan.updates;
        whole.weightVersions = m_plan.weightVersions;
        whole.stageCount = m_plan.stageCount;
        whole.origin = m_plan.origin;
        writeDecisions(whole);
        // Groups of unit 0, of unit 1, ..., then those of each device with itself in other units.
        for (std::int32_t unit = 0; unit < m_units.count; ++unit)
            for (const auto &group : m_plan.groups) {
                auto &members = whole.groups.emplace_back();
                for (const DeviceId member : group)
                    members.push_back(m_units.deviceOf(unit, member));
            }
        const auto devices = static_cast<std::int32_t>(m_plan.devices.size());
        for (std::int32_t d = 0; d < devices; ++d) {
            auto &members = whole.groups.emplace_back();
            for (std::int32_t unit = 0; unit < m_units.count; ++unit)
                members.push_back(m_units.deviceOf(unit, DeviceId{d}));
        }
        whole.devices.resize(m_plan.devices.size() * static_cast<std::size_t>(m_units.count));
        for (std::int32_t unit = 0; unit < m_units.count; ++unit)
            for (std::int32_t d = 0; d < devices; ++d)
                whole.devices[static_cast<std::size_t>(m_units.deviceOf(unit, DeviceId{d}).index)] =
                    programOf(unit, DeviceId{d});
        return whole;
    }

private:
    bool isUpdate(std::size_t op) const
    {
        return m_plan.graph->operators[op].direction == Direction::Optimizer;
    }

    /// Updates are shared out over the units, or done by all.
    void writeDecisions(ExecutionPlan &whole) const
    {
        for (std::size_t o = 0; o < m_plan.partitions.size(); ++o) {
            Partition partition = m_plan.partitions[o];
            std::vector<DeviceId> places = m_plan.placement[o];
            if (isUpdate(o)) {
                if (unitParts(partition) > 1)
                    partition.splits.back().over = SplitOver::Devices;
                else
                    partition.splits.push_back({.kind = SplitKind::Replicate, .parts = m_units.count});
                places.clear();
                for (const DeviceId place : m_plan.placement[o])
                    for (std::int32_t unit = 0; unit < m_units.count; ++unit)
                        places.push_back(m_units.deviceOf(unit, place));
            } else {
                for (DeviceId &place : places)
                    place = m_units.deviceOf(0, place);
            }
            whole.partitions.push_back(std::move(partition));
            whole.placement.push_back(std::move(places));
        }
    }

    Instruction instructionOf(Instruction own, std::int32_t unit, DeviceId device) const
    {
        if (own.kind == InstructionKind::Kernel && isUpdate(static_cast<std::size_t>(own.op.index)))
            own.part = own.part * m_units.count + unit;
        const auto groups = static_cast<std::int32_t>(m_plan.groups.size());
        if (own.acrossUnits)
            own.group = groups * m_units.count + device.index;
        else if (own.group >= 0)
            own.group += groups * unit;
        own.acrossUnits = false;
        if (own.tag >= 0) {
            own.tag = own.tag * m_units.count + unit;
            own.peer = m_units.deviceOf(unit, own.peer);
        }
        return own;
    }

    DeviceProgram programOf(std::int32_t unit, DeviceId device) const
    {
        DeviceProgram program = m_plan.devices[static_cast<std::size_t>(device.index)];
        for (BufferInfo &buffer : program.buffers.edit()) {
            if (buffer.share == UnitShare::Shard)
                buffer.index = boxOf(m_plan, buffer, 0, unit);
            buffer.share = UnitShare::Same;
            buffer.shardDimension = -1;
            buffer.shardEnd = 0;
        }
        for (Instruction &instruction : program.setup.edit())
            instruction = instructionOf(std::move(instruction), unit, device);
        for (Segment &segment : program.segments.edit())
            for (Instruction &instruction : segment.instructions)
                instruction = instructionOf(std::move(instruction), unit, device);
        for (ScheduleEntry &entry : program.schedule) {
            const SegmentKind kind = program.segments[static_cast<std::size_t>(entry.segment)].kind;
            entry.microBatch *= m_units.count;
            if (isPass(kind) || kind == SegmentKind::Transfer)
                entry.microBatch += unit;
        }
        return program;
    }

    const ExecutionPlan &m_plan;
    const ScaleUnits &m_units;
};

} // namespace

ExecutionPlan expandUnits(const ExecutionPlan &plan)
{
    return plan.units.isOne() ? plan : Expansion(plan).run();
}

} // namespace planloom
