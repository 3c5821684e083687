// Coshard regions are operators that run part by part:
//
//     forward     x --> [a 0]-[b 0] --> y 0     x --> [a 1]-[b 1] --> y 1     y = y 0 + y 1, or side by side
//     backward    [a 0]-[b 0'a 0'] --> dx 0     [a 1]-[b 1'a 1'] --> dx 1
//
// Between turns live what the region reads, and what it makes for others; sums over the parts grow in one
// buffer. All devices take the same turns, so that communication inside a region keeps one order.

#include "engine/lowering/pass_emitter.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/plan/run_again.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace planloom {

PassEmitter::PassEmitter(LoweringWork &work, const LoweredBlocks &blocks, BlockInputs &inputs,
    OperatorEmitter &operators, TurnSums &sums)
    : m_work(work)
    , m_blocks(blocks)
    , m_inputs(inputs)
    , m_operators(operators)
    , m_sums(sums)
{
}

std::size_t PassEmitter::regionEnd(const std::vector<OperatorId> &operators, std::size_t begin) const
{
    const auto regionOf = [&](std::size_t i) { return m_blocks.regionOf(operators[i]); };
    std::size_t end = begin + 1;
    while (regionOf(begin) >= 0 && end < operators.size() && regionOf(end) == regionOf(begin))
        ++end;
    return end;
}

Result<void> PassEmitter::emit(const std::vector<OperatorId> &operators, std::int32_t block, bool recompute)
{
    for (std::size_t i = 0; i < operators.size();) {
        const std::size_t begin = std::exchange(i, regionEnd(operators, i));
        const OperatorId id = operators[begin];
        if (m_blocks.regionOf(id) >= 0) {
            TRY_VOID(emitRegion({operators.begin() + static_cast<std::ptrdiff_t>(begin),
                                    operators.begin() + static_cast<std::ptrdiff_t>(i)},
                block, recompute));
            continue;
        }
        if (m_work.graph.at(id).direction == Direction::Backward)
            TRY_VOID(recomputeFor(id, block));
        TRY_VOID(m_operators.emit(id, block, recompute));
    }
    return {};
}

/// What a region's backward operators read that its forward operators, or others, dropped: others make it
/// again, what the region's did is forgotten.
/// @return operators of the region that are to run again before `members`
Result<std::vector<OperatorId>> PassEmitter::prepareAgain(
    const std::vector<OperatorId> &members, std::int32_t block)
{
    if (m_work.graph.at(members.front()).direction != Direction::Backward)
        return std::vector<OperatorId>{};
    for (const OperatorId id : members)
        TRY_VOID(recomputeFor(id, block));
    std::vector<OperatorId> again = readAgain(members, block);
    // What a larger group drops is made again first.
    for (const OperatorId id : again)
        for (const TensorId tensor : m_work.graph.at(id).inputs)
            if (tensor)
                for (const OperatorId producer : m_work.uses.producers[at(tensor)])
                    if (m_work.decisionOf(producer).recomputeGroup == m_work.decisionOf(id).recomputeGroup
                        && m_blocks.regionOf(producer) != m_blocks.regionOf(id))
                        TRY_VOID(recomputeGroup(m_work.decisionOf(id).recomputeGroup, block));
    for (const OperatorId id : again)
        for (const TensorId output : m_work.graph.at(id).outputs) {
            if (!output)
                continue;
            for (const std::int32_t made : m_blocks.of(id))
                if (m_work.builder.block(made).lane == m_work.builder.block(block).lane)
                    m_work.materializer.forget(output, made, block);
            m_work.materializer.forget(output, block, block);
        }
    return again;
}

Result<void> PassEmitter::emitRegion(
    const std::vector<OperatorId> &members, std::int32_t block, bool recompute)
{
    TRY(std::vector<OperatorId> all, prepareAgain(members, block));
    const std::size_t again = all.size();
    all.insert(all.end(), members.begin(), members.end());
    TRY_VOID(bringToRegion(all, block));
    m_sums.choose(members);
    for (std::int32_t turn = 0; turn < turnsOf(m_work.decisionOf(members.front())); ++turn) {
        m_work.materializer.beginTurn(turn);
        for (std::size_t i = 0; i < all.size(); ++i)
            TRY_VOID(m_operators.emit(all[i], block, recompute || i < again, turn));
    }
    std::set<TensorId> made;
    std::set<TensorId> read;
    for (const OperatorId id : all) {
        made.insert(m_work.graph.at(id).outputs.begin(), m_work.graph.at(id).outputs.end());
        read.insert(m_work.graph.at(id).inputs.begin(), m_work.graph.at(id).inputs.end());
    }
    std::vector<TensorId> fromOutside;
    std::copy_if(read.begin(), read.end(), std::back_inserter(fromOutside),
        [&](TensorId tensor) { return tensor.valid() && made.count(tensor) == 0; });
    m_work.materializer.endTurns(block, fromOutside);
    m_sums.handOut(block);
    return {};
}

/// The forward operators of a region that have to run again for `members`, its backward ones: those whose
/// dropped outputs they read, and what those are made from.
std::vector<OperatorId> PassEmitter::readAgain(
    const std::vector<OperatorId> &members, std::int32_t block) const
{
    const std::int32_t region = m_blocks.regionOf(members.front());
    std::set<TensorId> read;
    for (const OperatorId id : members)
        read.insert(m_work.graph.at(id).inputs.begin(), m_work.graph.at(id).inputs.end());
    std::vector<OperatorId> dropped = m_blocks.forwardOperators(block);
    std::erase_if(dropped, [&](OperatorId id) {
        return m_blocks.regionOf(id) != region || m_work.decisionOf(id).recomputeGroup < 0;
    });
    return runAgain(
        m_work.graph, dropped, [&](OperatorId, TensorId output) { return read.contains(output); });
}

