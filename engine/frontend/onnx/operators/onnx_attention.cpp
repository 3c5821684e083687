#include "engine/frontend/onnx/operators/onnx_attention.h"

#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/attention.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

std::string suffixed(std::string_view suffix, const char *more)
{
    return suffix.empty() ? std::string(more) : std::string(suffix) + "_" + more;
}

/// Additive masks in the queries' element type.
Result<std::vector<TensorId>> masksInType(OnnxNodeContext &context, const OnnxAttention &attention)
{
    const DataType type = context.graph().typeOf(attention.query).dataType;
    std::vector<TensorId> masks;
    for (TensorId mask : attention.masks) {
        const TensorType &own = context.graph().typeOf(mask);
        if (own.dataType != DataType::Bool && own.dataType != type) {
            const TensorType wanted{type, own.shape};
            TRY(mask, context.make(OperatorKind::Cast, {mask}, {}, wanted, "mask_cast"));
        }
        masks.push_back(mask);
    }
    return masks;
}

/// Key heads repeated for the query heads that look at them: [b G t e] -> [b H t e].
Result<TensorId> copiedHeads(
    OnnxNodeContext &context, TensorId x, std::int64_t heads, std::string_view suffix)
{
    const TensorType type = context.graph().typeOf(x);
    const Shape &s = type.shape;
    if (s[1] == heads)
        return x;
    if (s[1] < 1 || heads % s[1] != 0)
        return context.invalid(std::to_string(heads) + " query heads do not divide into groups for "
            + std::to_string(s[1]) + " key heads");
    TRY(const TensorId apart, context.reshape(x, {s[0], s[1], 1, s[2], s[3]}, suffixed(suffix, "apart")));
    const TensorType copied{type.dataType, {s[0], s[1], heads / s[1], s[2], s[3]}};
    TRY(const TensorId copies,
        context.make(OperatorKind::Expand, {apart}, {}, copied, suffixed(suffix, "copies")));
    return context.reshape(copies, {s[0], heads, s[2], s[3]}, suffixed(suffix, "heads"));
}

/// True where a query may look, by causality and window: known, [s t].
Result<TensorId> reachOf(
    OnnxNodeContext &context, const OnnxAttention &attention, std::int64_t queries, std::int64_t keys)
{
    AttentionReach reach{attention.causal, attention.offset, attention.window};
    TensorData seen = filledTensor({DataType::Bool, {queries, keys}}, Number::ofInteger(0));
    if (!context.graph().constants().take(seen.type))
        return context.unsupported("its mask is too large to be made at import");
    for (std::int64_t i = 0; i < queries; ++i) {
        const Range range = reach.keysOf(i, keys);
        for (std::int64_t j = range.begin; j < range.end; ++j)
            seen.bytes[static_cast<std::size_t>(i * keys + j)] = std::byte{1};
    }
    return context.graph().addConstant(std::make_shared<const TensorData>(std::move(seen)));
}

} // namespace

Result<TensorId> attend(OnnxNodeContext &context, const OnnxAttention &attention)
{
    Attributes attributes = attributesFrom({{"scale", attention.scale}});
    if (attention.causal)
        attributes.set("causal", std::int64_t{1});
    if (attention.offset != 0)
        attributes.set("offset", attention.offset);
    if (attention.window != 0)
        attributes.set("window", attention.window);
    if (attention.softcap != 0)
        attributes.set("softcap", attention.softcap);
    std::vector<TensorId> inputs{attention.query, attention.key, attention.value};
    TRY(const auto masks, masksInType(context, attention));
    inputs.insert(inputs.end(), masks.begin(), masks.end());
    TRY(const auto outputs,
        context.makeMany(OperatorKind::Attention, std::move(inputs), std::move(attributes)));
    return outputs.front();
}

