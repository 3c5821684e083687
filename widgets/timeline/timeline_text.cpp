#include "widgets/timeline/timeline_text.h"

#include "engine/analyse/communication.h"
#include "engine/hardware/device_word.h"
#include "widgets/common/format.h"
#include "widgets/timeline/timeline_layout.h"
#include "widgets/timeline/timeline_pieces.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

std::string wordOf(SegmentKind kind)
{
    switch (kind) {
    case SegmentKind::Prologue:
        return "once per step";
    case SegmentKind::Forward:
        return "forward";
    case SegmentKind::Backward:
        return "backward";
    case SegmentKind::InputGradient:
        return "gradients of inputs";
    case SegmentKind::WeightGradient:
        return "gradients of weights";
    case SegmentKind::Transfer:
        return "between stages";
    case SegmentKind::Reduce:
        return "gradients over replicas";
    case SegmentKind::Optimizer:
        return "optimizer step";
    }
    return {};
}

const DeviceProgram *programOf(const TimelineScene &scene, std::size_t row)
{
    const auto device = static_cast<std::size_t>(scene.timeline->spans.device[row]);
    return device < scene.plan->devices.size() ? &scene.plan->devices[device] : nullptr;
}

} // namespace

std::string wordsOf(QueueKind queue)
{
    return std::string(nameOf(queue)) + " queue";
}

namespace {

/// How many instructions are launched with that one, by the one launch of all of them: those that follow a
/// first one in its queue, each joined to the one before.
std::size_t launchedWith(const Segment &segment, std::size_t instruction)
{
    const std::vector<Instruction> &all = segment.instructions;
    const QueueKind queue = queueOf(all[instruction]);
    std::size_t others = 0;
    for (std::size_t i = instruction + 1; i < all.size(); ++i) {
        if (queueOf(all[i]) != queue)
            continue;
        if (!all[i].joined)
            break;
        ++others;
    }
    bool joined = all[instruction].joined;
    for (std::size_t i = instruction; joined && i-- > 0;) {
        if (queueOf(all[i]) != queue)
            continue;
        ++others;
        joined = all[i].joined;
    }
    return others;
}

/// Which of the reductions of its stage's gradients a segment is: "2 of 5"; empty for the only one.
std::string bucketOf(const DeviceProgram &program, const Segment &segment)
{
    std::size_t count = 0;
    std::size_t place = 0;
    for (const Segment &each : program.segments) {
        if (each.kind != SegmentKind::Reduce || each.stage != segment.stage)
            continue;
        ++count;
        if (&each == &segment)
            place = count;
    }
    return count < 2 ? std::string{} : std::to_string(place) + " of " + std::to_string(count);
}

/// " 2/4": which of the parts of an operator that its device runs one after another, in turns; empty where it
/// runs one.
std::string turnText(const ExecutionPlan &plan, const Instruction &instruction)
{
    const std::vector<DeviceId> &placed = plan.placement[static_cast<std::size_t>(instruction.op.index)];
    if (static_cast<std::size_t>(instruction.part) >= placed.size())
        return {};
    const auto part = placed.begin() + instruction.part;
    const auto parts = std::count(placed.begin(), placed.end(), *part);
    if (parts < 2)
        return {};
    return " " + std::to_string(std::count(placed.begin(), part, *part) + 1) + "/" + std::to_string(parts);
}

} // namespace

std::string labelOf(const TimelineBlock &block)
{
    return blockLabel(block.kind, block.microBatch, block.part, block.wide);
}

std::string labelOf(const TimelineScene &scene, std::size_t row)
{
    const Instruction *instruction = scene.findInstruction(row);
    if (!instruction)
        return {};
    if (instruction->kind == InstructionKind::Kernel && instruction->op.valid()) {
        const std::string name =
            shortName(scene.graph(), scene.graph().at(instruction->op)) + turnText(*scene.plan, *instruction);
        return instruction->recompute ? "↻ " + name : name;
    }
    return nameOf(instruction->kind);
}

