#include "engine/analyse/communication.h"

#include "engine/analyse/communication_lines.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/instruction_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

using FlowKey = std::tuple<DeviceId, DeviceId, InstructionKind>;

/// What one run of an instruction sends: to whom, and how much.
struct Share {
    std::size_t flow = 0;
    std::int64_t bytes = 0;
};

/// `whole` in `parts` parts that differ by one at most; they add up to it.
std::int64_t evenShare(std::int64_t whole, std::size_t parts, std::size_t part)
{
    const auto count = static_cast<std::int64_t>(parts);
    return whole / count + (static_cast<std::int64_t>(part) < whole % count ? 1 : 0);
}

class MatrixBuilder
{
public:
    explicit MatrixBuilder(const ExecutionPlan &plan)
        : m_plan(plan)
    {
    }

    /// Books one span of `instruction`, whose shares are looked up once.
    void add(std::vector<Share> &shares, bool &known, DeviceId from, const Instruction &instruction,
        std::int64_t duration)
    {
        if (!known) {
            shares = sharesOf(from, instruction);
            known = true;
        }
        for (std::size_t i = 0; i < shares.size(); ++i) {
            Flow &flow = m_flows[shares[i].flow];
            flow.bytes += Bytes{shares[i].bytes};
            flow.time += Nanoseconds{evenShare(duration, shares.size(), i)};
            ++flow.count;
        }
    }

    std::vector<Flow> finish()
    {
        std::vector<Flow> flows;
        flows.reserve(m_index.size());
        for (const auto &[key, index] : m_index) {
            Flow &flow = m_flows[index];
            flow.operators.assign(m_operators[index].begin(), m_operators[index].end());
            flows.push_back(std::move(flow));
        }
        return flows;
    }

private:
    std::vector<Share> sharesOf(DeviceId from, const Instruction &instruction)
    {
        const auto kind = collectiveOf(instruction.kind);
        if (!kind || instruction.kind == InstructionKind::Recv)
            return {};
        const Bytes bytes =
            collectiveBytes(m_plan.devices[static_cast<std::size_t>(from.index)], instruction);
        if (instruction.kind == InstructionKind::Send)
            return {shareOf(from, instruction.peer, instruction, bytes.count)};
        if (instruction.acrossUnits) { // its peers are what it stands for itself, in other units
            const std::int32_t units = m_plan.units.count;
            return {shareOf(from, from, instruction,
                ringBytesSent(*kind, bytes, units, 0).count * timesSent(instruction))};
        }
        const auto &members = m_plan.groups[static_cast<std::size_t>(instruction.group)];
        const auto position =
            static_cast<std::size_t>(std::find(members.begin(), members.end(), from) - members.begin());
        if (members.size() < 2 || position == members.size())
            return {};
        const std::int64_t sent = ringBytesSent(*kind, bytes, static_cast<std::int32_t>(members.size()),
                                      static_cast<std::int32_t>(position))
                                      .count
            * timesSent(instruction);
        std::vector<Share> shares;
        if (instruction.kind == InstructionKind::AllToAll) {
            for (std::size_t i = 1; i < members.size(); ++i)
                shares.push_back(shareOf(from, members[(position + i) % members.size()], instruction,
                    evenShare(sent, members.size() - 1, i - 1)));
        } else if (instruction.kind != InstructionKind::Broadcast || position + 1 < members.size()) {
            shares.push_back(shareOf(from, members[(position + 1) % members.size()], instruction, sent));
        }
        return shares;
    }

    Share shareOf(DeviceId from, DeviceId to, const Instruction &instruction, std::int64_t bytes)
    {
        const auto [found, isNew] = m_index.emplace(FlowKey{from, to, instruction.kind}, m_flows.size());
        if (isNew) {
            m_flows.push_back({.kind = instruction.kind, .from = from, .to = to});
            m_operators.emplace_back();
        }
        if (instruction.op.valid())
            m_operators[found->second].insert(instruction.op);
        return {found->second, bytes};
    }

    const ExecutionPlan &m_plan;
    std::map<FlowKey, std::size_t> m_index{};
    std::vector<Flow> m_flows{};
    std::vector<std::set<OperatorId>> m_operators{}; ///< By flow.
};

std::vector<LinkLoad> linksOf(const CommunicationMatrix &matrix, const Cluster &cluster, Nanoseconds step)
{
    const auto nodeOf = [&](std::int32_t device) {
        return static_cast<std::size_t>(cluster.nodeOf(DeviceId{device}));
    };
    std::vector<LinkLoad> inside(static_cast<std::size_t>(matrix.deviceCount));
    std::vector<LinkLoad> between(matrix.deviceCount > 0 ? nodeOf(matrix.deviceCount - 1) + 1 : 0);
    for (std::size_t d = 0; d < inside.size(); ++d)
        inside[d].index = static_cast<std::int32_t>(d);
    for (std::size_t n = 0; n < between.size(); ++n)
        between[n] = {.betweenNodes = true, .index = static_cast<std::int32_t>(n)};
    for (const Flow &flow : matrix.flows) {
        if (nodeOf(flow.from.index) == nodeOf(flow.to.index))
            inside[static_cast<std::size_t>(flow.from.index)].bytes += flow.bytes;
        else
            between[nodeOf(flow.from.index)].bytes += flow.bytes;
    }
    std::vector<LinkLoad> links = std::move(inside);
    if (between.size() > 1)
        links.insert(links.end(), between.begin(), between.end());
    const double seconds = static_cast<double>(step.count()) * 1e-9;
    for (LinkLoad &link : links) {
        const double bandwidth = link.betweenNodes
            ? cluster.linksOfClass(cluster.classAt(link.index * cluster.links.devicesPerNode))
                  .interBandwidth.value
            : cluster.linksAt(DeviceId{link.index}).intraBandwidth.value;
        if (seconds > 0 && bandwidth > 0)
            link.share = static_cast<double>(link.bytes.count) / (bandwidth * seconds);
    }
    return links;
}

