#include "engine/frontend/passes/mixture/chosen_rows.h"

#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/dimensions/batch.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

std::size_t placeOf(TensorId id)
{
    return static_cast<std::size_t>(id.index);
}

Annotation annotationOf(const Graph &graph, const Operator &op)
{
    return annotate(op.kind, op.attributes, typesOf(graph, op.inputs), presentAmong(op.inputs),
        typesOf(graph, op.outputs))
        .annotation;
}

/// The first factor of size other than 1; -1 if there is none.
std::int32_t leadingFactor(const Annotation &annotation, const Term &term)
{
    for (const std::int32_t factor : term.factors) {
        if (annotation.dimensions[static_cast<std::size_t>(factor)].size != 1)
            return factor;
    }
    return -1;
}

bool isWholeTerm(const Annotation &annotation, const Term &term)
{
    return std::count_if(term.factors.begin(), term.factors.end(), [&](std::int32_t factor) {
        return annotation.dimensions[static_cast<std::size_t>(factor)].size != 1;
    }) == 1;
}

constexpr std::int64_t kMostAdded = std::int64_t{1} << 31; ///< To places, and
constexpr std::int64_t kMostTimes = std::int64_t{1} << 20; ///< what they may be multiplied by: see kNoPlace.

/// Known integers, all within what places can be moved by.
bool movesPlaces(const Tensor &tensor, OperatorKind kind)
{
    if (!tensor.data || isFloating(tensor.type.dataType))
        return false;
    const auto values = integersOf(*tensor.data);
    return std::all_of(values.begin(), values.end(), [kind](std::int64_t value) {
        return kind == OperatorKind::Mul ? value >= 1 && value <= kMostTimes
                                         : value >= -kMostAdded && value <= kMostAdded;
    });
}

/// The dimension of `to` that dimension `d` of `from` becomes where only dimensions of 1 come and go; -1 if
/// there is none.
std::int32_t keptDimension(const Shape &from, const Shape &to, std::size_t d)
{
    std::size_t i = 0;
    std::size_t o = 0;
    while (i < from.size() || o < to.size()) {
        if (i < from.size() && from[i] == 1) {
            ++i;
        } else if (o < to.size() && to[o] == 1) {
            ++o;
        } else if (i == from.size() || o == to.size() || from[i] != to[o]) {
            return -1;
        } else if (i == d) {
            return static_cast<std::int32_t>(o);
        } else {
            ++i;
            ++o;
        }
    }
    return -1;
}

/// `placesAfter` of sums and products of single indices.
std::optional<ChosenRows> calculated(const Graph &graph, const Operator &op,
    const std::vector<const ChosenRows *> &rows, const Shape &mask, std::size_t dimension)
{
    const auto single = [&](std::size_t slot) {
        return slot < rows.size() && rows[slot] != nullptr && rows[slot]->indices.size() == 1
            && rows[slot]->indexDimension < 0;
    };
    if (single(0) && single(1)) { // i n + j, in either order
        if (op.kind != OperatorKind::Add || rows[0]->indices.front() < 0 || rows[1]->indices.front() < 0)
            return std::nullopt;
        const bool ordered = rows[0]->scale >= rows[1]->scale;
        const ChosenRows &outer = *rows[ordered ? 0 : 1];
        const ChosenRows &inner = *rows[ordered ? 1 : 0];
        const std::int64_t most = inner.scale * mask[static_cast<std::size_t>(inner.indices.front())];
        ChosenRows result = outer;
        result.dimension = dimension;
        if (inner.scale == 0 || most > outer.scale)
            result.scale = 0;
        return result;
    }
    const std::size_t slot = single(0) ? 0 : 1;
    if (!single(slot) || (slot == 1 && op.kind == OperatorKind::Sub)
        || !movesPlaces(graph.at(op.inputs[1 - slot]), op.kind))
        return std::nullopt;
    ChosenRows result = *rows[slot];
    result.dimension = dimension;
    const auto values = integersOf(*graph.at(op.inputs[1 - slot]).data);
    if (op.kind == OperatorKind::Mul && (values.size() != 1 || result.scale > kMostTimes / values.front()))
        return std::nullopt;
    if (op.kind == OperatorKind::Mul)
        result.scale *= values.front();
    else if (std::any_of(values.begin(), values.end(), [](std::int64_t value) { return value != 0; }))
        result.scale = 0;
    return result;
}

