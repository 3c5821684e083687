#include "engine/traces/matching/match_plan.h"

#include "engine/runtime/live_timeline.h"
#include "engine/traces/matching/match_collectives.h"
#include "engine/traces/matching/match_kernels.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// An instruction in the order of its device.
struct PlannedStep {
    const Instruction *instruction = nullptr;
    LiveSpan span{}; ///< Its indices.
    std::int64_t predicted = 0; ///< Nanoseconds.
};

/// The part of a rank that is matched.
struct Window {
    std::int64_t begin = std::numeric_limits<std::int64_t>::min(); ///< On the rank's clock.
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
    bool has(const TraceEvent &event) const { return event.start >= begin && event.start < end; }
};

TraceKind traceKindOf(InstructionKind kind)
{
    for (std::size_t k = 0; k < kTraceKindCount; ++k)
        if (instructionKindOf(static_cast<TraceKind>(k)) == kind)
            return static_cast<TraceKind>(k);
    return TraceKind::OtherCommunication;
}

/// By number of step: the mean length over all ranks that have it; only those that all have.
std::vector<std::pair<std::int64_t, std::uint32_t>> commonSteps(const TraceAnalysis &analysis)
{
    std::map<std::uint32_t, std::pair<std::int64_t, std::size_t>> sums;
    for (const RankTimes &rank : analysis.ranks)
        for (const TraceStep &step : rank.steps) {
            sums[step.number].first += step.end - step.begin;
            ++sums[step.number].second;
        }
    std::vector<std::pair<std::int64_t, std::uint32_t>> steps;
    for (const auto &[number, sum] : sums)
        if (sum.second == analysis.ranks.size())
            steps.emplace_back(sum.first, number);
    std::sort(steps.begin(), steps.end());
    return steps;
}

class Matching
{
public:
    Matching(const Trace &trace, const TraceAnalysis &analysis, const ExecutionPlan &plan,
        const Timeline &predicted)
        : m_trace(trace)
        , m_analysis(analysis)
        , m_plan(plan)
        , m_predicted(predicted)
    {
        m_made.spans.resize(plan.devices.size());
        if (const auto steps = commonSteps(analysis); !steps.empty())
            m_made.step = steps[(steps.size() - 1) / 2].second;
    }

    Result<MatchedTrace> match(const std::stop_token &stop)
    {
        findBegin();
        for (std::size_t r = 0; r < m_trace.ranks.size(); ++r) {
            if (stop.stop_requested())
                return cancelled();
            const RankTrace &rank = m_trace.ranks[r];
            if (rank.rank < 0 || static_cast<std::size_t>(rank.rank) >= m_plan.devices.size())
                continue;
            ++m_made.ranks;
            matchRank(r);
        }
        if (m_made.ranks == 0)
            return Error{ErrorCode::InvalidInput,
                "the plan has " + std::to_string(m_plan.devices.size())
                    + " devices, and no rank of the trace is one of them",
                "give the traces of the ranks that ran this plan", "--plan"};
        complete();
        return std::move(m_made);
    }

private:
    Window windowOf(std::size_t r) const
    {
        if (m_made.step)
            for (const TraceStep &step : m_analysis.ranks[r].steps)
                if (step.number == *m_made.step)
                    return {step.begin, step.end};
        return {};
    }

    /// The first moment of the step on the common clock.
    void findBegin()
    {
        m_begin = std::numeric_limits<std::int64_t>::max();
        for (std::size_t r = 0; r < m_trace.ranks.size(); ++r) {
            const RankTrace &rank = m_trace.ranks[r];
            const Window window = windowOf(r);
            for (const TraceEvent &event : rank.events)
                if (window.has(event) && event.kind != TraceKind::Annotation && event.kind != TraceKind::Step)
                    m_begin = std::min(m_begin, event.start + m_analysis.clocks.offset[r]);
        }
    }

    /// What the device runs, in its order, with what was predicted for it.
    std::vector<PlannedStep> plannedSteps(std::size_t device) const
    {
        std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int64_t> durations;
        const SpanColumns &spans = m_predicted.spans;
        if (device + 1 < m_predicted.deviceBegin.size())
            for (std::size_t row = m_predicted.deviceBegin[device]; row < m_predicted.deviceBegin[device + 1];
                 ++row)
                durations[{spans.segment[row], spans.instruction[row], spans.microBatch[row]}] +=
                    spans.duration[row];
        std::vector<PlannedStep> steps;
        const DeviceProgram &program = m_plan.devices[device];
        for (const ScheduleEntry &entry : program.schedule) {
            const auto [begin, end] = indicesOf(program, entry);
            for (std::size_t i = begin; i < end; ++i) {
                PlannedStep step;
                step.instruction = &program.segments[static_cast<std::size_t>(entry.segment)].instructions[i];
                step.span.segment = entry.segment;
                step.span.instruction = static_cast<std::int32_t>(i);
                step.span.microBatch = entry.microBatch;
                const auto found = durations.find({entry.segment, step.span.instruction, entry.microBatch});
                step.predicted = found == durations.end() ? 0 : found->second;
                steps.push_back(step);
            }
        }
        return steps;
    }

