#include "engine/schedule/search/stage_blocks.h"

#include "engine/base/ids.h"
#include "engine/schedule/play_blocks.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

/// Starts what can start first, again and again, so that what is sent leaves in the order in which it is
/// there; what is sent before what is computed, and of that what is on the first rank.
class SchedulePlayer
{
public:
    SchedulePlayer(const StagePlacement &stages, std::int32_t microBatches)
        : m_stages(stages)
        , m_placement(stages.placement)
        , m_microBatches(microBatches)
        , m_runs(stages.placement, microBatches)
        , m_hasRun(at(m_runs.count()), false)
        , m_player(playerOf(stages, m_runs, microBatches))
    {
    }

    /// Reads what every rank runs. Whole backward blocks are both their parts where the placement has those,
    /// and the other way round; blocks that it has not got (of a pass that a stage lacks) are not run.
    Result<void> read(const Schedule &schedule)
    {
        std::map<BlockKey, std::int32_t> blockOf;
        for (std::size_t b = 0; b < m_stages.keys.size(); ++b)
            if (m_stages.keys[b])
                blockOf[*m_stages.keys[b]] = static_cast<std::int32_t>(b);
        m_order.resize(std::max(schedule.ranks.size(), at(m_placement.devices)));
        m_next.resize(m_order.size(), 0);
        for (std::size_t r = 0; r < schedule.ranks.size(); ++r)
            for (const ScheduledBlock &each : schedule.ranks[r]) {
                if (each.microBatch < 0 || each.microBatch >= m_microBatches)
                    return Error{ErrorCode::InvalidInput,
                        "rank " + std::to_string(r) + " runs micro-batch " + std::to_string(each.microBatch)
                            + " of " + std::to_string(m_microBatches),
                        "micro-batches count from 0", "rank:" + std::to_string(r)};
                const auto find = [&](SegmentKind pass) {
                    BlockKey key = each.block;
                    key.pass = pass;
                    const auto found = blockOf.find(key);
                    if (found != blockOf.end())
                        m_order[r].push_back({found->second, each.microBatch});
                    return found != blockOf.end();
                };
                if (find(each.block.pass))
                    continue;
                if (each.block.pass == SegmentKind::Backward && find(SegmentKind::InputGradient))
                    find(SegmentKind::WeightGradient);
                else if (each.block.pass == SegmentKind::InputGradient)
                    find(SegmentKind::Backward);
            }
        return {};
    }

    Result<std::vector<BlockStart>> play()
    {
        for (std::size_t rank = 0; rank < m_order.size(); ++rank)
            comesNext(rank);
        const auto rankOf = [&](std::size_t number) {
            const std::int32_t block = m_runs.blockOf(static_cast<std::int32_t>(number));
            return m_stages.keys[at(block)] ? m_placement.blocks[at(block)].devices.front() : -1;
        };
        std::vector<BlockStart> starts;
        while (const auto next = m_player.next(rankOf, [](std::size_t) { return true; })) {
            const PlacedRun run = m_runs.run(static_cast<std::int32_t>(*next));
            const PlacementBlock &own = m_placement.blocks[at(run.block)];
            const std::int64_t start = m_player.startOf(*next);
            starts.push_back({run.block, run.microBatch, start});
            m_hasRun[*next] = true;
            m_player.run(*next, start + own.time);
            if (m_stages.keys[at(run.block)])
                for (const std::int32_t device : own.devices) {
                    ++m_next[at(device)];
                    comesNext(at(device));
                }
        }
        if (starts.size() == m_hasRun.size())
            return starts;
        return problem(starts.size());
    }

private:
    /// Blocks wait for those before them, and to come next on each of their ranks.
    static BlockPlayer<std::int64_t> playerOf(
        const StagePlacement &stages, const PlacementRuns &numbers, std::int32_t microBatches)
    {
        const Placement &placement = stages.placement;
        std::int32_t queues = 1;
        for (const PlacementBlock &block : placement.blocks)
            queues = std::max(queues, block.queue + 1);
        std::vector<std::vector<std::int32_t>> queueSets;
        std::vector<BlockPlayer<std::int64_t>::Run> runs;
        for (std::size_t b = 0; b < placement.blocks.size(); ++b) {
            const PlacementBlock &block = placement.blocks[b];
            const auto ranks = static_cast<std::int32_t>(stages.keys[b] ? block.devices.size() : 0);
            runs.insert(runs.end(), at(numbers.of(static_cast<std::int32_t>(b))),
                {static_cast<std::int32_t>(b), ranks});
            auto &set = queueSets.emplace_back();
            for (const std::int32_t device : block.devices)
                set.push_back(device * queues + block.queue);
        }
        std::vector<BlockPlayer<std::int64_t>::Link> links;
        for (const PlacementEdge &edge : placement.edges)
            for (std::int32_t m = 0; m < numbers.of(edge.after); ++m)
                forEachRunBefore(placement, edge, m, microBatches, [&](std::int32_t before) {
                    links.emplace_back(numbers.number(edge.before, before), numbers.number(edge.after, m));
                });
        return {std::move(runs), links, std::move(queueSets)};
    }

