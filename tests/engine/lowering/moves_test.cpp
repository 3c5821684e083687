// All moves between the layouts of four devices (R replicas x V summands x D parts of two dimensions), with
// every placement, against a search that knows nothing of digits: it tries what every instruction means on
// every partition of the devices into groups.

#include "engine/lowering/layout/path_finder.h"
#include "engine/lowering/layout/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace planloom {
namespace {

constexpr std::int64_t kRows = 2048;
constexpr std::int64_t kColumns = 1024;
constexpr double kNever = 1e30;
const IndexMask kWhole = wholeMask({kRows, kColumns});

/// What the four devices hold; summands are numbered as they come.
using Placed = std::array<Cell, 4>;

Placed canonical(Placed cells)
{
    std::map<std::int32_t, std::int32_t> numbers;
    for (Cell &cell : cells)
        cell.summand =
            numbers.try_emplace(cell.summand, static_cast<std::int32_t>(numbers.size())).first->second;
    return cells;
}

/// The vectors (R, V, D0, D1) whose product is 4.
std::vector<std::array<std::int32_t, 4>> vectors()
{
    std::vector<std::array<std::int32_t, 4>> all;
    for (const std::int32_t r : {1, 2, 4})
        for (const std::int32_t v : {1, 2, 4})
            for (const std::int32_t d0 : {1, 2, 4})
                for (const std::int32_t d1 : {1, 2, 4})
                    if (r * v * d0 * d1 == 4)
                        all.push_back({r, v, d0, d1});
    return all;
}

/// The cells of a vector on devices 0..3 in this order, R outermost.
Placed cellsOf(const std::array<std::int32_t, 4> &vector, const std::array<std::size_t, 4> &devices)
{
    const auto [r, v, d0, d1] = vector;
    Placed cells;
    for (std::int32_t part = 0; part < 4; ++part) {
        const std::int32_t column = part % d1;
        const std::int32_t row = part / d1 % d0;
        Cell &cell = cells[devices[static_cast<std::size_t>(part)]];
        cell.box.ranges = {{kRows / d0 * row, kRows / d0 * (row + 1)},
            {kColumns / d1 * column, kColumns / d1 * (column + 1)}};
        cell.summand = part / d1 / d0 % v;
    }
    return cells;
}

std::vector<std::array<std::size_t, 4>> orders()
{
    std::vector<std::array<std::size_t, 4>> all;
    std::array<std::size_t, 4> order{0, 1, 2, 3};
    do
        all.push_back(order);
    while (std::next_permutation(order.begin(), order.end()));
    return all;
}

std::int64_t bytesOf(const IndexMask &box)
{
    return box.ranges[0].size() * box.ranges[1].size() * 4;
}

/// Every placement there is, and the cheapest instruction from each to each.
class BruteForce
{
public:
    explicit BruteForce(const Cluster &cluster)
        : m_cluster(cluster)
        , m_costs(costModelOf(cluster))
    {
        std::set<Placed> seen;
        for (const auto &vector : vectors())
            for (const auto &order : orders())
                if (seen.insert(canonical(cellsOf(vector, order))).second)
                    m_states.push_back(canonical(cellsOf(vector, order)));
        for (std::size_t s = 0; s < m_states.size(); ++s)
            m_index[m_states[s]] = s;
        m_single.assign(m_states.size(), std::vector<double>(m_states.size(), kNever));
        for (std::size_t s = 0; s < m_states.size(); ++s) {
            m_single[s][s] = 0;
            tryLocal(s);
            tryMessages(s);
            for (const auto &order : orders()) {
                tryCollectives(s, {{order[0], order[1], order[2], order[3]}});
                tryCollectives(s, {{order[0], order[1]}, {order[2], order[3]}});
            }
        }
        m_best = m_single;
        for (std::size_t k = 0; k < m_states.size(); ++k)
            for (std::size_t i = 0; i < m_states.size(); ++i)
                for (std::size_t j = 0; j < m_states.size(); ++j)
                    m_best[i][j] = std::min(m_best[i][j], m_best[i][k] + m_best[k][j]);
    }

    const std::vector<Placed> &states() const { return m_states; }
    double single(std::size_t from, std::size_t to) const { return m_single[from][to]; }
    double best(std::size_t from, std::size_t to) const { return m_best[from][to]; }
    std::size_t indexOf(const Placed &cells) const { return m_index.at(canonical(cells)); }
    const CostModel &costs() const { return m_costs; }

private:
    void offer(std::size_t from, std::size_t to, double seconds)
    {
        m_single[from][to] = std::min(m_single[from][to], seconds);
    }

