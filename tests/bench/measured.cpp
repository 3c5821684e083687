// Predictions beside measured training runs: measured FILE.json [--json] [--only TEXT] (measured.sh).
//
// FILE holds runs in columns of its own, the models that they trained and what was the same in all of them.
// A row is planned as it was run: its degrees, micro-batches, formats, recomputation. What can't be said of a
// row, as a device without a profile, is said in its place. No figure belongs to a row or a model.

#include "engine/design/make_plan.h"
#include "engine/design/models/opened_model.h"
#include "engine/gallery/usual_rows.h"
#include "engine/hardware/cluster.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace planloom;
using nlohmann::json;

namespace {

constexpr double kGibi = 1024.0 * 1024 * 1024;

std::string lower(std::string text)
{
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

bool has(const std::string &text, std::string_view part)
{
    return text.find(part) != std::string::npos;
}

/// A run as its file has it: its own columns first, then its model's figures, then what was the same in all
/// runs.
class Run
{
public:
    Run(json columns, const json &file)
        : m_columns(std::move(columns))
    {
        const json models = file.value("models", json::object());
        if (const auto model = models.find(text("model")); model != models.end())
            m_model = *model;
        m_fixed = file.value("fixed", json::object());
        m_cluster = file.value("cluster", json());
        m_about = lower(file.value("source", std::string()) + m_fixed.dump());
    }

    /// Null where nothing is known.
    json at(const char *name) const
    {
        for (const json *each : {&m_columns, &m_model, &m_fixed})
            if (const auto found = each->find(name); found != each->end() && !found->is_null())
                return *found;
        return {};
    }
    std::string text(const char *name) const
    {
        const json found = at(name);
        return found.is_string() ? found.get<std::string>() : std::string();
    }
    std::optional<double> number(const char *name) const
    {
        const json found = at(name);
        return found.is_number() ? std::optional(found.get<double>()) : std::nullopt;
    }
    std::int64_t count(const char *name, std::int64_t missing = 1) const
    {
        return static_cast<std::int64_t>(number(name).value_or(static_cast<double>(missing)));
    }
    bool says(const char *name) const
    {
        const json found = at(name);
        return found.is_boolean() && found.get<bool>();
    }
    bool hasModel() const { return m_model.is_object(); }
    /// Of the run; else as the file's cluster is described.
    std::string device() const
    {
        for (const char *name : {"device", "system"})
            if (const std::string own = text(name); !own.empty() && m_columns.contains(name))
                return own;
        return m_cluster.is_string() ? m_cluster.get<std::string>() : std::string();
    }

    /// What trained it, by what the file says of its source; with a graph of the whole step no kernel waits
    /// for the host.
    std::string framework() const
    {
        if (const json graph = at("cuda_graph"); !graph.is_null() && graph != false)
            return {};
        if (has(m_about, "nanotron"))
            return "nanotron";
        if (has(m_about, "deepspeed"))
            return "deepspeed";
        if (has(m_about, "fsdp"))
            return says("compile") ? "fsdp-compiled" : "fsdp";
        return has(m_about, "megatron") || isOfNemo() ? "megatron" : ""; // NeMo trains with Megatron-LM
    }

    /// NeMo's recipes for performance reduce gradients in the format that they are made in
    /// (grad_reduce_in_fp32=False in scripts/performance; grad_sync_dtype of its distributed Adam before).
    bool isOfNemo() const { return has(m_about, "nemo") || has(lower(text("system")), "nemo"); }

private:
    json m_columns;
    json m_model;
    json m_fixed;
    json m_cluster;
    std::string m_about; ///< Of the file.
};

/// A number of the zoo's parameters.
void append(std::string &spec, const char *name, std::optional<double> value)
{
    if (value)
        spec += std::string(spec.ends_with('?') ? "" : "&") + name + "="
            + std::to_string(static_cast<std::int64_t>(*value));
}

/// The zoo's model of a run's sizes.
Result<std::string> zooOf(const Run &run)
{
    const auto refused = [](std::string why) {
        return Error{ErrorCode::NotSupported, std::move(why), "", "model"};
    };
    if (!run.hasModel())
        return refused("the file has no sizes of model " + run.text("model"));
    const std::string kind = lower(run.text("kind"));
    // A layer is gated and has no table of positions unless the model says otherwise.
    const json gated = run.at("gated");
    const json tied = run.at("tied_embeddings");
    const bool isLatent = run.number("kv_lora").has_value();
    const bool squares = has(kind, "squared relu");
    const bool isLlama = squares || (gated.is_boolean() ? gated.get<bool>() : !has(kind, "gpt"));
    std::string spec = isLatent ? "zoo:deepseek?" : isLlama ? "zoo:llama?" : "zoo:gpt?";
    for (const char *same : {"layers", "hidden", "heads"})
        append(spec, same, run.number(same));
    if (isLatent) {
        for (const auto &[name, column] : {std::pair("q_lora", "q_lora"), std::pair("kv_lora", "kv_lora"),
                 std::pair("nope", "qk_nope"), std::pair("rope", "qk_rope"), std::pair("v_head", "v_head"),
                 std::pair("shared", "shared_experts"), std::pair("dense", "dense_layers"),
                 std::pair("dense_ffn", "ffn"), std::pair("mtp", "mtp_layers")})
            append(spec, name, run.number(column));
        append(spec, "sigmoid", has(kind, "v3") ? 1 : 0);
    } else if (isLlama)
        append(spec, "kv_heads", run.number("kv_heads"));
    if (squares)
        append(spec, "gated", 0);
    if (tied.is_boolean() && !isLatent)
        append(spec, "tied", tied.get<bool>() ? 1 : 0);
    append(spec, "vocab", run.number("vocabulary"));
    append(spec, "seq", run.number("sequence"));
    append(spec, "batch", run.number("global_batch") ? run.number("global_batch") : run.number("batch"));
    if (run.number("experts")) {
        append(spec, "experts", run.number("experts"));
        append(spec, "top_k", run.number("experts_per_token"));
    }
    append(spec, "ffn", run.number("expert_ffn") ? run.number("expert_ffn") : run.number("ffn"));
    return spec;
}

/// NVFP4 and MXFP8: such rows are listed, and counted by themselves.
bool isFormatOfOthers(const Run &run)
{
    const std::string said = lower(run.text("precision"));
    return has(said, "nvfp4") || has(said, "mx");
}

/// The word of `precision all : ...` for a source's formats: of those without kernels of our own, the
/// nearest.
std::string precisionOf(const Run &run)
{
    const std::string said = lower(run.text("precision"));
    if (isFormatOfOthers(run))
        return "fp8";
    for (const char *word : {"fp8", "bf16", "fp16", "tf32", "fp32"})
        if (has(said, word))
            return word;
    if (has(said, "float8"))
        return "fp8";
    return "bf16"; // what a source that says nothing of formats trains in
}

/// What replicas cut among themselves: 0 nothing, 1 states, 2 gradients, 3 weights.
std::int64_t zeroOf(const Run &run)
{
    const std::string sharding = run.text("sharding");
    if (sharding == "FULL_SHARD" || run.count("fsdp", 0) > 1)
        return 3;
    if (sharding == "SHARD_GRAD_OP")
        return 2;
    if (run.number("zero"))
        return run.count("zero");
    return run.says("distributed_optimizer") || !run.number("fsdp") || run.count("fsdp", 0) == 0 ? 1 : 0;
}

Result<std::string> recomputationOf(const Run &run, const Model &model)
{
    const std::string said = lower(run.text("recompute"));
    if (run.says("full_recompute") || said == "full")
        return recomputeRow(model, "full");
    if (has(said, "every second layer")) {
        std::string rows;
        for (std::size_t layer = 0; layer < model.index->layers().scopes.size(); layer += 2)
            rows += "recompute layer:" + std::to_string(layer) + " per layer\n";
        return rows;
    }
    return recomputeRow(model, has(said, "selective") ? "selective" : "none");
}

/// Stages as trainers cut them where nothing else is said: as many layers in each, embedding and loss with
/// the first and the last. Empty without a pipeline, and where layers do not divide.
std::string layoutOf(const Run &run)
{
    if (const std::string own = run.text("layout"); !own.empty())
        return own;
    const std::int64_t stages = run.count("pipeline_parallel") * run.count("virtual_pipeline");
    const std::int64_t layers = run.count("layers");
    if (stages < 2 || layers % stages != 0)
        return {};
    const std::string each = "t*" + std::to_string(layers / stages);
    std::string layout = "E" + each;
    for (std::int64_t stage = 1; stage < stages; ++stage)
        layout += "|" + each;
    return layout + "L";
}

struct Prediction {
    double seconds = 0;
    std::vector<std::int64_t> peaks{}; ///< Bytes, by rank.
    bool fits = true;
};

Result<Prediction> predict(const Run &run)
{
    const auto profile = profileOfDevice(run.device());
    if (!profile)
        return Error{ErrorCode::NotSupported, "no profile of " + run.device(), "", "device"};
    TRY(const std::string zoo, zooOf(run));
    const std::string precision = precisionOf(run);
    TRY(const ModelSnapshot model, openModel({zoo, {}, {}}, {}, KeepContent::No));
    const std::int64_t devices = run.count("devices");
    const std::int64_t tp = run.count("tensor_parallel");
    const std::int64_t pp = run.count("pipeline_parallel");
    const std::int64_t cp = run.count("context_parallel");
    const std::int64_t ep = run.count("expert_parallel");
    const std::int64_t dp = run.count("data_parallel", devices / (tp * pp * cp));
    if (dp * tp * pp * cp != devices)
        return Error{ErrorCode::InvalidInput,
            "its degrees make " + std::to_string(dp * tp * pp * cp) + " devices of "
                + std::to_string(devices),
            "", "degrees"};
    const std::int64_t batch = run.count("global_batch", run.count("batch"));
    const std::int64_t microBatches =
        run.count("micro_batches", batch / dp / std::max<std::int64_t>(1, run.count("micro_batch")));
    const auto option = [](const char *name, std::int64_t value) {
        return std::string(",") + name + "=" + std::to_string(value);
    };
    PlanRequest request;
    request.model = model;
    const std::string framework = run.framework();
    request.target = {*profile + ":" + std::to_string(devices) + (framework.empty() ? "" : "+" + framework),
        {}, static_cast<std::int32_t>(devices)};
    request.upTo = PlanGrade::Timed;
    // Devices that share experts are replicas of all else.
    request.gallery = "3d:dp=" + std::to_string(dp / ep) + option("tp", tp) + option("pp", pp)
        + (ep > 1 ? option("ep", ep) : "") + (cp > 1 ? option("cp", cp) + option("zigzag", 1) : "")
        + option("zero", zeroOf(run)) + (tp > 1 ? option("sequence", 1) : "")
        + (layoutOf(run).empty() ? option("interleave", run.count("virtual_pipeline"))
                                 : ",layout=" + layoutOf(run))
        + option("micro-batches", microBatches);
    TRY(const std::string recomputation, recomputationOf(run, *model));
    std::string rows = "precision all : " + precision + (run.isOfNemo() ? " reduction=bf16" : "") + "\n"
        + recomputation + "\n";
    if (tp > 1 && has(lower(run.text("overlap")), "tensor-parallel")
        && !has(lower(run.text("overlap")), "none"))
        rows += "overlap tensor\n";
    request.table = TableDocument(rows);
    TRY(const PlanAnswerSnapshot answer, planOf(request));
    if (answer->summary.stepSeconds <= 0)
        return answer->firstError().value_or(Error{ErrorCode::InvalidInput, "no plan", "", ""});
    Prediction prediction{.seconds = answer->summary.stepSeconds};
    for (const DeviceSummary &device : answer->summary.devices)
        prediction.peaks.push_back(device.peak.count);
    prediction.fits = static_cast<double>(answer->summary.largestPeak.count) <= leastMemory(answer->cluster);
    return prediction;
}

/// Seconds of a step; null where the run failed.
json measuredSeconds(const Run &run)
{
    if (const auto seconds = run.number("step_seconds"))
        return *seconds;
    const auto speed = run.number("tokens_per_second_per_device");
    if (!speed)
        return {};
    return run.number("global_batch").value_or(1) * run.number("sequence").value_or(1)
        / (*speed * run.number("devices").value_or(1));
}

json measuredPeak(const Run &run)
{
    for (const char *name : {"peak_allocated_gib", "memory_gib", "memory_gb"})
        if (const auto peak = run.number(name))
            return std::llround(*peak * kGibi);
    return {};
}

json measuredPeaks(const Run &run)
{
    json peaks;
    for (const json &each : run.at("peak_allocated_gib_of_ranks"))
        peaks.push_back(std::llround(each.get<double>() * kGibi));
    return peaks;
}

json lineOf(const std::string &file, std::size_t number, const Run &run, bool failed)
{
    json line{{"file", file}, {"row", number}, {"model", run.text("model")}, {"device", run.device()},
        {"devices", run.at("devices")}, {"predicted_seconds", nullptr},
        {"measured_seconds", failed ? json() : measuredSeconds(run)}, {"predicted_peak_bytes", nullptr},
        {"measured_peak_bytes", measuredPeak(run)}, {"predicted_peak_bytes_of_ranks", nullptr},
        {"measured_peak_bytes_of_ranks", measuredPeaks(run)}, {"predicted_fits", nullptr},
        {"measured_fits", !failed}, {"skipped", nullptr},
        {"as", isFormatOfOthers(run) ? json("fp8 in place of " + run.text("precision")) : json()}};
    const auto prediction = predict(run);
    if (!prediction) {
        line["skipped"] = prediction.error().message;
        return line;
    }
    line["predicted_seconds"] = prediction->seconds;
    line["predicted_peak_bytes"] = *std::max_element(prediction->peaks.begin(), prediction->peaks.end());
    line["predicted_peak_bytes_of_ranks"] = prediction->peaks;
    line["predicted_fits"] = prediction->fits;
    return line;
}

/// Rows of `file`, of columns that are named once or of each row by itself.
std::vector<json> rowsOf(const json &file, const char *rows, const char *columns)
{
    std::vector<json> all;
    const json names = file.value(columns, json::array());
    for (const json &row : file.value(rows, json::array())) {
        if (row.is_object()) {
            all.push_back(row);
            continue;
        }
        json named = json::object();
        for (std::size_t i = 0; i < std::min(row.size(), names.size()); ++i)
            if (names[i].is_string())
                named[names[i].get<std::string>()] = row[i];
        all.push_back(std::move(named));
    }
    return all;
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
            errors.push_back(std::abs(line[predicted].get<double>() / line[measured].get<double>() - 1));
    if (errors.empty())
        return;
    std::sort(errors.begin(), errors.end());
    std::printf("%s: off by %.1f%% in the median, %.1f%% at worst, of %zu rows\n", what,
        100 * errors[errors.size() / 2], 100 * errors.back(), errors.size());
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool asJson = std::erase(words, "--json") > 0;
    std::string only;
    if (const auto found = std::find(words.begin(), words.end(), "--only");
        found != words.end() && words.end() - found > 1) {
        only = found[1];
        words.erase(found, found + 2);
    }
    if (words.size() != 1) {
        std::fprintf(stderr, "measured FILE.json [--json] [--only TEXT]\n");
        return 2;
    }
    std::ifstream stream(words[0]);
    const json file = json::parse(stream, nullptr, false);
    if (file.is_discarded() || !file.is_object() || !file.contains("rows")) {
        std::fprintf(stderr, "%s: expected an object with rows\n", words[0].c_str());
        return 2;
    }
    const std::string name = words[0].substr(words[0].rfind('/') + 1);
    json lines = json::array();
    std::size_t number = 0;
    for (const bool failed : {false, true})
        for (json &row :
            failed ? rowsOf(file, "failed", "failed_columns") : rowsOf(file, "rows", "columns")) {
            ++number;
            if (!only.empty() && !has(row.dump(), only))
                continue;
            lines.push_back(lineOf(name, number, Run(std::move(row), file), failed));
            if (!asJson)
                print(lines.back());
        }
    if (asJson) {
        std::cout << lines.dump(1) << '\n';
        return 0;
    }
    printErrors("step", lines, "predicted_seconds", "measured_seconds");
    printErrors("peak memory", lines, "predicted_peak_bytes", "measured_peak_bytes");
    return 0;
}
