#include "engine/search/schedule/stage_blocks.h"

#include "engine/base/ids.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace planloom {

namespace {

constexpr std::int32_t kForwardQueue = 1;
constexpr std::int32_t kBackwardQueue = 2;

/// Builds the blocks of one lane after another.
class PlacementBuilder
{
public:
    PlacementBuilder(const ScheduleSetting &setting, const std::vector<StageBlocks> &stages, bool splits)
        : m_setting(setting)
        , m_stages(stages)
        , m_splits(splits)
    {
        m_built.placement.devices = setting.rankCount;
    }

    void addLane(std::int32_t lane)
    {
        const auto count = static_cast<std::int32_t>(m_stages.size());
        std::vector<std::int32_t> forward(m_stages.size(), -1);
        std::int32_t last = -1;
        for (std::int32_t s = 0; s < count; ++s) {
            const StageBlocks &own = m_stages[at(s)];
            if (s > 0)
                last = send(last, s - 1, s, lane, m_stages[at(s - 1)].sendForward, kForwardQueue);
            last = forward[at(s)] =
                add(s, lane, Pass::Forward, own.forward, own.hasBackward ? own.memory : 0, {last});
        }
        for (std::int32_t s = count - 1; s >= 0 && m_setting.backward; --s) {
            const StageBlocks &own = m_stages[at(s)];
            if (!own.hasBackward)
                break; // what lies before has none either
            if (s + 1 < count)
                last = send(last, s + 1, s, lane, m_stages[at(s + 1)].sendBackward, kBackwardQueue);
            if (m_splits) {
                last = add(s, lane, Pass::InputGradient, own.backward, 0, {last, forward[at(s)]});
                add(s, lane, Pass::WeightGradient, own.weights, -own.memory, {last});
            } else {
                last = add(
                    s, lane, Pass::Backward, own.backward + own.weights, -own.memory, {last, forward[at(s)]});
            }
        }
    }

    StagePlacement take() { return std::move(m_built); }

private:
    std::vector<std::int32_t> ranksOf(std::int32_t stage, std::int32_t lane) const
    {
        std::vector<std::int32_t> ranks{m_setting.laneRanks.empty()
                ? m_setting.rankOf[at(stage)]
                : m_setting.laneRanks[at(stage)][at(lane)]};
        if (m_setting.isWide(stage)) {
            ranks.resize(at(m_setting.rankCount));
            std::iota(ranks.begin(), ranks.end(), 0);
        }
        return ranks;
    }

    std::int32_t push(
        PlacementBlock block, std::optional<BlockKey> key, const std::vector<std::int32_t> &after)
    {
        const auto index = static_cast<std::int32_t>(m_built.placement.blocks.size());
        block.id = index;
        m_built.placement.blocks.push_back(std::move(block));
        m_built.keys.push_back(key);
        std::set<std::int32_t> before(after.begin(), after.end());
        for (const std::int32_t each : before)
            if (each >= 0)
                m_built.placement.edges.push_back({each, index, 0});
        return index;
    }

    std::int32_t add(std::int32_t stage, std::int32_t lane, Pass pass, std::int64_t time, std::int64_t memory,
        const std::vector<std::int32_t> &after)
    {
        PlacementBlock block{
            .kind = nameOf(pass), .devices = ranksOf(stage, lane), .time = time, .memory = memory};
        return push(std::move(block), BlockKey{StageId{stage}, pass, 0, lane}, after);
    }

    std::int32_t send(std::int32_t last, std::int32_t from, std::int32_t to, std::int32_t lane,
        std::int64_t time, std::int32_t queue)
    {
        const auto source = ranksOf(from, lane);
        const auto target = ranksOf(to, lane);
        if (time == 0 || source == target)
            return last;
        std::set<std::int32_t> both(source.begin(), source.end());
        both.insert(target.begin(), target.end());
        return push({.kind = "send", .devices = {both.begin(), both.end()}, .queue = queue, .time = time}, {},
            {last});
    }

    const ScheduleSetting &m_setting;
    const std::vector<StageBlocks> &m_stages;
    bool m_splits = false;
    StagePlacement m_built{};
};

} // namespace

StagePlacement placementOf(
    const ScheduleSetting &setting, const std::vector<StageBlocks> &stages, bool splits)
{
    PlacementBuilder builder(setting, stages, splits);
    const std::size_t lanes = setting.laneRanks.empty() ? 1 : setting.laneRanks.front().size();
    for (std::size_t lane = 0; lane < lanes; ++lane)
        builder.addLane(static_cast<std::int32_t>(lane));
    return builder.take();
}