    LiveSpan spanAt(const PlannedStep &step, std::int64_t start, std::int64_t duration) const
    {
        LiveSpan span = step.span;
        span.start = std::max<std::int64_t>(0, start);
        span.duration = duration;
        return span;
    }

    MatchCount &countOf(InstructionKind kind)
    {
        MatchCount &count = m_counts[kind];
        count.kind = kind;
        return count;
    }

    void matchRank(std::size_t r)
    {
        const RankTrace &rank = m_trace.ranks[r];
        const auto device = static_cast<std::size_t>(rank.rank);
        const std::vector<PlannedStep> planned = plannedSteps(device);
        if (!rank.instructions.empty()) {
            takeExact(rank, planned);
            return;
        }
        matchCommunicationOf(r, planned);
        matchComputeOf(r, planned);
    }

    void takeExact(const RankTrace &rank, const std::vector<PlannedStep> &planned)
    {
        m_made.isExact = true;
        std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, const PlannedStep *> known;
        for (const PlannedStep &step : planned)
            known[{step.span.segment, step.span.instruction, step.span.microBatch}] = &step;
        std::map<const PlannedStep *, std::size_t> taken; // index of its span
        std::vector<LiveSpan> &spans = m_made.spans[static_cast<std::size_t>(rank.rank)];
        for (const TraceEvent &event : rank.events) {
            if (event.kind != TraceKind::Instruction || event.link == kNoLink)
                continue;
            const TraceInstruction &ran = rank.instructions[event.link];
            const auto found = known.find({ran.segment, ran.instruction, ran.microBatch});
            if (found == known.end()) {
                ++countOf(InstructionKind::Kernel).onlyTrace;
                listUnmatched({rank.rank, false,
                    "segment " + std::to_string(ran.segment) + ", instruction "
                        + std::to_string(ran.instruction) + ", micro-batch " + std::to_string(ran.microBatch)
                        + ", which the plan has not",
                    event.start});
                continue;
            }
            // A line of a program may be come to more than once, as where its statement goes on behind a
            // call.
            const PlannedStep &step = *found->second;
            const auto [entry, isNew] = taken.emplace(&step, spans.size());
            if (isNew)
                spans.push_back(spanAt(step, event.start, event.duration));
            else
                spans[entry->second].duration += event.duration;
            countOf(step.instruction->kind).matched += isNew ? 1 : 0;
            if (!isCommunication(step.instruction->kind))
                m_made.matchedCompute += event.duration;
        }
        for (const auto &[key, step] : known) {
            if (taken.count(step) > 0)
                continue;
            ++countOf(step->instruction->kind).onlyPlan;
            listUnmatched({rank.rank, true, spanWords(m_plan, *step->instruction, step->span.microBatch), 0});
        }
    }

    void listUnmatched(UnmatchedSpan span)
    {
        if (m_made.unmatched.size() < kMostUnmatched)
            m_made.unmatched.push_back(std::move(span));
    }

    std::vector<CommunicationStep> plannedCommunication(
        std::size_t device, const std::vector<PlannedStep> &planned) const
    {
        std::vector<CommunicationStep> steps;
        for (std::size_t i = 0; i < planned.size(); ++i) {
            const Instruction &instruction = *planned[i].instruction;
            if (!isCommunication(instruction.kind) || isHostCopy(instruction.kind))
                continue;
            CommunicationStep step{.kind = traceKindOf(instruction.kind)};
            const auto own = static_cast<std::int32_t>(device);
            if (instruction.kind == InstructionKind::Send)
                step.members = {own, instruction.peer.index};
            else if (instruction.kind == InstructionKind::Recv)
                step.members = {instruction.peer.index, own};
            else if (instruction.group >= 0) {
                for (const DeviceId member : m_plan.groups[static_cast<std::size_t>(instruction.group)])
                    step.members.push_back(member.index);
                std::sort(step.members.begin(), step.members.end());
            }
            step.stream = static_cast<std::int64_t>(queueOf(instruction));
            step.bytes = communicatedBytes(m_plan.devices[device], instruction);
            step.id = static_cast<std::int64_t>(i);
            steps.push_back(std::move(step));
        }
        return steps;
    }

