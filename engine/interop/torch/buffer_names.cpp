#include "engine/interop/torch/buffer_names.h"

#include "engine/interop/torch/python_text.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace planloom {

namespace {

bool hasWeightGradients(const DeviceProgram &program, StageId stage)
{
    return std::any_of(program.segments.begin(), program.segments.end(), [&](const Segment &segment) {
        return segment.kind == SegmentKind::WeightGradient && segment.stage == stage;
    });
}

std::string blockName(const DeviceProgram &program, const Segment &segment)
{
    std::string name;
    switch (segment.kind) {
    case SegmentKind::Prologue:
        name = "prologue";
        break;
    case SegmentKind::Forward:
        name = "forward";
        break;
    case SegmentKind::Backward:
        name = "backward";
        break;
    case SegmentKind::InputGradient:
        name = hasWeightGradients(program, segment.stage) ? "input_gradient" : "backward";
        break;
    case SegmentKind::WeightGradient:
        name = "weight_gradient";
        break;
    case SegmentKind::Transfer:
        name = "transfer";
        break;
    case SegmentKind::Reduce:
        name = "reduce_gradients";
        break;
    case SegmentKind::Optimizer:
        name = "update_weights";
        break;
    }
    if (segment.kind != SegmentKind::Prologue)
        name += "_stage" + std::to_string(segment.stage.index);
    if (segment.slice != 0
        || std::any_of(program.segments.begin(), program.segments.end(), [&](const Segment &other) {
               return other.slice != 0 && other.kind == segment.kind && other.stage == segment.stage;
           }))
        name += "_slice" + std::to_string(segment.slice);
    if (segment.lane != 0)
        name += "_lane" + std::to_string(segment.lane);
    return name;
}

std::string blockWords(
    const DeviceProgram &program, const Segment &segment, std::size_t part, std::size_t parts)
{
    const std::string stage = "stage " + std::to_string(segment.stage.index);
    std::string words;
    switch (segment.kind) {
    case SegmentKind::Prologue:
        return "What is needed of the whole batch before its first micro-batch.";
    case SegmentKind::Forward:
        words = "The forward pass of " + stage;
        break;
    case SegmentKind::Backward:
        words = "The backward pass of " + stage;
        break;
    case SegmentKind::InputGradient:
        words = hasWeightGradients(program, segment.stage)
            ? "The backward pass of " + stage + ", without gradients of weights"
            : "The backward pass of " + stage;
        break;
    case SegmentKind::WeightGradient:
        words = "Gradients of the weights of " + stage;
        break;
    case SegmentKind::Transfer:
        words = "What goes between " + stage + " and others";
        break;
    case SegmentKind::Reduce:
        words = "Gradients of " + stage + ", put together over replicas";
        break;
    case SegmentKind::Optimizer:
        words = "The update of the weights of " + stage;
        break;
    }
    if (isPass(segment.kind) || segment.kind == SegmentKind::Transfer)
        words += segment.slice > 0 ? ", of slice " + std::to_string(segment.slice) + " of a micro-batch"
                                   : ", of one micro-batch";
    if (parts > 1)
        words += " (part " + std::to_string(part + 1) + " of " + std::to_string(parts) + ")";
    return words + ".";
}

std::string_view withoutSuffix(std::string_view name, std::string_view suffix)
{
    return name.size() > suffix.size() && name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size())
                                                                 : name;
}

/// "h.0.attn.c_attn", "d_h.0.attn.c_attn" for its gradient.
std::string plainName(std::string_view name)
{
    const std::string_view of = withoutSuffix(name, ".grad");
    const std::string_view plain = withoutSuffix(withoutSuffix(of, ".out"), ".out0");
    return (of.size() == name.size() ? "" : "d_") + std::string(plain);
}

std::string numbered(const std::string &name, std::set<std::string> &taken)
{
    std::string made = name;
    for (int next = 2; !taken.insert(made).second; ++next)
        made = name + "_" + std::to_string(next);
    return made;
}

} // namespace

std::vector<ProgramBlock> blocksOf(const DeviceProgram &program)
{
    std::vector<std::set<std::int32_t>> cuts(program.segments.size());
    for (std::size_t s = 0; s < program.segments.size(); ++s)
        cuts[s] = {0, static_cast<std::int32_t>(program.segments[s].instructions.size())};
    for (const ScheduleEntry &entry : program.schedule) {
        const auto [begin, end] = indicesOf(program, entry);
        cuts[static_cast<std::size_t>(entry.segment)].insert(static_cast<std::int32_t>(begin));
        cuts[static_cast<std::size_t>(entry.segment)].insert(static_cast<std::int32_t>(end));
    }
    std::vector<ProgramBlock> blocks;
    std::set<std::string> taken;
    for (std::size_t s = 0; s < cuts.size(); ++s) {
        const std::vector<std::int32_t> at(cuts[s].begin(), cuts[s].end());
        const std::string name = blockName(program, program.segments[s]);
        for (std::size_t i = 0; i + 1 < at.size(); ++i)
            blocks.push_back({static_cast<std::int32_t>(s), at[i], at[i + 1],
                numbered(at.size() > 2 ? name + "_part" + std::to_string(i + 1) : name, taken),
                blockWords(program, program.segments[s], i, at.size() - 1)});
    }
    return blocks;
}

