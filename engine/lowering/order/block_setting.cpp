#include "engine/lowering/order/block_setting.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

/// Finds the rank on the devices of all others together, if there is one: its stages run on all ranks.
void setWide(const std::map<std::vector<DeviceId>, std::int32_t> &ranks, ScheduleSetting &setting)
{
    std::set<DeviceId> all;
    std::size_t devices = 0; // of all ranks but the widest
    std::int32_t widest = -1;
    for (const auto &[own, rank] : ranks)
        all.insert(own.begin(), own.end());
    for (const auto &[own, rank] : ranks) {
        if (own.size() == all.size())
            widest = rank;
        else
            devices += own.size();
    }
    if (widest < 0 || devices != all.size())
        return;
    setting.wide.assign(setting.rankOf.size(), false);
    for (std::size_t s = 0; s < setting.rankOf.size(); ++s) {
        std::int32_t &rank = setting.rankOf[s];
        setting.wide[s] = rank == widest;
        rank = rank == widest ? -1 : rank > widest ? rank - 1 : rank;
    }
    --setting.rankCount;
}

} // namespace

ScheduleSetting settingOf(
    const std::vector<BlockInfo> &blocks, std::int32_t microBatches, std::int32_t stageCount)
{
    ScheduleSetting setting{.microBatches = microBatches, .backward = false};
    setting.rankOf.assign(static_cast<std::size_t>(stageCount), 0);
    setting.slices.assign(static_cast<std::size_t>(stageCount), 1);
    std::map<std::vector<DeviceId>, std::int32_t> ranks;
    setting.laneRanks.resize(static_cast<std::size_t>(stageCount));
    for (std::int32_t stage = 0; stage < stageCount; ++stage) {
        const auto s = static_cast<std::size_t>(stage);
        std::map<std::int32_t, std::set<DeviceId>> devices; // by lane, of all slices
        for (const BlockInfo &block : blocks) {
            if (block.stage.index != stage || block.devices.empty() || !isPass(block.kind))
                continue;
            setting.backward = setting.backward || isBackward(block.kind);
            setting.slices[s] = block.slices;
            if (block.kind == SegmentKind::Forward)
                devices[block.lane].insert(block.devices.begin(), block.devices.end());
        }
        for (const auto &[lane, own] : devices)
            setting.laneRanks[s].push_back(
                ranks.try_emplace({own.begin(), own.end()}, static_cast<std::int32_t>(ranks.size()))
                    .first->second);
        if (!setting.laneRanks[s].empty())
            setting.rankOf[s] = setting.laneRanks[s].front();
    }
    if (std::all_of(setting.laneRanks.begin(), setting.laneRanks.end(),
            [](const auto &lanes) { return lanes.size() <= 1; }))
        setting.laneRanks.clear();
    setting.rankCount = std::max<std::int32_t>(static_cast<std::int32_t>(ranks.size()), 1);
    if (setting.laneRanks.empty())
        setWide(ranks, setting);
    return setting;
}

} // namespace planloom