Result<OnnxAttentionSteps> attendInSteps(OnnxNodeContext &context, const OnnxAttention &attention)
{
    using enum OperatorKind;
    const TensorType query = context.graph().typeOf(attention.query);
    const DataType type = query.dataType;
    if (query.shape.size() != 4 || context.graph().typeOf(attention.key).shape.size() != 4
        || context.graph().typeOf(attention.value).shape.size() != 4)
        return context.invalid("its queries have the shape " + toString(query.shape)
            + ", where [batch heads sequence size] was expected of queries, keys and values");
    TRY(const TensorId key, copiedHeads(context, attention.key, query.shape[1], "key"));
    TRY(const TensorId value, copiedHeads(context, attention.value, query.shape[1], "value"));
    TRY(const TensorId turned,
        context.make(Transpose, {key},
            attributesFrom({{"permutation", std::vector<std::int64_t>{0, 1, 3, 2}}}), {}, "turned"));
    TRY(const TensorId product, context.make(MatMul, {attention.query, turned}, {}, {}, "product"));
    OnnxAttentionSteps steps;
    TRY(steps.scores, context.make(Mul, {product, context.scalar(type, attention.scale)}, {}, {}, "scores"));
    steps.capped = steps.scores;
    if (attention.softcap != 0) {
        const TensorId cap = context.scalar(type, attention.softcap);
        TRY(const TensorId part, context.make(Div, {steps.scores, cap}, {}, {}, "part"));
        TRY(const TensorId bent, context.make(Tanh, {part}, {}, {}, "bent"));
        TRY(steps.capped, context.make(Mul, {bent, cap}, {}, {}, "capped"));
    }
    TRY(auto masks, masksInType(context, attention));
    if (attention.causal || attention.window != 0) {
        TRY(const TensorId seen,
            reachOf(context, attention, query.shape[2], context.graph().typeOf(key).shape[2]));
        masks.push_back(seen);
    }
    steps.masked = steps.capped;
    const TensorId hidden = context.scalar(type, -std::numeric_limits<double>::infinity());
    for (const TensorId mask : masks) {
        if (context.graph().typeOf(mask).dataType == DataType::Bool) {
            TRY(steps.masked, context.make(Where, {mask, steps.masked, hidden}, {}, {}, "seen"));
        } else {
            TRY(steps.masked, context.make(Add, {steps.masked, mask}, {}, {}, "masked"));
        }
    }
    TRY(steps.probabilities,
        context.make(Softmax, {steps.masked}, attributesFrom({{"axis", std::int64_t{3}}}), {}, "weights"));
    if (!masks.empty()) { // a query that sees nothing has no weights
        TRY(const TensorId nothing, context.make(IsNaN, {steps.probabilities}, {}, {}, "nothing"));
        TRY(steps.probabilities,
            context.make(
                Where, {nothing, context.scalar(type, 0), steps.probabilities}, {}, {}, "probabilities"));
    }
    TRY(steps.y, context.make(MatMul, {steps.probabilities, value}));
    return steps;
}

Result<TensorId> divideHeads(
    OnnxNodeContext &context, TensorId x, std::int64_t heads, std::string_view suffix)
{
    const Shape shape = context.graph().typeOf(x).shape;
    if (shape.size() != 3 || heads < 1 || shape[2] % heads != 0)
        return context.invalid("a value of shape " + toString(shape) + " does not divide into "
            + std::to_string(heads) + " heads along its last of three dimensions");
    TRY(const TensorId apart,
        context.reshape(x, {shape[0], shape[1], heads, shape[2] / heads}, suffixed(suffix, "apart")));
    return context.make(OperatorKind::Transpose, {apart},
        attributesFrom({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}), {},
        suffixed(suffix, "heads"));
}

Result<TensorId> joinHeads(OnnxNodeContext &context, TensorId x)
{
    const Shape shape = context.graph().typeOf(x).shape;
    TRY(const TensorId turned,
        context.make(OperatorKind::Transpose, {x},
            attributesFrom({{"permutation", std::vector<std::int64_t>{0, 2, 1, 3}}}), {}, "joined"));
    return context.reshape(turned, {shape[0], shape[2], shape[1] * shape[3]}, "result");
}

Result<TensorId> positionsFrom(
    OnnxNodeContext &context, std::int64_t first, std::int64_t count, std::string_view suffix)
{
    return context.make(OperatorKind::Range, {},
        attributesFrom({{"start", first}, {"delta", std::int64_t{1}}}), TensorType{DataType::Int64, {count}},
        suffix);
}

