// GPT (Radford et al. 2019, as in Hugging Face's GPT2LMHeadModel) and LLaMA (arXiv:2302.13971), dense or with
// mixtures of experts (Mixtral, arXiv:2401.04088; OLMoE, arXiv:2409.02060; DeepSeek-V3, arXiv:2412.19437).
#include "engine/frontend/zoo/zoo_parts.h"

#include <cmath>
#include <numeric>

namespace planloom {

namespace {

/// Queries, keys and values by heads, [b H s d] each: parts of one product, as in GPT-2's c_attn and
/// Megatron's, or products of three weights.
std::vector<TensorId> gptHeads(ZooBuilder &b, TensorId x, std::int64_t heads, bool isFused)
{
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    std::vector<TensorId> parts;
    if (isFused) {
        const TensorId all = b.linear(x, 3 * hidden, "c_attn", true, false);
        const auto axis = static_cast<std::int64_t>(b.shape(x).size()) - 1;
        const std::vector<std::int64_t> sizes(3, hidden);
        parts = b.add(OperatorKind::Split, {all}, attributesOf({{"axis", axis}, {"sizes", sizes}}), "qkv");
    }
    std::vector<TensorId> made;
    for (const auto &[name, weight] :
        {std::pair("query", "q_attn"), std::pair("key", "k_attn"), std::pair("value", "v_attn")}) {
        const TensorId part = isFused ? parts[made.size()] : b.linear(x, hidden, weight, true, false);
        made.push_back(b.splitHeads(part, heads, name));
    }
    return made;
}

/// [b s h] -> [b s h].
TensorId gptAttention(ZooBuilder &b, TensorId x, std::int64_t heads, bool isFused)
{
    const auto inside = b.scope("attn");
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    const std::vector<TensorId> parts = gptHeads(b, x, heads, isFused);
    const ZooAttention form{
        .scale = 1 / std::sqrt(static_cast<double>(hidden / heads)), .causal = true, .drops = true};
    const TensorId context = b.mergeHeads(b.attention(parts[0], parts[1], parts[2], form), "context");
    return b.dropout(b.linear(context, hidden, "c_proj", true, false), "resid_dropout");
}

TensorId gptMlp(ZooBuilder &b, TensorId x, std::int64_t inner)
{
    const auto inside = b.scope("mlp");
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    TensorId y = b.linear(x, inner, "c_fc", true, false);
    y = b.one(OperatorKind::Gelu, {y}, attributesOf({{"approximate", "tanh"}}), "act");
    return b.dropout(b.linear(y, hidden, "c_proj", true, false), "dropout");
}

/// Of the loss: what modules that predict further tokens have together (lambda of DeepSeek-V3, section 4.2).
constexpr double kMtpShare = 0.3;

/// What LLaMA's layers are made of.
struct LlamaForm {
    std::int64_t heads = 0;
    std::int64_t keyHeads = 0;
    std::int64_t inner = 0;
    std::int64_t experts = 0; ///< 0: a feed-forward layer for all tokens.
    std::int64_t choices = 0; ///< Experts a token is sent to.
    Capacity capacity{}; ///< Of an expert.
    Capacities capacities{}; ///< By operator, before it.
    bool normalizesHeads = false;
};

TensorId llamaAttention(ZooBuilder &b, TensorId x, TensorId cos, TensorId sin, const LlamaForm &form)
{
    const auto inside = b.scope("self_attn");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const std::int64_t width = in[2] / form.heads;
    const auto rotate = [&](TensorId t, std::string_view name) {
        return b.one(OperatorKind::Rotary, {t, cos, sin}, attributesOf({{"interleaved", 0}}), name);
    };
    TensorId allQueries = b.linear(x, form.heads * width, "q_proj", false);
    TensorId allKeys = b.linear(x, form.keyHeads * width, "k_proj", false);
    if (form.normalizesHeads) {
        allQueries = b.rmsNorm(allQueries, "q_norm");
        allKeys = b.rmsNorm(allKeys, "k_norm");
    }
    const TensorId allValues = b.linear(x, form.keyHeads * width, "v_proj", false);
    const TensorId query = rotate(b.splitHeads(allQueries, form.heads, "query"), "query.rotary");
    const TensorId key = rotate(b.splitHeads(allKeys, form.keyHeads, "key"), "key.rotary");
    const TensorId value = b.splitHeads(allValues, form.keyHeads, "value");
    const ZooAttention attention{.scale = 1 / std::sqrt(static_cast<double>(width)), .causal = true};
    const TensorId context = b.mergeHeads(b.attention(query, key, value, attention), "context");
    return b.linear(context, in[2], "o_proj", false);
}

TensorId llamaMlp(ZooBuilder &b, TensorId x, std::int64_t inner)
{
    const auto inside = b.scope("mlp");
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    const TensorId gate = b.one(OperatorKind::Silu, {b.linear(x, inner, "gate_proj", false)}, {}, "act");
    const TensorId up = b.linear(x, inner, "up_proj", false);
    return b.linear(b.one(OperatorKind::Mul, {gate, up}, {}, "gated"), hidden, "down_proj", false);
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
    const TensorId chances = b.softmax(b.linear(flat, form.experts, "gate", false), "softmax");
    const std::vector<TensorId> chosen = b.add(OperatorKind::TopK, {chances},
        attributesOf({{"axis", 1}, {"k", form.choices}, {"largest", 1}, {"sorted", 1}}), "top_k");
    const auto all = b.scope("experts");
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(form.experts));
    std::iota(numbers.begin(), numbers.end(), 0);
    const TensorId mask = b.one(OperatorKind::Equal,
        {b.reshape(chosen[1], {1, rows}, "choice"),
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
        b.one(OperatorKind::Mul, {back, b.reshape(chosen[0], {rows, 1}, "shares")}, {}, "weighed");
    const TensorId sum =
        b.one(OperatorKind::ReduceSum, {b.reshape(weighed, {tokens, form.choices, hidden}, "by_token")},
            attributesOf({{"axes", std::vector<std::int64_t>{1}}, {"keepdims", 0}}), "sum");
    return b.reshape(sum, in, "joined");
}

} // namespace

Result<Graph> buildGpt(const ZooValues &values)
{
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t heads = values.integer("heads");
    const std::int64_t length = values.integer("seq");
    const std::int64_t batch = values.integer("batch");
    const std::int64_t vocabulary = values.integer("vocab");
    const std::int64_t inner = values.integer("ffn") > 0 ? values.integer("ffn") : 4 * hidden;
    const bool isFused = values.integer("fused") != 0;
    if (hidden % heads != 0)
        return values.wrong(
            "heads", "The number of heads must divide hidden (" + std::to_string(hidden) + ").");
    ZooBuilder b("gpt", values.real("dropout"));
    const TensorId tokens = b.input("input_ids", {DataType::Int64, {batch, length}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, length}});
    const TensorId table = b.weight("wte.weight", {vocabulary, hidden});
    const TensorId positionTable = b.weight("wpe.weight", {length, hidden});
    const TensorId positions =
        b.embedding(positionTable, b.range(DataType::Int64, length, "position_ids"), "wpe");
    TensorId x = b.one(OperatorKind::Add, {b.embedding(table, tokens, "wte"), positions}, {}, "embeddings");
    x = b.dropout(x, "drop");
    for (std::int64_t layer = 0; layer < values.integer("layers"); ++layer) {
        const auto inside = b.scope("h." + std::to_string(layer));
        x = b.one(OperatorKind::Add, {x, gptAttention(b, b.layerNorm(x, "ln_1"), heads, isFused)}, {},
            "residual_1");
        x = b.one(OperatorKind::Add, {x, gptMlp(b, b.layerNorm(x, "ln_2"), inner)}, {}, "residual_2");
    }
    x = b.layerNorm(x, "ln_f");
    const TensorId logits =
        b.one(OperatorKind::Linear, {x, table}, attributesOf({{"transposed", 1}}), "lm_head");
    const TensorId loss = b.meanLoss(logits, labels);
    return b.finish({loss}, loss);
}

Result<Graph> buildLlama(const ZooValues &values)
{
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t heads = values.integer("heads");
    const std::int64_t keyHeads = values.integer("kv_heads") > 0 ? values.integer("kv_heads") : heads;
    const std::int64_t length = values.integer("seq");
    const std::int64_t batch = values.integer("batch");
    const std::int64_t vocabulary = values.integer("vocab");
    if (hidden % heads != 0 || hidden / heads % 2 != 0)
        return values.wrong("heads",
            "hidden (" + std::to_string(hidden) + ") must be an even multiple of the number of heads.");
    if (heads % keyHeads != 0)
        return values.wrong("kv_heads", "kv_heads must divide heads (" + std::to_string(heads) + ").");
    const LlamaForm form{.heads = heads,
        .keyHeads = keyHeads,
        .inner = values.integer("ffn"),
        .experts = values.integer("experts"),
        .choices = values.integer("top_k"),
        .capacity = {.factor = values.real("capacity")},
        .capacities = values.capacities(),
        .normalizesHeads = values.integer("qk_norm") != 0};
    const std::int64_t dense = values.integer("dense");
    const std::int64_t denseInner =
        values.integer("dense_ffn") > 0 ? values.integer("dense_ffn") : form.inner;
    if (form.experts > 0 && form.choices > form.experts)
        return values.wrong(
            "top_k", "A token can be sent to at most all " + std::to_string(form.experts) + " experts.");
    ZooBuilder b("llama");
    const TensorId tokens = b.input("input_ids", {DataType::Int64, {batch, length}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, length}});
    const TensorId table = b.weight("embed_tokens.weight", {vocabulary, hidden});
    TensorId x = b.embedding(table, tokens, "embed_tokens");
    TensorId cos;
    TensorId sin;
    {
        // Angles position x base^(-2i/d), twice side by side (RoFormer, arXiv:2104.09864, in LLaMA's layout).
        const auto inside = b.scope("rotary_emb");
        const std::int64_t half = hidden / heads / 2;
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
    const auto addLayer = [&](TensorId x, const std::string &name, bool isDense) {
        const auto inside = b.scope(name);
        x = b.one(OperatorKind::Add, {x, llamaAttention(b, b.rmsNorm(x, "input_layernorm"), cos, sin, form)},
            {}, "residual_1");
        const TensorId y = b.rmsNorm(x, "post_attention_layernorm");
        return b.one(OperatorKind::Add,
            {x, isDense ? llamaMlp(b, y, denseInner) : llamaMixture(b, y, form, name)}, {}, "residual_2");
    };
    for (std::int64_t layer = 0; layer < values.integer("layers"); ++layer)
        x = addLayer(x, "layers." + std::to_string(layer), form.experts == 0 || layer < dense);
    const TensorId head = b.weight("lm_head.weight", {vocabulary, hidden});
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
        x = addLayer(b.linear(x, hidden, "eh_proj", false), "layer", form.experts == 0);
        next = b.input("labels_" + std::to_string(k + 2), {DataType::Int64, {batch, length}});
        loss = b.one(OperatorKind::Add,
            {loss, b.scaled(addHead(x, next), kMtpShare / static_cast<double>(modules), "share")}, {}, "sum");
    }
    return b.finish({loss}, loss);
}

} // namespace planloom
