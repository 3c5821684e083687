#include "engine/measured/predicted_run.h"

#include "engine/design/models/opened_model.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/gallery/usual_rows.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/framework.h"

#include <algorithm>
#include <array>
#include <utility>

namespace planloom {

namespace {

/// A number of the zoo's parameters.
void append(std::string &spec, const char *name, std::optional<double> value)
{
    if (value)
        spec += std::string(spec.ends_with('?') ? "" : "&") + name + "="
            + std::to_string(static_cast<std::int64_t>(*value));
}

/// The published model that a file calls `name`: the longest whose name it begins with.
Result<std::string> publishedOf(const MeasuredRun &run)
{
    const std::string name = lettersOf(run.text("model"));
    const ZooFamily *best = nullptr;
    const std::vector<ZooFamily> &families = zooFamilies();
    for (const ZooFamily &family : families)
        if (!family.builtAs.empty() && (!best || family.name.size() > best->name.size())
            && name.starts_with(lettersOf(family.name)))
            best = &family;
    if (!best)
        return Error{ErrorCode::NotSupported,
            "the file has no sizes of model " + run.text("model") + ", and no published model is called so",
            "add its sizes to models", "model"};
    std::string spec = "zoo:" + best->name + "?";
    append(spec, "seq", run.number("sequence"));
    append(spec, "batch", run.number("global_batch"));
    if (run.says("overlapped_pair")) { // of layers from the middle, all of which have experts
        append(spec, "layers", run.number("layers"));
        for (const ZooParameter &parameter : best->parameters)
            if (parameter.name == "dense" || parameter.name == "mtp")
                append(spec, parameter.name.c_str(), 0);
    }
    return spec;
}

/// The zoo's model of a run's sizes.
Result<std::string> zooOf(const MeasuredRun &run)
{
    if (!run.hasModel())
        return publishedOf(run);
    const std::string kind = inSmallLetters(run.text("kind"));
    // A layer is gated and has no table of positions unless the model says otherwise.
    const auto tied = run.flag("tied_embeddings");
    const bool isLatent = run.number("kv_lora").has_value();
    const bool squares = kind.find("squared relu") != std::string::npos;
    const bool isLlama = squares || run.flag("gated").value_or(kind.find("gpt") == std::string::npos);
    std::string spec = isLatent ? "zoo:deepseek?" : isLlama ? "zoo:llama?" : "zoo:gpt?";
    for (const char *same : {"layers", "hidden", "heads"})
        append(spec, same, run.number(same));
    if (isLatent) {
        for (const auto &[name, column] : {std::pair("q_lora", "q_lora"), std::pair("kv_lora", "kv_lora"),
                 std::pair("nope", "qk_nope"), std::pair("rope", "qk_rope"), std::pair("v_head", "v_head"),
                 std::pair("shared", "shared_experts"), std::pair("dense", "dense_layers"),
                 std::pair("dense_ffn", "ffn"), std::pair("mtp", "mtp_layers")})
            append(spec, name, run.number(column));
        append(spec, "sigmoid", kind.find("v3") != std::string::npos ? 1 : 0);
    } else if (isLlama)
        append(spec, "kv_heads", run.number("kv_heads"));
    if (squares)
        append(spec, "gated", 0);
    if (tied && !isLatent)
        append(spec, "tied", *tied ? 1 : 0);
    append(spec, "vocab", run.number("vocabulary"));
    append(spec, "seq", run.number("sequence"));
    append(spec, "batch", run.number("global_batch"));
    if (run.number("experts")) {
        append(spec, "experts", run.number("experts"));
        append(spec, "top_k", run.number("experts_per_token"));
    }
    append(spec, "ffn", run.number("expert_ffn") ? run.number("expert_ffn") : run.number("ffn"));
    return spec;
}

/// The word of `precision all : ...` for a source's formats: of those without kernels of our own, the
/// nearest.
std::string precisionOf(const MeasuredRun &run)
{
    const std::string said = inSmallLetters(run.text("precision"));
    if (run.isOfOtherFormat())
        return "fp8";
    for (const char *word : {"fp8", "bf16", "fp16", "tf32", "fp32"})
        if (said.find(word) != std::string::npos)
            return word;
    if (said.find("float8") != std::string::npos)
        return "fp8";
    return "bf16"; // what a source that says nothing of formats trains in
}

/// What replicas cut among themselves: 0 nothing, 1 states, 2 gradients, 3 weights.
std::int64_t zeroOf(const MeasuredRun &run)
{
    const std::string sharding = run.text("sharding");
    if (sharding == "FULL_SHARD" || run.count("fsdp", 0) > 1 || run.says("megatron_fsdp"))
        return 3;
    if (sharding == "SHARD_GRAD_OP")
        return 2;
    if (run.number("zero"))
        return run.count("zero");
    return run.says("distributed_optimizer") || run.count("fsdp", 0) == 0 ? 1 : 0;
}

Result<std::string> recomputationOf(const MeasuredRun &run, const Model &model)
{
    const std::string said = inSmallLetters(run.text("recompute"));
    if (run.says("full_recompute") || said == "full")
        return recomputeRow(model, "full");
    if (said.find("every second layer") != std::string::npos) {
        std::string rows;
        for (std::size_t layer = 0; layer < model.index->layers().scopes.size(); layer += 2)
            rows += "recompute layer:" + std::to_string(layer) + " per layer\n";
        return rows;
    }
    return recomputeRow(model, said.find("selective") != std::string::npos ? "selective" : "none");
}

/// Modules that are recomputed, in the gallery's words, where nothing else is said; empty: none.
std::string modulesOf(const MeasuredRun &run)
{
    std::string words;
    if (run.text("recompute").empty() && !run.says("full_recompute"))
        for (const std::string &module : run.words("recompute_modules"))
            words += (words.empty() ? "" : "+") + module;
    return words;
}

/// Stages as trainers cut them where nothing else is said: as many layers in each, embedding and loss with
/// the first and the last. Empty without a pipeline, and where layers do not divide.
std::string layoutOf(const MeasuredRun &run, const Model &model)
{
    if (const std::string own = run.text("layout"); !own.empty())
        return own;
    const std::int64_t stages = run.count("pipeline_parallel") * run.count("virtual_pipeline");
    const auto layers = static_cast<std::int64_t>(model.index->layers().scopes.size());
    if (stages < 2 || layers % stages != 0)
        return {};
    const std::string each = "t*" + std::to_string(layers / stages);
    std::string layout = "E" + each;
    for (std::int64_t stage = 1; stage < stages; ++stage)
        layout += "|" + each;
    return layout + "L";
}

/// The row of the gallery with a run's degrees.
Result<std::string> galleryOf(const MeasuredRun &run, const Model &model)
{
    const auto wrong = [](std::string message, const char *column) {
        return Error{ErrorCode::InvalidInput, std::move(message), "", column};
    };
    const std::int64_t devices = run.count("devices");
    const std::int64_t tp = run.count("tensor_parallel");
    const std::int64_t pp = run.count("pipeline_parallel");
    const std::int64_t cp = run.count("context_parallel");
    const std::int64_t ep = run.count("expert_parallel");
    if (devices < 1)
        return wrong("expected a number of devices from 1 on", "devices");
    for (const auto &[column, degree] : {std::pair("tensor_parallel", tp), std::pair("pipeline_parallel", pp),
             std::pair("context_parallel", cp), std::pair("expert_parallel", ep)})
        if (degree < 1 || degree > devices)
            return wrong("expected a degree from 1 to " + std::to_string(devices) + ", found "
                    + std::to_string(degree),
                column);
    const std::int64_t dp = run.count("data_parallel", devices / (tp * pp * cp));
    if (dp < 1 || dp * tp * pp * cp != devices)
        return wrong("its degrees make " + std::to_string(dp * tp * pp * cp) + " devices of "
                + std::to_string(devices),
            "degrees");
    if (dp % ep != 0)
        return wrong(std::to_string(dp) + " replicas do not share experts over " + std::to_string(ep),
            "expert_parallel");
    const std::int64_t batch = run.count("global_batch");
    const std::int64_t microBatches =
        run.count("micro_batches", batch / dp / std::max<std::int64_t>(1, run.count("micro_batch")));
    const auto option = [](const char *name, std::int64_t value) {
        return std::string(",") + name + "=" + std::to_string(value);
    };
    const std::string layout = layoutOf(run, model);
    const std::string modules = modulesOf(run);
    // Devices that share experts are replicas of all else.
    return "3d:dp=" + std::to_string(dp / ep) + option("tp", tp) + option("pp", pp)
        + (ep > 1 ? option("ep", ep) : "") + (cp > 1 ? option("cp", cp) + option("zigzag", 1) : "")
        + option("zero", zeroOf(run)) + (tp > 1 ? option("sequence", 1) : "")
        + (layout.empty() ? option("interleave", run.count("virtual_pipeline")) : ",layout=" + layout)
        + (modules.empty() ? "" : ",recompute=" + modules) + option("micro-batches", microBatches);
}

} // namespace

RunLikeness likenessOf(const OpenedModel &model, const Cluster &cluster)
{
    const std::string word = splitFramework(cluster.name).first; // "dgx-h100:64"
    return {static_cast<double>(model.parameters), model.hasExperts, word.substr(0, word.rfind(':')),
        cluster.deviceCount, cluster.framework};
}

Result<PlanRequest> requestOf(const MeasuredRun &run)
{
    const auto profile = profileOfDevice(run.device());
    if (!profile)
        return Error{ErrorCode::NotSupported, "no profile of " + run.device(),
            "planloom-cli cluster makes one of timings", "device"};
    TRY(const std::string zoo, zooOf(run));
    PlanRequest request;
    TRY(request.model, openModel({zoo, {}, {}}, {}, KeepContent::No));
    TRY(request.gallery, galleryOf(run, *request.model));
    const std::int64_t devices = run.count("devices");
    const std::string framework = run.framework();
    request.target = {*profile + ":" + std::to_string(devices) + (framework.empty() ? "" : "+" + framework),
        {}, static_cast<std::int32_t>(devices)};
    request.upTo = PlanGrade::Timed;
    TRY(const std::string recomputation, recomputationOf(run, *request.model));
    std::string rows = "precision all : " + precisionOf(run) + (run.reducesInBf16() ? " reduction=bf16" : "")
        + "\n" + recomputation + "\n";
    if (const std::int64_t offloaded = run.count("offloaded_layers", 0); offloaded > 0)
        rows += "offload layer:0-" + std::to_string(offloaded - 1) + " : activations\n";
    const std::string overlap = inSmallLetters(run.text("overlap"));
    const bool isOverlapped =
        overlap.find("tensor-parallel") != std::string::npos && overlap.find("none") == std::string::npos;
    if (run.count("tensor_parallel") > 1 && run.flag("overlap_tensor_parallel").value_or(isOverlapped))
        rows += "overlap tensor\n";
    if (run.says("overlapped_pair"))
        rows += "interleave forward with backward at -1\n";
    request.table = TableDocument(rows);
    return request;
}

namespace {

Result<PlanAnswerSnapshot> answerTo(const MeasuredRun &run)
{
    TRY(const PlanRequest request, requestOf(run));
    TRY(PlanAnswerSnapshot answer, planOf(request));
    if (answer->summary.stepSeconds <= 0)
        return answer->firstError().value_or(Error{ErrorCode::InvalidInput, "no plan", "", ""});
    return answer;
}

PredictedRun predictionOf(const PlanAnswer &answer)
{
    PredictedRun prediction{.seconds = answer.summary.stepSeconds};
    for (const DeviceSummary &device : answer.summary.devices)
        prediction.peaks.push_back(device.peak.count);
    prediction.fits = static_cast<double>(answer.summary.largestPeak.count) <= leastMemory(answer.cluster);
    prediction.like = likenessOf(*answer.model, answer.cluster);
    return prediction;
}

/// What one more micro-batch costs whose forward pass runs beside the backward pass of the one before.
Result<PredictedRun> predictPair(const MeasuredRun &run)
{
    constexpr double kMicroBatches = 4; // so many that there are pairs between the first and the last
    const double replicas =
        run.number("expert_parallel").value_or(1) * run.number("data_parallel").value_or(1);
    const double sequences =
        std::max(1.0, run.number("tokens_of_a_rank").value_or(1) / run.number("sequence").value_or(1));
    std::array<double, 2> seconds{};
    PredictedRun prediction;
    for (const std::size_t more : {0U, 1U}) {
        const double microBatches = kMicroBatches + static_cast<double>(more);
        RunValues columns = run.columns();
        columns["micro_batch"] = sequences;
        columns["global_batch"] = microBatches * replicas * sequences;
        TRY(const PlanAnswerSnapshot answer,
            answerTo(MeasuredRun(std::move(columns), {}, run.surroundings())));
        prediction = predictionOf(*answer);
        seconds[more] = prediction.seconds;
    }
    prediction.seconds = seconds[1] - seconds[0];
    return prediction;
}

} // namespace

Result<PredictedRun> predict(const MeasuredRun &run)
{
    if (run.says("overlapped_pair") && !run.number("global_batch"))
        return predictPair(run);
    TRY(const PlanAnswerSnapshot answer, answerTo(run));
    PredictedRun prediction = predictionOf(*answer);
    if (run.isOfOtherFormat())
        prediction.insteadOf = "fp8 in place of " + run.text("precision");
    return prediction;
}

} // namespace planloom
