#include "engine/gesture/piece_gesture.h"

#include "engine/base/words.h"
#include "engine/gesture/acting.h"
#include "engine/gesture/order_gesture.h"
#include "engine/gesture/row_edits.h"
#include "engine/table/kinds/meaning.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace planloom {

namespace {

/// An operator of one of the two blocks runs before one of the other: positions in their sequences.
struct Crossing {
    bool ownFirst = true;
    std::size_t own = 0;
    std::size_t other = 0;
    std::int32_t line = -1; ///< Of the row that says so; -1 for one that is to be written.
    bool single = false; ///< The row is about these two alone.
};

/// Both cannot hold: each block runs in its own order.
bool contradict(const Crossing &a, const Crossing &b)
{
    if (a.ownFirst == b.ownFirst)
        return false;
    const Crossing &forth = a.ownFirst ? a : b; // own before other
    const Crossing &back = a.ownFirst ? b : a; // other before own
    return back.own <= forth.own && forth.other <= back.other;
}

/// Where `strong` holds, `weak` does.
bool implies(const Crossing &strong, const Crossing &weak)
{
    if (strong.ownFirst != weak.ownFirst)
        return false;
    return strong.ownFirst ? weak.own <= strong.own && weak.other >= strong.other
                           : weak.other <= strong.other && weak.own >= strong.own;
}

using Positions = std::unordered_map<OperatorId, std::size_t>;

Positions positionsOf(const std::vector<OperatorId> &sequence)
{
    Positions positions;
    for (std::size_t i = 0; i < sequence.size(); ++i)
        positions.emplace(sequence[i], i);
    return positions;
}

class PieceProposal
{
public:
    PieceProposal(const GestureContext &context, const PieceMove &move)
        : m_context(context)
        , m_move(move)
        , m_own(positionsOf(move.own))
        , m_other(positionsOf(move.other))
    {
    }

    Proposal make()
    {
        if (!m_context.plan)
            return withRefusal(std::move(m_proposal),
                refusalOf("pieces of blocks can be moved once there is a plan", "block"));
        const bool known = m_move.begin < m_move.end && m_move.end <= m_move.own.size()
            && (m_move.earlier ? m_move.caret < m_move.other.size()
                               : m_move.caret > 0 && m_move.caret <= m_move.other.size());
        if (!known) {
            m_proposal.words = "move a piece of " + wordsOf(m_move.block);
            return withRefusal(std::move(m_proposal),
                refusalOf("there is no operator of " + wordsOf(m_move.beside) + " that it could go "
                        + (m_move.earlier ? "before" : "behind"),
                    "block"));
        }
        m_proposal.words = words();
        m_proposal.operators = actingForward(m_context,
            {m_move.own.begin() + static_cast<std::ptrdiff_t>(m_move.begin),
                m_move.own.begin() + static_cast<std::ptrdiff_t>(m_move.end)});
        std::vector<Crossing> wanted{m_move.earlier ? Crossing{true, m_move.end - 1, m_move.caret}
                                                    : Crossing{false, m_move.begin, m_move.caret - 1}};
        if (m_move.held && m_move.earlier && m_move.caret > 0)
            wanted.push_back({false, m_move.begin, m_move.caret - 1});
        else if (m_move.held && !m_move.earlier && m_move.caret < m_move.other.size())
            wanted.push_back({true, m_move.end - 1, m_move.caret});
        findRows();
        RowEdits edits(m_context);
        std::vector<std::int32_t> gone;
        for (const Crossing &row : m_rows)
            if (givesWay(row, wanted)) {
                edits.remove(row.line);
                gone.push_back(row.line);
            }
        for (const Crossing &row : m_rows)
            for (const Crossing &crossing : wanted)
                if (contradict(crossing, row)
                    && std::find(gone.begin(), gone.end(), row.line) == gone.end()) {
                    refuse(crossing, row);
                    return m_proposal;
                }
        for (const Crossing &crossing : wanted)
            edits.append(rowOf(crossing));
        edits.finish(m_proposal);
        return m_proposal;
    }

private:
    const std::string &nameOf(OperatorId op) const { return m_context.graph().at(op).name; }

    std::string words() const
    {
        const std::string &first = nameOf(m_move.own[m_move.begin]);
        const std::string &last = nameOf(m_move.own[m_move.end - 1]);
        const std::string &mark = nameOf(m_move.other[m_move.earlier ? m_move.caret : m_move.caret - 1]);
        std::string text = "move " + first + (m_move.end - m_move.begin > 1 ? " to " + last : "") + " of "
            + wordsOf(m_move.block) + (m_move.earlier ? " before " : " behind ") + mark + " of "
            + wordsOf(m_move.beside);
        if (m_move.held)
            text += ", and no further";
        return m_move.onlyThis ? text + ", only this once" : text;
    }

