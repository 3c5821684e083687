#include "engine/analyse/critical_path.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

std::int64_t startOf(const Timeline &timeline, std::int32_t span)
{
    return timeline.spans.start[static_cast<std::size_t>(span)];
}

std::int64_t endOf(const Timeline &timeline, std::int32_t span)
{
    const auto s = static_cast<std::size_t>(span);
    return timeline.spans.start[s] + timeline.spans.duration[s];
}

/// What a span waited for longest, and through which end of its communication.
struct Binding {
    std::int32_t on = -1;
    std::int32_t member = -1; ///< The span itself, or the end of its communication that came last.
    WaitKind kind = WaitKind::Order;
};

Binding bindingOf(const Timeline &timeline, const TimelineDependencies &dependencies, std::int32_t span)
{
    Binding binding{-1, span, WaitKind::Order};
    std::int64_t latest = std::numeric_limits<std::int64_t>::min();
    const auto consider = [&](std::int32_t member) {
        const auto m = static_cast<std::size_t>(member);
        for (std::int32_t e = dependencies.needBegin[m]; e < dependencies.needBegin[m + 1]; ++e) {
            const Dependency &need = dependencies.needs[static_cast<std::size_t>(e)];
            // Of what ended at the same time, data say more than order.
            const std::int64_t end = endOf(timeline, need.span);
            if (end > latest || (end == latest && need.kind < binding.kind)) {
                latest = end;
                binding = {need.span, member, need.kind};
            }
        }
    };
    consider(span);
    if (const std::int32_t meeting = dependencies.meeting[static_cast<std::size_t>(span)]; meeting >= 0) {
        const auto m = static_cast<std::size_t>(meeting);
        for (std::int32_t k = dependencies.memberBegin[m]; k < dependencies.memberBegin[m + 1]; ++k)
            if (const std::int32_t member = dependencies.members[static_cast<std::size_t>(k)]; member != span)
                consider(member);
    }
    return binding;
}

/// The row of `plan` that puts span `first` before span `second` of the same device.
RowId rowBehind(const ExecutionPlan &execution, const Plan *plan, const Timeline &timeline,
    std::int32_t first, std::int32_t second)
{
    if (!plan)
        return {};
    const auto a = static_cast<std::size_t>(first);
    const auto b = static_cast<std::size_t>(second);
    if (timeline.spans.device[a] != timeline.spans.device[b])
        return {};
    const auto &segments = execution.devices[static_cast<std::size_t>(timeline.spans.device[a])].segments;
    const Segment &segmentA = segments[static_cast<std::size_t>(timeline.spans.segment[a])];
    const Segment &segmentB = segments[static_cast<std::size_t>(timeline.spans.segment[b])];
    const std::int32_t microBatchA = timeline.spans.microBatch[a];
    const std::int32_t microBatchB = timeline.spans.microBatch[b];
    const auto isIn = [&](OperatorId op, const Segment &segment) {
        const Direction direction = plan->graph->at(op).direction;
        const bool same = (direction == Direction::Forward && segment.kind == SegmentKind::Forward)
            || (direction == Direction::Backward && isBackward(segment.kind));
        return same && plan->decisions[static_cast<std::size_t>(op.index)].stage == segment.stage;
    };
    const auto opOf = [&](const Segment &segment, std::size_t span) {
        return segment.instructions[static_cast<std::size_t>(timeline.spans.instruction[span])].op;
    };
    for (const OrderConstraint &order : plan->orders) {
        if (microBatchA + order.microBatchOffset != microBatchB
            || (order.microBatch >= 0 && order.microBatch != microBatchA))
            continue;
        // Inside a block a row orders its operators, else blocks.
        const bool inside = &segmentA == &segmentB && microBatchA == microBatchB;
        if (inside ? order.first == opOf(segmentA, a) && order.second == opOf(segmentB, b)
                   : isIn(order.first, segmentA) && isIn(order.second, segmentB)
                    && order.part.holds(segmentA.lane, segmentA.slice)
                    && order.secondPart.holds(segmentB.lane, segmentB.slice))
            return order.row;
    }
    if (isBackward(segmentA.kind) && segmentB.kind == SegmentKind::Forward && segmentA.stage == segmentB.stage
        && segmentA.stage.valid() && static_cast<std::size_t>(segmentA.stage.index) < plan->inFlight.size())
        return plan->inFlightRows[static_cast<std::size_t>(segmentA.stage.index)];
    return {};
}

} // namespace

