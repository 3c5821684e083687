#include "engine/analyse/communication_lines.h"

#include "engine/base/words.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/instruction_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// Whose launches are of one line before groups are compared: queue, kind, group (or -1), sender and receiver
/// (or the device that stands for its likes in all units), bytes.
using LaunchKey = std::tuple<QueueKind, InstructionKind, std::int32_t, DeviceId, DeviceId, std::int64_t>;

/// How long a device has computed before any moment.
class ComputedTime
{
public:
    ComputedTime(const Timeline &timeline, std::size_t device)
        : m_spans(timeline.spans)
    {
        std::tie(m_begin, m_end) = rowsOf(timeline, device, QueueKind::Compute);
        m_before.reserve(m_end - m_begin + 1);
        m_before.push_back(0);
        for (std::size_t row = m_begin; row < m_end; ++row)
            m_before.push_back(m_before.back() + m_spans.duration[row]);
    }

    std::int64_t before(std::int64_t time) const
    {
        const auto first = m_spans.start.begin() + static_cast<std::ptrdiff_t>(m_begin);
        const auto last = m_spans.start.begin() + static_cast<std::ptrdiff_t>(m_end);
        const auto begun = static_cast<std::size_t>(std::lower_bound(first, last, time) - first);
        if (begun == 0)
            return 0;
        const std::size_t row = m_begin + begun - 1;
        return m_before[begun - 1] + std::min(m_spans.duration[row], time - m_spans.start[row]);
    }

    std::int64_t exposed(std::int64_t start, std::int64_t duration) const
    {
        return std::max<std::int64_t>(0, duration - (before(start + duration) - before(start)));
    }

private:
    const SpanColumns &m_spans;
    std::size_t m_begin = 0;
    std::size_t m_end = 0;
    std::vector<std::int64_t> m_before{}; ///< By computing span: what all before it took.
};

/// By instruction of a segment: bytes of the launch that it begins; 0 for what is joined to one before it.
std::vector<std::int64_t> launchBytes(const DeviceProgram &program, const Segment &segment)
{
    std::vector<std::int64_t> bytes(segment.instructions.size(), 0);
    std::array<std::size_t, kQueueCount> heads{};
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
        const Instruction &instruction = segment.instructions[i];
        if (!isCommunication(instruction.kind))
            continue;
        std::size_t &head = heads[static_cast<std::size_t>(queueOf(instruction))];
        if (!instruction.joined)
            head = i;
        bytes[head] += collectiveBytes(program, instruction).count;
    }
    return bytes;
}

std::string linkWords(const Interconnect &links, const GroupShape &shape)
{
    for (std::size_t level = links.outer.size(); level-- > 0;)
        if (shape.outer[level] > 1)
            return "between " + links.outer[level].name + "s";
    return shape.nodes > 1 ? "between nodes" : "inside a node";
}

class LineBuilder
{
public:
    LineBuilder(const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster)
        : m_plan(plan)
        , m_timeline(timeline)
        , m_unit(unitOf(cluster, plan.units))
        , m_costs(costModelOf(m_unit))
    {
    }

    void addDevice(std::size_t device)
    {
        const DeviceProgram &program = m_plan.devices[device];
        const ComputedTime computed(m_timeline, device);
        const SpanColumns &spans = m_timeline.spans;
        std::vector<std::vector<std::int64_t>> bytes(program.segments.size());
        std::array<Draft *, kQueueCount> last{}; // joined spans follow their launch in its queue
        for (std::size_t row = m_timeline.deviceBegin[device]; row < m_timeline.deviceBegin[device + 1];
             ++row) {
            const Segment &segment = program.segments[at(spans.segment[row])];
            const Instruction &instruction = segment.instructions[at(spans.instruction[row])];
            if (spans.queue[row] == QueueKind::Compute || !isCommunication(instruction.kind))
                continue;
            auto &ofSegment = bytes[at(spans.segment[row])];
            if (ofSegment.empty())
                ofSegment = launchBytes(program, segment);
            Draft *&draft = last[static_cast<std::size_t>(spans.queue[row])];
            const bool begins = !instruction.joined || draft == nullptr;
            if (begins)
                draft = &draftOf(DeviceId{static_cast<std::int32_t>(device)}, spans.queue[row], instruction,
                    ofSegment[at(spans.instruction[row])]);
            draft->exposedOfAll += computed.exposed(spans.start[row], spans.duration[row]);
            if (!speaks(*draft, device, instruction))
                continue;
            CommunicationLine &line = draft->line;
            line.time += Nanoseconds{spans.duration[row]};
            line.passes.insert(segment.kind);
            if (instruction.op)
                draft->operators.insert(instruction.op);
            if (begins) {
                ++line.count;
                line.starts.push_back(Nanoseconds{spans.start[row]});
            }
        }
    }