Result<std::vector<BlockStart>> playSchedule(
    const StagePlacement &stages, const Schedule &schedule, std::int32_t microBatches)
{
    const Placement &placement = stages.placement;
    std::map<BlockKey, std::int32_t> blockOf;
    for (std::size_t b = 0; b < stages.keys.size(); ++b)
        if (stages.keys[b])
            blockOf[*stages.keys[b]] = static_cast<std::int32_t>(b);
    // By rank: what it runs. Whole backward blocks are both their parts where the placement has those, and
    // the other way round; blocks that it has not got (of a pass that a stage lacks) are not run.
    std::vector<std::vector<BlockStart>> order(schedule.ranks.size());
    for (std::size_t r = 0; r < order.size(); ++r)
        for (const ScheduledBlock &each : schedule.ranks[r]) {
            if (each.microBatch < 0 || each.microBatch >= microBatches)
                return Error{ErrorCode::InvalidInput,
                    "rank " + std::to_string(r) + " runs micro-batch " + std::to_string(each.microBatch)
                        + " of " + std::to_string(microBatches),
                    "micro-batches count from 0", "rank:" + std::to_string(r)};
            const auto find = [&](Pass pass) {
                BlockKey key = each.block;
                key.pass = pass;
                const auto found = blockOf.find(key);
                if (found != blockOf.end())
                    order[r].push_back({found->second, each.microBatch, 0});
                return found != blockOf.end();
            };
            if (find(each.block.pass))
                continue;
            if (each.block.pass == Pass::Backward && find(Pass::InputGradient))
                find(Pass::WeightGradient);
            else if (each.block.pass == Pass::InputGradient)
                find(Pass::Backward);
        }
    constexpr std::int64_t kNotYet = -1;
    const auto runs = placement.blocks.size() * at(microBatches);
    std::vector<std::int64_t> ends(runs, kNotYet);
    const auto slot = [&](std::int32_t block, std::int32_t microBatch) {
        return at(block) * at(microBatches) + at(microBatch);
    };
    std::vector<std::vector<PlacementEdge>> into(placement.blocks.size());
    std::vector<std::vector<PlacementEdge>> sends(placement.blocks.size());
    for (const PlacementEdge &edge : placement.edges) {
        into[at(edge.after)].push_back(edge);
        if (!stages.keys[at(edge.after)])
            sends[at(edge.before)].push_back(edge);
    }
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> freeAt; // by device and queue
    std::vector<BlockStart> starts;
    // What a block waits for: another that has not run; -1 for nothing.
    const auto waitsFor = [&](std::int32_t block, std::int32_t microBatch) {
        for (const PlacementEdge &edge : into[at(block)])
            if (microBatch >= edge.distance && ends[slot(edge.before, microBatch - edge.distance)] == kNotYet)
                return edge.before;
        return -1;
    };
    // Runs a block, and what is sent then.
    const auto run = [&](const auto &self, std::int32_t block, std::int32_t microBatch) -> void {
        const PlacementBlock &own = placement.blocks[at(block)];
        std::int64_t start = 0;
        for (const PlacementEdge &edge : into[at(block)])
            if (microBatch >= edge.distance)
                start = std::max(start, ends[slot(edge.before, microBatch - edge.distance)]);
        for (const std::int32_t device : own.devices)
            start = std::max(start, freeAt[{device, own.queue}]);
        for (const std::int32_t device : own.devices)
            freeAt[{device, own.queue}] = start + own.time;
        ends[slot(block, microBatch)] = start + own.time;
        starts.push_back({block, microBatch, start});
        for (const PlacementEdge &edge : sends[at(block)])
            if (const std::int32_t its = microBatch + edge.distance;
                its < microBatches && ends[slot(edge.after, its)] == kNotYet && waitsFor(edge.after, its) < 0)
                self(self, edge.after, its);
    };
    for (std::size_t b = 0; b < stages.keys.size(); ++b) // what is sent without waiting for anything
        for (std::int32_t m = 0; m < microBatches && !stages.keys[b] && into[b].empty(); ++m)
            run(run, static_cast<std::int32_t>(b), m);
    std::vector<std::size_t> next(order.size(), 0);
    const auto isNext = [&](std::int32_t device, const BlockStart &block) {
        const auto &own = order[at(device)];
        return next[at(device)] < own.size() && own[next[at(device)]] == block;
    };
    for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t r = 0; r < order.size(); ++r)
            while (next[r] < order[r].size()) {
                const BlockStart block = order[r][next[r]];
                const auto &devices = placement.blocks[at(block.block)].devices;
                if (ends[slot(block.block, block.microBatch)] != kNotYet
                    || waitsFor(block.block, block.microBatch) >= 0
                    || !std::all_of(devices.begin(), devices.end(),
                        [&](std::int32_t device) { return isNext(device, block); }))
                    break;
                run(run, block.block, block.microBatch);
                for (const std::int32_t device : devices)
                    ++next[at(device)];
                moved = true;
            }
    }
    if (starts.size() == runs)
        return starts;
    const auto words = [&](std::int32_t block, std::int32_t microBatch) {
        const auto &key = stages.keys[at(block)];
        return placement.blocks[at(block)].kind + " block"
            + (key ? " of stage " + std::to_string(key->stage.index) : "") + ", micro-batch "
            + std::to_string(microBatch);
    };
    for (std::size_t r = 0; r < order.size(); ++r)
        if (next[r] < order[r].size()) {
            const BlockStart stuck = order[r][next[r]];
            const std::int32_t before = waitsFor(stuck.block, stuck.microBatch);
            return Error{ErrorCode::InvalidInput,
                "the schedule stops: rank " + std::to_string(r) + " waits with its "
                    + words(stuck.block, stuck.microBatch) + " for the "
                    + words(before < 0 ? stuck.block : before, stuck.microBatch)
                    + (before < 0 ? " on another rank" : "") + ", which never comes before it",
                "order the blocks of every rank behind what they wait for", "rank:" + std::to_string(r)};
        }
    return Error{ErrorCode::InvalidInput,
        "the schedule runs " + std::to_string(starts.size()) + " of " + std::to_string(runs) + " blocks",
        "every block of every micro-batch runs once", "schedule"};
}

Schedule scheduleOf(const StagePlacement &stages, std::vector<BlockStart> starts)
{
    std::sort(starts.begin(), starts.end(), [](const BlockStart &a, const BlockStart &b) {
        return std::tie(a.start, a.block, a.microBatch) < std::tie(b.start, b.block, b.microBatch);
    });
    Schedule schedule;
    schedule.ranks.resize(at(stages.placement.devices));
    for (const BlockStart &run : starts)
        if (const auto &key = stages.keys[at(run.block)])
            for (const std::int32_t device : stages.placement.blocks[at(run.block)].devices)
                schedule.ranks[at(device)].push_back({*key, run.microBatch});
    return schedule;
}

} // namespace planloom