std::int32_t lastSpan(const Timeline &timeline)
{
    std::int32_t last = -1;
    for (std::size_t s = 0; s < timeline.spans.size(); ++s)
        if (last < 0 || endOf(timeline, static_cast<std::int32_t>(s)) > endOf(timeline, last))
            last = static_cast<std::int32_t>(s);
    return last;
}

std::vector<Wait> waitsBehind(
    const Timeline &timeline, const TimelineDependencies &dependencies, std::int32_t span, std::int64_t begin)
{
    std::vector<Wait> waits;
    while (span >= 0) {
        const Binding binding = bindingOf(timeline, dependencies, span);
        waits.push_back({span, binding.on, binding.member, binding.kind, {}});
        if (binding.on < 0 || startOf(timeline, binding.on) <= begin)
            break;
        span = binding.on;
    }
    return waits;
}

CriticalPath criticalPath(
    const Timeline &timeline, const TimelineDependencies &dependencies, std::stop_token stop)
{
    CriticalPath path;
    std::int32_t span = dependencies.size() == timeline.spans.size() ? lastSpan(timeline) : -1;
    while (span >= 0) {
        if (path.size() % 4096 == 0 && stop.stop_requested())
            return {};
        const Binding binding = bindingOf(timeline, dependencies, span);
        path.span.push_back(binding.member);
        path.leaves.push_back(span);
        path.kind.push_back(binding.kind);
        // An end of a measured communication has times of its own; the path goes by those of the end it
        // leaves by.
        path.gap.push_back(startOf(timeline, span) - (binding.on >= 0 ? endOf(timeline, binding.on) : 0));
        span = binding.on;
    }
    std::reverse(path.span.begin(), path.span.end());
    std::reverse(path.leaves.begin(), path.leaves.end());
    std::reverse(path.gap.begin(), path.gap.end());
    std::reverse(path.kind.begin(), path.kind.end());
    return path;
}

std::vector<std::int64_t> slackOf(
    const Timeline &timeline, const TimelineDependencies &dependencies, std::stop_token stop)
{
    const std::size_t spans = dependencies.size();
    if (spans != timeline.spans.size())
        return {};
    const std::int32_t last = lastSpan(timeline);
    const std::int64_t makespan = last < 0 ? 0 : endOf(timeline, last);
    // When each span must have ended at the latest.
    std::vector<std::int64_t> latest(spans, makespan);
    const auto &order = dependencies.order;
    for (std::size_t done = 0; done < order.size();) {
        if (done % 4096 == 0 && stop.stop_requested())
            return {};
        // The members of a communication stand together and end together.
        std::size_t first = order.size() - done - 1;
        const std::int32_t meeting = dependencies.meeting[static_cast<std::size_t>(order[first])];
        const std::size_t behind = first + 1;
        while (meeting >= 0 && first > 0
            && dependencies.meeting[static_cast<std::size_t>(order[first - 1])] == meeting)
            --first;
        done += behind - first;
        std::int64_t end = makespan;
        std::int64_t duration = 0;
        for (std::size_t i = first; i < behind; ++i) {
            const auto s = static_cast<std::size_t>(order[i]);
            duration = std::max(duration, timeline.spans.duration[s]);
            end = std::min(end, latest[s]);
        }
        for (std::size_t i = first; i < behind; ++i) {
            const auto s = static_cast<std::size_t>(order[i]);
            latest[s] = end;
            for (std::int32_t e = dependencies.needBegin[s]; e < dependencies.needBegin[s + 1]; ++e) {
                std::int64_t &before =
                    latest[static_cast<std::size_t>(dependencies.needs[static_cast<std::size_t>(e)].span)];
                before = std::min(before, end - duration);
            }
        }
    }
    for (std::size_t s = 0; s < spans; ++s)
        latest[s] = std::max<std::int64_t>(latest[s] - endOf(timeline, static_cast<std::int32_t>(s)), 0);
    return latest;
}

