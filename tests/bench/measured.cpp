// Predictions beside measured training runs: measured FILE.json [--json] [--table OUT] [--only TEXT]
// (measured.sh). --table writes a file that is one of measured runs again, with what is predicted as further
// columns: those of resources/runs, which the window shows (measured_runs.sh).
//
// A row is planned as it was run (engine/measured). What can't be said of a row, as a device without a
// profile, is said in its place.

#include "engine/measured/measured_file.h"
#include "engine/measured/measured_rows.h"
#include "engine/measured/predicted_run.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <variant>
#include <vector>

using namespace planloom;
using nlohmann::json;

namespace {

constexpr double kGibi = 1024.0 * 1024 * 1024;

json orNull(const auto &value)
{
    return value ? json(*value) : json();
}

json orNull(const std::vector<std::int64_t> &values)
{
    return values.empty() ? json() : json(values);
}

json lineOf(const std::string &file, std::size_t number, const MeasuredRun &run)
{
    json line{{"file", file}, {"row", number}, {"model", run.text("model")}, {"device", run.device()},
        {"devices", run.count("devices", 0)}, {"framework", run.framework()}, {"predicted_seconds", nullptr},
        {"measured_seconds", orNull(run.seconds())}, {"predicted_peak_bytes", nullptr},
        {"measured_peak_bytes", orNull(run.peakBytes())}, {"predicted_peak_bytes_of_ranks", nullptr},
        {"measured_peak_bytes_of_ranks", orNull(run.peakBytesOfRanks())}, {"predicted_fits", nullptr},
        {"measured_fits", !run.hasFailed()}, {"skipped", nullptr}, {"as", nullptr}};
    const auto prediction = predict(run);
    if (!prediction) {
        line["skipped"] = describe(prediction.error());
        return line;
    }
    line["predicted_seconds"] = prediction->seconds;
    line["predicted_peak_bytes"] = *std::max_element(prediction->peaks.begin(), prediction->peaks.end());
    line["predicted_peak_bytes_of_ranks"] = prediction->peaks;
    line["predicted_fits"] = prediction->fits;
    line["profile"] = prediction->like.profile;
    line["parameters"] = prediction->like.parameters;
    line["mixture"] = prediction->like.isMixture ? 1 : 0;
    if (!prediction->insteadOf.empty())
        line["as"] = prediction->insteadOf;
    return line;
}

json jsonOf(const RunValue &value)
{
    return std::visit([](const auto &known) { return json(known); }, value);
}

/// A file of measured runs again, a run in a line.
void writeTable(const std::string &path, const std::vector<MeasuredRun> &runs, const json &lines)
{
    std::ofstream out(path);
    out << "{\"source\": " << json(runs.empty() ? std::string() : runs.front().surroundings().about)
        << ",\n\"rows\": [";
    for (std::size_t i = 0; i < runs.size(); ++i) {
        json row = json::object();
        for (const auto &[name, value] : runs[i].everything())
            row[name] = jsonOf(value);
        for (const auto &[name, value] : lines[i].items())
            if (!value.is_null() && !name.ends_with("_of_ranks"))
                row[name] = value;
        row.erase("peak_allocated_gib_of_ranks");
        out << (i > 0 ? ",\n" : "\n") << row.dump();
    }
    out << "\n]}\n";
}

void print(const json &line)
{
    const std::string name = line["model"].get<std::string>() + ", " + line["devices"].dump() + " "
        + line["device"].get<std::string>();
    std::printf("%4d %-48.48s ", line["row"].get<int>(), name.c_str());
    if (!line["skipped"].is_null()) {
        std::printf("skipped: %s\n", line["skipped"].get<std::string>().c_str());
        return;
    }
    const double predicted = line["predicted_seconds"];
    std::printf("%9.4fs ", predicted);
    if (line["measured_seconds"].is_null())
        std::printf("   failed         ");
    else
        std::printf("%9.4fs %+6.1f%%", line["measured_seconds"].get<double>(),
            100 * (predicted / line["measured_seconds"].get<double>() - 1));
    const double peak = line["predicted_peak_bytes"].get<double>() / kGibi;
    std::printf("  %7.1f GiB%s", peak, line["predicted_fits"].get<bool>() ? "" : " (too much)");
    if (!line["measured_peak_bytes"].is_null())
        std::printf(" of %.1f, %+.1f%%", line["measured_peak_bytes"].get<double>() / kGibi,
            100 * (peak * kGibi / line["measured_peak_bytes"].get<double>() - 1));
    if (!line["as"].is_null())
        std::printf("  (%s)", line["as"].get<std::string>().c_str());
    std::printf("\n");
    std::fflush(stdout);
}

/// Median and worst of what `of` says of the lines that have it.
void printErrors(const char *what, const json &lines, const char *predicted, const char *measured)
{
    std::vector<double> errors;
    for (const json &line : lines)
        if (line["as"].is_null() && !line[predicted].is_null() && !line[measured].is_null())
            errors.push_back(line[predicted].get<double>() / line[measured].get<double>() - 1);
    if (errors.empty())
        return;
    const ErrorSummary sum = summaryOf(std::move(errors));
    std::printf("%s: off by %.1f%% in the median, %.1f%% at worst, of %zu rows\n", what, 100 * sum.median,
        100 * sum.worst, sum.count);
}

/// How many of those that ran are called fitting, and of those that failed too large.
void printFits(const json &lines)
{
    std::map<bool, std::pair<int, int>> right; // of all, by whether it ran
    for (const json &line : lines)
        if (!line["predicted_fits"].is_null()) {
            auto &[count, all] = right[line["measured_fits"].get<bool>()];
            count += line["predicted_fits"] == line["measured_fits"] ? 1 : 0;
            ++all;
        }
    if (!right.contains(false))
        return;
    std::printf("memory: %d of %d that ran fit, %d of %d that failed do not\n", right[true].first,
        right[true].second, right[false].first, right[false].second);
}

/// Of steps predicted and measured, Spearman's, within each number of devices.
void printRanks(const json &lines)
{
    std::map<std::int64_t, std::vector<std::pair<double, double>>> byDevices;
    for (const json &line : lines)
        if (!line["predicted_seconds"].is_null() && !line["measured_seconds"].is_null())
            byDevices[line["devices"].get<std::int64_t>()].emplace_back(
                line["predicted_seconds"].get<double>(), line["measured_seconds"].get<double>());
    constexpr std::size_t kFewest = 10;
    for (const auto &[devices, steps] : byDevices) {
        if (steps.size() < kFewest)
            continue;
        const auto ranksOf = [&, &all = steps](auto member) {
            std::vector<double> ranks;
            for (const auto &one : all)
                ranks.push_back(static_cast<double>(std::count_if(
                    all.begin(), all.end(), [&](const auto &other) { return other.*member < one.*member; })));
            return ranks;
        };
        const std::vector<double> a = ranksOf(&std::pair<double, double>::first);
        const std::vector<double> b = ranksOf(&std::pair<double, double>::second);
        const double mean = static_cast<double>(a.size() - 1) / 2;
        double both = 0;
        double ofA = 0;
        double ofB = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            both += (a[i] - mean) * (b[i] - mean);
            ofA += (a[i] - mean) * (a[i] - mean);
            ofB += (b[i] - mean) * (b[i] - mean);
        }
        std::printf("rank correlation on %lld devices: %.3f of %zu rows\n", static_cast<long long>(devices),
            both / std::sqrt(ofA * ofB), a.size());
    }
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool asJson = std::erase(words, "--json") > 0;
    const auto optionOf = [&](const char *name) {
        std::string value;
        if (const auto found = std::find(words.begin(), words.end(), name);
            found != words.end() && words.end() - found > 1) {
            value = found[1];
            words.erase(found, found + 2);
        }
        return value;
    };
    const std::string only = optionOf("--only");
    const std::string table = optionOf("--table");
    if (words.size() != 1) {
        std::fprintf(stderr, "measured FILE.json [--json] [--table OUT] [--only TEXT]\n");
        return 2;
    }
    const auto file = readMeasuredFile(words[0]);
    if (!file) {
        std::fprintf(stderr, "%s\n", describe(file.error()).c_str());
        return 2;
    }
    json lines = json::array();
    std::vector<MeasuredRun> runs;
    for (std::size_t i = 0; i < file->runs.size(); ++i) {
        if (!only.empty() && !file->runs[i].contains(only))
            continue;
        runs.push_back(file->runs[i]);
        lines.push_back(lineOf(file->name, i + 1, file->runs[i]));
        if (!asJson)
            print(lines.back());
    }
    if (!table.empty())
        writeTable(table, runs, lines);
    if (asJson) {
        std::cout << lines.dump(1) << '\n';
        return 0;
    }
    printErrors("step", lines, "predicted_seconds", "measured_seconds");
    printErrors("peak memory", lines, "predicted_peak_bytes", "measured_peak_bytes");
    printFits(lines);
    printRanks(lines);
    return 0;
}
