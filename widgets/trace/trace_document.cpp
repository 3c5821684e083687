#include "widgets/trace/trace_document.h"

#include "engine/lowering/program/expand_units.h"
#include "engine/simulate/simulate.h"
#include "engine/traces/matching/match_kernels.h"
#include "engine/traces/trace_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace planloom {

namespace {

OperatorCategory categoryOf(const std::string &name)
{
    switch (kernelClassOf(name)) {
    case KernelClass::Product:
        return OperatorCategory::Product;
    case KernelClass::Attention:
        return OperatorCategory::Attention;
    default:
        return OperatorCategory::Elementwise;
    }
}

/// The device's part of a prediction as if it were a trace.
RankTrace predictedRank(
    const ExecutionPlan &plan, const Timeline &predicted, std::int32_t device, std::int64_t begin)
{
    RankTrace made;
    made.rank = device;
    made.names.emplace_back("predicted");
    const SpanColumns &spans = predicted.spans;
    const auto d = static_cast<std::size_t>(device);
    if (device < 0 || d >= plan.devices.size() || d + 1 >= predicted.deviceBegin.size()) {
        markLanes(made);
        return made;
    }
    made.lanes = {{"predicted"}, {"communication"}};
    for (std::size_t row = predicted.deviceBegin[d]; row < predicted.deviceBegin[d + 1]; ++row) {
        TraceEvent event{.start = begin + spans.start[row], .duration = spans.duration[row]};
        event.lane = spans.queue[row] == QueueKind::Compute ? 0 : 1;
        event.link = static_cast<std::uint32_t>(made.instructions.size());
        event.kind = TraceKind::Instruction;
        made.instructions.push_back({0, spans.segment[row], spans.instruction[row], spans.microBatch[row]});
        made.events.push_back(event);
    }
    sortEvents(made);
    return made;
}

} // namespace

const Instruction *instructionOf(const TraceMatch &match, const RankTrace &rank, const TraceEvent &event)
{
    if (event.kind != TraceKind::Instruction || event.link >= rank.instructions.size() || !match.plan
        || rank.rank < 0 || static_cast<std::size_t>(rank.rank) >= match.plan->devices.size())
        return nullptr;
    const TraceInstruction &at = rank.instructions[event.link];
    const auto &segments = match.plan->devices[static_cast<std::size_t>(rank.rank)].segments;
    if (at.segment < 0 || static_cast<std::size_t>(at.segment) >= segments.size())
        return nullptr;
    const auto &instructions = segments[static_cast<std::size_t>(at.segment)].instructions;
    return at.instruction < 0 || static_cast<std::size_t>(at.instruction) >= instructions.size()
        ? nullptr
        : &instructions[static_cast<std::size_t>(at.instruction)];
}

std::optional<std::int64_t> predictedFor(
    const TraceMatch &match, std::size_t rank, const TraceInstruction &instruction)
{
    if (rank >= match.predicted.size())
        return {};
    const RankTrace &predicted = match.predicted[rank];
    std::optional<std::int64_t> sum;
    for (const TraceEvent &event : predicted.events) {
        TraceInstruction own = predicted.instructions[event.link];
        own.step = instruction.step;
        if (own == instruction)
            sum = sum.value_or(0) + event.duration;
    }
    return sum;
}

Result<TraceDocumentSnapshot> openTraceDocument(
    const std::vector<std::filesystem::path> &paths, bool isSample, const std::stop_token &stop)
{
    TRY(const TraceFiles files, traceFilesOf(paths));
    auto document = std::make_shared<TraceDocument>();
    TRY(document->trace, isSample ? sampleTrace(files, {}, stop) : openTrace(files, {}, stop));
    auto analysis = analyseTrace(document->trace, stop);
    if (!analysis)
        return cancelled();
    document->analysis = *std::move(analysis);
    document->isSample = std::any_of(document->trace.ranks.begin(), document->trace.ranks.end(),
        [](const RankTrace &rank) { return rank.isSample; });
    document->begin = std::numeric_limits<std::int64_t>::max();
    document->end = std::numeric_limits<std::int64_t>::min();
    for (std::size_t r = 0; r < document->trace.ranks.size(); ++r) {
        const RankTrace &rank = document->trace.ranks[r];
        const auto [begin, end] = extentOf(rank);
        const std::int64_t offset = document->analysis.clocks.offset[r];
        document->begin = std::min(document->begin, begin + offset);
        document->end = std::max(document->end, end + offset);
        std::vector<OperatorCategory> &categories = document->categories.emplace_back();
        for (const std::string &name : rank.names)
            categories.push_back(categoryOf(name));
    }
    return TraceDocumentSnapshot(std::move(document));
}

Result<TraceMatchSnapshot> matchTrace(
    const TraceDocument &document, const PlanAnswer &answer, const std::stop_token &stop)
{
    if (!answer.execution)
        return Error{ErrorCode::NotFound, "there is no plan to hold the trace against", {}, "plan"};
    const auto whole = std::make_shared<const ExecutionPlan>(expandUnits(*answer.execution));
    const ExecutionPlan &plan = *whole;
    TRY(const Timeline predicted, simulate(plan, answer.cluster, {}, stop));
    auto match = std::make_shared<TraceMatch>();
    TRY(match->matched, matchPlan(document.trace, document.analysis, plan, predicted, stop));
    match->errors = spanErrors(plan, predicted, match->matched.measured);
    match->predictedSeconds = static_cast<double>(predicted.step.count()) * 1e-9;
    match->measuredSeconds = static_cast<double>(match->matched.measured.step.count()) * 1e-9;
    match->plan = whole;
    for (const RankTrace &rank : document.trace.ranks) {
        if (stop.stop_requested())
            return cancelled();
        match->predicted.push_back(predictedRank(plan, predicted, rank.rank, match->matched.begin));
        match->end = std::max(match->end, extentOf(match->predicted.back()).second);
    }
    return TraceMatchSnapshot(std::move(match));
}

} // namespace planloom
