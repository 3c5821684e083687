#include "sessions/session_report.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/design/remembered.h"
#include "engine/frontend/file_kind.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/simulate/simulate.h"
#include "sessions/session_request.h"

namespace planloom {

namespace {

std::string nameOfFile(const std::string &path)
{
    return path.substr(path.find_last_of('/') + 1);
}

Result<ReportedPlan> reportedFile(
    const std::string &path, const std::string &cluster, std::vector<ReportTable> &tables)
{
    if (!looksLikeSession(path))
        return reportedPlanFile(path, cluster);
    if (!cluster.empty())
        return Error{ErrorCode::InvalidInput, "a session has its cluster: --cluster would have no effect",
            "leave it out, or report a plan file", "--cluster"};
    return reportedSession(path, tables);
}

} // namespace

Result<ReportedPlan> reportedPlanFile(const std::string &path, const std::string &cluster)
{
    ReportedPlan plan{.name = nameOfFile(path)};
    TRY(const std::string text, readFile(path, {.pipes = true}));
    auto read = executionPlanFromJson(text);
    if (!read) {
        if (const auto kind = findFileKind(text);
            kind && kind != FileKind::ExecutionPlan && kind != FileKind::Json)
            return Error{ErrorCode::InvalidInput,
                std::string("this is ") + nameOf(*kind)
                    + ", where an execution plan or a session was expected",
                "planloom-cli solve MODEL --out FILE writes a plan", path};
        Error error = std::move(read).error();
        error.where = path + ":" + error.where;
        return error;
    }
    plan.plan = *std::move(read);
    TRY(Target target, resolve(cluster.empty() ? rememberedTarget(plan.plan) : TargetChoice{cluster, {}, 0}));
    plan.cluster = std::move(target.cluster);
    const std::size_t devices = plan.plan.devices.size() * at(plan.plan.units.count);
    if (at(plan.cluster.deviceCount) < devices)
        return Error{ErrorCode::InvalidInput,
            "the plan uses " + std::to_string(devices) + " devices, " + plan.cluster.name + " has "
                + std::to_string(plan.cluster.deviceCount),
            "name a larger cluster", "--cluster"};
    TRY(plan.timeline, simulate(plan.plan, plan.cluster));
    if (const auto rows = rowsRemembered(plan.plan))
        plan.rows = TableDocument(*rows).table();
    return plan;
}

Result<ReportedPlan> reportedSession(const std::string &path, std::vector<ReportTable> &tables)
{
    TRY(const auto opened, SessionStore::openToLook(path));
    TRY(PlanRequest request, requestOf(opened.contents));
    request.upTo = PlanGrade::Simulated;
    TRY(const PlanAnswerSnapshot answer, planOf(request));
    ReportedPlan plan{.name = nameOfFile(path)};
    plan.plan = *answer->execution;
    plan.cluster = answer->cluster;
    plan.timeline = *answer->timeline;
    plan.rows = answer->table.table();
    const History &history = opened.contents.history;
    ReportTable steps{"History of " + plan.name, "The report is of the step that the session stands at.",
        {"step", "after", "what was done", "step time", "fullest device"}, {}};
    for (const HistoryStep &step : history.steps())
        steps.rows.push_back({std::to_string(step.id) + (step.id == history.current() ? " (here)" : ""),
            std::to_string(step.parent), step.words,
            step.figures ? formatSeconds(step.figures->stepSeconds) : "",
            step.figures ? formatBytes({step.figures->peakBytes}) : ""});
    if (!steps.rows.empty())
        tables.push_back(std::move(steps));
    return plan;
}

Result<Report> reportOfFiles(const std::string &path, const std::string &other, const std::string &cluster)
{
    Report report;
    for (const std::string &each : {path, other}) {
        if (each.empty())
            continue;
        TRY(ReportedPlan plan, reportedFile(each, cluster, report.tables));
        report.plans.push_back(std::move(plan));
    }
    return report;
}

} // namespace planloom
