#include "engine/interop/configs/config_request.h"

#include "engine/base/text.h"
#include "engine/design/models/opened_model.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/gallery/usual_rows.h"
#include "engine/hardware/framework.h"
#include "engine/table/layer_layout.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

namespace planloom {

namespace {

/// What a parameter of the zoo is called in a config.
struct SizeName {
    const char *parameter;
    const char *field;
    bool isFlag = false;
};

constexpr SizeName kEverySize[] = {{"layers", "layers"}, {"hidden", "hidden"}, {"heads", "heads"},
    {"vocab", "vocabulary"}, {"seq", "sequence"}, {"batch", "global_batch"}};
constexpr SizeName kGptSizes[] = {{"ffn", "ffn"}, {"tied", "tied_embeddings", true}};
constexpr SizeName kLlamaSizes[] = {{"kv_heads", "kv_heads"}, {"head_dim", "head_dim"},
    {"rope_base", "rope_base"}, {"mtp", "mtp_layers"}, {"qk_norm", "qk_norm"}, {"window", "window"},
    {"full_every", "full_every"}, {"tied", "tied_embeddings", true}};
constexpr SizeName kDenseSizes[] = {{"ffn", "ffn"}};
constexpr SizeName kMixtureSizes[] = {{"ffn", "expert_ffn"}, {"experts", "experts"},
    {"top_k", "experts_per_token"}, {"dense", "dense_layers"}, {"dense_ffn", "ffn"}};
constexpr SizeName kDeepSeekSizes[] = {{"q_lora", "q_lora"}, {"kv_lora", "kv_lora"}, {"nope", "qk_nope"},
    {"rope", "qk_rope"}, {"v_head", "v_head"}, {"rope_base", "rope_base"}, {"shared", "shared_experts"},
    {"mtp", "mtp_layers"}, {"sigmoid", "router_sigmoid", true}, {"groups", "expert_groups"},
    {"top_groups", "expert_top_groups"}};

using SizeNames = std::vector<std::span<const SizeName>>;

SizeNames sizeNamesOf(std::string_view family, bool hasExperts)
{
    if (family == "gpt")
        return {kEverySize, kGptSizes};
    if (family == "deepseek")
        return {kEverySize, kDeepSeekSizes, kMixtureSizes};
    return {kEverySize, kLlamaSizes,
        hasExperts ? std::span<const SizeName>(kMixtureSizes) : std::span<const SizeName>(kDenseSizes)};
}

void append(std::string &spec, const char *name, const std::string &value)
{
    spec += std::string(spec.ends_with('?') ? "" : "&") + name + "=" + value;
}

/// The name without what stands behind a version: "Llama-3.1-8B" has the sizes of "Llama-3-8B".
std::string withoutMinorVersions(std::string_view name)
{
    std::string plain;
    for (std::size_t i = 0; i < name.size(); ++i) {
        if (name[i] == '.' && i > 0 && isDigit(name[i - 1])) {
            while (i + 1 < name.size() && isDigit(name[i + 1]))
                ++i;
            continue;
        }
        plain += name[i];
    }
    return plain;
}

/// The published model that a file calls `name`: the longest whose name stands in it.
Result<std::string> publishedOf(const FrameworkConfig &config)
{
    const std::string said = config.text("model");
    const ZooFamily *best = nullptr;
    for (const std::string &name : {lettersOf(said), lettersOf(withoutMinorVersions(said))})
        for (const ZooFamily &family : zooFamilies())
            if (!family.builtAs.empty() && (!best || family.name.size() > best->name.size())
                && name.find(lettersOf(family.name)) != std::string::npos)
                best = &family;
    if (!best)
        return Error{ErrorCode::NotSupported,
            said.empty() ? std::string("the sizes of the model are not in the file")
                         : "the file has no sizes of model " + said + ", and no published model is called so",
            "name the model: a file, or zoo:llama?layers=...", "model"};
    std::string spec = "zoo:" + best->name + "?";
    for (const auto &[parameter, field] :
        {std::pair("layers", "layers"), std::pair("seq", "sequence"), std::pair("batch", "global_batch"),
            std::pair("dense", "dense_layers"), std::pair("mtp", "mtp_layers")}) {
        const bool isThere = std::any_of(best->parameters.begin(), best->parameters.end(),
            [wanted = std::string_view(parameter)](const ZooParameter &each) { return each.name == wanted; });
        if (const auto number = config.number(field); number && isThere)
            append(spec, parameter, wordOf(*number));
    }
    return spec;
}

/// The family whose layers a model of these sizes has.
std::string familyOf(const FrameworkConfig &config)
{
    if (config.has("kv_lora"))
        return "deepseek";
    const bool isGrouped =
        config.number("kv_heads").value_or(0) > 0 && config.number("kv_heads") != config.number("heads");
    return config.says("gated") || config.has("activation") || config.has("experts") || isGrouped ? "llama"
                                                                                                  : "gpt";
}

/// "zoo:llama?layers=2" as family and parameters; those that are not said have their fallbacks.
Result<std::pair<const ZooFamily *, std::map<std::string, double>>> zooValuesOf(std::string_view spec)
{
    const Error unknown{
        ErrorCode::NotSupported, "only models of the zoo have sizes that a config says", {}, "model"};
    if (!isZooSpec(spec))
        return unknown;
    std::string_view rest = spec.substr(spec.find(':') + 1);
    const std::string_view name = rest.substr(0, rest.find('?'));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const auto family = std::find_if(zooFamilies().begin(), zooFamilies().end(),
        [name](const ZooFamily &known) { return known.name == name; });
    if (family == zooFamilies().end())
        return unknown;
    std::map<std::string, double> values;
    for (const ZooParameter &parameter : family->parameters)
        values[parameter.name] = parameter.fallback;
    while (!rest.empty()) {
        const std::string_view item = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(item.size() + 1, rest.size()));
        const std::size_t equals = item.find('=');
        double number = 0;
        if (equals == std::string_view::npos
            || std::from_chars(item.data() + equals + 1, item.data() + item.size(), number).ec != std::errc{})
            continue;
        values[std::string(item.substr(0, equals))] = number;
    }
    return std::pair(&*family, std::move(values));
}

/// Stages as trainers cut them where nothing else is said: as many layers in each, embedding and loss with
/// the first and the last. Empty without a pipeline, and where layers do not divide.
std::string layoutOf(const FrameworkConfig &config, const Model &model)
{
    if (const std::string own = config.text("layout"); !own.empty())
        return own;
    const std::int64_t stages = config.count("pipeline_parallel") * config.count("virtual_pipeline");
    const auto layers = static_cast<std::int64_t>(model.index->layers().scopes.size());
    return stages < 2 || layers % stages != 0
        ? std::string{}
        : evenLayout(std::vector<std::int64_t>(static_cast<std::size_t>(stages), layers / stages));
}

/// Of every stage's layers the first ones (`block`), or runs of some that are computed again together.
std::string recomputedLayers(const FrameworkConfig &config, const Model &model, const std::string &layout)
{
    const auto layers = static_cast<std::int64_t>(model.index->layers().scopes.size());
    const std::int64_t count = config.count("recompute_layers", 0);
    std::string rows;
    const auto add = [&rows](std::int64_t first, std::int64_t last, const char *how) {
        rows += "recompute layer:" + std::to_string(first)
            + (last > first ? "-" + std::to_string(last) : std::string{}) + how + "\n";
    };
    if (config.text("recompute_method") != "block") {
        for (std::int64_t layer = 0; layer < layers; layer += count)
            add(layer, std::min(layer + count, layers) - 1, "");
        return rows;
    }
    std::vector<std::int64_t> stages{layers};
    if (const auto parsed = parseLayout(layout)) {
        stages.clear();
        for (const LayoutStage &stage : *parsed)
            stages.push_back(stage.layers);
    }
    std::int64_t first = 0;
    for (const std::int64_t stage : stages) {
        if (stage > 0 && count > 0)
            add(first, first + std::min(count, stage) - 1, " per layer");
        first += stage;
    }
    return rows;
}

Error wrong(std::string message, const char *field)
{
    return {ErrorCode::InvalidInput, std::move(message), "", field};
}

struct Degrees {
    std::int64_t tp, pp, cp, ep, dp; ///< dp: with those that share experts.
};

Result<Degrees> degreesOf(const FrameworkConfig &config)
{
    const std::int64_t devices = config.count("devices");
    Degrees degrees{config.count("tensor_parallel"), config.count("pipeline_parallel"),
        config.count("context_parallel"), config.count("expert_parallel"), 1};
    if (devices < 1)
        return wrong("expected a number of devices from 1 on", "devices");
    for (const auto &[field, degree] :
        {std::pair("tensor_parallel", degrees.tp), std::pair("pipeline_parallel", degrees.pp),
            std::pair("context_parallel", degrees.cp), std::pair("expert_parallel", degrees.ep)})
        if (degree < 1 || degree > devices)
            return wrong("expected a degree from 1 to " + std::to_string(devices) + ", found "
                    + std::to_string(degree),
                field);
    const std::int64_t others = degrees.tp * degrees.pp * degrees.cp;
    degrees.dp = config.count("data_parallel", devices / others);
    if (degrees.dp < 1 || degrees.dp > devices || degrees.dp * others != devices)
        return wrong("its degrees make " + std::to_string(degrees.dp * others) + " devices of "
                + std::to_string(devices),
            "degrees");
    if (degrees.dp % degrees.ep != 0)
        return wrong(
            std::to_string(degrees.dp) + " replicas do not share experts over " + std::to_string(degrees.ep),
            "expert_parallel");
    return degrees;
}

} // namespace

