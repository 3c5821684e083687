#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// Shares of a link are counted in these, so that sums do not depend on their order.
constexpr std::int64_t kWholeLink = std::int64_t{1} << 30;
/// That much above the whole is rounding: as many users as a link has may each have been rounded up.
constexpr std::int64_t kLinkSlack = std::int64_t{1} << 14;

/// What a transfer takes of one link while it runs at full speed.
struct LinkUse {
    std::int32_t link = 0;
    std::int64_t share = 0; ///< In 1 / `kWholeLink`.
    friend bool operator==(const LinkUse &, const LinkUse &) = default;
};

/// How fast transfers run that share links, 1 being as fast as alone: max-min fair by progressive filling
/// (Bertsekas and Gallager, Data Networks, 2nd edition, section 6.5.2), in which the speeds of all rise
/// together; at a link that is full, those who use it stop there and the others rise on, up to 1. With speeds
/// instead of rates each transfer weighs what it takes alone, as TCP flows and NCCL rings of equal width do;
/// it is the rule of flow-level simulators (SimGrid: Velho et al., ACM TOMACS 23(4), 2013).
///
/// Transfers and links are passed in by their users' numbers; the sharer keeps room for them.
class FairShare
{
public:
    explicit FairShare(std::size_t links)
        : m_links(links)
    {
    }

    /// @param uses  by transfer; only links in `links` may occur
    /// @return by transfer. Does not depend on the order of transfers or links.
    /// O(rounds x (uses + links)); rounds <= distinct speeds.
    const std::vector<double> &speeds(
        const std::vector<const std::vector<LinkUse> *> &uses, const std::vector<std::int32_t> &links);

private:
    struct Link {
        std::int64_t rising = 0; ///< Shares of those that still rise.
        std::int64_t stopping = 0; ///< Of them, those that stop in this round.
        double left = static_cast<double>(kWholeLink); ///< What those that have stopped leave.

        /// The speed of those that rise at which nothing is left; 1 if there is enough for all.
        double fullAt() const
        {
            const auto wanted = static_cast<double>(rising);
            return wanted <= left + static_cast<double>(kLinkSlack) ? 1 : std::max(left, 0.0) / wanted;
        }
    };
    std::vector<Link> m_links;
    std::vector<double> m_speeds{};
};

} // namespace planloom
