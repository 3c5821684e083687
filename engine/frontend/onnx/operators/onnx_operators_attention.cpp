#include "engine/frontend/onnx/operators/onnx_attention.h"

#include "engine/frontend/writer/tensor_values.h"

#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

using Context = OnnxNodeContext;

// --- Attention (sets 23 and 24)
// -----------------------------------------------------------------------------

/// The mask up to its last key: keys behind it are hidden.
Result<TensorId> fullMask(Context &context, TensorId mask, std::int64_t keys)
{
    const TensorType type = context.graph().typeOf(mask);
    if (type.shape.empty() || type.shape.back() == keys || type.shape.back() == 1)
        return mask;
    if (type.shape.back() > keys)
        return context.invalid(
            "its mask has the shape " + toString(type.shape) + " for " + std::to_string(keys) + " keys");
    TensorType rest = type;
    rest.shape.back() = keys - type.shape.back();
    const bool boolean = type.dataType == DataType::Bool;
    auto hidden = context.graph().constants().filled(
        rest, boolean ? Number::ofInteger(0) : Number::ofReal(-std::numeric_limits<double>::infinity()));
    if (!hidden)
        return context.unsupported("its mask is too large to be padded at import");
    const auto axis = static_cast<std::int64_t>(type.shape.size()) - 1;
    return context.make(OperatorKind::Concat, {mask, context.graph().addConstant(std::move(hidden))},
        attributesFrom({{"axis", axis}}), {}, "mask_padded");
}

/// Keys and values with those of earlier calls in front; returned as outputs `slot`.
Result<TensorId> withPast(Context &context, TensorId x, std::size_t past, std::size_t slot, const char *name)
{
    if (context.has(past)) {
        if (context.rank(past) != 4)
            return context.invalid("its earlier " + std::string(name) + " have the shape "
                + toString(context.shape(past)) + ", where [batch heads sequence size] was expected");
        TRY(x,
            context.make(OperatorKind::Concat, {context.input(past), x},
                attributesFrom({{"axis", std::int64_t{2}}}), {}, std::string("all_") + name));
    }
    TRY_VOID(context.bind(slot, x));
    return x;
}

/// [b 1 s 1]: the place of each query, the queries being the last of their sequence's keys, and `more`.
Result<TensorId> placesOf(Context &context, TensorId lengths, std::int64_t queries, std::int64_t more)
{
    const TensorType type = context.graph().typeOf(lengths);
    TRY(TensorId ends, context.reshape(lengths, {elementCount(type.shape), 1, 1, 1}, "ends"));
    if (type.dataType != DataType::Int64) {
        const TensorType wanted{DataType::Int64, context.graph().typeOf(ends).shape};
        TRY(ends, context.make(OperatorKind::Cast, {ends}, {}, wanted, "ends_cast"));
    }
    TRY(const TensorId line, positionsFrom(context, more - queries, queries, "query_steps"));
    TRY(const TensorId places, context.reshape(line, {queries, 1}, "query_places"));
    return context.make(OperatorKind::Add, {ends, places}, {}, {}, "places");
}

/// How far a query sees to both sides of its place; -1: without end.
struct AttentionSides {
    std::int64_t left = -1;
    std::int64_t right = -1;
};

Result<AttentionSides> sidesOf(Context &context)
{
    AttentionSides sides;
    TRY(sides.left, context.integer("left_window_size", -1));
    TRY(sides.right, context.integer("right_window_size", -1));
    TRY(const std::int64_t causal, context.integer("is_causal", 0));
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    if (sides.left < -1 || sides.right < -1 || sides.left > kFar || sides.right > kFar)
        return context.invalid("its left_window_size is " + std::to_string(sides.left)
            + " and its right_window_size " + std::to_string(sides.right)
            + ", where -1 or a number of keys was expected");
    if (causal != 0)
        sides.right = 0;
    return sides;
}

/// Sides that differ from sequence to sequence, as masks.
Result<void> addSideMasks(
    Context &context, OnnxAttention &attention, AttentionSides sides, std::int64_t queries, std::int64_t keys)
{
    const TensorId lengths = context.input(6);
    TRY(const TensorId places, positionsFrom(context, 0, keys, "side_keys"));
    if (sides.right >= 0) {
        TRY(const TensorId end, placesOf(context, lengths, queries, sides.right + 1));
        TRY(const TensorId mask, context.make(OperatorKind::Less, {places, end}, {}, {}, "before"));
        attention.masks.push_back(mask);
    }
    if (sides.left >= 0) {
        TRY(const TensorId end, placesOf(context, lengths, queries, -sides.left - 1));
        TRY(const TensorId mask, context.make(OperatorKind::Greater, {places, end}, {}, {}, "behind"));
        attention.masks.push_back(mask);
    }
    return {};
}

