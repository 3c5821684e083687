// GPT with mixtures of experts: top-k gating with a fixed capacity per expert and sample (GShard,
// arXiv:2006.16668).
#include "engine/frontend/zoo/zoo_parts.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

struct MixtureForm {
    std::int64_t heads = 0;
    std::int64_t inner = 0;
    std::int64_t experts = 0;
    std::int64_t choices = 0; ///< Experts a token is sent to.
    std::int64_t room = 0; ///< Tokens of one sample that an expert takes.
};

TensorId einsum(ZooBuilder &b, const char *equation, TensorId x, TensorId y, std::string_view name)
{
    return b.one(OperatorKind::Einsum, {x, y}, attributesOf({{"equation", equation}}), name);
}

TensorId causalAttention(ZooBuilder &b, TensorId x, std::int64_t heads)
{
    const auto inside = b.scope("attn");
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    const TensorId query = b.splitHeads(b.linear(x, hidden, "q_proj"), heads, "query");
    const TensorId key = b.splitHeads(b.linear(x, hidden, "k_proj"), heads, "key");
    const TensorId value = b.splitHeads(b.linear(x, hidden, "v_proj"), heads, "value");
    const ZooAttention form{.scale = 1 / std::sqrt(static_cast<double>(hidden / heads)), .causal = true};
    const TensorId context = b.mergeHeads(b.attention(query, key, value, form), "context");
    return b.dropout(b.linear(context, hidden, "out_proj"), "dropout");
}

TensorId denseFeedForward(ZooBuilder &b, TensorId x, std::int64_t inner)
{
    const auto inside = b.scope("mlp");
    const std::int64_t hidden = b.shape(x).empty() ? 1 : b.shape(x).back();
    TensorId y = b.linear(x, inner, "fc_1");
    y = b.one(OperatorKind::Gelu, {y}, attributesOf({{"approximate", "none"}}), "act");
    return b.dropout(b.linear(y, hidden, "fc_2"), "dropout");
}

/// x [b s h] -> [b s h]. Letters of the einsums: b samples, s tokens, k choices, e experts, c places, h, f
/// widths.
TensorId mixture(ZooBuilder &b, TensorId x, const MixtureForm &form)
{
    const auto inside = b.scope("moe");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const std::int64_t batch = in[0];
    const std::int64_t length = in[1];
    const std::int64_t hidden = in[2];
    const auto axes = [](std::int64_t axis, std::int64_t keep) {
        return attributesOf({{"axes", std::vector<std::int64_t>{axis}}, {"keepdims", keep}});
    };
    const auto oneHot = [](std::int64_t depth) {
        return attributesOf({{"axis", 3}, {"depth", depth}, {"on", 1.0}, {"off", 0.0}});
    };
    TensorId dispatch;
    TensorId combine;
    {
        const auto gating = b.scope("gate");
        const TensorId shares = b.softmax(b.linear(x, form.experts, "router", false), "softmax");
        const std::vector<TensorId> chosen = b.add(OperatorKind::TopK, {shares},
            attributesOf({{"axis", 2}, {"k", form.choices}, {"largest", 1}, {"sorted", 1}}), "top_k");
        const TensorId sum = b.one(OperatorKind::ReduceSum, {chosen[0]}, axes(2, 1), "sum");
        const TensorId weights = b.one(OperatorKind::Div, {chosen[0], sum}, {}, "weights");
        const TensorId experts = b.one(OperatorKind::OneHot, {chosen[1]}, oneHot(form.experts), "experts",
            {{DataType::Float32, {batch, length, form.choices, form.experts}}}); // [b s k e]
        // A token's place at its expert is the number of earlier choices of that expert in its sample.
        const TensorId inOrder = b.reshape(experts, {batch, length * form.choices, form.experts}, "in_order");
        TensorId places = b.one(OperatorKind::CumSum, {inOrder},
            attributesOf({{"axis", 1}, {"exclusive", 1}, {"reverse", 0}}), "earlier");
        places = b.reshape(places, {batch, length, form.choices, form.experts}, "places");
        const TensorId place = b.one(OperatorKind::ReduceSum,
            {b.one(OperatorKind::Mul, {places, experts}, {}, "own_places")}, axes(3, 0), "place");
        const TensorId index = b.one(
            OperatorKind::Cast, {place}, {}, "index", {{DataType::Int64, {batch, length, form.choices}}});
        // Places beyond an expert's room give a row of zeros: the token is dropped there.
        const TensorId slots = b.one(OperatorKind::OneHot, {index}, oneHot(form.room), "slots",
            {{DataType::Float32, {batch, length, form.choices, form.room}}}); // [b s k c]
        dispatch = einsum(b, "bske,bskc->bsec", experts, slots, "dispatch");
        const TensorId column = b.reshape(weights, {batch, length, form.choices, 1}, "column");
        combine = einsum(b, "bske,bskc->bsec", b.one(OperatorKind::Mul, {experts, column}, {}, "weighted"),
            slots, "combine");
    }
    TensorId y = einsum(b, "bsec,bsh->ebch", dispatch, x, "to_experts");
    {
        const auto all = b.scope("experts");
        y = einsum(
            b, "ebch,ehf->ebcf", y, b.weight("fc_1.weight", {form.experts, hidden, form.inner}), "fc_1");
        y = b.one(OperatorKind::Add, {y, b.weight("fc_1.bias", {form.experts, 1, 1, form.inner})}, {},
            "fc_1.biased");
        y = b.one(OperatorKind::Gelu, {y}, attributesOf({{"approximate", "none"}}), "act");
        y = einsum(
            b, "ebcf,efh->ebch", y, b.weight("fc_2.weight", {form.experts, form.inner, hidden}), "fc_2");
        y = b.one(
            OperatorKind::Add, {y, b.weight("fc_2.bias", {form.experts, 1, 1, hidden})}, {}, "fc_2.biased");
    }
    return b.dropout(einsum(b, "bsec,ebch->bsh", combine, y, "from_experts"), "dropout");
}

} // namespace

