#include "tests/engine/schedule/search/placements_for_tests.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace planloom {

namespace {

using Devices = std::vector<std::int32_t>;

/// Adds blocks behind one another.
struct Chain {
    Placement &placement;
    std::int32_t last = -1;

    void add(const char *kind, Devices devices, std::int64_t time, std::int64_t memory)
    {
        const auto index = static_cast<std::int32_t>(placement.blocks.size());
        placement.blocks.push_back({index, kind, std::move(devices), 0, time, memory, false});
        if (last >= 0)
            placement.edges.push_back({last, index, 0});
        last = index;
    }
    void forward(std::int32_t from, std::int32_t to, std::int64_t time, std::int64_t memory)
    {
        for (std::int32_t d = from; d != to; d += from < to ? 1 : -1)
            add("forward", {d}, time, memory);
    }
    void backward(std::int32_t from, std::int32_t to, std::int64_t time)
    {
        for (std::int32_t d = from; d != to; d += from < to ? 1 : -1)
            add("backward", {d}, time, -1);
    }
};

} // namespace

std::vector<std::string> tesselPlacements()
{
    return {"vshape", "xshape", "mshape", "nnshape", "kshape", "mllm", "finetune", "alphafold"};
}

Placement tesselPlacement(
    const std::string &name, std::int32_t devices, std::int64_t limit, std::int64_t f, std::int64_t b)
{
    Placement placement{.devices = devices, .memoryLimit = std::vector(at(devices), limit)};
    Devices all(at(devices));
    std::iota(all.begin(), all.end(), 0);
    Chain chain{placement};
    const std::int32_t half = devices / 2;
    if (name == "vshape") {
        chain.forward(0, devices, f, 1);
        chain.backward(devices - 1, -1, b);
    } else if (name == "xshape") {
        chain.forward(0, devices, f, 1);
        chain.backward(devices - 1, -1, b);
        Chain other{placement};
        other.forward(devices - 1, -1, f, 1);
        other.backward(0, devices, b);
    } else if (name == "mshape") {
        chain.add("forward", all, f, 0);
        chain.forward(0, devices, f, 1);
        chain.backward(devices - 1, -1, b);
        chain.add("backward", all, b, 0);
    } else if (name == "nnshape") {
        chain.add("forward", all, f, 0);
        chain.forward(0, half, f, 1);
        chain.add("forward", all, f, 0);
        chain.forward(half, devices, f, 1);
        chain.backward(devices - 1, half - 1, b);
        chain.add("backward", all, b, 0);
        chain.backward(half - 1, -1, b);
        chain.add("backward", all, b, 0);
    } else if (name == "mllm") {
        chain.add("forward", all, f, 0);
        chain.forward(0, devices, f, 1);
        chain.add("forward", all, f, 0);
        chain.add("backward", all, b, 0);
        chain.backward(devices - 1, -1, b);
        chain.add("backward", all, b, 0);
    } else if (name == "kshape") {
        chain.forward(0, half, f, 1);
        Chain other{placement};
        other.forward(half, devices, f, 1);
        const std::int32_t branch = other.last;
        chain.add("forward", all, f, 1);
        placement.edges.push_back({branch, chain.last, 0});
        chain.add("backward", all, b, -1);
        other.last = chain.last;
        chain.backward(half - 1, -1, b);
        other.backward(devices - 1, half - 1, b);
    } else if (name == "finetune") {
        chain.add("forward", all, f, 0);
        chain.forward(0, devices, f, 1);
        chain.backward(devices - 1, -1, b - 1);
    } else if (name == "alphafold") {
        for (const std::int64_t memory : {0, 0, 1})
            chain.forward(0, devices, f, memory);
        chain.backward(devices - 1, -1, f);
    }
    return placement;
}

