#include "engine/schedule/search/start_problem.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// Makes the pairs of a search as they are asked for, each once.
class PairMaker
{
public:
    /// @param runs  that are the nodes
    PairMaker(const Placement &placement, StartSearch &search, const PlacementRuns &runs, std::int64_t least,
        std::int64_t most)
        : m_placement(placement)
        , m_search(search)
        , m_runs(runs)
        , m_least(least)
        , m_most(most)
    {
    }

    /// Of node i over node j: how often j has started, or given back, when i starts.
    StartSearch::Height height(std::int32_t i, std::int32_t j)
    {
        const PlacementBlock &one = blockOf(i);
        const PlacementBlock &other = blockOf(j);
        if (shareQueue(one, other)) {
            const std::int32_t a = std::min(i, j);
            const std::int32_t b = std::max(i, j);
            const std::int64_t after = blockOf(b).time;
            const std::int64_t before = blockOf(a).time;
            return {made(a, b, after, before, one, other), i != a};
        }
        return ended(i, j, other.memory < 0 && other.givesBackAtEnd ? other.time : 0);
    }

    /// The same of blocks of different queues: how often j has been at it for `late`.
    StartSearch::Height ended(std::int32_t i, std::int32_t j, std::int64_t late)
    {
        return {made(i, j, late, 1 - late, blockOf(i), blockOf(j)), false};
    }

private:
    const PlacementBlock &blockOf(std::int32_t node) const
    {
        return m_placement.blocks[at(m_runs.blockOf(node))];
    }

    std::int32_t made(std::int32_t i, std::int32_t j, std::int64_t after, std::int64_t before,
        const PlacementBlock &one, const PlacementBlock &other)
    {
        const double weight = static_cast<double>(std::min(one.devices.size(), other.devices.size()));
        const auto [found, isNew] = m_made.try_emplace({i, j, after}, 0);
        if (isNew)
            found->second = m_search.addPair({i, j, after, before, m_least, m_most}, weight);
        return found->second;
    }

    const Placement &m_placement;
    StartSearch &m_search;
    const PlacementRuns &m_runs;
    std::int64_t m_least = 0;
    std::int64_t m_most = 0;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, std::int32_t> m_made{};
};

std::int64_t sumOfTimes(const Placement &placement)
{
    return std::accumulate(placement.blocks.begin(), placement.blocks.end(), std::int64_t{0},
        [](std::int64_t sum, const PlacementBlock &block) { return sum + block.time; });
}

bool runsOn(const PlacementBlock &block, std::int32_t device)
{
    return std::binary_search(block.devices.begin(), block.devices.end(), device);
}

} // namespace

StartProblem::StartProblem(const Placement &placement)
    : m_placement(placement)
{
    reduceEdges();
    findJoints();
    findLeases();
}

/// Edges inside a micro-batch without those that a longer way implies.
void StartProblem::reduceEdges()
{
    const std::size_t count = m_placement.blocks.size();
    m_reaches.assign(count, std::vector<bool>(count, false));
    std::vector<std::vector<std::int32_t>> next(count);
    std::set<PlacementEdge> edges(m_placement.edges.begin(), m_placement.edges.end());
    for (const PlacementEdge &edge : edges)
        if (edge.distance == 0)
            next[at(edge.before)].push_back(edge.after);
    const auto order = topologicalOrder(m_placement);
    for (auto block = order.rbegin(); block != order.rend(); ++block)
        for (const std::int32_t after : next[at(*block)]) {
            m_reaches[at(*block)][at(after)] = true;
            for (std::size_t b = 0; b < count; ++b)
                if (m_reaches[at(after)][b])
                    m_reaches[at(*block)][b] = true;
        }
    for (const PlacementEdge &edge : edges) {
        const bool implied = edge.distance == 0
            && std::any_of(next[at(edge.before)].begin(), next[at(edge.before)].end(),
                [&](std::int32_t other) { return m_reaches[at(other)][at(edge.after)]; });
        if (!implied)
            m_edges.push_back(edge);
    }
}

/// No device has more memory taken than given back by the part.
bool StartProblem::givesBack(const std::vector<bool> &part) const
{
    std::vector<std::int64_t> sums(at(m_placement.devices), 0);
    for (std::size_t b = 0; b < part.size(); ++b)
        if (part[b])
            for (const std::int32_t device : m_placement.blocks[b].devices)
                sums[at(device)] += m_placement.blocks[b].memory;
    return m_placement.memoryLimit.empty()
        || std::all_of(sums.begin(), sums.end(), [](std::int64_t sum) { return sum <= 0; });
}