std::string labelOfRun(const TimelineScene &scene, LaneRows rows)
{
    return "×" + formatCount(static_cast<std::int64_t>(rows.end - rows.begin)) + " · "
        + formatNanoseconds(scene.before[rows.end].busy - scene.before[rows.begin].busy);
}

std::optional<double> busyErrorOf(
    const TimelineScene &predicted, const TimelineScene &measured, std::size_t device)
{
    const auto &before = predicted.timeline->busy;
    const auto &after = measured.timeline->busy;
    if (device >= before.size() || device >= after.size() || before[device].count() <= 0
        || after[device].count() <= 0)
        return {};
    const auto expected = static_cast<double>(before[device].count());
    return 100 * (static_cast<double>(after[device].count()) - expected) / expected;
}

Bytes bytesOf(const TimelineScene &scene, std::size_t row)
{
    const Instruction *instruction = scene.findInstruction(row);
    const DeviceProgram *program = programOf(scene, row);
    Bytes sum;
    if (!instruction || !program)
        return sum;
    const auto &buffers = instruction->outputs.empty() ? instruction->inputs : instruction->outputs;
    for (const std::int32_t buffer : buffers) {
        if (buffer >= 0 && static_cast<std::size_t>(buffer) < program->buffers.size())
            sum += sizeOf(program->buffers[static_cast<std::size_t>(buffer)]);
    }
    return sum;
}

std::vector<FactLine> factsOfSpan(const TimelineScene &scene, std::size_t row)
{
    const SpanColumns &spans = scene.timeline->spans;
    const Instruction *instruction = scene.findInstruction(row);
    const Segment *segment = scene.findSegment(row);
    if (!instruction || !segment)
        return {};
    std::vector<FactLine> facts;
    const Graph &graph = scene.graph();
    const bool kernel = instruction->kind == InstructionKind::Kernel;
    if (instruction->op.valid()) {
        const Operator &op = graph.at(instruction->op);
        facts.push_back({{}, kernel ? elided(op.name, 60) : nameOf(instruction->kind), -1});
        facts.push_back({kernel ? "Operator" : "Serves", kernel ? typeNameOf(op) : elided(op.name, 60), -1});
    } else {
        facts.push_back({{}, nameOf(instruction->kind), -1});
    }
    if (kernel) {
        const auto &placed = scene.plan->placement[static_cast<std::size_t>(instruction->op.index)];
        std::string what = instruction->recompute ? "runs again (recompute)" : wordOf(segment->kind);
        if (placed.size() > 1)
            what +=
                ", part " + std::to_string(instruction->part + 1) + " of " + std::to_string(placed.size());
        facts.push_back({"Runs", what, -1});
    } else {
        facts.push_back({"Part of", wordOf(segment->kind), -1});
    }
    if (segment->kind == SegmentKind::Reduce) {
        if (const std::string bucket = bucketOf(*programOf(scene, row), *segment); !bucket.empty())
            facts.push_back({"Bucket", bucket, -1});
    }
    if (spans.queue[row] != QueueKind::Compute)
        facts.push_back({"Runs in", wordsOf(spans.queue[row]), -1});
    if (const std::size_t others = launchedWith(*segment, static_cast<std::size_t>(spans.instruction[row]));
        others > 0)
        facts.push_back({"Launched",
            "together with " + std::to_string(others) + (others == 1 ? " other" : " others"), -1});
    if (scene.plan->microBatches > 1 && (isPass(segment->kind) || segment->kind == SegmentKind::Transfer)) {
        facts.push_back({"Micro-batch", indexAmong(spans.microBatch[row], scene.plan->microBatches), -1});
    }
    if (segment->stage.valid() && scene.plan->stageCount > 1)
        facts.push_back({"Stage", std::to_string(segment->stage.index), -1});
    if (instruction->peer.valid())
        facts.push_back(
            {"Peer", deviceWord(scene.cluster) + " " + std::to_string(instruction->peer.index), -1});
    if (instruction->group >= 0 && static_cast<std::size_t>(instruction->group) < scene.plan->groups.size()) {
        facts.push_back({"Group",
            deviceWord(scene.cluster) + " "
                + rangesOf(scene.plan->groups[static_cast<std::size_t>(instruction->group)], kFewRuns),
            -1});
    }
    facts.push_back({"Start", formatNanoseconds(spans.start[row]), -1});
    facts.push_back({"Duration", formatNanoseconds(spans.duration[row]), -1});
    if (!scene.decidedBy.empty()) { // predicted, not measured
        const DeviceId device{spans.device[row]};
        const auto alone = durationAlone(*scene.plan, scene.cluster, device, *instruction);
        if (alone && spans.duration[row] > *alone)
            facts.push_back({"Alone", formatNanoseconds(*alone) + ": others use its links at that time", -1});
    }
    if (const Bytes bytes = bytesOf(scene, row); bytes.count > 0)
        facts.push_back({kernel ? "Writes" : "Moves", formatBytes(bytes), -1});
    return facts;
}

