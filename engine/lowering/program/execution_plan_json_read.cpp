#include "engine/lowering/program/execution_plan_json.h"

#include "engine/lowering/program/execution_plan_words.h"
#include "engine/lowering/program/graph_json.h"
#include "engine/lowering/program/plan_value.h"

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

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;
constexpr std::array kCombinations{Combination::Sum, Combination::Max, Combination::LogSumExp};
constexpr std::array kUnitShares{UnitShare::Same, UnitShare::Partial, UnitShare::Shard};
constexpr std::array kQueueKinds{QueueKind::Compute, QueueKind::Tensor, QueueKind::Data, QueueKind::Pipeline,
    QueueKind::PipelineBack, QueueKind::Copy};

std::vector<DeviceId> devicesFromJson(const PlanValue &value, std::size_t count)
{
    std::vector<DeviceId> devices;
    for (const PlanValue &item : value.items())
        devices.push_back(DeviceId{item.index(count)});
    return devices;
}

Split splitFromJson(const PlanValue &item, const Operator &op)
{
    Split split;
    const json &kind = item.at("kind").json();
    if (kind == "dimension")
        split.kind = SplitKind::Dimension;
    else if (kind == "value")
        split.kind = SplitKind::Value;
    else if (kind != "replicate")
        item.fail("expected a kind of split");
    split.parts = item.at("parts").integer(1, 1 << 20);
    if (split.kind == SplitKind::Dimension)
        split.dimension = item.at("dimension").index(op.annotation.dimensions.size());
    if (const auto sizes = item.find("sizes"))
        split.sizes = sizes->integers<std::int64_t>(0, kMostSize);
    if (const auto axis = item.find("axis"))
        split.axis = axis->text();
    if (const auto over = item.find("over")) {
        const auto named = std::find(kSplitOver.begin() + 1, kSplitOver.end(), over->json());
        if (named == kSplitOver.end())
            over->fail("expected \"units\", \"slices\" or \"lanes\"");
        split.over = static_cast<SplitOver>(named - kSplitOver.begin());
    }
    return split;
}

AttentionMode attentionFromJson(const PlanValue &value)
{
    const json &name = value.json();
    const auto mode = name.is_string() ? attentionModeNamed(name.get<std::string>()) : std::nullopt;
    if (!mode)
        value.fail("expected fused or plain");
    return *mode;
}

/// What is missing is Float32.
Precision precisionFromJson(const PlanValue &value)
{
    if (!value.json().is_object())
        value.fail("expected an object");
    Precision precision;
    const auto type = [&](const char *name, DataType &member, bool (*fits)(DataType)) {
        const auto found = value.find(name);
        if (!found)
            return;
        const json &own = found->json();
        const auto known = own.is_string() ? dataTypeOfShortName(own.get_ref<const std::string &>())
                                           : std::optional<DataType>{};
        if (!known || !fits(*known))
            found->fail("expected a known type");
        member = *known;
    };
    type("compute", precision.compute, isComputeType);
    type("storage", precision.storage, isStorageType);
    type("gradient", precision.gradient, isStorageType);
    type("reduction", precision.reduction, isStorageType);
    type("optimizer", precision.optimizer, isStorageType);
    if (const auto scale = value.find("scale"))
        precision.lossScale = scale->integer<double>(1, kMostLossScale);
    return precision;
}

/// Reads a plan; the first thing that is wrong ends it with the JSON pointer of its place.
class Reader
{
public:
    explicit Reader(const json &document)
        : m_document(document, "")
    {
    }

