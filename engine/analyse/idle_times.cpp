#include "engine/analyse/idle_times.h"

#include "engine/analyse/steady_state.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

std::int64_t &partOf(IdleParts &parts, IdleReason reason)
{
    return parts[static_cast<std::size_t>(reason)];
}

/// When a block of a device runs, and when all that it needs from elsewhere was there.
struct ForwardBlock {
    std::int64_t start = 0;
    std::int64_t ready = 0;
    StageId stage{};
};

/// Gives each moment of one device's bubbles its reason.
class DeviceIdle
{
public:
    DeviceIdle(const ExecutionPlan &execution, const Plan *plan, const Timeline &timeline,
        const TimelineDependencies &dependencies, const SteadyState *steady, std::int32_t last,
        std::size_t device)
        : m_execution(execution)
        , m_plan(plan)
        , m_timeline(timeline)
        , m_spans(timeline.spans)
        , m_dependencies(dependencies)
        , m_last(last)
        , m_device(device)
    {
        std::tie(m_begin, m_end) = rowsOf(timeline, device, QueueKind::Compute);
        m_busy = busyOf(device);
        for (std::size_t d = 0; d < timeline.busy.size(); ++d)
            m_budget = std::max(m_budget, busyOf(d) - m_busy);
        findPhases(steady);
    }

    std::vector<IdleGap> gaps(const std::stop_token &stop)
    {
        std::vector<IdleGap> found;
        const std::int64_t step = m_timeline.step.count();
        std::int64_t free = 0;
        for (std::size_t row = m_begin; row <= m_end && !stop.stop_requested(); ++row) {
            const std::int64_t start = row < m_end ? m_spans.start[row] : step;
            if (start > free)
                found.push_back(gap(row, free, start));
            if (row < m_end)
                free = std::max(free, start + m_spans.duration[row]);
        }
        return found;
    }

private:
    std::int64_t busyOf(std::size_t device) const
    {
        return device < m_timeline.busy.size() ? m_timeline.busy[device].count() : 0;
    }

    const Segment &segmentOf(std::size_t row) const
    {
        return m_execution.devices[static_cast<std::size_t>(m_spans.device[row])]
            .segments[static_cast<std::size_t>(m_spans.segment[row])];
    }

    std::int64_t endOf(std::size_t row) const { return m_spans.start[row] + m_spans.duration[row]; }

    /// When the device's passes begin and end, and the bands of its stages.
    void findPhases(const SteadyState *steady)
    {
        m_pipeline = m_execution.stageCount > 1;
        std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> blocks; // segment, micro-batch
        std::int64_t firstBackward = -1;
        std::int64_t lastForward = -1;
        for (std::size_t row = m_begin; row < m_end; ++row) {
            const Segment &segment = segmentOf(row);
            if (!isPass(segment.kind))
                continue;
            m_lastPass = std::max(m_lastPass, endOf(row));
            if (m_spans.duration[row] > 0)
                m_firstPass = std::min(m_firstPass, m_spans.start[row]);
            if (segment.kind == SegmentKind::Forward && m_plan) {
                const auto [found, isNew] =
                    blocks.try_emplace({m_spans.segment[row], m_spans.microBatch[row]}, m_forward.size());
                if (isNew)
                    m_forward.push_back({m_spans.start[row], 0, segment.stage});
                ForwardBlock &block = m_forward[found->second];
                block.ready = std::max(block.ready, readyFromElsewhere(row));
            }
        }
        if (!m_pipeline || !steady)
            return;
        for (const StagePhases &phases : steady->stages) {
            const bool own = std::any_of(m_execution.devices[m_device].segments.begin(),
                m_execution.devices[m_device].segments.end(), [&](const Segment &segment) {
                    return isPass(segment.kind) && segment.stage == phases.stage;
                });
            if (!own)
                continue;
            firstBackward =
                firstBackward < 0 ? phases.firstBackward : std::min(firstBackward, phases.firstBackward);
            lastForward = std::max(lastForward, phases.lastForward);
        }
        if (firstBackward >= 0) {
            m_fillEnd = firstBackward;
            m_drainBegin = std::max(lastForward, firstBackward);
        }
    }