/// What hangs on the rest by one edge alone can run whole periods earlier until that edge allows no more: in
/// the same phase, so that nothing but memory changes, and that for the better where it gives back.
void StartProblem::findJoints()
{
    const std::size_t count = m_placement.blocks.size();
    std::vector<std::vector<std::size_t>> touching(count);
    for (std::size_t e = 0; e < m_edges.size(); ++e) {
        touching[at(m_edges[e].before)].push_back(e);
        touching[at(m_edges[e].after)].push_back(e);
    }
    const auto partOf = [&](std::int32_t block, std::size_t without) {
        std::vector<bool> part(count, false);
        std::vector<std::int32_t> open{block};
        part[at(block)] = true;
        while (!open.empty()) {
            const std::int32_t next = open.back();
            open.pop_back();
            for (const std::size_t e : touching[at(next)])
                if (e != without)
                    for (const std::int32_t end : {m_edges[e].before, m_edges[e].after})
                        if (!part[at(end)]) {
                            part[at(end)] = true;
                            open.push_back(end);
                        }
        }
        return part;
    };
    for (std::size_t e = 0; e < m_edges.size(); ++e) {
        const auto part = partOf(m_edges[e].after, e);
        if (!part[at(m_edges[e].before)] && givesBack(part))
            m_joints.push_back({m_edges[e]});
    }
    std::vector<bool> seen = partOf(0, m_edges.size());
    for (std::size_t b = 0; b < count; ++b)
        if (!seen[b]) {
            const auto part = partOf(static_cast<std::int32_t>(b), m_edges.size());
            for (std::size_t other = 0; other < count; ++other)
                seen[other] = seen[other] || part[other];
            std::vector<bool> rest = part;
            rest.flip();
            if (givesBack(part) && givesBack(rest)) // so that either may move
                m_joints.push_back({{-1, static_cast<std::int32_t>(b), 0}});
        }
}

void StartProblem::findLeases()
{
    if (m_placement.memoryLimit.empty())
        return;
    m_leases.resize(at(m_placement.devices));
    const auto order = topologicalOrder(m_placement);
    for (std::int32_t device = 0; device < m_placement.devices; ++device) {
        std::vector<Lease> &leases = m_leases[at(device)];
        std::vector<Lease> open; // what was taken and not given back
        for (const std::int32_t index : order) {
            const PlacementBlock &block = m_placement.blocks[at(index)];
            if (!runsOn(block, device) || block.memory == 0)
                continue;
            if (block.memory > 0) {
                open.push_back({index, -1, block.memory});
                continue;
            }
            std::int64_t gives = -block.memory;
            for (auto lease = open.rbegin(); lease != open.rend() && gives > 0; ++lease) {
                if (lease->amount == 0 || !m_reaches[at(lease->take)][at(index)]
                    || m_placement.blocks[at(lease->take)].once != block.once)
                    continue; // of what runs once and what does not, neither is the other's
                const std::int64_t amount = std::min(lease->amount, gives);
                leases.push_back({lease->take, index, amount});
                lease->amount -= amount;
                gives -= amount;
            }
            if (gives > 0)
                leases.push_back({-1, index, gives});
        }
        for (const Lease &lease : open)
            if (lease.amount > 0)
                leases.push_back(lease);
    }
}

bool StartProblem::fillsUp() const
{
    for (const auto &leases : m_leases) {
        std::int64_t sum = 0;
        for (const Lease &lease : leases)
            sum += (lease.take >= 0 ? lease.amount : 0) - (lease.give >= 0 ? lease.amount : 0);
        if (sum > 0)
            return true;
    }
    return false;
}

std::vector<std::int32_t> StartProblem::besideOn(std::int32_t block, std::int32_t device) const
{
    std::vector<std::int32_t> beside;
    for (std::size_t j = 0; j < m_placement.blocks.size(); ++j)
        if (m_placement.blocks[j].workspace > 0 && runsOn(m_placement.blocks[j], device)
            && m_placement.blocks[j].queue != m_placement.blocks[at(block)].queue)
            beside.push_back(static_cast<std::int32_t>(j));
    return beside;
}