bool PassEmitter::comesFromElsewhere(TensorId tensor, StageId stage) const
{
    const auto &producers = m_work.uses.producers[at(tensor)];
    return std::any_of(producers.begin(), producers.end(), [&](OperatorId producer) {
        const std::int32_t from = m_blocks.of(producer).front();
        return from != m_blocks.prologue() && m_work.builder.block(from).stage != stage;
    });
}

/// What other stages made comes whole, not in a message for each turn. But for what `operators` themselves
/// make summands of: that is only complete once they have run.
Result<void> PassEmitter::bringToRegion(const std::vector<OperatorId> &operators, std::int32_t block)
{
    struct Wanted {
        OperatorId op{};
        std::map<DeviceId, std::set<IndexMask>> boxes{};
    };
    std::map<std::pair<TensorId, DataType>, Wanted> wanted;
    const StageId stage = m_work.builder.block(block).stage;
    std::set<TensorId> made;
    for (const OperatorId id : operators)
        made.insert(m_work.graph.at(id).outputs.begin(), m_work.graph.at(id).outputs.end());
    for (const OperatorId id : operators) {
        const auto &inputs = m_work.graph.at(id).inputs;
        for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
            if (!inputs[slot] || m_work.isLeftOut(id, false, slot) || made.count(inputs[slot]) > 0)
                continue;
            if (!comesFromElsewhere(inputs[slot], stage))
                continue;
            Wanted &want = wanted[{inputs[slot], m_work.types.read(id, slot)}];
            want.op = id;
            const auto &parts = m_work.partsOf(id);
            for (std::size_t p = 0; p < parts.size(); ++p)
                if (m_blocks.isDue(id, static_cast<std::int32_t>(p), block, true, -1))
                    want.boxes[parts[p].device].insert(parts[p].inputs[slot].index);
        }
    }
    for (const auto &[what, want] : wanted) {
        std::vector<Need> needs;
        for (const auto &[device, boxes] : want.boxes)
            if (const auto box = tiledBox({boxes.begin(), boxes.end()}))
                needs.push_back({device, *box});
        if (!needs.empty())
            TRY_VOID(m_inputs.of(what.first, needs, what.second, block, want.op));
    }
    return {};
}

/// Runs again, in `block`, the forward operators whose dropped outputs this backward operator reads.
Result<void> PassEmitter::recomputeFor(OperatorId backward, std::int32_t block)
{
    const StageId stage = m_work.builder.block(block).stage;
    const std::int32_t region = m_blocks.regionOf(backward);
    for (const TensorId input : m_blocks.shareOf(backward, block).inputs) {
        if (!input)
            continue;
        for (const OperatorId producer : m_work.uses.producers[at(input)]) {
            const std::int32_t group = m_work.decisionOf(producer).recomputeGroup;
            if (group < 0 || !m_blocks.isInStage(producer, Direction::Forward, stage))
                continue;
            // A region makes what it reads itself in its own turns, and others read what it kept.
            if ((region >= 0 && m_blocks.regionOf(producer) == region) || m_blocks.takesTurns(group))
                continue;
            TRY_VOID(recomputeGroup(group, block));
        }
    }
    return {};
}

/// Runs a group again, unless it was: only what some backward operator of this stage reads, or a coshard
/// region of the group when it runs again, and what that is made from.
Result<void> PassEmitter::recomputeGroup(std::int32_t group, std::int32_t block)
{
    const std::int32_t stage = m_work.builder.block(block).stage.index;
    const std::int32_t lane = m_work.builder.block(block).lane;
    if (!m_recomputed.insert({group, stage, lane}).second)
        return {};
    const auto groupOf = [&](OperatorId id) { return m_work.decisionOf(id).recomputeGroup; };
    const auto regionOf = [&](OperatorId id) { return m_blocks.regionOf(id); };
    const auto isReader = [&](OperatorId consumer, OperatorId maker) {
        if (regionOf(consumer) >= 0 && regionOf(consumer) == regionOf(maker))
            return false;
        return m_work.graph.at(consumer).direction == Direction::Forward
            ? regionOf(consumer) >= 0 && groupOf(consumer) == group
            : m_blocks.isInStage(consumer, Direction::Backward, StageId{stage});
    };
    std::vector<OperatorId> dropped = m_blocks.forwardOperators(block);
    std::erase_if(dropped, [&](OperatorId id) { return groupOf(id) != group; });
    const std::vector<OperatorId> again =
        runAgain(m_work.graph, dropped, [&](OperatorId maker, TensorId output) {
            const auto &consumers = m_work.uses.consumers[at(output)];
            return std::any_of(consumers.begin(), consumers.end(),
                [&](OperatorId consumer) { return isReader(consumer, maker); });
        });
    for (const OperatorId id : again)
        for (const TensorId output : m_work.graph.at(id).outputs)
            if (output)
                // By the forward pass, or by a region's turns where the backward pass is split.
                for (const std::int32_t made : m_work.materializer.makersOf(output))
                    if (made != block && m_work.builder.block(made).lane == lane)
                        m_work.materializer.forget(output, made, block);
    return emit(again, block, true);
}

} // namespace planloom