Result<Graph> buildMixture(const ZooValues &values)
{
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t length = values.integer("seq");
    const std::int64_t batch = values.integer("batch");
    MixtureForm form{.heads = values.integer("heads"),
        .inner = values.integer("ffn") > 0 ? values.integer("ffn") : 4 * hidden,
        .experts = values.integer("experts"),
        .choices = values.integer("top_k")};
    if (hidden % form.heads != 0)
        return values.wrong(
            "heads", "The number of heads must divide hidden (" + std::to_string(hidden) + ").");
    if (form.choices > form.experts)
        return values.wrong(
            "top_k", "A token can be sent to at most all " + std::to_string(form.experts) + " experts.");
    const double share = static_cast<double>(form.choices * length) / static_cast<double>(form.experts);
    form.room = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(std::ceil(values.real("capacity") * share)), 1, form.choices * length);
    ZooBuilder b("moe", values.real("dropout"));
    const TensorId tokens = b.input("input_ids", {DataType::Int64, {batch, length}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch, length}});
    const TensorId table = b.weight("wte.weight", {values.integer("vocab"), hidden});
    const TensorId positions = b.embedding(
        b.weight("wpe.weight", {length, hidden}), b.range(DataType::Int64, length, "position_ids"), "wpe");
    TensorId x = b.one(OperatorKind::Add, {b.embedding(table, tokens, "wte"), positions}, {}, "embeddings");
    for (std::int64_t layer = 0; layer < values.integer("layers"); ++layer) {
        const auto inside = b.scope("h." + std::to_string(layer));
        x = b.one(
            OperatorKind::Add, {x, causalAttention(b, b.layerNorm(x, "ln_1"), form.heads)}, {}, "residual_1");
        const TensorId y = b.layerNorm(x, "ln_2");
        const bool mixed = (layer + 1) % values.integer("every") == 0;
        x = b.one(OperatorKind::Add, {x, mixed ? mixture(b, y, form) : denseFeedForward(b, y, form.inner)},
            {}, "residual_2");
    }
    const TensorId logits = b.one(
        OperatorKind::Linear, {b.layerNorm(x, "ln_f"), table}, attributesOf({{"transposed", 1}}), "lm_head");
    const TensorId loss = b.meanLoss(logits, labels);
    return b.finish({loss}, loss);
}

} // namespace planloom
