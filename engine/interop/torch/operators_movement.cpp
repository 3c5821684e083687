// Operators that move elements, pick them by indices, or make them of nothing.

#include "engine/graph/operators/places.h"
#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"
#include "engine/kernels/movement/pick_plans.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace planloom {

namespace movement_texts {

using enum OperatorKind;

const std::string &moved(const OperatorSlots &slots)
{
    return slots.isBackward() ? slots.dy() : slots.x();
}
const Shape &madeShape(const OperatorSlots &slots)
{
    return slots.call().outputs[0].shape;
}

Result<TorchText> reshape(const OperatorSlots &slots)
{
    return oneText(operandText(moved(slots)) + ".reshape(" + pythonTuple(madeShape(slots)) + ")", 0);
}

Result<TorchText> transpose(const OperatorSlots &slots)
{
    std::vector<std::int64_t> permutation = slots.attributes().integers("permutation");
    if (slots.isBackward()) {
        std::vector<std::int64_t> inverse(permutation.size());
        for (std::size_t d = 0; d < permutation.size(); ++d)
            inverse[static_cast<std::size_t>(permutation[d])] = static_cast<std::int64_t>(d);
        permutation = std::move(inverse);
    }
    return oneText(operandText(moved(slots)) + ".permute(" + pythonTuple(permutation) + ")", 0);
}

Result<TorchText> expand(const OperatorSlots &slots)
{
    if (slots.isBackward())
        return oneText(callText("ops.sum_to", {slots.dy(), pythonTuple(madeShape(slots))}));
    return oneText(operandText(slots.x()) + ".expand(" + pythonTuple(madeShape(slots)) + ")", 0);
}

Result<TorchText> tile(const OperatorSlots &slots)
{
    const std::vector<std::int64_t> repeats = slots.attributes().integers("repeats");
    if (slots.isBackward())
        return oneText(callText("ops.derivative",
            {"lambda a: a.repeat(" + pythonTuple(repeats) + ")", slots.dy(),
                operandText(slots.dy()) + ".new_zeros(" + pythonTuple(madeShape(slots)) + ")"}));
    return oneText(operandText(slots.x()) + ".repeat(" + pythonTuple(repeats) + ")");
}

std::int64_t firstAlong(const Buffer &buffer, std::size_t d)
{
    return firstOf(buffer, d);
}

bool isWholeAlong(const Buffer &buffer, std::size_t d)
{
    return buffer.shape[d] == wholeExtent(buffer, d);
}

/// How long input `i` of a concatenation is along its dimension, all of it: as the annotation has it, for
/// those that this device has nothing of.
std::int64_t joinedExtent(const OperatorSlots &slots, std::size_t i, std::size_t d)
{
    if (slots.bufferX(i).data != nullptr)
        return wholeExtent(slots.bufferX(i), d);
    const auto &terms = slots.call().op->annotation;
    std::int64_t extent = 1;
    for (const std::int32_t factor : (slots.isBackward() ? terms.outputs : terms.inputs)[i].terms[d].factors)
        extent *= terms.dimensions[static_cast<std::size_t>(factor)].size;
    return extent;
}

/// Pieces along one dimension: of each, what this device's part of the whole has of it.
/// What a part has of the gradient of input i, which begins at `offset` of what was joined, and whether that
/// is a view: the rest of it is zero, for others to add.
std::pair<std::string, bool> joinedGradient(const OperatorSlots &slots, std::size_t i, std::int64_t offset)
{
    const auto d = static_cast<std::size_t>(slots.attributes().integer("axis"));
    const Buffer &dy = slots.bufferY();
    const Buffer &piece = slots.bufferX(i);
    const auto &terms = slots.call().op->annotation.outputs[i].terms;
    const planloom::Range whole{firstAlong(dy, d), firstAlong(dy, d) + dy.shape[d]};
    const planloom::Range own =
        terms[d].reach == WindowReach::Share ? whole : ownBox(slots.call(), 0).ranges[d];
    const std::int64_t begin = offset + firstAlong(piece, d);
    const std::int64_t low = std::max(begin, own.begin);
    const std::int64_t size = std::min(begin + piece.shape[d], own.end) - low;
    const std::string shape = pythonTuple(piece.shape);
    if (size <= 0)
        return {operandText(slots.dy()) + ".new_zeros(" + shape + ")", false};
    const auto narrowed = [&](const std::string &x, std::int64_t from) {
        return callText(
            operandText(x) + ".narrow", {std::to_string(d), rankNumber("part", from), std::to_string(size)});
    };
    const std::string there = narrowed(slots.dy(), low - whole.begin);
    if (size == piece.shape[d])
        return {there, true};
    return {"ops.placed(" + there + ", " + shape + ", lambda a: " + narrowed("a", low - begin) + ")", false};
}

Result<TorchText> concat(const OperatorSlots &slots)
{
    const std::string axis = std::to_string(slots.attributes().integer("axis"));
    const auto d = static_cast<std::size_t>(slots.attributes().integer("axis"));
    const std::int64_t from = firstAlong(slots.bufferY(), d);
    const std::int64_t to = from + slots.bufferY().shape[d];
    const auto narrowed = [&](const std::string &x, std::int64_t begin, std::int64_t length) {
        return callText(
            operandText(x) + ".narrow", {axis, rankNumber("part", begin), std::to_string(length)});
    };
    std::vector<std::string> pieces;
    TorchText gradients;
    std::int64_t covered = from;
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < slots.forwardInputs(); offset += joinedExtent(slots, i, d), ++i) {
        const Buffer &piece = slots.bufferX(i);
        const bool isThere = piece.data != nullptr;
        const std::int64_t begin = isThere ? offset + firstAlong(piece, d) : 0;
        const std::int64_t end = isThere ? begin + piece.shape[d] : 0;
        if (slots.isBackward()) {
            const auto [text, isView] =
                slots.wants(i) ? joinedGradient(slots, i, offset) : std::pair{std::string{}, false};
            gradients.each.push_back(text);
            gradients.viewOf.push_back(isView ? 0 : -1);
            continue;
        }
        const std::int64_t low = std::max(begin, from);
        const std::int64_t high = std::min(end, to);
        if (low >= high)
            continue;
        if (low != covered)
            return noText(slots, "this plan does not give it all that it joins");
        covered = high;
        pieces.push_back(
            low == begin && high == end ? slots.x(i) : narrowed(slots.x(i), low - begin, high - low));
    }
    if (slots.isBackward())
        return gradients;
    if (covered != to)
        return noText(slots, "this plan does not give it all that it joins");
    return oneText("torch.cat((" + joinedBy(pieces) + (pieces.size() == 1 ? ",), " : "), ") + axis + ")");
}

