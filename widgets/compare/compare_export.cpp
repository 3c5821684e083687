#include "widgets/compare/compare_export.h"

#include <nlohmann/json.hpp>

#include <cstdio>

namespace planloom {

namespace {

const char *unitOf(PlanMetric::Unit unit)
{
    switch (unit) {
    case PlanMetric::Unit::Seconds:
        return "s";
    case PlanMetric::Unit::Bytes:
        return "B";
    case PlanMetric::Unit::Share:
        return "share";
    case PlanMetric::Unit::Count:
    case PlanMetric::Unit::Word:
        break;
    }
    return "";
}

std::string numberText(double value)
{
    char text[40];
    std::snprintf(text, sizeof text, "%.12g", value);
    return text;
}

std::string quoted(const std::string &text)
{
    if (text.find_first_of(",\"\n\r") == std::string::npos)
        return text;
    std::string result = "\"";
    for (const char c : text) {
        result += c;
        if (c == '"')
            result += c;
    }
    return result + '"';
}

std::optional<double> deltaOf(const PlanMetric &metric, std::size_t plan)
{
    if (metric.unit == PlanMetric::Unit::Word || !metric.values[0] || !metric.values[plan])
        return {};
    return *metric.values[plan] - *metric.values[0];
}

std::optional<double> percentOf(const PlanMetric &metric, std::size_t plan)
{
    const auto delta = deltaOf(metric, plan);
    if (!delta || *metric.values[0] == 0)
        return {};
    return 100 * *delta / *metric.values[0];
}

} // namespace

std::string metricsAsCsv(const std::vector<PlanMetric> &metrics, const std::vector<std::string> &titles)
{
    std::string text = "figure,unit";
    for (const std::string &title : titles)
        text += "," + quoted(title);
    for (std::size_t plan = 1; plan < titles.size(); ++plan)
        text += "," + quoted(titles[plan] + " - " + titles[0]) + "," + quoted(titles[plan] + " %");
    text += "\n";
    for (const PlanMetric &metric : metrics) {
        text += quoted(metric.name) + "," + unitOf(metric.unit);
        for (std::size_t plan = 0; plan < titles.size(); ++plan) {
            text += ",";
            if (metric.unit == PlanMetric::Unit::Word)
                text += quoted(metric.texts[plan]);
            else if (metric.values[plan])
                text += numberText(*metric.values[plan]);
        }
        for (std::size_t plan = 1; plan < titles.size(); ++plan) {
            const auto delta = deltaOf(metric, plan);
            const auto percent = percentOf(metric, plan);
            text += "," + (delta ? numberText(*delta) : std::string{}) + ","
                + (percent ? numberText(*percent) : std::string{});
        }
        text += "\n";
    }
    return text;
}

std::string metricsAsJson(const std::vector<PlanMetric> &metrics, const std::vector<std::string> &titles)
{
    using Json = nlohmann::ordered_json;
    const auto jsonOf = [](const std::optional<double> &value) {
        return value ? Json(*value) : Json(nullptr);
    };
    Json figures = Json::array();
    for (const PlanMetric &metric : metrics) {
        Json figure{{"name", metric.name}, {"unit", unitOf(metric.unit)}, {"values", Json::array()},
            {"delta", Json::array()}, {"percent", Json::array()}};
        for (std::size_t plan = 0; plan < titles.size(); ++plan) {
            figure["values"].push_back(metric.unit == PlanMetric::Unit::Word ? Json(metric.texts[plan])
                                                                             : jsonOf(metric.values[plan]));
            if (plan == 0)
                continue;
            figure["delta"].push_back(jsonOf(deltaOf(metric, plan)));
            figure["percent"].push_back(jsonOf(percentOf(metric, plan)));
        }
        figures.push_back(std::move(figure));
    }
    return Json{{"plans", titles}, {"figures", std::move(figures)}}.dump(2) + "\n";
}

} // namespace planloom
