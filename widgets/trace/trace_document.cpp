#include "widgets/trace/trace_document.h"

#include "engine/lowering/program/expand_units.h"
#include "engine/simulate/simulate.h"
#include "engine/traces/matching/match_kernels.h"

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

} // namespace

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
    const ExecutionPlan plan = expandUnits(*answer.execution);
    TRY(const Timeline predicted, simulate(plan, answer.cluster, {}, stop));
    auto match = std::make_shared<TraceMatch>();
    TRY(match->matched, matchPlan(document.trace, document.analysis, plan, predicted, stop));
    match->errors = spanErrors(plan, predicted, match->matched.measured);
    match->predictedSeconds = static_cast<double>(predicted.step.count()) * 1e-9;
    match->measuredSeconds = static_cast<double>(match->matched.measured.step.count()) * 1e-9;
    return TraceMatchSnapshot(std::move(match));
}

} // namespace planloom
