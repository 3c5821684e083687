// Attentions whose keys and values go round (engine/plan/ring.h). What a device does in turn t, with n = 3
// and queries i; [..] is the compute queue, the rest is under way beside it:
//
//     forward     shift k, v --> turn 1   [attention (i, i)]
//                 shift k, v --> turn 2   [attention (i, i - 1)][merge]
//                                         [attention (i, i - 2)][merge] --> y i
//
//     backward    shift k, v --> turn 1   [attention (i, i)] --> dk i, dv i
//                 shift k, v --> turn 2
//                 shift dk, dv            [attention (i, i - 1)][sum]
//                 shift dk, dv            [attention (i, i - 2)][sum]
//                 shift dk, dv --> home
//
// A shift of keys and values starts no earlier than the turn that it runs beside, so that besides its own
// part a device never has more than that at work and the next. What arrives is kept for no other pass: it
// comes round again.

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/lowering.h"
#include "engine/plan/ring.h"

#include <algorithm>
#include <map>

namespace planloom {

/// One run of an operator in turns.
class Lowering::RingTurns
{
public:
    RingTurns(Lowering &lowering, OperatorId id, std::int32_t block, bool recompute)
        : m_lowering(lowering)
        , m_id(id)
        , m_block(block)
        , m_recompute(recompute)
        , m_op(lowering.m_graph.at(id))
        , m_decision(lowering.m_plan.decisions[static_cast<std::size_t>(id.index)])
        , m_parts(lowering.m_transformed.operators[static_cast<std::size_t>(id.index)])
    {
        for (Ring &ring : ringsOf(m_decision)) {
            if (!lowering.isDue(id, ring.partOf(0, 0), block, true, -1))
                continue; // of another lane
            Members members(ring.size());
            std::vector<DeviceId> devices;
            for (std::size_t i = 0; i < ring.size(); ++i) {
                members[i].device = m_decision.devices[static_cast<std::size_t>(ring.partOf(i, 0))];
                members[i].passed.resize(m_op.inputs.size(), -1);
                devices.push_back(members[i].device);
            }
            m_rings.push_back({std::move(ring), std::move(members), lowering.m_builder.groupOf(devices)});
        }
    }

    Result<void> run();

private:
    struct Member {
        DeviceId device{};
        BufferList passed{}; ///< By input slot: what goes round and is here in this turn.
        std::map<std::size_t, Holding> sums{}; ///< By output slot: sums that go round.
        std::map<std::size_t, Holding> merged{}; ///< By output slot: what was merged so far.
    };
    using Members = std::vector<Member>;
    struct Turning {
        Ring ring{};
        Members members{};
        std::int32_t group = -1;
    };

    const TransformedPart &partAt(const Ring &ring, std::size_t member, std::size_t turn) const
    {
        return m_parts[static_cast<std::size_t>(ring.partOf(member, turn))];
    }
    std::int32_t summandOf(const TransformedPart &part, std::size_t slot) const
    {
        return m_lowering.m_transformed.summandBase[static_cast<std::size_t>(m_id.index)][slot]
            + part.outputs[slot].value.index;
    }
    bool followsKeys(std::span<const TensorView> TransformedPart::*views, std::size_t slot) const;
    void findWhatGoesRound();
    bool runs(std::int32_t part) const;
    Result<void> bringHome();
    void shiftKeys(Turning &turning, std::size_t turn);
    void shiftSums(Turning &turning);
    std::int32_t arrival(const Turning &turning, std::size_t member, BufferInfo info, std::int32_t sent,
        bool joined, bool waits);
    std::vector<SummandSet> unrun(const Ring &ring, std::size_t member) const;
    Result<void> takeTurn(std::size_t turn);
    void take(Turning &turning, std::size_t member, std::size_t turn, const BufferList &outputs,
        const std::vector<SummandSet> &besides);
    void merge(Member &member, std::size_t slot, Holding part, Holding logarithms);
    void handOutMerged();

