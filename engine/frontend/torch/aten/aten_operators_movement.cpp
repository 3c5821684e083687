#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

// --- parts -------------------------------------------------------------------------------------------------

Result<void> atenCat(AtenContext &context)
{
    TRY(const auto all, context.tensors("tensors"));
    std::vector<TensorId> parts;
    for (const TensorId part : all) {
        if (context.shapeOf(part) != Shape{0}) // PyTorch leaves out what is empty so
            parts.push_back(part);
    }
    if (parts.empty())
        return context.invalid("it joins nothing");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(parts.front()), 0));
    DataType type = context.typeOf(parts.front()).dataType;
    for (const TensorId part : parts)
        type =
            isFloating(type) || type == context.typeOf(part).dataType ? type : context.typeOf(part).dataType;
    for (TensorId &part : parts) {
        TRY(part, context.cast(part, type));
    }
    TRY(const TensorId y, context.concat(std::move(parts), axis, ""));
    return context.bind(0, y);
}

Result<void> atenStack(AtenContext &context)
{
    TRY(auto parts, context.tensors("tensors"));
    if (parts.empty())
        return context.invalid("it joins nothing");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(parts.front()) + 1, 0));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        Shape shape = context.shapeOf(parts[i]);
        shape.insert(shape.begin() + axis, 1);
        TRY(parts[i], context.reshape(parts[i], std::move(shape), "part_" + std::to_string(i)));
    }
    TRY(const TensorId y, context.concat(std::move(parts), axis, ""));
    return context.bind(0, y);
}

/// Divides dimension `axis` into parts of these sizes, one for each result.
Result<void> splitInto(AtenContext &context, TensorId x, std::int64_t axis, const Integers &sizes)
{
    if (sizes.size() != context.resultCount())
        return context.invalid("it makes " + std::to_string(sizes.size()) + " parts, where the file has "
            + std::to_string(context.resultCount()));
    return context.finishWith(emitSplit, x, axis, sizes);
}

Integers partsOf(std::int64_t extent, std::int64_t size)
{
    Integers sizes;
    for (std::int64_t left = extent; left > 0; left -= size)
        sizes.push_back(std::min(left, size));
    return sizes;
}

Result<void> atenSplit(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    const char *name = context.given("split_sizes") ? "split_sizes" : "split_size";
    TRY(Integers sizes, context.integers(name));
    if (std::holds_alternative<std::int64_t>(context.value(name))) {
        if (sizes.front() < 1 || context.shapeOf(x).empty())
            return context.invalid("it makes parts of " + std::to_string(sizes.front()));
        sizes = partsOf(context.shapeOf(x)[axisIndex(axis)], sizes.front());
    }
    return splitInto(context, x, axis, sizes);
}

Result<void> atenChunk(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const std::int64_t count, context.integer("chunks"));
    if (count < 1 || context.shapeOf(x).empty())
        return context.invalid("it makes " + std::to_string(count) + " parts");
    const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
    return splitInto(
        context, x, axis, partsOf(extent, std::max<std::int64_t>(1, (extent + count - 1) / count)));
}

Result<void> atenUnbind(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    Shape shape = context.shapeOf(x);
    const auto count = shape.empty() ? 0 : axisIndex(shape[axisIndex(axis)]);
    if (count != context.resultCount())
        return context.invalid("it makes " + std::to_string(count) + " parts, where the file has "
            + std::to_string(context.resultCount()));
    TRY(const auto parts, context.part("split", emitSplit, x, axis, Integers(count, 1)));
    shape.erase(shape.begin() + axis);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        TRY(const TensorId part, context.reshape(parts[i], shape, "part_" + std::to_string(i)));
        TRY_VOID(context.bind(i, part));
    }
    return {};
}

Result<void> atenSlice(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const std::int64_t begin, context.integer("start", 0));
    TRY(const std::int64_t end, context.integer("end", INT64_MAX));
    TRY(const std::int64_t step, context.integer("step", 1));
    TRY(const TensorId y, context.slice(x, axis, begin, end, step, ""));
    return context.bind(0, y);
}

