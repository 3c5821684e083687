#include "engine/measured/measured_rows.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

using Json = nlohmann::json;

Error wrongRow(std::size_t row, const char *name, const char *expected, const Json &found)
{
    return {ErrorCode::InvalidInput,
        std::string("expected ") + expected + ", found " + found.dump().substr(0, 60),
        "write the file with tests/bench/measured_runs.sh", "/" + std::to_string(row) + "/" + name};
}

/// One row of a file, read member by member.
class RowReader
{
public:
    RowReader(const Json &row, std::size_t number)
        : m_row(row)
        , m_number(number)
    {
    }

    /// Empty where it is missing or null.
    Result<std::string> text(const char *name) const
    {
        const auto found = m_row.find(name);
        if (found == m_row.end() || found->is_null())
            return std::string();
        if (!found->is_string())
            return wrongRow(m_number, name, "a text", *found);
        return found->get<std::string>();
    }

    Result<std::optional<double>> number(const char *name) const
    {
        const auto found = m_row.find(name);
        if (found == m_row.end() || found->is_null())
            return std::optional<double>();
        if (!found->is_number() || !std::isfinite(found->get<double>()) || found->get<double>() < 0)
            return wrongRow(m_number, name, "a number of at least 0", *found);
        return std::optional(found->get<double>());
    }

private:
    const Json &m_row;
    std::size_t m_number;
};

Result<std::string> degreesOf(const RowReader &reader)
{
    std::string words;
    for (const auto &[name, word] : {std::pair("tensor_parallel", "tp"), std::pair("pipeline_parallel", "pp"),
             std::pair("context_parallel", "cp"), std::pair("expert_parallel", "ep")}) {
        TRY(const std::optional<double> degree, reader.number(name));
        if (degree.value_or(1) > 1)
            words += (words.empty() ? "" : ", ") + std::string(word) + " "
                + std::to_string(std::llround(std::min(*degree, 1e9)));
    }
    return words;
}

/// How unlike a row is, in doublings; nothing where it is another kind of run.
std::optional<double> distanceOf(const MeasuredRow &row, const RunLikeness &run)
{
    constexpr double kMostSizes = 3; // doublings
    constexpr double kMostDevices = 4;
    if (!row.stepError() || row.isMixture != run.isMixture || row.parameters <= 0 || run.parameters <= 0
        || row.devices < 1 || run.devices < 1)
        return std::nullopt;
    const double sizes = std::abs(std::log2(row.parameters / run.parameters));
    const double devices =
        std::abs(std::log2(static_cast<double>(row.devices) / static_cast<double>(run.devices)));
    if (sizes > kMostSizes || devices > kMostDevices)
        return std::nullopt;
    // Another kind of device, or another framework, is as far away as twice the size and the devices.
    return sizes + devices / 2 + (row.profile == run.profile ? 0 : 1.5)
        + (row.framework == run.framework ? 0 : 1.5);
}

Result<MeasuredRow> rowOf(const Json &json, std::size_t number)
{
    const RowReader reader(json, number);
    MeasuredRow row;
    TRY(row.source, reader.text("file"));
    if (row.source.ends_with(".json"))
        row.source.resize(row.source.size() - std::string_view(".json").size());
    TRY(row.model, reader.text("model"));
    TRY(row.device, reader.text("device"));
    TRY(row.framework, reader.text("framework"));
    TRY(const std::optional<double> devices, reader.number("devices"));
    row.devices = std::llround(std::min(devices.value_or(0), 1e9));
    TRY(row.predictedSeconds, reader.number("predicted_seconds"));
    TRY(row.measuredSeconds, reader.number("measured_seconds"));
    TRY(row.predictedPeak, reader.number("predicted_peak_bytes"));
    TRY(row.measuredPeak, reader.number("measured_peak_bytes"));
    TRY(row.skipped, reader.text("skipped"));
    TRY(row.as, reader.text("as"));
    TRY(row.profile, reader.text("profile"));
    TRY(const std::optional<double> parameters, reader.number("parameters"));
    row.parameters = parameters.value_or(0);
    TRY(const std::optional<double> mixture, reader.number("mixture"));
    row.isMixture = mixture.value_or(0) > 0;
    TRY(row.degrees, degreesOf(reader));
    return row;
}

} // namespace

Result<std::vector<MeasuredRow>> measuredRows(std::string_view text)
{
    const Json document = Json::parse(text.begin(), text.end(), nullptr, false);
    const auto found = document.is_object() ? document.find("rows") : document.end();
    const Json &all = document.is_object() && found != document.end() ? *found : document;
    if (!all.is_array())
        return Error{ErrorCode::InvalidInput, "it has no rows",
            "write the file with tests/bench/measured_runs.sh", "/"};
    std::vector<MeasuredRow> rows;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!all[i].is_object())
            return wrongRow(i, "", "an object", all[i]);
        TRY(MeasuredRow row, rowOf(all[i], i));
        rows.push_back(std::move(row));
    }
    return rows;
}

std::vector<std::size_t> nearestRows(
    const std::vector<MeasuredRow> &rows, const RunLikeness &run, std::size_t most)
{
    std::vector<std::pair<double, std::size_t>> all;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (const auto distance = distanceOf(rows[i], run))
            all.emplace_back(*distance, i);
    std::sort(all.begin(), all.end());
    all.resize(std::min(all.size(), most));
    std::vector<std::size_t> nearest;
    for (const auto &[distance, i] : all)
        nearest.push_back(i);
    return nearest;
}

ErrorSummary summaryOf(std::vector<double> errors)
{
    if (errors.empty())
        return {};
    for (double &error : errors)
        error = std::abs(error);
    std::sort(errors.begin(), errors.end());
    const std::size_t half = errors.size() / 2;
    const double median = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
    return {errors.size(), median, errors.back()};
}

} // namespace planloom
