#include "engine/analyse/idle_chain.h"

#include "engine/analyse/statistics.h"
#include "engine/base/words.h"
#include "engine/hardware/device_word.h"

#include <algorithm>

namespace planloom {

namespace {

const Segment &segmentOfSpan(const ExecutionPlan &plan, const Timeline &timeline, std::int32_t span)
{
    const auto s = static_cast<std::size_t>(span);
    return plan.devices[static_cast<std::size_t>(timeline.spans.device[s])]
        .segments[static_cast<std::size_t>(timeline.spans.segment[s])];
}

const Instruction &instructionOfSpan(const ExecutionPlan &plan, const Timeline &timeline, std::int32_t span)
{
    return segmentOfSpan(plan, timeline, span)
        .instructions[static_cast<std::size_t>(timeline.spans.instruction[static_cast<std::size_t>(span)])];
}

/// Both are of one block, on whatever of its devices.
bool sameBlockOf(const ExecutionPlan &plan, const Timeline &timeline, std::int32_t a, std::int32_t b)
{
    const Segment &one = segmentOfSpan(plan, timeline, a);
    const Segment &other = segmentOfSpan(plan, timeline, b);
    return one.kind == other.kind && one.stage == other.stage && one.lane == other.lane
        && one.slice == other.slice
        && timeline.spans.microBatch[static_cast<std::size_t>(a)]
        == timeline.spans.microBatch[static_cast<std::size_t>(b)];
}

bool isCompute(const Timeline &timeline, std::int32_t span)
{
    return timeline.spans.queue[static_cast<std::size_t>(span)] == QueueKind::Compute;
}

/// Two ends of one transfer, or two transfers of one kind: they read as one.
bool sameCommunication(const ExecutionPlan &plan, const Timeline &timeline, std::int32_t a, std::int32_t b)
{
    return !isCompute(timeline, a) && !isCompute(timeline, b) && sameBlockOf(plan, timeline, a, b)
        && instructionOfSpan(plan, timeline, a).kind == instructionOfSpan(plan, timeline, b).kind;
}

} // namespace

std::vector<WaitLink> blocksBehind(const ExecutionPlan &plan, const Timeline &timeline, const Bubble &bubble)
{
    const SpanColumns &spans = timeline.spans;
    const auto startOf = [&](std::int32_t span) { return spans.start[static_cast<std::size_t>(span)]; };
    const auto endOf = [&](std::int32_t span) {
        return startOf(span) + spans.duration[static_cast<std::size_t>(span)];
    };
    std::vector<WaitLink> links;
    // A communication inside a block that is waited for as a whole is part of it; of the blocks that stand
    // around the bubble it is what is waited for.
    const auto [first, end] =
        rowsOf(timeline, static_cast<std::size_t>(bubble.device.index), QueueKind::Compute);
    const auto behind = bubble.behind >= 0 ? static_cast<std::size_t>(bubble.behind) : end;
    const std::int32_t ranBefore = behind > first ? static_cast<std::int32_t>(behind) - 1 : -1;
    const auto isAround = [&](std::int32_t span) {
        return (bubble.behind >= 0 && sameBlockOf(plan, timeline, span, bubble.behind))
            || (ranBefore >= 0 && sameBlockOf(plan, timeline, span, ranBefore));
    };
    const auto take = [&](std::int32_t span, std::int32_t wait, WaitKind kind, DeviceId last, RowId row) {
        const bool inside = isCompute(timeline, span)
            || (isPass(segmentOfSpan(plan, timeline, span).kind)
                && spans.queue[static_cast<std::size_t>(span)] == QueueKind::Tensor && !isAround(span));
        const std::int64_t begin = std::clamp(startOf(span), bubble.begin, bubble.end);
        if (!links.empty()) {
            WaitLink &nearer = links.back();
            const bool merges = nearer.communicates
                ? !inside && sameCommunication(plan, timeline, nearer.span, span)
                : inside && sameBlockOf(plan, timeline, nearer.span, span);
            if (merges) {
                nearer.begin = begin;
                nearer.endWait = wait + 1;
                return;
            }
        }
        WaitLink link;
        link.firstWait = wait;
        link.endWait = wait + 1;
        link.span = span;
        link.begin = begin;
        link.end = std::clamp(endOf(span), bubble.begin, bubble.end);
        link.communicates = !inside;
        link.kind = kind;
        link.last = last;
        link.row = row;
        links.push_back(link);
    };
    if (bubble.behind < 0 && !bubble.waits.empty()) // the step's end waits for the last span
        take(bubble.waits.front().span, -1, WaitKind::Order, {}, {});
    for (std::size_t w = 0; w < bubble.waits.size(); ++w) {
        const Wait &wait = bubble.waits[w];
        if (wait.on < 0 || endOf(wait.on) <= bubble.begin)
            break; // it ran before the bubble began
        const DeviceId own{spans.device[static_cast<std::size_t>(wait.span)]};
        const DeviceId last{spans.device[static_cast<std::size_t>(wait.member)]};
        take(wait.on, static_cast<std::int32_t>(w), wait.kind, last == own ? DeviceId{} : last, wait.row);
    }
    return links;
}

std::string blockWords(const ExecutionPlan &plan, const StagesInParts &stages, const std::string &deviceWord,
    const Timeline &timeline, std::int32_t span, DeviceId on, bool communicates)
{
    const auto s = static_cast<std::size_t>(span);
    const Segment &segment = segmentOfSpan(plan, timeline, span);
    const DeviceId device{timeline.spans.device[s]};
    const auto named = [&](DeviceId which) { return deviceWord + " " + std::to_string(which.index); };
    const std::int32_t microBatch = timeline.spans.microBatch[s];
    const std::string block =
        blockLabel(segment.kind, microBatch, stages.partOf(segment), stages.wideOf(segment.stage));
    if (!communicates)
        return block + (device == on ? "" : " on " + named(device));
    const Instruction &instruction = instructionOfSpan(plan, timeline, span);
    std::string words = std::string("the ")
        + (instruction.kind == InstructionKind::Recv ? "receive" : nameOf(instruction.kind));
    switch (segment.kind) {
    case SegmentKind::Transfer: {
        // Of what serves an operator it is known which pass it is for.
        const bool known = instruction.op.valid();
        words += known ? " of "
                + blockLabel(directionOf(plan, segment, instruction) == Direction::Backward
                        ? SegmentKind::Backward
                        : SegmentKind::Forward,
                    microBatch, {})
                       : " of micro-batch " + std::to_string(microBatch);
        break;
    }
    case SegmentKind::Reduce:
        words += " of gradients";
        break;
    case SegmentKind::Optimizer:
    case SegmentKind::Prologue:
        words += " of weights";
        break;
    default:
        words += " of " + block;
    }
    if (instruction.peer.valid())
        words += (instruction.kind == InstructionKind::Recv ? " from " : " to ") + named(instruction.peer);
    else if (device != on)
        words += " on " + named(device);
    return words;
}

std::string sentenceOf(const ExecutionPlan &plan, const Cluster &cluster, const Timeline &timeline,
    const Bubble &bubble, const std::vector<WaitLink> &links)
{
    constexpr std::size_t kMostLinks = 4; // more are not read in one breath
    const std::string word = deviceWord(cluster);
    const StagesInParts stages = stagesInParts(plan);
    const auto named = [&](DeviceId which) { return word + " " + std::to_string(which.index); };
    const auto deviceOf = [&](std::int32_t span) {
        return DeviceId{timeline.spans.device[static_cast<std::size_t>(span)]};
    };
    std::string sentence =
        named(bubble.device) + " waits " + formatNanoseconds(bubble.end - bubble.begin) + ": ";
    if (links.empty())
        return sentence + "nothing is left to do";
    DeviceId on = bubble.device;
    bool communicates = false; // what waits is a communication
    if (bubble.behind >= 0) {
        communicates = !isCompute(timeline, bubble.behind);
        sentence += "its " + blockWords(plan, stages, word, timeline, bubble.behind, on, communicates);
    } else {
        sentence += "it has done its part, and the step ends with ";
    }
    std::int32_t nearer = bubble.behind;
    for (std::size_t i = 0; i < links.size() && i < kMostLinks; ++i) {
        const WaitLink &link = links[i];
        if (i > 0)
            sentence += ", which";
        if (nearer >= 0) {
            if (link.last.valid()) {
                on = link.last;
                const InstructionKind kind = instructionOfSpan(plan, timeline, nearer).kind;
                sentence += " " + named(on)
                    + (kind == InstructionKind::Recv        ? " sends only after "
                            : kind == InstructionKind::Send ? " takes only after "
                                                            : " joins only after ");
            } else if (link.kind == WaitKind::Data) {
                sentence += " needs ";
            } else if (link.kind == WaitKind::Reuse) {
                sentence += " needs the memory of ";
            } else {
                sentence += communicates ? " is queued behind " : " comes after ";
            }
        }
        sentence += blockWords(plan, stages, word, timeline, link.span, on, link.communicates);
        if (!link.communicates || instructionOfSpan(plan, timeline, link.span).peer.valid())
            on = deviceOf(link.span);
        communicates = link.communicates;
        nearer = link.span;
    }
    if (links.size() > kMostLinks) {
        const auto longest = std::max_element(links.begin(), links.end(),
            [](const WaitLink &a, const WaitLink &b) { return a.end - a.begin < b.end - b.begin; });
        sentence += ", and so on through " + std::to_string(links.size() - kMostLinks)
            + " more; the longest is "
            + blockWords(plan, stages, word, timeline, longest->span, {}, longest->communicates) + ", "
            + formatNanoseconds(longest->end - longest->begin);
    }
    return sentence;
}

} // namespace planloom
