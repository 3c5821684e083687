// Operators of ONNX Runtime's own domain, com.microsoft, that exporters and its optimizer write
// (onnxruntime's docs/ContribOperators.md). Each is made of what the graph has.
#include "engine/frontend/onnx/operators/onnx_attention.h"

#include <cmath>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

/// Why a node is refused, by an attribute or input that is set.
Error refused(const Context &context, const std::string &what)
{
    return context.unsupported(what + " is not planned", "export the model for training, without caches");
}

// --- activations and products
// -------------------------------------------------------------------------------

Result<void> importContributedGelu(Context &context)
{
    const std::string &type = context.node().type;
    TensorId x = context.input(0);
    if (context.has(1)) {
        TRY(x, context.make(OperatorKind::Add, {x, context.input(1)}, {}, {}, "bias"));
    }
    return context.finish(OperatorKind::Gelu, {x},
        attributesFrom({{"approximate", std::string(type == "FastGelu" ? "tanh" : "none")}}));
}

/// x sigmoid(alpha x)
Result<void> importQuickGelu(Context &context)
{
    TRY(const double alpha, context.real("alpha", 1.702));
    const TensorId x = context.input(0);
    if (alpha == 1.0)
        return context.finish(OperatorKind::Silu, {x});
    const TensorId factor = context.scalar(context.type(0).dataType, alpha);
    TRY(const TensorId scaled, context.make(OperatorKind::Mul, {x, factor}, {}, {}, "scale"));
    TRY(const TensorId gate, context.make(OperatorKind::Sigmoid, {scaled}, {}, {}, "gate"));
    return context.finish(OperatorKind::Mul, {x, gate});
}

/// A factor of a FusedMatMul: its first dimension moved before the last but one (`batch`), then the last two
/// exchanged (`turn`).
Result<TensorId> turnedFactor(Context &context, std::size_t slot, bool batch, bool turn, const char *name)
{
    const std::int64_t rank = context.rank(slot);
    if (rank < 2 || (!batch && !turn))
        return context.input(slot);
    std::vector<std::int64_t> permutation;
    for (std::int64_t axis = 0; axis < rank; ++axis)
        permutation.push_back(axis);
    if (batch) {
        permutation.erase(permutation.begin());
        permutation.insert(permutation.end() - 1, 0);
    }
    if (turn)
        std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
    return context.make(OperatorKind::Transpose, {context.input(slot)},
        attributesFrom({{"permutation", permutation}}), {}, name);
}

/// alpha a b, either factor transposed.
Result<void> importFusedMatMul(Context &context)
{
    TRY(const double alpha, context.real("alpha", 1.0));
    std::vector<TensorId> factors;
    for (const std::size_t slot : {0U, 1U}) {
        TRY(const std::int64_t turn, context.integer(slot == 0 ? "transA" : "transB", 0));
        TRY(const std::int64_t batch, context.integer(slot == 0 ? "transBatchA" : "transBatchB", 0));
        TRY(const TensorId factor, turnedFactor(context, slot, batch != 0, turn != 0, slot == 0 ? "a" : "b"));
        factors.push_back(factor);
    }
    if (alpha == 1.0)
        return context.finish(OperatorKind::MatMul, factors);
    TRY(const TensorId product, context.make(OperatorKind::MatMul, factors, {}, {}, "product"));
    return context.finish(OperatorKind::Mul, {product, context.scalar(context.type(0).dataType, alpha)});
}

// --- normalisation
// ------------------------------------------------------------------------------------------

Result<void> importSimplifiedLayerNormalization(Context &context)
{
    if (context.wants(1))
        return context.keepUnknown("the statistics that it returns are not computed");
    TRY(const std::int64_t axis, context.axisAttribute(-1));
    TRY(const double epsilon, context.real("epsilon", 1e-5));
    return context.finish(OperatorKind::RmsNorm, {context.input(0), context.input(1)},
        attributesFrom({{"axis", axis}, {"epsilon", epsilon}}));
}

