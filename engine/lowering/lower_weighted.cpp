// Operators whose parts make means under a softmax: weighed by their log-sum-exps, they are summands.

#include "engine/lowering/lowering.h"

namespace planloom {

Result<Lowering::Weighing> Lowering::weighingOf(OperatorId id) const
{
    const Operator &op = m_graph.at(id);
    const std::size_t slots = op.outputs.size();
    Weighing weighing{std::vector<std::int32_t>(slots, -1), std::vector<bool>(slots, false),
        std::vector<std::vector<Holding>>(slots)};
    for (std::size_t slot = 0; slot < slots; ++slot) {
        const std::int32_t by = weightsOf(op.annotation, slot);
        if (by < 0 || !isInParts(op.outputs[slot]))
            continue;
        weighing.by[slot] = by;
        weighing.weighs[static_cast<std::size_t>(by)] = true;
        // They would be those of one part alone.
        if (probabilitiesOutput(op) >= 0
            && m_plan.decisions[static_cast<std::size_t>(id.index)].attention == AttentionMode::Plain)
            return Error{ErrorCode::NotSupported,
                "'" + op.name + "' keeps its probabilities, which parts of the keys do not make",
                "make it fused, or cut another dimension", "operator:" + op.name};
    }
    return weighing;
}

Result<void> Lowering::weighParts(OperatorId id, std::int32_t block, const Weighing &weighing)
{
    const Operator &op = m_graph.at(id);
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const auto &made = weighing.made[slot];
        if (weighing.by[slot] < 0 || made.empty())
            continue;
        const auto by = static_cast<std::size_t>(weighing.by[slot]);
        TRY(auto weighed,
            m_materializer.weigh(op.outputs[slot], made, op.outputs[by], weighing.made[by], block, id));
        for (Holding &summand : weighed)
            m_materializer.made(op.outputs[slot], block, std::move(summand), made.size());
    }
    return {};
}

} // namespace planloom
