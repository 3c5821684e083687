#include "widgets/scene/timeline_box.h"

namespace planloom {

std::vector<OperatorId> operatorsIn(const TimelineScene &scene, const TimelineBox &box, std::stop_token stop)
{
    const SpanColumns &spans = scene.timeline->spans;
    std::vector<bool> found(scene.graph().operators.size(), false);
    for (const DeviceId device : box.devices) {
        if (stop.stop_requested())
            return {};
        if (!device.valid() || static_cast<std::size_t>(device.index) >= scene.lanes.size())
            continue;
        const DeviceLane &lane = scene.lanes[static_cast<std::size_t>(device.index)];
        LaneRows rows = rowsIn(spans, lane.compute, box.begin, box.end);
        if (box.enclosed) {
            if (rows.begin < rows.end && static_cast<double>(spans.start[rows.begin]) < box.begin)
                ++rows.begin;
            if (rows.begin<rows.end &&static_cast<double>(
                    spans.start[rows.end - 1] + spans.duration[rows.end - 1])>
                    box.end)
                --rows.end;
        }
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            const OperatorId op = scene.operatorOf(row);
            if (op.valid() && static_cast<std::size_t>(op.index) < found.size())
                found[static_cast<std::size_t>(op.index)] = true;
        }
    }
    std::vector<OperatorId> operators;
    for (std::size_t op = 0; op < found.size(); ++op) {
        if (found[op])
            operators.push_back(OperatorId{static_cast<std::int32_t>(op)});
    }
    return operators;
}

} // namespace planloom
