#include "widgets/inspector/sharding.h"

#include "widgets/common/format.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostCells = 4096;

using Cells = std::map<std::pair<IndexMask, ValueMask>, std::set<DeviceId>>;

ShardedTensor sharded(const Cells &cells, const Shape &shape)
{
    ShardedTensor result;
    std::vector<bool> cut(shape.size(), false);
    for (const auto &[key, devices] : cells) {
        const auto &[index, value] = key;
        for (std::size_t d = 0; d < cut.size() && d < index.ranges.size(); ++d)
            cut[d] = cut[d] || index.ranges[d].size() != shape[d];
        result.valueParts = std::max(result.valueParts, value.count);
        if (result.cells.size() < kMostCells)
            result.cells.push_back({index, value, {devices.begin(), devices.end()}});
        else
            ++result.leftOut;
    }
    for (std::size_t d = 0; d < cut.size(); ++d) {
        if (cut[d])
            result.cutDimensions.push_back(static_cast<std::int32_t>(d));
    }
    return result;
}

const OperatorDecision &decisionOf(const Plan &plan, OperatorId op)
{
    return plan.decisions[static_cast<std::size_t>(op.index)];
}

DeviceId deviceOf(const OperatorDecision &decision, std::int32_t part)
{
    return decision.devices.empty()
        ? DeviceId{0}
        : decision.devices[static_cast<std::size_t>(part) % decision.devices.size()];
}

/// What `op` makes in slots that hold `tensor`. Several producers (of a gradient) each make summands.
void addMade(Cells &cells, const Plan &plan, OperatorId id, TensorId tensor)
{
    const Operator &op = plan.graph->at(id);
    const OperatorDecision &decision = decisionOf(plan, id);
    const std::int32_t shards = unitParts(decision.partition);
    const std::int32_t parts = partCount(decision.partition) / shards;
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        if (op.outputs[slot] != tensor)
            continue;
        for (std::int32_t part = 0; part < parts; ++part) {
            const TensorView view = outputView(*plan.graph, op, decision.partition, part * shards, slot);
            cells[{view.index, view.value}].insert(deviceOf(decision, part));
        }
    }
}

void addUsed(Cells &cells, const Plan &plan, OperatorId id, TensorId tensor)
{
    const Operator &op = plan.graph->at(id);
    const OperatorDecision &decision = decisionOf(plan, id);
    const std::int32_t shards = unitParts(decision.partition);
    const std::int32_t parts = partCount(decision.partition) / shards;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (op.inputs[slot] != tensor)
            continue;
        for (std::int32_t part = 0; part < parts; ++part) {
            const TensorView view = inputView(*plan.graph, op, decision.partition, part * shards, slot);
            cells[{view.index, view.value}].insert(deviceOf(decision, part));
        }
    }
}

/// Collectives and messages that carry `tensor`; those that serve `op` if any do.
std::vector<ShardingJoin> joinsOf(
    const ExecutionPlan &execution, TensorId tensor, OperatorId op, const std::stop_token &stop)
{
    std::map<InstructionKind, ShardingJoin> all;
    std::map<InstructionKind, ShardingJoin> serving;
    for (std::size_t d = 0; d < execution.devices.size(); ++d) {
        if (stop.stop_requested())
            return {};
        const DeviceProgram &program = execution.devices[d];
        std::vector<std::int64_t> runs(program.segments.size(), 0);
        for (const ScheduleEntry &entry : program.schedule)
            runs[static_cast<std::size_t>(entry.segment)] += entry.begin == 0 ? 1 : 0;
        for (std::size_t s = 0; s < program.segments.size(); ++s) {
            for (const Instruction &instruction : program.segments[s].instructions) {
                if (!isCommunication(instruction.kind) || instruction.kind == InstructionKind::Recv)
                    continue;
                const std::int32_t buffer = !instruction.inputs.empty() && instruction.inputs[0] >= 0
                    ? instruction.inputs[0]
                    : (instruction.outputs.empty() ? -1 : instruction.outputs[0]);
                if (buffer < 0 || program.buffers[static_cast<std::size_t>(buffer)].tensor != tensor)
                    continue;
                const std::vector<DeviceId> *group = instruction.group >= 0
                    ? &execution.groups[static_cast<std::size_t>(instruction.group)]
                    : nullptr;
                if (group && (group->empty() || group->front().index != static_cast<std::int32_t>(d)))
                    continue; // counted at its first member
                const auto members = group ? static_cast<std::int32_t>(group->size()) : 2;
                const Bytes bytes = sizeOf(program.buffers[static_cast<std::size_t>(buffer)]);
                const auto add = [&](ShardingJoin &join) {
                    join.kind = instruction.kind;
                    join.combination = instruction.combination;
                    join.count += runs[s];
                    if (!std::binary_search(join.members.begin(), join.members.end(), members))
                        join.members.insert(
                            std::lower_bound(join.members.begin(), join.members.end(), members), members);
                    join.bytes.count = std::max(join.bytes.count, bytes.count);
                };
                add(all[instruction.kind]);
                if (instruction.op == op)
                    add(serving[instruction.kind]);
            }
        }
    }
    std::vector<ShardingJoin> joins;
    for (const auto &[kind, join] : serving.empty() ? all : serving)
        joins.push_back(join);
    return joins;
}

} // namespace

