#include "engine/verify/device_run.h"

#include "engine/base/words.h"
#include "engine/verify/instruction_rules.h"
#include "engine/verify/type_rules.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr std::int32_t kOfStep = -1; ///< No update's own: what the prologue makes.
constexpr std::int32_t kMixed = -2; ///< Added up over several updates: nobody may read it.

} // namespace

DeviceRun::DeviceRun(const ExecutionPlan &plan, const Specification &specification, std::int32_t device)
    : m_plan(plan)
    , m_specification(specification)
    , m_program(plan.devices[at(device)])
    , m_device(device)
{
    for (const BufferInfo &buffer : m_program.buffers) {
        const std::size_t instances = buffer.perMicroBatch ? at(plan.microBatches) : 1;
        m_buffers.push_back({.life = std::vector<Life>(instances, Life::Unwritten),
            .missing = std::vector<std::int64_t>(instances, 0),
            .updates = -buffer.staleness,
            .madeIn = kOfStep});
    }
    for (const Segment &segment : m_program.segments)
        m_checkedAt.emplace_back(segment.instructions.size(), 0);
}

std::string DeviceRun::nameOfBuffer(std::int32_t buffer) const
{
    return "'" + m_plan.graph->at(info(buffer).tensor).name + "'";
}

std::int32_t DeviceRun::updateAt() const
{
    return m_entry < m_program.schedule.size() ? updateOf(m_plan, microBatch()) : m_plan.updates - 1;
}

/// What the prologue makes serves the whole step, but for weights, which change with every update.
bool DeviceRun::isOfStep(std::int32_t buffer) const
{
    return m_program.segments[at(segment())].kind == SegmentKind::Prologue
        && !m_specification.at(info(buffer).tensor).update;
}

std::string DeviceRun::load(const Instruction &instruction)
{
    if (instruction.kind != InstructionKind::Load)
        return "set-up only loads persistent buffers";
    const Side side = sideOf(instruction);
    for (const auto check : {&checkLocal, &checkBufferTypes})
        if (std::string reason = check(m_plan, m_specification, side); !reason.empty())
            return reason;
    const std::int32_t buffer = instruction.outputs[0];
    if (!info(buffer).persistent)
        return "set-up only loads persistent buffers";
    if (std::exchange(m_buffers[at(buffer)].life[0], Life::Alive) != Life::Unwritten)
        return "a persistent buffer is loaded twice";
    return {};
}

std::string DeviceRun::setUp()
{
    for (const BufferInfo &buffer : m_program.buffers)
        if (buffer.persistent && buffer.perMicroBatch)
            return "a persistent buffer cannot belong to a micro-batch";
    for (const Instruction &instruction : m_program.setup)
        if (std::string reason = load(instruction); !reason.empty())
            return reason;
    // A version that this step does not read is read by one of the next.
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(m_buffers.size()); ++b)
        if (info(b).persistent && info(b).versions > 1 && m_buffers[at(b)].life[0] != Life::Alive)
            return "the version of " + nameOfBuffer(b) + " of " + counted(info(b).staleness, "update")
                + " ago is never loaded";
    goOn();
    return {};
}

const Instruction *DeviceRun::current() const
{
    return m_entry < m_program.schedule.size()
        ? &m_program.segments[at(segment())].instructions[m_instruction]
        : nullptr;
}

Content DeviceRun::contentOf(const Instruction &instruction, std::int32_t index, bool written) const
{
    Content content;
    if (index < 0)
        return content;
    const BufferInfo &buffer = info(index);
    content.dataType = buffer.dataType;
    content.tensor = buffer.tensor;
    // What an update writes is the newest version of all.
    content.staleness = written && buffer.persistent ? 0 : buffer.staleness;
    if (!written && isUpdated(index)) {
        content.tensor = m_specification.at(buffer.tensor).update;
        content.staleness = 0;
    }
    content.box = &buffer.index;
    content.summands = &buffer.summands;
    content.valuePart = buffer.valuePart;
    content.unweighed = buffer.unweighed;
    content.perMicroBatch = buffer.perMicroBatch;
    content.persistent = buffer.persistent;
    content.inPlace = written && updatesInPlace(m_plan, m_program, instruction, index);
    content.share = buffer.share;
    content.shardDimension = buffer.shardDimension;
    content.shardEnd = buffer.shardEnd;
    return content;
}

