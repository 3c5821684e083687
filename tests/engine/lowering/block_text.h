#pragma once

#include "engine/lowering/program/execution_plan.h"

#include <string>

namespace planloom {

/// "F0a F0b B0b B0a": kind, micro-batch and, where the plan has several, lane (a letter) and slice (".1") of
/// the passes that a device runs, in its order.
inline std::string blocksOn(const ExecutionPlan &plan, std::size_t device)
{
    bool lanes = false;
    bool slices = false;
    for (const DeviceProgram &program : plan.devices)
        for (const Segment &segment : program.segments) {
            lanes = lanes || segment.lane > 0;
            slices = slices || segment.slice > 0;
        }
    std::string text;
    for (const ScheduleEntry &entry : plan.devices[device].schedule) {
        const Segment &segment = plan.devices[device].segments[static_cast<std::size_t>(entry.segment)];
        if (!isPass(segment.kind) || entry.begin > 0)
            continue;
        text += text.empty() ? "" : " ";
        text += segment.kind == SegmentKind::Forward      ? "F"
            : segment.kind == SegmentKind::WeightGradient ? "W"
                                                          : "B";
        text += std::to_string(entry.microBatch);
        if (lanes)
            text += static_cast<char>('a' + segment.lane);
        if (slices)
            text += "." + std::to_string(segment.slice);
    }
    return text;
}

} // namespace planloom
