// Why devices are idle: one pause, and all of them.

#include "widgets/timeline/timeline_view.h"

#include "engine/table/table_text.h"
#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_idle_text.h"
#include "widgets/timeline/timeline_panel.h"

#include <algorithm>

namespace planloom {

void TimelineView::needAnalysis()
{
    const auto context = m_gestures.host() ? m_gestures.host()->gestureContext() : nullptr;
    m_analyst->needDeep(context && !m_measured ? context->plan : nullptr);
}

std::vector<FactLine> TimelineView::factsOfPause(const TimelineHit &hit) const
{
    const TimelineAnalysis *analysis = m_analyst->deep();
    const DeviceId device =
        shown()->lanes[static_cast<std::size_t>(m_rows[static_cast<std::size_t>(hit.row)].lane)].device;
    const auto time = static_cast<std::int64_t>(hit.time);
    const IdleGap *gap = analysis ? analysis->idle.gapAt(device, time) : nullptr;
    const auto bubble = gap ? bubbleAt(*shown()->timeline, analysis->dependencies, device, Nanoseconds{time})
                            : std::optional<Bubble>{};
    if (!bubble)
        return factsOfBubble(*shown(), hit.idleBegin, hit.idleEnd);
    return factsOfIdle(*shown(), *bubble, blocksBehind(*shown()->plan, *shown()->timeline, *bubble), *gap);
}

void TimelineView::explainIdle()
{
    if (!m_scene || !m_focus.valid() || m_focus.part != LanePart::Idle)
        return;
    const TimelineAnalysis *analysis = m_analyst->deep();
    m_explains = !analysis;
    if (!analysis) {
        needAnalysis(); // comes back here
        return;
    }
    const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(m_focus.lane)];
    const auto block = static_cast<std::size_t>(std::max(m_focus.block, 0));
    const std::int64_t begin = lane.endBefore(block);
    const std::int64_t end =
        block < lane.blocks.size() ? lane.blocks[block].begin : shown()->timeline->step.count();
    std::int64_t time = (begin + end) / 2;
    if (m_idleTime >= 0
        && lane.blockOf(rowsIn(shown()->timeline->spans, lane.compute, m_idleTime, m_idleTime + 1).begin)
            == m_focus.block)
        time = static_cast<std::int64_t>(m_idleTime);
    const auto context = m_gestures.host() ? m_gestures.host()->gestureContext() : nullptr;
    const auto bubble = whyIdle(*shown()->plan, context ? context->plan.get() : nullptr, *shown()->timeline,
        analysis->dependencies, lane.device, Nanoseconds{time});
    if (!bubble)
        return;
    m_wouldEnd.reset();
    const auto links = blocksBehind(*shown()->plan, *shown()->timeline, *bubble);
    showPanel(
        bubbleTable(*shown(), *bubble, links, analysis->idle.gapAt(lane.device, time), [&context](RowId row) {
            // Few rows are asked for, of the many that there may be.
            const std::vector<std::int32_t> lines =
                context ? context->document.rowLines() : std::vector<std::int32_t>{};
            const auto index = static_cast<std::size_t>(row.index);
            if (!row.valid() || index >= lines.size())
                return std::string{};
            return print(*context->document.lines()[static_cast<std::size_t>(lines[index])]->row);
        }));
    m_chain = {lane.device.index, bubble->begin, bubble->end, {}};
    const SpanColumns &spans = shown()->timeline->spans;
    for (std::size_t i = 0; i < links.size(); ++i) {
        std::int32_t number = static_cast<std::int32_t>(i) + 1;
        const auto add = [&](std::int32_t span) {
            const auto s = static_cast<std::size_t>(span);
            m_chain.links.push_back({span, std::max(spans.start[s], bubble->begin),
                std::min(spans.start[s] + spans.duration[s], bubble->end), std::exchange(number, 0)});
        };
        if (links[i].firstWait < 0)
            add(links[i].span);
        for (std::int32_t w = std::max(links[i].firstWait, 0); w < links[i].endWait; ++w)
            add(bubble->waits[static_cast<std::size_t>(w)].on);
    }
    updateActions();
    viewport()->update();
}

void TimelineView::showIdleTimes()
{
    const TimelineAnalysis *analysis = m_analyst->deep();
    m_wantsIdleTable = m_scene && !analysis;
    if (m_wantsIdleTable)
        needAnalysis(); // comes back here
    if (!m_scene || !analysis)
        return;
    m_wouldEnd.reset();
    showPanel(idleTable(*shown(), analysis->idle));
    updateActions();
    viewport()->update();
}

} // namespace planloom
