// Predictions beside published measurements: published FILE.json [--json].
//
// One rule for all that the tables do not say, stated in `ruleOf`; no figure belongs to a row.

#include "engine/design/make_plan.h"
#include "engine/design/models/opened_model.h"
#include "engine/gallery/usual_rows.h"
#include "engine/hardware/cluster.h"
#include "engine/measured/measured_rows.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

using namespace planloom;
using nlohmann::json;

namespace {

/// A row of either kind of file, as a question to the planner.
struct Row {
    std::string table{};
    std::string model{};
    std::string zoo{};
    std::string cluster{};
    std::string precision{};
    std::string recompute{}; ///< "none", "full"; empty: as little as fits the memory.
    std::string attention{}; ///< "fused", "plain"
    std::int32_t devices = 1;
    std::int32_t dp = 1;
    std::int32_t tp = 1;
    std::int32_t pp = 1;
    std::int64_t samples = 1; ///< Of one replica in one step.
    std::int32_t layers = 1;
    std::int32_t microBatch = 0; ///< 0: by the rule.
    std::int32_t interleave = 0; ///< 0: by the rule.
    bool overlaps = false; ///< Collectives run beside products.
    bool sharded = false; ///< Optimizer states over the replicas.
    double published = 0;
};

struct Prediction {
    double seconds = 0;
    std::int64_t peak = 0;
    std::int64_t memory = 0;
    std::int32_t microBatch = 0;
    std::int32_t interleave = 1;
};

std::int32_t integerAt(const json &row, const char *name, std::int32_t missing)
{
    const auto found = row.find(name);
    return found == row.end() || !found->is_number() ? missing : found->get<std::int32_t>();
}

/// Rows of training-throughput.json: GPT models of Megatron-LM's tables.
///
/// What they leave open: the H100 table's time (2024) ran fused attention, optimizer states sharded over the
/// replicas, interleaved stages and no recomputation; the A100 table's (2021) kept the scores in memory,
/// recomputed every layer (as it says), interleaved stages, and every replica updated all weights. Both drop
/// out a tenth, of the probabilities of attention too: what Megatron-LM does unless told otherwise.
std::optional<Row> throughputRow(const json &row)
{
    Row result;
    result.table = row.at("table");
    result.model = row.at("model");
    result.devices = row.at("devices");
    result.dp = row.at("data_parallel");
    result.tp = row.at("tensor_parallel");
    result.pp = row.at("pipeline_parallel");
    result.layers = row.at("layers");
    const std::int64_t batch = row.at("batch");
    result.samples = batch / result.dp;
    result.published = row.at("step_seconds");
    result.cluster = row.at("device").get<std::string>() + ":" + std::to_string(result.devices);
    result.zoo = "zoo:gpt?layers=" + std::to_string(result.layers) + "&hidden="
        + std::to_string(row.at("hidden").get<int>()) + "&heads=" + std::to_string(row.at("heads").get<int>())
        + "&seq=" + std::to_string(row.at("sequence").get<int>()) + "&batch=" + std::to_string(batch)
        + "&vocab=" + std::to_string(row.at("vocabulary").get<int>()) + "&dropout=0.1";
    const bool recent = result.table == "h100";
    result.precision = recent ? "bf16" : "fp16";
    result.recompute = recent ? "none" : "full";
    result.attention = recent ? "fused" : "plain";
    result.sharded = recent;
    result.overlaps = recent; // "overlap" says so
    return result;
}

/// Rows of training-recipes.json. LLaMA-3 70B is the model that the zoo has.
std::optional<Row> recipeRow(const json &row)
{
    static const std::vector<std::pair<std::string, std::string>> kPrecisions{
        {"BF16", "bf16"}, {"FP8", "fp8"}, {"FP8-CS", "fp8"}, {"as the release states (FP8)", "fp8"}};
    const auto known = [](const auto &list, const std::string &name) {
        return std::find_if(list.begin(), list.end(), [&](const auto &each) { return each.first == name; });
    };
    const auto profile = profileOfDevice(row.at("system").get<std::string>());
    const auto precision = known(kPrecisions, row.at("precision").get<std::string>());
    if (row.at("model") != "LLAMA3_70B" || !profile || precision == kPrecisions.end()
        || integerAt(row, "fsdp", 0) > 0 || integerAt(row, "context_parallel", 1) > 1)
        return std::nullopt;
    Row result;
    result.table = row.at("system").get<std::string>() + " " + row.at("release").get<std::string>();
    result.model = "LLaMA-3 70B " + row.at("precision").get<std::string>();
    result.devices = row.at("devices");
    result.tp = row.at("tensor_parallel");
    result.pp = row.at("pipeline_parallel");
    result.dp = result.devices / (result.tp * result.pp);
    result.layers = 80;
    const std::int64_t batch = row.at("batch");
    result.samples = batch / result.dp;
    result.microBatch = row.at("micro_batch");
    result.interleave = std::max(integerAt(row, "virtual_pipeline", 1), 1);
    result.published = row.at("step_seconds");
    result.cluster = *profile + ":" + std::to_string(result.devices);
    result.zoo = "zoo:llama?layers=80&hidden=8192&heads=64&kv_heads=8&ffn=28672&vocab=128256&seq="
        + std::to_string(row.at("sequence").get<int>()) + "&batch=" + std::to_string(batch);
    result.precision = precision->second;
    result.recompute = "none"; // the recipes name none
    result.attention = "fused";
    result.sharded = true;
    result.overlaps = true;
    return result;
}

Result<Prediction> predict(const ModelSnapshot &model, const Row &row, std::int32_t microBatch,
    std::int32_t interleave, const std::string &recomputed)
{
    PlanRequest request;
    request.model = model;
    request.target = {row.cluster, {}, row.devices};
    request.upTo = PlanGrade::Timed;
    request.gallery = "3d:dp=" + std::to_string(row.dp) + ",tp=" + std::to_string(row.tp)
        + ",pp=" + std::to_string(row.pp) + ",zero1=" + (row.sharded ? "1" : "0")
        + (row.sharded && row.tp > 1 ? ",sequence=1" : "") + ",interleave=" + std::to_string(interleave)
        + ",micro-batches=" + std::to_string(row.samples / microBatch);
    std::string rows = "precision all : " + row.precision + "\n";
    if (row.overlaps)
        rows += "overlap tensor\n";
    TRY(const std::string recompute, recomputeRow(*model, recomputed));
    rows += recompute + "\n";
    if (row.attention == "plain")
        rows += "attention all : plain\n";
    request.table = TableDocument(rows);
    TRY(const PlanAnswerSnapshot answer, planOf(request));
    return Prediction{answer->summary.stepSeconds, answer->summary.largestPeak.count,
        static_cast<std::int64_t>(answer->cluster.device.memory.value), microBatch, interleave};
}

/// The rule for what a row leaves open, the same for all: micro-batches of as many samples as fit the memory,
/// among 1, 2, 4, 8 and 16; with pipelines, as many stages on each device, among 1, 2, 4 and 8, as there are
/// layers and micro-batches for, which is the published advice of the authors (arXiv:2104.04473,
/// section 3.3).
Result<Prediction> predict(const Row &row)
{
    TRY(const ModelSnapshot model, openModel({row.zoo, {}, {}}, {}, KeepContent::No));
    std::optional<Prediction> smallest;
    std::optional<Error> why;
    for (const std::int32_t microBatch : {16, 8, 4, 2, 1}) {
        if ((row.microBatch > 0 && microBatch != row.microBatch) || row.samples % microBatch != 0)
            continue;
        const std::int64_t count = row.samples / microBatch;
        if (row.pp > 1 && (count % row.pp != 0 || count < row.pp))
            continue;
        std::int32_t interleave = row.interleave;
        for (const std::int32_t stages : {1, 2, 3, 4, 5, 6, 7, 8})
            if (row.interleave == 0 && row.layers % (row.pp * stages) == 0 && (stages == 1 || row.pp > 1))
                interleave = stages;
        auto prediction =
            predict(model, row, microBatch, interleave, row.recompute.empty() ? "none" : row.recompute);
        for (const char *more : {"selective", "full"})
            if (row.recompute.empty() && prediction && prediction->peak > prediction->memory)
                prediction = predict(model, row, microBatch, interleave, more);
        if (!prediction) {
            why = prediction.error();
            continue;
        }
        smallest = *prediction;
        if (prediction->peak <= prediction->memory)
            return prediction;
    }
    if (smallest)
        return *smallest;
    return why.value_or(Error{ErrorCode::InvalidInput, "no micro-batch divides the batch", "", ""});
}

} // namespace

