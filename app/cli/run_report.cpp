#include "app/cli/run_report.h"

#include "engine/runtime/processes/run_event.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cmath>
#include <cstdio>

namespace planloom::cli {

using nlohmann::json;

std::string referenceText(const ExecutionPlan &plan)
{
    return plan.precisions.empty() ? "the unpartitioned model"
                                   : "the unpartitioned model in the same number formats";
}

std::string verdictText(const CheckReport &report)
{
    const auto number = [](const char *format, double value) {
        std::array<char, 64> text{};
        std::snprintf(text.data(), text.size(), format, value);
        return std::string(text.data());
    };
    std::string text = report.ok ? "equal" : "DIFFERENT";
    text += " (worst: " + report.worstTensor + number(", %.2g", report.worstError);
    if (report.inDouble || !report.ok)
        text += number(" where rounding alone explains %.2g", report.allowed);
    if (report.inDouble)
        text += number("; in double precision %.2g", *report.inDouble);
    return text + ")";
}

bool showEvent(const std::string &line, std::int64_t &before)
{
    const RunEvent event = readRunEvent(line);
    const std::string &type = event.type;
    const auto step = static_cast<long long>(event.step);
    // A forward pass alone has no loss, and a loss that is no number is none in JSON.
    if (type == "step" && !std::isnan(event.loss))
        std::fprintf(
            stderr, "step %lld: loss %.7g, %.1f ms\n", before + step + 1, event.loss, event.seconds * 1e3);
    else if (type == "step")
        std::fprintf(stderr, "step %lld: %.1f ms\n", before + step + 1, event.seconds * 1e3);
    else if (type == "checkpoint")
        std::fprintf(stderr, "checkpoint of step %lld: %s\n", step, event.path.c_str());
    else if (type == "resumed") {
        before = event.step;
        std::fprintf(stderr, "goes on behind step %lld of %s\n", step, event.path.c_str());
    } else if (type == "finishing")
        std::fprintf(stderr, "ends behind this step; Ctrl-C again ends it now\n");
    else if (type == "warn" || type == "stalled")
        std::fprintf(stderr, "%s: %s\n", type.c_str(), event.text.c_str());
    return true;
}

json checkJson(const CheckReport &report, const ExecutionPlan &plan)
{
    return {{"ok", report.ok}, {"reference", referenceText(plan)},
        {"worst",
            {{"tensor", report.worstTensor}, {"error", report.worstError}, {"allowed", report.allowed}}},
        {"in_double", report.inDouble ? json(*report.inDouble) : json(nullptr)},
        {"first_difference", report.firstDifference}};
}

} // namespace planloom::cli
