#include "engine/interop/configs/write_config.h"

#include "engine/frontend/zoo/zoo.h"
#include "engine/interop/configs/config_request.h"
#include "engine/interop/configs/rank_order.h"
#include "engine/interop/configs/read_config.h"
#include "engine/interop/configs/rows_config.h"
#include "engine/table/layer_layout.h"
#include "engine/table/table_mesh.h"
#include "engine/table/table_text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

using nlohmann::ordered_json;

/// One key with its value, as a format writes it.
struct WrittenKey {
    std::string key{};
    std::vector<std::string> values{}; ///< None: the flag alone.
    KeyKind kind = KeyKind::Text;
};

bool isEvenLayout(const FrameworkConfig &config, const std::vector<LayoutStage> &stages)
{
    const auto same = [&](const LayoutStage &stage) {
        return stage.layers == stages.front().layers && stage.modules == 0;
    };
    const bool isAtEnds = stages.front().embedding && stages.back().loss;
    return isAtEnds && std::all_of(stages.begin(), stages.end(), same)
        && config.count("layers", 0) == stages.front().layers * static_cast<std::int64_t>(stages.size());
}

/// "[['tok_embeddings', 'layers.0'], ['layers.1', 'norm', 'output']]", part by part.
std::vector<std::string> stageModules(const std::vector<LayoutStage> &stages)
{
    std::vector<std::string> parts;
    std::int32_t layer = 0;
    for (const LayoutStage &stage : stages) {
        std::string part = stage.embedding ? "'tok_embeddings'" : "";
        for (std::int32_t i = 0; i < stage.layers; ++i, ++layer)
            part += (part.empty() ? "" : ", ") + ("'layers." + std::to_string(layer) + "'");
        if (stage.loss)
            part += std::string(part.empty() ? "" : ", ") + "'norm', 'output'";
        parts.push_back("[" + part + "]");
    }
    return parts;
}

/// What the frameworks' own fields say of replicas and of what these share.
void spellReplicas(const ConfigFormat &format, FrameworkConfig &config)
{
    const auto set = [&config](
                         const char *field, SettingValue value) { config.derive(field, std::move(value)); };
    const auto number = [&config](const char *field) { return static_cast<double>(config.count(field)); };
    const std::int64_t zero = config.count("zero", 0);
    if (format.name == "megatron" || format.name == "bridge" || format.name == "verl"
        || format.name == "nemo-rl") {
        set("distributed_optimizer", zero > 0);
        set("megatron_fsdp", zero > 1);
        if (zero > 1)
            set("checkpoint_format", std::string("fsdp_dtensor")); // the only one that Megatron-FSDP takes
        set("fsdp_strategy", std::string(zero == 3 ? "optim_grads_params" : "optim_grads"));
        if (zero <= 1)
            config.remove("fsdp_strategy");
    }
    if (format.name
        == "deepspeed") { // which takes all that is neither tensor nor sequence parallel for replicas
        const std::int64_t all =
            config.count("devices") / config.count("tensor_parallel") / config.count("ulysses");
        const std::int64_t each = config.count("global_batch") / all / config.count("micro_batches");
        set("micro_batch", static_cast<double>(std::max<std::int64_t>(1, each)));
        set("accumulation",
            static_cast<double>(
                std::max<std::int64_t>(1, config.count("global_batch") / all / config.count("micro_batch"))));
    }
    const std::int64_t parts = config.count("shard_parts", 0);
    const std::int64_t replicas = config.count("data_parallel");
    if (parts > 0 && zero == 1)
        set("optimizer_instances", static_cast<double>(replicas * config.count("context_parallel") / parts));
    set("dp_replicate", static_cast<double>(parts > 0 ? replicas / parts : zero == 0 ? replicas : 1));
    set("dp_shard", static_cast<double>(zero == 0 ? 1 : parts > 0 ? parts : replicas));
    if (format.name == "accelerate") {
        const bool isDeepSpeed =
            zero == 1 || (config.count("micro_batches") > 1 && config.count("tensor_parallel") == 1);
        set("distributed_type",
            std::string(isDeepSpeed                                    ? "DEEPSPEED"
                    : zero == 0 && replicas == config.count("devices") ? "MULTI_GPU"
                                                                       : "FSDP"));
        if (isDeepSpeed) {
            set("deepspeed_stage", static_cast<double>(zero));
            set("deepspeed_accumulation", number("micro_batches"));
            config.remove("dp_shard");
            config.remove("dp_replicate");
        } else if (config.text("distributed_type") == "FSDP")
            set("fsdp_sharding",
                std::string(zero == 3 ? "FULL_SHARD"
                        : zero == 2   ? "SHARD_GRAD_OP"
                                      : "NO_SHARD"));
    }
}

