// GPT (Radford et al. 2019), as in Hugging Face's GPT2LMHeadModel.
#include "engine/frontend/zoo/zoo_parts.h"

#include <cmath>

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
    const TensorId head =
        values.integer("tied") != 0 ? table : b.weight("lm_head.weight", {vocabulary, hidden});
    const TensorId logits =
        b.one(OperatorKind::Linear, {x, head}, attributesOf({{"transposed", 1}}), "lm_head");
    const TensorId loss = b.meanLoss(logits, labels);
    return b.finish({loss}, loss);
}

} // namespace planloom
