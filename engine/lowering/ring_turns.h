#pragma once

#include "engine/lowering/operator_emitter.h"
#include "engine/plan/ring.h"

#include <map>
#include <span>
#include <vector>

namespace planloom {

/// Attentions whose keys and values go round (engine/plan/ring.h). What a device does in turn t, with n = 3
/// and queries i; [..] is the compute queue, the rest is under way beside it:
///
///     forward     shift k, v --> turn 1   [attention (i, i)]
///                 shift k, v --> turn 2   [attention (i, i - 1)][merge]
///                                         [attention (i, i - 2)][merge] --> y i
///
///     backward    shift k, v --> turn 1   [attention (i, i)] --> dk i, dv i
///                 shift k, v --> turn 2
///                 shift dk, dv            [attention (i, i - 1)][sum]
///                 shift dk, dv            [attention (i, i - 2)][sum]
///                 shift dk, dv --> home
///
/// A shift of keys and values starts no earlier than the turn that it runs beside, so that besides its own
/// part a device never has more than that at work and the next. What arrives is kept for no other pass: it
/// comes round again.
///
/// One run of such an operator.
class RingTurns
{
public:
    /// @param emitter  must outlive this
    RingTurns(OperatorEmitter &emitter, OperatorId id, std::int32_t block, bool recompute);

    Result<void> run(); ///< Once.

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
        return m_parts[at(ring.partOf(member, turn))];
    }
    std::int32_t summandOf(const TransformedPart &part, std::size_t slot) const
    {
        return m_work.summandOf(m_id, slot, part.outputs[slot]);
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
    Holding together(const Holding &a, const Holding &b);
    void merge(Member &member, std::size_t slot, Holding part, Holding logarithms);
    void handOutMerged();

    OperatorEmitter &m_emitter;
    LoweringWork &m_work;
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

} // namespace planloom