using Places = std::optional<ChosenRows>;

/// The same places, but for which of their indices a value holds: one alone lies along no dimension.
ChosenRows withIndices(ChosenRows places, std::vector<std::int64_t> indices)
{
    places.indices = std::move(indices);
    if (places.indices.size() == 1)
        places.indexDimension = -1;
    return places;
}

/// Of places whose indices lie along a dimension: those that a slice of that dimension takes.
ChosenRows sliced(const ChosenRows &places, const Attributes &attributes, std::int64_t count)
{
    const auto d = static_cast<std::size_t>(places.indexDimension);
    const std::int64_t start = attributes.integers("starts")[d];
    const std::int64_t step = attributes.integers("steps")[d];
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < count; ++i)
        indices.push_back(places.indices[static_cast<std::size_t>(start + i * step)]);
    return withIndices(places, std::move(indices));
}

/// Those that part `output` of a Split of that dimension has.
ChosenRows divided(const ChosenRows &places, const Attributes &attributes, std::size_t output)
{
    const auto sizes = attributes.integers("sizes");
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < output; ++i)
        begin += sizes[i];
    const auto first = places.indices.begin() + begin;
    return withIndices(places, {first, first + sizes[output]});
}

/// Those that a Gather with known indices picks along that dimension.
Places picked(ChosenRows places, const Tensor &by)
{
    std::vector<std::int64_t> indices;
    const auto count = static_cast<std::int64_t>(places.indices.size());
    for (const std::int64_t index : integersOf(*by.data)) {
        if (index < -count || index >= count)
            return std::nullopt;
        indices.push_back(places.indices[static_cast<std::size_t>(index < 0 ? index + count : index)]);
    }
    if (indices.size() != 1 && by.type.shape.size() != 1)
        return std::nullopt;
    return withIndices(std::move(places), std::move(indices));
}

/// Places beside one another, and beside other numbers.
Places joined(const Graph &graph, const Operator &op, const std::vector<const ChosenRows *> &rows,
    std::size_t dimension)
{
    const auto axis = static_cast<std::size_t>(op.attributes.integer("axis"));
    ChosenRows result{{}, dimension, {}, static_cast<std::int32_t>(axis), 1};
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const ChosenRows *part = rows[slot];
        const bool places = part != nullptr && part->holdsPlaces();
        const auto extent = static_cast<std::size_t>(graph.at(op.inputs[slot]).type.shape[axis]);
        if (places && (part->indices.size() != extent || part->scale != 1))
            return std::nullopt;
        if (places)
            result.places = part->places;
        for (std::size_t i = 0; i < extent; ++i)
            result.indices.push_back(places ? part->indices[i] : -1);
    }
    return result.places ? Places(result) : std::nullopt;
}

/// What becomes of places in the first input, by an operator that moves them.
Places movedPlaces(const Graph &graph, const Operator &op, const ChosenRows &places, std::size_t output)
{
    using enum OperatorKind;
    const bool single = places.indexDimension < 0;
    const Shape &from = graph.at(op.inputs[0]).type.shape;
    const Shape &to = graph.at(op.outputs[0]).type.shape;
    ChosenRows result = places;
    switch (op.kind) {
    case Identity:
        return result;
    case Expand:
        return single ? Places(result) : std::nullopt;
    case Cast:
        return graph.at(op.outputs[0]).type.dataType == DataType::Int64 ? Places(result) : std::nullopt;
    case Reshape:
        if (!single)
            result.indexDimension = keptDimension(from, to, static_cast<std::size_t>(places.indexDimension));
        return single || result.indexDimension >= 0 ? Places(result) : std::nullopt;
    case Transpose: {
        const auto permutation = op.attributes.integers("permutation");
        const auto found = std::find(permutation.begin(), permutation.end(), places.indexDimension);
        if (!single)
            result.indexDimension = static_cast<std::int32_t>(found - permutation.begin());
        return result;
    }
    case Slice:
        return single ? result
                      : sliced(places, op.attributes, to[static_cast<std::size_t>(places.indexDimension)]);
    case Split:
        return single || op.attributes.integer("axis") != places.indexDimension
            ? result
            : divided(places, op.attributes, output);
    case Gather: {
        const Tensor &by = graph.at(op.inputs[1]);
        if (single || op.attributes.integer("axis") != places.indexDimension || !by.data)
            return std::nullopt;
        return picked(places, by);
    }
    default:
        return std::nullopt;
    }
}

} // namespace