    /// A slice, or a part of the value: device by device.
    void tryLocal(std::size_t from)
    {
        const Placed &a = m_states[from];
        for (std::size_t to = 0; to < m_states.size(); ++to) {
            const Placed &b = m_states[to];
            std::map<std::int32_t, std::int32_t> source;
            std::set<std::int32_t> used;
            bool possible = to != from;
            for (std::size_t p = 0; p < 4; ++p) {
                possible = possible && contains(a[p].box, b[p].box)
                    && source.try_emplace(b[p].summand, a[p].summand).first->second == a[p].summand;
                used.insert(a[p].summand);
            }
            for (const auto &[wanted, held] : source)
                used.erase(held);
            if (possible && used.empty())
                offer(from, to, m_costs.copy(Bytes{bytesOf(b[0].box)}, 0));
        }
    }

    /// Every device gets one cell, and gives one.
    void tryMessages(std::size_t from)
    {
        const Placed &a = m_states[from];
        for (const auto &order : orders()) {
            Placed b;
            for (std::size_t p = 0; p < 4; ++p)
                b[p] = a[order[p]];
            const auto to = m_index.find(canonical(b));
            if (to == m_index.end() || to->second == from)
                continue;
            const std::vector<std::int32_t> sources(order.begin(), order.end());
            offer(from, to->second,
                secondsOf(messagesOf(sources), 4, [&](std::int32_t sender, std::int32_t receiver) {
                    return m_costs.collective(CollectiveKind::SendRecv, Bytes{bytesOf(a[0].box)},
                        groupShape(m_cluster, {DeviceId{sender}, DeviceId{receiver}}));
                }));
        }
    }

    void tryCollectives(std::size_t from, const std::vector<std::vector<std::size_t>> &groups)
    {
        const Placed &a = m_states[from];
        const std::int64_t n = static_cast<std::int64_t>(groups.front().size());
        const std::int64_t bytes = bytesOf(a[0].box);
        const auto seconds = [&](CollectiveKind kind, std::int64_t count) {
            double worst = 0;
            for (const auto &group : groups) {
                std::vector<DeviceId> members;
                for (const std::size_t p : group)
                    members.push_back(DeviceId{static_cast<std::int32_t>(p)});
                worst =
                    std::max(worst, m_costs.collective(kind, Bytes{count}, groupShape(m_cluster, members)));
            }
            return worst;
        };
        const auto arrive = [&](const std::optional<Placed> &b, CollectiveKind kind, std::int64_t count) {
            if (!b)
                return;
            const auto to = m_index.find(canonical(*b));
            if (to != m_index.end() && to->second != from)
                offer(from, to->second, seconds(kind, count));
        };
        arrive(reduced(a, groups, std::nullopt), CollectiveKind::AllReduce, bytes);
        for (const std::size_t d : {std::size_t{0}, std::size_t{1}}) {
            arrive(reduced(a, groups, d), CollectiveKind::ReduceScatter, bytes);
            arrive(gathered(a, groups, d), CollectiveKind::AllGather, bytes * n);
            if (const auto all = gathered(a, groups, d))
                arrive(chunked(*all, groups, 1 - d), CollectiveKind::AllToAll, bytes);
        }
    }

    static std::optional<Placed> chunked(
        Placed cells, const std::vector<std::vector<std::size_t>> &groups, std::size_t d)
    {
        for (const auto &group : groups)
            for (std::size_t i = 0; i < group.size(); ++i) {
                Range &range = cells[group[i]].box.ranges[d];
                const std::int64_t extent = range.size() / static_cast<std::int64_t>(group.size());
                range = {range.begin + extent * static_cast<std::int64_t>(i),
                    range.begin + extent * static_cast<std::int64_t>(i + 1)};
            }
        return cells;
    }

    static std::optional<Placed> gathered(
        const Placed &cells, const std::vector<std::vector<std::size_t>> &groups, std::size_t d)
    {
        Placed result = cells;
        for (const auto &group : groups) {
            Cell whole = cells[group.front()];
            for (std::size_t i = 1; i < group.size(); ++i) {
                Cell next = cells[group[i]];
                if (next.box.ranges[d].begin != whole.box.ranges[d].end)
                    return std::nullopt;
                whole.box.ranges[d].end = next.box.ranges[d].end;
                next.box.ranges[d] = whole.box.ranges[d];
                if (next != whole)
                    return std::nullopt;
            }
            for (const std::size_t p : group)
                result[p] = whole;
        }
        return result;
    }