Result<TorchText> split(const OperatorSlots &slots)
{
    const std::int64_t axis = slots.attributes().integer("axis");
    const auto d = static_cast<std::size_t>(axis);
    const std::vector<std::int64_t> sizes = slots.attributes().integers("sizes");
    for (const auto *buffers : {&slots.call().inputs, &slots.call().outputs})
        for (const Buffer &buffer : *buffers)
            if (buffer.data != nullptr && !isWholeAlong(buffer, d))
                return noText(slots, "this plan cuts it along the dimension that it divides");
    if (!slots.isBackward()) {
        TorchText made;
        made.all = callText("torch.split", {slots.x(), pythonTuple(sizes), std::to_string(axis)});
        made.viewOf.assign(slots.forwardOutputs(), 0);
        return made;
    }
    std::vector<std::string> pieces;
    Shape shape = madeShape(slots);
    for (std::size_t k = 0; k < slots.forwardOutputs(); ++k) {
        shape[d] = sizes[k];
        std::string other = "None";
        for (std::size_t like = 0; like < slots.forwardOutputs(); ++like)
            if (slots.hasDy(like))
                other = slots.dy(like);
        pieces.push_back(
            slots.hasDy(k) ? slots.dy(k) : operandText(other) + ".new_zeros(" + pythonTuple(shape) + ")");
    }
    return oneText("torch.cat((" + joinedBy(pieces) + (pieces.size() == 1 ? ",), " : "), ")
        + std::to_string(axis) + ")");
}

