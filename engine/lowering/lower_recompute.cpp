// What is dropped after the forward pass and made again before the backward pass reads it.

#include "engine/lowering/lowering.h"
#include "engine/plan/run_again.h"

#include <algorithm>

namespace planloom {

namespace {

bool isForward(const Graph &graph, OperatorId id)
{
    return graph.at(id).direction == Direction::Forward;
}

} // namespace

/// Runs again, in `block`, the forward operators whose dropped outputs this backward operator reads.
Result<void> Lowering::recomputeFor(OperatorId backward, std::int32_t block)
{
    const StageId stage = m_builder.block(block).stage;
    const std::int32_t region = m_regionOf[static_cast<std::size_t>(backward.index)];
    for (const TensorId input : shareOf(backward, block).inputs) {
        if (!input)
            continue;
        for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(input.index)]) {
            const auto p = static_cast<std::size_t>(producer.index);
            const std::int32_t group = m_plan.decisions[p].recomputeGroup;
            if (group < 0 || !isInStage(producer, Direction::Forward, stage))
                continue;
            // A region makes what it reads itself in its own turns, and others read what it kept.
            if ((region >= 0 && m_regionOf[p] == region) || m_takesTurns[static_cast<std::size_t>(group)])
                continue;
            TRY_VOID(recomputeGroup(group, block));
        }
    }
    return {};
}

/// Runs a group again, unless it was: only what some backward operator of this stage reads, or a coshard
/// region of the group when it runs again, and what that is made from.
Result<void> Lowering::recomputeGroup(std::int32_t group, std::int32_t block)
{
    const std::int32_t stage = m_builder.block(block).stage.index;
    const std::int32_t lane = m_builder.block(block).lane;
    if (!m_recomputed.insert({group, stage, lane}).second)
        return {};
    const auto groupOf = [&](OperatorId id) {
        return m_plan.decisions[static_cast<std::size_t>(id.index)].recomputeGroup;
    };
    const auto regionOf = [&](OperatorId id) { return m_regionOf[static_cast<std::size_t>(id.index)]; };
    const auto isReader = [&](OperatorId consumer, OperatorId maker) {
        if (regionOf(consumer) >= 0 && regionOf(consumer) == regionOf(maker))
            return false;
        return isForward(m_graph, consumer) ? regionOf(consumer) >= 0 && groupOf(consumer) == group
                                            : isInStage(consumer, Direction::Backward, StageId{stage});
    };
    std::vector<OperatorId> dropped = forwardOperators(block);
    std::erase_if(dropped, [&](OperatorId id) { return groupOf(id) != group; });
    const std::vector<OperatorId> again = runAgain(m_graph, dropped, [&](OperatorId maker, TensorId output) {
        const auto &consumers = m_uses.consumers[static_cast<std::size_t>(output.index)];
        return std::any_of(consumers.begin(), consumers.end(),
            [&](OperatorId consumer) { return isReader(consumer, maker); });
    });
    for (const OperatorId id : again)
        for (const TensorId output : m_graph.at(id).outputs)
            if (output)
                // By the forward pass, or by a region's turns where the backward pass is split.
                for (const std::int32_t made : m_materializer.makersOf(output))
                    if (made != block && m_builder.block(made).lane == lane)
                        m_materializer.forget(output, made, block);
    return emitInOrder(again, block, true);
}

} // namespace planloom