    std::vector<CommunicationStep> tracedCommunication(std::size_t r) const
    {
        const RankTrace &rank = m_trace.ranks[r];
        const Window window = windowOf(r);
        std::vector<CommunicationStep> steps;
        for (std::size_t i = 0; i < rank.events.size(); ++i) {
            const TraceEvent &event = rank.events[i];
            if (!isCommunication(event.kind) || !window.has(event))
                continue;
            CommunicationStep step{.kind = event.kind, .id = static_cast<std::int64_t>(i)};
            if (event.link != kNoLink) {
                const TraceCollective &collective = rank.collectives[event.link];
                step.bytes = std::max(collective.inBytes, collective.outBytes);
                step.stream = collective.group;
                if (event.kind == TraceKind::Send || event.kind == TraceKind::Recv) {
                    if (collective.source >= 0 || collective.target >= 0)
                        step.members = {collective.source < 0 ? rank.rank : collective.source,
                            collective.target < 0 ? rank.rank : collective.target};
                } else if (collective.group != kNoLink)
                    step.members = rank.groups[collective.group].ranks;
            }
            if (event.kind != TraceKind::Send && event.kind != TraceKind::Recv)
                std::sort(step.members.begin(), step.members.end());
            steps.push_back(std::move(step));
        }
        std::stable_sort(
            steps.begin(), steps.end(), [&](const CommunicationStep &a, const CommunicationStep &b) {
                return startOf(rank, a) < startOf(rank, b);
            });
        return steps;
    }

    static std::int64_t startOf(const RankTrace &rank, const CommunicationStep &step)
    {
        return rank.events[static_cast<std::size_t>(step.id)].start;
    }

    void matchCommunicationOf(std::size_t r, const std::vector<PlannedStep> &planned)
    {
        const RankTrace &rank = m_trace.ranks[r];
        const auto device = static_cast<std::size_t>(rank.rank);
        const auto ofPlan = plannedCommunication(device, planned);
        const auto ofTrace = tracedCommunication(r);
        std::set<std::int64_t> taken;
        std::set<std::int64_t> seen;
        for (const auto &[p, t] : matchCommunication(ofPlan, ofTrace)) {
            const PlannedStep &step = planned[static_cast<std::size_t>(p)];
            const TraceEvent &event = rank.events[static_cast<std::size_t>(t)];
            ++countOf(step.instruction->kind).matched;
            m_made.spans[device].push_back(
                spanAt(step, event.start + m_analysis.clocks.offset[r] - m_begin, event.duration));
            taken.insert(p);
            seen.insert(t);
        }
        for (const CommunicationStep &step : ofPlan)
            if (taken.count(step.id) == 0) {
                const PlannedStep &own = planned[static_cast<std::size_t>(step.id)];
                ++countOf(own.instruction->kind).onlyPlan;
                listUnmatched({rank.rank, true, spanWords(m_plan, *own.instruction, own.span.microBatch), 0});
            }
        for (const CommunicationStep &step : ofTrace)
            if (seen.count(step.id) == 0)
                if (const auto kind = instructionKindOf(step.kind)) {
                    const TraceEvent &event = rank.events[static_cast<std::size_t>(step.id)];
                    ++countOf(*kind).onlyTrace;
                    listUnmatched({rank.rank, false, rank.nameOfEvent(event),
                        event.start + m_analysis.clocks.offset[r] - m_begin});
                }
    }

    void matchComputeOf(std::size_t r, const std::vector<PlannedStep> &planned)
    {
        const RankTrace &rank = m_trace.ranks[r];
        const Window window = windowOf(r);
        std::vector<const TraceEvent *> events;
        for (const TraceEvent &event : rank.events)
            if (event.kind == TraceKind::Compute && window.has(event))
                events.push_back(&event);
        std::stable_sort(events.begin(), events.end(),
            [](const TraceEvent *a, const TraceEvent *b) { return a->start < b->start; });
        std::vector<KernelStep> ofTrace;
        for (const TraceEvent *event : events)
            ofTrace.push_back({kernelClassOf(rank.nameOfEvent(*event)), event->duration});
        std::vector<const PlannedStep *> steps;
        std::vector<KernelStep> ofPlan;
        for (const PlannedStep &step : planned) {
            if (isCommunication(step.instruction->kind) || isHostCopy(step.instruction->kind))
                continue;
            steps.push_back(&step);
            ofPlan.push_back({classOf(*step.instruction), step.predicted});
        }
        std::size_t atPlan = 0;
        std::size_t atTrace = 0;
        auto pairs = matchKernels(ofPlan, ofTrace);
        pairs.emplace_back(ofPlan.size(), ofTrace.size());
        for (const auto &[p, t] : pairs) {
            shareOut(r, {steps.data() + atPlan, p - atPlan}, {events.data() + atTrace, t - atTrace});
            if (p < steps.size()) {
                const std::int64_t start = events[t]->start + m_analysis.clocks.offset[r] - m_begin;
                m_made.spans[static_cast<std::size_t>(rank.rank)].push_back(
                    spanAt(*steps[p], start, events[t]->duration));
                m_made.matchedCompute += events[t]->duration;
                ++countOf(steps[p]->instruction->kind).matched;
            }
            atPlan = p + 1;
            atTrace = t + 1;
        }
    }

