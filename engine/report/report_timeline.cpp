#include "engine/report/report_timeline.h"

#include "engine/analyse/block_label.h"
#include "engine/analyse/statistics.h"
#include "engine/base/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace planloom {

namespace {

using nlohmann::json;

constexpr std::size_t kMemorySteps = 400;
constexpr std::int64_t kMemoryUnit = 1024; ///< Bytes: steps are written in these, to be short.

struct ClassWords {
    const char *name = "";
    const char *colour = "";
};
constexpr std::array<ClassWords, kSpanClassCount> kClassWords{{{"forward", "forward"},
    {"backward", "backward"}, {"weight gradient", "weight"}, {"recompute", "again"},
    {"optimizer", "optimizer"}, {"loads, slices, sums, copies", "other"}, {"all-reduce", "all-reduce"},
    {"all-gather", "all-gather"}, {"reduce-scatter", "reduce-scatter"}, {"all-to-all", "all-to-all"},
    {"broadcast, ring", "collective"}, {"send, receive", "message"}, {"copy to or from the host", "copy"}}};

/// Devices by what they do. Devices of one class may have other spans all the same, that take no time.
std::vector<std::vector<std::int32_t>> classesOf(const Timeline &timeline, std::size_t devices)
{
    std::map<std::pair<std::int32_t, std::size_t>, std::size_t> known;
    std::vector<std::vector<std::int32_t>> classes;
    for (std::size_t d = 0; d < devices && d + 1 < timeline.deviceBegin.size(); ++d) {
        const auto id = static_cast<std::int32_t>(d);
        const std::int32_t like = d < timeline.symmetryClass.size() ? timeline.symmetryClass[d] : -1 - id;
        const std::size_t spans = timeline.deviceBegin[d + 1] - timeline.deviceBegin[d];
        const auto [found, isNew] = known.try_emplace({like, spans}, classes.size());
        if (isNew)
            classes.emplace_back();
        classes[found->second].push_back(id);
    }
    return classes;
}

std::string spanName(const ExecutionPlan &plan, const Instruction &instruction)
{
    if (!instruction.op || at(instruction.op) >= plan.graph->operators.size())
        return textOf(instruction);
    const std::string &name = plan.graph->at(instruction.op).name;
    return instruction.kind == InstructionKind::Kernel ? name : textOf(instruction) + " " + name;
}

/// Fills one lane, span by span or block by block.
class LaneWriter
{
public:
    LaneWriter(const ReportedPlan &plan, ReportNames &names, bool asBlocks)
        : m_plan(plan)
        , m_names(names)
        , m_asBlocks(asBlocks)
        , m_parts(stagesInParts(plan.plan))
    {
    }

    ReportLane write(std::size_t device, QueueKind queue) const
    {
        const SpanColumns &spans = m_plan.timeline.spans;
        const auto [begin, end] = rowsOf(m_plan.timeline, device, queue);
        ReportLane lane{.queue = queue};
        std::int64_t last = 0;
        for (std::size_t row = begin; row < end;) {
            std::size_t next = row + 1;
            while (m_asBlocks && next < end && isOneBlock(row, next))
                ++next;
            const Segment &segment = m_plan.plan.devices[device].segments[at(spans.segment[row])];
            const Instruction &instruction = segment.instructions[at(spans.instruction[row])];
            const std::int64_t until = spans.start[next - 1] + spans.duration[next - 1];
            lane.gap.push_back(spans.start[row] - last);
            lane.duration.push_back(until - spans.start[row]);
            lane.spanClass.push_back(mainClass(device, row, next));
            lane.name.push_back(
                m_names.indexOf(next - row == 1 && !(m_asBlocks && queue == QueueKind::Compute)
                        ? spanName(m_plan.plan, instruction)
                        : blockName(segment, row, instruction)));
            lane.row.push_back(row);
            lane.microBatch.push_back(
                isPass(segment.kind) || segment.kind == SegmentKind::Transfer ? spans.microBatch[row] : -1);
            last = until;
            row = next;
        }
        return lane;
    }

private:
    /// Row `next` goes on with what rows from `row` on began: the same block, without a pause.
    bool isOneBlock(std::size_t row, std::size_t next) const
    {
        const SpanColumns &spans = m_plan.timeline.spans;
        const std::int64_t pause = spans.start[next] - spans.start[next - 1] - spans.duration[next - 1];
        return spans.segment[row] == spans.segment[next] && spans.microBatch[row] == spans.microBatch[next]
            && pause * 2000 <= m_plan.timeline.step.count();
    }