Placement drawnPlacement(std::uint32_t seed)
{
    std::mt19937 generator(seed);
    const auto draw = [&](int least, int most) {
        return least + static_cast<int>(generator() % static_cast<unsigned>(most - least + 1));
    };
    Placement placement{.devices = draw(1, 3)};
    const int count = draw(2, 6);
    const bool queues = draw(0, 4) == 0;
    for (int i = 0; i < count; ++i) {
        PlacementBlock block{.id = 10 + i, .time = draw(1, count < 5 ? 3 : 2)};
        for (int d = 0; d < placement.devices; ++d)
            if (draw(0, 2) == 0)
                block.devices.push_back(d);
        if (block.devices.empty())
            block.devices.push_back(draw(0, placement.devices - 1));
        block.queue = queues ? draw(0, 1) : 0;
        placement.blocks.push_back(std::move(block));
    }
    for (int i = 0; i < count; ++i)
        for (int j = i + 1; j < count; ++j)
            if (draw(0, 2) == 0)
                placement.edges.push_back({i, j, 0});
    if (draw(0, 3) > 0) {
        placement.memoryLimit.assign(at(placement.devices), draw(1, 4));
        for (int i = 0; i < count; ++i)
            for (int j = i + 1; j < count; ++j) {
                PlacementBlock &take = placement.blocks[at(i)];
                PlacementBlock &give = placement.blocks[at(j)];
                if (take.memory != 0 || give.memory != 0 || take.devices != give.devices || draw(0, 1) == 0)
                    continue;
                take.memory = draw(1, 2);
                give.memory = -take.memory;
                give.givesBackAtEnd = draw(0, 2) == 0;
                placement.edges.push_back({i, j, 0});
            }
    }
    if (draw(0, 5) == 0)
        placement.edges.push_back({draw(0, count - 1), draw(0, count - 1), draw(1, 2)});
    return placement;
}

Placement drawnOptions(std::uint32_t seed)
{
    Placement placement = drawnPlacement(seed);
    std::mt19937 generator(seed + 1);
    const auto draw = [&](int least, int most) {
        return least + static_cast<int>(generator() % static_cast<unsigned>(most - least + 1));
    };
    auto room = static_cast<int>(6 - placement.blocks.size()); // of copies
    const auto count = static_cast<std::int32_t>(placement.blocks.size());
    for (PlacementBlock &block : placement.blocks)
        block.workspace = placement.memoryLimit.empty() || draw(0, 4) > 0 ? 0 : 1;
    const auto &edges = placement.edges;
    for (std::int32_t i = 0; i < count; ++i) {
        const PlacementBlock &take = placement.blocks[at(i)];
        if (take.memory <= 0)
            continue;
        // Edges to what gives back were drawn behind all others.
        const auto give = std::find_if(edges.rbegin(), edges.rend(), [&](const PlacementEdge &edge) {
            return edge.before == i && edge.distance == 0
                && placement.blocks[at(edge.after)].memory == -take.memory;
        });
        std::int32_t until = give->after;
        for (std::int32_t u = 0; u < count; ++u) // or something between the two
            if (placement.blocks[at(u)].memory == 0 && placement.blocks[at(u)].devices == take.devices
                && std::find(edges.begin(), edges.end(), PlacementEdge{i, u, 0}) != edges.end()
                && std::find(edges.begin(), edges.end(), PlacementEdge{u, give->after, 0}) != edges.end()
                && draw(0, 1) == 0)
                until = u;
        if (draw(0, 3) > 0)
            placement.options.push_back(
                {OptionKind::Recompute, i, until, draw(1, static_cast<int>(take.memory)), draw(1, 2)});
        if (room >= 2 && draw(0, 2) > 0) {
            room -= 2;
            const std::int32_t queue = draw(0, 2);
            placement.options.push_back(
                {OptionKind::Offload, i, until, draw(1, static_cast<int>(take.memory)), draw(1, 2), queue,
                    draw(1, 2), draw(0, 1) == 0 ? queue : 3});
        }
    }
    return placement;
}

Placement drawnOnce(std::uint32_t seed)
{
    Placement placement = drawnPlacement(seed);
    std::mt19937 generator(seed + 2);
    for (std::size_t b = 0; b < placement.blocks.size(); ++b) {
        const auto touches = [&](bool before) {
            return std::any_of(placement.edges.begin(), placement.edges.end(),
                [&](const PlacementEdge &edge) { return at(before ? edge.after : edge.before) == b; });
        };
        placement.blocks[b].once = !(touches(true) && touches(false)) && generator() % 2 == 0;
    }
    return placement;
}

Placement withoutOnce(const Placement &placement)
{
    Placement rest{.devices = placement.devices, .memoryLimit = placement.memoryLimit};
    std::vector<std::int32_t> indexOf(placement.blocks.size(), -1);
    for (std::size_t b = 0; b < placement.blocks.size(); ++b) {
        const PlacementBlock &block = placement.blocks[b];
        const bool first = std::any_of(placement.edges.begin(), placement.edges.end(),
            [&](const PlacementEdge &edge) { return at(edge.before) == b; });
        if (!block.once) {
            indexOf[b] = static_cast<std::int32_t>(rest.blocks.size());
            rest.blocks.push_back(block);
        } else if (first) { // drawn without any that only others that run once wait for
            for (const std::int32_t device : block.devices)
                if (!rest.memoryLimit.empty())
                    rest.memoryLimit[at(device)] -= block.memory;
        }
    }
    for (const PlacementEdge &edge : placement.edges)
        if (indexOf[at(edge.before)] >= 0 && indexOf[at(edge.after)] >= 0)
            rest.edges.push_back({indexOf[at(edge.before)], indexOf[at(edge.after)], edge.distance});
    return rest;
}