/// How the parts of a sequence reach attentions, in the frameworks' own fields.
void spellSequences(FrameworkConfig &config)
{
    const std::int64_t heads = config.count("ulysses");
    const std::int64_t rings = config.count("context_parallel") / heads;
    config.derive("ring_parts", static_cast<double>(rings));
    if (heads > 1)
        config.derive("context_kinds", std::vector<std::string>{rings > 1 ? "a2a+p2p" : "a2a"});
    if (heads > 1 && rings > 1)
        config.derive(
            "context_levels", std::vector<std::string>{std::to_string(heads), std::to_string(rings)});
}

/// The schedule in torchtitan's words.
void spellSchedule(FrameworkConfig &config)
{
    const std::string ours = config.text("schedule");
    const bool isSeveral = config.count("virtual_pipeline") > 1;
    config.derive("schedule_class",
        std::string(ours == "gpipe"       ? "GPipe"
                : ours == "breadth-first" ? "LoopedBFS"
                : ours == "zb-v"          ? "ZBVZeroBubble"
                : ours == "dualpipev"     ? "DualPipeV"
                : isSeveral               ? "Interleaved1F1B"
                                          : "1F1B"));
    if (config.count("pipeline_parallel") == 1)
        config.remove("schedule_class");
}

/// What the frameworks' own fields say of what ours do.
FrameworkConfig spelt(const ConfigFormat &format, FrameworkConfig config)
{
    const auto set = [&config](
                         const char *field, SettingValue value) { config.derive(field, std::move(value)); };
    const auto number = [&config](const char *field, std::int64_t missing = 1) {
        return static_cast<double>(config.count(field, missing));
    };
    const bool isTitan = format.name == "torchtitan";
    set("nodes", std::max(1.0, number("devices") / 8));
    set("gpus_per_node", std::min(8.0, number("devices")));
    set("accumulation", number("micro_batches"));
    spellReplicas(format, config);
    if (!config.words("recompute_modules").empty() && config.text("recompute").empty() && !isTitan)
        set("recompute", std::string("selective"));
    if (config.text("recompute") == "full" && !isTitan && !config.has("recompute_method")) {
        set("recompute_method", std::string("uniform"));
        set("recompute_layers", 1.0);
    }
    spellSequences(config);
    set("checkpoints_activations", !config.text("recompute").empty() && config.text("recompute") != "none");
    set("is_megatron", true);
    set("answers_per_prompt", 1.0);
    set("prompts_per_step", number("global_batch"));
    set("plan_devices", number("tensor_parallel") * number("pipeline_parallel") * number("context_parallel"));
    set("pipeline_micro_batches", number("micro_batches"));
    set("tokens_per_micro_batch", number("micro_batch") * number("sequence", 1));
    set("tokens_per_step", number("global_batch") * number("sequence", 1));
    if (format.name == "verl" || !config.has("sequence"))
        config.remove("tokens_per_micro_batch");
    if (format.name == "verl" && config.has("sequence")) {
        set("prompt_tokens", number("sequence") / 2);
        set("answer_tokens", number("sequence") - static_cast<double>(config.count("sequence") / 2));
        set("prompt_tokens", static_cast<double>(config.count("sequence") / 2));
    }
    if (!config.has("sequence"))
        config.remove("tokens_per_step");
    if (config.has("experts") && config.count("expert_parallel") > 1)
        set("expert_tensor_parallel", number("tensor_parallel"));
    if (config.has("shared_experts") && config.has("expert_ffn"))
        set("shared_ffn", number("shared_experts") * number("expert_ffn"));
    if (config.has("experts") && config.count("dense_layers", 0) > 0)
        set("moe_layers",
            "[0]*" + std::to_string(config.count("dense_layers")) + "+[1]*"
                + std::to_string(config.count("layers") - config.count("dense_layers")));
    set("latent", config.has("kv_lora"));
    if (format.framework == "megatron" && config.has("layers")) {
        const bool isGrouped = config.has("kv_heads") && config.count("kv_heads") != config.count("heads");
        set("grouped", isGrouped);
        if (!isGrouped)
            config.remove("kv_heads");
        set("positions", number("sequence"));
        const bool isLlama = config.says("gated") || config.has("activation");
        set("norm", std::string(isLlama ? "RMSNorm" : "LayerNorm"));
        set("position_kind", std::string(isLlama ? "rope" : "learned_absolute"));
    }
    if (isTitan) {
        spellSchedule(config);
        if (config.text("recompute") == "full")
            set("recompute", std::string("full"));
    }
    if (const auto stages = parseLayout(config.text("layout"))) {
        if (isTitan)
            set("stage_modules", stageModules(*stages));
        if (isEvenLayout(config, *stages))
            config.remove("layout");
        else
            config.remove("virtual_pipeline"); // the layout says it
    }
    return config;
}

