#include "engine/analyse/memory_at.h"

#include "engine/analyse/span_finder.h"

#include <algorithm>
#include <tuple>

namespace planloom {

namespace {

constexpr std::int64_t kAbsent = -1;

/// An instance as the simulator keeps it.
struct Instance {
    std::int64_t there = kAbsent; ///< When its value is there.
    std::int64_t read = 0; ///< When its last reader is done.
    std::size_t lifetime = 0; ///< Index into the result, while it is there.
};

} // namespace

std::vector<BufferLifetime> lifetimesOf(
    const ExecutionPlan &plan, const Timeline &timeline, DeviceId device, std::stop_token stop)
{
    const auto d = static_cast<std::size_t>(device.index);
    if (!device.valid() || d >= plan.devices.size() || d + 1 >= timeline.deviceBegin.size())
        return {};
    const DeviceProgram &program = plan.devices[d];
    std::vector<BufferLifetime> lifetimes;
    std::vector<std::size_t> slot(program.buffers.size());
    std::size_t count = 0;
    const auto isMany = [&](std::size_t b) {
        return program.buffers[b].perMicroBatch && !program.buffers[b].persistent;
    };
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        slot[b] = count;
        count += isMany(b) ? static_cast<std::size_t>(plan.microBatches) : 1;
    }
    std::vector<Instance> instances(count);
    const auto instanceOf = [&](std::int32_t buffer, std::int32_t microBatch) -> Instance & {
        const auto b = static_cast<std::size_t>(buffer);
        return instances[slot[b] + (isMany(b) ? static_cast<std::size_t>(microBatch) : 0)];
    };
    std::vector<Bytes> bytes;
    bytes.reserve(program.buffers.size());
    for (const BufferInfo &buffer : program.buffers)
        bytes.push_back(sizeOf(buffer));
    const auto bear = [&](std::int32_t buffer, std::int32_t microBatch, const Instruction *by,
                          std::int64_t time) {
        const auto b = static_cast<std::size_t>(buffer);
        instanceOf(buffer, microBatch).lifetime = lifetimes.size();
        lifetimes.push_back({.buffer = buffer,
            .microBatch = isMany(b) ? microBatch : -1,
            .tensor = program.buffers[b].tensor,
            .kind = program.buffers[b].memory,
            .bytes = bytes[b],
            .maker = by ? by->op : OperatorId{},
            .made = by ? by->kind : InstructionKind::Load,
            .birth = time});
    };
    for (std::size_t b = 0; b < program.buffers.size(); ++b)
        if (program.buffers[b].persistent) {
            bear(static_cast<std::int32_t>(b), 0, nullptr, 0);
            instances[slot[b]].there = 0;
        }

    SpanFinder finder(timeline, d);
    for (const ScheduleEntry &entry : program.schedule) {
        if (stop.stop_requested())
            return {};
        const auto &instructions = program.segments[static_cast<std::size_t>(entry.segment)].instructions;
        const auto [begin, end] = indicesOf(program, entry);
        for (std::size_t i = begin; i < end; ++i) {
            const Instruction &instruction = instructions[i];
            const std::int32_t span = finder.find(
                queueOf(instruction), entry.segment, static_cast<std::int32_t>(i), entry.microBatch);
            if (span < 0)
                continue;
            const std::int64_t start = timeline.spans.start[static_cast<std::size_t>(span)];
            const std::int64_t done = start + timeline.spans.duration[static_cast<std::size_t>(span)];
            for (const std::int32_t buffer : instruction.inputs)
                if (buffer >= 0) {
                    Instance &instance = instanceOf(buffer, entry.microBatch);
                    instance.read = std::max(instance.read, done);
                }
            for (const std::int32_t buffer : instruction.outputs)
                if (buffer >= 0) {
                    if (instanceOf(buffer, entry.microBatch).there == kAbsent)
                        bear(buffer, entry.microBatch, &instruction, start);
                    instanceOf(buffer, entry.microBatch).there = done;
                }
            for (const std::int32_t buffer : instruction.deaths) {
                if (buffer < 0)
                    continue;
                Instance &instance = instanceOf(buffer, entry.microBatch);
                if (instance.there == kAbsent)
                    continue;
                // What another queue still fills or reads lives until that is done.
                lifetimes[instance.lifetime].death = std::max({done, instance.there, instance.read});
                instance.there = kAbsent;
            }
        }
    }
    std::erase_if(lifetimes, [&](const BufferLifetime &each) { // the device's own memory is asked for
        return program.buffers[static_cast<std::size_t>(each.buffer)].place == MemoryPlace::Host;
    });
    std::stable_sort(lifetimes.begin(), lifetimes.end(),
        [](const BufferLifetime &a, const BufferLifetime &b) { return a.birth < b.birth; });
    return lifetimes;
}

std::vector<BufferLifetime> aliveAt(const std::vector<BufferLifetime> &lifetimes, Nanoseconds time)
{
    std::vector<BufferLifetime> alive;
    for (const BufferLifetime &lifetime : lifetimes) {
        if (lifetime.birth > time.count())
            break;
        if (lifetime.death > time.count())
            alive.push_back(lifetime);
    }
    std::stable_sort(alive.begin(), alive.end(), [](const BufferLifetime &a, const BufferLifetime &b) {
        return std::tuple(-a.bytes.count, a.buffer, a.microBatch)
            < std::tuple(-b.bytes.count, b.buffer, b.microBatch);
    });
    return alive;
}

std::vector<BufferLifetime> memoryAt(
    const ExecutionPlan &plan, const Timeline &timeline, DeviceId device, Nanoseconds time)
{
    return aliveAt(lifetimesOf(plan, timeline, device), time);
}

std::array<std::int64_t, kMemoryKindCount> bytesAt(const MemoryCurve &curve, Nanoseconds time)
{
    const auto behind =
        std::upper_bound(curve.time.begin(), curve.time.end(), time.count()) - curve.time.begin();
    return behind == 0 ? std::array<std::int64_t, kMemoryKindCount>{}
                       : curve.bytes[static_cast<std::size_t>(behind) - 1];
}

Nanoseconds peakTime(const MemoryCurve &curve)
{
    const auto found = std::find(curve.bytes.begin(), curve.bytes.end(), curve.atPeak);
    return found == curve.bytes.end()
        ? Nanoseconds{}
        : Nanoseconds{curve.time[static_cast<std::size_t>(found - curve.bytes.begin())]};
}

} // namespace planloom
