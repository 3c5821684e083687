#include "engine/base/text.h"
#include "engine/interop/configs/config_completion.h"
#include "engine/interop/configs/config_request.h"
#include "engine/interop/configs/read_config.h"
#include "engine/interop/configs/shell_text.h"
#include "engine/table/layer_layout.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostStages = 4096;

/// Works out, step by step, what a config leaves to its framework.
class ConfigRules
{
public:
    ConfigRules(ImportedConfig &imported, const ConfigOptions &options)
        : m_imported(imported)
        , m_config(imported.config)
        , m_options(options)
    {
    }

    void complete()
    {
        m_config.derive("framework", frameworkName());
        m_config.derive("cluster", m_options.cluster);
        degreesAreCounts();
        completeSequences(m_imported);
        model();
        sizes();
        recomputation();
        replicas();
        stages();
        batch();
        sharing();
        experts();
        divisibility();
    }

private:
    std::int64_t count(const char *field, std::int64_t missing = 1) const
    {
        return m_config.count(field, missing);
    }
    void derive(const char *field, std::int64_t value, const char *source = "")
    {
        m_config.derive(field, static_cast<double>(value), source);
    }
    void note(std::string text) { m_imported.notes.push_back(std::move(text)); }

    /// "--num-layers 30", as the file says it.
    std::string said(const char *field) const
    {
        const ConfigEntry *const entry = m_config.find(field);
        if (entry == nullptr)
            return field;
        return (entry->key.empty() ? std::string(field) : entry->key) + " " + wordOf(entry->value);
    }

    void wrong(std::string message, std::initializer_list<const char *> fields, std::string advice = {})
    {
        contradict(m_imported, std::move(message), fields, std::move(advice));
    }

    /// Degrees below one are refused once, and one from there on.
    void degreesAreCounts()
    {
        for (const char *field : {"tensor_parallel", "pipeline_parallel", "context_parallel",
                 "expert_parallel", "virtual_pipeline", "nodes", "gpus_per_node", "devices", "data_parallel",
                 "micro_batch", "global_batch", "accumulation", "layers", "heads", "sequence", "dp_replicate",
                 "layers_per_virtual_stage", "ulysses", "ring_parts", "optimizer_instances"}) {
            const auto number = m_config.number(field);
            if (!number
                || (*number >= 1 && *number < 1e9
                    && *number == static_cast<double>(static_cast<std::int64_t>(*number))))
                continue;
            const bool isLeftOver = *number == -1 || *number == 0; // "the framework decides"
            if (!isLeftOver)
                wrong("expected a whole number from 1 on, found " + said(field), {field});
            m_config.remove(field);
        }
    }

    std::string frameworkName() const
    {
        const std::string type = m_config.text("distributed_type");
        if (type == "DEEPSPEED")
            return "deepspeed";
        if (type == "MEGATRON_LM")
            return "megatron";
        const std::string profile(m_imported.format->framework);
        const std::string strategy = m_config.text("strategy");
        const bool isFsdp = profile == "fsdp" || strategy.starts_with("fsdp") || m_config.says("shards_all");
        return isFsdp ? (m_config.says("compiled") ? "fsdp-compiled" : "fsdp") : profile;
    }

    void model()
    {
        const std::vector<std::string> call = m_config.words("flavor_call");
        const std::string flavor = call.size() > 1 ? call[1] : m_config.text("flavor");
        const std::string name = m_config.text("model_name");
        if (!name.empty() && !flavor.empty())
            m_config.derive("model", name + "-" + flavor, "flavor");
        else if (m_config.text("model").empty() && !name.empty())
            m_config.derive("model", name, "model_name");
        for (const std::string &converter : m_config.words("converters"))
            if (containsLetters(converter, "float8") || containsLetters(converter, "mx"))
                m_config.derive("precision", std::string("fp8"), "converters");
    }

