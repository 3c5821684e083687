#include "engine/analyse/span_errors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

const Instruction &instructionAt(const ExecutionPlan &plan, const SpanColumns &spans, std::size_t row)
{
    return plan.devices[static_cast<std::size_t>(spans.device[row])]
        .segments[static_cast<std::size_t>(spans.segment[row])]
        .instructions[static_cast<std::size_t>(spans.instruction[row])];
}

std::int64_t movedBy(InstructionKind kind, std::int64_t members, std::int64_t bytes)
{
    if (members < 1)
        return bytes;
    switch (kind) {
    case InstructionKind::AllReduce:
        return 2 * bytes / members * (members - 1);
    case InstructionKind::AllGather:
    case InstructionKind::ReduceScatter:
    case InstructionKind::AllToAll:
        return bytes / members * (members - 1);
    default:
        return bytes;
    }
}

} // namespace

std::string spanWords(const ExecutionPlan &plan, const Instruction &instruction, std::int32_t microBatch)
{
    std::string what = nameOf(instruction.kind);
    if (instruction.op.valid())
        what += " of " + plan.graph->at(instruction.op).name;
    if (plan.microBatches > 1)
        what += ", micro-batch " + std::to_string(microBatch);
    return what;
}

std::int64_t communicatedBytes(const DeviceProgram &program, const Instruction &instruction)
{
    std::int64_t most = 0;
    for (const auto *list : {&instruction.inputs, &instruction.outputs}) {
        for (const std::int32_t buffer : *list) {
            if (buffer >= 0)
                most = std::max(most, sizeOf(program.buffers[static_cast<std::size_t>(buffer)]).count);
        }
    }
    return most;
}

SpanErrors spanErrors(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured, std::size_t most)
{
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t>;
    const auto keyOf = [](const SpanColumns &spans, std::size_t row) {
        return Key{spans.device[row], spans.segment[row], spans.instruction[row], spans.microBatch[row]};
    };
    const auto instructionOf = [&plan](const Key &key) -> const Instruction & {
        return plan.devices[static_cast<std::size_t>(std::get<0>(key))]
            .segments[static_cast<std::size_t>(std::get<1>(key))]
            .instructions[static_cast<std::size_t>(std::get<2>(key))];
    };
    std::map<InstructionKind, SpanError> kinds;
    std::map<Key, double> before;
    for (std::size_t row = 0; row < predicted.spans.size(); ++row) {
        const Key key = keyOf(predicted.spans, row);
        const double seconds = static_cast<double>(predicted.spans.duration[row]) * 1e-9;
        before[key] += seconds;
        kinds[instructionOf(key).kind].predicted += seconds;
    }
    std::vector<SpanError> spans;
    for (auto &[kind, total] : kinds)
        total.count = 0;
    for (std::size_t row = 0; row < measured.spans.size(); ++row) {
        const Key key = keyOf(measured.spans, row);
        const Instruction &instruction = instructionOf(key);
        const double seconds = static_cast<double>(measured.spans.duration[row]) * 1e-9;
        SpanError &total = kinds.try_emplace(instruction.kind, SpanError{.count = 0}).first->second;
        total.measured += seconds;
        ++total.count;
        const auto found = before.find(key);
        if (found == before.end())
            continue;
        spans.push_back({spanWords(plan, instruction, std::get<3>(key)), std::get<0>(key), instruction.op, 1,
            found->second, seconds});
    }
    const auto off = [](const SpanError &span) { return std::abs(span.measured - span.predicted); };
    const auto end = spans.begin() + static_cast<std::ptrdiff_t>(std::min(most, spans.size()));
    std::partial_sort(spans.begin(), end, spans.end(), [&](const SpanError &a, const SpanError &b) {
        return std::tuple(-off(a), a.device, a.what) < std::tuple(-off(b), b.device, b.what);
    });
    spans.erase(end, spans.end());
    SpanErrors errors;
    errors.worst = std::move(spans);
    for (auto &[kind, total] : kinds) {
        total.what = nameOf(kind);
        errors.kinds.push_back(std::move(total));
    }
    std::stable_sort(errors.kinds.begin(), errors.kinds.end(),
        [](const SpanError &a, const SpanError &b) { return a.measured > b.measured; });
    return errors;
}

std::vector<CollectiveFigures> collectivesBySize(
    const ExecutionPlan &plan, const Timeline &predicted, const Timeline &measured)
{
    using Key = std::tuple<InstructionKind, std::int64_t, std::int32_t>; // kind, minus bytes, members
    struct Sums {
        std::int64_t predictedCount = 0;
        std::int64_t predicted = 0;
        std::int64_t count = 0;
        std::int64_t measured = 0;
        std::int64_t best = 0;
    };
    std::map<Key, Sums> sums;
    const auto collect = [&](const Timeline &timeline, bool isMeasured) {
        for (std::size_t row = 0; row < timeline.spans.size(); ++row) {
            const Instruction &instruction = instructionAt(plan, timeline.spans, row);
            // A send and its recv are one: the recv's span is mostly waiting.
            if (!isCommunication(instruction.kind) || instruction.kind == InstructionKind::Recv)
                continue;
            const std::int32_t members = instruction.group >= 0
                ? static_cast<std::int32_t>(plan.groups[static_cast<std::size_t>(instruction.group)].size())
                : 2;
            Sums &of = sums[{instruction.kind,
                -communicatedBytes(
                    plan.devices[static_cast<std::size_t>(timeline.spans.device[row])], instruction),
                members}];
            const std::int64_t duration = timeline.spans.duration[row];
            if (!isMeasured) {
                ++of.predictedCount;
                of.predicted += duration;
            } else {
                of.best = of.count == 0 ? duration : std::min(of.best, duration);
                ++of.count;
                of.measured += duration;
            }
        }
    };
    collect(predicted, false);
    collect(measured, true);
    std::vector<CollectiveFigures> figures;
    for (const auto &[key, of] : sums) {
        const auto &[kind, minusBytes, members] = key;
        CollectiveFigures each{
            kind, members, -minusBytes, 0, of.count, 0, 0, static_cast<double>(of.best) * 1e-9};
        each.moved = kind == InstructionKind::Send ? each.bytes : movedBy(kind, members, each.bytes);
        if (of.predictedCount > 0)
            each.predicted =
                static_cast<double>(of.predicted) * 1e-9 / static_cast<double>(of.predictedCount);
        if (of.count > 0)
            each.measured = static_cast<double>(of.measured) * 1e-9 / static_cast<double>(of.count);
        figures.push_back(each);
    }
    return figures;
}

} // namespace planloom
