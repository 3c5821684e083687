// LLaMA (arXiv:2302.13971), dense or with mixtures of experts (Mixtral, arXiv:2401.04088; OLMoE,
// arXiv:2409.02060), with squared ReLU (Nemotron-4, arXiv:2402.16819), and DeepSeek-V2 and V3
// (arXiv:2405.04434, arXiv:2412.19437).
#include "engine/frontend/zoo/zoo_parts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace planloom {

namespace {

/// Of the loss: what modules that predict further tokens have together (lambda of DeepSeek-V3, section 4.2).
constexpr double kMtpShare = 0.3;

/// Keys and values from one narrow product, and perhaps queries from another (multi-head latent attention,
/// DeepSeek-V2, arXiv:2405.04434, section 2.1). A head's queries and keys have a part that turns with the
/// position, which all heads' keys share, and one that does not.
struct LatentForm {
    std::int64_t queryRank = 0; ///< 0: queries are one product.
    std::int64_t rank = 0;
    std::int64_t plainWidth = 0; ///< Of a head's queries and keys: what does not turn.
    std::int64_t valueWidth = 0;
};

/// Experts are chosen by the sigmoid of each one's score, among those of the best groups of experts, and
/// share a token by the chosen scores over their sum (DeepSeek-V3, arXiv:2412.19437, section 2.1.2).
struct SigmoidRouting {
    std::int64_t groups = 1;
    std::int64_t chosenGroups = 1; ///< By the sum of the two best scores in each.
    double scale = 1; ///< Of what experts make.
};

/// How queries and keys are normalised before they turn.
enum class QueryNorm : std::uint8_t { None, Whole, Heads };

/// What LLaMA's layers are made of.
struct LlamaForm {
    std::int64_t heads = 0;
    std::int64_t keyHeads = 0;
    std::int64_t inner = 0;
    std::int64_t experts = 0; ///< 0: a feed-forward layer for all tokens.
    std::int64_t choices = 0; ///< Experts a token is sent to.
    Capacity capacity{}; ///< Of an expert.
    Capacities capacities{}; ///< By operator, before it.
    std::int64_t headWidth = 0;
    QueryNorm norm = QueryNorm::None;
    std::int64_t window = 0; ///< Tokens that a token sees; 0: all before it.
    std::int64_t fullEvery = 0; ///< Each such layer sees all before it; 0: none does.
    bool isGated = true; ///< False: squared ReLU in place of a gate.
    bool isTied = false; ///< The table of embeddings is the head's weight.
    std::int64_t rotaryWidth = 0; ///< Of a head, how much turns with the position.
    std::optional<LatentForm> latent{};
    std::int64_t shared = 0; ///< Experts that every token goes to.
    std::optional<SigmoidRouting> sigmoid{}; ///< Nothing: chances are a softmax.
};

TensorId llamaAttention(
    ZooBuilder &b, TensorId x, TensorId cos, TensorId sin, const LlamaForm &form, std::int64_t window)
{
    const auto inside = b.scope("self_attn");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const auto turned = [&](TensorId all, std::int64_t heads, const std::string &name,
                            std::string_view norm) {
        if (form.norm == QueryNorm::Whole)
            all = b.rmsNorm(all, norm);
        TensorId apart = b.splitHeads(all, heads, name);
        if (form.norm == QueryNorm::Heads)
            apart = b.rmsNorm(apart, norm);
        return b.one(
            OperatorKind::Rotary, {apart, cos, sin}, attributesOf({{"interleaved", 0}}), name + ".rotary");
    };
    const TensorId allQueries = b.linear(x, form.heads * form.headWidth, "q_proj", false);
    const TensorId allKeys = b.linear(x, form.keyHeads * form.headWidth, "k_proj", false);
    const TensorId allValues = b.linear(x, form.keyHeads * form.headWidth, "v_proj", false);
    const TensorId query = turned(allQueries, form.heads, "query", "q_norm");
    const TensorId key = turned(allKeys, form.keyHeads, "key", "k_norm");
    const TensorId value = b.splitHeads(allValues, form.keyHeads, "value");
    const ZooAttention attention{.scale = 1 / std::sqrt(static_cast<double>(form.headWidth)),
        .causal = true,
        .window = window < in[1] ? window : 0};
    const TensorId context = b.mergeHeads(b.attention(query, key, value, attention), "context");
    return b.linear(context, in[2], "o_proj", false);
}

/// Parts of `x` along its last dimension.
std::vector<TensorId> partsOf(
    ZooBuilder &b, TensorId x, const std::vector<std::int64_t> &sizes, std::string_view name)
{
    const auto axis = static_cast<std::int64_t>(b.shape(x).size()) - 1;
    return b.add(OperatorKind::Split, {x}, attributesOf({{"axis", axis}, {"sizes", sizes}}), name);
}

TensorId latentAttention(ZooBuilder &b, TensorId x, TensorId cos, TensorId sin, const LlamaForm &form)
{
    const auto inside = b.scope("self_attn");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const LatentForm &latent = *form.latent;
    const std::int64_t width = latent.plainWidth + form.rotaryWidth;
    const auto rotate = [&](TensorId t, std::string_view name) {
        return b.one(OperatorKind::Rotary, {t, cos, sin}, attributesOf({{"interleaved", 0}}), name);
    };
    const auto joined = [&](TensorId plain, TensorId turned, std::string_view name) {
        return b.one(OperatorKind::Concat, {plain, turned}, attributesOf({{"axis", 3}}), name);
    };
    const TensorId narrow = latent.queryRank > 0
        ? b.rmsNorm(b.linear(x, latent.queryRank, "q_a_proj", false), "q_a_layernorm")
        : x;
    const TensorId queries = b.splitHeads(
        b.linear(narrow, form.heads * width, latent.queryRank > 0 ? "q_b_proj" : "q_proj", false), form.heads,
        "query");
    const std::vector<TensorId> query =
        partsOf(b, queries, {latent.plainWidth, form.rotaryWidth}, "query.parts");
    const std::vector<TensorId> compressed =
        partsOf(b, b.linear(x, latent.rank + form.rotaryWidth, "kv_a_proj_with_mqa", false),
            {latent.rank, form.rotaryWidth}, "kv.parts");
    const TensorId wide = b.linear(b.rmsNorm(compressed[0], "kv_a_layernorm"),
        form.heads * (latent.plainWidth + latent.valueWidth), "kv_b_proj", false);
    const std::vector<TensorId> keyAndValue = partsOf(b, b.splitHeads(wide, form.heads, "key_value"),
        {latent.plainWidth, latent.valueWidth}, "key_value.parts");
    const TensorId turned = rotate(b.splitHeads(compressed[1], 1, "key_rotary"), "key.rotary");
    const TensorId ofAllHeads = b.one(OperatorKind::Expand, {turned}, {}, "key.rotary.of_heads",
        {{DataType::Float32, {in[0], form.heads, in[1], form.rotaryWidth}}});
    const ZooAttention attention{.scale = 1 / std::sqrt(static_cast<double>(width)), .causal = true};
    const TensorId context = b.attention(joined(query[0], rotate(query[1], "query.rotary"), "query.joined"),
        joined(keyAndValue[0], ofAllHeads, "key.joined"), keyAndValue[1], attention);
    return b.linear(b.mergeHeads(context, "context"), in[2], "o_proj", false);
}

TensorId llamaMlp(
    ZooBuilder &b, TensorId x, std::int64_t inner, bool isGated, const std::string &scope = "mlp")
{
    const auto inside = b.scope(scope);
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    if (!isGated) { // Primer, arXiv:2109.08668, section 4; Nemotron-4, arXiv:2402.16819
        const TensorId positive =
            b.one(OperatorKind::Relu, {b.linear(x, inner, "up_proj", false)}, {}, "act");
        return b.linear(
            b.one(OperatorKind::Mul, {positive, positive}, {}, "squared"), hidden, "down_proj", false);
    }
    const TensorId gate = b.one(OperatorKind::Silu, {b.linear(x, inner, "gate_proj", false)}, {}, "act");
    const TensorId up = b.linear(x, inner, "up_proj", false);
    return b.linear(b.one(OperatorKind::Mul, {gate, up}, {}, "gated"), hidden, "down_proj", false);
}

struct Routed {
    TensorId shares{}; ///< [t k]: of each expert's result.
    TensorId experts{}; ///< [t k]: numbers.
};

/// The experts that tokens pick by `scores` [t e].
Routed routed(ZooBuilder &b, TensorId scores, const LlamaForm &form)
{
    const auto best = [&](TensorId of, std::int64_t k, std::string_view name) {
        const auto axis = static_cast<std::int64_t>(b.shape(of).size()) - 1;
        return b.add(OperatorKind::TopK, {of},
            attributesOf({{"axis", axis}, {"k", k}, {"largest", 1}, {"sorted", 1}}), name);
    };
    const Shape in = b.shape(scores);
    if (!form.sigmoid || in.size() != 2) {
        const auto chosen = best(b.softmax(scores, "softmax"), form.choices, "top_k");
        return {chosen[0], chosen[1]};
    }
    const auto sumOf = [&](TensorId of, std::int64_t axis, bool keeps, std::string_view name) {
        return b.one(OperatorKind::ReduceSum, {of},
            attributesOf({{"axes", std::vector<std::int64_t>{axis}}, {"keepdims", keeps ? 1 : 0}}), name);
    };
    const TensorId chances = b.one(OperatorKind::Sigmoid, {scores}, {}, "sigmoid");
    TensorId among = chances;
    if (const auto [groups, chosenGroups, scale] = *form.sigmoid; chosenGroups < groups) {
        const std::int64_t size = form.experts / groups;
        const TensorId apart = b.reshape(chances, {in[0], groups, size}, "groups");
        const TensorId worth =
            sumOf(best(apart, std::min<std::int64_t>(2, size), "groups.best")[0], 2, false, "groups.worth");
        const std::vector<std::int64_t> from{0, chosenGroups - 1};
        const TensorId least = b.one(OperatorKind::Slice, {best(worth, chosenGroups, "groups.top_k")[0]},
            attributesOf({{"starts", from}, {"steps", std::vector<std::int64_t>{1, 1}}}), "groups.least",
            {{DataType::Float32, {in[0], 1}}});
        const TensorId isChosen = b.one(OperatorKind::Cast,
            {b.one(OperatorKind::GreaterOrEqual, {worth, least}, {}, "groups.chosen")}, {}, "groups.mask",
            {{DataType::Float32, {in[0], groups}}});
        among = b.reshape(
            b.one(OperatorKind::Mul, {apart, b.reshape(isChosen, {in[0], groups, 1}, "groups.column")}, {},
                "groups.kept"),
            in, "kept");
    }
    const auto chosen = best(among, form.choices, "top_k");
    const TensorId whole = sumOf(chosen[0], 1, true, "chosen.sum");
    return {b.scaled(b.one(OperatorKind::Div, {chosen[0], whole}, {}, "normalized"), form.sigmoid->scale,
                "scaled"),
        chosen[1]};
}

/// Gated feed-forward layers of which each token picks the best few, as in Mixtral and OLMoE. Data route:
/// experts gather their tokens, at most as many of a sample as they have room for, and their rows go back to
/// the tokens.
///
///     choice [n] = [t k]        experts [e 1]
///          Equal [e n] -> NonZero -> places [e c]
///     x [t h] -- rows of places / k --> [e c h] -> gate | up -> down -> [e c h] -- back to places --> [n h]
///                                                                       times shares, sum over k --> [t h]
TensorId llamaMixture(ZooBuilder &b, TensorId x, const LlamaForm &form, const std::string &layer)
{
    const auto inside = b.scope("mlp");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const std::int64_t tokens = in[0] * in[1];
    const std::int64_t rows = tokens * form.choices;
    const std::int64_t hidden = in[2];
    const TensorId flat = b.reshape(x, {tokens, hidden}, "tokens");
    const auto [shares, experts] = routed(b, b.linear(flat, form.experts, "gate", false), form);
    const auto all = b.scope("experts");
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(form.experts));
    std::iota(numbers.begin(), numbers.end(), 0);
    const TensorId mask = b.one(OperatorKind::Equal,
        {b.reshape(experts, {1, rows}, "choice"),
            b.constant("numbers", integerData({form.experts, 1}, numbers))},
        {}, "chosen");
    const std::int64_t most = in[1]; // a token picks an expert once
    const double expected = static_cast<double>(most * form.choices) / static_cast<double>(form.experts);
    const Capacity capacity = capacityOf(form.capacities, layer + ".mlp.experts.places", form.capacity);
    const std::int64_t room = in[0] * roomOf(capacity, expected, most);
    const TensorId found = b.one(OperatorKind::NonZero, {mask},
        attributesOf({{"kept", 1}, {"group_axis", 1}, {"groups", in[0]}, {"capacity", room}}), "places");
    const TensorId places = b.reshape(found, {form.experts, room}, "list");
    const TensorId sources = b.one(
        OperatorKind::Div, {places, b.constant("choices", integerData({}, {form.choices}))}, {}, "sources");
    const TensorId mine = b.one(OperatorKind::Gather, {flat, sources},
        attributesOf({{"axis", 0}, {"groups", in[0]}, {"grouped", 1}}), "rows");
    const auto product = [&](TensorId y, std::int64_t out, std::int64_t k, const std::string &name) {
        return b.one(OperatorKind::Einsum, {y, b.weight(name + ".weight", {form.experts, out, k})},
            attributesOf({{"equation", "ech,efh->ecf"}}), name);
    };
    const std::vector<TensorId> parts =
        b.add(OperatorKind::Split, {product(mine, 2 * form.inner, hidden, "gate_up_proj")},
            attributesOf({{"axis", 2}, {"sizes", std::vector<std::int64_t>(2, form.inner)}}), "gate_up");
    const TensorId gate = b.one(OperatorKind::Silu, {parts[0]}, {}, "act");
    const TensorId made =
        product(b.one(OperatorKind::Mul, {gate, parts[1]}, {}, "gated"), hidden, form.inner, "down_proj");
    const TensorId zeros = b.one(OperatorKind::Fill, {}, attributesOf({{"value", 0.0}}), "zeros",
        {{DataType::Float32, {rows, hidden}}});
    const TensorId back =
        b.one(OperatorKind::ScatterND, {zeros, b.reshape(places, {form.experts, room, 1}, "tuples"), made},
            attributesOf({{"reduction", "add"}, {"groups", in[0]}, {"grouped", 1}}), "back");
    const TensorId weighed =
        b.one(OperatorKind::Mul, {back, b.reshape(shares, {rows, 1}, "shares")}, {}, "weighed");
    const TensorId sum =
        b.one(OperatorKind::ReduceSum, {b.reshape(weighed, {tokens, form.choices, hidden}, "by_token")},
            attributesOf({{"axes", std::vector<std::int64_t>{1}}, {"keepdims", 0}}), "sum");
    return b.reshape(sum, in, "joined");
}