std::string lettersOf(std::string_view name)
{
    std::string plain;
    for (const char c : name)
        if (isDigit(c) || (lowerCase(c) >= 'a' && lowerCase(c) <= 'z'))
            plain += lowerCase(c);
    return plain;
}

std::string evenLayout(const std::vector<std::int64_t> &layersOfStages)
{
    std::string layout = "E";
    for (std::size_t stage = 0; stage < layersOfStages.size(); ++stage) {
        layout += stage == 0 ? "" : "|";
        if (layersOfStages[stage] > 0)
            layout += "t*" + std::to_string(layersOfStages[stage]);
    }
    return layout + "L";
}

Result<std::string> zooSpecOf(const FrameworkConfig &config)
{
    if (!config.has("layers") || !config.has("hidden"))
        return publishedOf(config);
    const std::string family = familyOf(config);
    std::string spec = "zoo:" + family + "?";
    for (const std::span<const SizeName> names : sizeNamesOf(family, config.has("experts")))
        for (const SizeName &name : names) {
            const char *field = name.field;
            const bool isExperts = std::string_view(name.parameter) == "ffn" && !config.has(field);
            if (isExperts)
                field = "ffn"; // experts are as wide as other layers unless they say otherwise
            else if (std::string_view(name.parameter) == "dense_ffn"
                && (!config.has("expert_ffn") || (family == "llama" && !config.has("dense_layers"))))
                continue;
            if (name.isFlag ? config.flag(field).has_value() : config.number(field).has_value())
                append(spec, name.parameter,
                    name.isFlag ? (config.says(field) ? "1" : "0") : wordOf(config.find(field)->value));
        }
    if (family == "llama" && !config.flag("gated").value_or(!config.has("activation")))
        append(spec, "gated", "0");
    return spec;
}