    void sizes()
    {
        if (!m_config.has("layers") || !m_config.has("hidden"))
            return;
        const std::int64_t hidden = count("hidden");
        const bool isMegatron = m_config.text("framework") == "megatron";
        if (isMegatron && !m_config.has("ffn") && m_config.says("gated"))
            derive("ffn", hidden * 8 / 3 / 64 * 64); // of Megatron-LM: 4 x 2 / 3 of the width, in steps of 64
        if (isMegatron && !m_config.has("ffn") && !m_config.says("gated"))
            derive("ffn", 4 * hidden);
        if (!m_config.says("latent"))
            m_config.remove("kv_lora");
        else if (!m_config.has("kv_lora"))
            derive("kv_lora", 512);
        if (!m_config.has("experts")) {
            m_config.remove("expert_ffn");
            m_config.remove("dense_layers");
        } else
            mixtures();
        if (isMegatron && m_config.has("kv_lora") && !m_config.has("q_lora"))
            derive("q_lora", 0);
        if (!m_config.has("kv_heads") && m_config.has("heads"))
            derive("kv_heads", count("heads"));
        if (!m_config.has("vocabulary"))
            note("the vocabulary is not in the file, which its tokenizer says: the zoo's is taken");
        if (!m_config.has("sequence"))
            note("the length of a sequence is not in the file: the zoo's is taken");
    }

    /// "[0]*3+[1]*58": layers without and with experts; only layers without experts before the others are
    /// sizes here.
    void mixtures()
    {
        std::string_view layers = m_config.text("moe_layers");
        const std::string held = m_config.text("moe_layers");
        layers = held;
        std::int64_t dense = 0;
        if (const std::size_t first = layers.find("[0]*"); first != std::string_view::npos)
            std::from_chars(layers.data() + first + 4, layers.data() + layers.size(), dense);
        if (!layers.empty())
            derive("dense_layers", dense, "moe_layers");
        else
            derive("dense_layers", 0);
        if (!m_config.has("expert_ffn"))
            derive("expert_ffn", count("ffn"), "ffn");
        if (m_config.number("shared_ffn"))
            derive("shared_experts",
                std::max<std::int64_t>(
                    1, count("shared_ffn") / std::max<std::int64_t>(1, count("expert_ffn"))),
                "shared_ffn");
        else if (m_config.has("kv_lora"))
            derive("shared_experts", 0);
        if (!m_config.has("experts_per_token"))
            derive("experts_per_token", 2);
    }

    void recomputation()
    {
        const std::string said = m_config.text("recompute");
        if (const auto checkpoints = m_config.flag("checkpoints_activations")) {
            if (!*checkpoints) {
                m_config.remove("recompute");
                m_config.remove("recompute_modules");
                return;
            }
            if (said.empty())
                m_config.derive("recompute", std::string("full"), "checkpoints_activations");
        }
        const bool isTitan = m_imported.format->name == "torchtitan";
        if (m_config.text("recompute") == "selective" && !isTitan) {
            if (m_config.words("recompute_modules").empty())
                m_config.derive("recompute_modules", std::vector<std::string>{"core_attn"}, "recompute");
            else if (m_config.words("recompute_modules").size() == 1) // "[mlp, moe]" in one word
                m_config.derive("recompute_modules", listOf(m_config.words("recompute_modules").front()),
                    "recompute_modules");
            m_config.remove("recompute");
        } else
            m_config.remove("recompute_modules"); // without effect, whatever stands there
        const std::string option = m_config.text("recompute_option");
        std::int64_t every = 0;
        std::from_chars(option.data(), option.data() + option.size(), every);
        if (every > 0 && m_config.text("recompute") == "selective") {
            derive("recompute_every", every, "recompute_option");
            m_config.remove("recompute");
        }
    }

    /// Devices, and how many replicas they make.
    void replicas()
    {
        const bool isSharded = m_config.has("dp_shard") && count("dp_shard") > 0;
        if (!m_config.has("devices") && m_config.has("gpus_per_node"))
            derive("devices", count("nodes") * count("gpus_per_node"), "gpus_per_node");
        if (m_options.devices > 0 && !m_config.has("devices"))
            derive("devices", m_options.devices);
        if (m_config.has("plan_devices") && count("plan_devices") > 0) {
            derive("tensor_parallel",
                std::max<std::int64_t>(1, count("plan_devices") / count("pipeline_parallel")),
                "plan_devices");
            if (count("pipeline_parallel") > 1)
                m_config.derive("pipeline_inside", true, "plan_devices"); // replicas are scaled out, last
            note("how the devices of plan_ngpus share operators is left to nnScaler's policy: they are taken "
                 "as tensor parallel");
        }
        if (!m_config.has("devices")) {
            const std::int64_t replicas = m_config.has("data_parallel")
                ? count("data_parallel")
                : std::max({std::int64_t{1}, count("expert_parallel"),
                    count("dp_replicate") * (isSharded ? count("dp_shard") : 1)});
            derive("devices", std::min<std::int64_t>(1 << 20, totalOthers() * replicas), "tensor_parallel");
            note("the number of devices is not in the file: " + std::to_string(count("devices"))
                + " are as few as its degrees need");
        }
        if (m_config.has("data_parallel"))
            return;
        if (isSharded && m_imported.format->name != "verl")
            derive("data_parallel", count("dp_replicate") * count("dp_shard"), "dp_shard");
        else
            derive("data_parallel", std::max<std::int64_t>(1, count("devices") / totalOthers()), "devices");
    }