/// The sum of input, skip and bias, normalised over its last dimension: (x, skip, scale, [shift], [bias]), or
/// without a shift where `simplified`. Output 3 is the sum.
Result<void> skipNormalization(Context &context, bool simplified)
{
    TRY_VOID(context.require(3));
    if (context.wants(1) || context.wants(2))
        return context.keepUnknown("the statistics that it returns are not computed");
    TRY(const double epsilon, context.real("epsilon", 1e-12));
    const std::size_t biasSlot = simplified ? 3 : 4;
    TRY(TensorId sum, context.make(OperatorKind::Add, {context.input(0), context.input(1)}, {}, {}, "sum"));
    if (context.has(biasSlot)) {
        TRY(sum, context.make(OperatorKind::Add, {sum, context.input(biasSlot)}, {}, {}, "biased"));
    }
    TRY_VOID(context.bind(3, sum));
    std::vector<TensorId> inputs{sum, context.input(2)};
    if (!simplified && context.has(3))
        inputs.push_back(context.input(3));
    const auto axis = static_cast<std::int64_t>(context.graph().typeOf(sum).shape.size()) - 1;
    if (axis < 0)
        return context.invalid("its input is a single number, where dimensions were expected");
    return context.finish(simplified ? OperatorKind::RmsNorm : OperatorKind::LayerNorm, std::move(inputs),
        attributesFrom({{"axis", axis}, {"epsilon", epsilon}}));
}

// --- attention
// ----------------------------------------------------------------------------------------------

/// Positions [b s] of a rotation: as given, or counted from the one number that is.
Result<TensorId> rotaryPositions(Context &context, TensorId given, std::int64_t batch, std::int64_t sequence)
{
    const TensorType type = context.graph().typeOf(given);
    if (elementCount(type.shape) == batch * sequence && type.shape.size() == 2)
        return given;
    if (elementCount(type.shape) != 1)
        return context.invalid("its position_ids have the shape " + toString(type.shape) + ", where ["
            + std::to_string(batch) + " " + std::to_string(sequence) + "] or one number was expected");
    TRY(const TensorId first, context.reshape(given, {1, 1}, "first"));
    TRY(TensorId steps, positionsFrom(context, 0, sequence, "steps"));
    TRY(steps, context.reshape(steps, {1, sequence}, "steps_row"));
    TRY(const TensorId line, context.make(OperatorKind::Add, {first, steps}, {}, {}, "positions"));
    if (batch == 1)
        return line;
    return context.make(
        OperatorKind::Expand, {line}, {}, TensorType{DataType::Int64, {batch, sequence}}, "positions_each");
}

/// (x, position_ids, cos_cache, sin_cache); x is [b s (heads e)] or [b heads s e].
Result<void> importContributedRotary(Context &context)
{
    TRY(const std::int64_t interleaved, context.integer("interleaved", 0));
    OnnxRotation rotation;
    rotation.x = context.input(0);
    rotation.cosine = context.input(2);
    rotation.sine = context.input(3);
    rotation.interleaved = interleaved != 0;
    const Shape shape = context.shape(0);
    const std::int64_t width = context.rank(2) == 2 ? 2 * context.shape(2)[1] : 0;
    if ((shape.size() != 3 && shape.size() != 4) || width < 2)
        return context.invalid("its input has the shape " + toString(shape) + " and its angles "
            + toString(context.shape(2)) + ", where three or four dimensions, and two, were expected");
    rotation.headsLast = shape.size() == 3;
    if (rotation.headsLast) {
        TRY(std::int64_t heads, context.integer("num_heads", 0));
        heads = heads > 0 ? heads : shape[2] / width;
        if (heads < 1 || shape[2] % heads != 0)
            return context.invalid("attribute 'num_heads' is " + std::to_string(heads)
                + " for an input of shape " + toString(shape));
        TRY(rotation.x, context.reshape(rotation.x, {shape[0], shape[1], heads, shape[2] / heads}, "heads"));
    }
    TRY(rotation.positions,
        rotaryPositions(context, context.input(1), shape[0], shape[rotation.headsLast ? 1 : 2]));
    TRY(TensorId y, rotate(context, rotation, {}));
    TRY(y, context.reshape(y, shape, "result"));
    return context.bind(0, y);
}

/// Part `which` of a bias that is one behind another for queries, keys and values.
Result<TensorId> biased(Context &context, TensorId x, TensorId bias, std::int64_t first, const char *name)
{
    if (!bias)
        return x;
    const TensorType type = context.graph().typeOf(bias);
    const std::int64_t width = context.graph().typeOf(x).shape.back();
    if (type.shape.size() != 1 || first + width > type.shape[0])
        return context.invalid("its bias has the shape " + toString(type.shape) + ", where at least "
            + std::to_string(first + width) + " elements were expected");
    TRY(const TensorId part,
        context.make(OperatorKind::Slice, {bias},
            attributesFrom(
                {{"starts", std::vector<std::int64_t>{first}}, {"steps", std::vector<std::int64_t>{1}}}),
            TensorType{type.dataType, {width}}, std::string(name) + "_bias"));
    return context.make(OperatorKind::Add, {x, part}, {}, {}, std::string(name) + "_biased");
}

