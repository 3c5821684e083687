#include "engine/analyse/block_label.h"

#include <algorithm>

namespace planloom {

namespace {

using DevicesOfStages = std::map<StageId, std::set<DeviceId>>;

/// All devices of `other`, and more.
bool holdsMore(const std::set<DeviceId> &devices, const std::set<DeviceId> &other)
{
    return devices.size() > other.size()
        && std::includes(devices.begin(), devices.end(), other.begin(), other.end());
}

/// Of the stages that hold the devices of others, those that lie before all of these, or behind them.
std::map<StageId, WideStage> wideStages(const DevicesOfStages &stages)
{
    std::map<StageId, WideStage> wide;
    for (const auto &[stage, devices] : stages) {
        bool isBehind = false;
        bool isBefore = false;
        for (const auto &[other, others] : stages)
            if (holdsMore(devices, others))
                (other < stage ? isBehind : isBefore) = true;
        if (isBehind != isBefore)
            wide[stage] = isBefore ? WideStage::First : WideStage::Last;
    }
    return wide;
}

} // namespace

BlockPart StagesInParts::partOf(const Segment &segment) const
{
    if (!isPass(segment.kind))
        return {};
    return {inLanes.contains(segment.stage) ? segment.lane : -1,
        sliced.contains(segment.stage) ? segment.slice : -1};
}

WideStage StagesInParts::wideOf(StageId stage) const
{
    const auto found = wide.find(stage);
    return found == wide.end() ? WideStage::None : found->second;
}

StagesInParts stagesInParts(const ExecutionPlan &plan)
{
    StagesInParts stages;
    DevicesOfStages devices;
    for (std::size_t device = 0; device < plan.devices.size(); ++device)
        for (const Segment &segment : plan.devices[device].segments) {
            if (isPass(segment.kind))
                devices[segment.stage].insert(DeviceId{static_cast<std::int32_t>(device)});
            if (segment.slice > 0)
                stages.sliced.insert(segment.stage);
            if (segment.lane > 0)
                stages.inLanes.insert(segment.stage);
        }
    stages.wide = wideStages(devices);
    return stages;
}

std::string labelOf(const BlockPart &part)
{
    constexpr std::int32_t kLetters = 26;
    std::string label;
    if (part.lane >= kLetters)
        label += static_cast<char>('a' + part.lane / kLetters - 1);
    if (part.lane >= 0)
        label += static_cast<char>('a' + part.lane % kLetters);
    if (part.slice >= 0)
        label += "." + std::to_string(part.slice);
    return label;
}

std::string blockLabel(SegmentKind kind, std::int32_t microBatch, const BlockPart &part, WideStage wide)
{
    const auto letter = [wide](const char *usual, const char *first, const char *last) {
        return std::string(wide == WideStage::None ? usual : wide == WideStage::First ? first : last);
    };
    const std::string number = std::to_string(microBatch) + labelOf(part);
    switch (kind) {
    case SegmentKind::Prologue:
        return "Once";
    case SegmentKind::Forward:
        return letter("F", "E", "H") + number;
    case SegmentKind::Backward:
    case SegmentKind::InputGradient:
        return letter("B", "e", "h") + number;
    case SegmentKind::WeightGradient:
        return "W" + number;
    case SegmentKind::Transfer:
        return "T" + std::to_string(microBatch);
    case SegmentKind::Reduce:
        return "Gradients";
    case SegmentKind::Optimizer:
        return "Optimizer";
    }
    return {};
}

} // namespace planloom