template<typename Visit>
void forEachBetween(const CommunicationMatrix &matrix, DeviceId from, DeviceId to,
    std::optional<InstructionKind> kind, Visit visit)
{
    auto it = std::lower_bound(matrix.flows.begin(), matrix.flows.end(), std::pair(from, to),
        [](const Flow &flow, const auto &key) { return std::pair(flow.from, flow.to) < key; });
    for (; it != matrix.flows.end() && it->from == from && it->to == to; ++it)
        if (!kind || it->kind == *kind)
            visit(*it);
}

} // namespace

Bytes CommunicationMatrix::bytesBetween(DeviceId from, DeviceId to, std::optional<InstructionKind> kind) const
{
    Bytes sum;
    forEachBetween(*this, from, to, kind, [&](const Flow &flow) { sum += flow.bytes; });
    return sum;
}

Nanoseconds CommunicationMatrix::timeBetween(
    DeviceId from, DeviceId to, std::optional<InstructionKind> kind) const
{
    Nanoseconds sum{};
    forEachBetween(*this, from, to, kind, [&](const Flow &flow) { sum += flow.time; });
    return sum;
}

Bytes CommunicationMatrix::sentBy(DeviceId from) const
{
    Bytes sum;
    auto it = std::lower_bound(flows.begin(), flows.end(), from,
        [](const Flow &flow, DeviceId device) { return flow.from < device; });
    for (; it != flows.end() && it->from == from; ++it)
        sum += it->bytes;
    return sum;
}

std::optional<CommunicationMatrix> communicationMatrix(
    const ExecutionPlan &plan, const Timeline &timeline, const Cluster &cluster, std::stop_token stop)
{
    CommunicationMatrix matrix{.deviceCount = static_cast<std::int32_t>(plan.devices.size())};
    MatrixBuilder builder(plan);
    const SpanColumns &spans = timeline.spans;
    struct Known {
        std::vector<Share> shares{};
        bool known = false;
    };
    for (std::size_t d = 0; d < plan.devices.size() && d + 1 < timeline.deviceBegin.size(); ++d) {
        if (stop.stop_requested())
            return std::nullopt;
        const DeviceProgram &program = plan.devices[d];
        std::vector<std::vector<Known>> known(program.segments.size());
        for (std::size_t s = timeline.deviceBegin[d]; s < timeline.deviceBegin[d + 1]; ++s) {
            if (spans.queue[s] == QueueKind::Compute)
                continue;
            const auto segment = static_cast<std::size_t>(spans.segment[s]);
            const auto instruction = static_cast<std::size_t>(spans.instruction[s]);
            const InstructionKind kind = program.segments[segment].instructions[instruction].kind;
            if (!isCommunication(kind) && !isHostCopy(kind))
                continue; // what came is brought into shape
            auto &ofSegment = known[segment];
            if (ofSegment.empty())
                ofSegment.resize(program.segments[segment].instructions.size());
            builder.add(ofSegment[instruction].shares, ofSegment[instruction].known,
                DeviceId{static_cast<std::int32_t>(d)}, program.segments[segment].instructions[instruction],
                spans.duration[s]);
        }
    }
    matrix.flows = builder.finish();
    matrix.links = linksOf(matrix, cluster, timeline.step);
    return matrix;
}

std::vector<RowTraffic> rowsBehind(const Plan &plan, const CommunicationMatrix &matrix, const Flow *flow)
{
    std::map<RowId, RowTraffic> byRow;
    RowTraffic none;
    const auto add = [&](const Flow &one) {
        std::set<RowId> rows;
        for (const OperatorId op : one.operators)
            if (static_cast<std::size_t>(op.index) < plan.decisions.size())
                for (const RowId row : plan.decisions[static_cast<std::size_t>(op.index)].rows)
                    rows.insert(row);
        for (const RowId row : rows) {
            RowTraffic &traffic = byRow[row];
            traffic.row = row;
            traffic.bytes += one.bytes;
            traffic.time += one.time;
        }
        if (rows.empty()) {
            none.bytes += one.bytes;
            none.time += one.time;
        }
    };
    if (flow)
        add(*flow);
    else
        for (const Flow &one : matrix.flows)
            add(one);
    std::vector<RowTraffic> traffic;
    for (const auto &[row, sum] : byRow)
        traffic.push_back(sum);
    if (none != RowTraffic{})
        traffic.push_back(none);
    return traffic;
}

std::optional<std::int64_t> durationAlone(
    const ExecutionPlan &plan, const Cluster &cluster, DeviceId device, const Instruction &instruction)
{
    const auto kind = collectiveOf(instruction.kind);
    if (!kind || instruction.joined || instruction.overlaps)
        return std::nullopt;
    const Cluster unit = unitOf(cluster, plan.units);
    const GroupShape shape = groupShapeOf(plan, unit, device, instruction);
    const Bytes bytes = collectiveBytes(plan.devices[static_cast<std::size_t>(device.index)], instruction);
    return std::llround(costModelOf(unit).collective(*kind, bytes, shape) * 1e9);
}

} // namespace planloom