/// 0 where a padding mask of integers lets a key be seen, `hidden` elsewhere; [b 1 1 t] or [b 1 s t].
Result<TensorId> paddingMask(Context &context, TensorId mask, DataType type, double hidden)
{
    const TensorType given = context.graph().typeOf(mask);
    if (given.shape.size() != 2 && given.shape.size() != 3)
        return refused(context, "a key_padding_mask of shape " + toString(given.shape));
    Shape shape = given.shape;
    shape.insert(shape.begin() + 1, 4 - shape.size(), 1);
    TRY(const TensorId spread, context.reshape(mask, shape, "padding"));
    TRY(const TensorId shown,
        context.make(OperatorKind::Cast, {spread}, {}, TensorType{DataType::Bool, shape}, "shown"));
    return context.make(
        OperatorKind::Where, {shown, context.scalar(type, 0), context.scalar(type, hidden)}, {}, {}, "mask");
}

/// Scale, which these nodes leave out or write as 0 for 1 / sqrt(size of a head).
Result<double> contributedScale(Context &context, std::int64_t width)
{
    TRY(const double scale, context.real("scale", 0.0));
    return scale == 0 ? 1 / std::sqrt(static_cast<double>(width)) : scale;
}

/// (query, key, value, [bias], [key_padding_mask], [attention_bias], [past_key], [past_value], ..)
Result<void> importMultiHeadAttention(Context &context)
{
    if (!context.has(1) || !context.has(2) || context.rank(0) != 3)
        return refused(context, "packed queries, keys and values");
    for (std::size_t slot = 6; slot < context.inputCount(); ++slot) {
        if (context.has(slot))
            return refused(context, "a cache of earlier keys and values");
    }
    TRY(const std::int64_t heads, context.integer("num_heads", 0));
    TRY(const std::int64_t causal, context.integer("unidirectional", 0));
    TRY(const double hidden, context.real("mask_filter_value", -10000.0));
    const TensorId bias = context.input(3);
    OnnxAttention attention;
    const std::int64_t width = context.shape(0)[2];
    TRY(attention.query, biased(context, context.input(0), bias, 0, "query"));
    TRY(attention.query, divideHeads(context, attention.query, heads, "query"));
    attention.key = context.input(1);
    attention.value = context.input(2);
    if (context.rank(1) == 3) {
        TRY(attention.key, biased(context, attention.key, bias, width, "key"));
        TRY(attention.key, divideHeads(context, attention.key, heads, "key"));
        TRY(attention.value, biased(context, attention.value, bias, 2 * width, "value"));
        TRY(attention.value, divideHeads(context, attention.value, heads, "value"));
    } else if (bias) {
        return refused(context, "a bias of keys that are divided into heads already");
    }
    const DataType type = context.type(0).dataType;
    if (context.has(4)) {
        TRY(const TensorId mask, paddingMask(context, context.input(4), type, hidden));
        attention.masks.push_back(mask);
    }
    if (context.has(5))
        attention.masks.push_back(context.input(5));
    attention.causal = causal != 0;
    TRY(attention.scale, contributedScale(context, width / heads));
    TRY_VOID(context.bind(1, attention.key));
    TRY_VOID(context.bind(2, attention.value));
    if (context.wants(3))
        return refused(context, "the scores that it returns");
    TRY(TensorId y, attend(context, attention));
    TRY(y, joinHeads(context, y));
    return context.bind(0, y);
}

/// Queries, keys and values that one tensor has one behind another: [b s ((heads + 2 keyHeads) e)].
Result<void> unpack(Context &context, std::int64_t heads, std::int64_t keyHeads, TensorId parts[3])
{
    const std::int64_t all = heads + 2 * keyHeads;
    if (context.rank(0) != 3 || context.shape(0)[2] % all != 0)
        return context.invalid("its packed queries, keys and values have the shape "
            + toString(context.shape(0)) + ", which do not divide into " + std::to_string(all) + " heads");
    const std::int64_t width = context.shape(0)[2] / all;
    const std::vector<std::int64_t> sizes{heads * width, keyHeads * width, keyHeads * width};
    TRY(const auto split,
        context.makeMany(OperatorKind::Split, {context.input(0)},
            attributesFrom({{"axis", std::int64_t{2}}, {"sizes", sizes}}), {}, "unpacked"));
    for (std::size_t i = 0; i < 3; ++i)
        parts[i] = split[i];
    return {};
}