Result<Graph> build(const std::string &name, const ZooValues &values, const LlamaForm &form)
{
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t length = values.integer("seq");
    const std::int64_t batch = values.integer("batch");
    const std::int64_t vocabulary = values.integer("vocab");
    const std::int64_t dense = values.integer("dense");
    const std::int64_t denseInner =
        values.integer("dense_ffn") > 0 ? values.integer("dense_ffn") : form.inner;
    if (form.experts > 0 && form.choices > form.experts)
        return values.wrong(
            "top_k", "A token can be sent to at most all " + std::to_string(form.experts) + " experts.");
    ZooBuilder b(name);
    const TensorId tokens = b.input("input_ids", {DataType::Int64, {batch, length}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, length}});
    const TensorId table = b.weight("embed_tokens.weight", {vocabulary, hidden});
    TensorId x = b.embedding(table, tokens, "embed_tokens");
    TensorId cos;
    TensorId sin;
    {
        // Angles position x base^(-2i/d), twice side by side (RoFormer, arXiv:2104.09864, in LLaMA's layout).
        const auto inside = b.scope("rotary_emb");
        const std::int64_t half = form.rotaryWidth / 2;
        std::vector<float> frequencies;
        for (std::int64_t i = 0; i < half; ++i)
            frequencies.push_back(static_cast<float>(
                std::pow(values.real("rope_base"), -static_cast<double>(i) / static_cast<double>(half))));
        const TensorId positions =
            b.reshape(b.range(DataType::Float32, length, "positions"), {length, 1}, "rows");
        const TensorId angles = b.one(OperatorKind::Mul,
            {positions, b.constant("inv_freq", floatData({1, half}, frequencies))}, {}, "angles");
        const TensorId twice =
            b.one(OperatorKind::Concat, {angles, angles}, attributesOf({{"axis", 1}}), "both_halves");
        cos = b.one(OperatorKind::Cos, {twice}, {}, "cos");
        sin = b.one(OperatorKind::Sin, {twice}, {}, "sin");
    }
    const auto addLayer = [&](TensorId x, const std::string &name, bool isDense, std::int64_t window) {
        const auto inside = b.scope(name);
        const TensorId normal = b.rmsNorm(x, "input_layernorm");
        const TensorId attended = form.latent ? latentAttention(b, normal, cos, sin, form)
                                              : llamaAttention(b, normal, cos, sin, form, window);
        x = b.one(OperatorKind::Add, {x, attended}, {}, "residual_1");
        const TensorId y = b.rmsNorm(x, "post_attention_layernorm");
        TensorId made = isDense ? llamaMlp(b, y, denseInner, form.isGated) : llamaMixture(b, y, form, name);
        if (!isDense && form.shared > 0) {
            const auto beside = b.scope("mlp");
            made = b.one(OperatorKind::Add,
                {made, llamaMlp(b, y, form.shared * form.inner, true, "shared_experts")}, {}, "with_shared");
        }
        return b.one(OperatorKind::Add, {x, made}, {}, "residual_2");
    };
    for (std::int64_t layer = 0; layer < values.integer("layers"); ++layer) {
        const bool seesAll = form.fullEvery > 0 && (layer + 1) % form.fullEvery == 0;
        x = addLayer(x, "layers." + std::to_string(layer), form.experts == 0 || layer < dense,
            seesAll ? 0 : form.window);
    }
    const TensorId head = form.isTied ? table : b.weight("lm_head.weight", {vocabulary, hidden});
    const auto addHead = [&](TensorId x, TensorId expected) {
        return b.meanLoss(b.one(OperatorKind::Linear, {b.rmsNorm(x, "norm"), head},
                              attributesOf({{"transposed", 1}}), "lm_head"),
            expected);
    };
    TensorId loss = addHead(x, labels);
    // Modules that predict one token further each, from the tokens that the one before them predicts
    // (DeepSeek-V3, arXiv:2412.19437, section 2.2); they share embedding and head.
    const std::int64_t modules = values.integer("mtp");
    TensorId next = labels;
    for (std::int64_t k = 0; k < modules; ++k) {
        const auto inside = b.scope("mtp." + std::to_string(k));
        const TensorId known = b.rmsNorm(b.embedding(table, next, "embed_tokens"), "enorm");
        x = b.one(
            OperatorKind::Concat, {b.rmsNorm(x, "hnorm"), known}, attributesOf({{"axis", 2}}), "joined");
        x = addLayer(b.linear(x, hidden, "eh_proj", false), "layer", form.experts == 0, form.window);
        next = b.input("labels_" + std::to_string(k + 2), {DataType::Int64, {batch, length}});
        loss = b.one(OperatorKind::Add,
            {loss, b.scaled(addHead(x, next), kMtpShare / static_cast<double>(modules), "share")}, {}, "sum");
    }
    return b.finish({loss}, loss);
}

} // namespace

