#include "engine/lowering/ring_turns.h"

#include "engine/graph/operators/attention.h"
#include "engine/lowering/layout/box_algebra.h"

#include <algorithm>

namespace planloom {

RingTurns::RingTurns(OperatorEmitter &emitter, OperatorId id, std::int32_t block, bool recompute)
    : m_emitter(emitter)
    , m_work(emitter.m_work)
    , m_id(id)
    , m_block(block)
    , m_recompute(recompute)
    , m_op(m_work.graph.at(id))
    , m_decision(m_work.decisionOf(id))
    , m_parts(m_work.partsOf(id))
{
    for (Ring &ring : ringsOf(m_decision)) {
        if (!emitter.m_blocks.isDue(id, ring.partOf(0, 0), block, true, -1))
            continue; // of another lane
        Members members(ring.size());
        std::vector<DeviceId> devices;
        for (std::size_t i = 0; i < ring.size(); ++i) {
            members[i].device = m_decision.devices[at(ring.partOf(i, 0))];
            members[i].passed.resize(m_op.inputs.size(), -1);
            devices.push_back(members[i].device);
        }
        m_rings.push_back({std::move(ring), std::move(members), m_work.builder.groupOf(devices)});
    }
}

/// Whether views of a slot are those of the keys' part alone: alike for all members of a ring, other in every
/// part.
bool RingTurns::followsKeys(std::span<const TensorView> TransformedPart::*views, std::size_t slot) const
{
    for (const Turning &turning : m_rings) {
        const auto &parts = turning.ring.parts;
        const auto viewOf = [&](std::size_t member, std::size_t keys) -> const IndexMask & {
            return (m_parts[at(parts[member][keys])].*views)[slot].index;
        };
        for (std::size_t keys = 0; keys < parts.size(); ++keys) {
            if (keys > 0 && viewOf(0, keys) == viewOf(0, 0))
                return false;
            for (std::size_t member = 1; member < parts.size(); ++member)
                if (viewOf(member, keys) != viewOf(0, keys))
                    return false;
        }
    }
    return true;
}

void RingTurns::findWhatGoesRound()
{
    m_passes.assign(m_op.inputs.size(), false);
    for (std::size_t slot = 0; slot < m_op.inputs.size(); ++slot) {
        const TensorId tensor = m_op.inputs[slot];
        // What the host feeds is there for everybody.
        m_passes[slot] = tensor && !m_work.isLeftOut(m_id, false, slot)
            && !m_work.uses.producers[at(tensor)].empty() && followsKeys(&TransformedPart::inputs, slot);
    }
    m_sumsPass.assign(m_op.outputs.size(), false);
    for (std::size_t slot = 0; slot < m_op.outputs.size(); ++slot) {
        const TensorId tensor = m_op.outputs[slot];
        m_sumsPass[slot] = tensor && m_work.isInParts(tensor) && m_weighing.by[slot] < 0
            && combinationOf(m_op.annotation, slot) == Combination::Sum && !m_work.isWeightGradient(tensor)
            && followsKeys(&TransformedPart::outputs, slot);
    }
    m_turns = m_rings.front().ring.size();
    // What sees no keys adds nothing. The first turn is that of the operator's own keys, and always runs, so
    // that somebody has what the others leave out.
    m_runs.assign(m_parts.size(), true);
    bool allSummands = true;
    for (std::size_t slot = 0; slot < m_op.outputs.size(); ++slot)
        if (m_op.outputs[slot] && !m_work.isLeftOut(m_id, true, slot))
            allSummands = allSummands && m_parts.front().outputs[slot].value.count > 1
                && (m_weighing.by[slot] >= 0 || m_weighing.weighs[slot] || m_sumsPass[slot]
                    || m_emitter.m_sums.has(m_id, slot));
    const AttentionSequences sequences = attentionSequences(m_op);
    const auto o = at(m_id);
    const BatchInfo &batch = m_work.transformed.batch;
    if (!allSummands || batch.operatorDimension[o] == sequences.queries
        || batch.operatorDimension[o] == sequences.keys)
        return;
    const auto outer = microBatchRanges(batch, m_work.graph, m_id, 0, batchCuts(m_work.plan));
    for (const Turning &turning : m_rings)
        for (std::size_t member = 0; member < turning.ring.size(); ++member)
            for (std::size_t turn = 1; turn < turning.ring.size(); ++turn) {
                const std::int32_t part = turning.ring.partOf(member, turn);
                m_runs[at(part)] =
                    !seesNothing(m_op, partBox(m_op, m_decision.partition, part, outer).ranges);
            }
    const auto anyRuns = [this](std::size_t turn) {
        return std::any_of(m_rings.begin(), m_rings.end(), [&](const Turning &turning) {
            for (std::size_t member = 0; member < turning.ring.size(); ++member)
                if (m_runs[at(turning.ring.partOf(member, turn))])
                    return true;
            return false;
        });
    };
    while (!anyRuns(m_turns - 1)) // a window that reaches no further
        --m_turns;
}

/// Keys and values of the first turn, each on its device.
Result<void> RingTurns::bringHome()
{
    for (std::size_t slot = 0; slot < m_op.inputs.size(); ++slot) {
        if (!m_passes[slot])
            continue;
        std::vector<Need> needs;
        for (const Turning &turning : m_rings)
            for (std::size_t i = 0; i < turning.members.size(); ++i)
                needs.push_back({turning.members[i].device, partAt(turning.ring, i, 0).inputs[slot].index});
        TRY(const auto buffers,
            m_emitter.m_inputs.of(m_op.inputs[slot], needs, m_work.types.read(m_id, slot), m_block, m_id));
        std::size_t next = 0;
        for (Turning &turning : m_rings)
            for (Member &member : turning.members)
                member.passed[slot] = buffers[next++];
    }
    return {};
}

/// A buffer for what member `member` gets from the one before it, which sends `sent`.
std::int32_t RingTurns::arrival(
    const Turning &turning, std::size_t member, BufferInfo info, std::int32_t sent, bool joined, bool waits)
{
    const DeviceId device = turning.members[member].device;
    info.persistent = false;
    info.perMicroBatch = m_work.runsInMicroBatches(m_block);
    info.memory = m_work.memoryOf(info.tensor);
    return m_work.builder.make(device, m_block, std::move(info),
        {.kind = InstructionKind::Shift,
            .op = m_id,
            .group = turning.group,
            .inputs = {sent},
            .joined = joined,
            .waits = waits});
}

/// Sends on what turn `turn` reads, for the next one. All of it is one launch.
void RingTurns::shiftKeys(Turning &turning, std::size_t turn)
{
    bool joined = false;
    std::vector<BufferList> next;
    for (const Member &member : turning.members)
        next.push_back(member.passed);
    for (std::size_t slot = 0; slot < m_passes.size(); ++slot) {
        if (!m_passes[slot])
            continue;
        for (std::size_t i = 0; i < turning.members.size(); ++i)
            next[i][slot] = arrival(turning, i,
                {.tensor = m_op.inputs[slot],
                    .dataType = m_work.types.read(m_id, slot),
                    .index = partAt(turning.ring, i, turn + 1).inputs[slot].index},
                turning.members[i].passed[slot], joined, true);
        joined = true;
    }
    m_arriving.push_back(std::move(next));
}

/// Sends the sums on to the member that adds to them next.
void RingTurns::shiftSums(Turning &turning)
{
    const std::size_t n = turning.members.size();
    bool joined = false;
    for (std::size_t slot = 0; slot < m_sumsPass.size(); ++slot) {
        if (!m_sumsPass[slot] || turning.members.front().sums.count(slot) == 0)
            continue;
        std::vector<Holding> arrived(n);
        for (std::size_t i = 0; i < n; ++i) {
            const Member &before = turning.members[(i + n - 1) % n];
            arrived[i] = before.sums.at(slot);
            arrived[i].device = turning.members[i].device;
            BufferInfo info = m_work.builder.buffer(before.device, before.sums.at(slot).buffer);
            arrived[i].buffer =
                arrival(turning, i, std::move(info), turning.members[i].sums.at(slot).buffer, joined, false);
        }
        for (std::size_t i = 0; i < n; ++i)
            turning.members[i].sums[slot] = std::move(arrived[i]);
        joined = true;
    }
}

/// By output slot: summands of the parts of a member, and of its keys' gradients, that do not run.
std::vector<SummandSet> RingTurns::unrun(const Ring &ring, std::size_t member) const
{
    std::vector<SummandSet> besides(m_op.outputs.size());
    for (std::size_t other = 0; other < ring.size(); ++other)
        for (std::size_t slot = 0; slot < besides.size(); ++slot) {
            const std::int32_t part = m_op.outputs[slot] && m_sumsPass[slot] ? ring.parts[other][member]
                                                                             : ring.parts[member][other];
            if (m_op.outputs[slot] && !m_runs[at(part)])
                besides[slot] = unionOf(besides[slot], SummandSet{summandOf(m_parts[at(part)], slot)});
        }
    return besides;
}

/// A buffer like that of `a`, for the summands of both.
Holding RingTurns::together(const Holding &a, const Holding &b)
{
    Holding both = a;
    both.summands = unionOf(a.summands, b.summands);
    BufferInfo info = m_work.builder.buffer(a.device, a.buffer);
    info.summands = both.summands;
    if (m_work.transformed.summands.complete(info.tensor, both.summands, info.index))
        info.summands.clear();
    info.unweighed = info.unweighed && !info.summands.empty();
    both.buffer = m_work.builder.addBuffer(a.device, std::move(info));
    return both;
}

/// Merges a part, and its log-sum-exp, with what the member has.
void RingTurns::merge(Member &member, std::size_t slot, Holding part, Holding logarithms)
{
    const auto by = static_cast<std::size_t>(m_weighing.by[slot]);
    const auto known = member.merged.find(slot);
    if (known == member.merged.end()) {
        member.merged[slot] = std::move(part);
        member.merged[by] = std::move(logarithms);
        return;
    }
    Holding both = together(known->second, part);
    Holding ofBoth = together(member.merged.at(by), logarithms);
    m_work.builder.emit(member.device, m_block,
        {.kind = InstructionKind::Merge,
            .op = m_id,
            .inputs = {known->second.buffer, member.merged.at(by).buffer, part.buffer, logarithms.buffer},
            .outputs = {both.buffer, ofBoth.buffer}});
    member.merged[slot] = std::move(both);
    member.merged[by] = std::move(ofBoth);
}

/// What the part of `member` in turn `turn` made.
void RingTurns::take(Turning &turning, std::size_t member, std::size_t turn, const BufferList &outputs,
    const std::vector<SummandSet> &besides)
{
    Member &own = turning.members[member];
    const TransformedPart &part = partAt(turning.ring, member, turn);
    const auto madeAt = [&](std::size_t slot) {
        Holding made{own.device, part.outputs[slot].index, {summandOf(part, slot)}, outputs[slot]};
        if (!besides.empty())
            made.summands = unionOf(made.summands, besides[slot]);
        return made;
    };
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        if (outputs[slot] < 0 || m_weighing.weighs[slot])
            continue;
        Holding made = madeAt(slot);
        if (m_weighing.by[slot] >= 0) {
            merge(own, slot, std::move(made), madeAt(static_cast<std::size_t>(m_weighing.by[slot])));
            continue;
        }
        if (!m_sumsPass[slot]) {
            m_emitter.handOver(m_id, m_block, slot, summandOf(part, slot), std::move(made), m_parts.size());
            continue;
        }
        const TensorId tensor = m_op.outputs[slot];
        const DataType kept = m_work.types.accumulated(tensor);
        if (m_work.builder.buffer(own.device, made.buffer).dataType != kept)
            made.buffer = m_work.castBuffer(own.device, m_block, m_id, made.buffer, kept);
        const auto sum = own.sums.find(slot);
        if (sum == own.sums.end()) {
            own.sums[slot] = std::move(made);
            continue;
        }
        Holding total = together(made, sum->second);
        m_work.builder.emit(own.device, m_block,
            {.kind = InstructionKind::Sum,
                .op = m_id,
                .inputs = {sum->second.buffer, made.buffer},
                .outputs = {total.buffer}});
        sum->second = std::move(total);
    }
}

