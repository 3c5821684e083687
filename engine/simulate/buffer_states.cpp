#include "engine/simulate/buffer_states.h"

#include "engine/base/ids.h"

#include <utility>

namespace planloom {

namespace {

constexpr std::int32_t kBits = 64; ///< Of a word.

} // namespace

std::vector<bool> touchedByOthers(const CompiledProgram &program)
{
    std::vector<bool> touched;
    touched.reserve(program.buffers.size());
    for (const BufferSlot &slot : program.buffers)
        touched.push_back(slot.versions > 1); // versions take turns in one another's places
    for (const CompiledInstruction &instruction : program.instructions) {
        if (instruction.queue == QueueKind::Compute && instruction.channel < 0)
            continue;
        for (std::int32_t k = instruction.inputBegin; k < instruction.deathEnd; ++k)
            touched[at(program.operands[at(k)])] = true;
    }
    return touched;
}

BufferStates::BufferStates(
    const CompiledProgram &program, std::int32_t microBatches, std::vector<bool> shared)
    : m_program(&program)
    , m_shared(std::move(shared))
    , m_stepWords(at(program.singleCount / kBits + 1))
    , m_ownWords(at(program.perMicroBatchCount / kBits + 1))
    , m_there(m_stepWords + at(microBatches) * m_ownWords, 0)
    , m_ownPlace(program.buffers.size(), -1)
{
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
        if (m_shared[b] && program.buffers[b].perMicroBatch)
            m_ownPlace[b] = static_cast<std::int32_t>(m_sharedOwn++);
    m_times.resize(at(program.singleCount) + at(microBatches) * m_sharedOwn);
}

void BufferStates::hold(std::int32_t buffer)
{
    const std::int32_t place = slotOf(buffer).index; // of its first version
    m_there[at(place / kBits)] |= std::uint64_t{1} << (place % kBits);
    m_times[at(place)].there = 0;
}

} // namespace planloom
