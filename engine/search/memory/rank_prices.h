#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace planloom {

/// What one rank's devices take of a partition.
struct RankLoad {
    double seconds = 0; ///< Of a micro-batch.
    double bytes = 0; ///< At most, at once.
    friend bool operator==(const RankLoad &, const RankLoad &) = default;
};

/// Prices of a byte for each rank of a pipeline, at which what it holds comes just within a limit: the
/// multipliers of a Lagrangian relaxation, each found as where its two nearest partitions, the one that holds
/// too much and the one that does not, cost the same (Handler and Zang, "A dual algorithm for the constrained
/// shortest path problem", 1980). Prices of all ranks move at once: a rank's partition depends on those of
/// others only where they meet.
class RankPrices
{
public:
    /// What a partition took of a rank, and at which prices it was found.
    struct Seen {
        double price = 0;
        RankLoad load{};
        std::size_t partition = 0; ///< Its number: how many were learned before it.
    };
    /// @param limit  bytes of each rank @param dear  seconds of a byte at which nothing but bytes counts
    RankPrices(std::size_t ranks, double limit, double dear);

    /// Seconds of a byte, by rank; at first none.
    const std::vector<double> &prices() const { return m_prices; }
    /// Whether nothing but bytes counts for a rank: none was within the limit yet.
    bool isDear(std::size_t rank) const { return m_prices[rank] == m_dear; }
    /// Takes down what the cheapest partition at these prices takes.
    /// @return whether the next ones are others; not where some rank holds too much at any price
    bool learn(const std::vector<RankLoad> &loads);

    /// By rank: the fastest that is within the limit, and the one that holds least of those that are not.
    const std::optional<Seen> &within(std::size_t rank) const { return m_ranks[rank].within; }
    const std::optional<Seen> &beyond(std::size_t rank) const { return m_ranks[rank].beyond; }

private:
    struct Rank {
        std::optional<Seen> within{};
        std::optional<Seen> beyond{};
        bool isSettled = false;
    };
    double nextPrice(Rank &rank, double price) const;

    const double m_limit;
    const double m_dear;
    std::vector<Rank> m_ranks;
    std::vector<double> m_prices;
    std::size_t m_learned = 0;
};

} // namespace planloom