Side DeviceRun::sideOf(const Instruction &instruction) const
{
    Side side;
    side.device = DeviceId{m_device};
    side.instruction = &instruction;
    for (const std::int32_t index : instruction.inputs)
        side.inputs.push_back(contentOf(instruction, index, false));
    for (const std::int32_t index : instruction.outputs)
        side.outputs.push_back(contentOf(instruction, index, true));
    return side;
}

std::string DeviceRun::checkReadable(std::int32_t index) const
{
    const BufferInfo &buffer = info(index);
    const BufferState &state = m_buffers[at(index)];
    const std::string reads = nameOf(current()->kind);
    if (const Life life = state.life[instanceOf(index)]; life != Life::Alive)
        return reads + " reads " + nameOfBuffer(index)
            + (life == Life::Dead ? " after it died" : " before it is written");
    if (buffer.persistent && m_specification.at(buffer.tensor).update && !isUpdated(index)
        && updatesOf(index) != updateAt() - buffer.staleness)
        return reads + " reads the version of " + nameOfBuffer(index) + " of "
            + counted(buffer.staleness, "update") + " before number " + std::to_string(updateAt())
            + ", found that of number " + std::to_string(updatesOf(index));
    if (!buffer.persistent && !buffer.perMicroBatch && state.madeIn != kOfStep && state.madeIn != updateAt())
        return reads + " of update " + std::to_string(updateAt()) + " reads the " + nameOfBuffer(index)
            + " of "
            + (state.madeIn == kMixed ? std::string("several updates together")
                                      : "update " + std::to_string(state.madeIn));
    if (const std::int64_t missing = state.missing[instanceOf(index)]; missing > 0)
        return nameOfBuffer(index) + " is read while " + std::to_string(missing)
            + " of its contributions are missing";
    return {};
}

bool DeviceRun::isKnown()
{
    std::int32_t &checked = m_checkedAt[at(segment())][m_instruction];
    return std::exchange(checked, epoch()) == epoch();
}

std::string DeviceRun::begin() const
{
    const Instruction &instruction = *current();
    for (const std::int32_t index : instruction.inputs)
        if (index >= 0)
            if (std::string reason = checkReadable(index); !reason.empty())
                return reason;
    for (const std::int32_t index : instruction.outputs) {
        if (index < 0)
            continue;
        const BufferState &state = m_buffers[at(index)];
        const Life life = state.life[instanceOf(index)];
        if (info(index).persistent) {
            if (life != Life::Alive)
                return "a persistent buffer is written before it is loaded";
        } else if (life == Life::Dead && !info(index).perMicroBatch && state.madeIn >= 0
            && state.madeIn < updateAt()) {
            // Every update makes its own.
        } else if (life != Life::Unwritten
            && !(instruction.kind == InstructionKind::Accumulate && life == Life::Alive)
            && !updatesInPlace(m_plan, m_program, instruction, index))
            return nameOfBuffer(index) + " is written twice";
    }
    return {};
}

std::string DeviceRun::finish()
{
    const Instruction &instruction = *current();
    for (const std::int32_t index : instruction.outputs) {
        if (index < 0)
            continue;
        BufferState &state = m_buffers[at(index)];
        const std::int32_t now = isOfStep(index) ? kOfStep : updateAt();
        const bool adds = std::exchange(state.life[instanceOf(index)], Life::Alive) == Life::Alive
            && instruction.kind == InstructionKind::Accumulate;
        state.madeIn = adds && state.madeIn != now ? kMixed : now;
    }
    for (const std::int32_t index : instruction.deaths) {
        if (info(index).persistent)
            return "a persistent buffer cannot die";
        if (std::exchange(m_buffers[at(index)].life[instanceOf(index)], Life::Dead) != Life::Alive)
            return nameOfBuffer(index) + " dies without being alive";
    }
    ++m_instruction;
    goOn();
    return {};
}

/// From the end of a schedule entry to the next one that holds an instruction.
void DeviceRun::goOn()
{
    while (m_entry < m_program.schedule.size() && m_instruction >= indicesOf(m_program, entry()).second)
        if (++m_entry < m_program.schedule.size())
            m_instruction = indicesOf(m_program, entry()).first;
}

