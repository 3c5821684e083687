// Swin Transformer (arXiv:2103.14030, as in microsoft/Swin-Transformer).
#include "engine/frontend/passes/batch/separate_windows.h"
#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/passes/scopes/scopes.h"
#include "engine/frontend/zoo/zoo_parts.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// One stage: `size` x `size` tokens in windows of `window` x `window`.
struct Stage {
    std::int64_t size = 0;
    std::int64_t window = 0;
    std::int64_t heads = 0;
    TensorId index{}; ///< Which entry of the bias table belongs to a pair of places, [w*w w*w].
    TensorId mask{}; ///< Bias that keeps regions of shifted windows apart, [n 1 w*w w*w]; invalid if there
                     ///< is one window.
};

TensorId biasIndex(ZooBuilder &b, std::int64_t window)
{
    const std::int64_t places = window * window;
    std::vector<std::int64_t> index;
    index.reserve(static_cast<std::size_t>(places * places));
    for (std::int64_t i = 0; i < places; ++i) {
        for (std::int64_t j = 0; j < places; ++j) {
            const std::int64_t rows = i / window - j / window + window - 1;
            const std::int64_t columns = i % window - j % window + window - 1;
            index.push_back(rows * (2 * window - 1) + columns);
        }
    }
    return b.constant("relative_position_index", integerData({places, places}, index));
}

/// After the shift a window at the border holds tokens from up to four regions of the image, which must not
/// see each other: 0 within a region, -100 across.
TensorId shiftMask(ZooBuilder &b, std::int64_t size, std::int64_t window)
{
    const std::int64_t across = size / window;
    const std::int64_t places = window * window;
    const auto band = [&](std::int64_t position) -> std::int64_t {
        if (position < size - window)
            return 0;
        return position < size - window / 2 ? 1 : 2;
    };
    std::vector<std::int64_t> regions;
    regions.reserve(static_cast<std::size_t>(size * size));
    for (std::int64_t n = 0; n < across * across; ++n) {
        for (std::int64_t i = 0; i < places; ++i) {
            const std::int64_t row = n / across * window + i / window;
            const std::int64_t column = n % across * window + i % window;
            regions.push_back(3 * band(row) + band(column));
        }
    }
    const TensorId ids = b.constant("regions", integerData({across * across, places}, regions));
    const TensorId same = b.one(OperatorKind::Equal,
        {b.reshape(ids, {across * across, 1, 1, places}, "columns"),
            b.reshape(ids, {across * across, 1, places, 1}, "rows")},
        {}, "same_region");
    return b.one(OperatorKind::Where, {same, b.scalar(0), b.scalar(-100)}, {}, "attn_mask");
}

/// Rotates dimension `axis` of x [b h w c] by `shift` to the front.
TensorId roll(ZooBuilder &b, TensorId x, std::size_t axis, std::int64_t shift, const std::string &name)
{
    const Shape in = b.shape(x);
    if (in.size() != 4)
        return x;
    const auto part = [&](std::int64_t begin, std::int64_t extent, const char *which) {
        Integers starts(4, 0);
        starts[axis] = begin;
        Shape out = in;
        out[axis] = extent;
        return b.one(OperatorKind::Slice, {x}, attributesOf({{"starts", starts}, {"steps", Integers(4, 1)}}),
            name + which, {{DataType::Float32, out}});
    };
    const TensorId front = part(shift, in[axis] - shift, ".front");
    const TensorId back = part(0, shift, ".back");
    return b.one(
        OperatorKind::Concat, {front, back}, attributesOf({{"axis", static_cast<std::int64_t>(axis)}}), name);
}

TensorId windowAttention(ZooBuilder &b, TensorId x, const Stage &stage, bool shifted)
{
    const auto inside = b.scope("attn");
    const Shape in = b.shape(x); // [b*n, w*w, c]
    if (in.size() != 3)
        return x;
    const std::int64_t width = in[2];
    // Weights of their own, as in GPT: heads can be split between devices.
    TensorId query = b.splitHeads(b.linear(x, width, "q"), stage.heads, "query");
    TensorId key = b.splitHeads(b.linear(x, width, "k"), stage.heads, "key");
    TensorId value = b.splitHeads(b.linear(x, width, "v"), stage.heads, "value");
    const std::int64_t entries = (2 * stage.window - 1) * (2 * stage.window - 1);
    const TensorId table = b.weight("relative_position_bias_table", {entries, stage.heads});
    const TensorId bias =
        b.transpose(b.embedding(table, stage.index, "relative_position_bias"), {2, 0, 1}, "bias.transpose");
    ZooAttention form{.scale = 1 / std::sqrt(static_cast<double>(width / stage.heads)), .masks = {bias}};
    const Shape apart = b.shape(query);
    if (apart.size() != 4)
        return x;
    if (shifted) { // windows have a dimension of their own, along which their masks differ
        const std::int64_t windows = (stage.size / stage.window) * (stage.size / stage.window);
        const auto byWindow = [&](TensorId t, const char *name) {
            return b.reshape(t, {in[0] / windows, windows, apart[1], apart[2], apart[3]}, name);
        };
        query = byWindow(query, "query.windows");
        key = byWindow(key, "key.windows");
        value = byWindow(value, "value.windows");
        form.masks.push_back(stage.mask);
    }
    TensorId context = b.attention(query, key, value, form);
    if (shifted)
        context = b.reshape(context, apart, "context.joined");
    context = b.mergeHeads(context, "context");
    return b.dropout(b.linear(context, width, "proj"), "proj_drop");
}