std::optional<ChosenRows> placesAfter(const Graph &graph, const Operator &op,
    const std::vector<const ChosenRows *> &rows, const Shape &mask, std::size_t output, std::size_t dimension)
{
    using enum OperatorKind;
    const auto moved = [&](const ChosenRows &from) {
        ChosenRows result = from;
        result.dimension = dimension;
        return result;
    };
    switch (op.kind) {
    case Add:
    case Sub:
    case Mul:
        return calculated(graph, op, rows, mask, dimension);
    case Where: { // places counted from the end are made to be counted from the beginning
        const bool both = rows.size() > 2 && rows[1] != nullptr && rows[2] != nullptr
            && rows[1]->holdsPlaces() && rows[1]->indices == rows[2]->indices
            && rows[1]->indexDimension == rows[2]->indexDimension;
        return both ? Places(moved(*rows[1])) : std::nullopt;
    }
    case Concat:
        return joined(graph, op, rows, dimension);
    default: {
        const ChosenRows *first = rows.empty() ? nullptr : rows[0];
        return first != nullptr && first->holdsPlaces() ? movedPlaces(graph, op, moved(*first), output)
                                                        : std::nullopt;
    }
    }
}

RowFlow followRows(const Graph &graph, const Operator &op, const std::vector<const ChosenRows *> &rows)
{
    RowFlow flow;
    flow.dimensions.assign(op.outputs.size(), -1);
    const Annotation annotation = annotationOf(graph, op);
    std::int32_t identifier = -1;
    TensorId places;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (rows[slot] == nullptr)
            continue;
        const TensorTerms &terms = annotation.inputs[slot];
        const std::size_t d = rows[slot]->dimension;
        const std::int32_t factor = terms.opaque || !isWholeTerm(annotation, terms.terms[d])
            ? -1
            : leadingFactor(annotation, terms.terms[d]);
        const bool through = factor >= 0
            && annotation.dimensions[static_cast<std::size_t>(factor)].mark == DimensionMark::Spatial;
        if (!through) {
            flow.problem = "it needs all rows at once, of which data choose how many there are";
            return flow;
        }
        if ((identifier >= 0 && identifier != factor) || (places && places != rows[slot]->places)) {
            flow.problem = "it combines rows that different data choose";
            return flow;
        }
        identifier = factor;
        places = rows[slot]->places;
    }
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        const TensorTerms &terms = annotation.outputs[slot];
        for (std::size_t d = 0; d < terms.terms.size() && !terms.opaque; ++d) {
            const bool whole = isWholeTerm(annotation, terms.terms[d]);
            if (leadingFactor(annotation, terms.terms[d]) != identifier)
                continue;
            if (whole)
                flow.dimensions[slot] = static_cast<std::int32_t>(d);
            else
                flow.problem =
                    "it joins rows, of which data choose how many there are, with another dimension";
        }
        if (flow.dimensions[slot] < 0 && flow.problem.empty())
            flow.problem = "its result does not come row by row, and data choose how many rows there are";
    }
    return flow;
}