    KernelClass classOf(const Instruction &instruction) const
    {
        if (instruction.kind != InstructionKind::Kernel || !instruction.op.valid())
            return KernelClass::Other;
        switch (categoryOf(m_plan.graph->at(instruction.op).kind)) {
        case OperatorCategory::Product:
            return KernelClass::Product;
        case OperatorCategory::Attention:
            return KernelClass::Attention;
        default:
            return KernelClass::Other;
        }
    }

    /// The time of events between two that are matched, among the instructions there, as predicted.
    void shareOut(
        std::size_t r, std::span<const PlannedStep *const> steps, std::span<const TraceEvent *const> events)
    {
        if (events.empty() || steps.empty()) {
            for (const PlannedStep *step : steps)
                ++countOf(step->instruction->kind).onlyPlan;
            if (steps.empty())
                countOf(InstructionKind::Kernel).onlyTrace += static_cast<std::int64_t>(events.size());
            return;
        }
        std::int64_t measured = 0;
        for (const TraceEvent *event : events)
            measured += event->duration;
        double predicted = 0;
        for (const PlannedStep *step : steps)
            predicted += static_cast<double>(std::max<std::int64_t>(1, step->predicted));
        std::int64_t at = events.front()->start + m_analysis.clocks.offset[r] - m_begin;
        double sum = 0;
        std::int64_t given = 0;
        for (const PlannedStep *step : steps) {
            sum += static_cast<double>(std::max<std::int64_t>(1, step->predicted));
            const auto until = static_cast<std::int64_t>(static_cast<double>(measured) * sum / predicted);
            m_made.spans[static_cast<std::size_t>(m_trace.ranks[r].rank)].push_back(
                spanAt(*step, at, until - given));
            at += until - given;
            given = until;
            ++countOf(step->instruction->kind).matched;
        }
        m_made.sharedCompute += measured;
    }

    void complete()
    {
        std::int64_t end = 0;
        for (auto &spans : m_made.spans) {
            std::stable_sort(spans.begin(), spans.end(),
                [](const LiveSpan &a, const LiveSpan &b) { return a.start < b.start; });
            for (const LiveSpan &span : spans)
                end = std::max(end, span.start + span.duration);
        }
        if (m_made.step)
            for (std::size_t r = 0; r < m_trace.ranks.size(); ++r)
                if (const Window window = windowOf(r); window.end - window.begin > 0)
                    end = std::max(end, window.end - window.begin);
        m_made.begin = m_made.isExact ? 0 : m_begin;
        m_made.measured = timelineOfSpans(m_plan, m_made.spans, Nanoseconds{end});
        correctExposed(m_made.measured);
        for (auto &[kind, count] : m_counts)
            m_made.counts.push_back(count);
    }

    /// What is communicated beside compute is hidden, unlike in a run on threads that do one thing at a time.
    void correctExposed(Timeline &timeline) const
    {
        if (m_made.isExact)
            return;
        const SpanColumns &spans = timeline.spans;
        for (std::size_t d = 0; d + 1 < timeline.deviceBegin.size(); ++d) {
            const auto [begin, end] = rowsOf(timeline, d, QueueKind::Compute);
            std::vector<Stretch> communication;
            for (std::size_t row = timeline.deviceBegin[d]; row < timeline.deviceBegin[d + 1]; ++row)
                if (spans.queue[row] != QueueKind::Compute)
                    communication.emplace_back(spans.start[row], spans.start[row] + spans.duration[row]);
            timeline.exposedCommunication[d] = Nanoseconds{
                exposedTime(std::move(communication), std::span(spans.start).subspan(begin, end - begin),
                    std::span(spans.duration).subspan(begin, end - begin))};
        }
    }

    const Trace &m_trace;
    const TraceAnalysis &m_analysis;
    const ExecutionPlan &m_plan;
    const Timeline &m_predicted;
    std::int64_t m_begin = 0; ///< Of the step, on the common clock.
    MatchedTrace m_made{};
    std::map<InstructionKind, MatchCount> m_counts{};
};

} // namespace

Result<MatchedTrace> matchPlan(const Trace &trace, const TraceAnalysis &analysis, const ExecutionPlan &plan,
    const Timeline &predicted, const std::stop_token &stop)
{
    return Matching(trace, analysis, plan, predicted).match(stop);
}

} // namespace planloom
