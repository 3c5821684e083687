#include "engine/frontend/passes/mixture/chosen_writer.h"

#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <numeric>

namespace planloom {

namespace {

std::string countedPlaces(std::int64_t room, std::int64_t groups)
{
    return std::to_string(room)
        + (groups > 1 ? " of each of " + std::to_string(groups) + " samples" : std::string(" of them"));
}

} // namespace

Error ChosenWriter::refused(const std::string &why) const
{
    return {ErrorCode::NotSupported, "node '" + m_name + "' (" + m_source.type + "): " + why,
        "compute with masks in place of what they choose (torch.where, a product with the mask), which "
        "keep the shape",
        "node:" + (m_source.name.empty() ? m_name : m_source.name)};
}

ChosenWriter::Outputs ChosenWriter::append(OperatorKind kind, Attributes attributes,
    std::vector<TensorId> inputs, std::vector<TensorType> declared, const char *suffix)
{
    return m_writer.append(
        m_name + suffix, m_source, kind, std::move(attributes), std::move(inputs), std::move(declared), true);
}

ChosenWriter::Outputs ChosenWriter::write(
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared)
{
    using enum OperatorKind;
    const auto holdsPlaces = [&](std::size_t slot) {
        const ChosenRows *rows =
            slot < inputs.size() && inputs[slot] ? m_writer.chosen().rows(inputs[slot]) : nullptr;
        return rows != nullptr && rows->holdsPlaces();
    };
    for (const TensorId input : inputs) {
        if (const ChosenRows *rows = input ? m_writer.chosen().rows(input) : nullptr;
            rows != nullptr && rows->parts > 0)
            return kind == Gather && input == inputs[0]
                ? lastOfParts(attributes, inputs)
                : refused("it reads rows in parts that are as long as data say, of which only the last of "
                          "each can be had, as in x[:, -1]");
    }
    switch (kind) {
    case Gather:
        if (holdsPlaces(1))
            return gather(std::move(attributes), inputs);
        break;
    case GatherND:
        if (holdsPlaces(1))
            return gatherND(std::move(attributes), inputs);
        break;
    case GatherElements:
        if (holdsPlaces(1))
            return gatherElements(std::move(attributes), inputs);
        break;
    case ScatterND:
        return scatterND(std::move(attributes), inputs);
    case ScatterElements:
        return scatterElements(std::move(attributes), inputs);
    case ReduceSum:
    case ReduceMean:
        return reduce(kind, std::move(attributes), std::move(inputs));
    case CrossEntropy:
    case NegativeLogLikelihood:
    case CountValid:
        return loss(kind, std::move(attributes), std::move(inputs));
    case NonZero:
        return refused("it chooses among rows that data choose already");
    case Reshape:
        if (const ChosenRows *rows = m_writer.chosen().rows(inputs[0]);
            rows != nullptr && !rows->holdsPlaces() && rows->dimension == 0 && !declared.empty()) {
            const Shape &from = m_writer.typeOf(inputs[0]).shape;
            const Shape &to = declared[0].shape;
            if (to.size() == from.size() + 1 && to[0] > 1 && to[0] * to[1] == from[0]
                && std::equal(from.begin() + 1, from.end(), to.begin() + 2))
                return divide(inputs, declared[0]);
        }
        break;
    default:
        break;
    }
    return byRow(kind, std::move(attributes), std::move(inputs), std::move(declared));
}

ChosenWriter::Outputs ChosenWriter::byRow(
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared)
{
    TRY(auto outputs, append(kind, attributes, inputs, std::move(declared)));
    std::vector<std::optional<ChosenRows>> own;
    std::vector<const ChosenRows *> rows;
    for (const TensorId input : inputs) {
        const ChosenRows *found = input ? m_writer.chosen().rows(input) : nullptr;
        own.push_back(found == nullptr ? std::nullopt : std::optional(*found));
    }
    for (const auto &found : own)
        rows.push_back(found ? &*found : nullptr);
    Operator op;
    op.kind = kind;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    op.outputs = outputs;
    const RowFlow flow = followRows(m_writer.written(), op, rows);
    if (!flow.problem.empty())
        return refused(flow.problem);
    const auto any =
        std::find_if(rows.begin(), rows.end(), [](const auto *found) { return found != nullptr; });
    const Operator &chooser = m_writer.written().at(m_writer.producerOf((*any)->places));
    const Shape mask = m_writer.typeOf(chooser.inputs[0]).shape;
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        const auto dimension = static_cast<std::size_t>(flow.dimensions[slot]);
        const auto held = placesAfter(m_writer.written(), op, rows, mask, slot, dimension);
        m_writer.chosen().setRows(outputs[slot], held ? *held : ChosenRows{(*any)->places, dimension});
    }
    return outputs;
}

