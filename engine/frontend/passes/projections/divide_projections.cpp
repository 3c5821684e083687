#include "engine/frontend/passes/projections/divide_projections.h"

#include "engine/frontend/passes/dead_code.h"
#include "engine/frontend/passes/projections/projection_columns.h"
#include "engine/frontend/unique_names.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// What one output of a Split, a Slice or a Gather takes of the dimension that holds the columns.
struct Taken {
    std::int64_t begin = 0;
    std::int64_t length = 0;
    TensorId tensor{};
    bool dropped = false; ///< The dimension is gone: a Gather of a single place.
};

/// `count` neighbours of `length` places each, which stay together.
struct EqualParts {
    std::int64_t begin = 0;
    std::int64_t length = 0;
    std::int64_t count = 0;
    std::int64_t size() const { return length * count; }
    friend bool operator==(const EqualParts &, const EqualParts &) = default;
};

/// An operator that columns pass on their way.
struct Passed {
    std::int32_t op = -1;
    std::size_t axis = 0; ///< Of its output, that holds the columns.
    std::int64_t columns = 1; ///< In each place of that dimension.
};

/// How the columns of one product are divided.
struct Division {
    TensorId weight{};
    TensorId bias{};
    std::size_t weightAxis = 0;
    std::vector<Passed> way{}; ///< The product first, the last one's output is what is cut.
    std::vector<std::int32_t> cutters{};
    std::vector<Taken> taken{};
    std::vector<EqualParts> parts{}; ///< In places of what is cut.
    std::int64_t columns() const { return way.back().columns; } ///< In each such place.
};

/// The parts in columns of the product, which is what products of one weight must agree about.
std::vector<EqualParts> inColumns(const Division &division)
{
    std::vector<EqualParts> parts = division.parts;
    for (EqualParts &part : parts) {
        part.begin *= division.columns();
        part.length *= division.columns();
    }
    return parts;
}

/// Neighbours of equal lengths together; empty if they overlap, leave something over, or are all equal.
std::vector<EqualParts> partsOf(std::vector<Taken> taken, std::int64_t extent)
{
    std::sort(taken.begin(), taken.end(), [](const Taken &a, const Taken &b) {
        return std::pair(a.begin, a.length) < std::pair(b.begin, b.length);
    });
    std::vector<EqualParts> parts;
    std::int64_t end = 0;
    const Taken *last = nullptr;
    for (const Taken &piece : taken) {
        if (last && piece.begin == last->begin && piece.length == last->length)
            continue; // taken twice
        if (piece.begin != end || piece.length < 1)
            return {};
        if (!parts.empty() && parts.back().length == piece.length)
            ++parts.back().count;
        else
            parts.push_back({piece.begin, piece.length, 1});
        end += piece.length;
        last = &piece;
    }
    return end == extent && parts.size() > 1 ? parts : std::vector<EqualParts>{};
}

class ProjectionDivider : ProjectionPass
{
public:
    explicit ProjectionDivider(Graph &graph)
        : ProjectionPass(graph)
        , m_tensorNames(UniqueNames::ofTensors(graph))
        , m_operatorNames(UniqueNames::ofOperators(graph))
    {
    }

    std::int32_t run();

private:
    std::optional<Division> divisionOf(std::int32_t product) const;
    std::optional<Passed> passedBy(std::int32_t op, TensorId tensor, const Passed &before) const;
    std::optional<std::vector<Taken>> takenFrom(TensorId tensor, std::size_t axis) const;
    std::optional<std::int64_t> placeOf(const Operator &gather) const;
    const std::vector<TensorId> &partsOfParameter(
        TensorId id, std::size_t axis, const std::vector<EqualParts> &parts);
    TensorId partOfParameter(
        const Tensor &whole, std::size_t axis, const EqualParts &part, const std::string &suffix);
    TensorId activation(const Tensor &like, Shape shape, const std::string &suffix);
    Operator named(const Operator &like, const std::string &suffix);
    void apply(const Division &division);
    void bringOut(const Division &division, const EqualParts &part, TensorId made, const std::string &suffix);