/// Sides as an Attention's own reach where it has one, else as a known mask [s t].
Result<void> addSides(
    Context &context, OnnxAttention &attention, AttentionSides sides, std::int64_t queries, std::int64_t keys)
{
    if (sides.right == 0 || (sides.left >= 0 && sides.left == sides.right)) {
        attention.causal = sides.right == 0;
        attention.window = sides.left + 1;
        return {};
    }
    if (sides.left < 0 && sides.right < 0)
        return {};
    TensorData seen = filledTensor({DataType::Bool, {queries, keys}}, Number::ofInteger(0));
    if (!context.graph().constants().take(seen.type))
        return context.unsupported("its window is too large to be made a mask at import");
    for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t j = 0; j < keys; ++j) {
            const std::int64_t distance = j - i - attention.offset;
            const bool sees =
                (sides.left < 0 || distance >= -sides.left) && (sides.right < 0 || distance <= sides.right);
            seen.bytes[static_cast<std::size_t>(i * keys + j)] = std::byte{sees};
        }
    }
    attention.offset = 0;
    attention.masks.push_back(
        context.graph().addConstant(std::make_shared<const TensorData>(std::move(seen))));
    return {};
}

struct AttentionHeads {
    std::int64_t query = 0;
    std::int64_t key = 0;
};

Result<AttentionHeads> headsOf(Context &context)
{
    AttentionHeads heads;
    TRY(heads.query, context.integer("q_num_heads", 0));
    TRY(heads.key, context.integer("kv_num_heads", 0));
    if (heads.query < 1 || heads.key < 1)
        return context.invalid("its inputs have three dimensions, and q_num_heads is "
            + std::to_string(heads.query) + " and kv_num_heads " + std::to_string(heads.key)
            + ", where at least 1 was expected");
    return heads;
}

/// Queries, keys and values with heads in a dimension of their own, earlier keys in front.
Result<void> readOperands(Context &context, OnnxAttention &attention)
{
    attention.query = context.input(0);
    attention.key = context.input(1);
    attention.value = context.input(2);
    if (context.rank(0) == 3) {
        TRY(const AttentionHeads heads, headsOf(context));
        TRY(attention.query, divideHeads(context, attention.query, heads.query, "query"));
        TRY(attention.key, divideHeads(context, attention.key, heads.key, "key"));
        TRY(attention.value, divideHeads(context, attention.value, heads.key, "value"));
    }
    TRY(attention.key, withPast(context, attention.key, 4, 1, "keys"));
    TRY(attention.value, withPast(context, attention.value, 5, 2, "values"));
    for (const TensorId id : {attention.query, attention.key, attention.value}) {
        if (context.graph().typeOf(id).shape.size() != 4)
            return context.invalid("its queries, keys and values have the shapes "
                + toString(context.shape(0)) + ", " + toString(context.shape(1)) + " and "
                + toString(context.shape(2)) + ", where three or four dimensions of each were expected");
    }
    return {};
}

/// What hides keys: the mask, the lengths of sequences, causality.
Result<void> readVisibility(Context &context, OnnxAttention &attention)
{
    const std::int64_t queries = context.graph().typeOf(attention.query).shape[2];
    const std::int64_t keys = context.graph().typeOf(attention.key).shape[2];
    if (context.has(3)) {
        TRY(const TensorId mask, fullMask(context, context.input(3), keys));
        attention.masks.push_back(mask);
    }
    TRY(const AttentionSides sides, sidesOf(context));
    if (context.has(6)) {
        TRY(const TensorId present, firstKeys(context, context.input(6), keys));
        attention.masks.push_back(present);
        if (!context.has(4))
            return addSideMasks(context, attention, sides, queries, keys);
    }
    if (context.has(4))
        attention.offset = context.shape(4)[2];
    return addSides(context, attention, sides, queries, keys);
}

