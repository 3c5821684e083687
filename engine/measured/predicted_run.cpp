#include "engine/measured/predicted_run.h"

#include "engine/hardware/cluster.h"
#include "engine/hardware/framework.h"
#include "engine/interop/configs/config_request.h"

#include <algorithm>
#include <array>
#include <utility>

namespace planloom {

namespace {

/// The sizes of a run's model, by the names of configs.
void addSizes(const MeasuredRun &run, FrameworkConfig &config)
{
    for (const auto &[field, column] : {std::pair("sequence", "sequence"),
             std::pair("global_batch", "global_batch"), std::pair("layers", "layers"),
             std::pair("hidden", "hidden"), std::pair("heads", "heads"), std::pair("kv_heads", "kv_heads"),
             std::pair("ffn", "ffn"), std::pair("vocabulary", "vocabulary"), std::pair("experts", "experts"),
             std::pair("experts_per_token", "experts_per_token"), std::pair("expert_ffn", "expert_ffn"),
             std::pair("q_lora", "q_lora"), std::pair("kv_lora", "kv_lora"), std::pair("qk_nope", "qk_nope"),
             std::pair("qk_rope", "qk_rope"), std::pair("v_head", "v_head"),
             std::pair("shared_experts", "shared_experts"), std::pair("dense_layers", "dense_layers")})
        if (const auto number = run.number(column))
            config.derive(field, *number);
    const std::string kind = inSmallLetters(run.text("kind"));
    if (const auto tied = run.flag("tied_embeddings"))
        config.derive("tied_embeddings", *tied);
    if (run.number("kv_lora")) {
        config.derive("router_sigmoid", kind.find("v3") != std::string::npos);
        if (const auto modules = run.number("mtp_layers"))
            config.derive("mtp_layers", *modules);
    }
    // A layer is gated and has no table of positions unless the model says otherwise.
    if (kind.find("squared relu") != std::string::npos)
        config.derive("activation", std::string("squared_relu"));
    else
        config.derive("gated", run.flag("gated").value_or(kind.find("gpt") == std::string::npos));
    if (!run.hasModel())
        config.derive("model", run.text("model"));
    if (run.says("overlapped_pair")) // of layers from the middle, all of which have experts
        for (const char *none : {"dense_layers", "mtp_layers"})
            config.derive(none, 0.0);
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

/// What a run computes again, in the words of configs.
void addRecomputation(const MeasuredRun &run, FrameworkConfig &config)
{
    const std::string said = inSmallLetters(run.text("recompute"));
    if (run.says("full_recompute") || said == "full")
        config.derive("recompute", std::string("full"));
    else if (said.find("every second layer") != std::string::npos)
        config.derive("recompute_every", 2.0);
    else if (said.find("selective") != std::string::npos)
        config.derive("recompute", std::string("selective"));
    else if (run.text("recompute").empty() && !run.words("recompute_modules").empty())
        config.derive("recompute_modules", run.words("recompute_modules"));
}

} // namespace

RunLikeness likenessOf(const OpenedModel &model, const Cluster &cluster)
{
    const std::string word = splitFramework(cluster.name).first; // "dgx-h100:64"
    return {static_cast<double>(model.parameters), model.hasExperts, word.substr(0, word.rfind(':')),
        cluster.deviceCount, cluster.framework};
}

Result<FrameworkConfig> configOf(const MeasuredRun &run)
{
    const auto profile = profileOfDevice(run.device());
    if (!profile)
        return Error{ErrorCode::NotSupported, "no profile of " + run.device(),
            "planloom-cli cluster makes one of timings", "device"};
    FrameworkConfig config;
    config.derive("cluster", *profile);
    config.derive("framework", run.framework());
    addSizes(run, config);
    for (const char *degree : {"devices", "tensor_parallel", "pipeline_parallel", "context_parallel",
             "expert_parallel", "data_parallel", "virtual_pipeline", "micro_batch", "micro_batches"})
        if (const auto number = run.number(degree))
            config.derive(degree, *number);
    if (const std::string layout = run.text("layout"); !layout.empty())
        config.derive("layout", layout);
    addRecomputation(run, config);
    config.derive("zero", static_cast<double>(zeroOf(run)));
    config.derive("precision", precisionOf(run));
    config.derive("reduce_in_bf16", run.reducesInBf16());
    config.derive("offloaded_layers", static_cast<double>(run.count("offloaded_layers", 0)));
    const std::string overlap = inSmallLetters(run.text("overlap"));
    const bool isOverlapped =
        overlap.find("tensor-parallel") != std::string::npos && overlap.find("none") == std::string::npos;
    config.derive("overlap_tensor_parallel", run.flag("overlap_tensor_parallel").value_or(isOverlapped));
    return config;
}

Result<PlanRequest> requestOf(const MeasuredRun &run)
{
    TRY(const FrameworkConfig config, configOf(run));
    TRY(PlanRequest request, requestOfConfig(config));
    request.upTo = PlanGrade::Timed;
    if (run.says("overlapped_pair"))
        request.table = TableDocument(request.table.text() + "interleave forward with backward at -1\n");
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