Result<FrameworkConfig> sizesOfZoo(std::string_view spec)
{
    TRY(const auto zoo, zooValuesOf(spec));
    const auto &[known, values] = zoo;
    const std::string family = known->builtAs.empty() ? known->name : known->builtAs;
    if (family != "gpt" && family != "llama" && family != "deepseek")
        return Error{ErrorCode::NotSupported, "no framework's config has the sizes of zoo:" + known->name, "",
            "model"};
    const auto valueOf = [&values = values](const char *name) {
        const auto found = values.find(name);
        return found == values.end() ? 0.0 : found->second;
    };
    FrameworkConfig sizes;
    for (const std::span<const SizeName> names : sizeNamesOf(family, valueOf("experts") > 0))
        for (const SizeName &name : names) {
            const double value = valueOf(name.parameter);
            if (name.isFlag)
                sizes.derive(name.field, value != 0);
            else if (value != 0)
                sizes.derive(name.field, value);
        }
    if (family == "llama" && valueOf("kv_heads") == 0)
        sizes.derive("kv_heads", valueOf("heads"));
    const bool isGated = family == "deepseek" || valueOf("gated") != 0;
    sizes.derive("gated", isGated);
    if (family == "llama" && !isGated)
        sizes.derive("activation", std::string("squared_relu"));
    if (!known->builtAs.empty())
        sizes.derive("model", known->name);
    return sizes;
}

Result<std::string> recomputationOf(
    const FrameworkConfig &config, const Model &model, const std::string &layout)
{
    const std::string said = config.text("recompute");
    const auto layers = static_cast<std::int64_t>(model.index->layers().scopes.size());
    if (const std::int64_t every = config.count("recompute_every", 0); every > 0) {
        std::string rows;
        for (std::int64_t layer = 0; layer < layers; layer += every)
            rows += "recompute layer:" + std::to_string(layer) + " per layer\n";
        return rows;
    }
    const bool isInBlocks = config.text("recompute_method") == "block";
    if (said == "full" && config.count("recompute_layers", 0) > (isInBlocks ? 0 : 1))
        return recomputedLayers(config, model, layout);
    return recomputeRow(model, said.empty() ? "none" : said);
}