Result<TorchText> slice(const OperatorSlots &slots)
{
    auto starts = slots.attributes().integers("starts");
    auto steps = slots.attributes().integers("steps");
    const Buffer &whole = slots.bufferX(0);
    const Buffer &piece = slots.bufferY();
    const std::size_t rank = piece.shape.size();
    starts.resize(rank, 0);
    steps.resize(rank, 1);
    std::vector<std::string> ranges;
    std::vector<std::string> own; // of what comes back: what lies in this device's part of the whole
    const Buffer &wide = slots.isBackward() ? slots.call().outputs[0] : whole;
    std::vector<std::int64_t> flips;
    bool isCut = false;
    for (std::size_t d = 0; d < rank; ++d) {
        const std::int64_t begin = starts[d] + firstAlong(piece, d) * steps[d] - firstAlong(wide, d);
        const std::int64_t last = begin + (piece.shape[d] - 1) * steps[d];
        std::int64_t low = std::min(begin, last);
        std::int64_t high = std::max(begin, last) + 1;
        own.emplace_back(":");
        if (low < 0 || high > wide.shape[d]) {
            const std::int64_t first = low;
            low = std::max<std::int64_t>(low, 0);
            high = std::min(high, wide.shape[d]);
            if (!slots.isBackward() || steps[d] != 1)
                return noText(slots, "this plan cuts it along a dimension that it takes a piece of");
            if (low >= high)
                return oneText(callText(operandText(slots.dy()) + ".new_zeros", {pythonTuple(wide.shape)}));
            own.back() = rankNumber("part", low - first) + ":" + rankNumber("part", high - first);
            isCut = true;
        }
        if (steps[d] < 0)
            flips.push_back(static_cast<std::int64_t>(d));
        const std::int64_t step = std::abs(steps[d]);
        if (low == 0 && high == wide.shape[d] && step == 1)
            ranges.emplace_back(":");
        else
            ranges.push_back(rankNumber("part", low) + ":" + rankNumber("part", high)
                + (step == 1 ? "" : ":" + std::to_string(step)));
    }
    const std::string flip = flips.empty() ? "" : ".flip(" + pythonTuple(flips) + ")";
    const std::string box = "[" + joinedBy(ranges) + "]";
    if (!slots.isBackward())
        return oneText(operandText(slots.x()) + box + (flip.empty() ? ".clone()" : flip));
    return oneText("ops.placed(" + slots.dy() + (isCut ? "[" + joinedBy(own) + "]" : "") + flip + ", "
        + pythonTuple(wide.shape) + ", lambda a: a" + box + ")");
}

Result<TorchText> pad(const OperatorSlots &slots)
{
    const std::vector<std::int64_t> pads = slots.attributes().integers("pads");
    const std::string mode = slots.attributes().text("mode", "constant");
    const std::size_t rank = pads.size() / 2;
    std::vector<std::int64_t> order;
    for (std::size_t d = rank; d-- > 0;) {
        order.push_back(pads[d]);
        order.push_back(pads[d + rank]);
        const Buffer &x = slots.isBackward() ? slots.call().outputs[0] : slots.bufferX(0);
        if ((pads[d] != 0 || pads[d + rank] != 0) && !isWholeAlong(x, d))
            return noText(slots, "this plan cuts it along a dimension that it pads");
    }
    if (mode != "constant") {
        const std::string more = pythonTuple(pads) + ", " + pythonText(mode) + ")";
        if (!slots.isBackward())
            return oneText("ops.padded(" + slots.x() + ", " + more);
        return oneText(callText("ops.derivative",
            {"lambda a: ops.padded(a, " + more, slots.dy(),
                operandText(slots.dy()) + ".new_zeros(" + pythonTuple(slots.call().outputs[0].shape) + ")"}));
    }
    if (slots.isBackward()) {
        for (std::int64_t &each : order)
            each = -each;
        return oneText(callText("F.pad", {slots.dy(), pythonTuple(order)}));
    }
    std::string value = pythonNumber(slots.attributes().real("value"));
    if (!isFloating(slots.bufferX(0).dataType))
        value = std::to_string(
            slots.attributes().integer("value", static_cast<std::int64_t>(slots.attributes().real("value"))));
    return oneText(callText("F.pad", {slots.x(), pythonTuple(order), "value=" + value}));
}