Result<Graph> buildLlama(const ZooValues &values)
{
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t heads = values.integer("heads");
    const std::int64_t keyHeads = values.integer("kv_heads") > 0 ? values.integer("kv_heads") : heads;
    const std::int64_t ownWidth = values.integer("head_dim");
    const std::int64_t headWidth = ownWidth > 0 ? ownWidth : hidden / heads;
    if (ownWidth == 0 && hidden % heads != 0)
        return values.wrong("heads",
            "hidden (" + std::to_string(hidden)
                + ") must be an even multiple of the number of heads, or head_dim be given.");
    if (headWidth == 0 || headWidth % 2 != 0)
        return values.wrong(ownWidth > 0 ? "head_dim" : "heads",
            "The width of a head, " + std::to_string(headWidth)
                + ", must be even: half of it turns against the other half.");
    if (heads % keyHeads != 0)
        return values.wrong("kv_heads", "kv_heads must divide heads (" + std::to_string(heads) + ").");
    const LlamaForm form{.heads = heads,
        .keyHeads = keyHeads,
        .inner = values.integer("ffn"),
        .experts = values.integer("experts"),
        .choices = values.integer("top_k"),
        .capacity = {.factor = values.real("capacity")},
        .capacities = values.capacities(),
        .headWidth = headWidth,
        .norm = static_cast<QueryNorm>(values.integer("qk_norm")),
        .window = values.integer("window"),
        .fullEvery = values.integer("full_every"),
        .isGated = values.integer("gated") != 0,
        .isTied = values.integer("tied") != 0,
        .rotaryWidth = headWidth};
    return build("llama", values, form);
}

