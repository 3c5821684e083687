#include "engine/search/bounds/way_shares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

/// Shares of both players of a game, of which one has most of the other in the worst case.
struct PlayedShares {
    std::vector<double> rows{}; ///< Of who wants much.
    std::vector<double> columns{};
};

/// By regret matching (Hart and Mas-Colell, Econometrica 68, 2000; without negative regrets: Tammelin,
/// arXiv:1407.5042).
PlayedShares playedShares(const std::vector<std::vector<double>> &payoffs)
{
    constexpr int kRounds = 3000;
    struct Player {
        explicit Player(std::size_t count)
            : regrets(count, 0)
            , played(count, 0)
            , sum(count, 0)
        {
        }
        std::vector<double> regrets{};
        std::vector<double> played{};
        std::vector<double> sum{};
        void play(int round)
        {
            const double all = std::accumulate(regrets.begin(), regrets.end(), 0.0);
            for (std::size_t i = 0; i < regrets.size(); ++i) {
                played[i] = all > 0 ? regrets[i] / all : 1.0 / static_cast<double>(regrets.size());
                sum[i] += round * played[i]; // later rounds count for more
            }
        }
        std::vector<double> shares() const
        {
            const double all = std::accumulate(sum.begin(), sum.end(), 0.0);
            std::vector<double> shares = sum;
            for (double &each : shares)
                each /= all;
            return shares;
        }
    };
    Player rows(payoffs.size());
    Player columns(payoffs.front().size());
    std::vector<double> ofRow(payoffs.size(), 0);
    std::vector<double> ofColumn(payoffs.front().size(), 0);
    for (int round = 1; round <= kRounds; ++round) {
        rows.play(round);
        columns.play(round);
        std::fill(ofRow.begin(), ofRow.end(), 0);
        std::fill(ofColumn.begin(), ofColumn.end(), 0);
        double value = 0;
        for (std::size_t r = 0; r < ofRow.size(); ++r) {
            for (std::size_t c = 0; c < ofColumn.size(); ++c) {
                ofRow[r] += payoffs[r][c] * columns.played[c];
                ofColumn[c] += payoffs[r][c] * rows.played[r];
            }
            value += ofRow[r] * rows.played[r];
        }
        for (std::size_t r = 0; r < ofRow.size(); ++r)
            rows.regrets[r] = std::max(0.0, rows.regrets[r] + ofRow[r] - value);
        for (std::size_t c = 0; c < ofColumn.size(); ++c)
            columns.regrets[c] = std::max(0.0, columns.regrets[c] + value - ofColumn[c]);
    }
    return {rows.shares(), columns.shares()};
}

} // namespace

void WayShares::add(const std::vector<std::int32_t> &choice, const std::vector<double> &byWay,
    std::vector<double> byPartition)
{
    m_choices.push_back(choice);
    m_seconds.push_back(std::move(byPartition));
    for (std::size_t w = 0; w < m_seconds.size(); ++w)
        m_seconds[w].push_back(byWay[w]);
}

/// What partitions hold beyond the limits that there are by now.
void WayShares::holdAgainstLimits()
{
    m_beyond.resize(m_limits ? m_limits->count() : 0);
    for (std::size_t l = 0; l < m_beyond.size(); ++l)
        for (std::size_t p = m_beyond[l].size(); p < m_choices.size(); ++p)
            m_beyond[l].push_back(m_limits->beyond(l, m_choices[p]));
}

/// Of ways alone: as they are played against partitions. A limit is played as a way that takes as long as is
/// expected of all, and longer or shorter by what is held beyond it or below: then the value is what was
/// expected where that is right. It is found as a root, by Newton's method, of what is convex.
WayShares::Shares WayShares::best()
{
    constexpr int kMostSteps = 6;
    constexpr double kExact = 1e-4;
    constexpr double kLeastOfWays = 1e-3; ///< Else nothing is found that keeps to the limits.
    constexpr double kMost = 2; ///< As a multiple of what ways take.
    holdAgainstLimits();
    if (m_beyond.empty()) {
        auto [ways, partitions] = playedShares(m_seconds);
        return {std::move(ways), std::move(partitions), {}};
    }
    double longest = 0;
    for (const std::vector<double> &way : m_seconds)
        longest = std::max(longest, *std::max_element(way.begin(), way.end()));
    double furthest = 1;
    for (const std::vector<double> &limit : m_beyond)
        for (const double bytes : limit)
            furthest = std::max(furthest, std::abs(bytes));
    const double scale = longest / furthest;
    Shares shares;
    for (int step = 0; step < kMostSteps; ++step) {
        std::vector<std::vector<double>> payoffs = m_seconds;
        for (const std::vector<double> &limit : m_beyond) {
            payoffs.push_back(limit);
            for (double &each : payoffs.back())
                each = m_expected + scale * each;
        }
        const PlayedShares played = playedShares(payoffs);
        const auto ways = played.rows.begin() + static_cast<std::ptrdiff_t>(m_seconds.size());
        shares = {{played.rows.begin(), ways}, played.columns, {ways, played.rows.end()}};
        double value = std::numeric_limits<double>::infinity();
        for (std::size_t p = 0; p < m_choices.size(); ++p) {
            double own = 0;
            for (std::size_t r = 0; r < payoffs.size(); ++r)
                own += played.rows[r] * payoffs[r][p];
            value = std::min(value, own);
        }
        const double ofWays =
            std::max(std::accumulate(shares.ways.begin(), shares.ways.end(), 0.0), kLeastOfWays);
        for (double &each : shares.ways)
            each /= ofWays;
        for (double &each : shares.prices)
            each *= scale / ofWays;
        const double expected = std::clamp(m_expected + (value - m_expected) / ofWays, 0.0, kMost * longest);
        const bool isFound = std::abs(expected - m_expected) <= kExact * longest;
        m_expected = expected;
        if (isFound)
            break;
    }
    return shares;
}

} // namespace planloom
