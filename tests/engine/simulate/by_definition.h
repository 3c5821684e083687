#pragma once

#include "engine/simulate/simulate.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom::test {

/// An instruction of a step: device, schedule entry, instruction of its segment.
using Node = std::tuple<std::size_t, std::size_t, std::size_t>;

/// Starts by definition: no classes, no program order; heads of all queues of all devices are tried again
/// and again.
/// @param durationOf  if set, what a communication takes
inline std::map<Node, std::int64_t> startsByDefinition(const ExecutionPlan &plan, const Cluster &cluster,
    const CostModel &costs, const std::function<std::int64_t(const Node &)> &durationOf = {})
{
    struct Item {
        Node node;
        const Instruction *instruction;
        std::int32_t microBatch;
        std::vector<Node> after; // Writers of what it reads; writers and readers of what it writes.
        std::int64_t duration;
    };
    std::vector<std::array<std::vector<Item>, kQueueCount>> queues(plan.devices.size());
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        const DeviceProgram &program = plan.devices[d];
        std::map<std::pair<std::int32_t, std::int32_t>, Node> writer;
        std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Node>> readers;
        for (std::size_t e = 0; e < program.schedule.size(); ++e) {
            const auto entry = program.schedule[e];
            const auto &instructions = program.segments[static_cast<std::size_t>(entry.segment)].instructions;
            const auto [begin, end] = indicesOf(program, entry);
            for (std::size_t i = begin; i < end; ++i) {
                const Instruction &instruction = instructions[i];
                Item item{{d, e, i}, &instruction, entry.microBatch, {}, 0};
                const auto key = [&](std::int32_t b) {
                    const bool each = program.buffers[static_cast<std::size_t>(b)].perMicroBatch;
                    return std::pair{b, each ? entry.microBatch : -1};
                };
                if (const auto &computed = queues[d][0]; instruction.waits && !computed.empty())
                    item.after.push_back(computed.back().node);
                bool first = true;
                for (const std::int32_t b : instruction.inputs) {
                    if (writer.contains(key(b)))
                        item.after.push_back(writer[key(b)]);
                }
                for (const std::int32_t b : instruction.outputs) {
                    if (b < 0)
                        continue;
                    first = !writer.contains(key(b));
                    if (!first)
                        item.after.push_back(writer[key(b)]);
                    item.after.insert(item.after.end(), readers[key(b)].begin(), readers[key(b)].end());
                }
                for (const std::int32_t b : instruction.inputs)
                    readers[key(b)].push_back(item.node);
                for (const std::int32_t b : instruction.outputs) {
                    if (b >= 0)
                        writer[key(b)] = item.node;
                }
                for (const std::int32_t b : instruction.deaths)
                    writer.erase(key(b));
                if (const auto kind = collectiveOf(instruction.kind)) {
                    const auto members = instruction.group >= 0
                        ? plan.groups[static_cast<std::size_t>(instruction.group)]
                        : std::vector<DeviceId>{DeviceId{static_cast<std::int32_t>(d)}, instruction.peer};
                    const Bytes bytes = collectiveBytes(program, instruction);
                    item.duration = members.size() < 2
                        ? 0
                        : std::llround(costs.collective(*kind, bytes, groupShape(cluster, members)) * 1e9);
                    if (durationOf)
                        item.duration = durationOf(item.node);
                } else {
                    const auto local = localDuration(plan, program, instruction, costs, {},
                        cluster.classOf(DeviceId{static_cast<std::int32_t>(d)}));
                    const bool copies = first && instruction.kind == InstructionKind::Accumulate;
                    item.duration = (copies ? local.first : local.usual).count();
                }
                queues[d][static_cast<std::size_t>(queueOf(instruction))].push_back(std::move(item));
            }
        }
    }

    std::map<Node, std::int64_t> starts, ends;
    std::vector<std::array<std::size_t, kQueueCount>> heads(plan.devices.size());
    std::vector<std::array<std::int64_t, kQueueCount>> free(plan.devices.size());
    const auto arrival = [&](std::size_t d, std::size_t stream) -> std::optional<std::int64_t> {
        if (heads[d][stream] >= queues[d][stream].size())
            return std::nullopt;
        std::int64_t time = free[d][stream];
        for (const Node &node : queues[d][stream][heads[d][stream]].after) {
            if (!ends.contains(node))
                return std::nullopt;
            time = std::max(time, ends[node]);
        }
        return time;
    };
    const auto book = [&](std::size_t d, std::size_t stream, std::int64_t start, std::int64_t duration) {
        const Item &item = queues[d][stream][heads[d][stream]++];
        starts[item.node] = start;
        ends[item.node] = free[d][stream] = start + duration;
    };
    for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t d = 0; d < queues.size(); ++d) {
            for (std::size_t stream = 0; stream < kQueueCount; ++stream) {
                const auto time = arrival(d, stream);
                if (!time)
                    continue;
                const Item &item = queues[d][stream][heads[d][stream]];
                if (!isCommunication(item.instruction->kind)) {
                    book(d, stream, *time, item.duration);
                    progress = true;
                    continue;
                }
                std::vector<std::size_t> members;
                if (item.instruction->group >= 0) {
                    for (const DeviceId member :
                        plan.groups[static_cast<std::size_t>(item.instruction->group)])
                        members.push_back(static_cast<std::size_t>(member.index));
                } else {
                    members = {d, static_cast<std::size_t>(item.instruction->peer.index)};
                }
                std::int64_t start = 0, duration = 0;
                bool all = true;
                for (const std::size_t member : members) {
                    const auto there = arrival(member, stream);
                    all = all && there.has_value();
                    if (!there)
                        break;
                    const Item &other = queues[member][stream][heads[member][stream]];
                    all = all && other.instruction->group == item.instruction->group
                        && other.instruction->tag == item.instruction->tag
                        && other.microBatch == item.microBatch;
                    start = std::max(start, *there);
                    duration = std::max(duration, other.duration);
                }
                if (!all)
                    continue;
                for (const std::size_t member : members)
                    book(member, stream, start, duration);
                progress = true;
            }
        }
    }
    return starts;
}

} // namespace planloom::test