    ExecutionPlan read()
    {
        if (!m_document.json().is_object() || m_document.at("format").json() != "planloom-execution-plan")
            m_document.fail("expected \"planloom-execution-plan\"", "/format");
        const PlanValue whole = m_document.at("version");
        if (const json &version = whole.json();
            !version.is_number_integer() || version < kPlanVersion || version > kNumbersVersion)
            whole.fail(
                "expected 1 to 6, found " + version.dump(-1, ' ', false, json::error_handler_t::replace));
        ExecutionPlan plan;
        auto graph = graphFromJson(m_document.at("graph").json());
        if (!graph)
            throw std::move(graph).error();
        plan.graph = std::make_shared<const Graph>(*std::move(graph));
        m_graph = plan.graph.get();
        readSizes(plan);
        const auto devices = m_document.at("devices").numbered();
        if (devices.empty())
            m_document.fail("expected at least one device", "/devices");
        m_deviceCount = devices.size();
        readBatch(m_document.at("batch"), plan);
        readPartitions(plan);
        if (const auto origin = m_document.find("origin")) {
            if (!origin->json().is_object())
                origin->fail("expected an object");
            for (const auto &[name, value] : origin->json().items())
                plan.origin[name] = origin->at(name).text();
        }
        for (const PlanValue &group : m_document.at("groups").numbered())
            plan.groups.push_back(devicesFromJson(group, m_deviceCount));
        for (const PlanValue &device : devices)
            plan.devices.push_back(readDevice(device, plan));
        return plan;
    }

private:
    void readSizes(ExecutionPlan &plan) const
    {
        plan.microBatches = m_document.at("micro_batches").integer(1, 1 << 20);
        if (const auto updates = m_document.find("updates"))
            plan.updates = updates->integer(1, plan.microBatches);
        if (plan.microBatches % plan.updates != 0)
            m_document.fail("expected a divisor of the number of micro-batches", "/updates");
        plan.stageCount = m_document.at("stages").integer(1, 1 << 20);
        if (const auto units = m_document.find("units")) {
            plan.units.count = units->at("count").integer(1, 1 << 20);
            plan.units.inner = units->at("inner").integer(1, 1 << 20);
            if (std::int64_t{plan.units.count} * plan.microBatches > (1 << 20))
                units->fail("expected at most 1048576 micro-batches in all", "/count");
        }
    }

    void readBatch(const PlanValue &value, ExecutionPlan &plan) const
    {
        const auto tensors = m_graph->tensors.size();
        const auto operators = m_graph->operators.size();
        BatchInfo &batch = plan.batch;
        batch.size = value.at("size").integer<std::int64_t>(0, kMostSize);
        batch.wholeBatches = value.flag("whole_batches", false);
        for (const auto role : value.at("tensor_role").integers(0, 4))
            batch.tensorRole.push_back(static_cast<BatchRole>(role));
        batch.tensorDimension = value.at("tensor_dimension").integers(-1, 1 << 20);
        batch.operatorDimension = value.at("operator_dimension").integers(-1, 1 << 20);
        for (const auto once : value.at("once_per_step").integers(0, 1))
            batch.oncePerStep.push_back(once != 0);
        batch.mostMicroBatches = value.at("most_micro_batches").integer<std::int64_t>(0, kMostSize);
        if (batch.tensorRole.size() != tensors || batch.tensorDimension.size() != tensors
            || batch.operatorDimension.size() != operators || batch.oncePerStep.size() != operators)
            value.fail("expected one entry per tensor and per operator");
        for (std::size_t t = 0; t < tensors; ++t) {
            const Shape &shape = m_graph->tensors[t].type.shape;
            const std::string place = "/tensor_dimension/" + std::to_string(t);
            if (batch.tensorDimension[t] >= static_cast<std::int32_t>(shape.size()))
                value.fail("the tensor has fewer dimensions", place);
            if (batch.tensorRole[t] == BatchRole::Split
                && (batch.tensorDimension[t] < 0
                    || shape[at(batch.tensorDimension[t])] % batchCuts(plan) != 0))
                value.fail("micro-batches do not divide this dimension", place);
        }
        for (std::size_t o = 0; o < operators; ++o)
            if (batch.operatorDimension[o]
                >= static_cast<std::int32_t>(m_graph->operators[o].annotation.dimensions.size()))
                value.fail("the operator has fewer dimensions", "/operator_dimension/" + std::to_string(o));
    }

