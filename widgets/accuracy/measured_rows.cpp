#include "widgets/accuracy/measured_rows.h"

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

ErrorSummary summaryOf(std::vector<double> errors)
{
    if (errors.empty())
        return {};
    for (double &error : errors)
        error = std::abs(error);
    std::sort(errors.begin(), errors.end());
    return {errors.size(), errors[errors.size() / 2], errors.back()};
}

} // namespace planloom