std::int64_t ChosenWriter::groupsOf(const ChosenRows &rows, TensorId x, std::size_t axis)
{
    const Operator &op = m_writer.written().at(m_writer.producerOf(rows.places));
    const std::int64_t groups = op.attributes.integer("groups", 1);
    const std::int64_t groupAxis = op.attributes.integer("group_axis");
    const Shape &mask = m_writer.typeOf(op.inputs[0]).shape;
    const Shape &shape = m_writer.typeOf(x).shape;
    const bool sameAxis = !rows.indices.empty() && rows.indices.front() == groupAxis && axis < shape.size()
        && shape[axis] == mask[static_cast<std::size_t>(groupAxis)] * rows.scale;
    const bool constant = m_writer.at(x).role == TensorRole::Buffer;
    const bool cut =
        sameAxis && (constant || m_writer.batchDimensionOf(x) == static_cast<std::int32_t>(axis));
    return cut ? groups : 1;
}

ChosenWriter::Outputs ChosenWriter::gather(Attributes attributes, const std::vector<TensorId> &inputs)
{
    const ChosenRows rows = *m_writer.chosen().rows(inputs[1]);
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    if (m_writer.chosen().rows(inputs[0]) != nullptr || rows.indices.size() != 1)
        return refused("it picks places among rows that data choose");
    attributes.set("groups", groupsOf(rows, inputs[0], axis));
    attributes.set("grouped", static_cast<std::int64_t>(rows.dimension));
    TRY(auto outputs, append(OperatorKind::Gather, std::move(attributes), inputs));
    m_writer.chosen().setRows(outputs[0], ChosenRows{rows.places, axis + rows.dimension});
    return outputs;
}

ChosenWriter::Outputs ChosenWriter::gatherND(Attributes attributes, const std::vector<TensorId> &inputs)
{
    const ChosenRows rows = *m_writer.chosen().rows(inputs[1]);
    const Shape indices = m_writer.typeOf(inputs[1]).shape;
    const bool last = rows.indexDimension < 0
        ? indices.back() == 1 && rows.dimension + 1 < indices.size()
        : rows.indexDimension + 1 == static_cast<std::int32_t>(indices.size());
    if (m_writer.chosen().rows(inputs[0]) != nullptr || attributes.integer("batch_dims") != 0 || !last)
        return refused("it picks places in a way that is not known");
    attributes.set("groups", groupsOf(rows, inputs[0], 0));
    attributes.set("grouped", static_cast<std::int64_t>(rows.dimension));
    TRY(auto outputs, append(OperatorKind::GatherND, std::move(attributes), inputs));
    m_writer.chosen().setRows(outputs[0], ChosenRows{rows.places, rows.dimension});
    return outputs;
}

std::optional<TensorId> ChosenWriter::beforeExpand(TensorId x, std::size_t axis) const
{
    const Graph &graph = m_writer.written();
    const ChosenRows *rows = m_writer.chosen().rows(x);
    if (rows == nullptr || !rows->holdsPlaces() || rows->dimension != axis)
        return std::nullopt;
    const auto alone = [&](TensorId id) {
        const Shape &shape = graph.at(id).type.shape;
        const ChosenRows *own = m_writer.chosen().rows(id);
        return own != nullptr && own->indices.size() == 1 && elementCount(shape) == shape[own->dimension];
    };
    TensorId id = x;
    while (!alone(id)) {
        const OperatorId producer = m_writer.producerOf(id);
        if (!producer || graph.at(producer).kind != OperatorKind::Expand)
            return std::nullopt;
        id = graph.at(producer).inputs[0];
    }
    return id;
}