void BatchDimensions::update(const Graph &graph)
{
    if (m_dimensions.empty())
        m_size = batchSize(graph);
    m_dimensions.resize(graph.tensors.size(), -1);
    for (const TensorId input : graph.inputs) {
        const Shape &shape = graph.at(input).type.shape;
        if (!shape.empty() && shape[0] == m_size)
            m_dimensions[placeOf(input)] = 0;
    }
    for (; m_followed < graph.operators.size() && m_size > 1; ++m_followed) {
        const Operator &op = graph.operators[m_followed];
        const bool depends = std::any_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return id && m_dimensions[placeOf(id)] >= 0; });
        if (!depends)
            continue;
        const Annotation annotation = annotationOf(graph, op);
        std::int32_t identifier = -1;
        for (std::size_t slot = 0; slot < op.inputs.size() && identifier < 0; ++slot) {
            const TensorTerms &terms = annotation.inputs[slot];
            const std::int32_t d = op.inputs[slot] ? m_dimensions[placeOf(op.inputs[slot])] : -1;
            if (d >= 0 && !terms.opaque)
                identifier = leadingFactor(annotation, terms.terms[static_cast<std::size_t>(d)]);
        }
        for (std::size_t slot = 0; slot < op.outputs.size() && identifier >= 0; ++slot) {
            const TensorTerms &terms = annotation.outputs[slot];
            for (std::size_t d = 0; d < terms.terms.size() && !terms.opaque; ++d) {
                const auto factor = splittableFactor(annotation, terms.terms[d]);
                const bool wholeSamples =
                    factor && annotation.dimensions[static_cast<std::size_t>(*factor)].size % m_size == 0;
                if (wholeSamples && *factor == identifier)
                    m_dimensions[placeOf(op.outputs[slot])] = static_cast<std::int32_t>(d);
            }
        }
    }
}

namespace {

/// True for operators whose output has elements of their first input, and nothing else.
bool onlyMoves(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case Identity:
    case Cast:
    case Reshape:
    case Transpose:
    case Expand:
    case Slice:
    case Split:
    case Gather:
        return true;
    default:
        return false;
    }
}

/// Of how many values the elements of `id` are one: 0 if nothing is known.
std::int64_t choicesOf(const Graph &graph, const std::vector<OperatorId> &producers, TensorId id)
{
    while (id && producers[placeOf(id)]) {
        const Operator &op = graph.at(producers[placeOf(id)]);
        const bool chooses = op.kind == OperatorKind::ArgMax || op.kind == OperatorKind::ArgMin
            || (op.kind == OperatorKind::TopK && op.outputs.size() > 1 && op.outputs[1] == id);
        if (chooses)
            return graph.at(op.inputs[0]).type.shape[static_cast<std::size_t>(op.attributes.integer("axis"))];
        if (!onlyMoves(op.kind))
            return 0;
        id = op.inputs[0];
    }
    return 0;
}

} // namespace

double expectedShare(const Graph &graph, const std::vector<OperatorId> &producers, TensorId mask)
{
    using enum OperatorKind;
    double times = 1; // elements of what is looked at for each element of the mask
    while (mask && producers[placeOf(mask)]) {
        const Operator &op = graph.at(producers[placeOf(mask)]);
        if (op.kind == OneHot)
            return std::min(1.0, times / static_cast<double>(op.attributes.integer("depth", 1)));
        if (op.kind == Equal) {
            const auto choices = std::max(
                choicesOf(graph, producers, op.inputs[0]), choicesOf(graph, producers, op.inputs[1]));
            return choices > 0 ? std::min(1.0, times / static_cast<double>(choices)) : 1;
        }
        if (op.kind == ReduceSum || op.kind == ReduceMax)
            times *= static_cast<double>(elementCount(graph.at(op.inputs[0]).type.shape))
                / static_cast<double>(
                    std::max<std::int64_t>(1, elementCount(graph.at(op.outputs[0]).type.shape)));
        else if (op.kind != Greater && !onlyMoves(op.kind))
            return 1;
        mask = op.inputs[0];
    }
    return 1;
}

} // namespace planloom
