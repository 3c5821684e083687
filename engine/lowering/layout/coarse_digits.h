#pragma once

#include "engine/lowering/layout/layout.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Digits of a large group that go everywhere together, taken as one: a search over layouts has as many
/// states as there are ways to give every digit a role and a place, which is too many beyond a few dozen
/// devices.
///
/// Digits that follow one another are one if they have the same role at both ends of a path, one behind the
/// other where they cut a dimension, and lead over the same kind of links. What is lost are paths that treat
/// parts of such a run differently on their way.
class CoarseDigits
{
public:
    /// @param ends   the layouts at the ends, as far as they are known
    /// @param nodes  of the devices, by position
    CoarseDigits(const std::vector<const Layout *> &ends, const std::vector<std::int32_t> &radices,
        const std::vector<std::int32_t> &nodes);

    const std::vector<std::int32_t> &radices() const { return m_radices; }
    Layout coarse(const Layout &layout) const;
    Layout fine(const Layout &layout) const;
    /// The hop in the group's own digits.
    Hop fine(Hop hop) const;

private:
    using Digits = std::vector<std::int8_t>;
    Digits coarse(const Digits &digits) const;
    Digits fine(const Digits &digits) const;

    std::vector<Digits> m_runs{}; ///< By coarse digit.
    std::vector<std::int8_t> m_runOf{}; ///< By digit.
    std::vector<std::int32_t> m_radices{};
};

} // namespace planloom
