#include "engine/schedule/search/stage_blocks.h"

#include "engine/base/ids.h"
#include "engine/schedule/search/placement_runs.h"

#include <algorithm>
#include <limits>
#include <map>

namespace planloom {

namespace {

constexpr std::int64_t kNotYet = -1;

/// Starts what can start first, again and again, so that what is sent leaves in the order in which it is
/// there.
class SchedulePlayer
{
public:
    SchedulePlayer(const StagePlacement &stages, std::int32_t microBatches)
        : m_stages(stages)
        , m_placement(stages.placement)
        , m_microBatches(microBatches)
        , m_runs(stages.placement, microBatches)
        , m_ends(at(m_runs.count()), kNotYet)
        , m_into(stages.placement.blocks.size())
        , m_sends(stages.placement.blocks.size())
    {
        for (const PlacementEdge &edge : m_placement.edges) {
            m_into[at(edge.after)].push_back(edge);
            if (!m_stages.keys[at(edge.after)])
                m_sends[at(edge.before)].push_back(edge);
        }
        for (std::size_t b = 0; b < m_into.size(); ++b) // what is sent without waiting for anything
            for (std::int32_t m = 0; m < m_runs.of(static_cast<std::int32_t>(b)); ++m)
                if (!m_stages.keys[b] && m_into[b].empty())
                    m_pending.push_back({static_cast<std::int32_t>(b), m});
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
                const auto find = [&](Pass pass) {
                    BlockKey key = each.block;
                    key.pass = pass;
                    const auto found = blockOf.find(key);
                    if (found != blockOf.end())
                        m_order[r].push_back({found->second, each.microBatch});
                    return found != blockOf.end();
                };
                if (find(each.block.pass))
                    continue;
                if (each.block.pass == Pass::Backward && find(Pass::InputGradient))
                    find(Pass::WeightGradient);
                else if (each.block.pass == Pass::InputGradient)
                    find(Pass::Backward);
            }
        return {};
    }

    Result<std::vector<BlockStart>> play()
    {
        while (true) {
            PlacedRun best{-1, 0};
            std::size_t sent = m_pending.size(); // which of the pending, if one is the best
            std::int64_t least = std::numeric_limits<std::int64_t>::max();
            for (std::size_t i = 0; i < m_pending.size(); ++i)
                if (const std::int64_t start = startOf(m_pending[i]); start < least) {
                    least = start;
                    best = m_pending[i];
                    sent = i;
                }
            for (std::size_t r = 0; r < m_order.size(); ++r)
                if (m_next[r] < m_order[r].size() && isReady(m_order[r][m_next[r]]))
                    if (const std::int64_t start = startOf(m_order[r][m_next[r]]); start < least) {
                        least = start;
                        best = m_order[r][m_next[r]];
                        sent = m_pending.size();
                    }
            if (best.block < 0)
                break;
            if (sent < m_pending.size())
                m_pending.erase(m_pending.begin() + static_cast<std::ptrdiff_t>(sent));
            else
                for (const std::int32_t device : m_placement.blocks[at(best.block)].devices)
                    ++m_next[at(device)];
            run(best, least);
        }
        if (m_starts.size() == m_ends.size())
            return std::move(m_starts);
        return problem();
    }

private:
    std::int64_t &endOf(std::int32_t block, std::int32_t microBatch)
    {
        return m_ends[at(m_runs.number(block, microBatch))];
    }

    /// What a block waits for: another that has not run; -1 for nothing.
    std::int32_t waitsFor(const PlacedRun &run)
    {
        std::int32_t waits = -1;
        for (const PlacementEdge &edge : m_into[at(run.block)])
            forEachRunBefore(m_placement, edge, run.microBatch, m_microBatches, [&](std::int32_t m) {
                if (endOf(edge.before, m) == kNotYet)
                    waits = edge.before;
            });
        return waits;
    }

    /// It has not run, comes next on all its ranks, and waits for nothing.
    bool isReady(const PlacedRun &run)
    {
        const auto &devices = m_placement.blocks[at(run.block)].devices;
        return endOf(run.block, run.microBatch) == kNotYet
            && std::all_of(devices.begin(), devices.end(),
                [&](std::int32_t device) {
                    return m_next[at(device)] < m_order[at(device)].size()
                        && m_order[at(device)][m_next[at(device)]] == run;
                })
            && waitsFor(run) < 0;
    }

    std::int64_t startOf(const PlacedRun &run)
    {
        const PlacementBlock &own = m_placement.blocks[at(run.block)];
        std::int64_t start = 0;
        for (const PlacementEdge &edge : m_into[at(run.block)])
            forEachRunBefore(m_placement, edge, run.microBatch, m_microBatches,
                [&](std::int32_t m) { start = std::max(start, endOf(edge.before, m)); });
        for (const std::int32_t device : own.devices)
            start = std::max(start, m_freeAt[{device, own.queue}]);
        return start;
    }

    void run(const PlacedRun &run, std::int64_t start)
    {
        const PlacementBlock &own = m_placement.blocks[at(run.block)];
        for (const std::int32_t device : own.devices)
            m_freeAt[{device, own.queue}] = start + own.time;
        endOf(run.block, run.microBatch) = start + own.time;
        m_starts.push_back({run.block, run.microBatch, start});
        for (const PlacementEdge &edge : m_sends[at(run.block)])
            for (std::int32_t m = 0; m < m_runs.of(edge.after); ++m) {
                bool waitsForThis = false;
                forEachRunBefore(m_placement, edge, m, m_microBatches,
                    [&](std::int32_t before) { waitsForThis |= before == run.microBatch; });
                if (waitsForThis && waitsFor({edge.after, m}) < 0)
                    m_pending.push_back({edge.after, m});
            }
    }

    std::string wordsOf(std::int32_t block, std::int32_t microBatch) const
    {
        const auto &key = m_stages.keys[at(block)];
        return m_placement.blocks[at(block)].kind + " block"
            + (key ? " of stage " + std::to_string(key->stage.index) : "") + ", micro-batch "
            + std::to_string(microBatch);
    }

    Error problem()
    {
        for (std::size_t r = 0; r < m_order.size(); ++r) {
            if (m_next[r] == m_order[r].size())
                continue;
            const PlacedRun stuck = m_order[r][m_next[r]];
            const std::string where = "rank:" + std::to_string(r);
            if (endOf(stuck.block, stuck.microBatch) != kNotYet)
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
            "the schedule runs " + std::to_string(m_starts.size()) + " of " + std::to_string(m_ends.size())
                + " blocks",
            "every block of every micro-batch runs once", "schedule"};
    }

    const StagePlacement &m_stages;
    const Placement &m_placement;
    std::int32_t m_microBatches = 1;
    PlacementRuns m_runs;
    std::vector<std::int64_t> m_ends{}; ///< By run.
    std::vector<std::vector<PlacementEdge>> m_into{};
    std::vector<std::vector<PlacementEdge>> m_sends{}; ///< Edges to what is sent then.
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> m_freeAt{}; ///< By device and queue.
    std::vector<std::vector<PlacedRun>> m_order{}; ///< By rank.
    std::vector<std::size_t> m_next{};
    std::vector<PlacedRun> m_pending{}; ///< What can be sent.
    std::vector<BlockStart> m_starts{};
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
