// T5 v1.0 (arXiv:1910.10683, as in Hugging Face's T5ForConditionalGeneration).
#include "engine/frontend/zoo/zoo_parts.h"

#include <cmath>

namespace planloom {

namespace {

/// Relative positions from this distance on share a bucket.
constexpr double kFarthest = 128;

struct T5Form {
    std::int64_t heads = 0;
    std::int64_t width = 0; ///< Of a head.
    std::int64_t inner = 0; ///< Of the feed-forward layer.
    std::int64_t buckets = 0;
};

/// Bucket of key position minus query position, [n n]: half of the buckets count exactly, half in logarithmic
/// steps up to `kFarthest`; with `bothWays` keys behind the query have buckets of their own.
TensorId positionBuckets(ZooBuilder &b, std::int64_t n, std::int64_t buckets, bool bothWays)
{
    const auto inside = b.scope("buckets");
    const auto whole = [&b](std::int64_t value, std::string_view name) {
        return b.constant(name, integerData({}, {value}));
    };
    const TensorId positions = b.range(DataType::Int64, n, "positions");
    const TensorId distance = b.one(OperatorKind::Sub,
        {b.reshape(positions, {1, n}, "keys"), b.reshape(positions, {n, 1}, "queries")}, {}, "distance");
    TensorId offset;
    TensorId away;
    if (bothWays) {
        buckets /= 2;
        const TensorId behind = b.one(OperatorKind::Greater, {distance, whole(0, "zero")}, {}, "behind");
        offset = b.one(OperatorKind::Where, {behind, whole(buckets, "half"), whole(0, "none")}, {}, "offset");
        away = b.one(OperatorKind::Abs, {distance}, {}, "away");
    } else {
        away = b.one(OperatorKind::Max,
            {b.one(OperatorKind::Neg, {distance}, {}, "before"), whole(0, "zero")}, {}, "away");
    }
    const std::int64_t exact = buckets / 2;
    const TensorId isNear = b.one(OperatorKind::Less, {away, whole(exact, "exact")}, {}, "is_near");
    // At least 1, so that the logarithm is finite where the other branch is taken.
    const TensorId atLeastOne = b.one(OperatorKind::Max, {away, whole(1, "one")}, {}, "at_least_one");
    const TensorId real = b.one(OperatorKind::Cast, {atLeastOne}, {}, "real", {{DataType::Float32, {n, n}}});
    const TensorId log =
        b.one(OperatorKind::Log, {b.scaled(real, 1.0 / static_cast<double>(exact), "ratio")}, {}, "log");
    const double steps =
        static_cast<double>(buckets - exact) / std::log(kFarthest / static_cast<double>(exact));
    const TensorId step =
        b.one(OperatorKind::Cast, {b.scaled(log, steps, "steps")}, {}, "step", {{DataType::Int64, {n, n}}});
    const TensorId far = b.one(OperatorKind::Min,
        {b.one(OperatorKind::Add, {step, whole(exact, "first_far")}, {}, "far"), whole(buckets - 1, "last")},
        {}, "capped");
    const TensorId bucket = b.one(OperatorKind::Where, {isNear, away, far}, {}, "bucket");
    return offset ? b.one(OperatorKind::Add, {bucket, offset}, {}, "both_ways") : bucket;
}

/// Bias of unscaledAttention scores, [1 h n n].
TensorId positionBias(ZooBuilder &b, std::int64_t n, const T5Form &form, bool bothWays)
{
    const TensorId table = b.weight("relative_attention_bias.weight", {form.buckets, form.heads});
    const TensorId rows =
        b.embedding(table, positionBuckets(b, n, form.buckets, bothWays), "relative_attention_bias");
    return b.reshape(b.transpose(rows, {2, 0, 1}, "bias.transpose"), {1, form.heads, n, n}, "bias");
}

/// x [b s h] attends to `memory` [b t h]; `bias` may be invalid. T5 does not scale its scores.
TensorId unscaledAttention(
    ZooBuilder &b, TensorId x, TensorId memory, TensorId bias, bool causal, const T5Form &form)
{
    const std::int64_t all = form.heads * form.width;
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    const TensorId query = b.splitHeads(b.linear(x, all, "q", false), form.heads, "query");
    const TensorId key = b.splitHeads(b.linear(memory, all, "k", false), form.heads, "key");
    const TensorId value = b.splitHeads(b.linear(memory, all, "v", false), form.heads, "value");
    ZooAttention scores{.causal = causal, .drops = true};
    if (bias)
        scores.masks.push_back(bias);
    const TensorId context = b.mergeHeads(b.attention(query, key, value, scores), "context");
    return b.dropout(b.linear(context, hidden, "o", false), "dropout");
}

TensorId reluFeedForward(ZooBuilder &b, TensorId x, std::int64_t inner)
{
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    const TensorId y = b.one(OperatorKind::Relu, {b.linear(x, inner, "wi", false)}, {}, "act");
    return b.dropout(b.linear(b.dropout(y, "inner_dropout"), hidden, "wo", false), "dropout");
}

TensorId stack(ZooBuilder &b, TensorId x, TensorId memory, std::int64_t layers, const T5Form &form)
{
    const bool decoder = memory.valid();
    const std::int64_t length = b.shape(x).size() == 3 ? b.shape(x)[1] : 1;
    TensorId bias;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
        const auto block = b.scope("block." + std::to_string(layer));
        const auto add = [&b](TensorId to, TensorId what, std::string_view name) {
            return b.one(OperatorKind::Add, {to, what}, {}, name);
        };
        {
            const auto inside = b.scope("self_attention");
            const TensorId y = b.rmsNorm(x, "layer_norm");
            if (layer == 0) // the first layer's bias serves all
                bias = positionBias(b, length, form, !decoder);
            x = add(x, unscaledAttention(b, y, y, bias, decoder, form), "residual");
        }
        if (decoder) {
            const auto inside = b.scope("cross_attention");
            x = add(x, unscaledAttention(b, b.rmsNorm(x, "layer_norm"), memory, {}, false, form), "residual");
        }
        const auto inside = b.scope("feed_forward");
        x = add(x, reluFeedForward(b, b.rmsNorm(x, "layer_norm"), form.inner), "residual");
    }
    return b.dropout(b.rmsNorm(x, "final_layer_norm"), "final_dropout");
}

} // namespace

