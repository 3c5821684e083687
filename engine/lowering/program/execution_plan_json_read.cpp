#include "engine/lowering/program/execution_plan_json.h"

#include "engine/lowering/program/execution_plan_words.h"
#include "engine/lowering/program/graph_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace planloom {

namespace {

using nlohmann::json;

constexpr std::array kInstructionKinds{InstructionKind::Load, InstructionKind::Kernel,
    InstructionKind::Accumulate, InstructionKind::Select, InstructionKind::Concat, InstructionKind::Sum,
    InstructionKind::ValueSelect, InstructionKind::AllReduce, InstructionKind::AllGather,
    InstructionKind::ReduceScatter, InstructionKind::AllToAll, InstructionKind::Broadcast,
    InstructionKind::Send, InstructionKind::Recv, InstructionKind::Store, InstructionKind::Update,
    InstructionKind::Cast, InstructionKind::Weigh, InstructionKind::Offload, InstructionKind::Fetch,
    InstructionKind::Shift, InstructionKind::Merge};
constexpr std::array kBufferTypes{
    DataType::Float32, DataType::Float16, DataType::BFloat16, DataType::Float8E4M3, DataType::Float8E5M2};
constexpr std::array kSegmentKinds{SegmentKind::Prologue, SegmentKind::Forward, SegmentKind::Backward,
    SegmentKind::InputGradient, SegmentKind::WeightGradient, SegmentKind::Transfer, SegmentKind::Reduce,
    SegmentKind::Optimizer};
constexpr std::array kMemoryPlaces{MemoryPlace::Device, MemoryPlace::Host};
constexpr std::array kMemoryKinds{MemoryKind::Weight, MemoryKind::Gradient, MemoryKind::OptimizerState,
    MemoryKind::Activation, MemoryKind::Input, MemoryKind::Communication};

constexpr std::array kCombinations{Combination::Sum, Combination::Max, Combination::LogSumExp};
constexpr std::array kUnitShares{UnitShare::Same, UnitShare::Partial, UnitShare::Shard};
constexpr std::array kQueueKinds{QueueKind::Compute, QueueKind::Tensor, QueueKind::Data, QueueKind::Pipeline,
    QueueKind::PipelineBack, QueueKind::Copy};

/// Reads a plan; the first thing that is wrong ends it with the JSON pointer of its place.
class Reader
{
public:
    explicit Reader(const json &document)
        : m_document(document)
    {
    }

    ExecutionPlan read()
    {
        if (!m_document.is_object() || at(m_document, "format", "") != "planloom-execution-plan")
            fail("/format", "expected \"planloom-execution-plan\"");
        if (const json &version = at(m_document, "version", "");
            !version.is_number_integer() || version < kPlanVersion || version > kNumbersVersion)
            fail("/version",
                "expected 1 to 6, found " + version.dump(-1, ' ', false, json::error_handler_t::replace));
        ExecutionPlan plan;
        auto graph = graphFromJson(at(m_document, "graph", ""));
        if (!graph)
            throw std::move(graph).error();
        plan.graph = std::make_shared<const Graph>(*std::move(graph));
        m_graph = plan.graph.get();
        plan.microBatches =
            integer<std::int32_t>(at(m_document, "micro_batches", ""), "/micro_batches", 1, 1 << 20);
        if (m_document.contains("updates"))
            plan.updates = integer<std::int32_t>(m_document["updates"], "/updates", 1, plan.microBatches);
        if (plan.microBatches % plan.updates != 0)
            fail("/updates", "expected a divisor of the number of micro-batches");
        plan.stageCount = integer<std::int32_t>(at(m_document, "stages", ""), "/stages", 1, 1 << 20);
        if (const auto units = m_document.find("units"); units != m_document.end()) {
            plan.units.count =
                integer<std::int32_t>(at(*units, "count", "/units"), "/units/count", 1, 1 << 20);
            plan.units.inner =
                integer<std::int32_t>(at(*units, "inner", "/units"), "/units/inner", 1, 1 << 20);
            if (std::int64_t{plan.units.count} * plan.microBatches > (1 << 20))
                fail("/units/count", "expected at most 1048576 micro-batches in all");
        }
        const auto deviceCount =
            static_cast<std::int32_t>(list(at(m_document, "devices", ""), "/devices").size());
        if (deviceCount < 1)
            fail("/devices", "expected at least one device");
        readBatch(at(m_document, "batch", ""), plan);
        readPartitions(plan, deviceCount);
        if (const auto origin = m_document.find("origin"); origin != m_document.end()) {
            if (!origin->is_object())
                fail("/origin", "expected an object");
            for (const auto &[name, value] : origin->items()) {
                if (!value.is_string())
                    fail("/origin/" + name, "expected a text");
                plan.origin[name] = value.get<std::string>();
            }
        }
        m_deviceCount = deviceCount;
        const json &groups = list(at(m_document, "groups", ""), "/groups");
        for (std::size_t i = 0; i < groups.size(); ++i) {
            const std::string where = "/groups/" + std::to_string(i);
            auto &group = plan.groups.emplace_back();
            for (const json &member : list(groups[i], where))
                group.push_back(DeviceId{integer<std::int32_t>(member, where, 0, deviceCount - 1)});
        }
        const json &devices = m_document["devices"];
        for (std::size_t d = 0; d < devices.size(); ++d)
            plan.devices.push_back(readDevice(devices[d], "/devices/" + std::to_string(d), plan));
        return plan;
    }

private:
    [[noreturn]] static void fail(const std::string &where, const std::string &message)
    {
        throw Error{
            ErrorCode::InvalidInput, message, "write the plan again with planloom-cli solve --out", where};
    }

