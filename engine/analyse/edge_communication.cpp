#include "engine/analyse/edge_communication.h"

#include "engine/lowering/program/instruction_cost.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace planloom {

namespace {

using EdgeKey = std::tuple<OperatorId, TensorId, InstructionKind>;

EdgeKey keyOf(const EdgeCommunication &edge)
{
    return {edge.op, edge.tensor, edge.kind};
}

/// How often each instruction of a device's segments runs in a step.
std::vector<std::vector<std::int64_t>> runsOf(const DeviceProgram &program)
{
    std::vector<std::vector<std::int64_t>> runs;
    for (const Segment &segment : program.segments)
        runs.emplace_back(segment.instructions.size() + 1, 0);
    for (const ScheduleEntry &entry : program.schedule) {
        const auto [begin, end] = indicesOf(program, entry);
        auto &of = runs[static_cast<std::size_t>(entry.segment)];
        ++of[begin];
        --of[end];
    }
    for (auto &of : runs)
        for (std::size_t i = 1; i < of.size(); ++i)
            of[i] += of[i - 1];
    return runs;
}

/// What a device sends when it runs `instruction` once.
std::int64_t sentOnce(
    const ExecutionPlan &plan, DeviceId device, const DeviceProgram &program, const Instruction &instruction)
{
    const auto kind = collectiveOf(instruction.kind);
    if (!kind || instruction.kind == InstructionKind::Recv)
        return 0;
    const Bytes bytes = collectiveBytes(program, instruction);
    if (instruction.kind == InstructionKind::Send)
        return bytes.count;
    std::int32_t ranks = plan.units.count;
    std::int32_t position = 0;
    if (!instruction.acrossUnits && instruction.group >= 0) {
        const auto &members = plan.groups[static_cast<std::size_t>(instruction.group)];
        ranks = static_cast<std::int32_t>(members.size());
        position =
            static_cast<std::int32_t>(std::find(members.begin(), members.end(), device) - members.begin());
    }
    return ranks < 2 ? 0 : ringBytesSent(*kind, bytes, ranks, position).count * timesSent(instruction);
}

} // namespace

TensorId tensorOf(const DeviceProgram &program, const Instruction &instruction)
{
    for (const BufferList *side : {&instruction.inputs, &instruction.outputs})
        for (const std::int32_t buffer : *side)
            if (buffer >= 0)
                return program.buffers[static_cast<std::size_t>(buffer)].tensor;
    return {};
}

std::vector<EdgeCommunication> communicationOnEdges(const ExecutionPlan &plan, std::stop_token stop)
{
    if (!plan.graph)
        return {};
    const Graph &graph = *plan.graph;
    std::vector<OperatorId> maker(graph.tensors.size());
    for (std::size_t i = graph.operators.size(); i-- > 0;)
        for (const TensorId tensor : graph.operators[i].outputs)
            if (tensor.valid())
                maker[static_cast<std::size_t>(tensor.index)] = OperatorId{static_cast<std::int32_t>(i)};
    std::map<EdgeKey, EdgeCommunication> edges;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        if (stop.stop_requested())
            return {};
        const DeviceProgram &program = plan.devices[d];
        const auto runs = runsOf(program);
        for (std::size_t s = 0; s < program.segments.size(); ++s) {
            const auto &instructions = program.segments[s].instructions;
            for (std::size_t i = 0; i < instructions.size(); ++i) {
                const Instruction &instruction = instructions[i];
                if (!isCommunication(instruction.kind) || isHostCopy(instruction.kind)
                    || instruction.kind == InstructionKind::Recv || runs[s][i] == 0)
                    continue;
                const TensorId tensor = tensorOf(program, instruction);
                EdgeCommunication &edge = edges[{instruction.op, tensor, instruction.kind}];
                if (edge.count == 0) {
                    edge.op = instruction.op;
                    edge.tensor = tensor;
                    edge.kind = instruction.kind;
                    if (tensor.valid())
                        edge.from = maker[static_cast<std::size_t>(tensor.index)];
                    const bool makes = instruction.op.valid() && tensor.valid()
                        && std::count(graph.at(instruction.op).outputs.begin(),
                               graph.at(instruction.op).outputs.end(), tensor)
                            > 0;
                    (makes ? edge.from : edge.to) = instruction.op;
                }
                edge.bytes.count +=
                    sentOnce(plan, DeviceId{static_cast<std::int32_t>(d)}, program, instruction) * runs[s][i];
                edge.count += runs[s][i];
            }
        }
    }
    std::vector<EdgeCommunication> found;
    found.reserve(edges.size());
    for (const auto &[key, edge] : edges)
        found.push_back(edge);
    return found;
}

const EdgeCommunication *findEdge(const std::vector<EdgeCommunication> &edges, OperatorId op, TensorId tensor)
{
    const auto found = std::lower_bound(edges.begin(), edges.end(), EdgeKey{op, tensor, InstructionKind{}},
        [](const EdgeCommunication &edge, const EdgeKey &key) { return keyOf(edge) < key; });
    return found != edges.end() && found->op == op && found->tensor == tensor ? &*found : nullptr;
}

} // namespace planloom