Result<void> RingTurns::takeTurn(std::size_t turn)
{
    m_arriving.clear();
    for (Turning &turning : m_rings) {
        if (turn + 1 < m_turns)
            shiftKeys(turning, turn);
        if (turn > 0)
            shiftSums(turning);
    }
    std::vector<std::size_t> numbers;
    for (const Turning &turning : m_rings)
        for (std::size_t i = 0; i < turning.members.size(); ++i)
            if (const auto part = at(turning.ring.partOf(i, turn)); m_runs[part])
                numbers.push_back(part);
    std::vector<BufferList> inputs;
    if (!numbers.empty()) {
        TRY(inputs, m_emitter.m_inputs.ofParts(m_id, m_block, numbers, m_passes));
    }
    std::size_t next = 0;
    for (Turning &turning : m_rings)
        for (std::size_t i = 0; i < turning.members.size(); ++i) {
            const auto part = at(turning.ring.partOf(i, turn));
            if (!m_runs[part])
                continue;
            BufferList &own = inputs[next++];
            for (std::size_t slot = 0; slot < m_passes.size(); ++slot)
                if (m_passes[slot])
                    own[slot] = turning.members[i].passed[slot];
            const auto besides = turn == 0 ? unrun(turning.ring, i) : std::vector<SummandSet>{};
            const BufferList outputs =
                m_emitter.emitPart(m_id, m_block, m_recompute, part, own, m_weighing, besides);
            take(turning, i, turn, outputs, besides);
        }
    for (std::size_t r = 0; r < m_arriving.size(); ++r)
        for (std::size_t i = 0; i < m_rings[r].members.size(); ++i)
            m_rings[r].members[i].passed = std::move(m_arriving[r][i]);
    return {};
}