    /// When all that a span needs of other blocks, in whatever queue, had ended: the order of queues apart.
    std::int64_t readyFromElsewhere(std::size_t row) const
    {
        std::int64_t ready = 0;
        for (std::int32_t e = m_dependencies.needBegin[row]; e < m_dependencies.needBegin[row + 1]; ++e) {
            const Dependency &need = m_dependencies.needs[static_cast<std::size_t>(e)];
            const auto other = static_cast<std::size_t>(need.span);
            const bool inside = m_spans.device[other] == m_spans.device[row]
                && m_spans.segment[other] == m_spans.segment[row]
                && m_spans.microBatch[other] == m_spans.microBatch[row];
            if (need.kind != WaitKind::Order && !inside)
                ready = std::max(ready, endOf(other));
        }
        return ready;
    }

    /// A row bounds the micro-batches in flight of a stage whose next forward block could run in the bubble,
    /// but a backward block has to come first.
    bool heldByFlight(std::size_t behind, std::int64_t begin) const
    {
        if (!m_plan || behind >= m_end || !isBackward(segmentOf(behind).kind))
            return false;
        const auto next = std::partition_point(m_forward.begin(), m_forward.end(),
            [&](const ForwardBlock &block) { return block.start < begin; });
        if (next == m_forward.end() || next->ready > begin || !next->stage.valid())
            return false;
        const auto stage = static_cast<std::size_t>(next->stage.index);
        return stage < m_plan->inFlightRows.size() && m_plan->inFlightRows[stage].valid();
    }

    IdleGap gap(std::size_t behind, std::int64_t begin, std::int64_t end)
    {
        IdleGap gap{begin, end, {}};
        if (m_busy == 0) {
            partOf(gap.parts, IdleReason::NoWork) = end - begin;
            return gap;
        }
        if (heldByFlight(behind, begin)) {
            partOf(gap.parts, IdleReason::Memory) = end - begin;
            return gap;
        }
        const std::vector<Wait> waits = waitsBehind(
            m_timeline, m_dependencies, behind < m_end ? static_cast<std::int32_t>(behind) : m_last, begin);
        std::int64_t left = end; // of the bubble, from its begin: without a reason yet
        if (behind >= m_end && m_last >= 0)
            take(gap, left, static_cast<std::size_t>(m_last), false);
        for (const Wait &wait : waits) {
            if (wait.on < 0 || left <= begin)
                break;
            take(gap, left, static_cast<std::size_t>(wait.on), wait.kind == WaitKind::Reuse);
        }
        partOf(gap.parts, IdleReason::Other) += left - begin;
        return gap;
    }

    /// `row` of the chain runs from its start up to its end; what lies between its end and `left` is
    /// nobody's.
    void take(IdleGap &gap, std::int64_t &left, std::size_t row, bool reuse)
    {
        const std::int64_t end = std::clamp(endOf(row), gap.begin, left);
        partOf(gap.parts, IdleReason::Other) += left - end;
        const std::int64_t begin = std::clamp(m_spans.start[row], gap.begin, end);
        left = begin;
        std::int64_t length = end - begin;
        if (length == 0)
            return;
        const QueueKind queue = m_spans.queue[row];
        if (reuse || queue == QueueKind::Copy) {
            partOf(gap.parts, IdleReason::Memory) += length;
        } else if (queue != QueueKind::Compute) {
            partOf(gap.parts, IdleReason::Communication) += length;
        } else if (m_pipeline && gap.end <= m_firstPass) {
            partOf(gap.parts, IdleReason::Fill) += length;
        } else if (m_pipeline && gap.begin >= m_lastPass) {
            partOf(gap.parts, IdleReason::Drain) += length;
        } else {
            if (busyOf(static_cast<std::size_t>(m_spans.device[row])) > m_busy) {
                const std::int64_t excess = std::min(length, m_budget);
                partOf(gap.parts, IdleReason::Imbalance) += excess;
                m_budget -= excess;
                length -= excess;
            }
            partOf(gap.parts,
                gap.end <= m_fillEnd            ? IdleReason::Fill
                    : gap.begin >= m_drainBegin ? IdleReason::Drain
                                                : IdleReason::Dependency) += length;
        }
    }