/// A value as the format writes it; nothing where the key need not be written.
std::optional<WrittenKey> writtenKey(
    const ConfigFormat &format, const ConfigKey &key, const ConfigEntry &entry)
{
    const std::string ours = wordOf(entry.value);
    WrittenKey written{std::string(key.key), {}, key.kind};
    if (ours == standardOf(format, key) || (key.kind == KeyKind::Beyond))
        return std::nullopt;
    if (key.kind == KeyKind::Words)
        written.values = wordsOf(&entry.value);
    else if (key.kind == KeyKind::Mapped) {
        const std::string_view theirs = mapped(key.words, ours, true);
        if (theirs.empty())
            return std::nullopt;
        written.values = {std::string(theirs)};
        written.kind = theirs == "true" || theirs == "false" ? KeyKind::Flag : KeyKind::Text;
    } else
        written.values = {ours};
    return written;
}

std::vector<WrittenKey> writtenKeys(const ConfigFormat &format, const FrameworkConfig &config)
{
    std::vector<WrittenKey> all;
    std::set<std::string_view> done; // of several keys for a field, the first
    for (const KeyGroup &group : format.groups)
        for (const ConfigKey &key : group.keys) {
            const ConfigEntry *const entry = config.find(key.field);
            if (entry == nullptr || group.isOnlyRead || key.isOnlyRead || done.contains(key.field))
                continue;
            // Of keys that stand for one value each, the one that stands for this.
            const bool isOther =
                key.kind == KeyKind::Mapped && mapped(key.words, wordOf(entry->value), true).empty();
            if (isOther)
                continue;
            done.insert(key.field);
            if (auto written = writtenKey(format, key, *entry)) {
                written->key = std::string(group.prefix) + written->key;
                all.push_back(std::move(*written));
            }
        }
    return all;
}

/// "4", "true", "'text'", "[a, b]": values of YAML, JSON and Python.
ordered_json valueJson(const WrittenKey &key)
{
    const auto one = [&key](const std::string &value) -> ordered_json {
        if (key.kind == KeyKind::Flag)
            return value == "true";
        const ordered_json number =
            key.kind == KeyKind::Count ? ordered_json::parse(value, nullptr, false) : ordered_json();
        return number.is_number() ? number : ordered_json(value);
    };
    if (key.kind != KeyKind::Words)
        return key.values.empty() ? ordered_json(true) : one(key.values.front());
    ordered_json list = ordered_json::array();
    for (const std::string &value : key.values)
        list.push_back(one(value));
    return list;
}

ordered_json treeOf(const std::vector<WrittenKey> &keys)
{
    ordered_json tree = ordered_json::object();
    for (const WrittenKey &key : keys) {
        ordered_json *node = &tree;
        std::string_view rest = key.key;
        for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
            node = &(*node)[std::string(rest.substr(0, dot))];
            rest.remove_prefix(dot + 1);
        }
        (*node)[std::string(rest)] = valueJson(key);
    }
    return tree;
}

void writeYaml(const ordered_json &tree, const std::string &indent, std::string &text)
{
    for (const auto &[key, value] : tree.items()) {
        text += indent + key + ":";
        if (value.is_object()) {
            text += "\n";
            writeYaml(value, indent + "  ", text);
        } else {
            const std::string word = value.is_string() ? value.get<std::string>() : std::string();
            const bool isPlain =
                !word.empty() && word.find_first_of(":#[]{},'\"|*&!%@`") == std::string::npos && word != "no";
            text += " " + (isPlain ? word : value.dump()) + "\n";
        }
    }
}