Result<ConfigPlan> planOfConfig(const FrameworkConfig &config, const Model &model)
{
    TRY(const Degrees degrees, degreesOf(config));
    const std::int64_t batch = config.count("global_batch");
    const std::int64_t microBatches = config.count(
        "micro_batches", batch / degrees.dp / std::max<std::int64_t>(1, config.count("micro_batch")));
    const auto option = [](const char *name, std::int64_t value) {
        return std::string(",") + name + "=" + std::to_string(value);
    };
    const std::string layout = layoutOf(config, model);
    const std::int64_t parts = config.count("shard_parts", 0); // replicas that share, of more
    const std::string schedule = config.text("schedule");
    std::string modules;
    if (config.text("recompute").empty())
        for (const std::string &module : config.words("recompute_modules"))
            modules += (modules.empty() ? "" : "+") + module;
    // Parts of a sequence whose devices exchange heads for attentions.
    const std::int64_t heads = config.count("ulysses");
    if (heads < 1 || degrees.cp % heads != 0)
        return wrong(std::to_string(degrees.cp) + " parts of a sequence are not groups of "
                + std::to_string(heads) + " that exchange heads",
            "ulysses");
    const std::int64_t rings = degrees.cp / heads;
    // Ranks of a pipeline lie far apart in trainers, and replicas of a stage side by side.
    const bool isOutermost = degrees.pp > 1 && degrees.pp < degrees.dp * degrees.cp * degrees.pp
        && !config.says("pipeline_inside");
    ConfigPlan plan;
    // Devices that share experts are replicas of all else.
    plan.gallery = "3d:dp=" + std::to_string(degrees.dp / degrees.ep) + option("tp", degrees.tp)
        + option("pp", degrees.pp) + (degrees.ep > 1 ? option("ep", degrees.ep) : "")
        + (rings > 1 ? option("cp", rings) + option("zigzag", 1) : "")
        + (heads > 1 ? option("ulysses", heads) : "") + (isOutermost ? option("pipeline-outermost", 1) : "")
        + option("zero", parts > 0 ? 0 : config.count("zero", 0))
        + (degrees.tp > 1 && config.flag("sequence_parallel").value_or(true) ? option("sequence", 1) : "")
        + (layout.empty() ? option("interleave", config.count("virtual_pipeline")) : ",layout=" + layout)
        + (modules.empty() ? "" : ",recompute=" + modules)
        + (schedule.empty() || degrees.pp == 1 ? "" : ",schedule=" + schedule)
        + option("micro-batches", microBatches);
    const std::string precision = config.text("precision");
    plan.rows = "precision all : " + (precision.empty() ? "bf16" : precision)
        + (config.says("reduce_in_bf16") ? " reduction=bf16" : "") + "\n";
    TRY(const std::string recomputation, recomputationOf(config, model, layout));
    plan.rows += recomputation + (recomputation.empty() || recomputation.ends_with('\n') ? "" : "\n");
    if (parts > 0 && config.count("zero", 0) > 0)
        plan.rows +=
            "zero" + std::to_string(config.count("zero", 0)) + " weight:* by " + std::to_string(parts) + "\n";
    if (const std::int64_t offloaded = config.count("offloaded_layers", 0); offloaded > 0)
        plan.rows += "offload layer:0-" + std::to_string(offloaded - 1) + " : activations\n";
    if (config.says("offload_states"))
        plan.rows += "offload all : states\n";
    if (degrees.tp > 1 && config.says("overlap_tensor_parallel"))
        plan.rows += "overlap tensor\n";
    return plan;
}

Result<PlanRequest> requestOfConfig(const FrameworkConfig &config, const ModelSnapshot &model)
{
    PlanRequest request;
    request.model = model;
    if (!request.model) {
        TRY(const std::string zoo, zooSpecOf(config));
        TRY(request.model, openModel({zoo, {}, {}}, {}, KeepContent::No));
    }
    TRY(ConfigPlan plan, planOfConfig(config, *request.model));
    request.gallery = std::move(plan.gallery);
    request.table = TableDocument(plan.rows);
    const auto devices = static_cast<std::int32_t>(config.count("devices"));
    const std::string cluster = config.text("cluster");
    request.target = {
        joinFramework(
            cluster.find(':') == std::string::npos ? cluster + ":" + std::to_string(devices) : cluster,
            config.text("framework")),
        {}, devices};
    return request;
}

} // namespace planloom
