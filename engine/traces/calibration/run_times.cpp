#include "engine/traces/calibration/run_times.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/instruction_cost.h"
#include "engine/runtime/machine/machine_profile.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

double median(std::vector<double> &values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Of one place of a program: what it is, and what tells it from others that take other times.
struct KernelPlace {
    RunKernel kernel{};
    std::string key{};
};

/// What a simulation asks of the instruction.
KernelPlace placeOf(
    const ExecutionPlan &plan, const DeviceProgram &program, const Instruction &instruction, Bytes spared)
{
    KernelPlace place{.kernel = {.program = &program, .instruction = &instruction, .spared = spared}};
    place.key = std::to_string(static_cast<int>(instruction.kind)) + (instruction.joined ? "+" : "")
        + std::to_string(spared.count);
    CostModel asked;
    asked.kernel = [&](const KernelQuery &query) {
        place.kernel.category = categoryOf(query.op);
        place.kernel.direction = query.op.direction;
        place.kernel.format = query.computeType;
        place.kernel.flops = workOf(query.op, query.inputs, query.outputs, query.attention).flops;
        place.key += kernelKey(query) + '/' + std::to_string(query.seenKeys);
        return 0.0;
    };
    const auto copied = [&place](Bytes bytes, std::int32_t) {
        place.kernel.category = OperatorCategory::Movement;
        place.key += '#' + std::to_string(bytes.count);
        return 0.0;
    };
    asked.copy = copied;
    asked.hostCopy = copied;
    (void)localDuration(plan, program, instruction, asked, spared);
    return place;
}

/// One member's part of communication.
struct MemberSpan {
    const DeviceProgram *program = nullptr;
    const Instruction *instruction = nullptr;
    std::int32_t device = 0;
    std::int64_t start = 0;
    std::int64_t end = 0;
};

/// Which communication a span is a part of: the tag and micro-batch of a message, or the group, queue and how
/// many of the group's the member had before.
using MeetingKey = std::tuple<bool, std::int32_t, std::int32_t, std::int64_t>;

class Communications
{
public:
    explicit Communications(const ExecutionPlan &plan, const Cluster &cluster)
        : m_plan(plan)
        , m_cluster(cluster)
    {
    }

    /// Spans of one device have to come in the order of their start.
    void add(const MemberSpan &span, std::int32_t microBatch)
    {
        const Instruction &instruction = *span.instruction;
        const bool isMessage =
            instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
        if (!isMessage && instruction.group < 0)
            return;
        const MeetingKey key = isMessage
            ? MeetingKey{true, instruction.tag, microBatch, 0}
            : MeetingKey{false, instruction.group, static_cast<std::int32_t>(queueOf(instruction)),
                m_counts[{
                    span.device, instruction.group, static_cast<std::int32_t>(queueOf(instruction))}]++};
        m_meetings[key].push_back(span);
    }

    std::vector<CollectiveTiming> timings() const
    {
        using ShapeKey = std::tuple<CollectiveKind, std::int64_t, std::int32_t, std::int32_t>;
        std::map<ShapeKey, std::pair<GroupShape, std::vector<double>>> found;
        for (const auto &[key, members] : m_meetings) {
            const Instruction &instruction = *members.front().instruction;
            const auto kind = collectiveOf(instruction.kind);
            const std::size_t expected =
                std::get<0>(key) ? 2 : m_plan.groups[static_cast<std::size_t>(instruction.group)].size();
            if (!kind || members.size() != expected || instruction.joined || instruction.overlaps
                || needsLargestFirst(instruction))
                continue;
            std::vector<DeviceId> devices;
            std::int64_t arrived = std::numeric_limits<std::int64_t>::min();
            std::int64_t ended = arrived;
            for (const MemberSpan &member : members) {
                devices.push_back(DeviceId{member.device});
                arrived = std::max(arrived, member.start);
                ended = std::max(ended, member.end);
            }
            if (ended <= arrived)
                continue;
            const GroupShape shape = groupShape(m_cluster, devices);
            const Bytes bytes = collectiveBytes(*members.front().program, instruction);
            auto &[ofShape, seconds] = found[{*kind, bytes.count, shape.ranks, shape.nodes}];
            ofShape = shape;
            seconds.push_back(static_cast<double>(ended - arrived) * 1e-9);
        }
        std::vector<CollectiveTiming> rows;
        for (auto &[key, times] : found) {
            CollectiveTiming row;
            row.kind = std::get<0>(key);
            row.bytes = {std::get<1>(key)};
            row.shape = times.first;
            row.seconds = median(times.second);
            row.where = "spans";
            if (row.bytes.count > 0)
                rows.push_back(std::move(row));
        }
        return rows;
    }

private:
    const ExecutionPlan &m_plan;
    const Cluster &m_cluster;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int64_t> m_counts{};
    std::map<MeetingKey, std::vector<MemberSpan>> m_meetings{};
};

} // namespace

RunTimes runTimesOf(const ExecutionPlan &plan, const Timeline &measured, const Cluster &cluster)
{
    const SpanColumns &spans = measured.spans;
    Communications communications(plan, cluster);
    std::map<std::string, std::pair<RunKernel, std::vector<double>>> kernels;
    for (std::size_t d = 0; d + 1 < measured.deviceBegin.size(); ++d) {
        const DeviceProgram &program = plan.devices[d];
        std::vector<std::vector<Bytes>> spared;
        for (const Segment &segment : program.segments)
            spared.push_back(sparedBytes(program, segment.instructions));
        std::map<const Instruction *, KernelPlace> places; // many micro-batches come to one
        std::vector<std::size_t> rows(measured.deviceBegin[d + 1] - measured.deviceBegin[d]);
        for (std::size_t i = 0; i < rows.size(); ++i)
            rows[i] = measured.deviceBegin[d] + i;
        std::stable_sort(rows.begin(), rows.end(),
            [&](std::size_t a, std::size_t b) { return spans.start[a] < spans.start[b]; });
        for (const std::size_t row : rows) {
            const auto segment = static_cast<std::size_t>(spans.segment[row]);
            const auto index = static_cast<std::size_t>(spans.instruction[row]);
            const Instruction &instruction = program.segments[segment].instructions[index];
            if (isCommunication(instruction.kind) && !isHostCopy(instruction.kind)) {
                communications.add({&program, &instruction, static_cast<std::int32_t>(d), spans.start[row],
                                       spans.start[row] + spans.duration[row]},
                    spans.microBatch[row]);
                continue;
            }
            if (spans.duration[row] <= 0)
                continue;
            auto place = places.find(&instruction);
            if (place == places.end())
                place =
                    places.emplace(&instruction, placeOf(plan, program, instruction, spared[segment][index]))
                        .first;
            auto &[kernel, seconds] = kernels[place->second.key];
            kernel = place->second.kernel;
            seconds.push_back(static_cast<double>(spans.duration[row]) * 1e-9);
        }
    }
    RunTimes times;
    for (auto &[key, found] : kernels) {
        found.first.times = found.second.size();
        found.first.seconds = median(found.second);
        times.kernels.push_back(found.first);
    }
    times.collectives = communications.timings();
    return times;
}

} // namespace planloom