// --- picking

/// ", places=.., first=.." where indices may be no places (places.h).
std::string placesOption(const OperatorSlots &slots, std::size_t axis)
{
    if (!hasPlaces(slots.attributes()))
        return {};
    const Buffer &x = slots.bufferX(0).data != nullptr ? slots.bufferX(0) : slots.call().outputs[0];
    return ", places=True, first=" + rankNumber("part", firstOf(x, axis));
}

Result<TorchText> embedding(const OperatorSlots &slots)
{
    TRY(const auto plan, planEmbedding(slots.call()));
    const bool cut = plan->rows != plan->allRows;
    std::string more;
    if (cut)
        more = ", first=" + rankNumber("part", plan->first);
    if (slots.isBackward()) {
        if (plan->padding >= 0)
            more += ", padding=" + std::to_string(plan->padding);
        TorchText made;
        made.each.push_back("ops.embedding_backward(" + slots.dy() + ", " + slots.x(1)
            + ", rows=" + std::to_string(plan->rows) + more + ")");
        made.each.resize(slots.forwardInputs());
        return made;
    }
    if (cut)
        return oneText("ops.embedding(" + slots.x(1) + ", " + slots.x(0) + more + ")");
    return oneText("F.embedding(" + slots.x(1) + ", " + slots.x(0) + ")");
}

Result<TorchText> gather(const OperatorSlots &slots)
{
    const std::int64_t axis = slots.attributes().integer("axis");
    const std::string more =
        ", " + std::to_string(axis) + placesOption(slots, static_cast<std::size_t>(axis)) + ")";
    if (!slots.isBackward())
        return oneText("ops.gather(" + slots.x(0) + ", " + slots.x(1) + more);
    TorchText made;
    made.each.push_back("ops.gather_backward(" + slots.dy() + ", " + slots.x(1) + ", "
        + pythonTuple(slots.call().outputs[0].shape) + more);
    made.each.resize(slots.forwardInputs());
    return made;
}

Result<TorchText> gatherElements(const OperatorSlots &slots)
{
    const std::int64_t axis = slots.attributes().integer("axis");
    const auto d = static_cast<std::size_t>(axis);
    const std::string indices = "ops.wrapped(" + slots.x(1) + ", "
        + std::to_string(slots.isBackward() ? slots.call().outputs[0].shape[d] : slots.bufferX(0).shape[d])
        + ")";
    if (!slots.isBackward())
        return oneText(
            "ops.gather_elements(" + slots.x(0) + ", " + std::to_string(axis) + ", " + indices + ")");
    TorchText made;
    made.each.push_back("ops.gather_elements_backward(" + slots.dy() + ", "
        + pythonTuple(slots.call().outputs[0].shape) + ", " + std::to_string(axis) + ", " + indices + ")");
    made.each.resize(slots.forwardInputs());
    return made;
}

Result<TorchText> gatherNd(const OperatorSlots &slots)
{
    const std::string more =
        ", " + std::to_string(slots.attributes().integer("batch_dims")) + placesOption(slots, 0) + ")";
    if (!slots.isBackward())
        return oneText("ops.gather_nd(" + slots.x(0) + ", " + slots.x(1) + more);
    TorchText made;
    made.each.push_back("ops.gather_nd_backward(" + slots.dy() + ", " + slots.x(1) + ", "
        + pythonTuple(slots.call().outputs[0].shape) + more);
    made.each.resize(slots.forwardInputs());
    return made;
}

/// What torch calls a reduction of scattered elements that does not write over or add: none for those.
std::string reductionText(const std::string &how)
{
    return how == "mul" ? "\"prod\"" : how == "max" ? "\"amax\"" : how == "min" ? "\"amin\"" : "";
}