    Lowering &m_lowering;
    OperatorId m_id;
    std::int32_t m_block;
    bool m_recompute;
    const Operator &m_op;
    const OperatorDecision &m_decision;
    const std::vector<TransformedPart> &m_parts;
    std::vector<Turning> m_rings{};
    std::vector<bool> m_passes{}; ///< By input slot: goes round.
    std::vector<bool>
        m_sumsPass{}; ///< By output slot: parts of one box, of all members, are summed as it goes round.
    std::vector<bool> m_runs{}; ///< By part.
    std::size_t m_turns = 1; ///< Behind the last of them nobody has anything to do.
    std::vector<std::vector<BufferList>> m_arriving{}; ///< By ring and member: `passed` of the next turn.
    Weighing m_weighing{};
};

/// Whether views of a slot are those of the keys' part alone: alike for all members of a ring, other in every
/// part.
bool Lowering::RingTurns::followsKeys(
    std::span<const TensorView> TransformedPart::*views, std::size_t slot) const
{
    for (const Turning &turning : m_rings) {
        const auto &parts = turning.ring.parts;
        const auto viewOf = [&](std::size_t member, std::size_t keys) -> const IndexMask & {
            return (m_parts[static_cast<std::size_t>(parts[member][keys])].*views)[slot].index;
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

void Lowering::RingTurns::findWhatGoesRound()
{
    m_passes.assign(m_op.inputs.size(), false);
    for (std::size_t slot = 0; slot < m_op.inputs.size(); ++slot) {
        const TensorId tensor = m_op.inputs[slot];
        // What the host feeds is there for everybody.
        m_passes[slot] = tensor && !m_lowering.isLeftOut(m_id, false, slot)
            && !m_lowering.m_uses.producers[static_cast<std::size_t>(tensor.index)].empty()
            && followsKeys(&TransformedPart::inputs, slot);
    }
    m_sumsPass.assign(m_op.outputs.size(), false);
    for (std::size_t slot = 0; slot < m_op.outputs.size(); ++slot) {
        const TensorId tensor = m_op.outputs[slot];
        m_sumsPass[slot] = tensor && m_lowering.isInParts(tensor) && m_weighing.by[slot] < 0
            && combinationOf(m_op.annotation, slot) == Combination::Sum
            && !m_lowering.isWeightGradient(tensor) && followsKeys(&TransformedPart::outputs, slot);
    }
    m_turns = m_rings.front().ring.size();
    // What sees no keys adds nothing. The first turn is that of the operator's own keys, and always runs, so
    // that somebody has what the others leave out.
    m_runs.assign(m_parts.size(), true);
    bool allSummands = true;
    for (std::size_t slot = 0; slot < m_op.outputs.size(); ++slot)
        if (m_op.outputs[slot] && !m_lowering.isLeftOut(m_id, true, slot))
            allSummands = allSummands && m_parts.front().outputs[slot].value.count > 1
                && (m_weighing.by[slot] >= 0 || m_weighing.weighs[slot] || m_sumsPass[slot]
                    || m_lowering.m_sumOf.count({m_id, slot}) > 0);
    const AttentionSequences sequences = attentionSequences(m_op);
    const auto o = static_cast<std::size_t>(m_id.index);
    const BatchInfo &batch = m_lowering.m_transformed.batch;
    if (!allSummands || batch.operatorDimension[o] == sequences.queries
        || batch.operatorDimension[o] == sequences.keys)
        return;
    const auto outer = microBatchRanges(batch, m_lowering.m_graph, m_id, 0, batchCuts(m_lowering.m_plan));
    for (const Turning &turning : m_rings)
        for (std::size_t member = 0; member < turning.ring.size(); ++member)
            for (std::size_t turn = 1; turn < turning.ring.size(); ++turn) {
                const std::int32_t part = turning.ring.partOf(member, turn);
                m_runs[static_cast<std::size_t>(part)] =
                    !seesNothing(m_op, partBox(m_op, m_decision.partition, part, outer).ranges);
            }
    const auto anyRuns = [this](std::size_t turn) {
        return std::any_of(m_rings.begin(), m_rings.end(), [&](const Turning &turning) {
            for (std::size_t member = 0; member < turning.ring.size(); ++member)
                if (m_runs[static_cast<std::size_t>(turning.ring.partOf(member, turn))])
                    return true;
            return false;
        });
    };
    while (!anyRuns(m_turns - 1)) // a window that reaches no further
        --m_turns;
}

/// Keys and values of the first turn, each on its device.
Result<void> Lowering::RingTurns::bringHome()
{
    for (std::size_t slot = 0; slot < m_op.inputs.size(); ++slot) {
        if (!m_passes[slot])
            continue;
        std::vector<Need> needs;
        for (const Turning &turning : m_rings)
            for (std::size_t i = 0; i < turning.members.size(); ++i)
                needs.push_back({turning.members[i].device, partAt(turning.ring, i, 0).inputs[slot].index});
        TRY(const auto buffers,
            m_lowering.inputBuffers(
                m_op.inputs[slot], needs, m_lowering.m_types.read(m_id, slot), m_block, m_id));
        std::size_t next = 0;
        for (Turning &turning : m_rings)
            for (Member &member : turning.members)
                member.passed[slot] = buffers[next++];
    }
    return {};
}

/// A buffer for what member `member` gets from the one before it, which sends `sent`.
std::int32_t Lowering::RingTurns::arrival(
    const Turning &turning, std::size_t member, BufferInfo info, std::int32_t sent, bool joined, bool waits)
{
    const DeviceId device = turning.members[member].device;
    info.persistent = false;
    info.perMicroBatch = isPass(m_lowering.m_builder.block(m_block).kind);
    info.memory = m_lowering.memoryOf(info.tensor);
    const std::int32_t buffer = m_lowering.m_builder.addBuffer(device, std::move(info));
    m_lowering.m_builder.emit(device, m_block,
        {.kind = InstructionKind::Shift,
            .op = m_id,
            .group = turning.group,
            .inputs = {sent},
            .outputs = {buffer},
            .joined = joined,
            .waits = waits});
    return buffer;
}

/// Sends on what turn `turn` reads, for the next one. All of it is one launch.
void Lowering::RingTurns::shiftKeys(Turning &turning, std::size_t turn)
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
                    .dataType = m_lowering.m_types.read(m_id, slot),
                    .index = partAt(turning.ring, i, turn + 1).inputs[slot].index},
                turning.members[i].passed[slot], joined, true);
        joined = true;
    }
    m_arriving.push_back(std::move(next));
}

