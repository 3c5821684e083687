#include "engine/interop/chakra/chakra.h"

#include "engine/analyse/dependencies.h"
#include "engine/analyse/span_errors.h"
#include "engine/base/files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>

namespace planloom {

namespace {

/// A message as protobuf writes it (encoding of proto3): fields that are not said are their type's zero.
class ProtobufMessage
{
public:
    void number(std::uint32_t field, std::uint64_t value)
    {
        varint(field << 3U); // wire type 0
        varint(value);
    }
    void text(std::uint32_t field, std::string_view value)
    {
        varint(field << 3U | 2U); // wire type 2: a length, then bytes
        varint(value.size());
        m_bytes += value;
    }
    void message(std::uint32_t field, const ProtobufMessage &value) { text(field, value.m_bytes); }
    void numbers(std::uint32_t field, const std::vector<std::uint64_t> &values)
    {
        if (values.empty())
            return;
        ProtobufMessage packed;
        for (const std::uint64_t value : values)
            packed.varint(value);
        message(field, packed);
    }
    /// Behind its length, as the stream of a file has it.
    void appendTo(std::string &stream) const
    {
        ProtobufMessage length;
        length.varint(m_bytes.size());
        stream += length.m_bytes + m_bytes;
    }

private:
    void varint(std::uint64_t value)
    {
        for (; value >= 0x80; value >>= 7U)
            m_bytes += static_cast<char>(value | 0x80U);
        m_bytes += static_cast<char>(value);
    }

    std::string m_bytes;
};

/// Fields of et_def.proto.
enum AttributeField : std::uint32_t {
    kAttributeName = 1,
    kInt32Value = 7,
    kInt64Value = 9,
    kBoolValue = 27,
    kTextValue = 29
};
enum NodeField : std::uint32_t {
    kNodeId = 1,
    kNodeName = 2,
    kNodeType = 3,
    kNodeDataDeps = 5,
    kNodeStart = 6,
    kNodeDuration = 7,
    kNodeAttribute = 10,
};
enum NodeType : std::uint32_t {
    kMemoryLoad = 2,
    kMemoryStore = 3,
    kCompute = 4,
    kSend = 5,
    kReceive = 6,
    kCollective = 7
};
constexpr const char *kSchemaVersion = "0.0.4";

NodeType typeOf(InstructionKind kind)
{
    switch (kind) {
    case InstructionKind::Send:
        return kSend;
    case InstructionKind::Recv:
        return kReceive;
    case InstructionKind::Fetch:
        return kMemoryLoad;
    case InstructionKind::Offload:
        return kMemoryStore;
    default:
        return isCommunication(kind) ? kCollective : kCompute;
    }
}

/// CollectiveCommType; nothing for what Chakra has no word for.
std::optional<std::uint64_t> collectiveTypeOf(InstructionKind kind)
{
    switch (kind) {
    case InstructionKind::AllReduce:
        return 0;
    case InstructionKind::AllGather:
        return 2;
    case InstructionKind::Broadcast:
        return 5;
    case InstructionKind::AllToAll:
    case InstructionKind::Shift: // every member sends to one other: the nearest that there is
        return 6;
    case InstructionKind::ReduceScatter:
        return 7;
    default:
        return {};
    }
}

void addAttribute(ProtobufMessage &node, std::string_view name, std::uint32_t field, std::uint64_t value)
{
    ProtobufMessage attribute;
    attribute.text(kAttributeName, name);
    attribute.number(field, value);
    node.message(kNodeAttribute, attribute);
}

class ChakraWriter
{
public:
    ChakraWriter(
        const ExecutionPlan &plan, const Timeline &timeline, const TimelineDependencies &dependencies)
        : m_plan(plan)
        , m_timeline(timeline)
        , m_dependencies(dependencies)
        , m_ids(timeline.spans.size(), 0)
    {
    }

    std::vector<std::string> write()
    {
        std::vector<std::string> traces(m_plan.devices.size());
        for (std::string &trace : traces) {
            ProtobufMessage metadata;
            metadata.text(1, kSchemaVersion);
            metadata.appendTo(trace);
        }
        // Every node behind those that it waits for, and numbered so.
        std::vector<std::uint64_t> next(traces.size(), 0);
        for (const std::int32_t span : m_dependencies.order)
            m_ids[at(span)] = next[static_cast<std::size_t>(m_timeline.spans.device[at(span)])]++;
        for (const std::int32_t span : m_dependencies.order)
            nodeOf(span).appendTo(traces[static_cast<std::size_t>(m_timeline.spans.device[at(span)])]);
        return traces;
    }

private:
    /// Number of a span among those of its device.
    std::uint64_t idOf(std::int32_t span) const { return m_ids[at(span)]; }