std::vector<std::pair<std::int32_t, std::int32_t>> blockRuns(
    const DeviceProgram &program, const std::vector<ProgramBlock> &blocks)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> byBegin;
    for (std::size_t b = 0; b < blocks.size(); ++b)
        byBegin[{blocks[b].segment, blocks[b].begin}] = static_cast<std::int32_t>(b);
    std::vector<std::pair<std::int32_t, std::int32_t>> runs;
    for (const ScheduleEntry &entry : program.schedule) {
        const auto [begin, end] = indicesOf(program, entry);
        for (auto at = static_cast<std::int32_t>(begin); at < static_cast<std::int32_t>(end);) {
            const std::int32_t block = byBegin.at({entry.segment, at});
            runs.emplace_back(block, entry.microBatch);
            at = blocks[static_cast<std::size_t>(block)].end;
        }
    }
    return runs;
}

BufferNames::BufferNames(
    const ExecutionPlan &plan, std::int32_t device, const std::vector<ProgramBlock> &blocks)
    : m_plan(plan)
    , m_program(plan.devices[static_cast<std::size_t>(device)])
{
    constexpr std::int32_t kNone = -1;
    constexpr std::int32_t kSeveral = -2;
    std::vector<std::int32_t> blockOf(m_program.buffers.size(), kNone);
    std::vector<bool> added(m_program.buffers.size(), false);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const ProgramBlock &block = blocks[b];
        const auto &all = m_program.segments[static_cast<std::size_t>(block.segment)].instructions;
        for (std::int32_t i = block.begin; i < block.end; ++i) {
            const Instruction &instruction = all[static_cast<std::size_t>(i)];
            for (const BufferList *list : {&instruction.inputs, &instruction.outputs, &instruction.deaths})
                for (const std::int32_t buffer : *list) {
                    if (buffer < 0)
                        continue;
                    std::int32_t &of = blockOf[static_cast<std::size_t>(buffer)];
                    of = of == kNone || of == static_cast<std::int32_t>(b) ? static_cast<std::int32_t>(b)
                                                                           : kSeveral;
                }
            if (instruction.kind == InstructionKind::Accumulate)
                added[static_cast<std::size_t>(instruction.outputs[0])] = true;
        }
    }
    std::set<std::string> taken;
    for (std::size_t b = 0; b < m_program.buffers.size(); ++b) {
        const BufferInfo &info = m_program.buffers[b];
        const bool inOneBlock = blockOf[b] != kSeveral && !added[b];
        BufferHolder holder = BufferHolder::Local;
        if (info.persistent)
            holder = BufferHolder::Weights;
        else if (!inOneBlock)
            holder = info.perMicroBatch ? BufferHolder::MicroBatch : BufferHolder::Sums;
        m_holders.push_back(holder);
        m_names.push_back(holder == BufferHolder::Local
                ? std::string{}
                : numbered(longName(static_cast<std::int32_t>(b)), taken));
    }
}

std::string BufferNames::longName(std::int32_t buffer) const
{
    const BufferInfo &info = m_program.buffers[static_cast<std::size_t>(buffer)];
    std::string name = pythonName(plainName(m_plan.graph->at(info.tensor).name));
    if (!info.summands.empty())
        name += "_partial";
    if (info.place == MemoryPlace::Host)
        name += "_host";
    return name;
}

std::string BufferNames::expressionOf(std::int32_t buffer) const
{
    switch (holderOf(buffer)) {
    case BufferHolder::Weights:
        if (const BufferInfo &info = m_program.buffers[static_cast<std::size_t>(buffer)]; info.versions > 1)
            return "w." + nameOf(buffer - info.staleness) + ".of(m, " + std::to_string(info.staleness) + ")";
        return "w." + nameOf(buffer);
    case BufferHolder::Sums:
        return "s." + nameOf(buffer);
    case BufferHolder::MicroBatch:
        return "m." + nameOf(buffer);
    case BufferHolder::Local:
        break;
    }
    return nameOf(buffer);
}

void BufferNames::beginBlock()
{
    // What code around them is called.
    m_live = {"w", "s", "m", "rank", "run", "torch", "F", "ops"};
}

void BufferNames::bear(std::int32_t buffer, OperatorId op)
{
    if (holderOf(buffer) != BufferHolder::Local)
        return;
    const BufferInfo &info = m_program.buffers[static_cast<std::size_t>(buffer)];
    std::string name = m_plan.graph->at(info.tensor).name;
    const std::string scope = op.valid() ? pathOf(*m_plan.graph, m_plan.graph->at(op).scope) + "." : ".";
    if (scope.size() > 1 && name.starts_with(scope) && name.size() > scope.size())
        name.erase(0, scope.size());
    name = pythonName(plainName(name));
    if (!info.summands.empty())
        name += "_partial";
    m_names[static_cast<std::size_t>(buffer)] = numbered(name, m_live);
}

void BufferNames::bury(std::int32_t buffer)
{
    if (holderOf(buffer) == BufferHolder::Local)
        m_live.erase(nameOf(buffer));
}

} // namespace planloom