    /// Sums over each group; scattered along `d`, if given. Summands become those of their set.
    static std::optional<Placed> reduced(const Placed &cells,
        const std::vector<std::vector<std::size_t>> &groups, std::optional<std::size_t> d)
    {
        std::map<std::set<std::int32_t>, std::int32_t> numbers;
        std::map<std::int32_t, std::int32_t> becomes;
        Placed result = cells;
        for (const auto &group : groups) {
            std::set<std::int32_t> summands;
            for (const std::size_t p : group)
                if (cells[p].box != cells[group.front()].box || !summands.insert(cells[p].summand).second)
                    return std::nullopt;
            const std::int32_t number =
                numbers.try_emplace(summands, static_cast<std::int32_t>(numbers.size())).first->second;
            for (const std::int32_t summand : summands)
                if (becomes.try_emplace(summand, number).first->second != number)
                    return std::nullopt; // sets that overlap
            for (const std::size_t p : group)
                result[p].summand = number;
        }
        return d ? chunked(result, groups, *d) : std::optional(result);
    }

    const Cluster &m_cluster;
    CostModel m_costs;
    std::vector<Placed> m_states{};
    std::map<Placed, std::size_t> m_index{};
    std::vector<std::vector<double>> m_single{};
    std::vector<std::vector<double>> m_best{};
};

std::optional<PathFinder::Found> found(PathFinder &finder, const Placed &from, const Placed &to)
{
    std::set<std::int32_t> summands;
    for (const Cell &cell : from)
        summands.insert(cell.summand);
    std::vector<Holding> held;
    for (std::size_t p = 0; p < 4; ++p) {
        held.push_back({DeviceId{static_cast<std::int32_t>(p)}, from[p].box, {}, 0});
        if (summands.size() > 1)
            held.back().summands = {from[p].summand};
    }
    return finder.find(held, {to.begin(), to.end()}, kWhole, DataType::Float32, Combination::Sum);
}

/// Everything made complete, then everybody keeps what is asked for.
double replicateThenSplit(const BruteForce &brute, std::size_t from, std::size_t to)
{
    const std::size_t whole = brute.indexOf(cellsOf({4, 1, 1, 1}, {0, 1, 2, 3}));
    return brute.best(from, whole) + (whole == to ? 0 : brute.single(whole, to));
}

class Moves : public testing::TestWithParam<const char *>
{
};

TEST_P(Moves, AreNeverDearerThanToReplicateAndSplitAndOneInstructionWhereThatIsBest)
{
    const auto cluster = clusterNamed(GetParam());
    ASSERT_TRUE(cluster);
    const BruteForce brute(*cluster);
    PathFinder finder(*cluster, brute.costs());
    ASSERT_EQ(vectors().size(), 10U);
    int ways = 0;
    int optimal = 0;
    for (const auto &a : vectors())
        for (const auto &b : vectors()) {
            if (a == b)
                continue; // the 90 moves, by every placement of the second
            const std::size_t from = brute.indexOf(cellsOf(a, {0, 1, 2, 3}));
            for (const auto &order : orders()) {
                const Placed wanted = cellsOf(b, order);
                const std::size_t to = brute.indexOf(wanted);
                SCOPED_TRACE(testing::Message()
                    << "(" << a[0] << " " << a[1] << " " << a[2] << " " << a[3] << ") to (" << b[0] << " "
                    << b[1] << " " << b[2] << " " << b[3] << ") on " << order[0] << order[1] << order[2]
                    << order[3]);
                const auto way = found(finder, brute.states()[from], wanted);
                ASSERT_TRUE(way);
                const double least = brute.best(from, to);
                const double slack = 1 + 1e-9;
                ++ways;
                optimal += way->path.seconds <= least * slack ? 1 : 0;
                EXPECT_GE(way->path.seconds * slack, least) << "cheaper than anything there is";
                EXPECT_LE(way->path.seconds, replicateThenSplit(brute, from, to) * slack);
                if (brute.single(from, to) <= least * slack) {
                    EXPECT_EQ(way->path.hops.size(), 1U);
                    EXPECT_LE(way->path.seconds, least * slack);
                }
                if (order == std::array<std::size_t, 4>{0, 1, 2, 3} && b[1] == 1) {
                    EXPECT_LE(way->path.seconds, least * slack) << "placed in the same order";
                }
            }
        }
    EXPECT_EQ(ways, 90 * 24);
    // What is lost elsewhere is lost where a collective in the middle needs yet another numbering.
    EXPECT_GT(optimal, ways * 8 / 10);
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, Moves, testing::Values("dgx-a100:4", "dgx-h100:4", "cpu:4"), [](const auto &info) {
        std::string name = info.param;
        std::replace_if(
            name.begin(), name.end(), [](char c) { return c == '-' || c == ':'; }, '_');
        return name;
    });

} // namespace
} // namespace planloom
