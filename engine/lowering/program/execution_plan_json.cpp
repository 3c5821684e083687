#include "engine/lowering/program/execution_plan_json.h"

#include "engine/lowering/program/execution_plan_words.h"
#include "engine/lowering/program/folded_programs.h"
#include "engine/lowering/program/graph_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace planloom {

using nlohmann::json;

namespace {

json boxToJson(const IndexMask &mask)
{
    json ranges = json::array();
    for (const Range &range : mask.ranges)
        ranges.push_back({range.begin, range.end});
    return ranges;
}

} // namespace

json instructionToJson(const Instruction &instruction)
{
    json object{{"kind", nameOf(instruction.kind)}};
    if (instruction.op)
        object["operator"] = instruction.op.index;
    if (instruction.kind == InstructionKind::Kernel)
        object["part"] = instruction.part;
    if (instruction.group >= 0)
        object["group"] = instruction.group;
    if (instruction.peer)
        object["peer"] = instruction.peer.index;
    if (instruction.tag >= 0)
        object["tag"] = instruction.tag;
    if (instruction.dimension >= 0)
        object["dimension"] = instruction.dimension;
    if (instruction.gatherDimension >= 0)
        object["gather_dimension"] = instruction.gatherDimension;
    if (instruction.combination != Combination::Sum)
        object["combination"] = nameOf(instruction.combination);
    if (instruction.queue)
        object["queue"] = nameOf(*instruction.queue);
    for (const auto &[name, member] : kInstructionFlags)
        if (instruction.*member)
            object[name] = true;
    for (const auto &[name, member, least] : kInstructionBuffers)
        if (!(instruction.*member).empty())
            object[name] = instruction.*member;
    return object;
}

json bufferToJson(const ExecutionPlan &plan, const BufferInfo &buffer)
{
    json object{
        {"tensor", buffer.tensor.index}, {"box", boxToJson(buffer.index)}, {"memory", nameOf(buffer.memory)}};
    if (buffer.dataType != plan.graph->at(buffer.tensor).type.dataType)
        object["type"] = nameOf(buffer.dataType);
    if (!buffer.summands.empty())
        object["summands"] = buffer.summands;
    if (!buffer.valuePart.complete())
        object["value_part"] = {buffer.valuePart.index, buffer.valuePart.count};
    if (buffer.unweighed)
        object["unweighed"] = true;
    if (!buffer.perMicroBatch)
        object["per_micro_batch"] = false;
    if (buffer.persistent)
        object["persistent"] = true;
    if (buffer.place != MemoryPlace::Device)
        object["place"] = nameOf(buffer.place);
    if (buffer.share != UnitShare::Same)
        object["share"] = nameOf(buffer.share);
    if (buffer.versions != 1)
        object["versions"] = buffer.versions;
    if (buffer.staleness != 0)
        object["staleness"] = buffer.staleness;
    if (buffer.share == UnitShare::Shard)
        object["shard_dimension"] = buffer.shardDimension, object["shard_end"] = buffer.shardEnd;
    return object;
}

json segmentToJson(const Segment &segment)
{
    json object{{"kind", nameOf(segment.kind)}, {"stage", segment.stage.index}};
    if (segment.slice != 0)
        object["slice"] = segment.slice;
    if (segment.lane != 0)
        object["lane"] = segment.lane;
    return object;
}

json scheduleToJson(const DeviceProgram &program)
{
    json schedule = json::array();
    for (const ScheduleEntry &entry : program.schedule)
        if (entry.begin == 0 && entry.end < 0) {
            schedule.push_back({entry.segment, entry.microBatch});
        } else {
            const auto [begin, end] = indicesOf(program, entry);
            schedule.push_back({entry.segment, entry.microBatch, begin, end});
        }
    return schedule;
}

