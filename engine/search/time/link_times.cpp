#include "engine/search/time/link_times.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace planloom {

std::vector<LinkTimes::Sending> LinkTimes::sendingOf(const std::vector<StageLink> &links) const
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<GroupShape>> shapes; // of all replicas
    // Scale units are all alike.
    const std::int32_t replicas = m_places.hasUnits ? 1 : m_configuration.replicas;
    std::vector<Sending> sending;
    for (const StageLink &link : links) {
        const std::int32_t from = link.from % m_configuration.ranks;
        const std::int32_t to = link.to % m_configuration.ranks;
        const auto [found, fresh] = shapes.try_emplace({std::min(from, to), std::max(from, to)});
        std::vector<GroupShape> &own = found->second;
        for (std::int32_t r = 0; fresh && from != to && r < replicas; ++r) {
            const GroupShape shape = groupShape(m_cluster, {m_places.at(r, from, 0), m_places.at(r, to, 0)});
            if (std::find(own.begin(), own.end(), shape) == own.end())
                own.push_back(shape);
        }
        const auto slowest = [&](const StageLink::Sent &sent) {
            double most = 0;
            if (std::any_of(sent.earlier.begin(), sent.earlier.end(),
                    [&](std::int32_t stage) { return stage % m_configuration.ranks == to; }))
                return most;
            for (const GroupShape shape : own)
                most = std::max(most, m_costs.collective(CollectiveKind::SendRecv, Bytes{sent.bytes}, shape));
            return most;
        };
        Sending &all = sending.emplace_back();
        for (const StageLink::Sent &sent : link.forward)
            all.forward.push_back(slowest(sent));
        for (const StageLink::Sent &sent : link.backward)
            all.backward.push_back(slowest(sent));
    }
    return sending;
}

std::vector<StageSend> LinkTimes::sendsOf(const std::vector<StageLink> &links) const
{
    const std::vector<Sending> sending = sendingOf(links);
    std::vector<StageSend> sends;
    for (std::size_t i = 0; i < links.size(); ++i) {
        const auto &[forward, backward] = sending[i];
        sends.push_back({links[i].from, links[i].to, std::accumulate(forward.begin(), forward.end(), 0.0),
            std::accumulate(backward.begin(), backward.end(), 0.0),
            sentAhead(links[i].forward, forward).seconds, sentAhead(links[i].backward, backward).seconds,
            links[i].isChain || !links[i].backward.empty()});
    }
    return sends;
}

} // namespace planloom
