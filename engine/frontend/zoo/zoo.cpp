#include "engine/frontend/zoo/zoo.h"

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/passes/projections/part_projections.h"
#include "engine/frontend/passes/scopes/scopes.h"
#include "engine/frontend/rooms.h"
#include "engine/frontend/zoo/zoo_parts.h"
#include "engine/frontend/zoo/zoo_published.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace planloom {

namespace {

constexpr std::string_view kPrefix = "zoo:";

// Upper limits keep every element count and byte count below 2^62.
constexpr double kMostBatch = 65536;
constexpr double kMostLength = 4194304;
constexpr double kMostTokens = 8589934592; // 2^33: times a vocabulary, times 4 bytes
constexpr double kMostScores = 576460752303423488; // 2^59: times 4 bytes
constexpr double kMostHidden = 1048576;
constexpr double kMostHeads = 1024;
constexpr double kMostLayers = 1000;
constexpr double kMostVocabulary = 16777216;

ZooParameter integer(std::string name, double fallback, double least, double most, std::string meaning)
{
    return {std::move(name), fallback, least, most, true, std::move(meaning)};
}

/// Of the inputs: a knob of the design.
ZooParameter inputSize(std::string name, double fallback, double least, double most, std::string meaning)
{
    ZooParameter parameter = integer(std::move(name), fallback, least, most, std::move(meaning));
    parameter.isInputSize = true;
    return parameter;
}

ZooParameter layers(double fallback)
{
    return integer("layers", fallback, 1, kMostLayers, "number of layers");
}
ZooParameter hidden(double fallback)
{
    return integer("hidden", fallback, 1, kMostHidden, "width of the model");
}
ZooParameter heads(double fallback)
{
    return integer("heads", fallback, 1, kMostHeads, "attention heads");
}
ZooParameter batch(double fallback)
{
    return inputSize("batch", fallback, 1, kMostBatch, "samples in a mini-batch");
}

ZooParameter length(double fallback)
{
    return inputSize("seq", fallback, 2, kMostLength, "tokens in a sample");
}

ZooParameter vocabulary(double fallback)
{
    return integer("vocab", fallback, 2, kMostVocabulary, "size of the vocabulary");
}

ZooParameter inner(double fallback, std::string meaning)
{
    return integer("ffn", fallback, 0, kMostHidden * 4, std::move(meaning));
}

ZooParameter tied(double fallback)
{
    return integer("tied", fallback, 0, 1, "1: the head's weight is the table of embeddings");
}

ZooParameter dropout()
{
    return {"dropout", 0, 0, 0.99, false, "ratio of all dropouts; 0 leaves them out"};
}

ZooParameter image(double fallback)
{
    return inputSize("image", fallback, 8, 8192, "height and width of an image");
}
ZooParameter volume(double fallback)
{
    return integer("volume", fallback, 4, 1024, "depth, height and width of a volume");
}
ZooParameter classes()
{
    return integer("classes", 1000, 2, kMostVocabulary, "number of classes");
}

const char *const kFourTimes = "width of the feed-forward layer; 0 means 4 x hidden";

std::vector<ZooFamily> languageModels()
{
    return {{"gpt", "GPT-2/GPT-3 language model, embeddings tied",
                {layers(12), hidden(768), heads(12), length(1024), batch(8), vocabulary(50257),
                    inner(0, kFourTimes), dropout(), tied(1),
                    integer("fused", 1, 0, 1,
                        "1: queries, keys and values have one weight, as in GPT-2; 0: three")}},
        {"llama",
            "LLaMA language model: RMS norm, rotary positions, grouped queries, gated feed-forward or "
            "mixtures of "
            "such experts (Mixtral, OLMoE)",
            {layers(32), hidden(4096), heads(32),
                integer("kv_heads", 0, 0, kMostHeads, "heads of keys and values; 0 means as many as heads"),
                integer("head_dim", 0, 0, 4096, "width of a head; 0 means hidden / heads"),
                integer("ffn", 11008, 1, kMostHidden * 4, "width of the feed-forward layer"), length(2048),
                batch(1), vocabulary(32000), {"rope_base", 10000, 2, 1e9, false, "base of the rotary angles"},
                integer("experts", 0, 0, 4096, "experts of each layer, which data choose; 0: no mixtures"),
                integer("top_k", 2, 1, 16, "experts a token is sent to"),
                {"capacity", 1, 0.1, 16, false, "room of an expert, in its even share of the tokens"},
                integer("dense", 0, 0, kMostLayers, "first layers without mixtures, as in DeepSeek-V3"),
                integer("dense_ffn", 0, 0, kMostHidden * 4,
                    "width of feed-forward layers without mixtures; 0 means ffn"),
                integer("mtp", 0, 0, 8, "modules that predict one token further each, as in DeepSeek-V3"),
                integer("qk_norm", 0, 0, 2,
                    "1: queries and keys are normalised, as in OLMoE; 2: each head of them, as in Qwen3"),
                integer("window", 0, 0, kMostLength,
                    "tokens that a token sees, itself with them, as in Mistral; 0: all before it"),
                integer("full_every", 0, 0, kMostLayers,
                    "each such layer sees all, whatever the window, as in gpt-oss and Gemma; 0: none does"),
                integer("gated", 1, 0, 1,
                    "0: feed-forward layers have a squared ReLU and no gate, as in Nemotron-4"),
                tied(0)}},
        {"deepseek",
            "DeepSeek-V3 and V2: latent attention, mixtures of experts beside shared ones, chosen within "
            "groups",
            {layers(61), hidden(7168), heads(128),
                integer("q_lora", 1536, 0, kMostHidden, "width that queries are made from; 0: the model's"),
                integer("kv_lora", 512, 1, kMostHidden, "width that keys and values are made from"),
                integer("nope", 128, 1, 4096, "width of a head's queries and keys that has no position"),
                integer("rope", 64, 2, 4096, "width of them that turns with the position"),
                integer("v_head", 128, 1, 4096, "width of a head's values"),
                integer("ffn", 2048, 1, kMostHidden * 4, "width of an expert"), length(4096), batch(1),
                vocabulary(129280), {"rope_base", 10000, 2, 1e9, false, "base of the rotary angles"},
                integer("experts", 256, 1, 4096, "experts of each layer, which data choose"),
                integer("top_k", 8, 1, 16, "experts a token is sent to"),
                {"capacity", 1, 0.1, 16, false, "room of an expert, in its even share of the tokens"},
                integer("shared", 1, 0, 16, "experts that all tokens are sent to"),
                integer("dense", 3, 0, kMostLayers, "first layers without mixtures"),
                integer("dense_ffn", 18432, 0, kMostHidden * 4,
                    "width of feed-forward layers without mixtures; 0 means ffn"),
                integer("sigmoid", 1, 0, 1,
                    "1: experts are chosen by the sigmoid of their scores, within groups; "
                    "0: by a softmax"),
                integer("groups", 8, 1, 256, "groups of experts"),
                integer("top_groups", 4, 1, 256, "groups that a token's experts are chosen from"),
                {"routed_scale", 2.5, 1e-3, 1000, false, "factor of what chosen experts make"},
                integer("mtp", 0, 0, 8, "modules that predict one token further each")}},
        {"t5", "T5 encoder-decoder, embeddings tied, relative position bias",
            {integer("layers", 24, 1, kMostLayers, "layers of the encoder, and of the decoder"), hidden(1024),
                heads(16), integer("d_kv", 64, 1, 4096, "width of a head"),
                integer("ffn", 4096, 1, kMostHidden * 4, "width of the feed-forward layer"),
                inputSize("src", 512, 2, kMostLength, "tokens in a source"),
                inputSize("tgt", 512, 2, kMostLength, "tokens in a target"), batch(4), vocabulary(32128),
                integer("buckets", 32, 4, 1024, "buckets of relative positions"), dropout()}}};
}

std::vector<ZooFamily> otherModels()
{
    return {
        {"swin", "Swin Transformer image classifier",
            {integer("layers", 18, 1, kMostLayers, "blocks of the third stage; the others have 2"),
                integer("hidden", 192, 1, 65536, "width of the first stage; doubles from stage to stage"),
                integer("heads", 6, 1, 128, "heads of the first stage; double from stage to stage"),
                integer("window", 7, 1, 64, "height and width of a window"), image(224),
                integer("patch", 4, 1, 64, "height and width of a patch"), classes(), batch(8), dropout()}},
        {"evoformer", "AlphaFold 2 Evoformer stack",
            {integer("layers", 48, 1, kMostLayers, "number of blocks"),
                integer("msa", 256, 1, 65536, "width of the MSA"),
                integer("pair", 128, 1, 65536, "width of the pair representation"),
                integer("single", 384, 1, 65536, "width of the single representation"),
                inputSize("seqs", 128, 1, 16384, "sequences of the MSA"),
                inputSize("residues", 256, 2, 8192, "residues"), batch(1),
                integer("heads", 8, 1, kMostHeads, "heads of MSA attention"),
                integer("pair_heads", 4, 1, kMostHeads, "heads of triangle attention"),
                integer("head_width", 32, 1, 4096, "width of a head, and of the outer product's factors"),
                integer("triangle", 128, 1, 65536, "width of triangle multiplication"),
                integer("recycles", 0, 0, 16, "passes without gradients before the last one"), dropout()}},
        {"resnet", "ResNet image classifier, batch norm in training mode",
            {integer("depth", 50, 18, 152, "18, 34, 50, 101 or 152"),
                integer("width", 64, 1, 8192, "channels of the first convolution"), image(224), classes(),
                batch(32)}},
        {"vgg", "VGG image classifier",
            {integer("depth", 16, 11, 19, "11, 13, 16 or 19"),
                integer("width", 64, 1, 8192, "channels of the first stage"),
                integer("head", 4096, 1, kMostHidden, "width of the hidden linear layers"), image(224),
                classes(), batch(32), dropout()}},
        {"unet3d", "3D U-Net: a class for every voxel of a volume, batch norm in training mode",
            {integer("levels", 4, 2, 8, "resolutions, each half of the one above"),
                integer(
                    "width", 32, 1, 4096, "channels of the first convolution; double from level to level"),
                volume(128), integer("channels", 4, 1, 1024, "channels of a volume"),
                integer("classes", 4, 2, 65536, "classes of a voxel"), batch(2)}},
        {"cosmoflow", "CosmoFlow: parameters of a universe from its density",
            {integer("stages", 5, 1, 10, "convolutions, each pooled to half the size"),
                integer(
                    "width", 32, 1, 4096, "channels of the first convolution; double from stage to stage"),
                volume(128), integer("channels", 4, 1, 1024, "channels of a volume"),
                integer("head", 128, 2, kMostHidden, "width of the first hidden linear layer"),
                integer("parameters", 4, 1, 65536, "parameters to predict"), batch(16), dropout()}},
        {"moe", "GPT with mixtures of experts, top-k gating, experts of fixed capacity (GShard)",
            {layers(12), hidden(768), heads(12), length(1024), batch(8), vocabulary(50257),
                inner(0, kFourTimes), integer("experts", 8, 2, 4096, "experts of a mixture"),
                integer("top_k", 2, 1, 16, "experts a token is sent to"),
                integer("every", 2, 1, kMostLayers,
                    "each such layer has a mixture in place of its feed-forward layer"),
                {"capacity", 1.25, 0.1, 16, false, "room of an expert, in its even share of the tokens"},
                dropout()}},
        {"mlp", "Multi-layer perceptron classifier",
            {integer("layers", 4, 1, kMostLayers, "number of linear layers"), hidden(1024),
                integer("input", 784, 1, kMostHidden, "width of the input"),
                integer("classes", 10, 2, kMostVocabulary, "number of classes"), batch(64), dropout()}},
    };
}

std::vector<ZooFamily> allFamilies()
{
    std::vector<ZooFamily> families = languageModels();
    for (ZooFamily &family : otherModels())
        families.push_back(std::move(family));
    for (ZooFamily &family : publishedModels(families))
        families.push_back(std::move(family));
    return families;
}

using Build = Result<Graph> (*)(const ZooValues &);
constexpr std::pair<std::string_view, Build> kBuilders[] = {{"gpt", buildGpt}, {"llama", buildLlama},
    {"deepseek", buildDeepSeek}, {"t5", buildT5}, {"swin", buildSwin}, {"evoformer", buildEvoformer},
    {"resnet", buildResNet}, {"vgg", buildVgg}, {"unet3d", buildUnet3d}, {"cosmoflow", buildCosmoFlow},
    {"moe", buildMixture}, {"mlp", buildMlp}};

template<typename Items> std::string namesOf(const Items &items)
{
    std::string text;
    for (const auto &item : items)
        text += (text.empty() ? "" : ", ") + item.name;
    return text;
}

/// A number without a trailing ".000000".
std::string withoutZeros(double value)
{
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (!text.empty() && text.back() == '.')
        text.pop_back();
    return text;
}

Result<double> parseValue(const ZooParameter &parameter, std::string_view text, const ZooValues &values)
{
    const std::string copy(text);
    char *end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    const bool number = !copy.empty() && end == copy.c_str() + copy.size() && std::isfinite(value);
    const bool fits = number && value >= parameter.least && value <= parameter.most
        && (!parameter.integral || value == std::floor(value));
    if (fits)
        return value;
    Error error = values.wrong(parameter.name,
        parameter.name + " must be " + (parameter.integral ? "a whole number" : "a number") + " from "
            + withoutZeros(parameter.least) + " to " + withoutZeros(parameter.most) + ", not \"" + copy
            + "\".");
    error.advice = parameter.name + ": " + parameter.meaning + ".";
    return error;
}

Result<ZooValues> parseValues(const ZooFamily &family, std::string_view query)
{
    ZooValues values(family.name);
    for (const ZooParameter &parameter : family.parameters)
        values.set(parameter.name, parameter.fallback);
    while (!query.empty()) {
        const std::size_t end = std::min(query.find('&'), query.size());
        const std::string_view item = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        if (item.empty())
            continue;
        const std::size_t equals = item.find('=');
        const std::string_view name = item.substr(0, equals);
        const ZooParameter *known = nullptr;
        for (const ZooParameter &parameter : family.parameters) {
            if (parameter.name == name)
                known = &parameter;
        }
        if (known == nullptr) {
            Error error = values.wrong(
                name, "The model " + family.name + " has no parameter \"" + std::string(name) + "\".");
            error.advice = "It has: " + namesOf(family.parameters) + ".";
            return error;
        }
        const std::string_view text =
            equals == std::string_view::npos ? std::string_view{} : item.substr(equals + 1);
        TRY(const double value, parseValue(*known, text, values));
        values.set(known->name, value);
    }
    return values;
}

} // namespace