    const ExecutionPlan &m_execution;
    const Plan *m_plan;
    const Timeline &m_timeline;
    const SpanColumns &m_spans;
    const TimelineDependencies &m_dependencies;
    std::int32_t m_last;
    std::size_t m_device;
    std::size_t m_begin = 0;
    std::size_t m_end = 0;
    std::int64_t m_busy = 0;
    std::int64_t m_budget = 0; ///< By how much the busiest device computes longer, so far as not yet waited.
    bool m_pipeline = false;
    std::int64_t m_firstPass = std::numeric_limits<std::int64_t>::max();
    std::int64_t m_lastPass = 0;
    std::int64_t m_fillEnd = 0;
    std::int64_t m_drainBegin = std::numeric_limits<std::int64_t>::max();
    std::vector<ForwardBlock> m_forward{}; ///< In order of time.
};

} // namespace

const char *nameOf(IdleReason reason)
{
    constexpr std::array kNames{
        "fill", "drain", "imbalance", "dependency", "memory", "communication", "no work", "other"};
    return kNames[static_cast<std::size_t>(reason)];
}

const char *sentenceOf(IdleReason reason)
{
    constexpr std::array kNames{"the pipeline fills", "the pipeline drains",
        "waits for a device with more work", "waits for what others compute", "waits for memory",
        "waits for communication", "has no work in this step", "nothing known is waited for"};
    return kNames[static_cast<std::size_t>(reason)];
}

IdleReason IdleGap::largest() const
{
    return static_cast<IdleReason>(std::max_element(parts.begin(), parts.end()) - parts.begin());
}

const IdleGap *IdleTimes::gapAt(DeviceId device, std::int64_t time) const
{
    const auto d = static_cast<std::size_t>(device.index);
    if (!device.valid() || d >= gaps.size())
        return nullptr;
    const auto found = std::partition_point(
        gaps[d].begin(), gaps[d].end(), [time](const IdleGap &gap) { return gap.end <= time; });
    return found != gaps[d].end() && found->begin <= time ? &*found : nullptr;
}

std::optional<IdleTimes> idleTimes(const ExecutionPlan &execution, const Plan *plan, const Timeline &timeline,
    const TimelineDependencies &dependencies, std::stop_token stop)
{
    const std::size_t devices =
        std::min(execution.devices.size(), std::max<std::size_t>(timeline.deviceBegin.size(), 1) - 1);
    if (dependencies.size() != timeline.spans.size() || stop.stop_requested())
        return std::nullopt;
    const auto steady =
        execution.stageCount > 1 ? steadyStateOf(execution, timeline) : std::optional<SteadyState>{};
    const std::int32_t last = lastSpan(timeline);
    IdleTimes times;
    times.gaps.resize(devices);
    times.devices.resize(devices);
    std::map<std::int32_t, std::size_t> known; // by class: devices of one have equal timelines
    for (std::size_t d = 0; d < devices; ++d) {
        if (d < timeline.symmetryClass.size()) {
            const auto [found, isNew] = known.try_emplace(timeline.symmetryClass[d], d);
            if (!isNew) {
                times.gaps[d] = times.gaps[found->second];
                times.devices[d] = times.devices[found->second];
                continue;
            }
        }
        times.gaps[d] =
            DeviceIdle(execution, plan, timeline, dependencies, steady ? &*steady : nullptr, last, d)
                .gaps(stop);
        if (stop.stop_requested())
            return std::nullopt;
        for (const IdleGap &gap : times.gaps[d])
            for (std::size_t r = 0; r < kIdleReasonCount; ++r)
                times.devices[d][r] += gap.parts[r];
    }
    for (const IdleParts &parts : times.devices)
        for (std::size_t r = 0; r < kIdleReasonCount; ++r)
            times.total[r] += parts[r];
    return times;
}

} // namespace planloom