Result<Graph> buildDeepSeek(const ZooValues &values)
{
    const LlamaForm form{.heads = values.integer("heads"),
        .inner = values.integer("ffn"),
        .experts = values.integer("experts"),
        .choices = values.integer("top_k"),
        .capacity = {.factor = values.real("capacity")},
        .capacities = values.capacities(),
        .rotaryWidth = values.integer("rope"),
        .latent = LatentForm{.queryRank = values.integer("q_lora"),
            .rank = values.integer("kv_lora"),
            .plainWidth = values.integer("nope"),
            .valueWidth = values.integer("v_head")},
        .shared = values.integer("shared"),
        .sigmoid = values.integer("sigmoid") == 0
            ? std::nullopt
            : std::optional(SigmoidRouting{.groups = values.integer("groups"),
                .chosenGroups = values.integer("top_groups"),
                .scale = values.real("routed_scale")})};
    if (form.rotaryWidth % 2 != 0)
        return values.wrong("rope", "rope must be even.");
    if (form.sigmoid && form.experts % form.sigmoid->groups != 0)
        return values.wrong("groups", "groups must divide experts (" + std::to_string(form.experts) + ").");
    if (form.sigmoid && form.sigmoid->chosenGroups > form.sigmoid->groups)
        return values.wrong(
            "top_groups", "At most all " + std::to_string(form.sigmoid->groups) + " groups can be chosen.");
    return build("deepseek", values, form);
}

} // namespace planloom
