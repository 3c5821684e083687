#include "engine/lowering/program_builder.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace planloom {

ProgramBuilder::ProgramBuilder(std::int32_t deviceCount)
    : m_devices(static_cast<std::size_t>(deviceCount))
{
}

std::int32_t ProgramBuilder::addBlock(SegmentKind kind, StageId stage, double rank)
{
    m_blocks.push_back(BlockInfo{.kind = kind, .stage = stage, .rank = rank});
    return static_cast<std::int32_t>(m_blocks.size()) - 1;
}

std::int32_t ProgramBuilder::addBuffer(DeviceId device, BufferInfo buffer)
{
    auto &buffers = m_devices[static_cast<std::size_t>(device.index)].program.buffers;
    buffers.push_back(std::move(buffer));
    return static_cast<std::int32_t>(buffers.size()) - 1;
}

const BufferInfo &ProgramBuilder::buffer(DeviceId device, std::int32_t index) const
{
    return m_devices[static_cast<std::size_t>(device.index)].program.buffers[static_cast<std::size_t>(index)];
}

void ProgramBuilder::setSummands(DeviceId device, std::int32_t index, SummandSet summands)
{
    m_devices[static_cast<std::size_t>(device.index)]
        .program.buffers[static_cast<std::size_t>(index)]
        .summands = std::move(summands);
}

void ProgramBuilder::emit(DeviceId device, std::int32_t block, Instruction instruction)
{
    Device &target = m_devices[static_cast<std::size_t>(device.index)];
    if (target.byBlock.size() <= static_cast<std::size_t>(block))
        target.byBlock.resize(m_blocks.size());
    auto &instructions = target.byBlock[static_cast<std::size_t>(block)];
    if (instructions.empty())
        m_blocks[static_cast<std::size_t>(block)].devices.push_back(device);
    instructions.push_back(std::move(instruction));
}

void ProgramBuilder::emitSetup(DeviceId device, Instruction instruction)
{
    m_devices[static_cast<std::size_t>(device.index)].program.setup.push_back(std::move(instruction));
}

std::int32_t ProgramBuilder::groupOf(const std::vector<DeviceId> &members)
{
    const auto [it, fresh] = m_groupIndex.try_emplace(members, static_cast<std::int32_t>(m_groups.size()));
    if (fresh)
        m_groups.push_back(members);
    return it->second;
}

std::vector<std::pair<std::int32_t, std::int32_t>> ProgramBuilder::sharedBufferDependencies()
{
    std::vector<std::int32_t> byRank(m_blocks.size());
    std::iota(byRank.begin(), byRank.end(), 0);
    std::stable_sort(byRank.begin(), byRank.end(), [this](std::int32_t a, std::int32_t b) {
        return m_blocks[static_cast<std::size_t>(a)].rank < m_blocks[static_cast<std::size_t>(b)].rank;
    });
    std::set<std::pair<std::int32_t, std::int32_t>> dependencies;
    for (Device &device : m_devices) {
        device.lastBlock.assign(device.program.buffers.size(), -1);
        std::pair<std::int32_t, std::int32_t> latest{
            -1, -1}; // buffers of one block mostly share their last one
        for (const std::int32_t block : byRank) {
            if (static_cast<std::size_t>(block) >= device.byBlock.size())
                continue;
            const auto note = [&](std::int32_t buffer) {
                if (buffer < 0)
                    return;
                std::int32_t &last = device.lastBlock[static_cast<std::size_t>(buffer)];
                if (last >= 0 && last != block && latest != std::pair(last, block)
                    && device.program.buffers[static_cast<std::size_t>(buffer)].perMicroBatch) {
                    latest = {last, block};
                    dependencies.insert(latest);
                }
                last = block;
            };
            for (const Instruction &instruction : device.byBlock[static_cast<std::size_t>(block)]) {
                for (const std::int32_t buffer : instruction.inputs)
                    note(buffer);
                for (const std::int32_t buffer : instruction.outputs)
                    note(buffer);
            }
        }
    }
    return {dependencies.begin(), dependencies.end()};
}

void ProgramBuilder::markDeaths(Device &device) const
{
    // The last block by rank that touches a buffer, and in it the last instruction. Buffers of the step die
    // only in the blocks that run once: a block that is repeated cannot know its last run.
    std::vector<bool> dead(device.program.buffers.size(), false);
    for (std::size_t b = 0; b < device.byBlock.size(); ++b) {
        const bool once = m_blocks[b].kind == SegmentKind::Prologue || m_blocks[b].kind == SegmentKind::Reduce
            || m_blocks[b].kind == SegmentKind::Optimizer;
        auto &instructions = device.byBlock[b];
        for (std::size_t i = instructions.size(); i-- > 0;) {
            Instruction &instruction = instructions[i];
            const auto consider = [&](std::int32_t index) {
                if (index < 0 || dead[static_cast<std::size_t>(index)])
                    return;
                const BufferInfo &buffer = device.program.buffers[static_cast<std::size_t>(index)];
                if (buffer.persistent || (!buffer.perMicroBatch && !once)
                    || device.lastBlock[static_cast<std::size_t>(index)] != static_cast<std::int32_t>(b))
                    return;
                dead[static_cast<std::size_t>(index)] = true;
                instruction.deaths.push_back(index);
            };
            for (const std::int32_t index : instruction.inputs)
                consider(index);
            for (const std::int32_t index : instruction.outputs)
                consider(index);
            if (instruction.deaths.size() > 1)
                std::sort(instruction.deaths.begin(), instruction.deaths.end());
        }
    }
}

void ProgramBuilder::finish(const std::vector<BlockRun> &order, ExecutionPlan &plan)
{
    plan.groups = m_groups;
    plan.devices.clear();
    for (Device &device : m_devices) {
        markDeaths(device);
        std::vector<std::int32_t> segmentOf(m_blocks.size(), -1);
        for (std::size_t b = 0; b < device.byBlock.size(); ++b) {
            if (device.byBlock[b].empty())
                continue;
            segmentOf[b] = static_cast<std::int32_t>(device.program.segments.size());
            device.program.segments.push_back(
                Segment{m_blocks[b].kind, m_blocks[b].stage, std::move(device.byBlock[b])});
        }
        for (const BlockRun &run : order)
            if (const std::int32_t segment = segmentOf[static_cast<std::size_t>(run.block)]; segment >= 0)
                device.program.schedule.push_back({segment, run.microBatch});
        plan.devices.push_back(std::move(device.program));
    }
}

} // namespace planloom
