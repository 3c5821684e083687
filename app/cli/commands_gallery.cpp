#include "app/cli/commands.h"
#include "app/cli/model.h"
#include "app/cli/without_effect.h"

#include "engine/base/files.h"
#include "engine/base/words.h"
#include "engine/design/explain/gallery_effect.h"
#include "engine/design/gallery_folder.h"
#include "engine/design/remembered.h"
#include "engine/interop/autodist_yaml.h"
#include "engine/table/table_json.h"
#include "engine/table/table_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <iostream>

namespace planloom::cli {

using nlohmann::json;

namespace {

void printGallery(const json &object)
{
    std::cout << object.dump(-1, ' ', false, json::error_handler_t::replace) << "\n";
}

json entryToJson(const GalleryEntry &entry)
{
    json parameters = json::array();
    for (const GalleryParameter &parameter : entry.parameters)
        parameters.push_back({{"name", parameter.name}, {"kind", nameOf(parameter.kind)},
            {"default", parameter.fallback}, {"form", formOf(parameter)}, {"least", parameter.least},
            {"most", parameter.most}, {"words", parameter.words}, {"solver", parameter.maySolve()},
            {"meaning", parameter.meaning}});
    return {{"name", entry.name}, {"meaning", entry.meaning}, {"paper", entry.paper},
        {"picture", entry.picture}, {"parameters", parameters}, {"file", entry.file}};
}

void printList(const Gallery &gallery)
{
    for (const GalleryEntry &entry : gallery.entries)
        std::printf("  %-20s %s%s\n", entry.name.c_str(), entry.meaning.c_str(),
            entry.file.empty() ? "" : (" (" + entry.file + ")").c_str());
    for (const std::string &note : gallery.notes)
        std::printf("  warning: %s\n", note.c_str());
    std::printf(
        "\nplanloom-cli gallery NAME shows one; with --model MODEL and --cluster C its rows and their "
        "effect.\n");
}

void printEntry(const GalleryEntry &entry)
{
    std::printf("%s: %s\n", entry.name.c_str(), entry.meaning.c_str());
    if (!entry.paper.empty())
        std::printf("  %s\n", entry.paper.c_str());
    if (!entry.file.empty())
        std::printf("  %s\n", entry.file.c_str());
    std::printf("\n");
    for (const std::string &line : entry.picture)
        std::printf("    %s\n", line.c_str());
    std::printf("\n");
    for (const GalleryParameter &parameter : entry.parameters) {
        const std::string left = formOf(parameter) + " (" + parameter.fallback + ")";
        std::printf("  %-36s %s\n", left.c_str(), parameter.meaning.c_str());
    }
}

void printEffect(const GalleryEffect &effect)
{
    std::printf("%s", print(effect.rows).c_str());
    std::printf("\n  step           %s\n  peak           %s of %s%s\n  bubble         %.1f%%\n",
        formatSeconds(effect.summary.stepSeconds).c_str(), formatBytes(effect.summary.largestPeak).c_str(),
        formatBytes(effect.memory).c_str(), effect.fits ? "" : ": does not fit", effect.summary.bubble * 100);
    for (const std::string &sentence : effect.uncut)
        std::printf("  not cut        %s\n", sentence.c_str());
    if (!effect.copied.empty())
        std::printf("  copied         %s\n", effect.copied.c_str());
}

} // namespace

Result<int> runGallery(const Arguments &arguments)
{
    const Gallery gallery = findGallery();
    const std::string spec = arguments.positional();
    const bool asJson = arguments.has("json");
    if (spec == "all") {
        if (!asJson) {
            printList(gallery);
            return 0;
        }
        json list = json::array();
        for (const GalleryEntry &entry : gallery.entries)
            list.push_back(entryToJson(entry));
        printGallery({{"entries", list}, {"warnings", gallery.notes}});
        return 0;
    }
    if (!arguments.has("model")) {
        const GalleryEntry *entry = gallery.find(spec.substr(0, spec.find(':')));
        if (entry == nullptr)
            return Error{ErrorCode::NotFound,
                "there is no gallery plan '" + spec.substr(0, std::min<std::size_t>(spec.find(':'), 60))
                    + "'",
                gallery.names(), "gallery"};
        if (asJson)
            printGallery(entryToJson(*entry));
        else
            printEntry(*entry);
        return 0;
    }
    TRY(PlanRequest request, planRequest(arguments, arguments.text("model")));
    request.gallery = spec;
    TRY(const GalleryEffect effect, effectOf(request));
    if (!asJson) {
        printEffect(effect);
        return 0;
    }
    json values = json::object();
    for (const GalleryValue &value : effect.values)
        values[value.parameter] = value.value;
    json rows = json::array();
    for (const Row &row : effect.rows.rows)
        rows.push_back(print(row));
    printGallery({{"entry", effect.entry}, {"values", values}, {"rows", rows},
        {"step_seconds", effect.summary.stepSeconds}, {"peak_bytes", effect.summary.largestPeak.count},
        {"memory_bytes", effect.memory.count}, {"fits", effect.fits}, {"uncut", effect.uncut},
        {"copied", effect.copied}});
    return 0;
}

/// The rows of a gallery plan, a table and partition constraints together, to look at or to share.
namespace {

/// The rows that a plan file was made of: in it, without its model.
Result<ConstraintTable> rowsOfPlan(const std::string &path)
{
    TRY(const ExecutionPlan plan, readPlan(path));
    auto rows = rowsRemembered(plan);
    if (!rows) {
        Error error = std::move(rows).error();
        error.where = path + ":" + error.where;
        return error;
    }
    return TableDocument(*rows).table();
}

Result<void> writeRows(const Arguments &arguments, const ConstraintTable &table)
{
    const std::string out = arguments.text("out");
    const std::string text = out.ends_with(".json") || (out.empty() && arguments.has("json"))
        ? toJson(table).dump(2, ' ', false, json::error_handler_t::replace) + "\n"
        : print(table);
    if (!out.empty())
        return writeFile(out, text);
    std::printf("%s", text.c_str());
    return {};
}

} // namespace

Result<int> runRows(const Arguments &arguments)
{
    if (isPlanFile(arguments.positional())) {
        if (isAutodistFile(arguments.text("out")))
            return Error{ErrorCode::NotSupported,
                "partition constraints are written of a model, not of a plan file",
                "planloom-cli rows MODEL --table ROWS --out FILE.yaml", "--out"};
        TRY(const ConstraintTable table, rowsOfPlan(arguments.positional()));
        TRY_VOID(writeRows(arguments, table));
        return 0;
    }
    TRY(PlanRequest request, planRequest(arguments, arguments.positional()));
    request.upTo = PlanGrade::Planned;
    TRY(const PlanAnswerSnapshot answer, planOf(request));
    const ConstraintTable table = answer->table.table();
    const std::string out = arguments.text("out");
    if (!isAutodistFile(out)) {
        TRY_VOID(writeRows(arguments, table));
        return 0;
    }
    const AutodistText written =
        writeAutodist(table, *request.model, answer->deviceCount, arguments.text("axis", kAutodistAxis));
    TRY_VOID(writeFile(out, written.yaml));
    for (const std::string &note : written.notes)
        std::printf("  warning        %s\n", note.c_str());
    return 0;
}

} // namespace planloom::cli
