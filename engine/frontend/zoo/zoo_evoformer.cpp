// The Evoformer stack of AlphaFold 2 (Jumper et al. 2021, supplement 1.6), with the parameters of OpenFold.
#include "engine/frontend/zoo/zoo_parts.h"

#include <cmath>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

struct EvoformerForm {
    std::int64_t heads = 0; ///< Of MSA attention.
    std::int64_t pairHeads = 0; ///< Of triangle attention.
    std::int64_t width = 0; ///< Of a head, and of the factors of the outer product.
    std::int64_t triangle = 0; ///< Of triangle multiplication.
};

std::int64_t lastOf(ZooBuilder &b, TensorId x)
{
    return b.shape(x).empty() ? 1 : b.shape(x).back();
}

TensorId add(ZooBuilder &b, TensorId x, TensorId y, std::string_view name)
{
    return b.one(OperatorKind::Add, {x, y}, {}, name);
}

TensorId sigmoid(ZooBuilder &b, TensorId x, std::string_view name)
{
    return b.one(OperatorKind::Sigmoid, {x}, {}, name);
}

TensorId product(ZooBuilder &b, TensorId x, TensorId y, std::string_view name)
{
    return b.one(OperatorKind::Mul, {x, y}, {}, name);
}

/// Gated attention along dimension 2 of x [b n l c]; `bias` [b 1 h l l] may be invalid.
TensorId gatedAttention(ZooBuilder &b, TensorId x, TensorId bias, std::int64_t heads, std::int64_t width)
{
    const auto inside = b.scope("mha");
    const Shape in = b.shape(x);
    if (in.size() != 4)
        return x;
    const auto apart = [&](const std::string &name) {
        TensorId t = b.linear(x, heads * width, "linear_" + name, false);
        t = b.reshape(t, {in[0], in[1], in[2], heads, width}, name + ".heads");
        return b.transpose(t, {0, 1, 3, 2, 4}, name + ".transpose");
    };
    const TensorId query = apart("q");
    const TensorId key = apart("k");
    const TensorId value = apart("v");
    ZooAttention form{.scale = 1 / std::sqrt(static_cast<double>(width))};
    if (bias)
        form.masks.push_back(bias);
    TensorId context = b.attention(query, key, value, form);
    context = b.transpose(context, {0, 1, 3, 2, 4}, "context.transpose");
    context = b.reshape(context, {in[0], in[1], in[2], heads * width}, "context.merge");
    const TensorId gate = sigmoid(b, b.linear(x, heads * width, "linear_g"), "gate");
    return b.linear(product(b, context, gate, "gated"), in[3], "linear_o");
}

/// Bias from the pair representation, [b i j c] -> [b 1 h i j].
TensorId pairBias(ZooBuilder &b, TensorId pair, std::int64_t heads)
{
    const Shape in = b.shape(pair);
    if (in.size() != 4)
        return pair;
    const TensorId turned =
        b.transpose(b.linear(pair, heads, "linear_z", false), {0, 3, 1, 2}, "bias.transpose");
    return b.reshape(turned, {in[0], 1, heads, in[1], in[2]}, "bias");
}

TensorId rowAttention(ZooBuilder &b, TensorId msa, TensorId pair, const EvoformerForm &form)
{
    const auto inside = b.scope("msa_att_row");
    const TensorId x = b.layerNorm(msa, "layer_norm_m");
    const TensorId bias = pairBias(b, b.layerNorm(pair, "layer_norm_z"), form.heads);
    return b.dropout(gatedAttention(b, x, bias, form.heads, form.width), "dropout");
}

TensorId columnAttention(ZooBuilder &b, TensorId msa, const EvoformerForm &form)
{
    const auto inside = b.scope("msa_att_col");
    const TensorId x = b.layerNorm(b.transpose(msa, {0, 2, 1, 3}, "columns"), "layer_norm_m");
    return b.transpose(gatedAttention(b, x, {}, form.heads, form.width), {0, 2, 1, 3}, "rows");
}