Result<Graph> buildT5(const ZooValues &values)
{
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t batch = values.integer("batch");
    const T5Form form{.heads = values.integer("heads"),
        .width = values.integer("d_kv"),
        .inner = values.integer("ffn"),
        .buckets = values.integer("buckets")};
    if (form.buckets % 4 != 0 || static_cast<double>(form.buckets) / 2 >= kFarthest)
        return values.wrong("buckets", "The number of buckets must be a multiple of 4 below 256.");
    ZooBuilder b("t5", values.real("dropout"));
    const TensorId source = b.input("input_ids", {DataType::Int64, {batch, values.integer("src")}});
    const TensorId target = b.input("decoder_input_ids", {DataType::Int64, {batch, values.integer("tgt")}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, values.integer("tgt")}});
    const TensorId table = b.weight("shared.weight", {values.integer("vocab"), hidden});
    TensorId memory;
    {
        const auto inside = b.scope("encoder");
        const TensorId x = b.dropout(b.embedding(table, source, "embed_tokens"), "dropout");
        memory = stack(b, x, {}, values.integer("layers"), form);
    }
    TensorId x;
    {
        const auto inside = b.scope("decoder");
        x = b.dropout(b.embedding(table, target, "embed_tokens"), "dropout");
        x = stack(b, x, memory, values.integer("layers"), form);
    }
    // Tied embeddings are scaled on the way out.
    x = b.scaled(x, 1 / std::sqrt(static_cast<double>(hidden)), "scale");
    const TensorId logits =
        b.one(OperatorKind::Linear, {x, table}, attributesOf({{"transposed", 1}}), "lm_head");
    const TensorId loss = b.meanLoss(logits, labels);
    return b.finish({loss}, loss);
}

} // namespace planloom
