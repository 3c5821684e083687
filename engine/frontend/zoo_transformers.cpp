// GPT (Radford et al. 2019, as in Hugging Face's GPT2LMHeadModel) and LLaMA (arXiv:2302.13971).
#include "engine/frontend/zoo_parts.h"

#include <cmath>

namespace planloom {

namespace {

/// Queries, keys and values, [b s h] each: parts of one product, as in GPT-2's c_attn and Megatron's, or
/// products of three weights.
std::vector<TensorId> gptProjections(ZooBuilder &b, TensorId x, bool isFused)
{
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    if (!isFused) {
        return {b.linear(x, hidden, "q_attn", true, false), b.linear(x, hidden, "k_attn", true, false),
            b.linear(x, hidden, "v_attn", true, false)};
    }
    const TensorId all = b.linear(x, 3 * hidden, "c_attn", true, false);
    const auto axis = static_cast<std::int64_t>(b.shape(x).size()) - 1;
    const std::vector<std::int64_t> sizes(3, hidden);
    return b.add(OperatorKind::Split, {all}, attributesOf({{"axis", axis}, {"sizes", sizes}}), "qkv");
}

/// [b s h] -> [b s h].
TensorId gptAttention(ZooBuilder &b, TensorId x, std::int64_t heads, bool isFused)
{
    const auto inside = b.scope("attn");
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    const std::vector<TensorId> parts = gptProjections(b, x, isFused);
    const TensorId query = b.splitHeads(parts[0], heads, "query");
    const TensorId key = b.splitHeads(parts[1], heads, "key");
    const TensorId value = b.splitHeads(parts[2], heads, "value");
    const ZooAttention form{
        .scale = 1 / std::sqrt(static_cast<double>(hidden / heads)), .causal = true, .drops = true};
    const TensorId context = b.mergeHeads(b.attention(query, key, value, form), "context");
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

TensorId llamaAttention(
    ZooBuilder &b, TensorId x, TensorId cos, TensorId sin, std::int64_t heads, std::int64_t keyHeads)
{
    const auto inside = b.scope("self_attn");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const std::int64_t width = in[2] / heads;
    const auto rotate = [&](TensorId t, std::string_view name) {
        return b.one(OperatorKind::Rotary, {t, cos, sin}, attributesOf({{"interleaved", 0}}), name);
    };
    const TensorId allQueries = b.linear(x, heads * width, "q_proj", false);
    const TensorId allKeys = b.linear(x, keyHeads * width, "k_proj", false);
    const TensorId allValues = b.linear(x, keyHeads * width, "v_proj", false);
    const TensorId query = rotate(b.splitHeads(allQueries, heads, "query"), "query.rotary");
    const TensorId key = rotate(b.splitHeads(allKeys, keyHeads, "key"), "key.rotary");
    const TensorId value = b.splitHeads(allValues, keyHeads, "value");
    const ZooAttention form{.scale = 1 / std::sqrt(static_cast<double>(width)), .causal = true};
    const TensorId context = b.mergeHeads(b.attention(query, key, value, form), "context");
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
    ZooBuilder b("llama");
    const TensorId tokens = b.input("input_ids", {DataType::Int64, {batch, length}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, length}});
    TensorId x = b.embedding(b.weight("embed_tokens.weight", {vocabulary, hidden}), tokens, "embed_tokens");
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
    for (std::int64_t layer = 0; layer < values.integer("layers"); ++layer) {
        const auto inside = b.scope("layers." + std::to_string(layer));
        x = b.one(OperatorKind::Add,
            {x, llamaAttention(b, b.rmsNorm(x, "input_layernorm"), cos, sin, heads, keyHeads)}, {},
            "residual_1");
        x = b.one(OperatorKind::Add,
            {x, llamaMlp(b, b.rmsNorm(x, "post_attention_layernorm"), values.integer("ffn"))}, {},
            "residual_2");
    }
    const TensorId logits = b.linear(b.rmsNorm(x, "norm"), vocabulary, "lm_head", false);
    const TensorId loss = b.meanLoss(logits, labels);
    return b.finish({loss}, loss);
}

} // namespace planloom
