#include "app/cli/advice.h"
#include "app/cli/commands.h"
#include "app/cli/commands_watch.h"
#include "app/cli/conflicts.h"
#include "app/cli/idle_report.h"
#include "app/cli/model.h"
#include "app/cli/peak_report.h"
#include "app/cli/solve_for.h"

#include "engine/analyse/bound.h"
#include "engine/analyse/limits.h"
#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/design/explain/suggestions.h"
#include "engine/design/remembered.h"
#include "engine/design/schedules/schedule_choice.h"
#include "engine/frontend/training/autodiff.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/interop/perfetto.h"
#include "engine/kernels/kernel.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/naming/plan_name.h"
#include "engine/plan/precision_rule.h"
#include "engine/simulate/simulate.h"
#include "engine/simulate/summary.h"
#include "engine/table/layers.h"
#include "engine/verify/same_model.h"
#include "engine/verify/verify.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <set>

namespace planloom::cli {

namespace {

using nlohmann::json;

constexpr double kMostSecondsOfWays = 6; ///< Of simulations, for ways within limits.

void printJson(const json &object)
{
    std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
}

/// What the plan's device is called, where the cluster has several kinds; empty elsewhere.
std::string classNameOf(const Cluster &cluster, const ScaleUnits &units, std::size_t device)
{
    const DeviceId id = units.deviceOf(0, DeviceId{static_cast<std::int32_t>(device)});
    return cluster.otherClasses.empty() ? std::string{} : cluster.deviceAt(id).name;
}

json devicesToJson(const TimelineSummary &summary, const Cluster &cluster, const ScaleUnits &units)
{
    json devices = json::array();
    for (std::size_t d = 0; d < summary.devices.size(); ++d) {
        const DeviceSummary &device = summary.devices[d];
        devices.push_back({{"peak_bytes", device.peak.count}, {"host_peak_bytes", device.hostPeak.count},
            {"busy_seconds", device.busySeconds}, {"bubble", device.bubble},
            {"sent_bytes", device.sent.count},
            {"exposed_communication_seconds", device.exposedCommunicationSeconds}});
        if (const std::string name = classNameOf(cluster, units, d); !name.empty())
            devices.back()["class"] = name;
    }
    return devices;
}

void printDevices(const TimelineSummary &summary, const Cluster &cluster, const ScaleUnits &units)
{
    const bool offloads = summary.largestHostPeak.count > 0;
    std::printf("  %-8s %12s %12s %9s %14s%s\n", "device", "peak", "busy", "bubble", "sent",
        offloads ? "         host" : "");
    for (std::size_t d = 0; d < summary.devices.size(); ++d) {
        const DeviceSummary &device = summary.devices[d];
        const std::string name = classNameOf(cluster, units, d);
        const std::string host = offloads ? " " + formatBytes(device.hostPeak) : std::string{};
        std::printf("  %-8zu %12s %12s %8.1f%% %14s%*s%s%s\n", d, formatBytes(device.peak).c_str(),
            secondsText(device.busySeconds).c_str(), device.bubble * 100, formatBytes(device.sent).c_str(),
            offloads ? 13 : 0, host.c_str(), name.empty() ? "" : "  ", name.c_str());
    }
}

Result<void> writeTrace(const std::string &path, const ExecutionPlan &plan, const Timeline &timeline)
{
    return writeFileBy(path, [&](std::ostream &stream) { return writePerfetto(stream, plan, timeline); });
}

} // namespace

Result<int> runInfo(const Arguments &arguments)
{
    TRY(const auto source, modelSource(arguments, arguments.positional()));
    TRY(const auto graph, openForward(source));
    double flops = 0;
    std::int64_t parameters = 0;
    std::map<std::string, std::int64_t> kinds;
    json notAnnotated = json::array();
    json notRunnable = json::array();
    std::int64_t fused = 0;
    for (const Operator &op : graph.operators) {
        std::vector<TensorType> inputs;
        std::vector<TensorType> outputs;
        for (const TensorId id : op.inputs)
            inputs.push_back(id ? graph.at(id).type : TensorType{});
        for (const TensorId id : op.outputs)
            outputs.push_back(id ? graph.at(id).type : TensorType{});
        flops += workOf(op, inputs, outputs).flops;
        ++kinds[typeNameOf(op)];
        if (!op.annotationProblem.empty() || op.kind == OperatorKind::Unknown)
            notAnnotated.push_back({{"operator", op.name}, {"reason", op.annotationProblem}});
        if (!hasKernel(op))
            notRunnable.push_back(op.name);
        fused += op.sources.size() > 1 ? 1 : 0;
    }
    for (const Tensor &tensor : graph.tensors)
        if (tensor.role == TensorRole::Weight)
            parameters += elementCount(tensor.type.shape);
    std::map<StoredAs, std::int64_t> storedCounts;
    json stored = json::array();
    for (const TensorId id : storedTensors(graph)) {
        const Tensor &tensor = graph.at(id);
        if (tensor.role != TensorRole::Input)
            ++storedCounts[tensor.classification->as];
        stored.push_back({{"name", tensor.name}, {"name_in_file", nameInFiles(tensor)},
            {"shape", tensor.type.shape}, {"type", nameOf(tensor.type.dataType)},
            {"as", tensor.role == TensorRole::Input ? "input" : nameOf(tensor.classification->as)},
            {"why", tensor.classification->why}});
        if (!tensor.classification->insteadOf.empty())
            stored.back()["instead_of"] = tensor.classification->insteadOf;
    }
    json dimensions = json::array();
    for (const InputDimension &each : graph.dimensions) {
        dimensions.push_back(
            {{"name", each.name}, {"size", each.size}, {"least", each.least}, {"places", each.places}});
        dimensions.back()["most"] = each.most == kOpenEnd ? json(nullptr) : json(each.most);
    }
    json obstacles = json::array();
    for (const Obstacle &each : graph.obstacles)
        obstacles.push_back({{"operator", each.op}, {"reason", each.message}, {"advice", each.advice}});
    json noDerivative = json::array();
    for (const OperatorId op : withoutDerivative(graph))
        noDerivative.push_back(graph.at(op).name);
    const auto layers = static_cast<std::int64_t>(findLayers(graph).scopes.size());
    if (arguments.has("json")) {
        printJson(
            {{"model", graph.name}, {"operators", graph.operators.size()}, {"tensors", graph.tensors.size()},
                {"parameters", parameters}, {"flops_forward", flops}, {"layers", layers}, {"kinds", kinds},
                {"fused", fused}, {"not_annotated", notAnnotated}, {"not_runnable", notRunnable},
                {"no_derivative", noDerivative}, {"obstacles", obstacles}, {"dimensions", dimensions},
                {"stored", stored}, {"notes", graph.notes}, {"has_loss", graph.loss.valid()}});
        return 0;
    }
    std::printf("%s\n", arguments.positional().c_str());
    std::printf("  operators      %zu (%lld fused from several nodes)\n", graph.operators.size(),
        static_cast<long long>(fused));
    std::printf("  tensors        %zu\n", graph.tensors.size());
    std::printf("  parameters     %.3f M\n", static_cast<double>(parameters) / 1e6);
    std::printf("  stored         %s, %s, %s\n",
        counted(storedCounts[StoredAs::Parameter], "parameter").c_str(),
        counted(storedCounts[StoredAs::Buffer], "buffer").c_str(),
        counted(storedCounts[StoredAs::Constant], "constant").c_str());
    std::printf("  forward        %.3f GFLOP\n", flops / 1e9);
    std::printf("  layers         %lld\n", static_cast<long long>(layers));
    std::printf(
        "  loss           %s\n", graph.loss ? graph.at(graph.loss).name.c_str() : "none (inference only)");
    for (const auto &[kind, count] : kinds)
        std::printf("    %-22s %lld\n", kind.c_str(), static_cast<long long>(count));
    for (const json &item : notAnnotated)
        std::printf("  kept whole: %s: %s\n", item["operator"].get<std::string>().c_str(),
            item["reason"].get<std::string>().c_str());
    for (const json &name : notRunnable)
        std::printf("  cannot be run: %s\n", name.get<std::string>().c_str());
    for (const json &name : noDerivative)
        std::printf("  cannot be trained through: %s\n", name.get<std::string>().c_str());
    for (const InputDimension &each : graph.dimensions)
        std::printf("  size           %s = %lld (%s)\n", each.name.c_str(), static_cast<long long>(each.size),
            rangeText(each).c_str());
    for (const std::string &note : graph.notes)
        std::printf("  note: %s\n", note.c_str());
    for (const Obstacle &each : graph.obstacles)
        std::printf("  cannot be planned: %s%s%s\n", each.message.c_str(), each.advice.empty() ? "" : "; ",
            each.advice.c_str());
    return 0;
}

namespace {

/// What the search decided, and how good it is.
json searchToJson(const PlanAnswer &solved)
{
    if (!solved.search)
        return nullptr;
    const SearchResult &search = *solved.search;
    json rows = json::array();
    for (const RowLine &row : solved.rows)
        if (row.row.index >= solved.searchedRow)
            rows.push_back(row.text);
    json seen = json::array();
    for (const SearchedPlan &plan : search.seen)
        if (plan.simulatedSeconds > 0)
            seen.push_back({{"plan", toString(plan.configuration)}, {"model_seconds", plan.seconds},
                {"simulated_seconds", plan.simulatedSeconds}, {"model_peak_bytes", plan.peakBytes},
                {"simulated_peak_bytes", plan.simulatedPeak}, {"at_seconds", plan.at}});
    return {{"plan", toString(search.best.configuration)}, {"rows", rows}, {"fits", search.fits},
        {"model_seconds", search.best.seconds}, {"bound_seconds", search.bound}, {"gap", search.gap()},
        {"bound_of",
            !search.isOfOthers()       ? "all"
                : search.best.isBeside ? "priced"
                                       : "equal stages"},
        {"configurations", search.configurations}, {"priced", search.seen.size()}, {"simulated", seen},
        {"memory_limit_bytes", search.memoryLimit}, {"least_peak_bytes", search.leastPeak},
        {"least_needed_bytes", search.leastNeeded}, {"proven_too_large", search.cannotFit()},
        {"seconds", search.searchSeconds}};
}

void printSearch(const PlanAnswer &solved)
{
    if (!solved.search)
        return;
    const SearchResult &search = *solved.search;
    std::printf("  found          %s: none of %s%s is likely below %s",
        toString(search.best.configuration).c_str(), counted(search.configurations, "configuration").c_str(),
        !search.isOfOthers()       ? ""
            : search.best.isBeside ? " that are priced"
                                   : " with equal stages",
        secondsText(search.bound).c_str());
    if (search.isOfOthers())
        std::printf("\n");
    else
        std::printf(": gap about %.1f%% at most\n", search.gap() * 100);
    if (search.cannotFit())
        std::printf("  memory         nothing fits %s: every plan takes %s of some device at least; this is "
                    "about the least that was found\n",
            formatBytes(Bytes{search.memoryLimit}).c_str(), formatBytes(Bytes{search.leastNeeded}).c_str());
    else if (!search.fits)
        std::printf("  memory         nothing was found that fits %s: this is the least\n",
            formatBytes(Bytes{search.memoryLimit}).c_str());
    for (const RowLine &row : solved.rows)
        if (row.row.index >= solved.searchedRow)
            std::printf("    %s\n",
                row.text.size() > 100 ? (row.text.substr(0, 97) + "...").c_str() : row.text.c_str());
    std::printf("  searched in    %s\n", secondsText(search.searchSeconds).c_str());
}

} // namespace

namespace {

/// The answer with the schedule of --schedule: as the rows have it, one with a name, or the best.
Result<ScheduleChoice> answerWithSchedule(const Arguments &arguments, PlanRequest request)
{
    const std::string name = arguments.text("schedule");
    if (arguments.has("schedule") && name == "best") {
        request.explains = false; // rows that no schedule can carry out are an error as for each
        return chooseSchedule(request, {});
    }
    if (arguments.has("schedule")) {
        if (!scheduleNamed(name))
            return Error{ErrorCode::InvalidInput, "there is no schedule \"" + name.substr(0, 40) + "\"",
                "known: best, " + scheduleNames(), "--schedule"};
        TRY(request, withSchedule(request, ScheduleRule{*scheduleNamed(name), {}}));
    }
    TRY(const PlanAnswerSnapshot solved, answerOf(request));
    return ScheduleChoice{.best = solved};
}

json triedToJson(const ScheduleChoice &choice)
{
    json tried = json::array();
    for (const TriedSchedule &each : choice.tried) {
        json one{{"schedule", each.name}};
        if (each.problem)
            one["problem"] = each.problem->message;
        else
            one.update({{"step_seconds", each.stepSeconds}, {"bubble", each.bubble},
                {"peak_bytes", each.peak.count}, {"fits", each.fits}});
        tried.push_back(std::move(one));
    }
    return tried;
}

/// What the searches know: of pipelines with whole backward passes, then with split ones.
json searchesToJson(const ScheduleChoice &choice)
{
    constexpr double kSecond = 1e9;
    json searches = json::array();
    for (const ScheduleSearch &each : choice.searches) {
        json one{{"status", nameOf(each.status)}, {"makespan_seconds", nullptr},
            {"makespan_bound_seconds", static_cast<double>(each.makespan.bound) / kSecond},
            {"period_seconds", nullptr},
            {"step_bound_seconds", static_cast<double>(each.stepBound()) / kSecond},
            {"period_bound_seconds", static_cast<double>(each.period.bound) / kSecond},
            {"stages", nameOf(each.shape)}, {"splits_backward", each.splits}, {"seconds", each.seconds},
            {"proof", each.proof}};
        if (!each.makespan.starts.empty())
            one["makespan_seconds"] = static_cast<double>(each.makespan.makespan) / kSecond;
        if (each.period.schedule)
            one["period_seconds"] = static_cast<double>(each.period.schedule->period) / kSecond;
        searches.push_back(std::move(one));
    }
    return searches;
}

void printTried(const ScheduleChoice &choice)
{
    for (const TriedSchedule &each : choice.tried)
        if (!each.problem)
            std::printf("  %-14s %s, bubble %.1f%%, peak %s%s\n", each.name.c_str(),
                secondsText(each.stepSeconds).c_str(), each.bubble * 100, formatBytes(each.peak).c_str(),
                each.fits ? "" : " (does not fit)");
}

} // namespace

namespace {

json copiedToJson(const CopiedWork &copied, const Graph &graph)
{
    json operators = json::array();
    for (const CopiedOperator &each : copied.operators)
        operators.push_back(
            {{"name", graph.at(each.op).name}, {"share", each.share}, {"reason", each.reason}});
    return {{"share", copied.share}, {"operators", operators}};
}

/// What is written computes the model, or is not written.
Result<void> checkEquivalence(const ExecutionPlan &execution)
{
    TRY(const VerifyReport report, verify(execution));
    if (report.ok())
        return {};
    return Error{ErrorCode::CheckFailed,
        "the plan of these rows would not compute the model: " + report.failure->reason,
        "use one micro-batch, or another partition of the operators it names", "solve"};
}

/// Why a plan is of the forward pass alone, where nobody asked for that; empty elsewhere.
std::string untrained(const OpenedModel &model)
{
    if (model.source.options.inference || model.graph->loss.valid())
        return {};
    std::string outputs;
    for (const TensorId id : model.graph->outputs)
        outputs += (outputs.empty() ? "'" : ", '") + model.graph->at(id).name + "'";
    return "the model has no loss, so the plan is of its forward pass alone: --loss names an output to train "
           "on ("
        + outputs + "), --inference says that this is meant";
}

/// Rows that don't hold, with ways out. @return the exit status
Result<int> tellConflicts(const Arguments &arguments, const PlanRequest &request, const PlanAnswer &solved)
{
    PlanAnswer told = solved;
    if (exceedsLimits(told)) {
        TRY(const auto ways, waysWithinLimits(request, told, kMostSecondsOfWays));
        std::vector<RowWayOut> &known = told.conflicts.front().waysOut;
        known.insert(known.end(), ways.begin(), ways.end());
    }
    printConflicts(told);
    if (arguments.has("json"))
        printJson(conflictsToJson(told));
    return exitStatusOf(told);
}

/// Into what a step is cut, and how often the plan stands side by side.
void printCuts(const ExecutionPlan &execution)
{
    std::printf("  micro-batches  %d, stages %d\n", execution.microBatches, execution.stageCount);
    if (execution.updates > 1)
        std::printf("  updates        %d, each of %s\n", execution.updates,
            counted(microBatchesPerUpdate(execution), "micro-batch").c_str());
    if (!execution.units.isOne())
        std::printf("  units          %d alike, of %zu devices each\n", execution.units.count,
            execution.devices.size());
}

} // namespace

Result<int> runSolve(const Arguments &arguments)
{
    if (arguments.has("watch")) {
        for (const char *other : {"table", "schedule", "out", "for"})
            if (arguments.has(other))
                return Error{ErrorCode::InvalidInput, std::string("--watch goes without --") + other,
                    "leave one of them out", "--watch"};
        return watchTable(arguments);
    }
    TRY(auto request, planRequest(arguments, arguments.positional()));
    request.upTo = PlanGrade::Timed;
    request.search = !arguments.has("no-search") && !arguments.has("gallery");
    request.explains = true;
    request.allowsCopies = arguments.has("allow-copies");
    std::optional<PlanFor> planFor;
    if (arguments.has("for")) {
        TRY(planFor, solvedFor(arguments, request));
        request = planFor->search.best.request;
    }
    TRY(const ScheduleChoice choice, answerWithSchedule(arguments, request));
    const PlanAnswerSnapshot &solved = choice.best;
    if (auto error = solved->firstError())
        return solved->conflicts.empty() ? Result<int>(*std::move(error))
                                         : tellConflicts(arguments, request, *solved);
    const TimelineSummary &summary = solved->summary;
    const ExecutionPlan &execution = *solved->execution;
    // What a search says of the plans beside its own is nearer than what the work alone takes.
    const bool searched = solved->search && solved->search->fits && !solved->search->isOfOthers();
    const double bound =
        searched ? solved->search->bound : stepBound(execution, costModelOf(solved->cluster));
    const double gap = summary.stepSeconds > 0 ? std::max(0.0, 1 - bound / summary.stepSeconds) : 0;
    std::vector<std::string> warnings;
    for (const RowWarning &warning : solved->warnings)
        warnings.push_back(rowWords(warning.row.index) + ": " + warning.sentence);
    if (const std::string unsaid = untrained(*solved->model); !unsaid.empty())
        warnings.push_back(unsaid);
    if (const auto &problem = solved->searchProblem)
        warnings.push_back("nothing was searched for: " + problem->message
            + (problem->advice.empty() ? "" : "; " + problem->advice));
    if (const auto overflow = hostOverflow(summary, solved->cluster, execution.units))
        warnings.push_back(overflow->message + ": " + overflow->advice);
    if (std::string words = copiedWords(solved->copied, *execution.graph); !words.empty())
        warnings.push_back(std::move(words));
    TRY_VOID(checkEquivalence(execution));
    if (arguments.has("out"))
        TRY_VOID(writeFile(arguments.text("out"), planFileText(execution)));
    const PlanName name = planNameOf(*solved->plan, *solved->model);
    if (arguments.has("json")) {
        printJson({{"name", name.sentence}, {"title", name.title}, {"search", searchToJson(*solved)},
            {"step_seconds", summary.stepSeconds}, {"bound_seconds", bound}, {"gap", gap},
            {"devices", devicesToJson(summary, solved->cluster, execution.units)},
            {"micro_batches", execution.microBatches}, {"stages", execution.stageCount},
            {"updates", execution.updates}, {"units", execution.units.count},
            {"solve_seconds", solved->solveSeconds}, {"bubble", summary.bubble},
            {"precision", precisionSummary(*solved->plan)}, {"conflict", json::array()},
            {"rows", solved->rows.size()}, {"warnings", warnings},
            {"copied", copiedToJson(solved->copied, *execution.graph)},
            {"schedule", nameOf(solved->plan->schedule)}, {"schedules", triedToJson(choice)},
            {"schedule_searches", searchesToJson(choice)}, {"free_decisions", freeDecisionsToJson(*solved)},
            {"for", planFor ? planForJson(*planFor) : json(nullptr)},
            {"suggestions", arguments.has("suggest") ? suggestionsToJson(request, *solved) : json(nullptr)}});
        return 0;
    }
    std::printf("%s on %s\n", arguments.positional().c_str(), solved->cluster.name.c_str());
    printSearch(*solved);
    if (planFor)
        printPlanFor(*planFor);
    std::printf("  plan           %s\n", name.sentence.c_str());
    std::printf("  step           %s", secondsText(summary.stepSeconds).c_str());
    if (!searched)
        std::printf(" (no plan of this step on these devices is below %s: gap at most %.1f%%)",
            secondsText(bound).c_str(), gap * 100);
    std::printf("\n");
    std::printf("  bubble         %.1f%%\n", summary.bubble * 100);
    printCuts(execution);
    std::printf("  precision      %s\n", precisionSummary(*solved->plan).c_str());
    std::printf("  solved in      %s\n", secondsText(solved->solveSeconds).c_str());
    for (const RowLine &row : solved->rows)
        if (!row.remark.empty())
            std::printf("  limit          row %d holds: %s\n", row.row.index + 1, row.remark.c_str());
    for (const std::string &warning : warnings)
        std::printf("  warning        %s\n", warning.c_str());
    printDevices(summary, solved->cluster, execution.units);
    printTried(choice);
    return 0;
}

Result<int> runSimulate(const Arguments &arguments)
{
    TRY(const auto plan, readPlan(arguments.positional()));
    TRY(Cluster cluster, clusterOf(arguments, plan));
    if (arguments.has("one-queue"))
        cluster.communicationQueues = CommunicationQueues::One;
    cluster.blockingSends = cluster.blockingSends || arguments.has("blocking-sends");
    SimulateOptions options;
    options.spans = arguments.has("trace") || arguments.has("idle") || arguments.has("peak");
    TRY(const auto timeline, simulate(plan, cluster, options));
    const TimelineSummary summary = summaryOf(timeline);
    if (arguments.has("trace"))
        TRY_VOID(writeTrace(arguments.text("trace"), plan, timeline));
    std::optional<IdleTimes> idle;
    if (arguments.has("idle")) {
        TRY(const auto dependencies, dependenciesOf(plan, timeline));
        idle = idleTimes(plan, nullptr, timeline, dependencies);
    }
    std::optional<PeakReport> peak;
    if (arguments.has("peak"))
        peak = peakOf(plan, timeline);
    if (arguments.has("json")) {
        json object{{"step_seconds", summary.stepSeconds},
            {"devices", devicesToJson(summary, cluster, plan.units)}, {"micro_batches", plan.microBatches},
            {"bubble", summary.bubble}, {"cluster", cluster.name}};
        if (idle)
            object["idle"] = idleToJson(*idle);
        if (peak)
            object["peak"] = peakToJson(*peak);
        printJson(object);
        return 0;
    }
    std::printf("%s on %s: step %s, bubble %.1f%%\n", arguments.positional().c_str(), cluster.name.c_str(),
        secondsText(summary.stepSeconds).c_str(), summary.bubble * 100);
    printDevices(summary, cluster, plan.units);
    if (idle)
        printIdle(*idle);
    if (peak)
        printPeak(*peak);
    return 0;
}

namespace {

/// Of which step a proof is.
std::string microBatchText(const VerifyReport &report)
{
    const std::string count = std::to_string(report.microBatches);
    if (report.wholeBatches)
        return ", as a mean over " + count + " micro-batches that are each a whole batch";
    return report.microBatches > 1 ? ", in " + count + " micro-batches" : std::string{};
}

} // namespace

Result<int> runVerify(const Arguments &arguments)
{
    TRY(const auto plan, readPlan(arguments.positional()));
    const auto start = std::chrono::steady_clock::now();
    TRY(auto report, verify(plan));
    // A plan carries its graph; where the model is at hand, it must be the model's.
    std::string note;
    if (const auto it = plan.origin.find("model"); report.ok() && it != plan.origin.end()) {
        TRY(const auto source, rememberedModel(plan));
        if (!isAtHand(source)) {
            note = "the model " + it->second + " is not at hand; the plan was held against its own graph";
        } else {
            TRY(const auto model, openToTrain(source));
            if (std::string difference = differenceOf(*plan.graph, *model->graph); !difference.empty())
                report.failure = VerifyFailure{.reason = std::move(difference)};
        }
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (arguments.has("json")) {
        json object{{"ok", report.ok()}, {"instructions", report.instructions}, {"seconds", seconds},
            {"micro_batches", plan.microBatches}, {"whole_batches", report.wholeBatches}};
        if (!note.empty())
            object["note"] = note;
        if (report.failure)
            object["first_failure"] = {{"device", report.failure->device.index},
                {"segment", report.failure->segment}, {"instruction", report.failure->instruction},
                {"micro_batch", report.failure->microBatch}, {"reason", report.failure->reason}};
        printJson(object);
        return report.ok() ? 0 : 1;
    }
    if (!note.empty())
        std::printf("note: %s\n", note.c_str());
    if (report.ok())
        std::printf("verified: %lld instructions compute what the model says%s%s (%s)\n",
            static_cast<long long>(report.instructions), microBatchText(report).c_str(),
            plan.precisions.empty() ? "" : ", in the plan's number formats", secondsText(seconds).c_str());
    else
        std::printf("not equivalent: %s\n  device %d, segment %d, instruction %d, micro-batch %d\n",
            report.failure->reason.c_str(), report.failure->device.index, report.failure->segment,
            report.failure->instruction, report.failure->microBatch);
    return report.ok() ? 0 : 1;
}

} // namespace planloom::cli