TensorId transition(ZooBuilder &b, TensorId x, const std::string &name)
{
    const auto inside = b.scope(name);
    const std::int64_t width = lastOf(b, x);
    TensorId y = b.linear(b.layerNorm(x, "layer_norm"), 4 * width, "linear_1");
    y = b.one(OperatorKind::Relu, {y}, {}, "relu");
    return b.linear(y, width, "linear_2");
}

/// Mean over sequences of the outer products of residues: [b s i m] -> [b i j z].
TensorId outerProductMean(ZooBuilder &b, TensorId msa, std::int64_t pairWidth, const EvoformerForm &form)
{
    const auto inside = b.scope("outer_product_mean");
    const Shape in = b.shape(msa);
    if (in.size() != 4)
        return msa;
    const TensorId x = b.layerNorm(msa, "layer_norm");
    const TensorId left = b.linear(x, form.width, "linear_1");
    const TensorId right = b.linear(x, form.width, "linear_2");
    TensorId outer =
        b.one(OperatorKind::Einsum, {left, right}, attributesOf({{"equation", "bsic,bsjd->bijcd"}}), "outer");
    outer = b.reshape(outer, {in[0], in[2], in[2], form.width * form.width}, "flat");
    return b.linear(b.scaled(outer, 1 / static_cast<double>(in[1]), "mean"), pairWidth, "linear_out");
}

TensorId triangleProduct(ZooBuilder &b, TensorId pair, bool outgoing, const EvoformerForm &form)
{
    const auto inside = b.scope(outgoing ? "tri_mul_out" : "tri_mul_in");
    const std::int64_t width = lastOf(b, pair);
    const TensorId x = b.layerNorm(pair, "layer_norm_in");
    const auto factor = [&](const std::string &name) {
        const TensorId gate = sigmoid(b, b.linear(x, form.triangle, "linear_" + name + "_g"), name + ".gate");
        return product(b, b.linear(x, form.triangle, "linear_" + name + "_p"), gate, name);
    };
    const TensorId left = factor("a");
    const TensorId right = factor("b");
    TensorId y = b.one(OperatorKind::Einsum, {left, right},
        attributesOf({{"equation", outgoing ? "bikc,bjkc->bijc" : "bkic,bkjc->bijc"}}), "product");
    y = b.linear(b.layerNorm(y, "layer_norm_out"), width, "linear_z");
    const TensorId gate = sigmoid(b, b.linear(x, width, "linear_g"), "gate");
    return b.dropout(product(b, y, gate, "gated"), "dropout");
}

TensorId triangleAttention(ZooBuilder &b, TensorId pair, bool starting, const EvoformerForm &form)
{
    const auto inside = b.scope(starting ? "tri_att_start" : "tri_att_end");
    TensorId x = starting ? pair : b.transpose(pair, {0, 2, 1, 3}, "columns");
    x = b.layerNorm(x, "layer_norm");
    TensorId y = gatedAttention(b, x, pairBias(b, x, form.pairHeads), form.pairHeads, form.width);
    if (!starting)
        y = b.transpose(y, {0, 2, 1, 3}, "rows");
    return b.dropout(y, "dropout");
}

/// The MSA's and the pair representation.
using Representations = std::pair<TensorId, TensorId>;

Representations evoformerStack(
    ZooBuilder &b, Representations x, const ZooValues &values, const EvoformerForm &form)
{
    auto [msa, pair] = x;
    for (std::int64_t layer = 0; layer < values.integer("layers"); ++layer) {
        const auto inside = b.scope("blocks." + std::to_string(layer));
        msa = add(b, msa, rowAttention(b, msa, pair, form), "residual_1");
        msa = add(b, msa, columnAttention(b, msa, form), "residual_2");
        msa = add(b, msa, transition(b, msa, "msa_transition"), "residual_3");
        pair = add(b, pair, outerProductMean(b, msa, values.integer("pair"), form), "residual_4");
        pair = add(b, pair, triangleProduct(b, pair, true, form), "residual_5");
        pair = add(b, pair, triangleProduct(b, pair, false, form), "residual_6");
        pair = add(b, pair, triangleAttention(b, pair, true, form), "residual_7");
        pair = add(b, pair, triangleAttention(b, pair, false, form), "residual_8");
        pair = add(b, pair, transition(b, pair, "pair_transition"), "residual_9");
    }
    return {msa, pair};
}