    std::int64_t totalOthers() const
    {
        return std::max<std::int64_t>(
            1, count("tensor_parallel") * count("pipeline_parallel") * count("context_parallel"));
    }

    void stages()
    {
        const std::int64_t layers = layersOfModel();
        const std::int64_t ranks = count("pipeline_parallel");
        if (m_config.has("schedule_class"))
            titanSchedule();
        if (m_config.has("layers_per_virtual_stage") && layers > 0)
            derive("virtual_pipeline",
                std::max<std::int64_t>(
                    1, layers / ranks / std::max<std::int64_t>(1, count("layers_per_virtual_stage"))),
                "layers_per_virtual_stage");
        if (ranks == 1) {
            derive("virtual_pipeline", 1);
            m_config.remove("layout");
            return;
        }
        if (const std::string layout = m_config.text("layout"); !layout.empty()) {
            layoutFits(layout);
            return;
        }
        if (m_imported.format->name == "torchtitan")
            return titanStages(layers);
        unevenStages(layers);
    }

    std::int64_t layersOfModel() const
    {
        if (m_config.has("layers"))
            return count("layers");
        FrameworkConfig named;
        named.derive("model", m_config.text("model"));
        const auto spec = zooSpecOf(named);
        const auto sizes = spec ? sizesOfZoo(*spec) : Result<FrameworkConfig>(spec.error());
        return sizes ? sizes->count("layers", 0) : 0;
    }

    void layoutFits(const std::string &layout)
    {
        const auto parsed = parseLayout(layout);
        if (!parsed) {
            wrong(parsed.error().message, {"layout"}, parsed.error().advice);
            m_config.remove("layout");
            return;
        }
        const auto stages = static_cast<std::int64_t>(parsed->size());
        if (stages % count("pipeline_parallel") != 0)
            wrong("the length of pipeline_model_parallel_layout must be divisible by "
                  "pipeline_model_parallel_size: "
                    + std::to_string(stages) + " stages on " + std::to_string(count("pipeline_parallel"))
                    + " ranks",
                {"layout"});
        else
            derive("virtual_pipeline", stages / count("pipeline_parallel"), "layout");
    }

    /// Megatron-LM: the first and the last rank may have other numbers of layers, or the embedding and the
    /// loss count as one.
    void unevenStages(std::int64_t layers)
    {
        const std::int64_t ranks = count("pipeline_parallel");
        const std::int64_t virtuals = count("virtual_pipeline");
        std::int64_t first = count("first_stage_layers", 0);
        std::int64_t last = count("last_stage_layers", 0);
        const bool countsFirst = m_config.says("embedding_is_layer");
        const bool countsLast = m_config.says("loss_is_layer");
        if ((first <= 0 && last <= 0 && !countsFirst && !countsLast) || layers < 1 || ranks > kMostStages)
            return;
        std::vector<std::int64_t> ofRank;
        if (countsFirst || countsLast) {
            const std::int64_t all = layers + (countsFirst ? 1 : 0) + (countsLast ? 1 : 0);
            if (all % (ranks * virtuals) != 0)
                return wrong("the layers, with the embedding and the loss that count as layers, are "
                        + std::to_string(all) + ": not divisible by " + std::to_string(ranks * virtuals)
                        + " stages",
                    {"embedding_is_layer", "loss_is_layer"});
            std::vector<std::int64_t> ofStage(
                static_cast<std::size_t>(ranks * virtuals), all / (ranks * virtuals));
            ofStage.front() -= countsFirst ? 1 : 0;
            ofStage.back() -= countsLast ? 1 : 0;
            m_config.derive(
                "layout", evenLayout(ofStage), countsFirst ? "embedding_is_layer" : "loss_is_layer");
            return;
        }
        const std::int64_t between = ranks - (first > 0 ? 1 : 0) - (last > 0 ? 1 : 0);
        const std::int64_t rest = layers - std::max<std::int64_t>(0, first) - std::max<std::int64_t>(0, last);
        if (rest < 0 || (between > 0 ? rest % between != 0 : rest != 0))
            return wrong("the number of layers between the first and the last rank must be divisible by the "
                         "ranks between: "
                    + std::to_string(rest) + " layers on " + std::to_string(between) + " ranks",
                {"first_stage_layers", "last_stage_layers"});
        for (std::int64_t rank = 0; rank < ranks; ++rank)
            ofRank.push_back(rank == 0 && first > 0 ? first
                    : rank == ranks - 1 && last > 0 ? last
                                                    : rest / between);
        std::vector<std::int64_t> ofStage;
        for (std::int64_t chunk = 0; chunk < virtuals && virtuals <= kMostStages / ranks; ++chunk)
            for (const std::int64_t each : ofRank) {
                if (each % virtuals != 0)
                    return wrong("number of layers per pipeline stage must be divisible by "
                                 "virtual_pipeline_model_parallel_size: "
                            + std::to_string(each) + " by " + std::to_string(virtuals),
                        {"virtual_pipeline", "first_stage_layers"});
                ofStage.push_back(each / virtuals);
            }
        if (!ofStage.empty())
            m_config.derive(
                "layout", evenLayout(ofStage), first > 0 ? "first_stage_layers" : "last_stage_layers");
    }

