// What of the backward pass runs in blocks of weight gradients.

#include "engine/graph/operators/gradient_flow.h"
#include "engine/lowering/lowered_blocks.h"

#include <algorithm>

namespace planloom {

/// By tensor: gradients of what is made of weights alone that a coshard region reads, itself or through other
/// operators.
std::vector<bool> LoweredBlocks::readByTurns(const std::vector<bool> &areOfWeights) const
{
    std::vector<bool> read(m_work.graph.tensors.size(), false);
    for (std::size_t o = m_work.graph.operators.size(); o-- > 0;) { // readers stand behind makers
        const Operator &op = m_work.graph.operators[o];
        const auto isRead = [&](TensorId tensor) { return tensor && read[at(tensor)]; };
        if (op.direction != Direction::Backward
            || (m_regionOf[o] < 0 && std::none_of(op.outputs.begin(), op.outputs.end(), isRead)))
            continue;
        for (const TensorId input : op.inputs)
            if (input && areOfWeights[at(input)])
                read[at(input)] = true;
    }
    return read;
}

/// Finds what runs in blocks of weight gradients, and makes those. An operator that makes gradients of both
/// kinds runs twice, half each, if it is a product: that is a product for each anyway. Others (a
/// normalization, say) make both from what they have to compute once; they stay with the gradients of inputs.
///
/// What is made of weights alone goes through several operators (positions that were looked up, in another
/// shape). Those that read what a block of weight gradients made run in one, too, whether or not rows name
/// them; where one of them takes turns, which is done in one pass, those before it stay with it.
void LoweredBlocks::splitBackwardPasses()
{
    m_weightGradient.resize(static_cast<std::size_t>(m_work.plan.stageCount));
    m_inWeightGradient.assign(m_work.graph.operators.size(), false);
    if (std::none_of(m_work.plan.decisions.begin(), m_work.plan.decisions.end(),
            [](const OperatorDecision &decision) { return decision.splitBackward; }))
        return;
    const std::vector<bool> areOfWeights = gradientsOfWeights(m_work.graph);
    const std::vector<bool> staysAlong = readByTurns(areOfWeights);
    std::vector<bool> isMovedAlong(
        m_work.graph.tensors.size(), false); // a block of weight gradients makes it
    std::vector<bool> anyOf(m_weightGradient.size(), false);
    for (std::size_t o = 0; o < m_work.graph.operators.size(); ++o) {
        const Operator &op = m_work.graph.operators[o];
        const OperatorDecision &decision = m_work.plan.decisions[o];
        const auto isIn = [](const std::vector<bool> &set) {
            return [&set](TensorId tensor) { return tensor && set[at(tensor)]; };
        };
        if (op.direction != Direction::Backward
            || (!decision.splitBackward
                && std::none_of(op.inputs.begin(), op.inputs.end(), isIn(isMovedAlong)))
            || std::any_of(op.outputs.begin(), op.outputs.end(), isIn(staysAlong)))
            continue;
        std::vector<bool> ofWeights(op.outputs.size(), false);
        std::vector<bool> others(op.outputs.size(), false);
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (const TensorId output = op.outputs[slot]; output && m_work.isWanted(output))
                (areOfWeights[at(output)] ? ofWeights : others)[slot] = true;
        const auto any = [](const std::vector<bool> &list) {
            return std::find(list.begin(), list.end(), true) != list.end();
        };
        if (!any(ofWeights) || (any(others) && categoryOf(op.kind) != OperatorCategory::Product))
            continue;
        if (any(others))
            m_halves.emplace(static_cast<std::int32_t>(o),
                std::pair(
                    partOfBackward(m_work.graph, op, others), partOfBackward(m_work.graph, op, ofWeights)));
        m_inWeightGradient[o] = true;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (ofWeights[slot])
                isMovedAlong[static_cast<std::size_t>(op.outputs[slot].index)] = true;
        anyOf[static_cast<std::size_t>(decision.stage.index)] = true;
    }
    for (std::int32_t s = 0; s < m_work.plan.stageCount; ++s) {
        if (!anyOf[static_cast<std::size_t>(s)])
            continue;
        for (const std::int32_t input : m_backward[static_cast<std::size_t>(s)]) {
            m_work.builder.blocks()[static_cast<std::size_t>(input)].kind = SegmentKind::InputGradient;
            const double rank =
                m_work.builder.block(m_backward.front().front()).rank + m_work.builder.block(input).rank;
            m_weightGradient[static_cast<std::size_t>(s)].push_back(
                addBlockOf(SegmentKind::WeightGradient, s, static_cast<std::int32_t>(cellOf(input)), rank));
        }
    }
}

const Operator &LoweredBlocks::shareOf(OperatorId id, std::int32_t block) const
{
    const auto halves = m_halves.find(id.index);
    if (halves == m_halves.end())
        return m_work.graph.at(id);
    const bool ofWeights = m_work.builder.block(block).kind == SegmentKind::WeightGradient;
    return ofWeights ? halves->second.second : halves->second.first;
}

std::int32_t LoweredBlocks::weightBlockOf(OperatorId id) const
{
    const auto o = at(id);
    const std::int32_t last = m_blocksOf[o].back();
    return m_halves.contains(id.index)
        ? m_weightGradient[static_cast<std::size_t>(m_work.plan.decisions[o].stage.index)][cellOf(last)]
        : last;
}

} // namespace planloom