std::vector<FactLine> factsOfMemory(const TimelineScene &scene, const DeviceLane &lane, std::size_t entry)
{
    const MemoryCurve &curve = scene.timeline->memory[static_cast<std::size_t>(lane.device.index)];
    std::vector<FactLine> facts{{{}, "Memory at " + formatNanoseconds(curve.time[entry]), -1},
        {"In use", formatBytes({lane.memory.total(entry)}), -1}};
    for (std::int32_t kind = kMemoryKindCount - 1; kind >= 0; --kind) {
        const std::int64_t bytes = curve.bytes[entry][static_cast<std::size_t>(kind)];
        if (bytes > 0)
            facts.push_back({nameOf(static_cast<MemoryKind>(kind)), formatBytes({bytes}), kind});
    }
    facts.push_back({"Peak of the step", formatBytes(curve.peak), -1});
    facts.push_back({"Capacity",
        formatBytes({static_cast<std::int64_t>(scene.deviceModel(lane.device).memory.value)}), -1});
    return facts;
}

std::vector<FactLine> factsOfBubble(const TimelineScene &scene, std::int64_t begin, std::int64_t end)
{
    const double step = std::max(static_cast<double>(scene.timeline->step.count()), 1.0);
    const double share = 100 * static_cast<double>(end - begin) / step;
    std::string percent = std::to_string(static_cast<int>(share * 10 + 0.5));
    percent.insert(percent.size() - 1, percent.size() == 1 ? "0." : ".");
    return {{{}, "Idle", -1}, {"Start", formatNanoseconds(begin), -1},
        {"Duration", formatNanoseconds(end - begin), -1}, {"Of the step", percent + "%", -1}};
}

std::vector<FactLine> factsOfMeasured(
    const TimelineScene &predicted, const TimelineScene &measured, std::size_t row)
{
    std::vector<FactLine> facts = factsOfSpan(measured, row);
    for (FactLine &fact : facts) {
        if (fact.name == "Duration")
            fact.name = "Measured";
    }
    // The same instruction of the same micro-batch; a device runs it once.
    const SpanColumns &spans = measured.timeline->spans;
    const SpanColumns &other = predicted.timeline->spans;
    const std::int32_t device = spans.device[row];
    if (static_cast<std::size_t>(device) >= predicted.lanes.size())
        return facts;
    const OperatorId op = measured.operatorOf(row);
    if (!op.valid())
        return facts;
    for (const std::size_t each : rowsOf(predicted, {op})) {
        if (other.device[each] != device || other.microBatch[each] != spans.microBatch[row]
            || other.segment[each] != spans.segment[row] || other.instruction[each] != spans.instruction[row])
            continue;
        facts.push_back({"Predicted", formatNanoseconds(other.duration[each]), -1});
        if (other.duration[each] > 0) {
            const double error = 100.0 * static_cast<double>(spans.duration[row] - other.duration[each])
                / static_cast<double>(other.duration[each]);
            facts.push_back({"Difference",
                (error < 0 ? "−" : "+") + formatInUnit(std::abs(error), {1, "%"}, 0.1) + "%", -1});
        }
        break;
    }
    return facts;
}