    void readPartitions(ExecutionPlan &plan) const
    {
        const PlanValue all = m_document.at("decisions");
        const auto decisions = all.numbered();
        if (decisions.size() != m_graph->operators.size())
            all.fail("expected one per operator");
        for (std::size_t o = 0; o < decisions.size(); ++o) {
            const PlanValue &decision = decisions[o];
            const OperatorId op{static_cast<std::int32_t>(o)};
            Partition partition;
            const PlanValue splits = decision.at("splits");
            for (const PlanValue &item : splits.items())
                partition.splits.push_back(splitFromJson(item, m_graph->at(op)));
            std::int64_t parts = 1;
            for (const Split &split : partition.splits)
                if ((parts *= split.parts) > (1 << 20))
                    splits.fail("expected at most 1048576 parts");
            const std::vector<Range> outer = microBatchRanges(plan.batch, *m_graph, op, 0, batchCuts(plan));
            if (const auto legal = checkPartition(m_graph->at(op), partition, outer); !legal)
                splits.fail(legal.error().message);
            const PlanValue devices = decision.at("devices");
            plan.placement.push_back(devicesFromJson(devices, m_deviceCount));
            if (static_cast<std::int64_t>(plan.placement.back().size()) != parts / unitParts(partition))
                devices.fail("expected one device per part");
            if (const auto precision = decision.find("precision")) {
                plan.precisions.resize(decisions.size());
                plan.precisions[o] = precisionFromJson(*precision);
            }
            plan.partitions.push_back(std::move(partition));
            const auto attention = decision.find("attention");
            plan.attention.push_back(attention ? attentionFromJson(*attention) : AttentionMode::Fused);
            if (const auto versions = decision.find("weight_versions")) {
                plan.weightVersions.resize(decisions.size(), 1);
                plan.weightVersions[o] = versions->integer(1, kMostWeightVersions);
            }
        }
    }

    DeviceProgram readDevice(const PlanValue &value, const ExecutionPlan &plan) const
    {
        DeviceProgram program;
        for (const PlanValue &buffer : value.at("buffers").numbered())
            program.buffers.push_back(readBuffer(buffer));
        for (const PlanValue &instruction : value.at("setup").numbered())
            program.setup.push_back(readInstruction(instruction, program, plan));
        for (const PlanValue &own : value.at("segments").numbered()) {
            Segment segment;
            segment.kind = own.at("kind").named(kSegmentKinds);
            segment.stage.index = own.at("stage").integer(0, plan.stageCount - 1);
            if (const auto slice = own.find("slice"))
                segment.slice = slice->integer(0, 1 << 20);
            if (const auto lane = own.find("lane"))
                segment.lane = lane->integer(0, kMostBlockLanes - 1);
            for (const PlanValue &instruction : own.at("instructions").numbered())
                segment.instructions.push_back(readInstruction(instruction, program, plan));
            program.segments.push_back(std::move(segment));
        }
        for (const PlanValue &entry : value.at("schedule").items()) {
            const auto pair = entry.integers(0, 1 << 24);
            const bool sliced = pair.size() == 4;
            if ((pair.size() != 2 && !sliced) || pair[0] >= static_cast<std::int32_t>(program.segments.size())
                || pair[1] >= plan.microBatches)
                entry.fail("expected [segment, micro-batch] or [segment, micro-batch, begin, end]");
            const auto count = static_cast<std::int32_t>(program.segments[at(pair[0])].instructions.size());
            if (sliced && (pair[2] > pair[3] || pair[3] > count))
                entry.fail("expected a slice of " + std::to_string(count) + " instructions, found ["
                    + std::to_string(pair[2]) + ", " + std::to_string(pair[3]) + ")");
            program.schedule.push_back(
                {pair[0], pair[1], sliced ? pair[2] : 0, sliced && pair[3] < count ? pair[3] : -1});
        }
        return program;
    }