/// What a pass begins with: the inputs, with what the pass before made of the first sequence and of the
/// pairs, normalised, and no gradient through it (supplement 1.10).
Representations recycled(ZooBuilder &b, Representations given, Representations made)
{
    const auto inside = b.scope("recycling");
    const auto detached = [&b](TensorId x, const char *name) {
        return b.one(OperatorKind::Identity, {x}, attributesOf({{"detached", 1}}), name);
    };
    const auto [msa, pair] = given;
    const Shape shape = b.shape(msa);
    if (shape.size() != 4)
        return given;
    const auto rows = [&](TensorId x, std::int64_t first, std::int64_t count, const char *name) {
        Shape out = shape;
        out[1] = count;
        return b.one(OperatorKind::Slice, {x},
            attributesOf({{"starts", Integers{0, first, 0, 0}}, {"steps", Integers{1, 1, 1, 1}}}), name,
            {{DataType::Float32, out}});
    };
    const TensorId last = b.layerNorm(detached(rows(made.first, 0, 1, "last_row"), "row"), "layer_norm_m");
    TensorId first = add(b, rows(msa, 0, 1, "first_row"), last, "add_m");
    if (shape[1] > 1)
        first = b.one(OperatorKind::Concat, {first, rows(msa, 1, shape[1] - 1, "other_rows")},
            attributesOf({{"axis", 1}}), "rows");
    return {first, add(b, pair, b.layerNorm(detached(made.second, "pair"), "layer_norm_z"), "add_z")};
}

} // namespace

Result<Graph> buildEvoformer(const ZooValues &values)
{
    const std::int64_t batch = values.integer("batch");
    const std::int64_t residues = values.integer("residues");
    const EvoformerForm form{.heads = values.integer("heads"),
        .pairHeads = values.integer("pair_heads"),
        .width = values.integer("head_width"),
        .triangle = values.integer("triangle")};
    ZooBuilder b("evoformer", values.real("dropout"));
    TensorId msa =
        b.input("msa", {DataType::Float32, {batch, values.integer("seqs"), residues, values.integer("msa")}});
    TensorId pair = b.input("pair", {DataType::Float32, {batch, residues, residues, values.integer("pair")}});
    const std::int64_t recycles = values.integer("recycles");
    const Representations given{msa, pair};
    Representations made;
    if (recycles > 0)
        b.shareWeights("recycle.");
    for (std::int64_t pass = 0; pass < recycles; ++pass) {
        const auto inside = b.scope("recycle." + std::to_string(pass));
        made = evoformerStack(b, pass == 0 ? given : recycled(b, given, made), values, form);
    }
    std::tie(msa, pair) = evoformerStack(b, recycles == 0 ? given : recycled(b, given, made), values, form);
    // The first sequence of the MSA is the protein itself.
    TensorId single = b.one(OperatorKind::Slice, {msa},
        attributesOf({{"starts", Integers{0, 0, 0, 0}}, {"steps", Integers{1, 1, 1, 1}}}), "first_row",
        {{DataType::Float32, {batch, 1, residues, values.integer("msa")}}});
    single = b.linear(b.reshape(single, {batch, residues, values.integer("msa")}, "single.input"),
        values.integer("single"), "linear");
    TensorId loss;
    {
        const auto inside = b.scope("loss");
        loss = add(b, b.meanSquare(msa, "msa"), b.meanSquare(pair, "pair"), "sum");
        loss = add(b, loss, b.meanSquare(single, "single"), "total");
    }
    return b.finish({loss}, loss);
}

} // namespace planloom