    static const json &at(const json &object, const char *name, const std::string &where)
    {
        if (!object.is_object())
            fail(where, "expected an object");
        const auto it = object.find(name);
        if (it == object.end())
            fail(where + "/" + name, "is missing");
        return *it;
    }

    static const json &list(const json &value, const std::string &where)
    {
        if (!value.is_array())
            fail(where, "expected a list");
        return value;
    }

    template<typename T>
    static T integer(const json &value, const std::string &where, std::int64_t least, std::int64_t most)
    {
        if (!value.is_number_integer()
            || (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)
            || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
            fail(where, "expected an integer from " + std::to_string(least) + " to " + std::to_string(most));
        return static_cast<T>(value.get<std::int64_t>());
    }

    /// A member that may be missing.
    static bool flag(const json &object, const char *name, const std::string &where, bool missing)
    {
        const auto it = object.find(name);
        if (it == object.end())
            return missing;
        if (!it->is_boolean())
            fail(where + "/" + name, "expected true or false");
        return it->get<bool>();
    }

    template<typename T>
    static std::vector<T> integers(
        const json &value, const std::string &where, std::int64_t least, std::int64_t most)
    {
        std::vector<T> result;
        for (const json &item : list(value, where))
            result.push_back(integer<T>(item, where, least, most));
        return result;
    }

    template<typename T, std::size_t N>
    static T named(const json &value, const std::string &where, const std::array<T, N> &kinds)
    {
        if (value.is_string())
            for (const T kind : kinds)
                if (value.get_ref<const std::string &>() == nameOf(kind))
                    return kind;
        fail(where, "expected a known name");
    }

    void readBatch(const json &value, ExecutionPlan &plan) const
    {
        const auto tensors = m_graph->tensors.size();
        const auto operators = m_graph->operators.size();
        BatchInfo &batch = plan.batch;
        batch.size =
            integer<std::int64_t>(at(value, "size", "/batch"), "/batch/size", 0, std::int64_t{1} << 40);
        batch.wholeBatches = flag(value, "whole_batches", "/batch", false);
        for (const auto role :
            integers<std::int32_t>(at(value, "tensor_role", "/batch"), "/batch/tensor_role", 0, 4))
            batch.tensorRole.push_back(static_cast<BatchRole>(role));
        batch.tensorDimension = integers<std::int32_t>(
            at(value, "tensor_dimension", "/batch"), "/batch/tensor_dimension", -1, 1 << 20);
        batch.operatorDimension = integers<std::int32_t>(
            at(value, "operator_dimension", "/batch"), "/batch/operator_dimension", -1, 1 << 20);
        for (const auto once :
            integers<std::int32_t>(at(value, "once_per_step", "/batch"), "/batch/once_per_step", 0, 1))
            batch.oncePerStep.push_back(once != 0);
        batch.mostMicroBatches = integer<std::int64_t>(
            at(value, "most_micro_batches", "/batch"), "/batch/most_micro_batches", 0, std::int64_t{1} << 40);
        if (batch.tensorRole.size() != tensors || batch.tensorDimension.size() != tensors
            || batch.operatorDimension.size() != operators || batch.oncePerStep.size() != operators)
            fail("/batch", "expected one entry per tensor and per operator");
        for (std::size_t t = 0; t < tensors; ++t) {
            const Shape &shape = m_graph->tensors[t].type.shape;
            if (batch.tensorDimension[t] >= static_cast<std::int32_t>(shape.size()))
                fail("/batch/tensor_dimension/" + std::to_string(t), "the tensor has fewer dimensions");
            if (batch.tensorRole[t] == BatchRole::Split
                && (batch.tensorDimension[t] < 0
                    || shape[static_cast<std::size_t>(batch.tensorDimension[t])] % batchCuts(plan) != 0))
                fail("/batch/tensor_dimension/" + std::to_string(t),
                    "micro-batches do not divide this dimension");
        }
        for (std::size_t o = 0; o < operators; ++o)
            if (batch.operatorDimension[o]
                >= static_cast<std::int32_t>(m_graph->operators[o].annotation.dimensions.size()))
                fail("/batch/operator_dimension/" + std::to_string(o), "the operator has fewer dimensions");
    }

    void readPartitions(ExecutionPlan &plan, std::int32_t deviceCount) const
    {
        const json &decisions = list(at(m_document, "decisions", ""), "/decisions");
        if (decisions.size() != m_graph->operators.size())
            fail("/decisions", "expected one per operator");
        for (std::size_t o = 0; o < decisions.size(); ++o) {
            const std::string where = "/decisions/" + std::to_string(o);
            Partition partition;
            for (const json &item : list(at(decisions[o], "splits", where), where + "/splits")) {
                Split split;
                const json &kind = at(item, "kind", where + "/splits");
                if (kind == "dimension")
                    split.kind = SplitKind::Dimension;
                else if (kind == "value")
                    split.kind = SplitKind::Value;
                else if (kind != "replicate")
                    fail(where + "/splits", "expected a kind of split");
                split.parts =
                    integer<std::int32_t>(at(item, "parts", where), where + "/splits/parts", 1, 1 << 20);
                if (split.kind == SplitKind::Dimension)
                    split.dimension = integer<std::int32_t>(at(item, "dimension", where),
                        where + "/splits/dimension", 0,
                        static_cast<std::int64_t>(m_graph->operators[o].annotation.dimensions.size()) - 1);
                if (item.contains("sizes"))
                    split.sizes = integers<std::int64_t>(
                        item["sizes"], where + "/splits/sizes", 1, std::int64_t{1} << 40);
                if (const auto axis = item.find("axis"); axis != item.end()) {
                    if (!axis->is_string())
                        fail(where + "/splits/axis", "expected a text");
                    split.axis = axis->get<std::string>();
                }
                if (const auto over = item.find("over"); over != item.end()) {
                    const auto named = std::find(kSplitOver.begin() + 1, kSplitOver.end(), *over);
                    if (named == kSplitOver.end())
                        fail(where + "/splits/over", "expected \"units\", \"slices\" or \"lanes\"");
                    split.over = static_cast<SplitOver>(named - kSplitOver.begin());
                }
                partition.splits.push_back(std::move(split));
            }
            std::int64_t parts = 1;
            for (const Split &split : partition.splits)
                if ((parts *= split.parts) > (1 << 20))
                    fail(where + "/splits", "expected at most 1048576 parts");
            const OperatorId op{static_cast<std::int32_t>(o)};
            const std::vector<Range> outer = microBatchRanges(plan.batch, *m_graph, op, 0, batchCuts(plan));
            if (const auto legal = checkPartition(m_graph->at(op), partition, outer); !legal)
                fail(where + "/splits", legal.error().message);
            std::vector<DeviceId> devices;
            for (const auto d : integers<std::int32_t>(
                     at(decisions[o], "devices", where), where + "/devices", 0, deviceCount - 1))
                devices.push_back(DeviceId{d});
            if (static_cast<std::int64_t>(devices.size()) != parts / unitParts(partition))
                fail(where + "/devices", "expected one device per part");
            if (const auto precision = decisions[o].find("precision"); precision != decisions[o].end()) {
                plan.precisions.resize(decisions.size());
                plan.precisions[o] = readPrecision(*precision, where + "/precision");
            }
            plan.partitions.push_back(std::move(partition));
            plan.placement.push_back(std::move(devices));
            plan.attention.push_back(readAttention(decisions[o], where));
            if (decisions[o].contains("weight_versions")) {
                plan.weightVersions.resize(decisions.size(), 1);
                plan.weightVersions[o] = integer<std::int32_t>(
                    decisions[o]["weight_versions"], where + "/weight_versions", 1, kMostWeightVersions);
            }
        }
    }

    AttentionMode readAttention(const json &decision, const std::string &where) const
    {
        const auto found = decision.find("attention");
        if (found == decision.end())
            return AttentionMode::Fused;
        const auto mode = found->is_string() ? attentionModeNamed(found->get<std::string>()) : std::nullopt;
        if (!mode)
            fail(where + "/attention", "expected fused or plain");
        return *mode;
    }

    /// What is missing is Float32.
    static Precision readPrecision(const json &value, const std::string &where)
    {
        if (!value.is_object())
            fail(where, "expected an object");
        Precision precision;
        const auto type = [&](const char *name, DataType &member, bool (*fits)(DataType)) {
            const auto it = value.find(name);
            if (it == value.end())
                return;
            const auto known = it->is_string() ? dataTypeOfShortName(it->get_ref<const std::string &>())
                                               : std::optional<DataType>{};
            if (!known || !fits(*known))
                fail(where + "/" + name, "expected a known type");
            member = *known;
        };
        type("compute", precision.compute, isComputeType);
        type("storage", precision.storage, isStorageType);
        type("gradient", precision.gradient, isStorageType);
        type("reduction", precision.reduction, isStorageType);
        type("optimizer", precision.optimizer, isStorageType);
        if (const auto it = value.find("scale"); it != value.end())
            precision.lossScale = integer<double>(*it, where + "/scale", 1, kMostLossScale);
        return precision;
    }

    DeviceProgram readDevice(const json &value, const std::string &where, const ExecutionPlan &plan) const
    {
        DeviceProgram program;
        const json &buffers = list(at(value, "buffers", where), where + "/buffers");
        for (std::size_t b = 0; b < buffers.size(); ++b)
            program.buffers.push_back(readBuffer(buffers[b], where + "/buffers/" + std::to_string(b)));
        const json &setup = list(at(value, "setup", where), where + "/setup");
        for (std::size_t i = 0; i < setup.size(); ++i)
            program.setup.push_back(
                readInstruction(setup[i], where + "/setup/" + std::to_string(i), program, plan));
        const json &segments = list(at(value, "segments", where), where + "/segments");
        for (std::size_t s = 0; s < segments.size(); ++s) {
            const std::string place = where + "/segments/" + std::to_string(s);
            Segment segment;
            segment.kind = named(at(segments[s], "kind", place), place + "/kind", kSegmentKinds);
            segment.stage.index = integer<std::int32_t>(
                at(segments[s], "stage", place), place + "/stage", 0, plan.stageCount - 1);
            if (const auto slice = segments[s].find("slice"); slice != segments[s].end())
                segment.slice = integer<std::int32_t>(*slice, place + "/slice", 0, 1 << 20);
            if (const auto lane = segments[s].find("lane"); lane != segments[s].end())
                segment.lane = integer<std::int32_t>(*lane, place + "/lane", 0, kMostBlockLanes - 1);
            const json &instructions = list(at(segments[s], "instructions", place), place + "/instructions");
            for (std::size_t i = 0; i < instructions.size(); ++i)
                segment.instructions.push_back(readInstruction(
                    instructions[i], place + "/instructions/" + std::to_string(i), program, plan));
            program.segments.push_back(std::move(segment));
        }
        for (const json &entry : list(at(value, "schedule", where), where + "/schedule")) {
            const auto pair = integers<std::int32_t>(entry, where + "/schedule", 0, 1 << 24);
            const bool sliced = pair.size() == 4;
            if ((pair.size() != 2 && !sliced) || pair[0] >= static_cast<std::int32_t>(program.segments.size())
                || pair[1] >= plan.microBatches)
                fail(where + "/schedule",
                    "expected [segment, micro-batch] or [segment, micro-batch, begin, end]");
            const auto count = static_cast<std::int32_t>(
                program.segments[static_cast<std::size_t>(pair[0])].instructions.size());
            if (sliced && (pair[2] > pair[3] || pair[3] > count))
                fail(where + "/schedule",
                    "expected a slice of " + std::to_string(count) + " instructions, found ["
                        + std::to_string(pair[2]) + ", " + std::to_string(pair[3]) + ")");
            program.schedule.push_back(
                {pair[0], pair[1], sliced ? pair[2] : 0, sliced && pair[3] < count ? pair[3] : -1});
        }
        return program;
    }

    BufferInfo readBuffer(const json &value, const std::string &where) const
    {
        BufferInfo buffer;
        buffer.tensor.index = integer<std::int32_t>(at(value, "tensor", where), where + "/tensor", 0,
            static_cast<std::int64_t>(m_graph->tensors.size()) - 1);
        const Shape &shape = m_graph->at(buffer.tensor).type.shape;
        buffer.dataType = m_graph->at(buffer.tensor).type.dataType;
        if (value.contains("type")) {
            const DataType type = named(value["type"], where + "/type", kBufferTypes);
            if (buffer.dataType != DataType::Float32 && type != buffer.dataType)
                fail(where + "/type", "only float32 tensors take other types");
            buffer.dataType = type;
        }
        const json &box = list(at(value, "box", where), where + "/box");
        if (box.size() != shape.size())
            fail(where + "/box", "expected " + std::to_string(shape.size()) + " ranges");
        for (std::size_t d = 0; d < box.size(); ++d) {
            const auto range = integers<std::int64_t>(box[d], where + "/box", 0, shape[d]);
            if (range.size() != 2 || range[0] > range[1])
                fail(where + "/box", "expected [begin, end] inside the tensor");
            buffer.index.ranges.push_back({range[0], range[1]});
        }
        if (value.contains("summands"))
            buffer.summands = integers<std::int32_t>(value["summands"], where + "/summands", 0, 1 << 28);
        if (!std::is_sorted(buffer.summands.begin(), buffer.summands.end()))
            fail(where + "/summands", "expected ascending numbers");
        if (value.contains("value_part")) {
            const auto pair = integers<std::int32_t>(value["value_part"], where + "/value_part", 0, 1 << 20);
            if (pair.size() != 2 || pair[0] >= pair[1])
                fail(where + "/value_part", "expected [index, count]");
            buffer.valuePart = {pair[0], pair[1]};
        }
        buffer.unweighed = flag(value, "unweighed", where, false);
        buffer.perMicroBatch = flag(value, "per_micro_batch", where, true);
        buffer.persistent = flag(value, "persistent", where, false);
        buffer.memory = named(at(value, "memory", where), where + "/memory", kMemoryKinds);
        if (value.contains("place"))
            buffer.place = named(value["place"], where + "/place", kMemoryPlaces);
        if (value.contains("share"))
            buffer.share = named(value["share"], where + "/share", kUnitShares);
        if (value.contains("versions"))
            buffer.versions =
                integer<std::int16_t>(value["versions"], where + "/versions", 1, kMostWeightVersions);
        if (value.contains("staleness"))
            buffer.staleness =
                integer<std::int16_t>(value["staleness"], where + "/staleness", 0, kMostWeightVersions - 1);
        if (buffer.share == UnitShare::Shard) {
            buffer.shardDimension = integer<std::int8_t>(at(value, "shard_dimension", where),
                where + "/shard_dimension", 0, static_cast<std::int64_t>(shape.size()) - 1);
            buffer.shardEnd = integer<std::int64_t>(at(value, "shard_end", where), where + "/shard_end", 0,
                shape[static_cast<std::size_t>(buffer.shardDimension)]);
        }
        return buffer;
    }

    Instruction readInstruction(const json &value, const std::string &where, const DeviceProgram &program,
        const ExecutionPlan &plan) const
    {
        const auto buffers = static_cast<std::int64_t>(program.buffers.size());
        Instruction instruction;
        instruction.kind = named(at(value, "kind", where), where + "/kind", kInstructionKinds);
        const auto optional = [&](const char *name, std::int64_t most) {
            return value.contains(name) ? integer<std::int32_t>(value[name], where + "/" + name, 0, most)
                                        : std::int32_t{-1};
        };
        instruction.op.index = optional("operator", static_cast<std::int64_t>(m_graph->operators.size()) - 1);
        instruction.recompute = flag(value, "recompute", where, false);
        instruction.joined = flag(value, "joined", where, false);
        instruction.overlaps = flag(value, "overlaps", where, false);
        instruction.waits = flag(value, "waits", where, false);
        instruction.acrossUnits = flag(value, "across_units", where, false);
        if (value.contains("queue"))
            instruction.queue = named(value["queue"], where + "/queue", kQueueKinds);
        instruction.group = optional("group", static_cast<std::int64_t>(plan.groups.size()) - 1);
        instruction.peer.index = optional("peer", m_deviceCount - 1);
        instruction.tag = optional("tag", 1 << 30);
        instruction.dimension = optional("dimension", 64);
        instruction.gatherDimension = optional("gather_dimension", 64);
        if (value.contains("combination"))
            instruction.combination = named(value["combination"], where + "/combination", kCombinations);
        if (value.contains("inputs"))
            instruction.inputs = integers<std::int32_t>(value["inputs"], where + "/inputs", -1, buffers - 1);
        if (value.contains("outputs"))
            instruction.outputs =
                integers<std::int32_t>(value["outputs"], where + "/outputs", -1, buffers - 1);
        if (value.contains("deaths"))
            instruction.deaths = integers<std::int32_t>(value["deaths"], where + "/deaths", 0, buffers - 1);
        if (instruction.kind == InstructionKind::Kernel) {
            if (!instruction.op)
                fail(where, "expected an operator");
            const auto o = static_cast<std::size_t>(instruction.op.index);
            instruction.part = integer<std::int32_t>(at(value, "part", where), where + "/part", 0,
                static_cast<std::int64_t>(plan.placement[o].size()) - 1);
            const Operator &op = m_graph->operators[o];
            if (instruction.inputs.size() != op.inputs.size()
                || instruction.outputs.size() != op.outputs.size())
                fail(where, "expected one buffer per slot of " + op.name);
        }
        return instruction;
    }

    const json &m_document;
    const Graph *m_graph = nullptr;
    std::int32_t m_deviceCount = 1;
};

} // namespace

Result<ExecutionPlan> executionPlanFromJson(std::string_view text)
{
    try {
        // Depth is bounded by what is read; the parser itself is not recursive.
        const json document = json::parse(text);
        return Reader(document).read();
    } catch (Error &error) {
        return std::move(error);
    } catch (const json::parse_error &error) {
        return Error{ErrorCode::InvalidInput, "this is not JSON",
            "write the plan again with planloom-cli solve --out", "byte:" + std::to_string(error.byte)};
    } catch (const json::exception &error) {
        return Error{ErrorCode::InvalidInput, std::string("a value has the wrong type: ") + error.what(),
            "write the plan again with planloom-cli solve --out", "/"};
    }
}

} // namespace planloom
