#include "engine/lowering/layout/permutation.h"

#include <algorithm>
#include <array>
#include <map>

namespace planloom {

namespace {

/// The summand of `held` for every summand of `wanted`: greedily those whose cells stay most often.
std::map<std::int32_t, std::int32_t> pairSummands(
    const std::vector<Cell> &held, const std::vector<Cell> &wanted)
{
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> stays; // (wanted, held): negated count
    for (std::size_t p = 0; p < held.size(); ++p) {
        std::int32_t &count = stays[{wanted[p].summand, held[p].summand}];
        count -= held[p].box == wanted[p].box ? 1 : 0;
    }
    std::vector<std::pair<std::int32_t, std::pair<std::int32_t, std::int32_t>>> byCount;
    for (const auto &[pair, count] : stays)
        byCount.emplace_back(count, pair);
    std::sort(byCount.begin(), byCount.end());
    std::map<std::int32_t, std::int32_t> heldOf;
    std::map<std::int32_t, bool> taken;
    for (const auto &[count, pair] : byCount)
        if (heldOf.count(pair.first) == 0 && !taken[pair.second]) {
            heldOf[pair.first] = pair.second;
            taken[pair.second] = true;
        }
    // Those that never meet, in their order.
    std::vector<std::int32_t> left;
    for (const Cell &cell : held)
        if (!taken[cell.summand]) {
            taken[cell.summand] = true;
            left.push_back(cell.summand);
        }
    std::sort(left.begin(), left.end());
    std::size_t next = 0;
    for (const Cell &cell : wanted)
        if (heldOf.count(cell.summand) == 0 && next < left.size())
            heldOf[cell.summand] = left[next++];
    return heldOf;
}

} // namespace

std::optional<std::vector<std::int32_t>> permutationBetween(
    const std::vector<Cell> &held, const std::vector<Cell> &wanted, const std::vector<std::int32_t> &nodes)
{
    if (held.size() != wanted.size())
        return std::nullopt;
    const auto heldOf = pairSummands(held, wanted);
    std::vector<std::int32_t> sources(held.size(), -1);
    std::map<Cell, std::array<std::vector<std::int32_t>, 2>> moving; // by cell: who gives it up, who wants it
    for (std::size_t p = 0; p < held.size(); ++p) {
        const auto pair = heldOf.find(wanted[p].summand);
        if (pair == heldOf.end())
            return std::nullopt;
        const Cell mine{wanted[p].box, pair->second};
        if (mine == held[p]) {
            sources[p] = static_cast<std::int32_t>(p);
            continue;
        }
        moving[held[p]][0].push_back(static_cast<std::int32_t>(p));
        moving[mine][1].push_back(static_cast<std::int32_t>(p));
    }
    for (auto &[cell, sides] : moving) {
        auto &[givers, takers] = sides;
        if (givers.size() != takers.size())
            return std::nullopt;
        for (const bool near : {true, false}) {
            for (std::int32_t &giver : givers) {
                const auto taker = std::find_if(takers.begin(), takers.end(), [&](std::int32_t t) {
                    return t >= 0
                        && (!near
                            || nodes[static_cast<std::size_t>(t)] == nodes[static_cast<std::size_t>(giver)]);
                });
                if (giver < 0 || taker == takers.end())
                    continue;
                sources[static_cast<std::size_t>(*taker)] = giver;
                giver = *taker = -1;
            }
        }
    }
    return sources;
}

std::vector<std::pair<std::int32_t, std::int32_t>> messagesOf(const std::vector<std::int32_t> &sources)
{
    const auto at = [](std::int32_t position) { return static_cast<std::size_t>(position); };
    std::vector<std::int32_t> takerOf(sources.size(), -1);
    for (std::size_t p = 0; p < sources.size(); ++p)
        takerOf[at(sources[p])] = static_cast<std::int32_t>(p);
    std::array<std::vector<std::pair<std::int32_t, std::int32_t>>, 3> rounds;
    std::vector<bool> seen(sources.size(), false);
    for (std::size_t first = 0; first < sources.size(); ++first) {
        std::vector<std::int32_t> cycle;
        for (auto p = static_cast<std::int32_t>(first); !seen[at(p)]; p = takerOf[at(p)]) {
            seen[at(p)] = true;
            cycle.push_back(p);
        }
        if (cycle.size() < 2)
            continue;
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            const bool odd = i + 1 == cycle.size() && i % 2 == 0; // shares its ends with both neighbours
            rounds[odd ? 2 : i % 2].emplace_back(cycle[i], cycle[(i + 1) % cycle.size()]);
        }
    }
    std::vector<std::pair<std::int32_t, std::int32_t>> messages;
    for (const auto &round : rounds)
        messages.insert(messages.end(), round.begin(), round.end());
    return messages;
}

double secondsOf(const std::vector<std::pair<std::int32_t, std::int32_t>> &messages, std::size_t positions,
    const std::function<double(std::int32_t sender, std::int32_t receiver)> &seconds)
{
    std::vector<double> free(positions, 0);
    double last = 0;
    for (const auto &[sender, receiver] : messages) {
        double &from = free[static_cast<std::size_t>(sender)];
        double &to = free[static_cast<std::size_t>(receiver)];
        from = to = std::max(from, to) + seconds(sender, receiver);
        last = std::max(last, to);
    }
    return last;
}

} // namespace planloom
