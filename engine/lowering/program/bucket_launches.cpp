#include "engine/lowering/program/bucket_launches.h"

#include <algorithm>

namespace planloom {

namespace {

bool isCollective(const Instruction &instruction)
{
    return isCommunication(instruction.kind) && (instruction.group >= 0 || instruction.acrossUnits);
}

} // namespace

bool BucketLaunches::continues(const Instruction &collective) const
{
    const Launch &own = m_launches[static_cast<std::size_t>(queueOf(collective))];
    const auto isNew = [&](std::int32_t input) {
        const auto i = static_cast<std::size_t>(input);
        return input >= 0 && i < m_madeIn.size() && m_madeIn[i] == own.number;
    };
    return isCollective(collective) && own.last && own.last->kind == collective.kind
        && own.last->group == collective.group && own.last->acrossUnits == collective.acrossUnits
        && own.last->combination == collective.combination
        && std::none_of(collective.inputs.begin(), collective.inputs.end(), isNew);
}

void BucketLaunches::add(const Instruction &instruction)
{
    Launch &own = m_launches[static_cast<std::size_t>(queueOf(instruction))];
    if (isCollective(instruction)) {
        if (!continues(instruction))
            own.number = ++m_begun;
        own.last = &instruction;
    } else if (isCommunication(instruction.kind)) {
        own = {}; // sends between them are launches of their own
    }
    for (const std::int32_t output : instruction.outputs)
        if (output >= 0 && own.last) {
            if (m_madeIn.size() <= static_cast<std::size_t>(output))
                m_madeIn.resize(static_cast<std::size_t>(output) + 1, 0);
            m_madeIn[static_cast<std::size_t>(output)] = own.number;
        }
}

} // namespace planloom