    /// What most of the time of rows [row, next) is.
    SpanClass mainClass(std::size_t device, std::size_t row, std::size_t next) const
    {
        const SpanColumns &spans = m_plan.timeline.spans;
        const Segment &segment = m_plan.plan.devices[device].segments[at(spans.segment[row])];
        std::array<std::int64_t, kSpanClassCount> time{};
        const auto classAt = [&](std::size_t r) {
            return static_cast<std::size_t>(
                spanClassOf(m_plan.plan, segment, segment.instructions[at(spans.instruction[r])]));
        };
        for (std::size_t r = row; r < next; ++r)
            time[classAt(r)] += spans.duration[r] + (r == row ? 1 : 0); // the first where none takes time
        return static_cast<SpanClass>(std::max_element(time.begin(), time.end()) - time.begin());
    }

    std::string blockName(const Segment &segment, std::size_t row, const Instruction &instruction) const
    {
        const std::string block = blockLabel(segment.kind, m_plan.timeline.spans.microBatch[row],
            m_parts.partOf(segment), m_parts.wideOf(segment.stage));
        return instruction.kind == InstructionKind::Kernel ? block : textOf(instruction) + " " + block;
    }

    const ReportedPlan &m_plan;
    ReportNames &m_names;
    bool m_asBlocks = false;
    StagesInParts m_parts{};
};

json memoryJson(const MemoryCurve &curve, Nanoseconds step)
{
    std::vector<std::int64_t> steps = memorySteps(curve, step, kMemorySteps);
    for (std::int64_t &bytes : steps)
        bytes = (bytes + kMemoryUnit - 1) / kMemoryUnit;
    return {{"unit", kMemoryUnit}, {"peak", curve.peak.count}, {"v", std::move(steps)}};
}

} // namespace

const char *nameOf(SpanClass spanClass)
{
    return kClassWords[static_cast<std::size_t>(spanClass)].name;
}

const char *colourOf(SpanClass spanClass)
{
    return kClassWords[static_cast<std::size_t>(spanClass)].colour;
}

SpanClass spanClassOf(const ExecutionPlan &plan, const Segment &segment, const Instruction &instruction)
{
    switch (instruction.kind) {
    case InstructionKind::AllReduce:
        return SpanClass::AllReduce;
    case InstructionKind::AllGather:
        return SpanClass::AllGather;
    case InstructionKind::ReduceScatter:
        return SpanClass::ReduceScatter;
    case InstructionKind::AllToAll:
        return SpanClass::AllToAll;
    case InstructionKind::Broadcast:
    case InstructionKind::Shift:
        return SpanClass::OtherCollective;
    case InstructionKind::Send:
    case InstructionKind::Recv:
        return SpanClass::Message;
    case InstructionKind::Offload:
    case InstructionKind::Fetch:
        return SpanClass::HostCopy;
    case InstructionKind::Kernel:
        break;
    default:
        return directionOf(plan, segment, instruction) == Direction::Optimizer ? SpanClass::Optimizer
                                                                               : SpanClass::Other;
    }
    if (instruction.recompute)
        return SpanClass::Recompute;
    if (segment.kind == SegmentKind::WeightGradient)
        return SpanClass::WeightGradient;
    switch (directionOf(plan, segment, instruction)) {
    case Direction::Forward:
        return SpanClass::Forward;
    case Direction::Backward:
        return SpanClass::Backward;
    case Direction::Optimizer:
        break;
    }
    return SpanClass::Optimizer;
}

std::int32_t ReportNames::indexOf(const std::string &name)
{
    const auto [found, isNew] = m_known.try_emplace(name, static_cast<std::int32_t>(m_names.size()));
    if (isNew)
        m_names.push_back(name);
    return found->second;
}

std::size_t distinctSpans(const ReportedPlan &plan)
{
    const Timeline &timeline = plan.timeline;
    std::size_t count = 0;
    for (const auto &devices : classesOf(timeline, plan.plan.devices.size()))
        count += timeline.deviceBegin[at(devices.front()) + 1] - timeline.deviceBegin[at(devices.front())];
    return count;
}

bool drawsBlocks(const ReportedPlan &plan)
{
    return distinctSpans(plan) > kMostDrawnSpans;
}