/// True if the cache of slot `slot` is there and holds anything.
bool hasCache(const Context &context, std::size_t slot)
{
    return context.has(slot) && elementCount(context.shape(slot)) > 0;
}

/// (query, [key], [value], [past_key], [past_value], seqlens_k, total_sequence_length, [cos_cache],
/// [sin_cache], [position_ids], [attention_bias], ..), where nothing was kept of earlier calls: causal, and
/// the padding at the ends of sequences is seen by itself alone.
Result<void> importGroupQueryAttention(Context &context)
{
    TRY(const std::int64_t heads, context.integer("num_heads", 0));
    TRY(const std::int64_t keyHeads, context.integer("kv_num_heads", 0));
    TRY(const std::int64_t rotates, context.integer("do_rotary", 0));
    TRY(const std::int64_t interleaved, context.integer("rotary_interleaved", 0));
    TRY(const std::int64_t window, context.integer("local_window_size", -1));
    if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0)
        return context.invalid("its num_heads is " + std::to_string(heads) + " and its kv_num_heads "
            + std::to_string(keyHeads) + ", where numbers that divide were expected");
    if (hasCache(context, 3) || hasCache(context, 4))
        return refused(context, "a cache of earlier keys and values");
    if (context.has(11))
        return refused(context, "a softmax with a sink");
    TensorId parts[3] = {context.input(0), context.input(1), context.input(2)};
    if (!context.has(1)) {
        TRY_VOID(unpack(context, heads, keyHeads, parts));
    } else {
        TRY_VOID(context.require(3));
    }
    OnnxAttention attention;
    TRY(attention.query, divideHeads(context, parts[0], heads, "query"));
    TRY(attention.key, divideHeads(context, parts[1], keyHeads, "key"));
    TRY(attention.value, divideHeads(context, parts[2], keyHeads, "value"));
    if (rotates != 0) {
        if (!context.has(7) || !context.has(8))
            return context.invalid("it rotates, but cos_cache or sin_cache is missing");
        const Shape shape = context.graph().typeOf(attention.query).shape;
        OnnxRotation rotation;
        rotation.cosine = context.input(7);
        rotation.sine = context.input(8);
        rotation.interleaved = interleaved != 0;
        const TensorId first = context.has(9) ? context.input(9) : context.scalar(DataType::Int64, 0);
        TRY(rotation.positions, rotaryPositions(context, first, shape[0], shape[2]));
        rotation.x = attention.query;
        TRY(attention.query, rotate(context, rotation, "query_rotary"));
        rotation.x = attention.key;
        TRY(attention.key, rotate(context, rotation, "key_rotary"));
    }
    TRY_VOID(context.bind(1, attention.key));
    TRY_VOID(context.bind(2, attention.value));
    if (context.has(10))
        attention.masks.push_back(context.input(10));
    attention.causal = true;
    attention.window = window > 0 ? window : 0;
    TRY(attention.softcap, context.real("softcap", 0.0));
    TRY(attention.scale, contributedScale(context, context.graph().typeOf(attention.query).shape.back()));
    TRY(TensorId y, attend(context, attention));
    TRY(y, joinHeads(context, y));
    return context.bind(0, y);
}

} // namespace

const OnnxHandlers &onnxContributedHandlers()
{
    static const OnnxHandlers kHandlers = {{"Gelu", needs<1, importContributedGelu>},
        {"FastGelu", needs<1, importContributedGelu>}, {"BiasGelu", needs<1, importContributedGelu>},
        {"QuickGelu", needs<1, importQuickGelu>}, {"FusedMatMul", needs<2, importFusedMatMul>},
        {"SimplifiedLayerNormalization", needs<2, importSimplifiedLayerNormalization>},
        {"SkipLayerNormalization", [](Context &context) { return skipNormalization(context, false); }},
        {"SkipSimplifiedLayerNormalization",
            [](Context &context) { return skipNormalization(context, true); }},
        {"RotaryEmbedding", needs<4, importContributedRotary>},
        {"MultiHeadAttention", needs<1, importMultiHeadAttention>},
        {"GroupQueryAttention", needs<1, importGroupQueryAttention>}};
    return kHandlers;
}

} // namespace planloom