Result<TensorId> ChosenWriter::reshaped(TensorId x, Shape shape, const char *suffix)
{
    const TensorType type = m_writer.typeOf(x);
    if (type.shape == shape)
        return x;
    TRY(const auto made,
        m_writer.emit(m_name + suffix, m_source, OperatorKind::Reshape, {}, {x},
            {TensorType{type.dataType, std::move(shape)}}));
    return made[0];
}

ChosenWriter::Outputs ChosenWriter::gatherElements(Attributes attributes, const std::vector<TensorId> &inputs)
{
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    const Shape &x = m_writer.typeOf(inputs[0]).shape;
    Shape indices = m_writer.typeOf(inputs[1]).shape;
    const auto places = beforeExpand(inputs[1], axis);
    indices[axis] = x[axis];
    if (!places || indices != x)
        return refused("it picks places in a way that is not known");
    TRY(const TensorId list, reshaped(*places, {elementCount(m_writer.typeOf(*places).shape)}, "_places"));
    return gather(std::move(attributes), {inputs[0], list});
}

ChosenWriter::Outputs ChosenWriter::scatterND(Attributes attributes, const std::vector<TensorId> &inputs)
{
    const ChosenRows *places = m_writer.chosen().rows(inputs[1]);
    const ChosenRows *updates = m_writer.chosen().rows(inputs[2]);
    if (m_writer.chosen().rows(inputs[0]) != nullptr || places == nullptr || !places->holdsPlaces())
        return refused("it writes rows that data choose where there are none, or into such rows");
    const ChosenRows rows = *places;
    const Shape indices = m_writer.typeOf(inputs[1]).shape;
    const bool last = rows.indexDimension < 0
        ? indices.back() == 1 && rows.dimension + 1 < indices.size()
        : rows.indexDimension + 1 == static_cast<std::int32_t>(indices.size());
    if (!last
        || (updates != nullptr && (updates->places != rows.places || updates->dimension != rows.dimension)))
        return refused("it writes at places in a way that is not known");
    attributes.set("groups", groupsOf(rows, inputs[0], 0));
    attributes.set("grouped", static_cast<std::int64_t>(rows.dimension));
    return append(OperatorKind::ScatterND, std::move(attributes), inputs);
}

ChosenWriter::Outputs ChosenWriter::scatterElements(
    Attributes attributes, const std::vector<TensorId> &inputs)
{
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    const Shape &x = m_writer.typeOf(inputs[0]).shape;
    Shape indices = m_writer.typeOf(inputs[1]).shape;
    const auto places = beforeExpand(inputs[1], axis);
    indices[axis] = x[axis];
    if (axis != 0 || !places || indices != x)
        return refused("it writes at places in a way that is not known");
    TRY(const TensorId list, reshaped(*places, {elementCount(m_writer.typeOf(*places).shape), 1}, "_places"));
    Attributes own;
    own.set("reduction", attributes.text("reduction", "none"));
    return scatterND(std::move(own), {inputs[0], list, inputs[2]});
}

Result<TensorId> ChosenWriter::hasPlace(const ChosenRows &rows, std::size_t rank, std::size_t dimension)
{
    const Shape all = m_writer.typeOf(rows.places).shape; // [r c]
    TRY(const auto first,
        append(OperatorKind::Slice,
            attributesFrom(
                {{"starts", std::vector<std::int64_t>{0, 0}}, {"steps", std::vector<std::int64_t>{1, 1}}}),
            {rows.places}, {TensorType{DataType::Int64, {1, all[1]}}}, "_first_index"));
    Shape shape(rank, 1);
    shape[dimension] = all[1];
    TRY(const auto list,
        append(OperatorKind::Reshape, {}, first, {TensorType{DataType::Int64, std::move(shape)}}, "_index"));
    TRY(const auto flags,
        append(OperatorKind::GreaterOrEqual, {},
            {list[0], m_writer.addConstant(scalarTensor(DataType::Int64, 0))}, {}, "_has_place"));
    return flags[0];
}

Result<TensorId> ChosenWriter::orElse(TensorId x, double value)
{
    const ChosenRows rows = *m_writer.chosen().rows(x);
    const TensorType type = m_writer.typeOf(x);
    TRY(const TensorId flags, hasPlace(rows, type.shape.size(), rows.dimension));
    TRY(const auto made,
        append(OperatorKind::Where, {}, {flags, x, m_writer.addConstant(scalarTensor(type.dataType, value))},
            {}, "_of_places"));
    return made[0];
}

