#include "app/cli/commands.h"
#include "app/cli/compare_models.h"
#include "app/cli/model.h"

#include "engine/analyse/plan_difference.h"
#include "engine/analyse/steady_state.h"
#include "engine/analyse/waterfall.h"
#include "engine/base/words.h"
#include "engine/design/explain/traced_difference.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <iostream>

namespace planloom::cli {

namespace {

using nlohmann::json;

constexpr std::size_t kMostListed = 10; ///< Operators in the text; JSON has all of them.

struct Side {
    ExecutionPlan plan{};
    Cluster cluster{};
    Timeline timeline{};
};

Result<Side> simulated(const Arguments &arguments, const std::string &path)
{
    Side side;
    TRY(side.plan, readPlan(path));
    TRY(side.cluster, clusterOf(arguments, side.plan));
    TRY(side.timeline, simulate(side.plan, side.cluster));
    return side;
}

std::string valueText(const MetricDifference &metric, double value)
{
    switch (metric.unit) {
    case MetricDifference::Unit::Seconds:
        return secondsText(value);
    case MetricDifference::Unit::Bytes:
        return formatBytes({static_cast<std::int64_t>(value)});
    case MetricDifference::Unit::Ratio:
        break;
    }
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%", value * 100);
    return text;
}

json steadyJson(const Side &side)
{
    const auto state = steadyStateOf(side.plan, side.timeline);
    if (!state)
        return nullptr;
    return {{"warm_up_seconds", static_cast<double>(state->steadyBegin) * 1e-9},
        {"steady_seconds", static_cast<double>(state->steadyEnd - state->steadyBegin) * 1e-9},
        {"cool_down_seconds", static_cast<double>(state->end - state->steadyEnd) * 1e-9},
        {"period_seconds", static_cast<double>(state->period) * 1e-9}, {"repeats", state->repeats}};
}

void printComparison(const Arguments &arguments, const PlanDifference &difference,
    const std::vector<MetricDifference> &metrics, const Waterfall &waterfall)
{
    std::printf("A  %s\nB  %s\n", arguments.positional(0).c_str(), arguments.positional(1).c_str());
    std::printf("  %-24s %14s %14s %10s\n", "", "A", "B", "change");
    for (const MetricDifference &metric : metrics) {
        char change[32] = "";
        if (metric.percent && metric.unit != MetricDifference::Unit::Ratio)
            std::snprintf(change, sizeof change, "%+.1f%%", *metric.percent);
        else if (metric.unit == MetricDifference::Unit::Ratio)
            std::snprintf(change, sizeof change, "%+.1f points", metric.delta * 100);
        std::printf("  %-24s %14s %14s %10s%s\n", metric.name.c_str(), valueText(metric, metric.a).c_str(),
            valueText(metric, metric.b).c_str(), change,
            metric.delta == 0                                ? ""
                : (metric.delta < 0) == metric.lowerIsBetter ? "  better"
                                                             : "  worse");
    }
    std::printf("where the step's time goes, an average device\n");
    for (std::size_t part = 0; part < kStepPartCount; ++part) {
        const double delta = static_cast<double>(waterfall.delta.nanoseconds[part]) * 1e-9;
        std::printf("  %-24s %14s %14s %10s\n", nameOf(static_cast<StepPart>(part)),
            secondsText(static_cast<double>(waterfall.from.nanoseconds[part]) * 1e-9).c_str(),
            secondsText(static_cast<double>(waterfall.to.nanoseconds[part]) * 1e-9).c_str(),
            ((delta < 0 ? "-" : "+") + secondsText(delta < 0 ? -delta : delta)).c_str());
    }
    std::printf("operators: %zu differ, %d are the same\n", difference.operators.size(), difference.same);
    for (std::size_t i = 0; i < difference.operators.size() && i < kMostListed; ++i)
        std::printf(
            "  %s: %s\n", difference.operators[i].name.c_str(), wordsOf(difference.operators[i]).c_str());
    if (difference.operators.size() > kMostListed)
        std::printf("  and %zu more\n", difference.operators.size() - kMostListed);
}

void printRows(const char *side, const ConstraintTable &table, const std::vector<RowId> &rows)
{
    for (const RowId row : rows)
        std::printf("  %s  row %d: %s\n", side, row.index + 1, print(table.rows[at(row)]).c_str());
}

void printCauses(const Result<TracedPlans> &traced)
{
    if (!traced) {
        std::printf("rows that make them: not known, %s\n", describe(traced.error()).c_str());
        return;
    }
    std::printf("rows that make them\n");
    for (const DifferenceCause &cause : traced->causes) {
        printRows("A", traced->a, cause.a);
        printRows("B", traced->b, cause.b);
        if (cause.a.empty() && cause.b.empty())
            std::printf("  no row\n");
        std::printf("     %s%s: %s", cause.inherited ? "what follows them, " : "",
            counted(static_cast<std::int64_t>(cause.operators.size()), "operator").c_str(),
            wordsOf(cause).c_str());
        if (const std::int64_t change = cause.nanoseconds.value_or(0); change != 0)
            std::printf("; their kernels take %s %s",
                secondsText(static_cast<double>(change < 0 ? -change : change) * 1e-9).c_str(),
                change < 0 ? "less" : "more");
        std::printf("\n");
    }
}

json causesJson(const TracedPlans &traced)
{
    const auto rowsJson = [](const ConstraintTable &table, const std::vector<RowId> &rows) {
        json list = json::array();
        for (const RowId row : rows)
            list.push_back({{"row", row.index}, {"text", print(table.rows[at(row)])}});
        return list;
    };
    json causes = json::array();
    for (const DifferenceCause &cause : traced.causes) {
        json names = json::array();
        for (const OperatorDifference &each : cause.operators)
            names.push_back(each.name);
        causes.push_back({{"a", rowsJson(traced.a, cause.a)}, {"b", rowsJson(traced.b, cause.b)},
            {"inherited", cause.inherited}, {"operators", std::move(names)}, {"how", wordsOf(cause)},
            {"kernel_nanoseconds", cause.nanoseconds ? json(*cause.nanoseconds) : json(nullptr)}});
    }
    return causes;
}

} // namespace

Result<int> runCompare(const Arguments &arguments)
{
    if (comparesModels(arguments))
        return compareModels(arguments);
    TRY(const double atMost, arguments.real("at-most", 0));
    if (arguments.has("at-most") && atMost <= 0)
        return Error{
            ErrorCode::InvalidInput, "expected a ratio above 0, as in --at-most 1.05", {}, "--at-most"};
    TRY(const Side a, simulated(arguments, arguments.positional(0)));
    TRY(const Side b, simulated(arguments, arguments.positional(1)));
    const auto difference = differenceOf(a.plan, b.plan);
    if (!difference)
        return cancelled("the comparison was stopped");
    const std::vector<MetricDifference> metrics = metricsOf(a.timeline, b.timeline);
    const Waterfall waterfall = waterfallOf(a.plan, a.timeline, b.plan, b.timeline);
    const auto stepA = static_cast<double>(a.timeline.step.count());
    const auto stepB = static_cast<double>(b.timeline.step.count());
    const bool tooSlow = arguments.has("at-most") && stepB > atMost * stepA;
    const auto traced = traceDifference(a.plan, a.timeline, b.plan, b.timeline, *difference);
    if (!arguments.has("json")) {
        printComparison(arguments, *difference, metrics, waterfall);
        if (!difference->empty())
            printCauses(traced);
        if (arguments.has("at-most"))
            std::printf("B takes %.4g times as long as A, %s %.4g\n", stepA > 0 ? stepB / stepA : 0.0,
                tooSlow ? "more than" : "at most", atMost);
        return tooSlow ? 1 : 0;
    }
    json object{{"same_operators", difference->same}, {"operators", json::array()},
        {"metrics", json::object()}, {"waterfall", json::object()},
        {"steady_state", {{"a", steadyJson(a)}, {"b", steadyJson(b)}}},
        {"ratio", stepA > 0 ? json(stepB / stepA) : json(nullptr)}, {"ok", !tooSlow}};
    for (const OperatorDifference &one : difference->operators) {
        json entry{{"name", one.name}, {"split", one.split}, {"placed", one.placed}, {"ordered", one.ordered},
            {"computed", one.computed}};
        if (!one.a.valid() || !one.b.valid())
            entry["only_in"] = one.a.valid() ? "a" : "b";
        object["operators"].push_back(std::move(entry));
    }
    for (const MetricDifference &metric : metrics)
        object["metrics"][metric.name] = {{"a", metric.a}, {"b", metric.b}, {"delta", metric.delta},
            {"percent", metric.percent ? json(*metric.percent) : json(nullptr)},
            {"lower_is_better", metric.lowerIsBetter}};
    for (std::size_t part = 0; part < kStepPartCount; ++part)
        object["waterfall"][nameOf(static_cast<StepPart>(part))] = {
            {"a_nanoseconds", waterfall.from.nanoseconds[part]},
            {"b_nanoseconds", waterfall.to.nanoseconds[part]},
            {"delta_nanoseconds", waterfall.delta.nanoseconds[part]}};
    object["causes"] = traced ? causesJson(*traced) : json(nullptr);
    std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
    return tooSlow ? 1 : 0;
}

} // namespace planloom::cli