const std::vector<ZooFamily> &zooFamilies()
{
    static const std::vector<ZooFamily> families = allFamilies();
    return families;
}

namespace {

/// Lets `sizes` go before what the values are, and says what may be chosen so.
Result<std::vector<InputDimension>> chooseSizes(
    const ZooFamily &family, const std::map<std::string, std::int64_t> &sizes, ZooValues &values)
{
    std::vector<InputDimension> dimensions;
    for (const ZooParameter &parameter : family.parameters) {
        if (!parameter.isInputSize)
            continue;
        InputDimension dimension;
        dimension.name = parameter.name;
        dimension.least = static_cast<std::int64_t>(parameter.least);
        dimension.most = static_cast<std::int64_t>(parameter.most);
        dimension.suggested = static_cast<std::int64_t>(parameter.fallback);
        dimension.places = {parameter.meaning};
        dimensions.push_back(std::move(dimension));
    }
    for (const auto &[name, size] : sizes) {
        const InputDimension *known = findDimension(dimensions, name);
        if (known == nullptr) {
            Error error =
                values.wrong(name, "the inputs of " + family.name + " have no size '" + name + "' to choose");
            error.advice = "their sizes are " + namesText(dimensions);
            return error;
        }
        if (size < known->least || size > known->most)
            return values.wrong(name,
                "the size " + std::to_string(size) + " of '" + name + "' is not in " + rangeText(*known));
        values.set(name, static_cast<double>(size));
    }
    for (InputDimension &dimension : dimensions)
        dimension.size = values.integer(dimension.name);
    // Tokens of a batch, and their scores: no count of elements or bytes goes beyond 2^62.
    if (findDimension(dimensions, "seq") != nullptr) {
        const double tokens = values.real("batch") * values.real("seq");
        if (tokens > kMostTokens || tokens * values.real("seq") * values.real("heads") > kMostScores)
            return values.wrong("seq",
                "a batch of " + std::to_string(values.integer("batch")) + " sequences of "
                    + std::to_string(values.integer("seq"))
                    + " tokens is more than Planloom counts; use a smaller batch or shorter sequences");
    }
    return dimensions;
}

} // namespace

