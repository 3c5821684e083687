#include "widgets/dag/dag_conversions.h"

#include "widgets/common/format.h"

#include <QtCore/QCoreApplication>

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

std::optional<Conversion> conversionOf(InstructionKind kind)
{
    switch (kind) {
    case InstructionKind::Select:
    case InstructionKind::Concat:
    case InstructionKind::Sum:
    case InstructionKind::ValueSelect:
    case InstructionKind::Cast:
    case InstructionKind::Weigh:
    case InstructionKind::Merge:
        return Conversion::Local;
    case InstructionKind::Load:
    case InstructionKind::Kernel:
    case InstructionKind::Accumulate:
    case InstructionKind::Store:
    case InstructionKind::Update:
        return std::nullopt;
    default:
        return isCommunication(kind) ? std::optional(Conversion::Communication) : std::nullopt;
    }
}

/// The tensor an instruction is about and the bytes it takes in.
std::pair<TensorId, std::int64_t> subjectOf(const DeviceProgram &program, const Instruction &instruction)
{
    for (const auto *side : {&instruction.inputs, &instruction.outputs}) {
        for (const auto buffer : *side) {
            if (buffer < 0)
                continue;
            const auto &info = program.buffers[static_cast<std::size_t>(buffer)];
            return {info.tensor, sizeOf(info).count};
        }
    }
    return {};
}

} // namespace

std::vector<TensorConversion> conversionsAround(
    const ExecutionPlan &plan, OperatorId op, const std::stop_token &stop)
{
    std::vector<TensorConversion> result;
    const Graph &graph = *plan.graph;
    if (!op.valid() || static_cast<std::size_t>(op.index) >= graph.operators.size())
        return result;
    const auto &used = graph.at(op);
    for (const bool input : {true, false}) {
        for (const auto tensor : input ? used.inputs : used.outputs) {
            const bool known = std::any_of(result.begin(), result.end(),
                [&](const TensorConversion &each) { return each.tensor == tensor && each.input == input; });
            if (tensor.valid() && !known)
                result.push_back({.tensor = tensor, .input = input});
        }
    }
    // Steps that serve another user of an input are that user's; those of its producer are everyone's.
    const auto concerns = [&](const TensorConversion &each, const Instruction &instruction) {
        if (!each.input || instruction.op == op || !instruction.op.valid())
            return true;
        const auto &made = graph.at(instruction.op).outputs;
        return std::find(made.begin(), made.end(), each.tensor) != made.end();
    };
    for (const auto &program : plan.devices) {
        for (const auto &segment : program.segments) {
            if (stop.stop_requested())
                return {};
            for (const auto &instruction : segment.instructions) {
                const auto conversion = conversionOf(instruction.kind);
                if (!conversion)
                    continue;
                const auto [tensor, bytes] = subjectOf(program, instruction);
                for (auto &each : result) {
                    if (each.tensor != tensor || !concerns(each, instruction)
                        || *conversion < each.conversion)
                        continue;
                    const bool stronger = *conversion > each.conversion;
                    if (stronger || bytes > each.bytes.count
                        || (bytes == each.bytes.count && instruction.kind < each.kind)) {
                        each.conversion = *conversion;
                        each.kind = instruction.kind;
                        each.bytes.count = bytes;
                    }
                }
            }
        }
    }
    return result;
}

QString textOf(const TensorConversion &conversion)
{
    const auto tr = [](const char *text) { return QCoreApplication::translate("DagView", text); };
    switch (conversion.conversion) {
    case Conversion::None:
        return tr("as is");
    case Conversion::Local:
        return tr("local %1").arg(QLatin1String(nameOf(conversion.kind)));
    case Conversion::Communication:
        break;
    }
    return QStringLiteral("%1 %2").arg(
        QLatin1String(nameOf(conversion.kind)), QString::fromStdString(formatBytes(conversion.bytes)));
}

} // namespace planloom
