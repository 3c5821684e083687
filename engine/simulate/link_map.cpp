#include "engine/simulate/link_map.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace planloom {

LinkMap::LinkMap(const Cluster &unit, const Symmetry &symmetry)
    : m_symmetry(symmetry)
    , m_access(symmetry.representative.size())
{
    const std::size_t levels = kOuterLevel + unit.links.outer.size();
    std::map<std::pair<std::size_t, std::int32_t>, std::int32_t> linkOfClass; // by level and class of links
    const auto newLink = [this] {
        m_size += 2;
        return static_cast<std::int32_t>(m_size) - 2;
    };
    for (std::size_t c = 0; c < m_access.size(); ++c) {
        const DeviceId device{symmetry.representative[c]};
        const Interconnect &links = unit.linksAt(device);
        for (std::size_t level = 0; level < levels; ++level) {
            Access &access = m_access[c][level];
            const double capacity = level == kPortLevel ? links.intraBandwidth.value
                : level == kNetworkLevel                ? links.interBandwidth.value / links.portsPerNode()
                                                        : links.outer[level - kOuterLevel].bandwidth.value;
            if (capacity <= 0)
                continue;
            double devices = 1;
            const auto shared = std::find_if(symmetry.shared.begin(), symmetry.shared.end(),
                [level](const SharedLevel &own) { return own.level == level; });
            if (shared == symmetry.shared.end()) {
                access.link = newLink();
            } else {
                const auto own = static_cast<std::size_t>(shared - symmetry.shared.begin());
                const std::int32_t link = shared->linkOf[static_cast<std::size_t>(device.index)];
                const auto [found, isNew] = linkOfClass.try_emplace(
                    {level, symmetry.linkClass[own][static_cast<std::size_t>(link)]}, -1);
                if (isNew)
                    found->second = newLink();
                access.link = found->second;
                const std::vector<std::int32_t> &users = shared->users[static_cast<std::size_t>(link)];
                devices =
                    static_cast<double>(std::count_if(users.begin(), users.end(), [&](std::int32_t user) {
                        return symmetry.deviceClass[static_cast<std::size_t>(user)]
                            == static_cast<std::int32_t>(c);
                    }));
            }
            access.shareOfByte = devices / capacity;
        }
    }
}

std::vector<LinkUse> LinkMap::usesOf(
    const MeetingPlace &place, const CommunicationLoad &load, std::int32_t only) const
{
    const Channel &channel = m_symmetry.channels[static_cast<std::size_t>(place.channel)];
    std::vector<LinkUse> uses;
    for (const auto &[deviceClass, slot] : place.ends) {
        if (only >= 0 && deviceClass != only)
            continue;
        bool sends = channel.tag < 0;
        bool receives = channel.tag < 0;
        if (channel.tag >= 0) {
            const auto isSelf = [&, self = deviceClass, at = slot](const Channel::Member &member) {
                return member.slot == at
                    && m_symmetry.deviceClass[static_cast<std::size_t>(member.device)] == self;
            };
            sends = isSelf(channel.members[0]);
            receives = isSelf(channel.members[1]);
        }
        const auto &access = m_access[static_cast<std::size_t>(deviceClass)];
        for (std::size_t level = 0; level < kLinkLevels; ++level) {
            const double rate = level == kPortLevel ? load.device
                : level == kNetworkLevel            ? load.network
                                                    : load.outer[level - kOuterLevel];
            if (access[level].link < 0 || rate <= 0)
                continue;
            const auto share = static_cast<std::int64_t>(
                std::llround(rate * access[level].shareOfByte * static_cast<double>(kWholeLink)));
            if (sends)
                uses.push_back({access[level].link, share});
            if (receives)
                uses.push_back({access[level].link + 1, share});
        }
    }
    std::sort(uses.begin(), uses.end(), [](const LinkUse &a, const LinkUse &b) { return a.link < b.link; });
    std::size_t kept = 0;
    for (const LinkUse &use : uses) {
        if (kept > 0 && uses[kept - 1].link == use.link)
            uses[kept - 1].share += use.share;
        else
            uses[kept++] = use;
    }
    uses.resize(kept);
    return uses;
}

} // namespace planloom