bool isZooSpec(std::string_view spec)
{
    return spec.substr(0, kPrefix.size()) == kPrefix;
}

Result<Graph> buildZooModel(
    std::string_view spec, const std::map<std::string, std::int64_t> &sizes, const Capacities &capacities)
{
    const std::string_view rest = isZooSpec(spec) ? spec.substr(kPrefix.size()) : spec;
    const std::size_t mark = std::min(rest.find('?'), rest.size());
    const std::string_view name = rest.substr(0, mark);
    const std::string_view query = mark < rest.size() ? rest.substr(mark + 1) : std::string_view{};
    const auto family = std::find_if(zooFamilies().begin(), zooFamilies().end(),
        [name](const ZooFamily &known) { return known.name == name; });
    if (!isZooSpec(spec) || family == zooFamilies().end()) {
        return Error{ErrorCode::InvalidInput, "There is no model \"" + std::string(name) + "\" in the zoo.",
            "A zoo model is written zoo:NAME?parameter=value&..., NAME one of " + namesOf(zooFamilies())
                + ".",
            std::string(spec)};
    }
    const std::string_view built = family->builtAs.empty() ? name : family->builtAs;
    const auto builder = std::find_if(std::begin(kBuilders), std::end(kBuilders),
        [built](const auto &known) { return known.first == built; });
    assert(builder != std::end(kBuilders));
    TRY(ZooValues values, parseValues(*family, query));
    TRY(auto dimensions, chooseSizes(*family, sizes, values));
    values.setCapacities(capacities);
    TRY(Graph graph, builder->second(values));
    TRY_VOID(checkCapacities(graph, capacities));
    const bool hasCapacity = std::any_of(family->parameters.begin(), family->parameters.end(),
        [](const ZooParameter &parameter) { return parameter.name == "capacity"; });
    noteRooms(graph, capacities, hasCapacity ? Capacity{.factor = values.real("capacity")} : Capacity{});
    graph.dimensions = std::move(dimensions);
    if (partProjections(graph) > 0) {
        annotateOperators(graph);
        findCopies(graph);
    }
    graph.name = std::string(spec);
    return graph;
}

Result<Graph> buildMlp(const ZooValues &values)
{
    const std::int64_t batch = values.integer("batch");
    const std::int64_t layers = values.integer("layers");
    ZooBuilder b("mlp", values.real("dropout"));
    TensorId x = b.input("x", {DataType::Float32, {batch, values.integer("input")}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch}});
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const auto inside = b.scope("layers." + std::to_string(layer));
        const bool last = layer + 1 == layers;
        x = b.linear(x, last ? values.integer("classes") : values.integer("hidden"), "linear");
        if (!last)
            x = b.dropout(b.one(OperatorKind::Relu, {x}, {}, "relu"), "dropout");
    }
    const TensorId loss = b.meanLoss(x, labels);
    return b.finish({loss}, loss);
}

} // namespace planloom
