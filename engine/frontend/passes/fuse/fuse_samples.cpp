// What mixes samples only as it is written: picks within each sample, or of what all have alike, and samples
// that are parted and joined again. Said as such, so that the batch can be cut.
#include "engine/frontend/passes/fuse/fuse_editor.h"
#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/mask.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// True if every element of a constant is its place along dimension `axis`.
bool isOwnPlace(const Tensor &tensor, std::size_t axis)
{
    if (!tensor.data)
        return false;
    const Shape &shape = tensor.type.shape;
    const std::vector<std::int64_t> values = integersOf(*tensor.data);
    std::int64_t inside = 1;
    for (std::size_t d = axis + 1; d < shape.size(); ++d)
        inside *= shape[d];
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != static_cast<std::int64_t>(i) / inside % shape[axis])
            return false;
    }
    return true;
}

/// GatherND(x [n ..], [0 .. n-1, places]), which is x[arange(n), places]: each of n picks within itself.
/// @return false if it is none
bool alignPick(FuseEditor &editor, const Operator &op)
{
    const TensorId x = op.inputs[0];
    const auto batch = static_cast<std::size_t>(op.attributes.integer("batch_dims"));
    const Operator *joined = editor.madeBy(op.inputs[1], OperatorKind::Concat);
    const Shape indices = editor.shape(op.inputs[1]);
    if (hasPlaces(op.attributes) || joined == nullptr || joined->inputs.size() < 2
        || batch + 2 > indices.size()
        || joined->attributes.integer("axis") + 1 != static_cast<std::int64_t>(indices.size()))
        return false;
    const TensorId own = joined->inputs[0];
    if (editor.shape(own).back() != 1 || indices[batch] != editor.shape(x)[batch]
        || !isOwnPlace(editor.tensor(own), batch))
        return false;
    Operator within;
    within.kind = op.kind;
    within.attributes = op.attributes;
    within.attributes.set("batch_dims", static_cast<std::int64_t>(batch + 1));
    within.outputs = op.outputs;
    std::vector<Operator> made;
    std::vector<TensorId> others(joined->inputs.begin() + 1, joined->inputs.end());
    TensorId places = others.front();
    if (others.size() > 1) {
        TensorType type = editor.tensor(op.inputs[1]).type;
        --type.shape.back();
        places = editor.addTensor(std::move(type), op.inputs[1], "within");
        Operator rest;
        rest.kind = joined->kind;
        rest.attributes = joined->attributes;
        rest.inputs = std::move(others);
        rest.outputs = {places};
        made.push_back(std::move(rest));
    }
    within.inputs = {x, places};
    made.push_back(std::move(within));
    editor.replace({&op}, std::move(made));
    return true;
}

/// One row of a tensor along a dimension in which all rows are alike, within a range of another one.
class AlikeRow
{
public:
    AlikeRow(FuseEditor &editor, std::vector<Operator> &made)
        : m_editor(editor)
        , m_made(made)
    {
    }

    /// The row [.. 1 at `along` .. range.size() at `across` ..]; invalid if rows are not known to be alike.
    /// Dimensions are counted from the last, so that they are the same in all that is broadcast.
    TensorId of(TensorId id, std::size_t along, std::size_t across, Range range, int depth = 0)
    {
        constexpr int kDeepest = 8; // a value that is used twice is made twice
        const Shape shape = m_editor.shape(id);
        const auto extent = [&](std::size_t d) { return d < shape.size() ? shape[shape.size() - 1 - d] : 1; };
        if (extent(along) == 1)
            return extent(across) == 1 ? id : sliced(id, shape.size() - 1 - across, range);
        const Operator *maker = m_editor.maker(id);
        if (maker == nullptr || depth == kDeepest)
            return {};
        if (maker->kind == OperatorKind::Expand)
            return of(maker->inputs[0], along, across, range, depth + 1);
        if (maker->kind == OperatorKind::Concat)
            return ofPart(*maker, along, across, range, depth);
        // Dropout draws anew for each row.
        const bool byElement = isElementwise(maker->kind) && maker->kind != OperatorKind::Dropout;
        return byElement ? ofElements(*maker, along, across, range, depth) : TensorId{};
    }

private:
    TensorId sliced(TensorId id, std::size_t axis, Range range)
    {
        TensorType type = m_editor.tensor(id).type;
        if (range == Range{0, type.shape[axis]})
            return id;
        std::vector<std::int64_t> starts(type.shape.size(), 0);
        starts[axis] = range.begin;
        Operator slice;
        slice.kind = OperatorKind::Slice;
        slice.attributes.set("steps", std::vector<std::int64_t>(type.shape.size(), 1));
        slice.attributes.set("starts", std::move(starts));
        slice.inputs = {id};
        type.shape[axis] = range.size();
        return append(std::move(slice), std::move(type), id);
    }

    TensorId ofPart(const Operator &concat, std::size_t along, std::size_t across, Range range, int depth)
    {
        const std::size_t last = m_editor.shape(concat.outputs[0]).size() - 1;
        if (concat.attributes.integer("axis") != static_cast<std::int64_t>(last - across))
            return {};
        for (const TensorId part : concat.inputs) {
            const std::int64_t extent = m_editor.shape(part)[last - across];
            if (range.begin < extent)
                return range.end <= extent ? of(part, along, across, range, depth + 1) : TensorId{};
            range = {range.begin - extent, range.end - extent};
        }
        return {};
    }

