#include "widgets/compare/metric_table.h"

#include "widgets/common/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace planloom {

namespace {

std::string percentOf(double share)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.1f%%", share * 100);
    return text;
}

/// The smallest difference that is one.
double tickOf(PlanMetric::Unit unit)
{
    switch (unit) {
    case PlanMetric::Unit::Seconds:
        return 1e-9;
    case PlanMetric::Unit::Share:
        return 0.0005; // what is written
    case PlanMetric::Unit::Bytes:
    case PlanMetric::Unit::Count:
    case PlanMetric::Unit::Word:
        break;
    }
    return 0;
}

std::string written(PlanMetric::Unit unit, double value)
{
    switch (unit) {
    case PlanMetric::Unit::Seconds:
        return formatSeconds(value);
    case PlanMetric::Unit::Bytes:
        return formatBytes({static_cast<std::int64_t>(value)});
    case PlanMetric::Unit::Share:
        return percentOf(value);
    case PlanMetric::Unit::Count:
    case PlanMetric::Unit::Word:
        break;
    }
    return formatCount(static_cast<std::int64_t>(value));
}

} // namespace

std::vector<PlanMetric> metricTable(const std::vector<PlanUpdateSnapshot> &plans)
{
    std::vector<PlanMetric> table;
    using Unit = PlanMetric::Unit;
    using Better = PlanMetric::Better;
    const auto add = [&](const char *name, Unit unit, Better better,
                         const std::function<std::optional<double>(const PlanUpdate &)> &value) {
        PlanMetric metric{name, unit, better, {}, {}};
        for (const PlanUpdateSnapshot &plan : plans)
            metric.values.push_back(plan ? value(*plan) : std::nullopt);
        table.push_back(std::move(metric));
    };
    /// Of what has a timeline.
    const auto timed = [](const std::function<double(const TimelineSummary &)> &value) {
        return [value](const PlanUpdate &plan) {
            return plan.scene ? std::optional<double>(value(plan.summary)) : std::nullopt;
        };
    };
    const auto planned = [](const std::function<double(const Plan &)> &value) {
        return [value](const PlanUpdate &plan) {
            return plan.plan ? std::optional<double>(value(*plan.plan)) : std::nullopt;
        };
    };
    add("step time", Unit::Seconds, Better::Less,
        timed([](const TimelineSummary &s) { return s.stepSeconds; }));
    add("peak memory", Unit::Bytes, Better::Less,
        timed([](const TimelineSummary &s) { return static_cast<double>(s.largestPeak.count); }));
    add("bubble", Unit::Share, Better::Less, timed([](const TimelineSummary &s) { return s.bubble; }));
    add("exposed communication", Unit::Seconds, Better::Less,
        timed([](const TimelineSummary &s) { return s.exposedCommunicationSeconds; }));
    add("sent", Unit::Bytes, Better::Less,
        timed([](const TimelineSummary &s) { return static_cast<double>(s.sent.count); }));
    add("devices", Unit::Count, Better::Neither, planned([](const Plan &p) { return p.deviceCount; }));
    add("pipeline stages", Unit::Count, Better::Neither, planned([](const Plan &p) { return p.stageCount; }));
    add("micro-batches", Unit::Count, Better::Neither, planned([](const Plan &p) { return p.microBatches; }));
    PlanMetric schedule{"schedule", Unit::Word, Better::Neither, {}, {}};
    for (const PlanUpdateSnapshot &plan : plans) {
        const bool known = plan && plan->plan;
        schedule.values.push_back(
            known ? std::optional<double>(static_cast<double>(plan->plan->schedule)) : std::nullopt);
        schedule.texts.push_back(known ? nameOf(plan->plan->schedule) : "–");
    }
    table.push_back(std::move(schedule));
    add("rows", Unit::Count, Better::Neither,
        [](const PlanUpdate &plan) { return std::optional<double>(static_cast<double>(plan.rows.size())); });
    return table;
}

std::string valueText(const PlanMetric &metric, std::size_t plan)
{
    if (metric.unit == PlanMetric::Unit::Word)
        return metric.texts[plan];
    return metric.values[plan] ? written(metric.unit, *metric.values[plan]) : "–";
}

std::string deltaText(const PlanMetric &metric, std::size_t base, std::size_t plan)
{
    if (!metric.values[base] || !metric.values[plan] || metric.unit == PlanMetric::Unit::Word)
        return {};
    const double delta = *metric.values[plan] - *metric.values[base];
    std::string size = written(metric.unit, std::abs(delta));
    if (delta == 0 || size == written(metric.unit, 0))
        return size;
    if (metric.unit == PlanMetric::Unit::Share) // of shares: not to be taken for a share of the first
        size = size.substr(0, size.size() - 1) + " points";
    return (delta < 0 ? "\u2212" : "+") + size;
}

std::string percentText(const PlanMetric &metric, std::size_t base, std::size_t plan)
{
    if (!metric.values[base] || !metric.values[plan] || metric.unit == PlanMetric::Unit::Word
        || metric.unit == PlanMetric::Unit::Share)
        return {};
    return percentText(*metric.values[base], *metric.values[plan]);
}

Change changeOf(const PlanMetric &metric, std::size_t base, std::size_t plan)
{
    if (!metric.values[base] || !metric.values[plan])
        return Change::Same;
    const double before = *metric.values[base];
    const double after = *metric.values[plan];
    if (metric.better == PlanMetric::Better::Neither)
        return before == after ? Change::Same : Change::Other;
    return judged(before, after, tickOf(metric.unit), metric.better == PlanMetric::Better::Less);
}

} // namespace planloom