Result<TorchText> scatterNd(const OperatorSlots &slots)
{
    const std::string how = slots.attributes().text("reduction", "none");
    const std::string more = placesOption(slots, 0) + ")";
    if (const std::string reduce = reductionText(how); !reduce.empty()) {
        const std::string options = ", reduce=" + reduce + more;
        if (slots.isBackward())
            return derivativeText(slots, "ops.scatter_nd(a, b, c" + options, {0, 1, 2});
        return oneText("ops.scatter_nd(" + slots.x(0) + ", " + slots.x(1) + ", " + slots.x(2) + options);
    }
    if (!slots.isBackward())
        return oneText("ops.scatter_nd(" + slots.x(0) + ", " + slots.x(1) + ", " + slots.x(2)
            + (how == "add" ? ", add=True" : "") + more);
    TorchText made;
    made.each.resize(3);
    made.viewOf.assign(3, -1);
    if (slots.wants(0)) {
        made.each[0] =
            how == "add" ? slots.dy() : "ops.scatter_nd_cleared(" + slots.dy() + ", " + slots.x(1) + more;
        made.viewOf[0] = how == "add" ? 0 : -1;
    }
    if (slots.wants(2))
        made.each[2] = "ops.gather_nd(" + slots.dy() + ", " + slots.x(1) + ", 0"
            + (more == ")" ? more : ", fill=0" + more);
    return made;
}

Result<TorchText> scatterElements(const OperatorSlots &slots)
{
    const std::string how = slots.attributes().text("reduction", "none");
    const std::int64_t axis = slots.attributes().integer("axis");
    const auto d = static_cast<std::size_t>(axis);
    const std::int64_t extent = slots.isBackward() ? slots.bufferY().shape[d] : slots.bufferX(0).shape[d];
    const std::string indices = "ops.wrapped(" + slots.x(1) + ", " + std::to_string(extent) + ")";
    const std::string at = std::to_string(axis) + ", " + indices;
    if (const std::string reduce = reductionText(how); !reduce.empty()) {
        if (slots.isBackward())
            return derivativeText(slots,
                "torch.scatter_reduce(a, " + std::to_string(axis) + ", ops.wrapped(b, "
                    + std::to_string(extent) + "), c, " + reduce + ")",
                {0, 1, 2});
        return oneText(
            "torch.scatter_reduce(" + slots.x(0) + ", " + at + ", " + slots.x(2) + ", " + reduce + ")");
    }
    if (!slots.isBackward())
        return oneText("torch." + std::string(how == "add" ? "scatter_add" : "scatter") + "(" + slots.x(0)
            + ", " + at + ", " + slots.x(2) + ")");
    TorchText made;
    made.each.resize(3);
    made.viewOf.assign(3, -1);
    if (slots.wants(0)) {
        made.each[0] = how == "add" ? slots.dy() : "torch.scatter(" + slots.dy() + ", " + at + ", 0)";
        made.viewOf[0] = how == "add" ? 0 : -1;
    }
    if (slots.wants(2))
        made.each[2] = "ops.gather_elements(" + slots.dy() + ", " + at + ")";
    return made;
}

Result<TorchText> nonZero(const OperatorSlots &slots)
{
    const Attributes &a = slots.attributes();
    const Buffer &x = slots.bufferX(0);
    const Buffer &y = slots.bufferY();
    const std::int64_t kept = a.integer("kept");
    const std::int64_t groups = a.integer("groups", 1);
    const auto axis = static_cast<std::size_t>(a.integer("group_axis"));
    std::vector<std::string> firsts;
    for (auto d = static_cast<std::size_t>(kept); d < x.shape.size(); ++d)
        firsts.push_back(rankNumber("part", firstOf(x, d)));
    return oneText(callText("ops.places",
        {slots.x(), "kept=" + std::to_string(kept), "axis=" + std::to_string(axis),
            "in_group=" + std::to_string(wholeExtent(x, axis) / groups),
            "room=" + std::to_string(wholeExtent(y, y.shape.size() - 1) / groups),
            "columns=" + std::to_string(y.shape.back()), "first=(" + joinedBy(firsts) + ",)"}));
}

// --- along one axis, and made of nothing