    UniqueNames m_tensorNames;
    UniqueNames m_operatorNames;
    std::map<std::int32_t, Division> m_divisions{}; ///< By product.
    std::map<TensorId, std::vector<TensorId>> m_parameters{}; ///< What became of weights and biases.
    std::map<std::int32_t, std::vector<Operator>> m_instead{}; ///< By operator: what stands in its place.
    std::map<TensorId, TensorId> m_same{}; ///< What is read in place of a tensor that was taken twice.
};

/// The single place that a Gather takes, if it is known.
std::optional<std::int64_t> ProjectionDivider::placeOf(const Operator &gather) const
{
    const Tensor &indices = m_graph.at(gather.inputs[1]);
    if (!indices.data || elementCount(indices.type.shape) != 1 || indices.type.shape.size() > 1
        || (indices.type.dataType != DataType::Int64 && indices.type.dataType != DataType::Int32))
        return std::nullopt;
    const std::int64_t extent =
        shapeOf(gather.inputs[0])[static_cast<std::size_t>(gather.attributes.integer("axis"))];
    const std::int64_t place = integersOf(*indices.data).front();
    if (place < -extent || place >= extent)
        return std::nullopt;
    return place < 0 ? place + extent : place;
}

/// What the users of `tensor` take of dimension `axis`, if all of them do nothing else with it.
std::optional<std::vector<Taken>> ProjectionDivider::takenFrom(TensorId tensor, std::size_t axis) const
{
    std::vector<Taken> taken;
    for (const std::int32_t user : usersOf(tensor)) {
        const Operator &op = at(user);
        if (op.kind == OperatorKind::Gather) {
            if (op.inputs[0] != tensor || op.inputs[1] == tensor
                || op.attributes.integer("axis") != static_cast<std::int64_t>(axis))
                return std::nullopt;
            const auto place = placeOf(op);
            if (!place)
                return std::nullopt;
            taken.push_back({*place, 1, op.outputs[0], shapeOf(op.inputs[1]).empty()});
            continue;
        }
        const auto cut = cutOf(m_graph, op, axis);
        if (!cut)
            return std::nullopt;
        for (std::size_t i = 0; i < cut->lengths.size(); ++i)
            taken.push_back(
                {cut->begins[i], cut->lengths[i], i < op.outputs.size() ? op.outputs[i] : TensorId{}, false});
    }
    return taken;
}

/// Where the columns are behind `op`, if it keeps them together.
std::optional<Passed> ProjectionDivider::passedBy(
    std::int32_t op, TensorId tensor, const Passed &before) const
{
    using enum OperatorKind;
    const Operator &next = at(op);
    if (next.outputs.size() != 1)
        return std::nullopt;
    const Shape &in = shapeOf(tensor);
    const Shape &out = shapeOf(next.outputs[0]);
    if (next.kind == Transpose)
        return Passed{op, transposedAxis(next, before.axis), before.columns};
    if (next.kind == Reshape) {
        if (const auto to = keptBy(in, out, before.axis))
            return Passed{op, *to, before.columns};
        const auto to = dividedBy(in, out, before.axis);
        return to ? std::optional(Passed{op, *to, before.columns * (in[before.axis] / out[*to])})
                  : std::nullopt;
    }
    // What Dropout keeps depends on an element's place in the whole.
    if (!passesColumns(next.kind) || next.kind == Dropout || !isAlone(next, tensor) || out != in)
        return std::nullopt;
    return Passed{op, before.axis, before.columns};
}

