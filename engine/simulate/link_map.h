#pragma once

#include "engine/simulate/compiled_program.h"
#include "engine/simulate/fair_share.h"
#include "engine/simulate/meetings.h"

#include <array>
#include <cstdint>
#include <vector>

namespace planloom {

/// The links that device classes use, numbered, and what communication takes of them. Each link is there
/// twice, once for each direction. Links of equal classes are one: what happens on one happens on all.
class LinkMap
{
public:
    /// @param unit  the cluster, or one of its scale units
    LinkMap(const Cluster &unit, const Symmetry &symmetry);

    std::size_t size() const { return m_size; }

    /// What a meeting at `place` takes of links at full speed; each link occurs once.
    /// @param deviceClass  if not -1: what the ends of this class take alone
    std::vector<LinkUse> usesOf(
        const MeetingPlace &place, const CommunicationLoad &load, std::int32_t deviceClass = -1) const;

private:
    /// A class's place on the links of one level.
    struct Access {
        std::int32_t link = -1; ///< Out; the number behind it is in.
        double shareOfByte =
            0; ///< Of the link, for each byte/s of one device; devices of the class together.
    };

    const Symmetry &m_symmetry;
    std::vector<std::array<Access, kLinkLevels>> m_access{}; ///< By device class.
    std::size_t m_size = 0;
};

} // namespace planloom
