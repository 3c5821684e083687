#include "engine/traces/matching/match_collectives.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

using Steps = std::vector<const CommunicationStep *>;

/// Sequences whose product is larger are matched by kind and order alone.
constexpr std::size_t kMostPairs = 4'000'000;

/// Whether a backend may carry out `planned` by `traced`.
bool carriesOut(TraceKind traced, TraceKind planned)
{
    switch (planned) {
    case TraceKind::ReduceScatter:
        return traced == TraceKind::AllToAll || traced == TraceKind::AllReduce;
    case TraceKind::AllReduce:
        return traced == TraceKind::AllGather || traced == TraceKind::ReduceScatter;
    case TraceKind::AllGather:
        return traced == TraceKind::Broadcast || traced == TraceKind::AllReduce;
    default:
        return traced == TraceKind::OtherCommunication;
    }
}

/// How well two fit: 0 if they can't be the same.
int scoreOf(const CommunicationStep &planned, const CommunicationStep &traced)
{
    const bool sameBytes = planned.bytes == traced.bytes;
    if (planned.kind == traced.kind)
        return sameBytes ? 4 : traced.bytes < 0 ? 3 : 1;
    if (!carriesOut(traced.kind, planned.kind))
        return 0;
    return sameBytes ? 2 : 1;
}

/// The pairs with the largest sum of scores that keep both orders, and that sum.
std::pair<int, std::vector<std::pair<std::size_t, std::size_t>>> bestPairs(
    const Steps &plan, const Steps &trace)
{
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    const std::size_t n = plan.size();
    const std::size_t m = trace.size();
    if (n > kMostPairs / std::max<std::size_t>(m, 1)) {
        int sum = 0;
        for (std::size_t i = 0, j = 0; i < n && j < m; ++i) {
            std::size_t at = j;
            while (at < m && scoreOf(*plan[i], *trace[at]) == 0)
                ++at;
            if (at == m)
                continue;
            sum += scoreOf(*plan[i], *trace[at]);
            pairs.emplace_back(i, at);
            j = at + 1;
        }
        return {sum, pairs};
    }
    std::vector<int> best((n + 1) * (m + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> int & { return best[i * (m + 1) + j]; };
    for (std::size_t i = n; i-- > 0;)
        for (std::size_t j = m; j-- > 0;) {
            const int score = scoreOf(*plan[i], *trace[j]);
            at(i, j) = std::max({at(i + 1, j), at(i, j + 1), score > 0 ? at(i + 1, j + 1) + score : 0});
        }
    for (std::size_t i = 0, j = 0; i < n && j < m;) {
        const int score = scoreOf(*plan[i], *trace[j]);
        if (score > 0 && at(i, j) == at(i + 1, j + 1) + score)
            pairs.emplace_back(i++, j++);
        else if (at(i, j) == at(i + 1, j))
            ++i;
        else
            ++j;
    }
    return {at(0, 0), pairs};
}

/// Streams of one set of members.
std::map<std::int64_t, Steps> streamsOf(const Steps &steps)
{
    std::map<std::int64_t, Steps> streams;
    for (const CommunicationStep *step : steps)
        streams[step->stream].push_back(step);
    return streams;
}

void add(CommunicationPairs &made, const Steps &plan, const Steps &trace,
    const std::vector<std::pair<std::size_t, std::size_t>> &pairs)
{
    for (const auto &[i, j] : pairs)
        made.emplace_back(plan[i]->id, trace[j]->id);
}

/// Each of the plan's streams with the trace's that it fits best; where the trace has fewer, all of the
/// plan's are one stream in it.
void matchMembers(const Steps &plan, const Steps &trace, CommunicationPairs &made)
{
    auto planStreams = streamsOf(plan);
    auto traceStreams = streamsOf(trace);
    if (traceStreams.size() < planStreams.size() || planStreams.size() == 1) {
        // One stream of the plan may also be several of the trace.
        if (traceStreams.size() == 1 || planStreams.size() > 1) {
            add(made, plan, trace, bestPairs(plan, trace).second);
            return;
        }
    }
    while (!planStreams.empty() && !traceStreams.empty()) {
        int best = -1;
        std::pair<std::int64_t, std::int64_t> chosen;
        std::vector<std::pair<std::size_t, std::size_t>> pairs;
        for (const auto &[p, ofPlan] : planStreams)
            for (const auto &[t, ofTrace] : traceStreams) {
                auto [score, found] = bestPairs(ofPlan, ofTrace);
                if (score > best) {
                    best = score;
                    chosen = {p, t};
                    pairs = std::move(found);
                }
            }
        add(made, planStreams.at(chosen.first), traceStreams.at(chosen.second), pairs);
        planStreams.erase(chosen.first);
        traceStreams.erase(chosen.second);
    }
}

} // namespace

CommunicationPairs matchCommunication(
    const std::vector<CommunicationStep> &plan, const std::vector<CommunicationStep> &trace)
{
    std::map<std::vector<std::int32_t>, std::pair<Steps, Steps>> byMembers;
    for (const CommunicationStep &step : plan)
        byMembers[step.members].first.push_back(&step);
    for (const CommunicationStep &step : trace)
        if (const auto found = byMembers.find(step.members); found != byMembers.end())
            found->second.second.push_back(&step);
    CommunicationPairs made;
    for (const auto &[members, both] : byMembers)
        if (!both.second.empty())
            matchMembers(both.first, both.second, made);
    // What is of unknown members fits whatever is left, in the order of all.
    std::set<std::int64_t> taken;
    for (const auto &[p, t] : made)
        taken.insert(p);
    Steps left;
    for (const CommunicationStep &step : plan)
        if (taken.count(step.id) == 0)
            left.push_back(&step);
    Steps unknown;
    for (const CommunicationStep &step : trace)
        if (step.members.empty())
            unknown.push_back(&step);
    if (!left.empty() && !unknown.empty())
        add(made, left, unknown, bestPairs(left, unknown).second);
    return made;
}

} // namespace planloom