std::vector<FactLine> factsOfBlock(const TimelineScene &scene, const DeviceLane &lane, std::size_t block)
{
    const TimelineBlock &of = lane.blocks[block];
    std::vector<FactLine> facts{{{}, labelOf(of), -1}, {"Runs", wordOf(of.kind), -1}};
    if (of.part.lane >= 0)
        facts.push_back({"Lane", std::to_string(of.part.lane), -1});
    if (of.part.slice >= 0)
        facts.push_back({"Slice", std::to_string(of.part.slice), -1});
    if (of.isOrdered() && scene.plan->microBatches > 1) {
        facts.push_back({"Micro-batch", indexAmong(of.microBatch, scene.plan->microBatches), -1});
    }
    if (of.stage.valid() && scene.plan->stageCount > 1)
        facts.push_back({"Stage", std::to_string(of.stage.index), -1});
    std::size_t count = 0;
    std::int64_t busy = 0;
    for (const LaneRows &own : lane.piecesOf(block)) {
        count += own.end - own.begin;
        busy += scene.before[own.end].busy - scene.before[own.begin].busy;
    }
    if (const auto pair = sideBySideOf(lane, block))
        facts.push_back({"Side by side with", labelOf(lane.blocks[pair->other]), -1});
    facts.push_back({"Spans", formatCount(static_cast<std::int64_t>(count)), -1});
    facts.push_back({"Start", formatNanoseconds(of.begin), -1});
    facts.push_back({"Duration", formatNanoseconds(of.end - of.begin), -1});
    facts.push_back({"Busy", formatNanoseconds(busy), -1});
    return facts;
}

std::vector<FactLine> factsOfWarmUp(const WarmUp &warmUp, bool editable)
{
    std::vector<FactLine> facts{{{}, "Warm-up of stage " + std::to_string(warmUp.stage.index), -1},
        {"In flight", std::to_string(warmUp.count) + (warmUp.count == 1 ? " micro-batch" : " micro-batches"),
            -1},
        {"Until", formatNanoseconds(warmUp.end), -1}};
    if (editable)
        facts.push_back({{}, "Drag its right end, or press + and -", -1});
    return facts;
}

FactLine factOfSlack(std::int64_t nanoseconds)
{
    return {"Slack", nanoseconds <= 0 ? "none: on a critical path" : formatNanoseconds(nanoseconds), -1};
}

std::string sentenceOf(const TimelineScene &scene, const DeviceLane &lane, std::size_t block)
{
    const TimelineBlock &of = lane.blocks[block];
    std::string sentence = wordOf(of.kind);
    if (of.isOrdered())
        sentence += " of micro-batch " + std::to_string(of.microBatch);
    if (of.part.slice >= 0)
        sentence += ", slice " + std::to_string(of.part.slice);
    if (of.part.lane >= 0)
        sentence += ", lane " + std::to_string(of.part.lane);
    if (of.stage.valid())
        sentence += ", stage " + std::to_string(of.stage.index);
    sentence += " on " + deviceWord(scene.cluster) + " " + std::to_string(lane.device.index) + ", "
        + formatNanoseconds(of.end - of.begin);
    const auto pair = sideBySideOf(lane, block);
    return pair ? sentence + ", side by side with " + labelOf(lane.blocks[pair->other]) : sentence;
}

std::string sentenceOf(const TimelineScene &scene, std::size_t row)
{
    const SpanColumns &spans = scene.timeline->spans;
    const Segment *segment = scene.findSegment(row);
    std::string sentence = labelOf(scene, row);
    if (segment) {
        sentence += ", ";
        sentence += wordOf(segment->kind);
        if (isPass(segment->kind))
            sentence += " of micro-batch " + std::to_string(spans.microBatch[row]);
        if (segment->stage.valid())
            sentence += ", stage " + std::to_string(segment->stage.index);
    }
    sentence += " on " + deviceWord(scene.cluster) + " " + std::to_string(spans.device[row]) + ", "
        + formatNanoseconds(spans.duration[row]);
    return spans.queue[row] == QueueKind::Compute ? sentence : sentence + ", " + wordsOf(spans.queue[row]);
}

} // namespace planloom
