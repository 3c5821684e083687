#include "app/cli/match_report.h"

#include "engine/base/words.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace planloom::cli {

namespace {

using nlohmann::json;

double inSeconds(std::int64_t nanoseconds)
{
    return static_cast<double>(nanoseconds) * 1e-9;
}

json errorsJson(const std::vector<SpanError> &errors)
{
    json list = json::array();
    for (const SpanError &each : errors) {
        list.push_back({{"what", each.what}, {"count", each.count}, {"predicted_seconds", each.predicted},
            {"measured_seconds", each.measured}});
        if (each.device >= 0)
            list.back()["device"] = each.device;
    }
    return list;
}

std::string ratioText(double measured, double predicted)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.2f", measured / predicted);
    return predicted > 0 ? text : "-";
}

} // namespace

MatchReport matchReport(const ExecutionPlan &plan, const Timeline &predicted, MatchedTrace matched)
{
    MatchReport report;
    report.matched = std::move(matched);
    report.errors = spanErrors(plan, predicted, report.matched.measured);
    report.collectives = collectivesBySize(plan, predicted, report.matched.measured);
    report.waterfall = waterfallOf(plan, predicted, plan, report.matched.measured);
    return report;
}

json matchToJson(const MatchReport &report)
{
    const MatchedTrace &matched = report.matched;
    json counts = json::array();
    for (const MatchCount &each : matched.counts)
        counts.push_back({{"kind", nameOf(each.kind)}, {"matched", each.matched},
            {"only_plan", each.onlyPlan}, {"only_trace", each.onlyTrace}});
    json collectives = json::array();
    for (const CollectiveFigures &each : report.collectives)
        collectives.push_back({{"kind", nameOf(each.kind)}, {"members", each.members}, {"bytes", each.bytes},
            {"count", each.count}, {"predicted_seconds", each.predicted}, {"measured_seconds", each.measured},
            {"best_seconds", each.best}});
    json parts = json::object();
    for (std::size_t i = 0; i < kStepPartCount; ++i) {
        const auto part = static_cast<StepPart>(i);
        std::string key = nameOf(part);
        std::replace(key.begin(), key.end(), ' ', '_');
        parts[key + "_seconds"] = {{"predicted", inSeconds(report.waterfall.from[part])},
            {"measured", inSeconds(report.waterfall.to[part])}};
    }
    return {{"step", matched.step ? json(*matched.step) : json(nullptr)}, {"ranks", matched.ranks},
        {"is_exact", matched.isExact}, {"predicted_seconds", inSeconds(report.waterfall.from.step())},
        {"measured_seconds", inSeconds(report.waterfall.to.step())}, {"counts", counts},
        {"kinds", errorsJson(report.errors.kinds)}, {"worst", errorsJson(report.errors.worst)},
        {"collectives", collectives}, {"parts", parts},
        {"matched_compute_seconds", inSeconds(matched.matchedCompute)},
        {"shared_compute_seconds", inSeconds(matched.sharedCompute)}};
}

void printMatch(const MatchReport &report)
{
    const MatchedTrace &matched = report.matched;
    std::printf("against the plan: step %s predicted, %s measured (%s times)%s\n",
        formatNanoseconds(report.waterfall.from.step()).c_str(),
        formatNanoseconds(report.waterfall.to.step()).c_str(),
        ratioText(static_cast<double>(report.waterfall.to.step()),
            static_cast<double>(report.waterfall.from.step()))
            .c_str(),
        matched.step ? (", step " + std::to_string(*matched.step)).c_str() : "");
    std::printf("  %-16s %10s %10s %6s %9s %9s %10s\n", "kind", "predicted", "measured", "ratio", "matched",
        "in plan", "in trace");
    for (const MatchCount &count : matched.counts) {
        const auto error = std::find_if(report.errors.kinds.begin(), report.errors.kinds.end(),
            [&](const SpanError &each) { return each.what == nameOf(count.kind); });
        const double predicted = error == report.errors.kinds.end() ? 0 : error->predicted;
        const double measured = error == report.errors.kinds.end() ? 0 : error->measured;
        std::printf("  %-16s %10s %10s %6s %9lld %9lld %10lld\n", nameOf(count.kind),
            formatSeconds(predicted).c_str(), formatSeconds(measured).c_str(),
            ratioText(measured, predicted).c_str(), static_cast<long long>(count.matched),
            static_cast<long long>(count.onlyPlan), static_cast<long long>(count.onlyTrace));
    }
    if (!matched.isExact)
        std::printf(
            "  compute        %s by kernels that are matched one to one, %s shared out between them\n",
            formatNanoseconds(matched.matchedCompute).c_str(),
            formatNanoseconds(matched.sharedCompute).c_str());
    for (std::size_t i = 0; i < std::min<std::size_t>(3, report.errors.worst.size()); ++i) {
        const SpanError &each = report.errors.worst[i];
        std::printf("    furthest off: %s on device %d: %s predicted, %s measured\n", each.what.c_str(),
            each.device, formatSeconds(each.predicted).c_str(), formatSeconds(each.measured).c_str());
    }
}

} // namespace planloom::cli