/// Sends the sums on to the member that adds to them next.
void Lowering::RingTurns::shiftSums(Turning &turning)
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
            BufferInfo info = m_lowering.m_builder.buffer(before.device, before.sums.at(slot).buffer);
            arrived[i].buffer =
                arrival(turning, i, std::move(info), turning.members[i].sums.at(slot).buffer, joined, false);
        }
        for (std::size_t i = 0; i < n; ++i)
            turning.members[i].sums[slot] = std::move(arrived[i]);
        joined = true;
    }
}

/// By output slot: summands of the parts of a member, and of its keys' gradients, that do not run.
std::vector<SummandSet> Lowering::RingTurns::unrun(const Ring &ring, std::size_t member) const
{
    std::vector<SummandSet> besides(m_op.outputs.size());
    for (std::size_t other = 0; other < ring.size(); ++other)
        for (std::size_t slot = 0; slot < besides.size(); ++slot) {
            const std::int32_t part = m_op.outputs[slot] && m_sumsPass[slot] ? ring.parts[other][member]
                                                                             : ring.parts[member][other];
            if (m_op.outputs[slot] && !m_runs[static_cast<std::size_t>(part)])
                besides[slot] = unionOf(
                    besides[slot], SummandSet{summandOf(m_parts[static_cast<std::size_t>(part)], slot)});
        }
    return besides;
}

/// Merges a part, and its log-sum-exp, with what the member has.
void Lowering::RingTurns::merge(Member &member, std::size_t slot, Holding part, Holding logarithms)
{
    const auto by = static_cast<std::size_t>(m_weighing.by[slot]);
    const auto known = member.merged.find(slot);
    if (known == member.merged.end()) {
        member.merged[slot] = std::move(part);
        member.merged[by] = std::move(logarithms);
        return;
    }
    ProgramBuilder &builder = m_lowering.m_builder;
    const auto together = [&](const Holding &a, const Holding &b) {
        Holding both = a;
        both.summands = unionOf(a.summands, b.summands);
        BufferInfo info = builder.buffer(member.device, a.buffer);
        info.summands = both.summands;
        if (m_lowering.m_transformed.summands.complete(info.tensor, both.summands, info.index))
            info.summands.clear();
        info.unweighed = info.unweighed && !info.summands.empty();
        both.buffer = builder.addBuffer(member.device, std::move(info));
        return both;
    };
    Holding both = together(known->second, part);
    Holding ofBoth = together(member.merged.at(by), logarithms);
    builder.emit(member.device, m_block,
        {.kind = InstructionKind::Merge,
            .op = m_id,
            .inputs = {known->second.buffer, member.merged.at(by).buffer, part.buffer, logarithms.buffer},
            .outputs = {both.buffer, ofBoth.buffer}});
    member.merged[slot] = std::move(both);
    member.merged[by] = std::move(ofBoth);
}

