#include "widgets/timeline/timeline_gestures.h"

#include "engine/design/schedules/block_move.h"
#include "widgets/timeline/timeline_holds.h"
#include "widgets/timeline/timeline_pieces.h"

#include <algorithm>
#include <cstdlib>

namespace planloom {

namespace {

QString keyOf(const char *what, const std::vector<OperatorId> &operators)
{
    // The same things again within a second are one step of the history.
    std::size_t hash = operators.size();
    for (const OperatorId op : operators)
        hash = hash * 1'000'003 + static_cast<std::size_t>(op.index);
    return QStringLiteral("timeline.%1:%2").arg(QLatin1String(what)).arg(static_cast<qulonglong>(hash));
}

} // namespace

void TimelineGestures::forgetKeys()
{
    ++m_pictures;
    m_keyLane.reset();
    m_keySlots.clear();
    m_keyInFlight.clear();
    m_refusal.clear();
}

bool TimelineGestures::commit(const Proposal &proposal, const QString &mergeKey, const Followers &followers)
{
    m_refusal.clear();
    if (!m_host)
        return false;
    if (proposal.refusal) {
        m_refusal = proposal.refusal->message;
        return false;
    }
    if (proposal.edit.empty()) {
        m_refusal = proposal.words.empty() ? "this changes nothing" : proposal.words + " changes nothing";
        return false;
    }
    return commitOrder(proposal, followers, mergeKey);
}

bool TimelineGestures::moveLane(
    const TimelineCanvas &canvas, const std::vector<OperatorId> &operators, std::int32_t by)
{
    m_refusal.clear();
    const GestureContextSnapshot context = m_host ? m_host->gestureContext() : nullptr;
    if (!context)
        return false;
    const auto forward = forwardOperators(context->graph(), operators);
    if (forward.empty()) {
        m_refusal = "select an operator to move to another lane";
        return false;
    }
    // The plan may be older than the last press: go on from where that sent them.
    const bool goesOn = m_keyLane && m_keyLane->first == forward;
    const std::int32_t from = goesOn ? m_keyLane->second : rowOfOperators(canvas, forward);
    const std::int32_t to = from < 0 ? -1 : deviceRowBeside(*canvas.rows, from, by);
    if (to < 0) {
        m_refusal = by < 0 ? "there is no lane above" : "there is no lane below";
        return false;
    }
    const auto &devices = (*canvas.rows)[static_cast<std::size_t>(to)].devices;
    const std::uint64_t picture = m_pictures;
    if (!commit(proposePlace(*context, {.operators = forward, .devices = devices}), keyOf("lane", forward)))
        return false;
    if (picture == m_pictures)
        m_keyLane = {forward, to};
    return true;
}

std::int32_t TimelineGestures::slotsMoved(std::int32_t lane, std::size_t what) const
{
    const auto known = m_keySlots.find({lane, what});
    return known == m_keySlots.end() ? 0 : known->second;
}

bool TimelineGestures::moveBlock(const TimelineCanvas &canvas, std::int32_t lane, std::size_t block,
    std::int32_t by, bool onlyThis, bool held)
{
    m_refusal.clear();
    const GestureContextSnapshot context = m_host ? m_host->gestureContext() : nullptr;
    if (!context || lane < 0 || static_cast<std::size_t>(lane) >= canvas.scene->lanes.size())
        return false;
    const DeviceLane &of = canvas.scene->lanes[static_cast<std::size_t>(lane)];
    if (block >= of.blocks.size())
        return false;
    if (!of.blocks[block].isOrdered()) {
        m_refusal = "this runs once per step: only forward and backward blocks can be moved";
        return false;
    }
    const std::int32_t moved = slotsMoved(lane, block);
    const std::uint64_t picture = m_pictures;
    const std::int32_t slots = moved + by;
    // Blocks without an order of their own are no slots.
    std::size_t other = block;
    for (std::int32_t left = std::abs(slots); left > 0;) {
        if (slots < 0 ? other == 0 : other + 1 >= of.blocks.size()) {
            m_refusal =
                slots < 0 ? "it is the first block of its device" : "it is the last block of its device";
            return false;
        }
        other = slots < 0 ? other - 1 : other + 1;
        if (of.blocks[other].isOrdered())
            --left;
    }
    const BlockRef own = refOf(of.blocks[block]);
    // Going back to where it was: the one it had passed comes first again.
    std::size_t passed = other;
    if (slots == 0 || (slots < 0) != (by < 0))
        passed = static_cast<std::size_t>(static_cast<std::int64_t>(block) + moved);
    const BlockRef neighbour = refOf(of.blocks[std::min(passed, of.blocks.size() - 1)]);
    const bool pinned = m_unit > 0 && !onlyThis;
    const BlockRef &first = by < 0 ? own : neighbour;
    const BlockRef &second = by < 0 ? neighbour : own;
    Proposal proposal = pinned ? proposeUnitMove(*context, *canvas.scene->plan,
                            {.first = first, .second = second, .movesSecond = by > 0, .unit = m_unit})
                               : proposeBlockOrder(*context, first, second, onlyThis);
    if (held && slots != 0 && !pinned)
        proposal = holdingBlock(*context, of, block, slots < 0 ? other : other + 1, onlyThis, proposal);
    const QString key = QStringLiteral("timeline.block:%1:%2").arg(lane).arg(static_cast<qulonglong>(block));
    const bool keeps = m_policy == FollowersPolicy::KeepOrder && slots != 0 && !pinned;
    const std::size_t neighbouring = std::min(passed, of.blocks.size() - 1);
    if (!commit(proposal, key,
            keeps ? followersOfBlock(of, block, slots < 0 ? other : other + 1, by < 0 ? block : neighbouring,
                by < 0 ? neighbouring : block, onlyThis, false)
                  : Followers{}))
        return false;
    if (picture == m_pictures) // else the plan was at hand, and what is shown now is that of the press
        m_keySlots[{lane, block}] = slots;
    return true;
}

bool TimelineGestures::moveSpan(
    const TimelineCanvas &canvas, std::size_t span, std::int32_t by, bool onlyThis, bool held)
{
    m_refusal.clear();
    const GestureContextSnapshot context = m_host ? m_host->gestureContext() : nullptr;
    const SpanColumns &spans = canvas.scene->timeline->spans;
    if (!context || span >= spans.size())
        return false;
    const std::int32_t device = spans.device[span];
    const DeviceLane &lane = canvas.scene->lanes[static_cast<std::size_t>(device)];
    const std::int32_t block = lane.blockOf(span);
    const OperatorId own = canvas.scene->operatorOf(span);
    if (block < 0 || !own.valid())
        return false;
    const TimelineBlock &within = lane.blocks[static_cast<std::size_t>(block)];
    const std::int32_t moved = slotsMoved(-1 - device, span);
    const std::uint64_t picture = m_pictures;
    const std::int32_t slots = moved + by;
    const std::int32_t target = slots == 0 || (slots < 0) != (by < 0) ? moved : slots;
    const auto passed = passedBySpan(*canvas.scene, lane, static_cast<std::size_t>(block), span, target);
    if (!passed) {
        const char *what = sideBySideOf(lane, static_cast<std::size_t>(block)) ? " blocks" : " block";
        m_refusal =
            std::string(by < 0 ? "it is the first operator of its" : "it is the last operator of its") + what;
        return false;
    }
    if (!passed->own.valid()) {
        if (!moveAround(*context, *canvas.scene, span, passed->piece, by < 0, onlyThis, held && slots != 0))
            return false;
        if (picture == m_pictures)
            m_keySlots[{-1 - device, span}] = slots;
        return true;
    }
    const OperatorId neighbour = passed->own;
    const auto other = static_cast<std::int64_t>(passed->row);
    if (neighbour == own)
        return false;
    const OrderGesture gesture{.first = {by < 0 ? own : neighbour},
        .second = {by < 0 ? neighbour : own},
        .microBatch = onlyThis ? spans.microBatch[span] : -1};
    const bool keeps = m_policy == FollowersPolicy::KeepOrder && slots != 0;
    Proposal proposal = proposeOrder(*context, gesture);
    if (held && slots != 0)
        proposal = holdingSpan(*context, *canvas.scene, within, span,
            static_cast<std::size_t>(slots < 0 ? other : other + 1), onlyThis, proposal);
    if (!commit(proposal, keyOf("order", {own}),
            keeps ? followersOfSpan(*canvas.scene, lane, static_cast<std::size_t>(block), span,
                static_cast<std::size_t>(slots < 0 ? other : other + 1), gesture.first.front(),
                gesture.second.front())
                  : Followers{}))
        return false;
    if (picture == m_pictures)
        m_keySlots[{-1 - device, span}] = slots;
    return true;
}

bool TimelineGestures::changeInFlight(const TimelineCanvas &canvas, std::int32_t lane, std::int32_t by)
{
    m_refusal.clear();
    const GestureContextSnapshot context = m_host ? m_host->gestureContext() : nullptr;
    if (!context || lane < 0 || static_cast<std::size_t>(lane) >= canvas.scene->lanes.size())
        return false;
    const WarmUp &warmUp = canvas.scene->lanes[static_cast<std::size_t>(lane)].warmUp;
    if (warmUp.count == 0) {
        m_refusal = "this lane is no stage of a pipeline";
        return false;
    }
    const auto known = m_keyInFlight.find(warmUp.stage.index);
    const std::int32_t count = (known == m_keyInFlight.end() ? warmUp.count : known->second) + by;
    if (count < 1 || count > canvas.scene->plan->microBatches) {
        m_refusal = count < 1
            ? "at least one micro-batch is in flight"
            : "there are only " + std::to_string(canvas.scene->plan->microBatches) + " micro-batches";
        return false;
    }
    const std::uint64_t picture = m_pictures;
    if (!commit(proposeInFlight(*context, warmUp.stage, count),
            QStringLiteral("timeline.inflight:%1").arg(warmUp.stage.index)))
        return false;
    if (picture == m_pictures)
        m_keyInFlight[warmUp.stage.index] = count;
    return true;
}

} // namespace planloom
