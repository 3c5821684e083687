// Where something may be moved in time, and where not: found little by little while it is dragged.

#include "widgets/timeline/timeline_gestures.h"

#include <QtCore/QElapsedTimer>

#include <algorithm>

namespace planloom {

void TimelineGestures::beginProbe(const DeviceLane &lane, std::size_t own, GestureModifiers modifiers)
{
    if (m_probe && m_probe->own == own && m_probe->modifiers == modifiers)
        return;
    m_ghost.candidates.clear();
    m_probe = Probe{own, modifiers, {}};
    for (std::size_t caret = 0; caret < lane.blocks.size(); ++caret) {
        if (lane.blocks[caret].begin > lane.endBefore(caret) && blockMoveTo(lane, own, caret).changes())
            m_probe->open.push_back(caret);
    }
    const auto distance = [own](std::size_t caret) { return caret > own ? caret - own : own - caret; };
    std::sort(m_probe->open.begin(), m_probe->open.end(),
        [&](std::size_t a, std::size_t b) { return distance(a) > distance(b); });
}

void TimelineGestures::beginRefused(const TimelineCanvas &canvas, GestureModifiers modifiers)
{
    const std::size_t caret = m_ghost.caret->before;
    const bool among = m_ghost.amongSpans || m_ghost.amongPieces;
    const bool known = m_refused && m_refused->amongSpans == among && m_refused->modifiers == modifiers
        && caret >= m_refused->low && caret <= m_refused->high;
    if (known)
        return;
    m_refused = Refused{among, modifiers, caret, caret, false, false};
    showRefused(canvas);
}

/// Where the pointer would mean one of the carets that are refused: from the middle of what stands before the
/// first of them to the middle of what stands behind the last.
void TimelineGestures::showRefused(const TimelineCanvas &canvas)
{
    const DeviceLane &lane = canvas.laneOf((*canvas.rows)[static_cast<std::size_t>(m_hit.row)]);
    const SpanColumns &spans = canvas.scene->timeline->spans;
    const TimelineBlock &block = lane.blocks[static_cast<std::size_t>(m_hit.block)];
    const bool among = m_refused->amongSpans;
    const LaneRows rows = m_ghost.amongPieces ? m_pair->rows : block.rows;
    const std::size_t first = among ? rows.begin : 0;
    const std::size_t end = among ? rows.end : lane.blocks.size();
    const auto middle = [&](std::size_t at) {
        return among
            ? static_cast<double>(spans.start[at]) + static_cast<double>(spans.duration[at]) / 2
            : (static_cast<double>(lane.blocks[at].begin) + static_cast<double>(lane.blocks[at].end)) / 2;
    };
    m_ghost.illegalBegin = m_refused->low > first ? middle(m_refused->low - 1)
        : among ? static_cast<double>(m_ghost.amongPieces ? m_pair->begin : block.begin)
                : 0.0;
    m_ghost.illegalEnd = m_refused->high < end ? middle(m_refused->high)
        : among ? static_cast<double>(m_ghost.amongPieces ? m_pair->end : block.end)
                : static_cast<double>(canvas.scene->timeline->step.count());
}

bool TimelineGestures::probe(const TimelineCanvas &canvas)
{
    constexpr std::int64_t kMilliseconds = 2; // of a frame; large plans take several
    constexpr std::int64_t kMostNanoseconds =
        60'000'000; // of a drag: where each answer takes long, the nearest places must do
    if (m_ghost.drag != TimelineDrag::Order || !m_context || m_probed > kMostNanoseconds)
        return false;
    QElapsedTimer spent;
    spent.start();
    bool found = false;
    if (m_refused) {
        const DeviceLane &lane = canvas.laneOf((*canvas.rows)[static_cast<std::size_t>(m_hit.row)]);
        const LaneRows rows =
            m_ghost.amongPieces ? m_pair->rows : lane.blocks[static_cast<std::size_t>(m_hit.block)].rows;
        const std::size_t first = m_refused->amongSpans ? rows.begin : 0;
        const std::size_t end = m_refused->amongSpans ? rows.end : lane.blocks.size();
        const auto refuses = [&](std::size_t caret) {
            return orderProposal(canvas, caret, m_refused->modifiers).refusal.has_value();
        };
        while (!(m_refused->lowKnown && m_refused->highKnown) && !spent.hasExpired(kMilliseconds)) {
            if (!m_refused->lowKnown) {
                m_refused->lowKnown = m_refused->low <= first || !refuses(m_refused->low - 1);
                m_refused->low -= m_refused->lowKnown ? 0 : 1;
            }
            if (!m_refused->highKnown) {
                m_refused->highKnown = m_refused->high >= end || !refuses(m_refused->high + 1);
                m_refused->high += m_refused->highKnown ? 0 : 1;
            }
            found = true;
        }
        if (found)
            showRefused(canvas);
    }
    if (!m_probe) {
        m_probed += spent.nsecsElapsed();
        return found;
    }
    while (!m_probe->open.empty() && !spent.hasExpired(kMilliseconds)) {
        const std::size_t caret = m_probe->open.back();
        m_probe->open.pop_back();
        if (orderProposal(canvas, caret, m_probe->modifiers).refusal)
            continue;
        auto &candidates = m_ghost.candidates;
        candidates.insert(std::upper_bound(candidates.begin(), candidates.end(), caret), caret);
        found = true;
    }
    m_probed += spent.nsecsElapsed();
    return found;
}

} // namespace planloom