/// A literal of Python.
std::string pythonWord(const ordered_json &value)
{
    if (value.is_boolean())
        return value.get<bool>() ? "True" : "False";
    if (!value.is_array())
        return value.dump();
    std::string list;
    for (const ordered_json &each : value) {
        const std::string word = each.is_string() ? each.get<std::string>() : each.dump();
        list += (list.empty() ? "" : ", ") + (word.starts_with('[') ? word : each.dump());
    }
    return "[" + list + "]";
}

/// "config.parallelism.tensor_parallel_degree = 4", in a function that begins with a config of torchtitan.
std::string pythonText(const std::vector<WrittenKey> &keys)
{
    std::string text = "\n\ndef planloom(config):\n";
    for (const WrittenKey &key : keys) {
        const bool isClass = key.values.size() == 1 && key.values.front().ends_with(".Config");
        text += "    config." + key.key + " = "
            + (isClass ? key.values.front() + "()" : pythonWord(valueJson(key))) + "\n";
    }
    return text + "    return config\n";
}

std::string dashed(std::string_view key)
{
    std::string name = "--" + std::string(key);
    std::replace(name.begin(), name.end(), '_', '-');
    return name;
}

std::string optionsText(const std::vector<WrittenKey> &keys)
{
    std::string launcher;
    const bool isFsdp = std::any_of(
        keys.begin(), keys.end(), [](const WrittenKey &key) { return key.key == "use_megatron_fsdp"; });
    // Megatron-LM demands it where its kernels and collectives overlap in one order; its FSDP does not bear
    // it.
    std::string text = std::string(isFsdp ? "" : "\nexport CUDA_DEVICE_MAX_CONNECTIONS=1") + "\nARGS=(\n";
    for (const WrittenKey &key : keys) {
        if (key.kind == KeyKind::Flag && key.values == std::vector<std::string>{"false"})
            continue; // an option that is not there
        std::string values;
        for (const std::string &value : key.values)
            if (key.kind != KeyKind::Flag)
                values +=
                    " " + (value.find_first_of("|*() []") == std::string::npos ? value : "'" + value + "'");
        if (key.key == "nproc_per_node" || key.key == "nnodes")
            launcher += " --" + key.key + values;
        else
            text += "    " + dashed(key.key) + values + "\n";
    }
    return text + ")\n\ntorchrun" + launcher + " pretrain_gpt.py \"${ARGS[@]}\" \"$@\"\n";
}

std::string overridesText(const ConfigFormat &format, const std::vector<WrittenKey> &keys)
{
    std::string launcher;
    std::string text;
    for (const WrittenKey &key : keys) {
        std::string values;
        for (const std::string &value : key.values)
            values += (values.empty() ? "" : ",") + value;
        if (key.kind == KeyKind::Words)
            values = "[" + values + "]";
        const bool isPlain = values.find_first_of("|*() []") == std::string::npos;
        if (key.key == "nproc_per_node" || key.key == "nnodes")
            launcher += " --" + key.key + " " + values;
        else
            text += " \\\n    " + key.key + "=" + (isPlain ? values : "'" + values + "'");
    }
    const bool isVerl = format.name == "verl";
    return "\n" + (isVerl ? "python3 -m verl.trainer.main_ppo" : "torchrun" + launcher + " recipe.py") + text
        + "\n";
}

} // namespace

Result<PlanAnswerSnapshot> plannedAsTheyAre(PlanRequest request, PlanGrade upTo)
{
    request.upTo = upTo;
    request.search = false;
    request.allowsCopies = true;
    return planOf(request);
}

void timeUnsaid(const PlanRequest &request, const PlanRequest &again, WrittenConfig &written)
{
    const ConstraintTable table = request.table.table();
    for (std::size_t i = 0; i < std::min(written.unsaid.size(), kMostRowsTimed); ++i) {
        PlanRequest without = request;
        ConstraintTable rest = table;
        rest.rows.erase(rest.rows.begin() + written.unsaid[i].row.index);
        without.table = TableDocument(print(rest));
        if (const auto timed = plannedAsTheyAre(without, PlanGrade::Timed))
            written.unsaid[i].secondsWithout = (*timed)->summary.stepSeconds;
    }
    for (const auto &[each, seconds] :
        {std::pair(&request, &written.planSeconds), std::pair(&again, &written.configSeconds)})
        if (const auto timed = plannedAsTheyAre(*each, PlanGrade::Timed))
            *seconds = (*timed)->summary.stepSeconds;
}