std::optional<Bubble> bubbleAt(
    const Timeline &timeline, const TimelineDependencies &dependencies, DeviceId device, Nanoseconds time)
{
    const auto d = static_cast<std::size_t>(device.index);
    const std::int64_t t = time.count();
    if (!device.valid() || d + 1 >= timeline.deviceBegin.size() || t < 0 || t >= timeline.step.count()
        || dependencies.size() != timeline.spans.size())
        return std::nullopt;
    const SpanColumns &spans = timeline.spans;
    const auto offset = [](std::size_t i) { return static_cast<std::ptrdiff_t>(i); };
    const auto [begin, computeEnd] = rowsOf(timeline, d, QueueKind::Compute);
    const auto behind = static_cast<std::size_t>(
        std::upper_bound(spans.start.begin() + offset(begin), spans.start.begin() + offset(computeEnd), t)
        - spans.start.begin());
    Bubble bubble;
    if (behind > begin) // a queue is in order
        bubble.begin = spans.start[behind - 1] + spans.duration[behind - 1];
    if (bubble.begin > t)
        return std::nullopt;
    bubble.end = behind < computeEnd ? spans.start[behind] : timeline.step.count();
    bubble.device = device;
    bubble.behind = behind < computeEnd ? static_cast<std::int32_t>(behind) : -1;
    bubble.waits = waitsBehind(
        timeline, dependencies, bubble.behind >= 0 ? bubble.behind : lastSpan(timeline), bubble.begin);
    return bubble;
}

std::optional<Bubble> whyIdle(const ExecutionPlan &execution, const Plan *plan, const Timeline &timeline,
    const TimelineDependencies &dependencies, DeviceId device, Nanoseconds time)
{
    std::optional<Bubble> found = bubbleAt(timeline, dependencies, device, time);
    if (!found)
        return std::nullopt;
    Bubble &bubble = *found;
    const SpanColumns &spans = timeline.spans;
    const std::size_t computeEnd =
        rowsOf(timeline, static_cast<std::size_t>(device.index), QueueKind::Compute).second;
    const std::size_t behind = bubble.behind >= 0 ? static_cast<std::size_t>(bubble.behind) : computeEnd;
    for (Wait &wait : bubble.waits)
        if (wait.on >= 0 && wait.kind == WaitKind::Order)
            wait.row = rowBehind(execution, plan, timeline, wait.on, wait.member);

    // Whether a later span of the queue could have filled the bubble: one that a row holds back, or else the
    // first.
    const auto sameBlock = [&](std::size_t a, std::size_t b) {
        return spans.segment[a] == spans.segment[b] && spans.microBatch[a] == spans.microBatch[b];
    };
    std::size_t asked = computeEnd;
    std::vector<std::int64_t> couldEnd(1, bubble.end); // from `behind` on
    for (std::size_t s = behind + 1; s < computeEnd && !bubble.heldBackRow.valid(); ++s) {
        std::int64_t ready = 0;
        for (std::int32_t e = dependencies.needBegin[s]; e < dependencies.needBegin[s + 1]; ++e) {
            const Dependency &need = dependencies.needs[static_cast<std::size_t>(e)];
            if (need.kind == WaitKind::Order)
                continue;
            const auto n = static_cast<std::size_t>(need.span);
            ready = std::max(ready, n > behind && n < s ? couldEnd[n - behind] : endOf(timeline, need.span));
        }
        // What takes no time, as loading a batch, would come along.
        couldEnd.push_back(spans.duration[s] == 0 ? ready : endOf(timeline, static_cast<std::int32_t>(s)));
        if (ready > bubble.begin || spans.duration[s] == 0)
            continue;
        // Rows between blocks are the same for all spans of one.
        if (bubble.heldBack >= 0
            && (!plan || (asked < computeEnd && sameBlock(s, asked) && !sameBlock(s, behind))))
            continue;
        asked = s;
        const RowId row = rowBehind(
            execution, plan, timeline, static_cast<std::int32_t>(behind), static_cast<std::int32_t>(s));
        if (bubble.heldBack < 0 || row.valid()) {
            bubble.heldBack = static_cast<std::int32_t>(s);
            bubble.heldBackRow = row;
        }
    }
    return found;
}

} // namespace planloom