StartSearch StartProblem::periodic(std::int64_t period) const
{
    const auto count = static_cast<std::int32_t>(m_placement.blocks.size());
    // Whole periods that nothing asks for only hold memory, so no block needs more than one for its own.
    const std::int64_t horizon = sumOfTimes(m_placement) + (count + 1) * period;
    StartSearch search(count, period, horizon);
    for (const PlacementEdge &edge : m_edges)
        search.require(
            edge.before, edge.after, m_placement.blocks[at(edge.before)].time - period * edge.distance);
    for (const Joint &joint : m_joints) {
        const std::int32_t before = std::max(joint.edge.before, 0);
        const std::int64_t least =
            joint.edge.before < 0 ? 0 : m_placement.blocks[at(before)].time - period * joint.edge.distance;
        search.require(before, joint.edge.after, least);
        search.require(joint.edge.after, before, -(least + period - 1));
    }
    const PlacementRuns runs(m_placement, 1);
    PairMaker pairs(m_placement, search, runs, -horizon / period - 2, horizon / period + 2);
    for (std::int32_t i = 0; i < count; ++i)
        for (std::int32_t j = i + 1; j < count; ++j)
            if (shareQueue(m_placement.blocks[at(i)], m_placement.blocks[at(j)]))
                pairs.height(i, j);
    for (std::size_t device = 0; device < m_leases.size(); ++device) {
        std::int64_t sum = 0;
        for (const Lease &lease : m_leases[device])
            sum += (lease.take >= 0 ? lease.amount : 0) - (lease.give >= 0 ? lease.amount : 0);
        if (sum < 0)
            continue; // ever more room
        for (std::int32_t i = 0; i < count; ++i) {
            const PlacementBlock &block = m_placement.blocks[at(i)];
            if (!takesMemory(block) || !runsOn(block, static_cast<std::int32_t>(device)))
                continue;
            StartSearch::MemoryRow row{m_placement.memoryLimit[device] - block.workspace, {}};
            const auto countOf = [&](std::int32_t j, bool gives) {
                if (j < 0)
                    return StartSearch::Count{};
                if (j == i)
                    return StartSearch::Count{gives && block.givesBackAtEnd ? -1 : 0, {}};
                return StartSearch::Count{0, {pairs.height(i, j)}};
            };
            for (const std::int32_t j : besideOn(i, static_cast<std::int32_t>(device))) {
                const PlacementBlock &other = m_placement.blocks[at(j)];
                row.terms.push_back({other.workspace, {0, {pairs.ended(i, j, 0)}},
                    {0, {pairs.ended(i, j, other.time)}}, true, {}});
            }
            for (const Lease &lease : m_leases[device]) {
                StartSearch::MemoryTerm term{lease.amount, countOf(lease.take, false),
                    countOf(lease.give, true), lease.take >= 0 && lease.give >= 0, {}};
                if (term.isPair) {
                    StartSearch::Height between = pairs.height(lease.take, lease.give);
                    between.turned = !between.turned;
                    term.between.push_back(between);
                }
                row.terms.push_back(std::move(term));
            }
            search.addMemory(std::move(row));
        }
    }
    return search;
}