std::vector<Placement> allDecisions(const Placement &placement)
{
    std::vector<OptionChoices> decided{openOptions(placement)};
    for (std::size_t b = 0; b < placement.blocks.size(); ++b)
        for (std::size_t i = decided.size(); i-- > 0;) {
            if (decided[i][b] != kOptionOpen)
                continue;
            decided[i][b] = kOptionKept;
            for (std::size_t o = 0; o < placement.options.size(); ++o)
                if (at(placement.options[o].block) == b) {
                    decided.push_back(decided[i]);
                    decided.back()[b] = static_cast<std::int32_t>(o);
                }
        }
    std::vector<Placement> all;
    for (const OptionChoices &choices : decided)
        all.push_back(withOptions(placement, choices));
    return all;
}

namespace {

bool uses(const PlacementBlock &block, std::int32_t device)
{
    return std::find(block.devices.begin(), block.devices.end(), device) != block.devices.end();
}

std::int64_t memoryMoment(const PlacementBlock &block, std::int64_t start)
{
    return start + (block.memory < 0 && block.givesBackAtEnd ? block.time : 0);
}

/// Tries all phases, then all stages.
class PeriodTrial
{
public:
    PeriodTrial(const Placement &placement, std::int64_t period)
        : m_placement(placement)
        , m_period(period)
        , m_phase(placement.blocks.size())
        , m_stage(placement.blocks.size())
    {
    }

    bool phases(std::size_t i)
    {
        if (i == m_phase.size())
            return stages(0);
        const PlacementBlock &own = m_placement.blocks[i];
        if (own.time > m_period)
            return false;
        // Whatever its phase, all may move so that the first one's is 0.
        for (m_phase[i] = 0; m_phase[i] < (i == 0 ? 1 : m_period); ++m_phase[i]) {
            bool fits = true;
            for (std::size_t j = 0; j < i && fits; ++j) {
                const PlacementBlock &other = m_placement.blocks[j];
                const std::int64_t behind = (m_phase[i] - m_phase[j] + m_period) % m_period;
                fits = !shareQueue(own, other) || (behind >= other.time && m_period - behind >= own.time);
            }
            if (fits && phases(i + 1))
                return true;
        }
        return false;
    }

private:
    std::int64_t startOf(std::size_t i) const { return m_phase[i] + m_period * m_stage[i]; }

    bool stages(std::size_t i)
    {
        if (i == m_stage.size())
            return edgesHold() && memoryHolds();
        bool waits = false;
        std::int64_t least = 0;
        for (const PlacementEdge &edge : m_placement.edges)
            if (edge.distance == 0 && at(edge.after) == i) {
                waits = true;
                const std::int64_t ready =
                    startOf(at(edge.before)) + m_placement.blocks[at(edge.before)].time;
                while (m_phase[i] + m_period * least < ready)
                    ++least;
            }
        const auto most = waits ? least + 2 : static_cast<std::int64_t>(m_stage.size());
        for (m_stage[i] = least; m_stage[i] <= most; ++m_stage[i])
            if (stages(i + 1))
                return true;
        return false;
    }

    bool edgesHold() const
    {
        return std::all_of(
            m_placement.edges.begin(), m_placement.edges.end(), [&](const PlacementEdge &edge) {
                return startOf(at(edge.after)) + m_period * edge.distance
                    >= startOf(at(edge.before)) + m_placement.blocks[at(edge.before)].time;
            });
    }

    bool memoryHolds() const
    {
        for (std::size_t d = 0; d < m_placement.memoryLimit.size(); ++d)
            for (std::int64_t phase = 0; phase < m_period; ++phase) {
                std::int64_t held = 0;
                for (std::size_t j = 0; j < m_phase.size(); ++j) {
                    const PlacementBlock &block = m_placement.blocks[j];
                    if (!uses(block, static_cast<std::int32_t>(d)))
                        continue;
                    if ((phase - m_phase[j] + m_period) % m_period < block.time)
                        held += block.workspace;
                    const std::int64_t moment = memoryMoment(block, startOf(j));
                    held += block.memory * ((moment % m_period <= phase ? 1 : 0) - moment / m_period);
                }
                if (held > m_placement.memoryLimit[d])
                    return false;
            }
        return true;
    }

