#include "widgets/compare/alignment.h"

#include <algorithm>

namespace planloom {

namespace {

template<typename Wanted> std::optional<std::int64_t> firstBlock(const TimelineScene &scene, Wanted wanted)
{
    std::optional<std::int64_t> first;
    for (const DeviceLane &lane : scene.lanes) {
        for (const TimelineBlock &block : lane.blocks) {
            if (wanted(block.kind)) {
                first = std::min(first.value_or(block.begin), block.begin);
                break; // blocks are in the order of their begin
            }
        }
    }
    return first;
}

} // namespace

std::optional<std::int64_t> timeOf(AlignAt event, const TimelineScene &scene, OperatorId op)
{
    switch (event) {
    case AlignAt::Start:
        return 0;
    case AlignAt::End:
        return scene.timeline->step.count();
    case AlignAt::FirstBackward:
        return firstBlock(scene, isBackward);
    case AlignAt::Gradients:
        return scene.gradientsBegin;
    case AlignAt::Operator:
        break;
    }
    std::optional<std::int64_t> first;
    const auto index = static_cast<std::size_t>(op.index);
    if (!op.valid() || index + 1 >= scene.operatorBegin.size())
        return first;
    for (std::uint32_t i = scene.operatorBegin[index]; i < scene.operatorBegin[index + 1]; ++i) {
        const std::uint32_t row = scene.operatorRows[i];
        if (scene.timeline->spans.queue[row] != QueueKind::Compute)
            continue;
        first = std::min(first.value_or(scene.timeline->spans.start[row]), scene.timeline->spans.start[row]);
    }
    return first;
}

} // namespace planloom