std::string attributeNumber(const OperatorSlots &slots, const char *name, double fallback, DataType type)
{
    const auto &all = slots.attributes().all();
    const auto found = all.find(name);
    const auto *whole = found == all.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
    const double value =
        whole != nullptr ? static_cast<double>(*whole) : slots.attributes().real(name, fallback);
    if (type == DataType::Bool)
        return pythonFlag(value != 0);
    if (whole != nullptr && !isFloating(type))
        return std::to_string(*whole);
    return isFloating(type) ? pythonNumber(value) : std::to_string(static_cast<std::int64_t>(value));
}

Result<TorchText> oneHot(const OperatorSlots &slots)
{
    const Buffer &y = slots.bufferY();
    const std::int64_t axis = slots.attributes().integer("axis");
    const auto d = static_cast<std::size_t>(axis);
    return oneText(callText("ops.one_hot",
        {slots.x(), std::to_string(axis), std::to_string(wholeExtent(y, d)),
            "first=" + rankNumber("part", firstOf(y, d)), "columns=" + std::to_string(y.shape[d]),
            "on=" + attributeNumber(slots, "on", 1, y.dataType),
            "off=" + attributeNumber(slots, "off", 0, y.dataType), "dtype=" + pythonType(y.dataType)}));
}

Result<TorchText> topK(const OperatorSlots &slots)
{
    const Attributes &a = slots.attributes();
    const std::string axis = std::to_string(a.integer("axis"));
    if (!slots.isBackward()) {
        TorchText made;
        made.all = callText("ops.top_k",
            {slots.x(), std::to_string(a.integer("k")), axis, pythonFlag(a.integer("largest", 1) != 0)});
        return made;
    }
    return oneText(callText(
        "ops.gather_elements_backward", {slots.dy(), pythonTuple(madeShape(slots)), axis, slots.y(1)}));
}

Result<TorchText> scan(const OperatorSlots &slots)
{
    TRY(const auto plan, planScan(slots.call()));
    return oneText(callText("ops.running_sum",
        {moved(slots), std::to_string(slots.attributes().integer("axis")),
            std::string("from_back=") + pythonFlag(plan->fromBack),
            std::string("exclusive=") + pythonFlag(plan->exclusive)}));
}

Result<TorchText> triangle(const OperatorSlots &slots)
{
    const Buffer &y = slots.call().outputs[0];
    const std::size_t rank = y.shape.size();
    const bool upper = slots.attributes().integer("upper", 1) != 0;
    const std::int64_t shift = slots.attributes().integer("k") + firstOf(y, rank - 2) - firstOf(y, rank - 1);
    return oneText(callText(upper ? "torch.triu" : "torch.tril", {moved(slots), rankNumber("part", shift)}));
}

Result<TorchText> range(const OperatorSlots &slots)
{
    const Buffer &y = slots.bufferY();
    const std::int64_t first = y.shape.empty() ? 0 : firstOf(y, 0);
    return oneText(callText("ops.range_of",
        {"run", rankNumber("part", first), std::to_string(elementCount(y.shape)),
            attributeNumber(slots, "start", 0, y.dataType), attributeNumber(slots, "delta", 1, y.dataType),
            pythonType(y.dataType)}));
}

Result<TorchText> fill(const OperatorSlots &slots)
{
    const Buffer &y = slots.bufferY();
    return oneText(callText("torch.full",
        {pythonTuple(y.shape), attributeNumber(slots, "value", 0, y.dataType),
            "dtype=" + pythonType(y.dataType), "device=run.device"}));
}

Result<TorchText> eyeLike(const OperatorSlots &slots)
{
    const Buffer &y = slots.bufferY();
    return oneText("torch.diag_embed(torch.ones(" + std::to_string(std::min(y.shape[0], y.shape[1]))
        + ", dtype=" + pythonType(y.dataType) + ", device=run.device))[:" + std::to_string(y.shape[0])
        + ", :" + std::to_string(y.shape[1]) + "]");
}

