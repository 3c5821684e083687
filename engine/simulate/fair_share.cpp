#include "engine/simulate/fair_share.h"

#include <algorithm>

namespace planloom {

const std::vector<double> &FairShare::speeds(
    const std::vector<const std::vector<LinkUse> *> &uses, const std::vector<std::int32_t> &links)
{
    constexpr double kRises = -1;
    for (const std::int32_t link : links)
        m_links[static_cast<std::size_t>(link)] = {};
    const auto at = [this](
                        const LinkUse &use) -> Link & { return m_links[static_cast<std::size_t>(use.link)]; };
    for (const std::vector<LinkUse> *own : uses)
        for (const LinkUse &use : *own)
            at(use).rising += use.share;
    m_speeds.assign(uses.size(), kRises);
    for (double level = 0; level < 1;) {
        level = 1;
        for (const std::int32_t link : links)
            level = std::min(level, m_links[static_cast<std::size_t>(link)].fullAt());
        for (std::size_t t = 0; t < uses.size(); ++t) {
            // Links are looked at as they were: who stops at this level does so whatever the others do.
            if (m_speeds[t] != kRises
                || (level < 1 && std::none_of(uses[t]->begin(), uses[t]->end(), [&](const LinkUse &use) {
                       return at(use).fullAt() <= level;
                   })))
                continue;
            m_speeds[t] = level;
            for (const LinkUse &use : *uses[t])
                at(use).stopping += use.share;
        }
        // In one go for each link, so that the order of transfers makes no difference.
        for (const std::int32_t link : links) {
            Link &own = m_links[static_cast<std::size_t>(link)];
            own.left -= level * static_cast<double>(own.stopping);
            own.rising -= own.stopping;
            own.stopping = 0;
        }
    }
    return m_speeds;
}

} // namespace planloom