int main(int argc, char **argv)
{
    std::vector<std::string> words(argv + 1, argv + argc);
    const bool asJson = std::erase(words, "--json") > 0;
    if (words.size() != 1) {
        std::fprintf(stderr, "published FILE.json [--json]\n");
        return 2;
    }
    std::ifstream stream(words[0]);
    const json document = json::parse(stream, nullptr, false);
    if (document.is_discarded() || !document.is_object() || !document.contains("rows")) {
        std::fprintf(stderr, "%s: expected an object with rows\n", words[0].c_str());
        return 2;
    }
    json result = json::array();
    std::vector<double> errors;
    std::vector<std::string> skipped;
    if (!asJson)
        std::printf("%-22s %-18s %10s %10s %7s %9s  %s\n", "table", "model", "predicted", "published",
            "ratio", "peak GB", "micro-batch, stages a device");
    for (const json &item : document["rows"]) {
        const auto row = item.contains("tflops_per_device") ? throughputRow(item) : recipeRow(item);
        if (!row) {
            skipped.push_back(item.value("model", "?") + " " + item.value("system", "") + " "
                + item.value("precision", ""));
            continue;
        }
        const auto prediction = predict(*row);
        if (!prediction) {
            skipped.push_back(row->table + " " + row->model + ": " + prediction.error().message);
            continue;
        }
        const double ratio = prediction->seconds / row->published;
        errors.push_back(std::abs(ratio - 1));
        result.push_back(
            {{"table", row->table}, {"model", row->model}, {"predicted_seconds", prediction->seconds},
                {"published_seconds", row->published}, {"peak_bytes", prediction->peak}});
        if (!asJson) {
            std::printf("%-22s %-18s %9.3fs %9.3fs %7.3f %8.1f%s  %d, %d\n", row->table.c_str(),
                row->model.c_str(), prediction->seconds, row->published, ratio,
                static_cast<double>(prediction->peak) / 1e9,
                prediction->peak > prediction->memory ? " (too much)" : "", prediction->microBatch,
                prediction->interleave);
            std::fflush(stdout);
        }
    }
    if (asJson) {
        std::cout << result.dump(1) << '\n';
        return 0;
    }
    for (const std::string &name : skipped)
        std::printf("skipped: %s\n", name.c_str());
    if (!errors.empty()) {
        const ErrorSummary sum = summaryOf(std::move(errors));
        std::printf("off by %.1f%% in the median, %.1f%% at worst, of %zu rows\n", 100 * sum.median,
            100 * sum.worst, sum.count);
    }
    return 0;
}