    bool hasRun(const PlacedRun &run) const { return m_hasRun[at(m_runs.number(run.block, run.microBatch))]; }

    /// Lets the next block of a rank know, unless it is one of another rank, or has run.
    void comesNext(std::size_t rank)
    {
        if (m_next[rank] == m_order[rank].size())
            return;
        const PlacedRun next = m_order[rank][m_next[rank]];
        const auto &devices = m_placement.blocks[at(next.block)].devices;
        if (!hasRun(next)
            && std::find(devices.begin(), devices.end(), static_cast<std::int32_t>(rank)) != devices.end())
            m_player.release(at(m_runs.number(next.block, next.microBatch)));
    }

    /// What a block waits for: another that has not run; -1 for nothing.
    std::int32_t waitsFor(const PlacedRun &run) const
    {
        std::int32_t waits = -1;
        for (const PlacementEdge &edge : m_placement.edges)
            if (edge.after == run.block)
                forEachRunBefore(m_placement, edge, run.microBatch, m_microBatches, [&](std::int32_t m) {
                    if (!hasRun({edge.before, m}))
                        waits = edge.before;
                });
        return waits;
    }

    std::string wordsOf(std::int32_t block, std::int32_t microBatch) const
    {
        const auto &key = m_stages.keys[at(block)];
        return m_placement.blocks[at(block)].kind + " block"
            + (key ? " of stage " + std::to_string(key->stage.index) : "") + ", micro-batch "
            + std::to_string(microBatch);
    }

    Error problem(std::size_t started) const
    {
        for (std::size_t r = 0; r < m_order.size(); ++r) {
            if (m_next[r] == m_order[r].size())
                continue;
            const PlacedRun stuck = m_order[r][m_next[r]];
            const std::string where = "rank:" + std::to_string(r);
            if (hasRun(stuck))
                return {ErrorCode::InvalidInput,
                    "rank " + std::to_string(r) + " runs the " + wordsOf(stuck.block, stuck.microBatch)
                        + " twice",
                    "every block of every micro-batch runs once", where};
            const std::int32_t before = waitsFor(stuck);
            return {ErrorCode::InvalidInput,
                "the schedule stops: rank " + std::to_string(r) + " waits with its "
                    + wordsOf(stuck.block, stuck.microBatch) + " for the "
                    + wordsOf(before < 0 ? stuck.block : before, stuck.microBatch)
                    + (before < 0 ? " on another rank" : "") + ", which never comes before it",
                "order the blocks of every rank behind what they wait for", where};
        }
        return {ErrorCode::InvalidInput,
            "the schedule runs " + std::to_string(started) + " of " + std::to_string(m_hasRun.size())
                + " blocks",
            "every block of every micro-batch runs once", "schedule"};
    }

    const StagePlacement &m_stages;
    const Placement &m_placement;
    std::int32_t m_microBatches = 1;
    PlacementRuns m_runs;
    std::vector<bool> m_hasRun{}; ///< By run.
    BlockPlayer<std::int64_t> m_player;
    std::vector<std::vector<PlacedRun>> m_order{}; ///< By rank.
    std::vector<std::size_t> m_next{}; ///< By rank: how many of those have run.
};

} // namespace

Result<std::vector<BlockStart>> playSchedule(
    const StagePlacement &stages, const Schedule &schedule, std::int32_t microBatches)
{
    SchedulePlayer player(stages, microBatches);
    TRY_VOID(player.read(schedule));
    return player.play();
}

} // namespace planloom