StartSearch StartProblem::unrolled(std::int32_t microBatches, std::int64_t makespan) const
{
    const auto count = static_cast<std::int32_t>(m_placement.blocks.size());
    std::int64_t longest = 0;
    for (const PlacementBlock &block : m_placement.blocks)
        longest = std::max(longest, block.time);
    const PlacementRuns runs(m_placement, microBatches);
    StartSearch search(runs.count(), 2 * (makespan + longest), makespan);
    const auto node = [&](std::int32_t block, std::int32_t m) { return runs.number(block, m); };
    for (std::int32_t b = 0; b < count; ++b)
        for (std::int32_t m = 0; m < runs.of(b); ++m) {
            const std::int64_t time = m_placement.blocks[at(b)].time;
            search.require(node(b, m), search.origin(), time - makespan);
            if (m + 1 < runs.of(b))
                search.require(node(b, m), node(b, m + 1), time);
        }
    for (const PlacementEdge &edge : m_edges)
        for (std::int32_t m = 0; m < runs.of(edge.after); ++m)
            forEachRunBefore(m_placement, edge, m, microBatches, [&](std::int32_t before) {
                search.require(
                    node(edge.before, before), node(edge.after, m), m_placement.blocks[at(edge.before)].time);
            });
    PairMaker pairs(m_placement, search, runs, -1, 0);
    for (std::int32_t i = 0; i < count; ++i)
        for (std::int32_t j = i + 1; j < count; ++j)
            if (shareQueue(m_placement.blocks[at(i)], m_placement.blocks[at(j)]))
                for (std::int32_t m = 0; m < runs.of(i); ++m)
                    for (std::int32_t k = 0; k < runs.of(j); ++k)
                        pairs.height(node(i, m), node(j, k));
    for (std::size_t device = 0; device < m_leases.size(); ++device)
        for (std::int32_t i = 0; i < count; ++i) {
            const PlacementBlock &block = m_placement.blocks[at(i)];
            if (!takesMemory(block) || !runsOn(block, static_cast<std::int32_t>(device)))
                continue;
            const auto beside = besideOn(i, static_cast<std::int32_t>(device));
            for (std::int32_t m = 0; m < runs.of(i); ++m) {
                StartSearch::MemoryRow row{m_placement.memoryLimit[device] - block.workspace, {}};
                const auto countOf = [&](std::int32_t j, bool gives) {
                    if (j < 0)
                        return StartSearch::Count{};
                    if (j == i)
                        return StartSearch::Count{gives && block.givesBackAtEnd ? m : m + 1, {}};
                    StartSearch::Count started{runs.of(j), {}};
                    for (std::int32_t k = 0; k < runs.of(j); ++k)
                        started.heights.push_back(pairs.height(node(i, m), node(j, k)));
                    return started;
                };
                for (const std::int32_t j : beside) {
                    const PlacementBlock &other = m_placement.blocks[at(j)];
                    StartSearch::MemoryTerm term{
                        other.workspace, {runs.of(j), {}}, {runs.of(j), {}}, true, {}};
                    for (std::int32_t k = 0; k < runs.of(j); ++k) {
                        term.takes.heights.push_back(pairs.ended(node(i, m), node(j, k), 0));
                        term.gives.heights.push_back(pairs.ended(node(i, m), node(j, k), other.time));
                    }
                    row.terms.push_back(std::move(term));
                }
                for (const Lease &lease : m_leases[device])
                    row.terms.push_back({lease.amount, countOf(lease.take, false), countOf(lease.give, true),
                        lease.take >= 0 && lease.give >= 0, {}});
                search.addMemory(std::move(row));
            }
        }
    return search;
}

std::int64_t StartProblem::squeezed(
    std::vector<std::int64_t> &starts, std::int64_t period, std::int64_t least) const
{
    struct Arc {
        std::int32_t from = 0;
        std::int32_t to = 0;
        std::int64_t fixed = 0;
        std::int64_t periods = 0;
    };
    std::vector<Arc> arcs;
    const auto &blocks = m_placement.blocks;
    for (const PlacementEdge &edge : m_edges)
        arcs.push_back({edge.before, edge.after, blocks[at(edge.before)].time, -edge.distance});
    const auto floored = [](std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
    const auto keep = [&](std::int32_t i, std::int32_t j, std::int64_t after, std::int64_t before) {
        const std::int64_t height = floored(starts[at(i)] - starts[at(j)] - after, period);
        arcs.push_back({j, i, after, height});
        arcs.push_back({i, j, before, -height - 1});
    };
    const auto count = static_cast<std::int32_t>(blocks.size());
    for (std::int32_t i = 0; i < count; ++i)
        for (std::int32_t j = 0; j < count; ++j) {
            if (i == j)
                continue;
            const PlacementBlock &one = blocks[at(i)];
            const PlacementBlock &other = blocks[at(j)];
            if (shareQueue(one, other)) {
                if (i < j)
                    keep(i, j, other.time, one.time);
            } else if (takesMemory(one)
                && std::find_first_of(
                       one.devices.begin(), one.devices.end(), other.devices.begin(), other.devices.end())
                    != one.devices.end()) {
                const bool late = other.memory < 0 && other.givesBackAtEnd;
                if (other.workspace > 0 || (other.memory != 0 && !late))
                    keep(i, j, 0, 1);
                if (other.workspace > 0 || late)
                    keep(i, j, other.time, 1 - other.time);
            }
        }
    // The earliest starts, by Bellman and Ford; none where a cycle is too long for the period.
    const auto earliest = [&](std::int64_t tried) {
        std::vector<std::int64_t> found(blocks.size(), 0);
        for (std::int32_t round = 0; round <= count; ++round) {
            bool moved = false;
            for (const Arc &arc : arcs) {
                const std::int64_t start = found[at(arc.from)] + arc.fixed + tried * arc.periods;
                if (start > found[at(arc.to)]) {
                    found[at(arc.to)] = start;
                    moved = true;
                }
            }
            if (!moved)
                return std::optional(std::move(found));
        }
        return std::optional<std::vector<std::int64_t>>{};
    };
    std::int64_t low = least;
    std::int64_t high = period;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (earliest(middle))
            high = middle;
        else
            low = middle + 1;
    }
    if (auto found = earliest(high))
        starts = *std::move(found);
    return high;
}

} // namespace planloom