/// What the part of `member` in turn `turn` made.
void Lowering::RingTurns::take(Turning &turning, std::size_t member, std::size_t turn,
    const BufferList &outputs, const std::vector<SummandSet> &besides)
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
            m_lowering.handOver(m_id, m_block, slot, summandOf(part, slot), std::move(made), m_parts.size());
            continue;
        }
        const TensorId tensor = m_op.outputs[slot];
        const DataType kept = m_lowering.m_types.accumulated(tensor);
        if (m_lowering.m_builder.buffer(own.device, made.buffer).dataType != kept)
            made.buffer = m_lowering.castBuffer(own.device, m_block, m_id, made.buffer, kept);
        const auto sum = own.sums.find(slot);
        if (sum == own.sums.end()) {
            own.sums[slot] = std::move(made);
            continue;
        }
        Holding total = made;
        total.summands = unionOf(sum->second.summands, made.summands);
        BufferInfo info = m_lowering.m_builder.buffer(own.device, made.buffer);
        info.summands = total.summands;
        if (m_lowering.m_transformed.summands.complete(tensor, total.summands, info.index))
            info.summands.clear();
        total.buffer = m_lowering.m_builder.addBuffer(own.device, std::move(info));
        m_lowering.m_builder.emit(own.device, m_block,
            {.kind = InstructionKind::Sum,
                .op = m_id,
                .inputs = {sum->second.buffer, made.buffer},
                .outputs = {total.buffer}});
        sum->second = std::move(total);
    }
}

Result<void> Lowering::RingTurns::takeTurn(std::size_t turn)
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
            if (const auto part = static_cast<std::size_t>(turning.ring.partOf(i, turn)); m_runs[part])
                numbers.push_back(part);
    std::vector<BufferList> inputs;
    if (!numbers.empty()) {
        TRY(inputs, m_lowering.gatherInputs(m_id, m_block, numbers, m_passes));
    }
    std::size_t next = 0;
    for (Turning &turning : m_rings)
        for (std::size_t i = 0; i < turning.members.size(); ++i) {
            const auto part = static_cast<std::size_t>(turning.ring.partOf(i, turn));
            if (!m_runs[part])
                continue;
            BufferList &own = inputs[next++];
            for (std::size_t slot = 0; slot < m_passes.size(); ++slot)
                if (m_passes[slot])
                    own[slot] = turning.members[i].passed[slot];
            const auto besides = turn == 0 ? unrun(turning.ring, i) : std::vector<SummandSet>{};
            const BufferList outputs =
                m_lowering.emitPart(m_id, m_block, m_recompute, part, own, m_weighing, besides);
            take(turning, i, turn, outputs, besides);
        }
    for (std::size_t r = 0; r < m_arriving.size(); ++r)
        for (std::size_t i = 0; i < m_rings[r].members.size(); ++i)
            m_rings[r].members[i].passed = std::move(m_arriving[r][i]);
    return {};
}

/// Merged parts that are complete are values; else others have the rest, and they are weighed against those.
void Lowering::RingTurns::handOutMerged()
{
    for (Turning &turning : m_rings)
        for (Member &member : turning.members)
            for (auto &[slot, merged] : member.merged) {
                const auto &info = m_lowering.m_builder.buffer(member.device, merged.buffer);
                const bool unweighed = info.unweighed;
                if (!info.summands.empty())
                    m_weighing.made[slot].push_back(merged);
                if (!unweighed)
                    m_lowering.handOver(m_id, m_block, slot, merged.summands.front(), merged, m_rings.size());
            }
}

Result<void> Lowering::RingTurns::run()
{
    TRY(m_weighing, m_lowering.weighingOf(m_id));
    m_lowering.chooseSums({m_id});
    findWhatGoesRound();
    TRY_VOID(bringHome());
    m_lowering.m_builder.noteOperator(m_block, m_id);
    for (std::size_t turn = 0; turn < m_turns; ++turn)
        TRY_VOID(takeTurn(turn));
    for (Turning &turning : m_rings) {
        for (std::size_t turn = m_turns; turn <= turning.ring.size(); ++turn)
            shiftSums(turning); // until they are home
        for (Member &member : turning.members)
            for (auto &[slot, sum] : member.sums)
                m_lowering.m_materializer.made(m_op.outputs[slot], m_block, std::move(sum), m_rings.size());
    }
    m_lowering.handOutSums(m_block);
    handOutMerged();
    return m_lowering.weighParts(m_id, m_block, m_weighing);
}

/// Runs an operator whose keys and values go round, turn by turn.
Result<void> Lowering::emitRing(OperatorId id, std::int32_t block, bool recompute)
{
    return RingTurns(*this, id, block, recompute).run();
}

} // namespace planloom