    /// The row of a crossing.
    Row rowOf(const Crossing &crossing) const
    {
        const BlockRef &first = crossing.ownFirst ? m_move.block : m_move.beside;
        const BlockRef &second = crossing.ownFirst ? m_move.beside : m_move.block;
        const OperatorId own = m_move.own[crossing.own];
        const OperatorId other = m_move.other[crossing.other];
        return gestureRow(directedSelector(m_context.index(), {crossing.ownFirst ? own : other}),
            OpOrderRule{.second = directedSelector(m_context.index(), {crossing.ownFirst ? other : own}),
                .microBatchOffset = second.microBatch - first.microBatch,
                .microBatch = m_move.onlyThis ? first.microBatch : -1,
                .part = first.part,
                .secondPart = second.part});
    }

    /// Whether a row that orders these micro-batches, of these parts, is about the two blocks.
    std::optional<bool> directionOf(const OpOrderRule &rule) const
    {
        const auto fits = [&](const BlockRef &first, const BlockRef &second) {
            const auto covers = [](const BlockPart &asked, const BlockPart &its) {
                return (asked.lane < 0 || its.lane < 0 || asked.lane == its.lane)
                    && (asked.slice < 0 || its.slice < 0 || asked.slice == its.slice);
            };
            return rule.microBatchOffset == second.microBatch - first.microBatch
                && (rule.microBatch < 0 || rule.microBatch == first.microBatch)
                && covers(rule.part, first.part) && covers(rule.secondPart, second.part);
        };
        if (fits(m_move.block, m_move.beside))
            return true;
        if (fits(m_move.beside, m_move.block))
            return false;
        return std::nullopt;
    }

    /// What rows order between the two blocks so far.
    void findRows()
    {
        const SelectorIndex &index = m_context.index();
        forEachRule<OpOrderRule>(m_context, [&](std::int32_t line, const Row &row, const OpOrderRule &rule) {
            if (!directionOf(rule))
                return;
            const auto first = ofOneDirection(m_context.graph(), index.select(row.selector));
            const auto second = ofOneDirection(m_context.graph(), index.select(rule.second));
            const bool single = first.size() == 1 && second.size() == 1;
            const auto add = [&](OperatorId a, OperatorId b) {
                for (const bool ownFirst : {true, false}) { // blocks of one micro-batch have one offset
                    const auto own = m_own.find(ownFirst ? a : b);
                    const auto other = m_other.find(ownFirst ? b : a);
                    if (own != m_own.end() && other != m_other.end())
                        m_rows.push_back({ownFirst, own->second, other->second, line, single});
                }
            };
            if (first.size() == second.size()) {
                for (std::size_t i = 0; i < first.size(); ++i)
                    add(first[i], second[i]);
                return;
            }
            for (const OperatorId a : first)
                for (const OperatorId b : second)
                    add(a, b);
        });
    }

    /// A row of the moved piece and one operator of the other block: what an earlier move has written.
    bool givesWay(const Crossing &row, const std::vector<Crossing> &wanted) const
    {
        if (!row.single || row.own < m_move.begin || row.own >= m_move.end)
            return false;
        const Row &written = *m_context.document.lines()[static_cast<std::size_t>(row.line)]->row;
        const bool once = std::get<OpOrderRule>(written.rule).microBatch >= 0;
        return std::any_of(wanted.begin(), wanted.end(), [&](const Crossing &crossing) {
            // A row for all micro-batches says more than one for this.
            return contradict(crossing, row) ? once || !m_move.onlyThis
                                             : implies(crossing, row) && (once || !m_move.onlyThis);
        });
    }

    void refuse(const Crossing &crossing, const Crossing &row)
    {
        const auto firstOf = [&](const Crossing &each) {
            return each.ownFirst ? m_move.own[each.own] : m_move.other[each.other];
        };
        const auto secondOf = [&](const Crossing &each) {
            return each.ownFirst ? m_move.other[each.other] : m_move.own[each.own];
        };
        m_proposal.cycle = {firstOf(crossing), secondOf(crossing), firstOf(row), secondOf(row)};
        m_proposal.cycle.erase(
            std::unique(m_proposal.cycle.begin(), m_proposal.cycle.end()), m_proposal.cycle.end());
        m_proposal.refusal = refusalOf(nameOf(firstOf(crossing)) + " can't run before "
                + nameOf(secondOf(crossing)) + ": " + rowWords(rowNumberOf(row.line)) + " runs "
                + nameOf(firstOf(row)) + " before " + nameOf(secondOf(row)),
            "row:" + std::to_string(rowNumberOf(row.line)),
            "switch that row off, or move what it is about first");
    }