ChosenWriter::Outputs ChosenWriter::divide(const std::vector<TensorId> &inputs, TensorType type)
{
    ChosenRows rows = *m_writer.chosen().rows(inputs[0]);
    rows.dimension = 1;
    rows.parts = type.shape[0];
    TRY(auto outputs, append(OperatorKind::Reshape, {}, inputs, {std::move(type)}));
    m_writer.chosen().setRows(outputs[0], std::move(rows));
    return outputs;
}

/// Row (i + 1) n - 1 of those that have a place, where n is their number for each part: the first of which as
/// many come before or at it.
ChosenWriter::Outputs ChosenWriter::lastOfParts(
    const Attributes &attributes, const std::vector<TensorId> &inputs)
{
    const ChosenRows rows = *m_writer.chosen().rows(inputs[0]);
    const std::int64_t extent = m_writer.typeOf(inputs[0]).shape[1];
    const auto index = m_writer.isKnown(inputs[1]) ? m_writer.valuesOf(inputs[1]) : nullptr;
    const Operator &chooser = m_writer.written().at(m_writer.producerOf(rows.places));
    const bool inOrder =
        chooser.attributes.integer("groups", 1) == 1 || chooser.attributes.integer("group_axis") == 0;
    if (attributes.integer("axis") != 1 || !index || !index->type.shape.empty()
        || integersOf(*index) != std::vector<std::int64_t>{extent - 1} || !inOrder)
        return refused(
            "it picks from parts that are as long as data say, of which only the last row can be had");
    const TensorId list = m_writer.written().at(m_writer.producerOf(inputs[0])).inputs[0];
    const std::int64_t count = rows.parts * extent;
    const auto integers = [&](Shape shape) {
        return std::vector{TensorType{DataType::Int64, std::move(shape)}};
    };
    TRY(const TensorId flags, hasPlace(rows, 1, 0));
    TRY(const auto ones, append(OperatorKind::Cast, {}, {flags}, integers({count}), "_ones"));
    TRY(const auto before,
        append(OperatorKind::CumSum,
            attributesFrom(
                {{"axis", std::int64_t{0}}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}}),
            ones, {}, "_before"));
    TRY(const auto all,
        append(OperatorKind::ReduceSum,
            attributesFrom({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", std::int64_t{0}}}), ones, {},
            "_all"));
    const TensorId parts =
        m_writer.addConstant(scalarTensor(DataType::Int64, static_cast<double>(rows.parts)));
    TRY(const auto each, append(OperatorKind::Div, {}, {all[0], parts}, {}, "_each"));
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(rows.parts));
    std::iota(numbers.begin(), numbers.end(), 1);
    const TensorId numbered = m_writer.addConstant(integerTensor(std::move(numbers), {rows.parts, 1}));
    TRY(const auto ends, append(OperatorKind::Mul, {}, {numbered, each[0]}, {}, "_ends"));
    TRY(const TensorId row, reshaped(before[0], {1, count}, "_row"));
    TRY(const auto reached, append(OperatorKind::GreaterOrEqual, {}, {row, ends[0]}, {}, "_reached"));
    TRY(const auto ranked, append(OperatorKind::Cast, {}, reached, integers({rows.parts, count}), "_ranked"));
    TRY(const auto places,
        append(OperatorKind::ArgMax,
            attributesFrom({{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}},
                {"select_last_index", std::int64_t{0}}}),
            ranked, {}, "_places"));
    return append(OperatorKind::Gather, attributesFrom({{"axis", std::int64_t{0}}}), {list, places[0]});
}