    /// Classes of torch.distributed.pipelining, by our names; those with several stages on a rank have two
    /// unless said.
    void titanSchedule()
    {
        struct Known {
            const char *name;
            const char *ours;
            std::int64_t stages;
        };
        constexpr Known kKnown[] = {{"1F1B", "1f1b", 1}, {"GPipe", "gpipe", 1},
            {"Interleaved1F1B", "1f1b", 2}, {"LoopedBFS", "breadth-first", 2}, {"ZBVZeroBubble", "zb-v", 2},
            {"DualPipeV", "dualpipev", 2}};
        const std::string said = m_config.text("schedule_class");
        for (const Known &known : kKnown)
            if (sameLetters(said, known.name)) {
                m_config.derive("schedule", std::string(known.ours), "schedule_class");
                derive("virtual_pipeline", known.stages, "schedule_class");
                return;
            }
        if (count("pipeline_parallel") > 1) {
            const ConfigEntry *const entry = m_config.find("schedule_class");
            m_imported.unknown.push_back(
                {entry->key, entry->line, "the schedule " + said.substr(0, 60) + " has no name in rows"});
        }
    }

    /// torchtitan: the embedding and the head weigh as some layers; what does not divide is with the first
    /// stages.
    void titanStages(std::int64_t layers)
    {
        const std::int64_t ranks = count("pipeline_parallel");
        if (const std::vector<std::string> parts = m_config.words("stage_modules"); !parts.empty()) {
            std::vector<std::int64_t> ofStage;
            for (const std::string &part : parts) {
                std::int64_t each = 0;
                for (std::size_t at = part.find("layers."); at != std::string::npos;
                     at = part.find("layers.", at + 1))
                    ++each;
                ofStage.push_back(each);
            }
            m_config.derive("layout", evenLayout(ofStage), "stage_modules");
            return layoutFits(m_config.text("layout"));
        }
        const std::int64_t before = count("first_less_layers");
        const std::int64_t behind = count("last_less_layers");
        const std::int64_t all = layers + before + behind;
        if (layers < 1 || before < 0 || behind < 0)
            return;
        std::int64_t stages = ranks * count("virtual_pipeline");
        if (const std::int64_t each = count("layers_per_stage", 0); each > 0) {
            stages = (all + each - 1) / each;
            if (stages % ranks != 0)
                return wrong("Number of virtual stages (" + std::to_string(stages)
                        + ") must be divisible by pipeline parallel size (" + std::to_string(ranks) + ")",
                    {"layers_per_stage"});
            derive("virtual_pipeline", stages / ranks, "layers_per_stage");
        }
        if (stages > all || stages > kMostStages)
            return wrong("Number of stages (" + std::to_string(stages)
                    + ") cannot be greater than effective layers (" + std::to_string(all) + ")",
                {"pipeline_parallel"});
        std::vector<std::int64_t> ofStage;
        for (std::int64_t stage = 0; stage < stages; ++stage)
            ofStage.push_back(all / stages + (stage < all % stages ? 1 : 0));
        ofStage.front() -= before;
        ofStage.back() -= behind;
        if (*std::min_element(ofStage.begin(), ofStage.end()) < 0)
            return wrong("a stage has fewer layers than the embedding or the head weighs",
                {"first_less_layers", "last_less_layers"});
        m_config.derive("layout", evenLayout(ofStage), "pipeline_parallel");
    }