Result<void> atenNarrow(AtenContext &context, TensorId x)
{
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const std::int64_t begin, context.integer("start"));
    TRY(const std::int64_t length, context.integer("length"));
    const std::int64_t extent = context.shapeOf(x).empty() ? 0 : context.shapeOf(x)[axisIndex(axis)];
    const std::int64_t first = begin < 0 ? begin + extent : begin;
    if (first < 0 || length < 0 || length > extent - first)
        return context.invalid("it takes " + std::to_string(length) + " from place " + std::to_string(begin)
            + " on, of " + std::to_string(extent));
    TRY(const TensorId y, context.slice(x, axis, first, first + length, 1, ""));
    return context.bind(0, y);
}

/// One place of a dimension, which disappears.
Result<void> atenSelect(AtenContext &context, TensorId x)
{
    if (context.shapeOf(x).empty())
        return context.invalid("it selects from a scalar");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    TRY(const std::int64_t written, context.integer("index"));
    const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
    const std::int64_t index = written < 0 ? written + extent : written;
    if (index < 0 || index >= extent)
        return context.invalid("it takes place " + std::to_string(written) + " of " + std::to_string(extent));
    return context.finishWith(emitGather, x, context.integerScalar(index), axis);
}

/// Differences of neighbours along a dimension; `prepend` and `append` stand before and behind.
Result<void> atenDiff(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    if (context.shapeOf(x).empty())
        return context.invalid("it takes differences of a scalar");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), -1));
    TRY(const std::int64_t times, context.integer("n", 1));
    TRY(const TensorId before, context.optionalTensor("prepend"));
    TRY(const TensorId after, context.optionalTensor("append"));
    if (times != 1)
        return context.keepUnknown("differences of differences are not computed");
    std::vector<TensorId> parts{x};
    if (before)
        parts.insert(parts.begin(), before);
    if (after)
        parts.push_back(after);
    TRY(x, context.concat(std::move(parts), axis, "row"));
    const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
    TRY(const TensorId next, context.slice(x, axis, 1, extent, 1, "next"));
    TRY(const TensorId own, context.slice(x, axis, 0, extent - 1, 1, "own"));
    if (context.typeOf(x).dataType != DataType::Bool)
        return context.finish(OperatorKind::Sub, {next, own});
    return context.finish(OperatorKind::Xor, {next, own});
}

/// `x` with `part` in place of the elements `begin` to `end` along a dimension.
Result<TensorId> withPart(
    AtenContext &context, TensorId x, TensorId part, std::int64_t axis, std::int64_t begin, std::int64_t end)
{
    std::vector<TensorId> parts;
    if (begin > 0) {
        TRY(const TensorId before, context.slice(x, axis, 0, begin, 1, "before"));
        parts.push_back(before);
    }
    Shape shape = context.shapeOf(x);
    const std::int64_t extent = shape[axisIndex(axis)];
    shape[axisIndex(axis)] = end - begin;
    TRY(TensorId middle, context.cast(part, context.typeOf(x).dataType));
    TRY(middle, context.expand(middle, shape));
    parts.push_back(middle);
    if (end < extent) {
        TRY(const TensorId after, context.slice(x, axis, end, extent, 1, "after"));
        parts.push_back(after);
    }
    return context.concat(std::move(parts), axis, "");
}

Result<void> sliceScatter(AtenContext &context, TensorId x)
{
    TRY(const TensorId part, context.tensor("src"));
    if (context.shapeOf(x).empty())
        return context.invalid("it writes into a part of a scalar");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
    TRY(const std::int64_t start, context.integer("start", 0));
    TRY(const std::int64_t stop, context.integer("end", INT64_MAX));
    TRY(const std::int64_t step, context.integer("step", 1));
    const auto place = [extent](std::int64_t value) {
        return std::clamp<std::int64_t>(value < 0 ? value + extent : value, 0, extent);
    };
    const std::int64_t begin = place(start);
    const std::int64_t end = std::max(begin, place(stop));
    if (begin == end)
        return context.bind(0, x);
    if (step != 1) {
        Integers places;
        for (std::int64_t at = begin; at < end && step > 0; at += step)
            places.push_back(at);
        TRY(const TensorId y,
            context.other("index_copy",
                {{"self", x}, {"dim", axis}, {"index", context.list(std::move(places))}, {"source", part}},
                "written"));
        return context.bind(0, y);
    }
    TRY(const TensorId y, withPart(context, x, part, axis, begin, end));
    return context.bind(0, y);
}