std::optional<Division> ProjectionDivider::divisionOf(std::int32_t product) const
{
    const Operator &op = at(product);
    if (!isProjection(op))
        return std::nullopt;
    const auto isParameter = [this](TensorId id) {
        const Tensor &tensor = m_graph.at(id);
        return (tensor.role == TensorRole::Weight || tensor.role == TensorRole::Buffer)
            && tensor.fileShape.empty();
    };
    Division division;
    division.weight = op.inputs[1];
    division.weightAxis = op.attributes.integer("transposed") != 0 ? 0 : 1;
    if (op.inputs.size() > 2)
        division.bias = op.inputs[2];
    if (!isParameter(division.weight)
        || (division.bias && (!isParameter(division.bias) || shapeOf(division.bias).size() != 1)))
        return std::nullopt;
    division.way.push_back({product, shapeOf(op.outputs[0]).size() - 1, 1});
    while (division.way.size() <= kMostStepsToCut) {
        const Passed &last = division.way.back();
        const TensorId tensor = at(last.op).outputs[0];
        if (m_isOutput[index(tensor)] || usersOf(tensor).empty())
            return std::nullopt;
        if (auto taken = takenFrom(tensor, last.axis)) {
            division.parts = partsOf(*taken, shapeOf(tensor)[last.axis]);
            division.taken = *std::move(taken);
            division.cutters = usersOf(tensor);
            return division.parts.empty() ? std::nullopt : std::optional(std::move(division));
        }
        if (usersOf(tensor).size() != 1)
            return std::nullopt;
        const auto next = passedBy(usersOf(tensor).front(), tensor, last);
        if (!next)
            return std::nullopt;
        division.way.push_back(*next);
    }
    return std::nullopt;
}

/// The part of a weight or bias, with its values.
TensorId ProjectionDivider::partOfParameter(
    const Tensor &whole, std::size_t axis, const EqualParts &part, const std::string &suffix)
{
    Tensor tensor = whole;
    tensor.name = m_tensorNames.take(whole.name + suffix);
    tensor.type.shape[axis] = part.size();
    tensor.filePart =
        FilePart{nameInFiles(whole), whole.type.shape, static_cast<std::int32_t>(axis), part.begin};
    if (whole.data) {
        const FileRuns runs = runsInFile(tensor);
        const auto size = static_cast<std::size_t>(sizeOf(tensor.type.dataType));
        auto data = std::make_shared<TensorData>();
        data->type = tensor.type;
        data->bytes.resize(static_cast<std::size_t>(elementCount(tensor.type.shape)) * size);
        const std::size_t length = static_cast<std::size_t>(runs.length) * size;
        for (std::int64_t run = 0; run < runs.count; ++run)
            std::memcpy(data->bytes.data() + static_cast<std::size_t>(run) * length,
                whole.data->bytes.data() + static_cast<std::size_t>(runs.first + run * runs.stride) * size,
                length);
        tensor.data = std::move(data);
    }
    if (whole.filePart && whole.filePart->shape != whole.type.shape) { // of a part
        tensor.filePart = whole.filePart;
        tensor.filePart->begin += part.begin;
    }
    m_graph.tensors.push_back(std::move(tensor));
    return {static_cast<std::int32_t>(m_graph.tensors.size() - 1)};
}

const std::vector<TensorId> &ProjectionDivider::partsOfParameter(
    TensorId id, std::size_t axis, const std::vector<EqualParts> &parts)
{
    std::vector<TensorId> &made = m_parameters[id];
    if (made.empty()) { // else shared, and done already
        const Tensor whole = m_graph.at(id);
        for (std::size_t i = 0; i < parts.size(); ++i)
            made.push_back(partOfParameter(whole, axis, parts[i], ".part." + std::to_string(i)));
    }
    return made;
}

TensorId ProjectionDivider::activation(const Tensor &like, Shape shape, const std::string &suffix)
{
    Tensor tensor = like;
    tensor.name = m_tensorNames.take(like.name + suffix);
    tensor.type.shape = std::move(shape);
    m_graph.tensors.push_back(std::move(tensor));
    return {static_cast<std::int32_t>(m_graph.tensors.size() - 1)};
}

Operator ProjectionDivider::named(const Operator &like, const std::string &suffix)
{
    Operator op = like;
    op.name = m_operatorNames.take(like.name + suffix);
    return op;
}