    void batch();
    void sharing();
    void experts();
    void divisibility();
    void divides(const char *what, const char *by, const char *rule)
    {
        if (m_config.number(what) && m_config.number(by)
            && count(what) % std::max<std::int64_t>(1, count(by)) != 0)
            wrong(std::string(rule) + ": " + said(what) + ", " + said(by), {what, by});
    }

    ImportedConfig &m_imported;
    FrameworkConfig &m_config;
    const ConfigOptions &m_options;
};

void ConfigRules::batch()
{
    const std::int64_t replicas = count("data_parallel");
    const std::int64_t length = count("sequence", 0);
    if (m_config.has("prompt_tokens")
        || m_config.has("answer_tokens")) // verl: a sample is a prompt and its answer
        derive("sequence", count("prompt_tokens", 0) + count("answer_tokens", 0), "answer_tokens");
    if (m_config.has("prompts_per_step"))
        derive("global_batch", count("prompts_per_step") * count("answers_per_prompt"), "prompts_per_step");
    if (m_config.has(
            "local_batch")) { // torchtitan before: what a replica has in a pass, before the pipeline cuts it
        const std::int64_t size =
            count("pipeline_micro_batch", count("pipeline_parallel") > 1 ? 1 : count("local_batch"));
        derive("micro_batch", std::max<std::int64_t>(1, size), "local_batch");
        if (!m_config.has("global_batch"))
            derive("global_batch", count("local_batch") * replicas, "local_batch");
    }
    const std::int64_t sample = std::max<std::int64_t>(1, count("sequence", length));
    if (m_config.has("tokens_per_micro_batch") && !m_config.has("micro_batch"))
        derive("micro_batch", std::max<std::int64_t>(1, count("tokens_per_micro_batch") / sample),
            "tokens_per_micro_batch");
    if (count("tokens_per_step", -1) > 0)
        derive(
            "global_batch", std::max<std::int64_t>(1, count("tokens_per_step") / sample), "tokens_per_step");
    const bool isDeepSpeed = m_config.text("distributed_type") == "DEEPSPEED";
    std::int64_t accumulation = count(
        isDeepSpeed && m_config.has("deepspeed_accumulation") ? "deepspeed_accumulation" : "accumulation", 0);
    if (m_config.has("tokens_per_micro_batch") && m_config.has("pipeline_micro_batches")
        && count("pipeline_parallel") > 1)
        accumulation = count("pipeline_micro_batches");
    if (!m_config.has("micro_batch") && accumulation > 0 && m_config.has("global_batch"))
        derive("micro_batch", std::max<std::int64_t>(1, count("global_batch") / accumulation / replicas),
            "global_batch");
    if (!m_config.has("micro_batch")) {
        derive("micro_batch", 1);
        note("the size of a micro-batch is not in the file: one sample is taken");
    }
    if (!m_config.has("global_batch")) {
        derive("global_batch", count("micro_batch") * std::max<std::int64_t>(1, accumulation) * replicas,
            "micro_batch");
        if (accumulation == 0)
            note("the batch of a step is not in the file: one micro-batch of each replica is taken");
    }
    const std::int64_t part = count("micro_batch") * replicas;
    if (part < 1 || count("global_batch") % part != 0)
        return wrong("global batch size (" + std::to_string(count("global_batch"))
                + ") is not divisible by micro batch size (" + std::to_string(count("micro_batch"))
                + ") times data parallel size (" + std::to_string(replicas) + ")",
            {"global_batch", "micro_batch"});
    if (accumulation > 0 && count("global_batch") != part * accumulation)
        wrong("train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size: "
                + std::to_string(count("global_batch")) + " != " + std::to_string(count("micro_batch"))
                + " * " + std::to_string(accumulation) + " * " + std::to_string(replicas),
            {"global_batch", "accumulation"});
    derive("micro_batches", count("global_batch") / part, "micro_batch");
}

