// What the host's answers change of a gesture: rows that are in its way, and rows that keep its followers in
// order.

#include "widgets/timeline/timeline_gestures.h"

#include "engine/design/schedules/block_move.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int32_t kMostRounds = 12; ///< In which rows for followers are added: each needs a plan.

} // namespace

void TimelineGestures::previewWay()
{
    m_proposal = m_way.proposal();
    m_host->preview(*m_proposal);
}

bool TimelineGestures::toggleRowsInTheWay()
{
    if (!m_host || !dragging())
        return false;
    const GestureContextSnapshot context = m_host->gestureContext();
    if (context && m_way.toggle(*context) && m_proposal)
        previewWay();
    return true;
}

void TimelineGestures::answered()
{
    if (!m_host || !dragging() || !m_proposal)
        return;
    const PreviewSnapshot preview = m_host->currentPreview();
    const GestureContextSnapshot context = m_host->gestureContext();
    if (!preview || !context)
        return;
    if (m_way.learn(*context, *preview) || keepOrder(*context, *preview))
        previewWay();
    else
        refuseBroken(*preview);
}

/// An order or a place that the devices or the rows have no room for is none to let go: what a hand would not
/// see until it is done. O takes a row out of the way, and then there may be room.
void TimelineGestures::refuseBroken(const Preview &preview)
{
    const bool moves = m_ghost.drag == TimelineDrag::Order || m_ghost.drag == TimelineDrag::Place
        || m_ghost.drag == TimelineDrag::Spread || m_ghost.drag == TimelineDrag::Axis;
    if (!moves || m_proposal->refusal || !preview.update || preview.proposal.edit != m_proposal->edit)
        return;
    if (auto broken = limitBrokenBy(*preview.update, preview.baseline.get()))
        m_proposal->refusal = std::move(broken);
}

void TimelineGestures::setPinnedUnit(std::int32_t microBatches)
{
    if (m_unit == microBatches)
        return;
    m_unit = microBatches;
    m_key.reset(); // a drag proposes anew with its next step
}

void TimelineGestures::setFollowersPolicy(FollowersPolicy policy)
{
    if (m_policy == policy)
        return;
    m_policy = policy;
    m_written.reset();
    m_key.reset(); // a drag proposes anew with its next step
}

Followers TimelineGestures::followersAt(
    const TimelineCanvas &canvas, std::size_t own, GestureModifiers modifiers) const
{
    const DeviceLane &lane = canvas.laneOf((*canvas.rows)[static_cast<std::size_t>(m_hit.row)]);
    const std::size_t caret = m_ghost.caret->before;
    if (m_ghost.amongSpans) {
        const bool earlier = caret <= own;
        const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(m_hit.block)];
        const OperatorId neighbour = canvas.scene->operatorOf(besideCaret(*canvas.scene, block, own, caret));
        return followersOfSpan(*canvas.scene, lane, static_cast<std::size_t>(m_hit.block), own, caret,
            earlier ? m_operator : neighbour, earlier ? neighbour : m_operator);
    }
    if (modifiers.shift && modifiers.control)
        return {}; // who runs beside whom, whatever follows
    if (modifiers.shift)
        return followersOfBlock(
            lane, own, caret, std::max(own, caret), std::min(own, caret), modifiers.alt, true);
    const BlockMove move = blockMoveTo(lane, own, caret);
    if (!move.changes())
        return {};
    return followersOfBlock(lane, own, caret, static_cast<std::size_t>(move.first),
        static_cast<std::size_t>(move.second), modifiers.alt, false);
}

bool TimelineGestures::keepOrder(const GestureContext &context, const Preview &preview)
{
    if (!m_ghost.kept || !preview.update || !preview.update->scene
        || preview.proposal.edit != m_way.proposal().edit)
        return false;
    KeptOrder kept = keepingOrder(context, m_way.base(), m_followers, *preview.update->scene);
    m_ghost.kept->known = kept.rows == 0 || m_rounds >= kMostRounds;
    m_ghost.kept->lost = kept.lost;
    if (kept.rows == 0 || ++m_rounds > kMostRounds)
        return false;
    m_ghost.kept->rows += kept.rows;
    m_way.setBase(std::move(kept.proposal));
    return true;
}

bool TimelineGestures::commitOrder(
    const Proposal &proposal, const Followers &followers, const QString &mergeKey)
{
    m_written.reset();
    if (!m_host->commit(proposal, mergeKey))
        return false;
    const GestureContextSnapshot context = m_host->gestureContext();
    if (m_policy == FollowersPolicy::KeepOrder && context && !followers.empty())
        m_written = Written{followers, mergeKey, context->document.text(), 0};
    return true;
}

void TimelineGestures::planArrived(const TimelineScene &scene)
{
    if (!m_written || !m_host || m_pressed || dragging())
        return; // what a hand holds is about the rows as they are
    const GestureContextSnapshot context = m_host->gestureContext();
    // Other rows have been written since, or these were taken back: they are none of this gesture's business.
    if (!context || context->document.text() != m_written->text) {
        m_written.reset();
        return;
    }
    if (!showsMove(scene, m_written->followers))
        return; // a plan from before
    KeptOrder kept = keepingOrder(*context, {}, m_written->followers, scene);
    if (kept.rows == 0 || ++m_written->rounds > kMostRounds) {
        m_written.reset();
        return;
    }
    kept.proposal.words = "keep the order of what follows";
    Written written = std::move(*m_written);
    m_written.reset();
    if (!m_host->commit(kept.proposal, written.mergeKey))
        return;
    if (const GestureContextSnapshot now = m_host->gestureContext()) {
        written.text = now->document.text();
        m_written = std::move(written);
    }
}

} // namespace planloom