    const Instruction &instructionOf(std::int32_t span) const
    {
        const SpanColumns &spans = m_timeline.spans;
        return m_plan.devices[static_cast<std::size_t>(spans.device[at(span)])]
            .segments[static_cast<std::size_t>(spans.segment[at(span)])]
            .instructions[static_cast<std::size_t>(spans.instruction[at(span)])];
    }

    std::string titleOf(std::int32_t span, const Instruction &instruction) const
    {
        std::string title = textOf(instruction);
        if (instruction.op.valid())
            title += " " + m_plan.graph->at(instruction.op).name;
        return title + " #" + std::to_string(m_timeline.spans.microBatch[at(span)]);
    }

    ProtobufMessage nodeOf(std::int32_t span) const
    {
        const SpanColumns &spans = m_timeline.spans;
        const Instruction &instruction = instructionOf(span);
        ProtobufMessage node;
        node.number(kNodeId, idOf(span));
        node.text(kNodeName, titleOf(span, instruction));
        node.number(kNodeType, typeOf(instruction.kind));
        std::vector<std::uint64_t> needs;
        for (std::int32_t i = m_dependencies.needBegin[at(span)]; i < m_dependencies.needBegin[at(span) + 1];
             ++i)
            if (const std::int32_t other = m_dependencies.needs[at(i)].span;
                spans.device[at(other)] == spans.device[at(span)])
                needs.push_back(idOf(other));
        std::sort(needs.begin(), needs.end());
        node.numbers(kNodeDataDeps, needs);
        node.number(kNodeStart, static_cast<std::uint64_t>(spans.start[at(span)]) / 1000);
        node.number(kNodeDuration, (static_cast<std::uint64_t>(spans.duration[at(span)]) + 500) / 1000);
        addAttribute(node, "is_cpu_op", kBoolValue, 0);
        if (isCommunication(instruction.kind) && !isHostCopy(instruction.kind))
            addCommunication(node, span, instruction);
        return node;
    }

    void addCommunication(ProtobufMessage &node, std::int32_t span, const Instruction &instruction) const
    {
        const auto device = static_cast<std::size_t>(m_timeline.spans.device[at(span)]);
        addAttribute(node, "comm_size", kInt64Value,
            static_cast<std::uint64_t>(communicatedBytes(m_plan.devices[device], instruction)));
        if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv) {
            const bool sends = instruction.kind == InstructionKind::Send;
            const auto peer = static_cast<std::uint64_t>(instruction.peer.index);
            addAttribute(node, "comm_src", kInt32Value, sends ? device : peer);
            addAttribute(node, "comm_dst", kInt32Value, sends ? peer : device);
            addAttribute(node, "comm_tag", kInt32Value, static_cast<std::uint64_t>(instruction.tag));
            return;
        }
        if (const auto type = collectiveTypeOf(instruction.kind))
            addAttribute(node, "comm_type", kInt64Value, *type);
        ProtobufMessage group;
        group.text(kAttributeName, "pg_name");
        group.text(kTextValue, std::to_string(instruction.group));
        node.message(kNodeAttribute, group);
    }

    const ExecutionPlan &m_plan;
    const Timeline &m_timeline;
    const TimelineDependencies &m_dependencies;
    std::vector<std::uint64_t> m_ids; ///< By span.
};

} // namespace

Result<std::vector<std::string>> chakraTraces(const ExecutionPlan &plan, const Timeline &timeline)
{
    TRY(const TimelineDependencies dependencies, dependenciesOf(plan, timeline));
    return ChakraWriter(plan, timeline, dependencies).write();
}

std::string chakraGroups(const ExecutionPlan &plan)
{
    std::string text = "{";
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
        text += (g == 0 ? "\n  \"" : ",\n  \"") + std::to_string(g) + "\": [";
        for (std::size_t i = 0; i < plan.groups[g].size(); ++i)
            text += (i == 0 ? "" : ", ") + std::to_string(plan.groups[g][i].index);
        text += "]";
    }
    return text + "\n}\n";
}

Result<void> writeChakraFolder(const ExecutionPlan &plan, const std::vector<std::string> &traces,
    const std::filesystem::path &folder, const std::string &name)
{
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure)
        return Error{ErrorCode::Io, "the folder cannot be made: " + failure.message(), {}, folder.string()};
    for (std::size_t rank = 0; rank < traces.size(); ++rank)
        TRY_VOID(writeFile(folder / (name + "." + std::to_string(rank) + ".et"), traces[rank]));
    return writeFile(folder / "comm_groups.json", chakraGroups(plan));
}

} // namespace planloom