    std::vector<CommunicationLine> finish()
    {
        // Lines that say the same of different groups are one.
        std::map<std::tuple<QueueKind, InstructionKind, std::int64_t, std::int64_t, std::int64_t,
                     std::vector<Nanoseconds>, std::string>,
            std::size_t>
            known;
        std::vector<CommunicationLine> lines;
        for (auto &[key, draft] : m_drafts) {
            CommunicationLine &line = draft.line;
            if (line.count == 0)
                continue; // an end of a message without the other: of a timeline that was cut
            line.exposed = Nanoseconds{draft.exposedOfAll / draft.ends};
            line.operators.assign(draft.operators.begin(), draft.operators.end());
            std::sort(line.starts.begin(), line.starts.end());
            const auto [found, isNew] =
                known.try_emplace({line.queue, line.kind, line.bytes.count, line.time.count(),
                                      line.exposed.count(), line.starts, shapeKey(line)},
                    lines.size());
            if (isNew) {
                lines.push_back(std::move(line));
                continue;
            }
            CommunicationLine &same = lines[found->second];
            same.groups.push_back(std::move(line.groups.front()));
            same.groupCount += line.groupCount;
            same.passes.merge(line.passes);
            std::vector<OperatorId> both;
            std::set_union(same.operators.begin(), same.operators.end(), line.operators.begin(),
                line.operators.end(), std::back_inserter(both));
            same.operators = std::move(both);
        }
        std::stable_sort(lines.begin(), lines.end(), [](const auto &a, const auto &b) {
            return std::tie(a.exposed, a.time) > std::tie(b.exposed, b.time);
        });
        return lines;
    }

private:
    struct Draft {
        CommunicationLine line{};
        std::int64_t exposedOfAll = 0; ///< Nanoseconds, of all ends together.
        std::int64_t ends = 1;
        DeviceId speaker{}; ///< Whose launches are counted; within a unit.
        std::set<OperatorId> operators{};
    };

    static std::string shapeKey(const CommunicationLine &line)
    {
        std::string key = std::to_string(line.shape.ranks) + '/' + std::to_string(line.shape.nodes) + '/'
            + std::to_string(line.shape.classes);
        for (const std::int32_t outer : line.shape.outer)
            key += '/' + std::to_string(outer);
        return key;
    }

    static bool speaks(const Draft &draft, std::size_t device, const Instruction &instruction)
    {
        return instruction.kind != InstructionKind::Recv && at(draft.speaker) == device;
    }

    Draft &draftOf(DeviceId device, QueueKind queue, const Instruction &instruction, std::int64_t bytes)
    {
        const bool isMessage =
            instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv;
        const InstructionKind kind = isMessage ? InstructionKind::Send : instruction.kind;
        DeviceId from{};
        DeviceId to{};
        if (isMessage) {
            from = instruction.kind == InstructionKind::Send ? device : instruction.peer;
            to = instruction.kind == InstructionKind::Send ? instruction.peer : device;
        } else if (instruction.acrossUnits) {
            from = device;
        }
        const auto [found, isNew] =
            m_drafts.try_emplace(LaunchKey{queue, kind, isMessage ? -1 : instruction.group, from, to, bytes});
        Draft &draft = found->second;
        if (isNew)
            begin(draft, {queue, kind, Bytes{bytes}}, {device, from, to}, instruction);
        return draft;
    }

    struct Launch {
        QueueKind queue{};
        InstructionKind kind{};
        Bytes bytes{};
    };
    struct Ends {
        DeviceId device{};
        DeviceId from{};
        DeviceId to{};
    };