    /// Which row of the table, from 0, stands at a line of the document.
    std::int32_t rowNumberOf(std::int32_t line) const
    {
        const auto lines = m_context.document.rowLines();
        return static_cast<std::int32_t>(std::find(lines.begin(), lines.end(), line) - lines.begin());
    }

    const GestureContext &m_context;
    const PieceMove &m_move;
    Positions m_own;
    Positions m_other;
    std::vector<Crossing> m_rows{};
    Proposal m_proposal{};
};

} // namespace

Proposal proposePieceMove(const GestureContext &context, const PieceMove &move)
{
    return PieceProposal(context, move).make();
}

namespace {

SegmentKind passOf(const BlockRef &block)
{
    return block.direction == Direction::Backward ? SegmentKind::Backward : SegmentKind::Forward;
}

/// The rule pairs blocks of these kinds, whatever the micro-batches.
bool pairsKinds(const InterleaveRule &rule, const BlockRef &first, const BlockRef &second)
{
    const auto passFits = [](SegmentKind asked, const BlockRef &block) {
        return asked == passOf(block)
            || (asked == SegmentKind::InputGradient && block.direction == Direction::Backward);
    };
    const auto laneFits = [](std::int32_t asked, const BlockRef &block) {
        return asked < 0 || block.part.lane < 0 || asked == block.part.lane;
    };
    const bool stagesFit = rule.stage < 0
        ? first.stage == second.stage
        : rule.stage == first.stage.index && rule.secondStage == second.stage.index;
    return stagesFit && passFits(rule.first, first) && passFits(rule.second, second)
        && laneFits(rule.lane, first) && laneFits(rule.secondLane, second);
}

/// Why these can't run side by side, as far as they say so themselves.
std::optional<Error> apartBecause(
    const GestureContext &context, const BlockRef &first, const BlockRef &second)
{
    if (!context.plan)
        return refusalOf("blocks can be run side by side once there is a plan", "block");
    if (first.direction == Direction::Optimizer || second.direction == Direction::Optimizer)
        return refusalOf("the optimizer runs once the gradients of its weights are complete", "block");
    const ScheduleKind schedule = context.plan->schedule;
    if (schedule == ScheduleKind::CombinedOneFOneB || schedule == ScheduleKind::DualPipe
        || schedule == ScheduleKind::DualPipeV)
        return refusalOf(
            std::string("the schedule ") + nameOf(schedule) + " says itself which blocks run side by side",
            "block", "choose another schedule, 1f1b for one");
    if (first.stage == second.stage && first.microBatch == second.microBatch
        && first.part.lane == second.part.lane)
        return refusalOf(wordsOf(second) + " needs what " + wordsOf(first) + " makes", "block",
            "choose blocks of two micro-batches");
    return std::nullopt;
}

} // namespace

Proposal proposeSideBySide(const GestureContext &context, BlockRef first, BlockRef second)
{
    Proposal proposal;
    if (first == second)
        return proposal;
    if (first.direction != Direction::Forward && second.direction == Direction::Forward)
        std::swap(first, second);
    proposal.words = "run " + wordsOf(first) + " beside " + wordsOf(second);
    if (auto why = apartBecause(context, first, second))
        return withRefusal(std::move(proposal), std::move(why));
    proposal.operators = operatorsOfStage(context, first.stage);
    const std::int32_t offset = second.microBatch - first.microBatch;
    InterleaveRule wanted{.first = passOf(first),
        .second = passOf(second),
        .stage = first.stage.index,
        .secondStage = second.stage.index,
        .microBatchOffset = offset,
        .lane = first.part.lane,
        .secondLane = second.part.lane};
    RowEdits edits(context);
    bool apart = false;
    bool written = false;
    const std::int32_t stages = context.plan->stageCount;
    forEachRule<InterleaveRule>(context, [&](std::int32_t line, const Row &, const InterleaveRule &rule) {
        const bool forth = pairsKinds(rule, first, second);
        if (!forth && !pairsKinds(rule, second, first))
            return;
        apart = apart || rule.microBatchOffset == (forth ? offset : -offset);
        if (rule.stage >= 0 && !apart && !written) {
            edits.replace(line, gestureRow(selectAll(), wanted));
            written = true;
            return;
        }
        edits.remove(line);
        for (std::int32_t s = 0; rule.stage < 0 && s < stages; ++s) { // the others stay as they are
            InterleaveRule other = rule;
            other.stage = other.secondStage = s;
            if (s != first.stage.index)
                edits.append(gestureRow(selectAll(), other));
        }
    });
    if (apart)
        proposal.words = "run " + wordsOf(first) + " and " + wordsOf(second) + " apart";
    else if (!written)
        edits.append(gestureRow(selectAll(), wanted));
    edits.finish(proposal);
    return proposal;
}

} // namespace planloom