std::string printConfig(const ConfigFormat &format, const FrameworkConfig &config)
{
    const std::vector<WrittenKey> keys = writtenKeys(format, spelt(format, config));
    std::string text(format.syntax == ConfigSyntax::Json ? "" : format.mark);
    switch (format.syntax) {
    case ConfigSyntax::Options:
        return text + "\n" + optionsText(keys);
    case ConfigSyntax::Overrides:
        return text + overridesText(format, keys);
    case ConfigSyntax::Json:
        return treeOf(keys).dump(4) + "\n";
    case ConfigSyntax::Python:
        return text + pythonText(keys);
    case ConfigSyntax::Yaml:
        text += "\n";
        writeYaml(treeOf(keys), {}, text);
        return text;
    }
    return text;
}

Result<WrittenConfig> writeConfig(const ConfigFormat &format, const PlanRequest &request)
{
    WrittenConfig written;
    TRY(const PlanAnswerSnapshot plan, plannedAsTheyAre(request, PlanGrade::Planned));
    const ConstraintTable table = request.table.table();
    const Model &model = *request.model;
    const auto batch = findDimension(model.graph->dimensions, "batch");
    TRY(FrameworkConfig config,
        configOfRows(
            table, model, plan->deviceCount, batch == nullptr ? plan->plan->microBatches : batch->size));
    if (!config.has("precision"))
        config.derive("precision", std::string(nameOf(usualPrecision(plan->cluster))));
    const auto sizes = sizesOfZoo(request.model->source.source);
    if (sizes) {
        for (const auto &[field, entry] : sizes->entries())
            if (!config.has(field))
                config.set(field, entry);
    } else
        written.notes.push_back("the sizes of the model are left to the framework: " + sizes.error().message);
    written.text = printConfig(format, config);
    if (format.name == "nnscaler" && config.count("tensor_parallel") > 1)
        written.notes.push_back(
            "nnScaler's policy decides how the devices of plan_ngpus share operators: planloom-cli rows "
            "MODEL --out FILE.yaml writes constraints for it");

    // What was written is read again: only what comes back is said.
    ConfigOptions options{.format = std::string(format.name), .devices = plan->deviceCount};
    TRY(const ImportedConfig read, readConfig(written.text, options));
    for (const KeyRemark &unknown : read.unknown)
        written.notes.push_back(unknown.key + ": " + unknown.why);
    for (const Error &error : read.errors)
        written.notes.push_back(error.message);
    auto again = requestOfConfig(read.config, request.model);
    if (!again)
        return again.error();
    again->target = request.target;
    auto said = plannedAsTheyAre(*again, PlanGrade::Planned);
    if (said)
        written.ranks = devicesOfRanks(meshOf((*said)->table.table()), meshOf(table));
    if (said && decidesAlike(*plan->plan, *(*said)->plan, written.ranks)) {
        written.isWhole = true;
        return written;
    }
    const ConstraintTable made = said ? (*said)->table.table() : ConstraintTable{};
    std::set<std::string> texts;
    for (const Row &row : made.rows)
        texts.insert(print(row));
    std::set<std::string> own;
    PlanRequest with = *again;
    with.gallery.clear();
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const std::string text = print(table.rows[i]);
        own.insert(text);
        if (!table.rows[i].enabled || texts.contains(text))
            continue;
        ConstraintTable joined = made;
        joined.rows.push_back(table.rows[i]);
        with.table = TableDocument(print(joined));
        const auto both = said ? plannedAsTheyAre(with, PlanGrade::Planned) : said;
        if (!both || !decidesAlike(*(*both)->plan, *(*said)->plan))
            written.unsaid.push_back({RowId{static_cast<std::int32_t>(i)}, text});
    }
    for (const std::string &text : texts)
        if (!own.contains(text))
            written.instead.push_back(text);
    timeUnsaid(request, *again, written);
    if (!said)
        written.notes.push_back("what the config says can't be planned: " + describe(said.error()));
    return written;
}

} // namespace planloom
