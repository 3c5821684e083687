#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/gradient_flow.h"
#include "engine/lowering/lowering.h"

#include <algorithm>

namespace planloom {

/// By tensor: gradients of what is made of weights alone that a coshard region reads, itself or through other
/// operators.
std::vector<bool> Lowering::readByTurns(const std::vector<bool> &areOfWeights) const
{
    std::vector<bool> read(m_graph.tensors.size(), false);
    for (std::size_t o = m_graph.operators.size(); o-- > 0;) { // readers stand behind makers
        const Operator &op = m_graph.operators[o];
        const auto isRead = [&](TensorId tensor) {
            return tensor && read[static_cast<std::size_t>(tensor.index)];
        };
        if (op.direction != Direction::Backward
            || (m_regionOf[o] < 0 && std::none_of(op.outputs.begin(), op.outputs.end(), isRead)))
            continue;
        for (const TensorId input : op.inputs)
            if (input && areOfWeights[static_cast<std::size_t>(input.index)])
                read[static_cast<std::size_t>(input.index)] = true;
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
void Lowering::splitBackwardPasses()
{
    m_weightGradient.resize(static_cast<std::size_t>(m_plan.stageCount));
    m_inWeightGradient.assign(m_graph.operators.size(), false);
    if (std::none_of(m_plan.decisions.begin(), m_plan.decisions.end(),
            [](const OperatorDecision &decision) { return decision.splitBackward; }))
        return;
    const std::vector<bool> areOfWeights = gradientsOfWeights(m_graph);
    const std::vector<bool> staysAlong = readByTurns(areOfWeights);
    std::vector<bool> isMovedAlong(m_graph.tensors.size(), false); // a block of weight gradients makes it
    std::vector<bool> anyOf(m_weightGradient.size(), false);
    for (std::size_t o = 0; o < m_graph.operators.size(); ++o) {
        const Operator &op = m_graph.operators[o];
        const OperatorDecision &decision = m_plan.decisions[o];
        const auto isIn = [](const std::vector<bool> &set) {
            return [&set](TensorId tensor) { return tensor && set[static_cast<std::size_t>(tensor.index)]; };
        };
        if (op.direction != Direction::Backward
            || (!decision.splitBackward
                && std::none_of(op.inputs.begin(), op.inputs.end(), isIn(isMovedAlong)))
            || std::any_of(op.outputs.begin(), op.outputs.end(), isIn(staysAlong)))
            continue;
        std::vector<bool> ofWeights(op.outputs.size(), false);
        std::vector<bool> others(op.outputs.size(), false);
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (const TensorId output = op.outputs[slot]; output && isWanted(output))
                (areOfWeights[static_cast<std::size_t>(output.index)] ? ofWeights : others)[slot] = true;
        const auto any = [](const std::vector<bool> &list) {
            return std::find(list.begin(), list.end(), true) != list.end();
        };
        if (!any(ofWeights) || (any(others) && categoryOf(op.kind) != OperatorCategory::Product))
            continue;
        if (any(others))
            m_halves.emplace(static_cast<std::int32_t>(o),
                std::pair(partOfBackward(m_graph, op, others), partOfBackward(m_graph, op, ofWeights)));
        m_inWeightGradient[o] = true;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
            if (ofWeights[slot])
                isMovedAlong[static_cast<std::size_t>(op.outputs[slot].index)] = true;
        anyOf[static_cast<std::size_t>(decision.stage.index)] = true;
    }
    for (std::int32_t s = 0; s < m_plan.stageCount; ++s) {
        if (!anyOf[static_cast<std::size_t>(s)])
            continue;
        for (const std::int32_t input : m_backward[static_cast<std::size_t>(s)]) {
            m_builder.blocks()[static_cast<std::size_t>(input)].kind = SegmentKind::InputGradient;
            const double rank =
                m_builder.block(m_backward.front().front()).rank + m_builder.block(input).rank;
            m_weightGradient[static_cast<std::size_t>(s)].push_back(
                addBlockOf(SegmentKind::WeightGradient, s, static_cast<std::int32_t>(cellOf(input)), rank));
        }
    }
}

/// The operator, with invalid ids for what `block` neither reads nor makes of it.
const Operator &Lowering::shareOf(OperatorId id, std::int32_t block) const
{
    const auto halves = m_halves.find(id.index);
    if (halves == m_halves.end())
        return m_graph.at(id);
    const bool ofWeights = m_builder.block(block).kind == SegmentKind::WeightGradient;
    return ofWeights ? halves->second.second : halves->second.first;
}

/// The last block that an operator makes gradients of weights in.
std::int32_t Lowering::weightBlockOf(OperatorId id) const
{
    const auto o = static_cast<std::size_t>(id.index);
    const std::int32_t last = m_blocksOf[o].back();
    return m_halves.contains(id.index)
        ? m_weightGradient[static_cast<std::size_t>(m_plan.decisions[o].stage.index)][cellOf(last)]
        : last;
}

} // namespace planloom
