#include "engine/search/memory/rank_prices.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// Prices that are so near to one another are taken for the same.
constexpr double kSamePrice = 1e-6;

} // namespace

RankPrices::RankPrices(std::size_t ranks, double limit, double dear)
    : m_limit(limit)
    , m_dear(dear)
    , m_ranks(ranks)
    , m_prices(ranks, 0)
{
}

bool RankPrices::learn(const std::vector<RankLoad> &loads)
{
    bool moves = false;
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
        Rank &rank = m_ranks[r];
        const Seen seen{m_prices[r], loads[r], m_learned};
        const bool fits = seen.load.bytes <= m_limit;
        std::optional<Seen> &side = fits ? rank.within : rank.beyond;
        if (side && side->load == seen.load && side->price != seen.price)
            rank.isSettled = true; // there is none between the two
        const bool isNearer =
            !side || (fits ? seen.load.seconds < side->load.seconds : seen.load.bytes < side->load.bytes);
        if (isNearer)
            side = seen;
        if (!fits && m_prices[r] == m_dear) {
            ++m_learned;
            return false;
        }
        const double next = nextPrice(rank, m_prices[r]);
        moves = moves || next != m_prices[r];
        m_prices[r] = next;
    }
    ++m_learned;
    return moves;
}

double RankPrices::nextPrice(Rank &rank, double price) const
{
    if (!rank.beyond)
        return price; // it is free, and fits
    if (!rank.within)
        return m_dear;
    const auto &[dearer, slow, first] = *rank.within;
    const auto &[cheaper, fast, second] = *rank.beyond;
    if (rank.isSettled || fast.bytes <= slow.bytes)
        return dearer;
    const double same = (slow.seconds - fast.seconds) / (fast.bytes - slow.bytes);
    // Times of a rank have a part in what its neighbours decide: then the middle is better than nothing.
    const double next =
        same > cheaper && same < dearer ? same : std::sqrt(std::max(cheaper, m_dear * 1e-9) * dearer);
    if (std::abs(next - price) <= kSamePrice * price) {
        rank.isSettled = true;
        return dearer;
    }
    return next;
}

} // namespace planloom
