#include "engine/search/bounds/way_sends.h"

#include <algorithm>
#include <numeric>

namespace planloom {

WaySends::WaySends(const BoundedStep &step)
    : m_step(step)
    , m_links(leastLinks(step.problem, step.plan))
    , m_leastSends(step.links.sendsOf(m_links))
    , m_leastSending(step.links.sendingOf(m_links))
    , m_recomputes(at(step.plan.stages), false)
{
    const std::vector<double> zeros(step.problem.operatorCount(), 0);
    for (const ShardAxes axes : {ShardAxes::None, ShardAxes::Inner, ShardAxes::Outer, ShardAxes::Both}) {
        const std::int64_t parts = step.problem.setting().devicesOver(axes);
        if (auto &sending = m_sending[parts]; sending.empty())
            sending = step.links.sendingOf(
                stageLinks(step.problem, step.plan, [parts](const auto &) { return parts; }, {zeros, zeros}));
    }
    for (std::size_t i = 0; i < step.plan.runsAgain.size(); ++i)
        if (step.plan.runsAgain[i] > 0)
            m_recomputes[at(step.stageOf(i))] = true;
}

/// Which stages are linked, and by what, is the same for all partitions: only whole tensors or parts are
/// sent.
void WaySends::addTo(const std::vector<StageLink> &links, const std::vector<bool> &isOwn, StepWay &way) const
{
    const std::vector<LinkTimes::Sending> sending = m_step.links.sendingOf(links);
    for (std::size_t i = 0; i < links.size(); ++i) {
        const SendVisits &visits = way.blocks.sends[i];
        const auto addOf = [&](bool backward, double counts, double leastAhead) {
            if (counts == 0)
                return;
            const std::vector<StageLink::Sent> &sent = backward ? links[i].backward : links[i].forward;
            const std::size_t reads = at(backward ? links[i].from : links[i].to);
            const std::int32_t by = sentAhead(sent, backward ? sending[i].backward : sending[i].forward).by;
            if (by < 0)
                return;
            // What is computed again before gradients come is of operators behind and before their reader.
            if (!isOwn[reads] || (backward && m_recomputes[reads])) {
                way.constant += counts * leastAhead;
                return;
            }
            const std::vector<double> &least =
                backward ? m_leastSending[i].backward : m_leastSending[i].forward;
            way.constant += counts * std::accumulate(least.begin(), least.begin() + by + 1, 0.0);
            for (std::size_t each = 0; each <= at(by); ++each)
                way.sent.push_back({i, each, backward, counts});
            way.skipped.push_back({sent[at(by)].reader, backward, counts});
        };
        addOf(false, visits.forward, m_leastSends[i].forwardAhead);
        addOf(true, visits.backward, m_leastSends[i].backwardAhead);
    }
    if (way.blocks.into >= 0) {
        const StageSend &into = m_leastSends[at(way.blocks.into)];
        way.constant += way.blocks.intoBackward ? into.backwardAhead : into.forwardAhead;
    }
}

const Meeting &WaySends::meetingOf(const SentOn &sent) const
{
    const StageLink &link = m_links[sent.link];
    return m_step.problem.meetings()[(sent.backward ? link.backward : link.forward)[sent.number].meeting];
}

double WaySends::seconds(const OperatorChoice &choice, const std::vector<SentOn> &sent) const
{
    double seconds = 0;
    for (const SentOn &each : sent) {
        const ShardLayout layout = choice.outputs[meetingOf(each).output];
        const auto of = [&](const std::vector<LinkTimes::Sending> &sending) {
            return (each.backward ? sending[each.link].backward : sending[each.link].forward)[each.number];
        };
        seconds += each.counts
            * std::max(0.0, of(m_sending.at(partsSent(m_step.problem, layout))) - of(m_leastSending));
    }
    return seconds;
}

} // namespace planloom