/// x [b l c] -> [b l c]
TensorId swinBlock(ZooBuilder &b, TensorId x, const Stage &stage, bool shifted)
{
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    const std::int64_t across = stage.size / stage.window;
    const std::int64_t w = stage.window;
    const std::int64_t shift = w / 2;
    TensorId y = b.reshape(b.layerNorm(x, "norm1"), {in[0], stage.size, stage.size, in[2]}, "image");
    if (shifted)
        y = roll(b, roll(b, y, 1, shift, "shift_rows"), 2, shift, "shift_columns");
    y = b.reshape(y, {in[0], across, w, across, w, in[2]}, "windows");
    y = b.transpose(y, {0, 1, 3, 2, 4, 5}, "windows.transpose");
    y = windowAttention(
        b, b.reshape(y, {in[0] * across * across, w * w, in[2]}, "windows.merge"), stage, shifted);
    y = b.reshape(y, {in[0], across, across, w, w, in[2]}, "unwindow");
    y = b.transpose(y, {0, 1, 3, 2, 4, 5}, "unwindow.transpose");
    y = b.reshape(y, {in[0], stage.size, stage.size, in[2]}, "unwindow.merge");
    if (shifted)
        y = roll(
            b, roll(b, y, 1, stage.size - shift, "unshift_rows"), 2, stage.size - shift, "unshift_columns");
    x = b.one(OperatorKind::Add, {x, b.reshape(y, in, "tokens")}, {}, "residual_1");
    y = b.layerNorm(x, "norm2");
    {
        const auto inside = b.scope("mlp");
        y = b.linear(y, 4 * in[2], "fc1");
        y = b.one(OperatorKind::Gelu, {y}, attributesOf({{"approximate", "none"}}), "act");
        y = b.dropout(b.linear(y, in[2], "fc2"), "drop");
    }
    return b.one(OperatorKind::Add, {x, y}, {}, "residual_2");
}

/// Joins 2 x 2 neighbours: [b l c] -> [b l/4 2c].
TensorId mergePatches(ZooBuilder &b, TensorId x, std::int64_t size)
{
    const auto inside = b.scope("downsample");
    const Shape in = b.shape(x);
    if (in.size() != 3)
        return x;
    x = b.reshape(x, {in[0], size / 2, 2, size / 2, 2, in[2]}, "neighbours");
    x = b.transpose(x, {0, 1, 3, 4, 2, 5}, "neighbours.transpose");
    x = b.reshape(x, {in[0], size * size / 4, 4 * in[2]}, "neighbours.merge");
    return b.linear(b.layerNorm(x, "norm"), 2 * in[2], "reduction", false);
}

} // namespace

Result<Graph> buildSwin(const ZooValues &values)
{
    const std::int64_t batch = values.integer("batch");
    const std::int64_t image = values.integer("image");
    const std::int64_t patch = values.integer("patch");
    const std::int64_t hidden = values.integer("hidden");
    const std::int64_t heads = values.integer("heads");
    const std::int64_t window = values.integer("window");
    if (hidden % heads != 0)
        return values.wrong(
            "heads", "The number of heads must divide hidden (" + std::to_string(hidden) + ").");
    if (image % (patch * 8) != 0)
        return values.wrong(
            "image", "The image must be a multiple of 8 patches (" + std::to_string(8 * patch) + " pixels).");
    for (std::int64_t stage = 0; stage < 4; ++stage) {
        const std::int64_t size = image / patch >> stage;
        if (size > window && size % window != 0) {
            return values.wrong("window",
                "The window must divide the " + std::to_string(size) + " rows of tokens of stage "
                    + std::to_string(stage) + ".");
        }
    }
    ZooBuilder b("swin", values.real("dropout"));
    TensorId x = b.input("image", {DataType::Float32, {batch, 3, image, image}});
    const TensorId labels = b.input("labels", {DataType::Int64, {batch}});
    {
        const auto inside = b.scope("patch_embed");
        const std::int64_t size = image / patch;
        x = b.one(OperatorKind::Conv,
            {x, b.weight("proj.weight", {hidden, 3, patch, patch}), b.weight("proj.bias", {hidden})},
            attributesOf({{"strides", Integers{patch, patch}}, {"pads", Integers{0, 0, 0, 0}},
                {"dilations", Integers{1, 1}}, {"group", 1}}),
            "proj");
        x = b.transpose(b.reshape(x, {batch, hidden, size * size}, "flatten"), {0, 2, 1}, "tokens");
        x = b.dropout(b.layerNorm(x, "norm"), "drop");
    }
    for (std::int64_t number = 0; number < 4; ++number) {
        const auto inside = b.scope("layers." + std::to_string(number));
        Stage stage{.size = image / patch >> number, .heads = heads << number};
        stage.window = std::min(window, stage.size);
        stage.index = biasIndex(b, stage.window);
        const bool shifts = stage.size > stage.window && stage.window > 1;
        if (shifts)
            stage.mask = shiftMask(b, stage.size, stage.window);
        const std::int64_t blocks = number == 2 ? values.integer("layers") : 2;
        for (std::int64_t block = 0; block < blocks; ++block) {
            const auto within = b.scope("blocks." + std::to_string(block));
            x = swinBlock(b, x, stage, shifts && block % 2 == 1);
        }
        if (number < 3)
            x = mergePatches(b, x, stage.size);
    }
    x = b.layerNorm(x, "norm");
    const std::int64_t tokens = b.shape(x).size() == 3 ? b.shape(x)[1] : 1;
    x = b.one(OperatorKind::ReduceMean, {x},
        attributesOf({{"axes", Integers{1}}, {"keepdims", 0}, {"count", tokens}}), "avgpool");
    const TensorId loss = b.meanLoss(b.linear(x, values.integer("classes"), "head"), labels);
    TRY(Graph graph, b.finish({loss}, loss));
    if (separateWindows(graph) > 0) {
        annotateOperators(graph);
        findCopies(graph);
    }
    return graph;
}

} // namespace planloom