/// Sums over rows add zeros for those without place; means divide by the number of places.
ChosenWriter::Outputs ChosenWriter::reduce(
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs)
{
    const ChosenRows rows = *m_writer.chosen().rows(inputs[0]);
    const auto axes = attributes.integers("axes");
    const bool overRows = axes.empty()
        || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(rows.dimension)) != axes.end();
    if (!overRows)
        return byRow(kind, std::move(attributes), std::move(inputs), {});
    const TensorType type = m_writer.typeOf(inputs[0]);
    TRY(inputs[0], orElse(inputs[0], 0));
    if (kind == OperatorKind::ReduceSum)
        return append(kind, std::move(attributes), std::move(inputs));
    double others = 1; // elements of each row that the mean is over
    for (std::size_t d = 0; d < type.shape.size(); ++d) {
        const bool reduced =
            axes.empty() || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) != axes.end();
        if (reduced && d != rows.dimension)
            others *= static_cast<double>(type.shape[d]);
    }
    Attributes sums;
    sums.set("axes", axes);
    sums.set("keepdims", attributes.integer("keepdims"));
    TRY(const auto sum, append(OperatorKind::ReduceSum, std::move(sums), {inputs[0]}, {}, "_sum"));
    TRY(const TensorId flags, hasPlace(rows, 1, 0));
    TRY(const auto ones,
        append(OperatorKind::Cast, {}, {flags}, {TensorType{type.dataType, m_writer.typeOf(flags).shape}},
            "_ones"));
    TRY(const auto count,
        append(OperatorKind::ReduceSum,
            attributesFrom({{"axes", std::vector<std::int64_t>{0}}, {"keepdims", std::int64_t{0}}}),
            {ones[0]}, {}, "_count"));
    TRY(const auto divisor,
        append(OperatorKind::Mul, {}, {count[0], m_writer.addConstant(scalarTensor(type.dataType, others))},
            {}, "_divisor"));
    return append(OperatorKind::Div, {}, {sum[0], divisor[0]});
}

/// Rows without place have the label that is ignored.
ChosenWriter::Outputs ChosenWriter::loss(
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs)
{
    constexpr std::int64_t kIgnored = -100; // as PyTorch has it
    const std::size_t slot = kind == OperatorKind::CountValid ? 0 : 1;
    if (m_writer.chosen().rows(inputs[slot]) == nullptr || attributes.text("reduction", "sum") != "sum")
        return refused("it is a loss of rows that data choose, and its labels are not");
    const std::int64_t ignored = attributes.integer("ignore_index", kIgnored);
    attributes.set("ignore_index", ignored);
    TRY(inputs[slot], orElse(inputs[slot], static_cast<double>(ignored)));
    return append(kind, std::move(attributes), std::move(inputs));
}

Result<TensorId> choosePlaces(
    GraphWriter &writer, const std::string &name, const SourceNode &source, TensorId mask)
{
    if (const TensorId known = writer.placesOf(mask))
        return known;
    if (writer.chosen().rows(mask) != nullptr)
        return Error{ErrorCode::NotSupported,
            "node '" + name + "' (" + source.type + "): it chooses among rows that data choose already",
            "combine both masks before anything is chosen", "node:" + name};
    const TensorId given = mask;
    if (writer.typeOf(mask).shape.empty()) {
        TRY(const auto made,
            writer.emit(name + "_list", source, OperatorKind::Reshape, {}, {mask},
                {TensorType{writer.typeOf(mask).dataType, {1}}}));
        mask = made[0];
    }
    const Shape shape = writer.typeOf(mask).shape;
    const std::int32_t batch = writer.batchDimensionOf(mask);
    const std::int64_t groups = batch < 0 ? 1 : writer.batchSize();
    const std::int64_t most = elementCount(shape) / groups;
    const double expected = writer.expectedShareOf(mask) * static_cast<double>(most);
    const Capacity capacity = capacityOf(writer.options().capacities, name);
    // Of a single row nobody could tell which dimension data choose.
    const std::int64_t room = std::max<std::int64_t>(roomOf(capacity, expected, most), groups == 1 ? 2 : 1);
    TRY(const auto made,
        writer.append(name, source, OperatorKind::NonZero,
            attributesFrom({{"kept", std::int64_t{0}}, {"group_axis", std::int64_t{std::max(batch, 0)}},
                {"groups", groups}, {"capacity", room * groups}}),
            {mask}, {}, false));
    ChosenRows rows{made[0], 1, {}, shape.size() == 1 ? -1 : 0};
    for (std::size_t r = 0; r < shape.size(); ++r)
        rows.indices.push_back(static_cast<std::int64_t>(r));
    writer.chosen().setRows(made[0], std::move(rows));
    writer.chosen().setPlacesOf(given, made[0]);
    if (room < most)
        writer.note("data choose how many tokens go where: there is room for " + countedPlaces(room, groups)
            + "; a run tells how many found none and were left out (--capacity)");
    return made[0];
}

} // namespace planloom
