#include "engine/analyse/steady_state.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace planloom {

namespace {

constexpr std::size_t kMostPerPeriod = 8; ///< Micro-batches in the unit that repeats.

/// What repeats in a list of rising times.
struct Repetition {
    std::int64_t period = 0;
    std::size_t per = 0; ///< Times in one period.
    std::size_t repeats = 0;
    std::int64_t begin = 0;
};

/// The longest run in which every time is followed, `per` places on, by one a period later; of equally long
/// ones the smallest unit.
Repetition repetitionOf(const std::vector<std::int64_t> &times, double tolerance)
{
    Repetition best;
    std::size_t covered = 0;
    for (std::size_t per = 1; per <= kMostPerPeriod && per < times.size(); ++per) {
        const auto distance = [&](std::size_t i) { return times[i + per] - times[i]; };
        for (std::size_t first = 0; first + per < times.size();) {
            const std::int64_t period = distance(first);
            const auto slack =
                static_cast<std::int64_t>(std::llround(tolerance * static_cast<double>(period)));
            std::size_t last = first;
            while (last + 1 + per < times.size() && std::abs(distance(last + 1) - period) <= slack)
                ++last;
            const std::size_t length = last - first + per;
            // A unit of several has to repeat to count.
            const bool repeats = per == 1 || last - first + 1 >= 2 * per;
            if (repeats && length > covered && period > 0) {
                covered = length;
                best = {period, per, length / per, times[first]};
            }
            first = last + 1;
        }
    }
    return best;
}

} // namespace

std::vector<PipelineBlock> pipelineBlocks(const ExecutionPlan &plan, const Timeline &timeline)
{
    std::map<std::tuple<std::int32_t, bool, bool, std::int32_t>, PipelineBlock> blocks;
    const SpanColumns &spans = timeline.spans;
    for (std::size_t d = 0; d < plan.devices.size() && d + 1 < timeline.deviceBegin.size(); ++d) {
        PipelineBlock *current = nullptr;
        std::int32_t segmentOf = -1;
        std::int32_t microBatchOf = -1;
        for (std::size_t s = timeline.deviceBegin[d]; s < timeline.deviceBegin[d + 1]; ++s) {
            if (spans.queue[s] != QueueKind::Compute)
                break;
            if (spans.duration[s] == 0)
                continue;
            if (spans.segment[s] != segmentOf || spans.microBatch[s] != microBatchOf) {
                segmentOf = spans.segment[s];
                microBatchOf = spans.microBatch[s];
                const Segment &segment = plan.devices[d].segments[static_cast<std::size_t>(segmentOf)];
                current = nullptr;
                if (isPass(segment.kind)) {
                    const bool backward = isBackward(segment.kind);
                    const bool ofWeights = segment.kind == SegmentKind::WeightGradient;
                    const auto [found, isNew] =
                        blocks.try_emplace({segment.stage.index, backward, ofWeights, microBatchOf},
                            PipelineBlock{segment.stage, backward, microBatchOf, spans.start[s],
                                spans.start[s], ofWeights});
                    current = &found->second;
                }
            }
            if (!current)
                continue;
            current->start = std::min(current->start, spans.start[s]);
            current->end = std::max(current->end, spans.start[s] + spans.duration[s]);
        }
    }
    std::vector<PipelineBlock> sorted;
    sorted.reserve(blocks.size());
    for (const auto &[key, block] : blocks)
        sorted.push_back(block);
    std::stable_sort(sorted.begin(), sorted.end(), [](const PipelineBlock &a, const PipelineBlock &b) {
        return std::tuple(a.stage, a.start) < std::tuple(b.stage, b.start);
    });
    return sorted;
}

std::optional<SteadyState> steadyStateOf(
    const ExecutionPlan &plan, const Timeline &timeline, double tolerance)
{
    const std::vector<PipelineBlock> blocks = pipelineBlocks(plan, timeline);
    SteadyState state;
    std::map<StageId, std::vector<const PipelineBlock *>> byStage;
    for (const PipelineBlock &block : blocks)
        if (!block.ofWeights)
            byStage[block.stage].push_back(&block);
    bool any = false;
    for (const auto &[stage, ofStage] : byStage) {
        StagePhases phases{.stage = stage};
        bool forward = false;
        bool backward = false;
        for (const PipelineBlock *block : ofStage) {
            if (block->backward && !backward)
                phases.firstBackward = block->start;
            if (!block->backward)
                phases.lastForward = std::max(phases.lastForward, block->end);
            (block->backward ? backward : forward) = true;
        }
        if (!forward || !backward)
            continue;
        for (const PipelineBlock *block : ofStage) {
            phases.warmUp += !block->backward && block->start < phases.firstBackward ? 1 : 0;
            phases.coolDown += block->backward && block->start >= phases.lastForward ? 1 : 0;
            state.end = std::max(state.end, block->end);
        }
        state.steadyBegin = any ? std::min(state.steadyBegin, phases.firstBackward) : phases.firstBackward;
        state.steadyEnd = std::max(state.steadyEnd, phases.lastForward);
        state.stages.push_back(phases);
        any = true;
    }
    if (!any)
        return std::nullopt;
    for (const PipelineBlock &block : blocks)
        state.end = std::max(state.end, block.end);
    state.steadyEnd = std::max(state.steadyEnd, state.steadyBegin);

    const auto startsOf = [&](StageId stage, bool backward, std::int64_t from, std::int64_t to) {
        std::vector<std::int64_t> starts;
        for (const PipelineBlock *block : byStage[stage])
            if (block->backward == backward && block->start >= from && block->start <= to)
                starts.push_back(block->start);
        return starts;
    };
    const StageId first = state.stages.front().stage;
    const StageId last = state.stages.back().stage;
    if (state.steadyEnd > state.steadyBegin) {
        const Repetition unit =
            repetitionOf(startsOf(last, true, state.steadyBegin, state.steadyEnd), tolerance);
        state.period = unit.period;
        state.microBatchesPerPeriod = static_cast<std::int32_t>(unit.per);
        state.repeats = static_cast<std::int32_t>(unit.repeats);
        state.periodBegin = unit.begin;
    }
    state.fillPeriod = repetitionOf(startsOf(last, false, 0, state.steadyBegin), tolerance).period;
    state.drainPeriod = repetitionOf(startsOf(first, true, state.steadyEnd, state.end), tolerance).period;
    return state;
}

} // namespace planloom