    void begin(Draft &draft, const Launch &launch, const Ends &ends, const Instruction &instruction)
    {
        CommunicationLine &line = draft.line;
        line.kind = launch.kind;
        line.queue = launch.queue;
        line.bytes = launch.bytes;
        std::vector<DeviceId> members;
        line.groupCount = m_plan.units.count;
        if (ends.to) {
            members = {ends.from, ends.to};
            draft.speaker = ends.from;
        } else if (instruction.acrossUnits) {
            draft.speaker = ends.device;
            line.groupCount = 1;
        } else {
            members = m_plan.groups[at(instruction.group)];
            draft.speaker = members.empty() ? ends.device : members.front();
        }
        for (DeviceId &member : members)
            member = m_plan.units.deviceOf(0, member);
        for (std::int32_t unit = 0; instruction.acrossUnits && unit < m_plan.units.count; ++unit)
            members.push_back(m_plan.units.deviceOf(unit, ends.device));
        draft.ends = instruction.acrossUnits
            ? 1
            : std::max<std::int64_t>(1, static_cast<std::int64_t>(members.size()));
        line.groups.push_back(std::move(members));
        line.shape = groupShapeOf(m_plan, m_unit, ends.device, instruction);
        line.link = linkWords(m_unit.links, line.shape);
        price(line, instruction);
    }

    void price(CommunicationLine &line, const Instruction &instruction) const
    {
        const auto kind = *collectiveOf(line.kind);
        double seconds = m_costs.collective(kind, line.bytes, line.shape);
        if (needsLargestFirst(instruction))
            seconds += m_costs.collective(CollectiveKind::AllReduce, line.bytes, line.shape);
        line.alone = Nanoseconds{std::llround(seconds * 1e9)};
        const bool isChosen = kind == CollectiveKind::AllReduce || kind == CollectiveKind::AllGather
            || kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::Broadcast;
        const Interconnect links =
            m_unit.otherClasses.empty() ? m_unit.links : jointLinks(m_unit, line.shape.classes);
        if (isChosen && line.shape.ranks > 1 && links.architecture != LinkArchitecture::SharedMemory)
            line.choice = fastestCollective(links, kind, line.shape, line.bytes);
    }

    const ExecutionPlan &m_plan;
    const Timeline &m_timeline;
    Cluster m_unit{};
    CostModel m_costs{};
    std::map<LaunchKey, Draft> m_drafts{};
};

} // namespace

GroupShape groupShapeOf(
    const ExecutionPlan &plan, const Cluster &unit, DeviceId device, const Instruction &instruction)
{
    if (instruction.acrossUnits)
        return shapeAcrossUnits(unit, device);
    return instruction.group >= 0 ? groupShape(unit, plan.groups[at(instruction.group)])
                                  : groupShape(unit, {device, instruction.peer});
}

std::optional<std::vector<CommunicationLine>> communicationLines(
    const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster, std::stop_token stop)
{
    LineBuilder builder(plan, timeline, cluster);
    for (std::size_t d = 0; d < plan.devices.size() && d + 1 < timeline.deviceBegin.size(); ++d) {
        if (stop.stop_requested())
            return std::nullopt;
        builder.addDevice(d);
    }
    return builder.finish();
}

double busBandwidthOf(const CommunicationLine &line)
{
    const auto kind = collectiveOf(line.kind);
    if (!kind || line.time.count() <= 0)
        return 0;
    const Bytes sent = ringBytesSent(*kind, line.bytes, line.shape.ranks, 0);
    const double seconds = static_cast<double>(line.time.count()) * 1e-9 / static_cast<double>(line.count);
    return static_cast<double>(sent.count) / seconds;
}

std::string algorithmWords(const CommunicationLine &line)
{
    return line.choice ? std::string(nameOf(line.choice->algorithm)) + " " + nameOf(line.choice->protocol)
                       : std::string{};
}

std::string groupWords(const CommunicationLine &line, std::size_t most)
{
    std::string words;
    for (std::size_t i = 0; i < line.groups.size(); ++i) {
        if (i == most)
            return words + "; ...";
        words += i > 0 ? "; " : "";
        const std::vector<DeviceId> &group = line.groups[i];
        words += line.kind == InstructionKind::Send && group.size() == 2
            ? std::to_string(group[0].index) + " to " + std::to_string(group[1].index)
            : rangesOf(group);
    }
    return words;
}

std::string passWords(const CommunicationLine &line)
{
    std::string words;
    for (const SegmentKind pass : line.passes)
        words += (words.empty() ? "" : ", ") + std::string(nameOf(pass));
    return words;
}

} // namespace planloom