/// What replicas share: the stage of ZeRO.
void ConfigRules::sharing()
{
    const std::string sharding = m_config.text("fsdp_sharding");
    const bool isFsdp = m_config.text("framework").starts_with("fsdp");
    const auto is = [&sharding](const char *name, const char *number) {
        return sharding == name || sharding == number || (sharding.ends_with(name));
    };
    std::int64_t stage =
        count(m_config.text("distributed_type") == "DEEPSPEED" ? "deepspeed_stage" : "zero", 0);
    std::int64_t parts = std::max<std::int64_t>(0, count("shard_parts", 0));
    if (m_config.has("fsdp_strategy") && m_config.says("megatron_fsdp")) {
        const std::string strategy = m_config.text("fsdp_strategy");
        stage = strategy == "optim" ? 1 : strategy == "optim_grads" ? 2 : strategy == "no_shard" ? 0 : 3;
    } else if (m_config.says("distributed_optimizer"))
        stage = std::max<std::int64_t>(stage, 1);
    if (m_imported.format->name == "torchtitan" || m_config.says("shards_all"))
        stage = count("dp_shard", -1) == 1 && count("context_parallel") == 1 ? 0 : 3;
    if (m_config.text("distributed_type") == "FSDP")
        stage = is("SHARD_GRAD_OP", "2") || sharding == "false" ? 2 : is("NO_SHARD", "3") ? 0 : 3;
    if (m_imported.format->name == "verl" && isFsdp)
        stage = 3;
    if (const std::int64_t instances = count("optimizer_instances"); instances > 1 && stage > 0) {
        const std::int64_t all = count("data_parallel") * count("context_parallel");
        if (all % instances != 0)
            wrong("the data parallel size with context parallelism (" + std::to_string(all)
                    + ") must be divisible by num_distributed_optimizer_instances ("
                    + std::to_string(instances) + ")",
                {"optimizer_instances"});
        else
            parts = all / instances;
    }
    const std::int64_t replicated = count("dp_replicate");
    if (stage == 3 && replicated > 1)
        parts = count("data_parallel") / replicated;
    derive("zero", std::clamp<std::int64_t>(stage, 0, 3));
    if (parts > 0 && parts < count("data_parallel") * count("context_parallel"))
        derive("shard_parts", parts);
    else
        m_config.remove("shard_parts");
}

void ConfigRules::experts()
{
    if (!m_config.has("experts") && m_config.has("layers"))
        return m_config.remove("expert_parallel");
    const std::int64_t tensor = count("tensor_parallel");
    const std::int64_t own = count("expert_tensor_parallel", tensor);
    const std::int64_t parts = count("expert_parallel");
    if (parts > 1 && own != tensor) {
        const ConfigEntry *const entry = m_config.find("expert_tensor_parallel");
        m_imported.unknown.push_back({entry->key, entry->line,
            "the gallery's plan cuts experts over tensor parallelism as all else: " + std::to_string(tensor)
                + " in place of " + std::to_string(own)});
    }
}

void ConfigRules::divisibility()
{
    if (count("devices") % totalOthers() != 0)
        wrong("world_size (" + std::to_string(count("devices")) + ") is not divisible by "
                + std::to_string(totalOthers()) + ", tensor x pipeline x context parallel size",
            {"devices", "gpus_per_node", "tensor_parallel"});
    else if (count("data_parallel") * totalOthers() != count("devices"))
        wrong("data x tensor x pipeline x context parallel size ("
                + std::to_string(count("data_parallel") * totalOthers()) + ") is not world_size ("
                + std::to_string(count("devices")) + ")",
            {"data_parallel", "devices"});
    divides("heads", "tensor_parallel",
        "the number of attention heads must be a multiple of tensor parallel size");
    divides("hidden", "heads", "the hidden size must be a multiple of the attention heads");
    divides("experts", "expert_parallel", "the number of experts must be a multiple of expert parallel size");
    const std::int64_t context = count("context_parallel");
    if (context > 1 && m_config.has("sequence") && count("sequence") % (2 * context) != 0)
        wrong("seq-length should be a multiple of 2 * context-parallel-size: " + said("sequence"),
            {"sequence"});
    const std::int64_t stages = count("pipeline_parallel") * count("virtual_pipeline");
    if (m_config.has("layers") && m_config.text("layout").empty() && m_config.text("framework") == "megatron"
        && stages > 1 && count("layers") % stages != 0)
        wrong("number of layers should be divisible by the pipeline-model-parallel size times the virtual "
              "stages of a rank: "
                + said("layers") + ", " + std::to_string(stages) + " stages",
            {"layers", "pipeline_parallel"}, "say first and last stages, or a layout");
    if (m_config.says("sequence_parallel") && count("tensor_parallel") == 1)
        m_config.derive("sequence_parallel", false, "sequence_parallel"); // Megatron-LM turns it off, too
}

} // namespace

void completeConfig(ImportedConfig &imported, const ConfigOptions &options)
{
    ConfigRules(imported, options).complete();
}

} // namespace planloom
