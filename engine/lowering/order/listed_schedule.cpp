#include "engine/lowering/order/listed_schedule.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// The blocks of one device in the order in which they begin, and those that begin inside another.
struct DeviceOrder {
    std::vector<ScheduledBlock> blocks{};
    std::vector<std::pair<ScheduledBlock, ScheduledBlock>> interleaved{};
};

DeviceOrder orderOf(const DeviceProgram &program)
{
    DeviceOrder order;
    std::optional<ScheduledBlock> open; // a block of which slices are left
    bool paused = false; // and another one has begun since
    for (const ScheduleEntry &entry : program.schedule) {
        const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
        if (!isPass(segment.kind))
            continue;
        const ScheduledBlock block{
            {segment.stage, segment.kind, segment.slice, segment.lane}, entry.microBatch};
        if (entry.begin == 0) {
            order.blocks.push_back(block);
            if (open && !paused) {
                order.interleaved.emplace_back(*open, block);
                paused = true;
            }
        }
        const auto end = static_cast<std::int32_t>(segment.instructions.size());
        const bool whole = entry.end < 0 || entry.end >= end;
        if (!open && !whole)
            open = block;
        else if (open == block && whole)
            open.reset();
        paused = paused && open;
    }
    return order;
}

} // namespace

Schedule listedScheduleOf(const ExecutionPlan &plan)
{
    Schedule schedule;
    for (const DeviceProgram &program : plan.devices) {
        DeviceOrder order = orderOf(program);
        if (order.blocks.empty()
            || std::find(schedule.ranks.begin(), schedule.ranks.end(), order.blocks) != schedule.ranks.end())
            continue;
        schedule.ranks.push_back(std::move(order.blocks));
        for (auto &pair : order.interleaved)
            if (std::find(schedule.interleaved.begin(), schedule.interleaved.end(), pair)
                == schedule.interleaved.end())
                schedule.interleaved.push_back(std::move(pair));
    }
    return schedule;
}

} // namespace planloom