Result<void> importAttention(Context &context)
{
    OnnxAttention attention;
    TRY_VOID(readOperands(context, attention));
    TRY_VOID(readVisibility(context, attention));
    TRY(attention.softcap, context.real("softcap", 0.0));
    const auto width = static_cast<double>(context.graph().typeOf(attention.query).shape[3]);
    TRY(attention.scale, context.real("scale", 1 / std::sqrt(width)));
    if (!(attention.softcap >= 0) || !std::isfinite(attention.softcap) || !std::isfinite(attention.scale))
        return context.invalid("its softcap is " + std::to_string(attention.softcap) + " and its scale "
            + std::to_string(attention.scale) + ", where finite numbers were expected");
    TensorId y;
    if (context.wants(3)) { // scores are returned, too
        TRY(const std::int64_t mode, context.integer("qk_matmul_output_mode", 0));
        TRY(const OnnxAttentionSteps steps, attendInSteps(context, attention));
        const TensorId stages[] = {steps.scores, steps.capped, steps.masked, steps.probabilities};
        TRY_VOID(context.bind(3, stages[mode]));
        y = steps.y;
    } else {
        TRY(y, attend(context, attention));
    }
    if (context.rank(0) == 3) {
        TRY(y, joinHeads(context, y));
    }
    return context.bind(0, y);
}

// --- RotaryEmbedding (set 23)
// -------------------------------------------------------------------------------

Result<void> importRotaryEmbedding(Context &context)
{
    OnnxRotation rotation;
    rotation.x = context.input(0);
    rotation.cosine = context.input(1);
    rotation.sine = context.input(2);
    rotation.positions = context.input(3);
    TRY(const std::int64_t interleaved, context.integer("interleaved", 0));
    TRY(const std::int64_t width, context.integer("rotary_embedding_dim", 0));
    rotation.interleaved = interleaved != 0;
    const Shape shape = context.shape(0);
    if (shape.size() == 3) {
        TRY(const std::int64_t heads, context.integer("num_heads", 0));
        if (heads < 1 || shape[2] % heads != 0)
            return context.invalid("attribute 'num_heads' is " + std::to_string(heads)
                + " for an input of shape " + toString(shape));
        rotation.headsLast = true;
        TRY(rotation.x, context.reshape(rotation.x, {shape[0], shape[1], heads, shape[2] / heads}, "heads"));
    }
    const std::int64_t pairs = context.rank(1) == 0 ? 0 : context.shape(1).back();
    if (width != 0 && 2 * pairs != width)
        return context.invalid("attribute 'rotary_embedding_dim' is " + std::to_string(width)
            + ", but there are angles for " + std::to_string(2 * pairs) + " elements");
    TRY(TensorId y, rotate(context, rotation, {}));
    TRY(y, context.reshape(y, shape, "result"));
    return context.bind(0, y);
}

// --- TensorScatter (set 24)
// ---------------------------------------------------------------------------------

/// Writes updates into a cache from a place of each sample's own: a ScatterElements along the sequence.
Result<void> importTensorScatter(Context &context)
{
    TRY(const std::int64_t axis, context.axisAttribute(-2));
    TRY(const std::string mode, context.text("mode", "linear"));
    const Shape cache = context.shape(0);
    const Shape update = context.shape(1);
    const auto along = static_cast<std::size_t>(axis);
    if (axis == 0 || update.size() != cache.size() || update[along] > cache[along])
        return context.invalid("updates of shape " + toString(update) + " do not go into a cache of shape "
            + toString(cache) + " along dimension " + std::to_string(axis));
    Shape line(cache.size(), 1);
    line[along] = update[along];
    TRY(TensorId places, positionsFrom(context, 0, update[along], "steps"));
    TRY(places, context.reshape(places, line, "steps_along"));
    if (context.has(2)) {
        Shape column(cache.size(), 1);
        column[0] = cache[0];
        if (elementCount(context.shape(2)) != cache[0])
            return context.invalid("its write_indices have the shape " + toString(context.shape(2))
                + ", where one for each of " + std::to_string(cache[0]) + " samples was expected");
        TRY(const TensorId first, context.reshape(context.input(2), column, "first"));
        TRY(places, context.make(OperatorKind::Add, {first, places}, {}, {}, "places"));
    }
    if (mode == "circular") {
        const TensorId length = context.scalar(DataType::Int64, static_cast<double>(cache[along]));
        TRY(places, context.make(OperatorKind::Mod, {places, length}, {}, {}, "wrapped"));
    }
    TRY(const TensorId indices,
        context.make(OperatorKind::Expand, {places}, {}, TensorType{DataType::Int64, update}, "indices"));
    return context.finish(OperatorKind::ScatterElements, {context.input(0), indices, context.input(1)},
        attributesFrom({{"axis", axis}, {"reduction", std::string("none")}}));
}

} // namespace

const OnnxHandlers &onnxAttentionHandlers()
{
    static const OnnxHandlers kHandlers = {{"Attention", needs<3, importAttention>},
        {"RotaryEmbedding", needs<3, importRotaryEmbedding>},
        {"TensorScatter", needs<2, importTensorScatter>}};
    return kHandlers;
}

} // namespace planloom
