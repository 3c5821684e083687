#include "engine/schedule/search/placement_stages.h"

#include "engine/base/ids.h"
#include "engine/schedule/schedule_templates.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace planloom {

namespace {

std::optional<SegmentKind> passNamed(const std::string &kind)
{
    static const std::map<std::string, SegmentKind, std::less<>> kPassOf{{"forward", SegmentKind::Forward},
        {"F", SegmentKind::Forward}, {"f", SegmentKind::Forward}, {"fwd", SegmentKind::Forward},
        {"backward", SegmentKind::Backward}, {"B", SegmentKind::Backward}, {"b", SegmentKind::Backward},
        {"bwd", SegmentKind::Backward}, {"input-gradient", SegmentKind::InputGradient},
        {"input_gradient", SegmentKind::InputGradient}, {"I", SegmentKind::InputGradient},
        {"weight-gradient", SegmentKind::WeightGradient}, {"weight_gradient", SegmentKind::WeightGradient},
        {"W", SegmentKind::WeightGradient}};
    const auto found = kPassOf.find(kind);
    return found == kPassOf.end() ? std::nullopt : std::optional(found->second);
}

Error noPipeline(std::string where, std::string message, std::string advice)
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), std::move(where)};
}

/// By block: which part of the placement it is in, parts joined by no dependency counted from 0.
std::vector<std::int32_t> partsOf(const Placement &placement)
{
    std::vector<std::int32_t> part(placement.blocks.size());
    std::iota(part.begin(), part.end(), 0);
    for (bool moved = true; moved;) {
        moved = false;
        for (const PlacementEdge &edge : placement.edges) {
            if (placement.blocks[at(edge.before)].once || placement.blocks[at(edge.after)].once)
                continue; // what runs once is for all parts
            const std::int32_t least = std::min(part[at(edge.before)], part[at(edge.after)]);
            for (const std::int32_t end : {edge.before, edge.after}) {
                moved = moved || part[at(end)] != least;
                part[at(end)] = least;
            }
        }
    }
    std::map<std::int32_t, std::int32_t> numbers;
    for (std::int32_t &each : part)
        each = numbers.try_emplace(each, static_cast<std::int32_t>(numbers.size())).first->second;
    return part;
}

class PipelineReader
{
public:
    PipelineReader(const Placement &placement, std::int32_t microBatches)
        : m_placement(placement)
        , m_lanes(partsOf(placement))
    {
        m_read.stages.placement = placement;
        m_read.stages.keys.resize(placement.blocks.size());
        m_read.setting.microBatches = microBatches;
        m_read.setting.backward = false;
    }

    Result<PipelineOfPlacement> read()
    {
        for (const std::int32_t index : topologicalOrder(m_placement))
            TRY_VOID(readBlock(index));
        for (const auto &[lane, stages] : m_forwards)
            if (stages.size() != m_forwards.begin()->second.size())
                return noPipeline("blocks",
                    "the parts of the placement have different numbers of forward blocks",
                    "templates take parts that are alike, as lanes");
        TRY_VOID(readRanks());
        return std::move(m_read);
    }

private:
    Result<void> readBlock(std::int32_t index)
    {
        const PlacementBlock &block = m_placement.blocks[at(index)];
        if (block.queue != 0 || block.once)
            return {}; // communication follows the blocks that it is for, so does what runs once
        const std::string where = "block:" + std::to_string(block.id);
        const auto pass = passNamed(block.kind);
        if (!pass)
            return noPipeline(where, "a template knows no blocks of kind \"" + block.kind + "\"",
                "known: forward, backward, input-gradient, weight-gradient; communication has a queue of its "
                "own, and what is for no micro-batch runs once");
        const std::int32_t lane = m_lanes[at(index)];
        auto &forwards = m_forwards[lane];
        BlockKey key{StageId{static_cast<std::int32_t>(forwards.size())}, *pass, 0, lane};
        if (*pass == SegmentKind::Forward) {
            forwards.push_back(index);
        } else {
            m_read.setting.backward = true;
            m_read.splits = m_read.splits || *pass == SegmentKind::WeightGradient;
            auto its = forwards.rbegin();
            for (; its != forwards.rend(); ++its) {
                const auto stage = static_cast<std::int32_t>(forwards.rend() - its) - 1;
                if (m_placement.blocks[at(*its)].devices == block.devices
                    && m_taken.insert({lane, stage, *pass}).second) {
                    key.stage = StageId{stage};
                    break;
                }
            }
            if (its == forwards.rend())
                return noPipeline(where,
                    "there is no forward block on the devices of this " + block.kind + " block",
                    "a backward block runs where its forward block does");
        }
        m_read.stages.keys[at(index)] = key;
        return {};
    }