Result<TensorId> firstKeys(OnnxNodeContext &context, TensorId lengths, std::int64_t keys)
{
    const TensorType type = context.graph().typeOf(lengths);
    TRY(TensorId ends, context.reshape(lengths, {elementCount(type.shape), 1, 1, 1}, "lengths"));
    if (type.dataType != DataType::Int64) {
        const TensorType wanted{DataType::Int64, context.graph().typeOf(ends).shape};
        TRY(ends, context.make(OperatorKind::Cast, {ends}, {}, wanted, "lengths_cast"));
    }
    TRY(const TensorId places, positionsFrom(context, 0, keys, "keys_places"));
    return context.make(OperatorKind::Less, {places, ends}, {}, {}, "present");
}

namespace {

/// Angles [b s w/2], picked by positions where there are any, for both elements of every pair:
/// [b 1 s w] or [b s 1 w].
Result<TensorId> angles(
    OnnxNodeContext &context, TensorId cache, const OnnxRotation &rotation, const std::string &suffix)
{
    using enum OperatorKind;
    const auto axis = [](std::int64_t value) { return attributesFrom({{"axis", value}}); };
    TensorId picked = cache;
    if (rotation.positions) {
        TRY(picked, context.make(Gather, {cache, rotation.positions}, axis(0), {}, suffix + "_picked"));
    }
    const TensorType type = context.graph().typeOf(picked);
    if (type.shape.size() != 3)
        return context.invalid("its angles have the shape " + toString(type.shape)
            + ", where [batch sequence pairs] was expected");
    const auto [batch, sequence, pairs] = std::tuple(type.shape[0], type.shape[1], type.shape[2]);
    TensorId both;
    if (rotation.interleaved) {
        TRY(const TensorId apart, context.reshape(picked, {batch, sequence, pairs, 1}, suffix + "_apart"));
        const TensorType copied{type.dataType, {batch, sequence, pairs, 2}};
        TRY(both, context.make(Expand, {apart}, {}, copied, suffix + "_both"));
    } else {
        TRY(both, context.make(Concat, {picked, picked}, axis(2), {}, suffix + "_both"));
    }
    return context.reshape(both,
        rotation.headsLast ? Shape{batch, sequence, 1, 2 * pairs} : Shape{batch, 1, sequence, 2 * pairs},
        suffix + "_row");
}

} // namespace

Result<TensorId> rotate(OnnxNodeContext &context, const OnnxRotation &rotation, std::string_view suffix)
{
    using enum OperatorKind;
    const std::string name(suffix);
    TRY(const TensorId cosine, angles(context, rotation.cosine, rotation, suffixed(suffix, "cos")));
    TRY(const TensorId sine, angles(context, rotation.sine, rotation, suffixed(suffix, "sin")));
    const Shape shape = context.graph().typeOf(rotation.x).shape;
    const std::int64_t width = context.graph().typeOf(cosine).shape.back();
    if (shape.size() != 4 || width > shape[3] || context.graph().typeOf(sine).shape.back() != width)
        return context.invalid("its angles are for " + std::to_string(width)
            + " elements, and its input has the shape " + toString(shape));
    const Attributes attributes = attributesFrom({{"interleaved", std::int64_t{rotation.interleaved}}});
    if (width == shape[3])
        return context.make(Rotary, {rotation.x, cosine, sine}, attributes, {}, suffix);
    const std::vector<std::int64_t> sizes{width, shape[3] - width};
    TRY(const auto parts,
        context.makeMany(Split, {rotation.x}, attributesFrom({{"axis", std::int64_t{3}}, {"sizes", sizes}}),
            {}, suffixed(suffix, "parts")));
    TRY(const TensorId rotated,
        context.make(Rotary, {parts[0], cosine, sine}, attributes, {}, suffixed(suffix, "rotated")));
    return context.make(Concat, {rotated, parts[1]}, attributesFrom({{"axis", std::int64_t{3}}}), {}, suffix);
}

} // namespace planloom
