#include "engine/analyse/block_label.h"

namespace planloom {

BlockPart StagesInParts::partOf(const Segment &segment) const
{
    if (!isPass(segment.kind))
        return {};
    return {inLanes.contains(segment.stage) ? segment.lane : -1,
        sliced.contains(segment.stage) ? segment.slice : -1};
}

StagesInParts stagesInParts(const ExecutionPlan &plan)
{
    StagesInParts stages;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments) {
            if (segment.slice > 0)
                stages.sliced.insert(segment.stage);
            if (segment.lane > 0)
                stages.inLanes.insert(segment.stage);
        }
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

std::string blockLabel(SegmentKind kind, std::int32_t microBatch, const BlockPart &part)
{
    const std::string number = std::to_string(microBatch) + labelOf(part);
    switch (kind) {
    case SegmentKind::Prologue:
        return "Once";
    case SegmentKind::Forward:
        return "F" + number;
    case SegmentKind::Backward:
    case SegmentKind::InputGradient:
        return "B" + number;
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