Result<TorchText> blocks(const OperatorSlots &slots)
{
    const std::string size = std::to_string(slots.attributes().integer("blocksize", 1));
    const bool channelsFirst = slots.attributes().text("mode", "DCR") == "CRD";
    const bool toSpace = (slots.kind() == DepthToSpace) != slots.isBackward();
    return oneText(callText(toSpace ? "ops.depth_to_space" : "ops.space_to_depth",
        {moved(slots), size, std::string("channels_first=") + pythonFlag(channelsFirst)}));
}

Result<TorchText> resize(const OperatorSlots &slots)
{
    const Attributes &a = slots.attributes();
    const Buffer &x = slots.isBackward() ? slots.call().outputs[0] : slots.bufferX(0);
    const Buffer &y = slots.bufferY();
    const std::string mode = a.text("mode", "nearest");
    const std::string coordinates = a.text("coordinate_transformation_mode", "half_pixel");
    for (std::size_t d = 2; d < x.shape.size(); ++d)
        if (!isWholeAlong(x, d) || !isWholeAlong(y, d))
            return noText(slots, "this plan cuts it along a dimension whose size it changes");
    if (x.shape.size() < 3 || a.integer("antialias") != 0 || x.shape[0] != y.shape[0]
        || x.shape[1] != y.shape[1])
        return noText(slots, "it is none of torch's interpolations");
    const std::vector<std::int64_t> size(y.shape.begin() + 2, y.shape.end());
    std::string more;
    if (mode == "nearest") {
        const std::string nearest = a.text("nearest_mode", "round_prefer_floor");
        bool whole = true; // at whole factors these all pick the same places
        for (std::size_t d = 2; d < x.shape.size(); ++d)
            whole = whole && y.shape[d] % x.shape[d] == 0;
        if (!(coordinates == "asymmetric" && nearest == "floor")
            && !(coordinates == "half_pixel" && whole && nearest == "round_prefer_floor"))
            return noText(
                slots, "torch has no nearest neighbour by '" + coordinates + "' and '" + nearest + "'");
        more = ", " + pythonTuple(size) + ", mode=\"nearest\")";
    } else {
        const std::string kind = mode == "cubic" ? "bicubic"
            : x.shape.size() == 3                ? "linear"
            : x.shape.size() == 4                ? "bilinear"
                                                 : "trilinear";
        const bool corners = coordinates == "align_corners";
        if ((!corners && coordinates != "half_pixel" && coordinates != "pytorch_half_pixel")
            || (mode == "cubic" && (x.shape.size() != 4 || a.real("cubic_coeff_a", -0.75) != -0.75)))
            return noText(slots, "torch has no '" + mode + "' by '" + coordinates + "'");
        more = ", " + pythonTuple(size) + ", mode=" + pythonText(kind)
            + ", align_corners=" + pythonFlag(corners) + ")";
    }
    if (!slots.isBackward())
        return oneText("F.interpolate(" + slots.x() + more);
    return oneText(callText("ops.derivative",
        {"lambda a: F.interpolate(a" + more, slots.dy(),
            operandText(slots.dy()) + ".new_zeros(" + pythonTuple(x.shape) + ")"}));
}

} // namespace movement_texts

void addMovementTexts(OperatorWriters &writers)
{
    using namespace movement_texts;
    writers[Reshape] = reshape;
    writers[Transpose] = transpose;
    writers[Expand] = expand;
    writers[Tile] = tile;
    writers[Concat] = concat;
    writers[OperatorKind::Split] = split;
    writers[Slice] = slice;
    writers[Pad] = pad;
    writers[Embedding] = embedding;
    writers[Gather] = gather;
    writers[GatherElements] = gatherElements;
    writers[GatherND] = gatherNd;
    writers[ScatterND] = scatterNd;
    writers[ScatterElements] = scatterElements;
    writers[NonZero] = nonZero;
    writers[OneHot] = oneHot;
    writers[TopK] = topK;
    writers[CumSum] = scan;
    writers[Trilu] = triangle;
    writers[OperatorKind::Range] = range;
    writers[Fill] = fill;
    writers[EyeLike] = eyeLike;
    writers[DepthToSpace] = blocks;
    writers[SpaceToDepth] = blocks;
    writers[Resize] = resize;
}

} // namespace planloom