/// Merged parts that are complete are values; else others have the rest, and they are weighed against those.
void RingTurns::handOutMerged()
{
    for (Turning &turning : m_rings)
        for (Member &member : turning.members)
            for (auto &[slot, merged] : member.merged) {
                const auto &info = m_work.builder.buffer(member.device, merged.buffer);
                const bool unweighed = info.unweighed;
                if (!info.summands.empty())
                    m_weighing.made[slot].push_back(merged);
                if (!unweighed)
                    m_emitter.handOver(m_id, m_block, slot, merged.summands.front(), merged, m_rings.size());
            }
}

Result<void> RingTurns::run()
{
    TRY(m_weighing, m_emitter.weighingOf(m_id));
    m_emitter.m_sums.choose({m_id});
    findWhatGoesRound();
    TRY_VOID(bringHome());
    m_work.builder.noteOperator(m_block, m_id);
    for (std::size_t turn = 0; turn < m_turns; ++turn)
        TRY_VOID(takeTurn(turn));
    for (Turning &turning : m_rings) {
        for (std::size_t turn = m_turns; turn <= turning.ring.size(); ++turn)
            shiftSums(turning); // until they are home
        for (Member &member : turning.members)
            for (auto &[slot, sum] : member.sums)
                m_work.materializer.made(m_op.outputs[slot], m_block, std::move(sum), m_rings.size());
    }
    m_emitter.m_sums.handOut(m_block);
    handOutMerged();
    return m_emitter.weighParts(m_id, m_block, m_weighing);
}

} // namespace planloom