std::string DeviceRun::accumulate()
{
    const BufferInfo &input = info(current()->inputs[0]);
    const std::int32_t index = current()->outputs[0];
    const BufferInfo &output = info(index);
    BufferState &state = m_buffers[at(index)];
    const auto count =
        output.summands.empty() ? at(m_specification.at(output.tensor).summandCount) : output.summands.size();
    const auto microBatches = at(m_plan.microBatches);
    // What belongs to a micro-batch adds up within it, part by part.
    const bool isAlive = !output.perMicroBatch && state.life[0] == Life::Alive;
    if (isAlive && state.madeIn != updateAt())
        return {}; // mixed
    const bool begins = !output.perMicroBatch && !isAlive; // with every update
    if (state.added.empty() || begins) {
        state.added.assign(count * microBatches, false);
        const auto each = output.perMicroBatch ? count : count * at(microBatchesPerUpdate(m_plan));
        std::fill(state.missing.begin(), state.missing.end(), static_cast<std::int64_t>(each));
    }
    SummandSet summands = input.summands;
    for (std::size_t all = summands.empty() ? count : 0; all > 0; --all)
        summands.push_back(static_cast<std::int32_t>(summands.size()));
    for (const std::int32_t summand : summands) {
        std::size_t position = at(summand);
        if (!output.summands.empty())
            position = static_cast<std::size_t>(
                std::lower_bound(output.summands.begin(), output.summands.end(), summand)
                - output.summands.begin());
        if (position >= count)
            return "accumulate adds a summand that its buffer does not hold";
        const std::size_t bit = position * microBatches + at(microBatch());
        if (state.added[bit])
            return "a summand of " + nameOfBuffer(index) + " is added twice in micro-batch "
                + std::to_string(microBatch());
        state.added[bit] = true;
        --state.missing[instanceOf(index)];
    }
    return {};
}

std::string DeviceRun::update(std::int32_t index)
{
    const BufferInfo &buffer = info(index);
    if (isUpdated(index))
        return nameOfBuffer(index) + " is updated twice";
    if (buffer.staleness + 1 != buffer.versions && buffer.persistent)
        return "an update of " + nameOfBuffer(index) + " writes over the version of "
            + counted(buffer.staleness, "update") + " ago, expected the oldest, of "
            + counted(buffer.versions - 1, "update") + " ago";
    std::int32_t &updates = m_buffers[at(bufferOfVersion(buffer, index, updateAt()))].updates;
    if (updates != updateAt() + 1 - buffer.versions && buffer.persistent)
        return nameOfBuffer(index) + " misses an update before number " + std::to_string(updateAt());
    updates = updateAt() + 1;
    ++m_epoch;
    return {};
}

std::string DeviceRun::apply()
{
    const Instruction &instruction = *current();
    switch (instruction.kind) {
    case InstructionKind::Kernel:
        if (m_plan.graph->at(instruction.op).direction != Direction::Optimizer)
            return {};
        for (const std::int32_t index : instruction.outputs)
            if (index >= 0
                && (info(index).persistent || updatesInPlace(m_plan, m_program, instruction, index)))
                if (std::string reason = update(index); !reason.empty())
                    return reason;
        return {};
    case InstructionKind::Accumulate:
        return accumulate();
    case InstructionKind::Offload:
        return info(instruction.outputs[0]).persistent ? update(instruction.outputs[0]) : std::string{};
    case InstructionKind::Update:
        return update(instruction.outputs[0]);
    case InstructionKind::Load:
        return info(instruction.outputs[0]).persistent ? "a persistent buffer is loaded again"
                                                       : std::string{};
    default:
        return {};
    }
}

std::string DeviceRun::checkEnd() const
{
    for (std::int32_t b = 0; b < static_cast<std::int32_t>(m_buffers.size()); ++b) {
        const BufferInfo &buffer = info(b);
        if (buffer.persistent && m_specification.at(buffer.tensor).update
            && buffer.staleness + 1 == buffer.versions && !isUpdated(b))
            return nameOfBuffer(b) + " is not updated on this device";
        const auto &life = m_buffers[at(b)].life;
        if (const auto left = std::find(life.begin(), life.end(), Life::Alive);
            buffer.perMicroBatch && left != life.end())
            return nameOfBuffer(b) + " never dies in micro-batch " + std::to_string(left - life.begin());
    }
    return {};
}

} // namespace planloom