Result<void> selectScatter(AtenContext &context, TensorId x)
{
    TRY(const TensorId part, context.tensor("src"));
    if (context.shapeOf(x).empty())
        return context.invalid("it writes into a part of a scalar");
    TRY(const std::int64_t axis, context.dimension("dim", context.rankOf(x), 0));
    const std::int64_t extent = context.shapeOf(x)[axisIndex(axis)];
    TRY(const std::int64_t written, context.integer("index"));
    const std::int64_t index = written < 0 ? written + extent : written;
    if (index < 0 || index >= extent)
        return context.invalid("it takes place " + std::to_string(written) + " of " + std::to_string(extent));
    Shape shape = context.shapeOf(part);
    shape.insert(shape.begin() + std::min<std::int64_t>(axis, context.rankOf(part)), 1);
    TRY(const TensorId row, context.reshape(part, std::move(shape), "row"));
    TRY(const TensorId y, withPart(context, x, row, axis, index, index + 1));
    return context.bind(0, y);
}

// --- padding -----------------------------------------------------------------------------------------------

/// Pads are written from the last dimension to the first, begin and end of each.
Result<void> padded(AtenContext &context, const std::string &mode, double value)
{
    TRY(const TensorId x, context.tensor("self"));
    TRY(const Integers written, context.integers(context.given("pad") ? "pad" : "padding"));
    const auto rank = context.shapeOf(x).size();
    if (written.size() % 2 != 0 || written.size() > 2 * rank)
        return context.invalid(
            "its pads are " + toString(written) + " for " + std::to_string(rank) + " dimensions");
    Integers pads(2 * rank, 0);
    for (std::size_t i = 0; i < written.size() / 2; ++i) {
        pads[rank - 1 - i] = written[2 * i];
        pads[2 * rank - 1 - i] = written[2 * i + 1];
    }
    return context.finishWith(emitPad, x, pads, mode, rounded(context.typeOf(x).dataType, value));
}

Result<void> atenPad(AtenContext &context)
{
    TRY(const std::string mode, context.text("mode", "constant"));
    TRY(const double value, context.real("value", 0));
    const std::map<std::string, std::string> kModes{
        {"constant", "constant"}, {"reflect", "reflect"}, {"replicate", "edge"}, {"circular", "wrap"}};
    const auto found = kModes.find(mode);
    if (found == kModes.end())
        return context.invalid("argument 'mode' is '" + mode + "'");
    return padded(context, found->second, value);
}
Result<void> constantPad(AtenContext &context)
{
    TRY(const double value, context.real("value", 0));
    return padded(context, "constant", value);
}
Result<void> reflectionPad(AtenContext &context)
{
    return padded(context, "reflect", 0);
}
Result<void> replicationPad(AtenContext &context)
{
    return padded(context, "edge", 0);
}

} // namespace

const AtenHandlers &atenMovementHandlers()
{
    static const AtenHandlers kHandlers = {{"cat", atenCat}, {"concat", atenCat}, {"concatenate", atenCat},
        {"stack", atenStack}, {"split", ofSelf<atenSplit>}, {"split_with_sizes", ofSelf<atenSplit>},
        {"split_with_sizes_copy", ofSelf<atenSplit>}, {"chunk", ofSelf<atenChunk>},
        {"unbind", ofSelf<atenUnbind>}, {"slice", ofSelf<atenSlice>}, {"slice_copy", ofSelf<atenSlice>},
        {"narrow", ofSelf<atenNarrow>}, {"diff", atenDiff}, {"select", ofSelf<atenSelect>},
        {"select_copy", ofSelf<atenSelect>}, {"slice_scatter", ofSelf<sliceScatter>},
        {"select_scatter", ofSelf<selectScatter>}, {"pad", atenPad}, {"constant_pad_nd", constantPad},
        {"reflection_pad1d", reflectionPad}, {"reflection_pad2d", reflectionPad},
        {"reflection_pad3d", reflectionPad}, {"replication_pad1d", replicationPad},
        {"replication_pad2d", replicationPad}, {"replication_pad3d", replicationPad}};
    return kHandlers;
}

} // namespace planloom