std::vector<ShardingPicture> shardingOf(
    const Plan &plan, const ExecutionPlan *execution, OperatorId id, std::stop_token stop)
{
    std::vector<ShardingPicture> pictures;
    const Graph &graph = *plan.graph;
    if (!id.valid() || static_cast<std::size_t>(id.index) >= plan.decisions.size())
        return pictures;
    const Operator &op = graph.at(id);
    const Uses uses = usesOf(graph);
    const auto begin = [&](TensorId tensor, bool output, std::size_t slot) {
        ShardingPicture picture;
        picture.tensor = tensor;
        picture.name = graph.at(tensor).name;
        picture.shape = graph.at(tensor).type.shape;
        if (shapeInFiles(graph, tensor) != picture.shape)
            picture.fileShape = shapeInFiles(graph, tensor);
        const TensorId of = graph.at(tensor).of; // gradients and states lie as their weight does
        picture.filePart = graph.at(of ? of : tensor).filePart;
        picture.output = output;
        picture.slot = static_cast<std::int32_t>(slot);
        return picture;
    };
    std::set<TensorId> seen;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const TensorId tensor = op.inputs[slot];
        if (!tensor.valid() || !seen.insert(tensor).second)
            continue;
        if (stop.stop_requested())
            return pictures;
        ShardingPicture picture = begin(tensor, false, slot);
        Cells made;
        for (const OperatorId producer : uses.producers[static_cast<std::size_t>(tensor.index)])
            addMade(made, plan, producer, tensor);
        Cells used;
        addUsed(used, plan, id, tensor);
        if (!made.empty())
            picture.before = sharded(made, picture.shape);
        picture.after = sharded(used, picture.shape);
        if (execution)
            picture.joins = joinsOf(*execution, tensor, id, stop);
        pictures.push_back(std::move(picture));
    }
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const TensorId tensor = op.outputs[slot];
        if (!tensor.valid())
            continue;
        if (stop.stop_requested())
            return pictures;
        ShardingPicture picture = begin(tensor, true, slot);
        Cells made;
        addMade(made, plan, id, tensor);
        picture.before = sharded(made, picture.shape);
        // The first consumer that needs it otherwise says most; else the first one.
        for (const OperatorId consumer : uses.consumers[static_cast<std::size_t>(tensor.index)]) {
            Cells used;
            addUsed(used, plan, consumer, tensor);
            if (!picture.after || used != made)
                picture.after = sharded(used, picture.shape);
            if (used != made)
                break;
        }
        if (execution)
            picture.joins = joinsOf(*execution, tensor, OperatorId{}, stop);
        pictures.push_back(std::move(picture));
    }
    return pictures;
}

std::string wordsOf(const ShardCell &cell, const Shape &shape)
{
    std::string words = "[";
    for (std::size_t d = 0; d < cell.index.ranges.size(); ++d) {
        const Range &range = cell.index.ranges[d];
        words += d > 0 ? ", " : "";
        if (d < shape.size() && range.size() == shape[d])
            words += "all of " + std::to_string(shape[d]);
        else
            words += std::to_string(range.begin) + ":" + std::to_string(range.end);
    }
    words += "]";
    if (!cell.value.complete())
        words +=
            " summand " + std::to_string(cell.value.index + 1) + " of " + std::to_string(cell.value.count);
    words += cell.devices.size() == 1 ? " on device " : " on devices ";
    for (std::size_t i = 0; i < cell.devices.size(); ++i)
        words += (i > 0 ? ", " : "") + std::to_string(cell.devices[i].index);
    return words;
}

std::string shapeInWords(const ShardingPicture &picture)
{
    std::string words = formatShape(picture.shape);
    if (picture.fileShape.empty() && !picture.filePart)
        return words;
    const Shape &files = picture.fileShape.empty() ? picture.shape : picture.fileShape;
    words += ", in files ";
    for (std::size_t d = 0; d < files.size(); ++d) {
        words += d > 0 ? " × " : "";
        if (picture.filePart && static_cast<std::size_t>(picture.filePart->axis) == d)
            words += std::to_string(picture.filePart->begin) + ":"
                + std::to_string(picture.filePart->begin + files[d]);
        else
            words += std::to_string(files[d]);
    }
    return words;
}

std::string wordsOf(const ShardingJoin &join)
{
    std::string words = textOf(Instruction{.kind = join.kind, .combination = join.combination});
    if (join.kind != InstructionKind::Send) {
        words += " of ";
        for (std::size_t i = 0; i < join.members.size(); ++i)
            words += (i > 0 ? ", " : "") + std::to_string(join.members[i]);
        words += " devices";
    }
    return words + " × " + std::to_string(join.count) + ", " + formatBytes(join.bytes) + " each";
}

} // namespace planloom