namespace {

json splitToJson(const Split &split)
{
    static constexpr std::array<const char *, 3> kKinds{"dimension", "replicate", "value"};
    json object{{"kind", kKinds[static_cast<std::size_t>(split.kind)]}, {"parts", split.parts}};
    if (split.kind == SplitKind::Dimension)
        object["dimension"] = split.dimension;
    if (!split.sizes.empty())
        object["sizes"] = split.sizes;
    if (!split.axis.empty())
        object["axis"] = split.axis;
    if (split.over != SplitOver::Devices)
        object["over"] = kSplitOver[static_cast<std::size_t>(split.over)];
    return object;
}

json precisionToJson(const Precision &precision)
{
    json object{{"compute", shortNameOf(precision.compute)}, {"storage", shortNameOf(precision.storage)},
        {"gradient", shortNameOf(precision.gradient)}, {"reduction", shortNameOf(precision.reduction)},
        {"optimizer", shortNameOf(precision.optimizer)}};
    if (precision.lossScale != 1)
        object["scale"] = std::llround(precision.lossScale);
    return object;
}

/// Nothing in it that a reader of version 1 does not know.
bool isFloat32(const ExecutionPlan &plan)
{
    return plan.precisions.empty()
        && std::all_of(plan.devices.begin(), plan.devices.end(), [&](const DeviceProgram &device) {
               return std::all_of(
                   device.buffers.begin(), device.buffers.end(), [&](const BufferInfo &buffer) {
                       return buffer.dataType == plan.graph->at(buffer.tensor).type.dataType;
                   });
           });
}

template<typename Holds> bool anyInstruction(const ExecutionPlan &plan, const Holds &holds)
{
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            if (std::any_of(segment.instructions.begin(), segment.instructions.end(), holds))
                return true;
    return false;
}

/// Combines summands otherwise than by summing.
bool combines(const Instruction &instruction)
{
    return instruction.combination != Combination::Sum || instruction.kind == InstructionKind::Weigh
        || instruction.kind == InstructionKind::Merge;
}

bool goesBack(const Instruction &instruction)
{
    return queueOf(instruction) == QueueKind::PipelineBack;
}

/// The lowest whose readers understand all of the plan.
int versionOf(const ExecutionPlan &plan)
{
    if (hasTypedAttributes(*plan.graph))
        return kNumbersVersion;
    if (anyInstruction(plan, goesBack))
        return kDirectionsVersion;
    if (plan.updates != 1
        || std::any_of(plan.weightVersions.begin(), plan.weightVersions.end(),
            [](std::int32_t versions) { return versions != 1; }))
        return kUpdatesVersion;
    if (anyInstruction(plan, combines))
        return kCombinationVersion;
    return isFloat32(plan) ? kPlanVersion : kPrecisionVersion;
}

json batchToJson(const BatchInfo &batch)
{
    json object{{"size", batch.size}, {"most_micro_batches", batch.mostMicroBatches},
        {"tensor_role", json::array()}, {"tensor_dimension", batch.tensorDimension},
        {"operator_dimension", batch.operatorDimension}, {"once_per_step", json::array()}};
    if (batch.wholeBatches)
        object["whole_batches"] = true;
    for (const BatchRole role : batch.tensorRole)
        object["tensor_role"].push_back(static_cast<int>(role));
    for (const bool once : batch.oncePerStep)
        object["once_per_step"].push_back(once ? 1 : 0);
    return object;
}

json indicesToJson(const std::vector<DeviceId> &devices)
{
    json indices = json::array();
    for (const DeviceId device : devices)
        indices.push_back(device.index);
    return indices;
}

json decisionToJson(const ExecutionPlan &plan, OperatorId op)
{
    const std::size_t o = at(op);
    json splits = json::array();
    for (const Split &split : plan.partitions[o].splits)
        splits.push_back(splitToJson(split));
    json decision{{"splits", std::move(splits)}, {"devices", indicesToJson(plan.placement[o])}};
    if (const AttentionMode mode = attentionOf(plan, op); mode != AttentionMode::Fused)
        decision["attention"] = nameOf(mode);
    if (const std::int32_t versions = weightVersionsOf(plan, op); versions != 1)
        decision["weight_versions"] = versions;
    if (!plan.precisions.empty())
        decision["precision"] = precisionToJson(plan.precisions[o]);
    return decision;
}

json instructionsToJson(std::span<const Instruction> instructions)
{
    json array = json::array();
    for (const Instruction &instruction : instructions)
        array.push_back(instructionToJson(instruction));
    return array;
}

json programToJson(const ExecutionPlan &plan, const DeviceProgram &program)
{
    json buffers = json::array();
    for (const BufferInfo &buffer : program.buffers)
        buffers.push_back(bufferToJson(plan, buffer));
    json segments = json::array();
    for (const Segment &segment : program.segments) {
        segments.push_back(segmentToJson(segment));
        segments.back()["instructions"] = instructionsToJson(segment.instructions);
    }
    return {{"buffers", std::move(buffers)}, {"setup", instructionsToJson(program.setup)},
        {"segments", std::move(segments)}, {"schedule", scheduleToJson(program)}};
}

/// All but the programs of devices.
json headToJson(const ExecutionPlan &plan, int version)
{
    json document{{"format", "planloom-execution-plan"}, {"version", version},
        {"graph", graphToJson(*plan.graph)}, {"micro_batches", plan.microBatches},
        {"stages", plan.stageCount}, {"origin", plan.origin}, {"batch", batchToJson(plan.batch)}};
    if (plan.updates != 1)
        document["updates"] = plan.updates;
    if (!plan.units.isOne())
        document["units"] = {{"count", plan.units.count}, {"inner", plan.units.inner}};
    json &decisions = document["decisions"] = json::array();
    for (std::size_t o = 0; o < plan.partitions.size(); ++o)
        decisions.push_back(decisionToJson(plan, OperatorId{static_cast<std::int32_t>(o)}));
    json &groups = document["groups"] = json::array();
    for (const auto &group : plan.groups)
        groups.push_back(indicesToJson(group));
    return document;
}

} // namespace

std::string textOfJson(const json &value)
{
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::int64_t itemCount(const ExecutionPlan &plan)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices) {
        std::size_t own = device.buffers.size() + device.setup.size() + device.segments.size();
        for (const Segment &segment : device.segments)
            own += segment.instructions.size();
        count += static_cast<std::int64_t>(own + device.schedule.size());
    }
    return count;
}

std::string toJson(const ExecutionPlan &plan)
{
    json document = headToJson(plan, versionOf(plan));
    json &devices = document["devices"] = json::array();
    for (const DeviceProgram &program : plan.devices)
        devices.push_back(programToJson(plan, program));
    return textOfJson(document);
}

std::string toFoldedJson(const ExecutionPlan &plan)
{
    std::string text = textOfJson(headToJson(plan, kFoldedVersion));
    text.pop_back(); // the brace that ends the document
    text += foldedPrograms(plan);
    text += '}';
    return text;
}

std::string planFileText(const ExecutionPlan &plan)
{
    const std::int64_t items = itemCount(plan);
    return items < kLeastFolded || items > kMostUnfolded ? toJson(plan) : toFoldedJson(plan);
}

} // namespace planloom