std::vector<ReportLanes> lanesOf(const ReportedPlan &plan, ReportNames &names)
{
    return lanesOf(plan, names, drawsBlocks(plan));
}

std::vector<ReportLanes> lanesOf(const ReportedPlan &plan, ReportNames &names, bool asBlocks)
{
    std::vector<ReportLanes> found;
    const LaneWriter writer(plan, names, asBlocks);
    for (auto &devices : classesOf(plan.timeline, plan.plan.devices.size())) {
        ReportLanes lanes{.devices = std::move(devices)};
        for (int q = 0; q < kQueueCount; ++q) {
            ReportLane lane = writer.write(at(lanes.devices.front()), static_cast<QueueKind>(q));
            if (!lane.gap.empty() || static_cast<QueueKind>(q) == QueueKind::Compute)
                lanes.lanes.push_back(std::move(lane));
        }
        found.push_back(std::move(lanes));
    }
    return found;
}

std::vector<std::int64_t> memorySteps(const MemoryCurve &curve, Nanoseconds step, std::size_t steps)
{
    std::vector<std::int64_t> most(steps, 0);
    if (curve.time.size() == 0 || step.count() <= 0)
        return most;
    const auto stepOf = [&](std::int64_t time) {
        const double share = static_cast<double>(time) / static_cast<double>(step.count());
        return std::min(
            steps - 1, static_cast<std::size_t>(std::max(0.0, share * static_cast<double>(steps))));
    };
    for (std::size_t i = 0; i < curve.time.size(); ++i) {
        std::int64_t bytes = 0;
        for (const std::int64_t each : curve.bytes[i])
            bytes += each;
        const std::size_t last = i + 1 < curve.time.size() ? stepOf(curve.time[i + 1]) : steps - 1;
        for (std::size_t s = stepOf(curve.time[i]); s <= last; ++s)
            most[s] = std::max(most[s], bytes);
    }
    return most;
}

json laneJson(const ReportLane &lane)
{
    json classes = json::array();
    for (const SpanClass each : lane.spanClass)
        classes.push_back(static_cast<int>(each));
    return {{"queue", nameOf(lane.queue)}, {"g", lane.gap}, {"d", lane.duration}, {"c", std::move(classes)},
        {"n", lane.name}, {"m", lane.microBatch}};
}

json planJson(const ReportedPlan &plan, const std::vector<ReportLanes> &kindsOfPlan)
{
    json kinds = json::array();
    json devices = json::array();
    const bool oneByOne = plan.plan.devices.size() <= kMostDrawnDevices;
    std::map<std::int32_t, json> inOrder;
    for (const ReportLanes &each : kindsOfPlan) {
        json lanes = json::array();
        for (const ReportLane &lane : each.lanes)
            lanes.push_back(laneJson(lane));
        const std::size_t first = at(each.devices.front());
        json kind{{"lanes", std::move(lanes)}};
        if (first < plan.timeline.memory.size())
            kind["memory"] = memoryJson(plan.timeline.memory[first], plan.timeline.step);
        for (const std::int32_t device : each.devices) {
            const DeviceId id = plan.plan.units.deviceOf(0, DeviceId{device});
            json entry{{"name", "device " + std::to_string(id.index)}, {"kind", kinds.size()},
                {"limit", static_cast<std::int64_t>(plan.cluster.deviceAt(DeviceId{device}).memory.value)}};
            if (!oneByOne && each.devices.size() > 1)
                entry["note"] = counted(static_cast<std::int64_t>(each.devices.size()), "device") + " alike";
            inOrder[device] = std::move(entry);
            if (!oneByOne)
                break;
        }
        kinds.push_back(std::move(kind));
    }
    for (auto &[device, entry] : inOrder)
        devices.push_back(std::move(entry));
    return {
        {"step", plan.timeline.step.count()}, {"kinds", std::move(kinds)}, {"devices", std::move(devices)}};
}

std::string timelineJson(const Report &report)
{
    ReportNames names;
    json plans = json::array();
    for (const ReportedPlan &plan : report.plans)
        plans.push_back(planJson(plan, lanesOf(plan, names)));
    json classes = json::array();
    for (const ClassWords &words : kClassWords)
        classes.push_back({{"words", words.name}, {"colour", words.colour}});
    const json object{{"names", names.all()}, {"classes", std::move(classes)}, {"plans", std::move(plans)}};
    return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace planloom
