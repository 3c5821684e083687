#include "engine/interop/perfetto.h"

#include <cinttypes>
#include <cstdio>
#include <string>
#include <string_view>

namespace planloom {

std::string quotedForTrace(std::string_view text)
{
    std::string result = "\"";
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\') {
            result += '\\';
            result += character;
        } else if (byte < 0x20) {
            char buffer[8];
            std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(byte));
            result += buffer;
        } else {
            result += character;
        }
    }
    return result + "\"";
}

std::string microsecondsForTrace(std::int64_t nanoseconds)
{
    char buffer[48];
    std::snprintf(
        buffer, sizeof buffer, "%" PRId64 ".%03d", nanoseconds / 1000, static_cast<int>(nanoseconds % 1000));
    return buffer;
}

namespace {

class PlanTraceWriter
{
public:
    PlanTraceWriter(std::ostream &stream, const ExecutionPlan &plan, const Timeline &timeline)
        : m_stream(stream)
        , m_plan(plan)
        , m_timeline(timeline)
    {
    }

    void write()
    {
        m_stream << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
        for (std::size_t d = 0; d < m_plan.devices.size(); ++d)
            writeNames(d);
        for (std::size_t row = 0; row < m_timeline.spans.size(); ++row)
            writeSpan(row);
        for (std::size_t d = 0; d < m_timeline.memory.size(); ++d)
            writeMemory(d);
        m_stream << "\n]}\n";
    }

private:
    std::ostream &event()
    {
        m_stream << (m_first ? "\n" : ",\n");
        m_first = false;
        return m_stream;
    }

    void writeNames(std::size_t device)
    {
        event() << R"({"ph":"M","name":"process_name","pid":)" << device << R"(,"args":{"name":"device )"
                << device << "\"}}";
        event() << R"({"ph":"M","name":"process_sort_index","pid":)" << device << R"(,"args":{"sort_index":)"
                << device << "}}";
        for (int q = 0; q < kQueueCount; ++q) {
            const auto queue = static_cast<QueueKind>(q);
            if (device + 1 >= m_timeline.deviceBegin.size())
                return;
            if (const auto [begin, end] = rowsOf(m_timeline, device, queue); begin == end)
                continue;
            event() << R"({"ph":"M","name":"thread_name","pid":)" << device << R"(,"tid":)" << q
                    << R"(,"args":{"name":")" << nameOf(queue) << R"( queue"}})";
            event() << R"({"ph":"M","name":"thread_sort_index","pid":)" << device << R"(,"tid":)" << q
                    << R"(,"args":{"sort_index":)" << q << "}}";
        }
    }

    void writeSpan(std::size_t row)
    {
        const SpanColumns &spans = m_timeline.spans;
        const auto device = static_cast<std::size_t>(spans.device[row]);
        const auto segmentIndex = static_cast<std::size_t>(spans.segment[row]);
        const auto instructionIndex = static_cast<std::size_t>(spans.instruction[row]);
        if (device >= m_plan.devices.size() || segmentIndex >= m_plan.devices[device].segments.size())
            return;
        const Segment &segment = m_plan.devices[device].segments[segmentIndex];
        if (instructionIndex >= segment.instructions.size())
            return;
        const Instruction &instruction = segment.instructions[instructionIndex];
        const auto thread = static_cast<int>(spans.queue[row]);

        event() << R"({"ph":"X","name":)" << quotedForTrace(titleOf(instruction)) << R"(,"cat":")"
                << nameOf(segment.kind) << R"(","pid":)" << device << R"(,"tid":)" << thread << R"(,"ts":)"
                << microsecondsForTrace(spans.start[row]) << R"(,"dur":)"
                << microsecondsForTrace(spans.duration[row]) << R"(,"args":{"instruction":")"
                << textOf(instruction) << R"(","micro-batch":)" << spans.microBatch[row] << R"(,"stage":)"
                << segment.stage.index;
        if (segment.slice > 0)
            m_stream << R"(,"slice":)" << segment.slice;
        if (segment.lane > 0)
            m_stream << R"(,"lane":)" << segment.lane;
        if (instruction.kind == InstructionKind::Kernel)
            m_stream << R"(,"part":)" << instruction.part;
        if (instruction.group >= 0)
            m_stream << R"(,"group":)" << instruction.group;
        if (instruction.recompute)
            m_stream << R"(,"recompute":true)";
        m_stream << "}}";

        const bool sends = instruction.kind == InstructionKind::Send;
        if (sends || instruction.kind == InstructionKind::Recv) {
            const std::int64_t at = spans.start[row] + (sends ? 0 : spans.duration[row]);
            event() << R"({"ph":")" << (sends ? "s" : "f") << R"(","name":"send","cat":"transfer","id":")"
                    << instruction.tag << "." << spans.microBatch[row] << R"(","pid":)" << device
                    << R"(,"tid":)" << thread << R"(,"ts":)" << microsecondsForTrace(at)
                    << (sends ? "}" : R"(,"bp":"e"})");
        }
    }

    std::string titleOf(const Instruction &instruction) const
    {
        const std::string kind = textOf(instruction);
        if (!instruction.op.valid() || !m_plan.graph
            || static_cast<std::size_t>(instruction.op.index) >= m_plan.graph->operators.size())
            return kind;
        const std::string &name = m_plan.graph->at(instruction.op).name;
        return instruction.kind == InstructionKind::Kernel ? name : kind + " " + name;
    }

    void writeMemory(std::size_t device)
    {
        const MemoryCurve &curve = m_timeline.memory[device];
        for (std::size_t i = 0; i < curve.time.size(); ++i) {
            event() << R"({"ph":"C","name":"memory","pid":)" << device << R"(,"ts":)"
                    << microsecondsForTrace(curve.time[i]) << R"(,"args":{)";
            for (int kind = 0; kind < kMemoryKindCount; ++kind)
                m_stream << (kind > 0 ? "," : "") << '"' << nameOf(static_cast<MemoryKind>(kind))
                         << "\":" << curve.bytes[i][static_cast<std::size_t>(kind)];
            m_stream << "}}";
        }
    }

    std::ostream &m_stream;
    const ExecutionPlan &m_plan;
    const Timeline &m_timeline;
    bool m_first = true;
};

} // namespace

bool writePerfetto(std::ostream &stream, const ExecutionPlan &plan, const Timeline &timeline)
{
    PlanTraceWriter(stream, plan, timeline).write();
    stream.flush();
    return stream.good();
}

} // namespace planloom