    BufferInfo readBuffer(const PlanValue &value) const
    {
        BufferInfo buffer;
        buffer.tensor.index = value.at("tensor").index(m_graph->tensors.size());
        const Shape &shape = m_graph->at(buffer.tensor).type.shape;
        buffer.dataType = m_graph->at(buffer.tensor).type.dataType;
        if (const auto own = value.find("type")) {
            const DataType type = own->named(kBufferTypes);
            if (buffer.dataType != DataType::Float32 && type != buffer.dataType)
                own->fail("only float32 tensors take other types");
            buffer.dataType = type;
        }
        const PlanValue box = value.at("box");
        const auto ranges = box.items();
        if (ranges.size() != shape.size())
            box.fail("expected " + std::to_string(shape.size()) + " ranges");
        for (std::size_t d = 0; d < ranges.size(); ++d) {
            const auto range = ranges[d].integers<std::int64_t>(0, shape[d]);
            if (range.size() != 2 || range[0] > range[1])
                box.fail("expected [begin, end] inside the tensor");
            buffer.index.ranges.push_back({range[0], range[1]});
        }
        if (const auto summands = value.find("summands"))
            buffer.summands = summands->integers(0, 1 << 28);
        if (!std::is_sorted(buffer.summands.begin(), buffer.summands.end()))
            value.fail("expected ascending numbers", "/summands");
        if (const auto part = value.find("value_part")) {
            const auto pair = part->integers(0, 1 << 20);
            if (pair.size() != 2 || pair[0] >= pair[1])
                part->fail("expected [index, count]");
            buffer.valuePart = {pair[0], pair[1]};
        }
        buffer.unweighed = value.flag("unweighed", false);
        buffer.perMicroBatch = value.flag("per_micro_batch", true);
        buffer.persistent = value.flag("persistent", false);
        buffer.memory = value.at("memory").named(kMemoryKinds);
        if (const auto place = value.find("place"))
            buffer.place = place->named(kMemoryPlaces);
        if (const auto share = value.find("share"))
            buffer.share = share->named(kUnitShares);
        if (const auto versions = value.find("versions"))
            buffer.versions = versions->integer<std::int16_t>(1, kMostWeightVersions);
        if (const auto staleness = value.find("staleness"))
            buffer.staleness = staleness->integer<std::int16_t>(0, kMostWeightVersions - 1);
        if (buffer.share == UnitShare::Shard) {
            buffer.shardDimension = static_cast<std::int8_t>(value.at("shard_dimension").index(shape.size()));
            buffer.shardEnd =
                value.at("shard_end").integer<std::int64_t>(0, shape[at(buffer.shardDimension)]);
        }
        return buffer;
    }

    Instruction readInstruction(
        const PlanValue &value, const DeviceProgram &program, const ExecutionPlan &plan) const
    {
        Instruction instruction;
        instruction.kind = value.at("kind").named(kInstructionKinds);
        const auto optional = [&](const char *name, std::size_t count) {
            const auto found = value.find(name);
            return found ? found->index(count) : std::int32_t{-1};
        };
        instruction.op.index = optional("operator", m_graph->operators.size());
        for (const auto &[name, member] : kInstructionFlags)
            instruction.*member = value.flag(name, false);
        if (const auto queue = value.find("queue"))
            instruction.queue = queue->named(kQueueKinds);
        instruction.group = optional("group", plan.groups.size());
        instruction.peer.index = optional("peer", m_deviceCount);
        instruction.tag = optional("tag", (1 << 30) + 1);
        instruction.dimension = optional("dimension", 65);
        instruction.gatherDimension = optional("gather_dimension", 65);
        if (const auto combination = value.find("combination"))
            instruction.combination = combination->named(kCombinations);
        for (const auto &[name, member, least] : kInstructionBuffers)
            if (const auto buffers = value.find(name))
                instruction.*member =
                    buffers->integers(least, static_cast<std::int64_t>(program.buffers.size()) - 1);
        if (instruction.kind == InstructionKind::Kernel) {
            if (!instruction.op)
                value.fail("expected an operator");
            instruction.part = value.at("part").index(plan.placement[at(instruction.op)].size());
            const Operator &op = m_graph->at(instruction.op);
            if (instruction.inputs.size() != op.inputs.size()
                || instruction.outputs.size() != op.outputs.size())
                value.fail("expected one buffer per slot of " + op.name);
        }
        return instruction;
    }

    PlanValue m_document;
    const Graph *m_graph = nullptr;
    std::size_t m_deviceCount = 1;
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
