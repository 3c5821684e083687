#include "engine/schedule/search/stage_blocks.h"

#include "engine/base/ids.h"

#include <algorithm>
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
                add(s, lane, SegmentKind::Forward, own.forward, own.hasBackward ? own.memory : 0, {last});
        }
        for (std::int32_t s = count - 1; s >= 0 && m_setting.backward; --s) {
            const StageBlocks &own = m_stages[at(s)];
            if (!own.hasBackward)
                break; // what lies before has none either
            if (s + 1 < count)
                last = send(last, s + 1, s, lane, m_stages[at(s + 1)].sendBackward, kBackwardQueue);
            if (m_splits) {
                last = add(s, lane, SegmentKind::InputGradient, own.backward, 0, {last, forward[at(s)]});
                add(s, lane, SegmentKind::WeightGradient, own.weights, -own.memory, {last});
            } else {
                last = add(s, lane, SegmentKind::Backward, own.backward + own.weights, -own.memory,
                    {last, forward[at(s)]});
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

    std::int32_t add(std::int32_t stage, std::int32_t lane, SegmentKind pass, std::int64_t time,
        std::int64_t memory, const std::vector<std::int32_t> &after)
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

Schedule scheduleOf(const StagePlacement &stages, std::vector<BlockStart> starts)
{
    std::sort(starts.begin(), starts.end(), [](const BlockStart &a, const BlockStart &b) {
        return std::tie(a.start, a.block, a.microBatch) < std::tie(b.start, b.block, b.microBatch);
    });
    Schedule schedule;
    schedule.ranks.resize(at(stages.placement.devices));
    for (const BlockStart &run : starts)
        if (at(run.block) < stages.keys.size() && stages.keys[at(run.block)])
            for (const std::int32_t device : stages.placement.blocks[at(run.block)].devices)
                schedule.ranks[at(device)].push_back({*stages.keys[at(run.block)], run.microBatch});
    return schedule;
}

} // namespace planloom