    TensorId ofElements(const Operator &op, std::size_t along, std::size_t across, Range range, int depth)
    {
        Operator row;
        row.kind = op.kind;
        row.attributes = op.attributes;
        for (const TensorId input : op.inputs) {
            row.inputs.push_back(input ? of(input, along, across, range, depth + 1) : input);
            if (input && !row.inputs.back())
                return {};
        }
        TensorType type = m_editor.tensor(op.outputs[0]).type;
        const std::size_t last = type.shape.size() - 1;
        type.shape[last - along] = 1;
        type.shape[last - across] = range.size();
        return append(std::move(row), std::move(type), op.outputs[0]);
    }

    TensorId append(Operator op, TensorType type, TensorId like)
    {
        op.outputs = {m_editor.addTensor(std::move(type), like, "row")};
        m_made.push_back(std::move(op));
        return m_made.back().outputs[0];
    }

    FuseEditor &m_editor;
    std::vector<Operator> &m_made;
};

/// What a Gather of one place behind a Slice takes: some rows of one dimension, and a place of another.
struct Taken {
    TensorId from{};
    std::size_t along = 0; ///< The dimension of the rows, counted from the last.
    std::size_t across = 0; ///< That of the place, likewise.
    Range range{}; ///< The place.
};

std::optional<Taken> takenBy(const FuseEditor &editor, const Operator &pick)
{
    const std::optional<double> place =
        pick.inputs.size() > 1 ? editor.constant(pick.inputs[1]) : std::nullopt;
    if (!place || !editor.shape(pick.inputs[1]).empty())
        return std::nullopt;
    const Operator *rows = editor.madeBy(pick.inputs[0], OperatorKind::Slice);
    if (rows == nullptr)
        return std::nullopt;
    const Shape &whole = editor.shape(rows->inputs[0]);
    const Shape &part = editor.shape(rows->outputs[0]);
    const std::vector<std::int64_t> steps = rows->attributes.integers("steps");
    const auto across = static_cast<std::size_t>(pick.attributes.integer("axis"));
    if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; }))
        return std::nullopt;
    std::optional<std::size_t> along;
    for (std::size_t d = 0; d < whole.size(); ++d) {
        if (whole[d] == part[d])
            continue;
        if (along || d == across)
            return std::nullopt;
        along = d;
    }
    if (!along)
        return std::nullopt;
    auto begin = static_cast<std::int64_t>(*place);
    begin += begin < 0 ? part[across] : 0;
    return Taken{rows->inputs[0], whole.size() - 1 - *along, whole.size() - 1 - across, {begin, begin + 1}};
}

/// Gather(Slice(x, of dimension d), one place of another dimension) where x has the same there in every row
/// of d: a token for the class that stands before each image, of which one for each video is taken.
void shareRow(FuseEditor &editor, const Operator &pick)
{
    const std::optional<Taken> taken = takenBy(editor, pick);
    if (!taken)
        return;
    std::vector<Operator> made;
    const TensorId row = AlikeRow(editor, made).of(taken->from, taken->along, taken->across, taken->range);
    if (!row)
        return;
    TensorType type = editor.tensor(pick.outputs[0]).type;
    const Shape &from = editor.shape(taken->from);
    const std::size_t d = from.size() - 1 - taken->along;
    type.shape[d - (taken->across > taken->along ? 1 : 0)] = 1;
    Operator reshape;
    reshape.kind = OperatorKind::Reshape;
    reshape.inputs = {row};
    reshape.outputs = {editor.addTensor(std::move(type), pick.outputs[0], "row")};
    Operator expand;
    expand.kind = OperatorKind::Expand;
    expand.inputs = reshape.outputs;
    expand.outputs = pick.outputs;
    made.push_back(std::move(reshape));
    made.push_back(std::move(expand));
    editor.replace({&pick}, std::move(made));
}

/// True if a tensor's dimensions before `axis` are 1: its parts along `axis` lie one after the other.
bool isOutermost(const Shape &shape, std::int64_t axis)
{
    return std::all_of(shape.begin(), shape.begin() + axis, [](std::int64_t extent) { return extent == 1; });
}

/// Concat(Reshape(all parts of one Split)): images that are unbound to go through a list, for example.
void joinParts(FuseEditor &editor, const Operator &joined)
{
    const Operator *split = nullptr;
    bool reshaped = false;
    for (std::size_t i = 0; i < joined.inputs.size(); ++i) {
        TensorId part = joined.inputs[i];
        if (const Operator *reshape = editor.madeBy(part, OperatorKind::Reshape)) {
            part = reshape->inputs[0];
            reshaped = true;
        }
        const Operator *maker = editor.madeBy(part, OperatorKind::Split);
        if (maker == nullptr || (split != nullptr && maker != split) || i >= maker->outputs.size()
            || maker->outputs[i] != part)
            return;
        split = maker;
    }
    if (split == nullptr || split->outputs.size() != joined.inputs.size())
        return;
    const TensorId whole = split->inputs[0];
    const std::int64_t parted = split->attributes.integer("axis");
    const std::int64_t along = joined.attributes.integer("axis");
    if (reshaped ? !isOutermost(editor.shape(whole), parted)
                || !isOutermost(editor.shape(joined.outputs[0]), along)
                 : parted != along)
        return;
    Operator reshape;
    reshape.kind = OperatorKind::Reshape;
    reshape.inputs = {whole};
    reshape.outputs = joined.outputs;
    editor.replace({&joined}, std::move(reshape));
}

} // namespace

void untangleSamples(FuseEditor &editor)
{
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        while (editor.isAlive(i) && editor.op(i).kind == OperatorKind::GatherND
            && alignPick(editor, editor.op(i))) { }
        if (editor.isAlive(i) && editor.op(i).kind == OperatorKind::Gather)
            shareRow(editor, editor.op(i));
        else if (editor.isAlive(i) && editor.op(i).kind == OperatorKind::Concat)
            joinParts(editor, editor.op(i));
    }
}

} // namespace planloom