    Result<void> readRanks()
    {
        std::set<std::vector<std::int32_t>> sets;
        for (std::size_t b = 0; b < m_placement.blocks.size(); ++b)
            if (m_read.stages.keys[b])
                sets.insert(m_placement.blocks[b].devices);
        std::set<std::int32_t> all;
        for (const auto &devices : sets)
            all.insert(devices.begin(), devices.end());
        std::map<std::int32_t, std::vector<std::int32_t>> setOf; // by device: the set that is a rank
        for (const auto &devices : sets) {
            if (devices.size() == all.size() && sets.size() > 1)
                continue; // on all ranks
            for (const std::int32_t device : devices)
                if (!setOf.try_emplace(device, devices).second)
                    return noPipeline("blocks",
                        "blocks share device " + std::to_string(device)
                            + " and differ in their other devices",
                        "templates take blocks on the same devices, on other ones, or on all of them");
        }
        // Ranks in the order of their first stages.
        ScheduleSetting &setting = m_read.setting;
        std::map<std::vector<std::int32_t>, std::int32_t> ranks;
        const auto stages = m_forwards.empty() ? 0 : m_forwards.begin()->second.size();
        for (std::size_t s = 0; s < stages; ++s) {
            auto &lanes = setting.laneRanks.emplace_back();
            for (const auto &[lane, forwards] : m_forwards) {
                const auto &devices = m_placement.blocks[at(forwards[s])].devices;
                const bool wide = devices.size() == all.size() && sets.size() > 1;
                lanes.push_back(wide
                        ? -1
                        : ranks.try_emplace(devices, static_cast<std::int32_t>(ranks.size())).first->second);
            }
            setting.rankOf.push_back(lanes.front());
            setting.wide.push_back(lanes.front() < 0);
        }
        if (stages == 0)
            return noPipeline("blocks", "there are no forward blocks", "templates begin with them");
        if (m_forwards.size() == 1)
            setting.laneRanks.clear();
        if (std::find(setting.wide.begin(), setting.wide.end(), true) == setting.wide.end())
            setting.wide.clear();
        setting.rankCount = std::max<std::int32_t>(static_cast<std::int32_t>(ranks.size()), 1);
        Placement &placement = m_read.stages.placement;
        placement.devices = setting.rankCount;
        placement.memoryLimit.clear();
        for (PlacementBlock &block : placement.blocks) {
            std::set<std::int32_t> own;
            for (const std::int32_t device : block.devices)
                if (const auto found = setOf.find(device); found != setOf.end())
                    own.insert(ranks.at(found->second));
            block.devices.assign(own.begin(), own.end());
        }
        return {};
    }

    const Placement &m_placement;
    std::vector<std::int32_t> m_lanes{}; ///< By block.
    PipelineOfPlacement m_read{};
    std::map<std::int32_t, std::vector<std::int32_t>> m_forwards{}; ///< By lane: the stages' blocks.
    std::set<std::tuple<std::int32_t, std::int32_t, SegmentKind>> m_taken{};
};

} // namespace

Result<PipelineOfPlacement> pipelineOf(const Placement &placement, std::int32_t microBatches)
{
    TRY_VOID(validate(placement));
    return PipelineReader(placement, microBatches).read();
}

Result<std::vector<BlockStart>> templateStarts(
    const Placement &placement, ScheduleKind kind, std::int32_t microBatches)
{
    TRY(const PipelineOfPlacement pipeline, pipelineOf(placement, microBatches));
    TRY(const Schedule schedule, makeSchedule(kind, pipeline.setting));
    return playSchedule(pipeline.stages, schedule, microBatches);
}

} // namespace planloom