    const Placement &m_placement;
    std::int64_t m_period = 1;
    std::vector<std::int64_t> m_phase{};
    std::vector<std::int64_t> m_stage{};
};

/// Starts blocks at moments when something ends, in every order.
class MakespanTrial
{
public:
    MakespanTrial(const Placement &placement, std::int32_t microBatches, std::int64_t makespan)
        : m_placement(placement)
        , m_microBatches(at(microBatches))
        , m_makespan(makespan)
        , m_starts(placement.blocks.size())
    {
        for (std::size_t b = 0; b < m_starts.size(); ++b)
            m_runs += runsOf(b);
    }

    /// @param from  blocks before it are not tried again at this moment, but for those that give back
    bool search(std::int64_t now, std::size_t from)
    {
        std::size_t started = 0;
        for (const auto &own : m_starts)
            started += own.size();
        if (started == m_runs)
            return true;
        for (std::size_t b = 0; b < m_starts.size(); ++b) {
            const PlacementBlock &block = m_placement.blocks[b];
            if ((b < from && block.memory >= 0) || !canStart(b, now))
                continue;
            m_starts[b].push_back(now);
            if (search(now, std::max(b, from)))
                return true;
            m_starts[b].pop_back();
        }
        std::int64_t next = m_makespan;
        for (std::size_t b = 0; b < m_starts.size(); ++b)
            for (const std::int64_t start : m_starts[b])
                if (start + m_placement.blocks[b].time > now)
                    next = std::min(next, start + m_placement.blocks[b].time);
        return next < m_makespan && search(next, 0);
    }

private:
    std::size_t runsOf(std::size_t b) const { return m_placement.blocks[b].once ? 1 : m_microBatches; }

    bool canStart(std::size_t b, std::int64_t now) const
    {
        const PlacementBlock &block = m_placement.blocks[b];
        if (m_starts[b].size() == runsOf(b) || now + block.time >= m_makespan)
            return false;
        for (const PlacementEdge &edge : m_placement.edges) {
            if (at(edge.after) != b || m_starts[b].size() < at(edge.distance))
                continue;
            const PlacementBlock &other = m_placement.blocks[at(edge.before)];
            const auto &before = m_starts[at(edge.before)];
            // All of a block before one that runs once; the only one of that.
            const std::size_t microBatch = block.once || other.once ? runsOf(at(edge.before)) - 1
                                                                    : m_starts[b].size() - at(edge.distance);
            if (before.size() <= microBatch || before[microBatch] + other.time > now)
                return false;
        }
        for (std::size_t j = 0; j < m_starts.size(); ++j)
            if (shareQueue(block, m_placement.blocks[j]))
                for (const std::int64_t start : m_starts[j])
                    if (start + m_placement.blocks[j].time > now)
                        return false;
        for (const std::int32_t device : block.devices) {
            if (m_placement.memoryLimit.empty() || !takesMemory(block))
                break;
            const bool late = block.memory < 0 && block.givesBackAtEnd;
            std::int64_t held = block.workspace + (late ? 0 : block.memory);
            for (std::size_t j = 0; j < m_starts.size(); ++j)
                for (const std::int64_t start : m_starts[j]) {
                    if (!uses(m_placement.blocks[j], device))
                        continue;
                    if (memoryMoment(m_placement.blocks[j], start) <= now)
                        held += m_placement.blocks[j].memory;
                    if (start + m_placement.blocks[j].time > now)
                        held += m_placement.blocks[j].workspace;
                }
            if (held > m_placement.memoryLimit[at(device)])
                return false;
        }
        return true;
    }

    const Placement &m_placement;
    std::size_t m_microBatches = 1;
    std::int64_t m_makespan = 0;
    std::size_t m_runs = 0;
    std::vector<std::vector<std::int64_t>> m_starts{}; ///< By block, those of its micro-batches in order.
};

} // namespace

bool hasPeriod(const Placement &placement, std::int64_t period)
{
    return PeriodTrial(placement, period).phases(0);
}

bool hasShorter(const Placement &placement, std::int32_t microBatches, std::int64_t makespan)
{
    return MakespanTrial(placement, microBatches, makespan).search(0, 0);
}

std::int64_t sumOfTimes(const Placement &placement)
{
    std::int64_t sum = 0;
    for (const PlacementBlock &block : placement.blocks)
        sum += block.time;
    return sum;
}

std::string textOf(const std::vector<ScheduleViolation> &violations)
{
    std::string text;
    for (const ScheduleViolation &violation : violations)
        text += violation.text + "\n";
    return text;
}

} // namespace planloom