/// Makes what took places of `part` read `made`, which has those places alone.
void ProjectionDivider::bringOut(
    const Division &division, const EqualParts &part, TensorId made, const std::string &suffix)
{
    const Passed &last = division.way.back();
    const Operator &cutter = at(division.cutters.front());
    std::vector<Operator> &operators = m_instead[division.cutters.front()];
    std::vector<TensorId> pieces{made};
    const auto shapeOfPiece = [&] {
        Shape shape = shapeOf(made);
        shape[last.axis] = part.length;
        return shape;
    };
    if (part.count > 1) {
        Operator split = named(cutter, suffix);
        split.kind = OperatorKind::Split;
        split.attributes = {};
        split.attributes.set("axis", static_cast<std::int64_t>(last.axis));
        split.attributes.set(
            "sizes", std::vector<std::int64_t>(static_cast<std::size_t>(part.count), part.length));
        split.inputs = {made};
        pieces.clear();
        const Tensor like = m_graph.at(made);
        for (std::int64_t i = 0; i < part.count; ++i)
            pieces.push_back(activation(like, shapeOfPiece(), "." + std::to_string(i)));
        split.outputs = pieces;
        operators.push_back(std::move(split));
    }
    for (const Taken &taken : division.taken) {
        if (!taken.tensor || taken.begin < part.begin || taken.begin >= part.begin + part.size())
            continue;
        const TensorId piece = pieces[static_cast<std::size_t>((taken.begin - part.begin) / part.length)];
        if (!taken.dropped && !m_isOutput[index(taken.tensor)]) {
            m_same[taken.tensor] = piece;
            continue;
        }
        // Without the dimension, or known outside by its name.
        Operator reshape = named(cutter, suffix);
        reshape.kind = OperatorKind::Reshape;
        reshape.attributes = {};
        reshape.inputs = {piece};
        reshape.outputs = {taken.tensor};
        operators.push_back(std::move(reshape));
    }
}

void ProjectionDivider::apply(const Division &division)
{
    const std::vector<EqualParts> columns = inColumns(division);
    const auto weights = partsOfParameter(division.weight, division.weightAxis, columns);
    const auto biases = division.bias ? partsOfParameter(division.bias, 0, columns) : std::vector<TensorId>{};
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::string suffix = ".part." + std::to_string(i);
        TensorId made;
        TensorId before;
        for (const Passed &passed : division.way) {
            Operator op = named(at(passed.op), suffix);
            if (op.kind == OperatorKind::Linear && !before) {
                op.inputs[1] = weights[i];
                if (division.bias)
                    op.inputs[2] = biases[i];
            }
            if (before)
                std::replace(op.inputs.begin(), op.inputs.end(), before, made);
            before = op.outputs[0];
            Shape shape = shapeOf(before);
            shape[passed.axis] = columns[i].size() / passed.columns;
            const Tensor like = m_graph.at(before);
            made = activation(like, std::move(shape), suffix);
            op.outputs[0] = made;
            m_instead[passed.op].push_back(std::move(op));
        }
        bringOut(division, division.parts[i], made, suffix);
    }
    for (const std::int32_t cutter : division.cutters)
        m_instead.try_emplace(cutter); // gone
}

std::int32_t ProjectionDivider::run()
{
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        if (auto division = divisionOf(static_cast<std::int32_t>(i)))
            m_divisions.emplace(static_cast<std::int32_t>(i), *std::move(division));
    }
    // A weight that several products share, or a bias, is divided alike for all of them.
    keepAgreed(m_divisions, [](const Division &other, const Division &own, bool weight) {
        return (!weight || other.weightAxis == own.weightAxis) && inColumns(other) == inColumns(own);
    });
    std::int32_t weights = 0;
    for (const auto &[product, division] : m_divisions) {
        weights += m_parameters.contains(division.weight) ? 0 : 1;
        apply(division);
    }
    if (m_divisions.empty())
        return 0;
    std::vector<Operator> operators;
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const auto instead = m_instead.find(static_cast<std::int32_t>(i));
        if (instead == m_instead.end())
            operators.push_back(std::move(m_graph.operators[i]));
        else
            std::move(instead->second.begin(), instead->second.end(), std::back_inserter(operators));
    }
    m_graph.operators = std::move(operators);
    for (Operator &op : m_graph.operators) {
        for (TensorId &input : op.inputs) {
            if (const auto same = m_same.find(input); same != m_same.end())
                input = same->second;
        }
    }
    return weights;
}

} // namespace

std::int32_t divideProjections(Graph &graph)
{
    std::int32_t weights = 0;
    while (const std::int32_t divided = ProjectionDivider(graph).run()) { // parts may have unequal parts
        weights += divided;
        removeDeadCode(graph); // the whole weights
    }
    return weights;
}

} // namespace planloom
