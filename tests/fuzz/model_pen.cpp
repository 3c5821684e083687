#include "tests/fuzz/model_pen.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cstring>

namespace planloom {

namespace {

using enum OperatorKind;

constexpr std::int64_t kMostElements = 4096; ///< Of one tensor.
constexpr std::int64_t kMostProduct = 2048; ///< Elements of a weight that brings a tensor to another shape.

bool broadcastsTo(const Shape &from, const Shape &to)
{
    if (from.size() > to.size())
        return false;
    const std::size_t more = to.size() - from.size();
    for (std::size_t i = 0; i < from.size(); ++i)
        if (from[i] != 1 && from[i] != to[more + i])
            return false;
    return true;
}

bool holds(const Shape &whole, const Shape &part)
{
    if (whole.size() != part.size())
        return false;
    for (std::size_t i = 0; i < whole.size(); ++i)
        if (part[i] > whole[i])
            return false;
    return true;
}

template<typename T> void append(TensorData &data, T value)
{
    const std::size_t at = data.bytes.size();
    data.bytes.resize(at + sizeof value);
    std::memcpy(data.bytes.data() + at, &value, sizeof value);
}

} // namespace

ModelPen::ModelPen(std::uint64_t seed)
    : m_dice(seed)
{
}

ModelPen::Layer::Layer(ModelPen &pen, bool shares, std::int64_t index, std::uint64_t seed, TensorId x)
    : m_pen(pen)
    , m_scope(pen.m_builder.scope((shares ? "pass." : "h.") + std::to_string(index)))
    , m_dice(std::exchange(pen.m_dice, Dice(seed)))
    , m_made(std::exchange(pen.m_made, {x}))
    , m_integers(std::exchange(pen.m_integers, {}))
    , m_weights(std::exchange(pen.m_weights, {}))
    , m_weightNames(pen.m_weightNames)
    , m_weightCount(std::exchange(pen.m_weightCount, 0))
{
    // Weights of other layers that repeat are others, though these may share theirs.
    pen.m_layers += index == 0 ? 1 : 0;
    pen.m_weightNames = "l" + std::to_string(pen.m_layers) + "w";
    if (shares)
        pen.m_builder.shareWeights("pass.");
}

ModelPen::Layer::~Layer()
{
    m_pen.m_dice = m_dice;
    m_pen.m_made = std::move(m_made);
    m_pen.m_integers = std::move(m_integers);
    m_pen.m_weights.insert(m_pen.m_weights.end(), m_weights.begin(), m_weights.end());
    m_pen.m_weightNames = std::move(m_weightNames);
    m_pen.m_weightCount = m_weightCount;
}

const TensorType &ModelPen::typeOf(TensorId id) const
{
    static const TensorType kNone;
    return id ? m_types[at(id)] : kNone;
}

TensorId ModelPen::note(TensorId id, TensorType type)
{
    if (id && at(id) >= m_types.size())
        m_types.resize(at(id) + 1);
    if (id)
        m_types[at(id)] = std::move(type);
    return id;
}

TensorId ModelPen::made()
{
    return m_dice.hits(0.6) ? m_made.back() : m_dice.of(m_made);
}

void ModelPen::keep(TensorId id)
{
    if (id)
        m_made.push_back(id);
}

TensorId ModelPen::input(TensorType type)
{
    return note(m_builder.input(m_builder.prefix() + "x" + std::to_string(m_types.size()), type), type);
}

TensorId ModelPen::scalar(float value)
{
    return note(m_builder.scalar(value), {DataType::Float32, {}});
}

TensorId ModelPen::weight(Shape shape)
{
    const TensorType type{DataType::Float32, std::move(shape)};
    const std::string name = m_weightNames + std::to_string(m_weightCount++);
    m_weights.push_back(note(m_builder.weight(name, type.shape), type));
    return m_weights.back();
}

/// One that is read elsewhere, too, if need be through a view.
TensorId ModelPen::usedWeight(const Shape &shape)
{
    std::vector<TensorId> fitting;
    for (const TensorId id : m_weights)
        if (elementCount(typeOf(id).shape) == elementCount(shape))
            fitting.push_back(id);
    return fitting.empty() ? weight(shape) : adapted(m_dice.of(fitting), shape);
}

TensorId ModelPen::constant(const ExampleInput &slot)
{
    auto data = std::make_shared<TensorData>();
    data->type = slot.type;
    for (std::int64_t i = 0; i < elementCount(slot.type.shape); ++i) {
        const double share = static_cast<double>(m_dice.below(1 << 20)) * 0x1p-20;
        const double value = slot.values.empty() ? slot.low + share * (slot.high - slot.low)
                                                 : slot.values[static_cast<std::size_t>(i)];
        if (slot.type.dataType == DataType::Int64)
            append(*data, static_cast<std::int64_t>(std::floor(value)));
        else if (slot.type.dataType == DataType::Bool)
            append(*data, static_cast<std::uint8_t>(value != 0 && value >= 1));
        else if (slot.type.dataType == DataType::Float64)
            append(*data, value);
        else
            append(*data, static_cast<float>(value));
    }
    return note(m_builder.constant("c" + std::to_string(m_types.size()), data), slot.type);
}

TensorId ModelPen::integer(const ExampleInput &slot)
{
    const TensorType &type = slot.type;
    if (m_dice.hits(0.35))
        return input(type);
    if (m_dice.hits(0.3) && slot.low == 0 && !m_integers.empty()) {
        const TensorId from = m_dice.of(m_integers);
        const TensorId shaped = adapted(from, type.shape);
        ExampleInput most{{DataType::Int64, {}}};
        most.values = {slot.high};
        if (shaped)
            return one(Mod, {shaped, constant(most)});
    }
    return constant(slot);
}

TensorId ModelPen::operand(const ExampleInput &slot)
{
    if (!slot.values.empty())
        return constant(slot);
    if (slot.type.dataType == DataType::Bool) {
        if (m_dice.hits(0.4)) {
            const TensorId limit = real(slot.type.shape);
            return one(Greater, {real(slot.type.shape), limit});
        }
        return m_dice.hits(0.5) ? input(slot.type) : constant(slot);
    }
    if (!isFloating(slot.type.dataType))
        return integer(slot);
    const TensorId x = real(slot.type.shape);
    const bool isBounded = slot.low > 0 || (slot.low > -1 && slot.high < 1);
    return isBounded ? within(x, slot.low, slot.high) : x;
}

TensorId ModelPen::real(Shape shape)
{
    const double chance = static_cast<double>(m_dice.below(100));
    if (chance < 50)
        return adapted(made(), shape);
    if (chance < 72)
        return weight(std::move(shape));
    if (chance < 80)
        return usedWeight(shape);
    TensorType type{DataType::Float32, std::move(shape)};
    if (chance < 88)
        return input(std::move(type));
    if (chance < 94)
        return note(m_builder.buffer("b" + std::to_string(m_types.size()), type.shape), type);
    return constant({std::move(type)});
}

TensorId ModelPen::adapted(TensorId x, const Shape &wanted)
{
    const TensorType type = typeOf(x);
    if (!x || type.shape == wanted)
        return x;
    if (elementCount(type.shape) == elementCount(wanted))
        return one(Reshape, {x}, {}, {{type.dataType, wanted}});
    if (holds(type.shape, wanted) && m_dice.hits(0.7)) {
        std::vector<std::int64_t> starts;
        for (std::size_t i = 0; i < wanted.size(); ++i)
            starts.push_back(m_dice.below(type.shape[i] - wanted[i] + 1));
        return one(Slice, {x},
            attributesOf({{"starts", starts}, {"steps", std::vector<std::int64_t>(wanted.size(), 1)}}),
            {{type.dataType, wanted}});
    }
    if (broadcastsTo(type.shape, wanted))
        return one(Expand, {x}, {}, {{type.dataType, wanted}});
    return isFloating(type.dataType) ? projected(x, wanted) : TensorId{};
}

/// By a product: row by row where there are as many of them, else of all elements.
TensorId ModelPen::projected(TensorId x, const Shape &wanted)
{
    const Shape shape = typeOf(x).shape;
    const bool byRow = !shape.empty() && !wanted.empty() && shape[0] == wanted[0];
    const std::int64_t rows = byRow ? shape[0] : 1;
    const std::int64_t from = elementCount(shape) / rows;
    const std::int64_t to = elementCount(wanted) / rows;
    if (from * to > kMostProduct)
        return weight(wanted);
    const TensorId flat = adapted(x, {rows, from});
    return adapted(one(Linear, {flat, weight({from, to})}), wanted);
}

TensorId ModelPen::within(TensorId x, double low, double high)
{
    const TensorId share = one(Sigmoid, {x});
    const TensorId scaled = one(Mul, {share, scalar(static_cast<float>(high - low))});
    return one(Add, {scaled, scalar(static_cast<float>(low))});
}

std::vector<TensorId> ModelPen::add(
    OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes, std::vector<TensorType> declared)
{
    ++m_operators;
    std::vector<TensorType> types;
    std::vector<bool> present;
    for (const TensorId id : inputs) {
        types.push_back(typeOf(id));
        present.push_back(id.valid());
    }
    auto outputs = inferTypes(kind, attributes, types, present, declared);
    if (!outputs)
        return {};
    for (const TensorType &type : *outputs)
        if (elementCount(type.shape) > kMostElements)
            return {};
    const auto ids = m_builder.add(kind, std::move(inputs), std::move(attributes), {}, std::move(declared));
    for (std::size_t slot = 0; slot < ids.size(); ++slot) {
        const TensorType &type = (*outputs)[slot];
        note(ids[slot], type);
        if (type.dataType == DataType::Float32 && !(kind == Attention && slot > 0))
            m_made.push_back(ids[slot]);
        else if (type.dataType == DataType::Int64)
            m_integers.push_back(ids[slot]);
    }
    return ids;
}

TensorId ModelPen::one(
    OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes, std::vector<TensorType> declared)
{
    const auto made = add(kind, std::move(inputs), std::move(attributes), std::move(declared));
    return made.empty() ? TensorId{} : made.front();
}

TensorId ModelPen::multipliedByWeight()
{
    const TensorId x = m_made.back();
    Shape shape = typeOf(x).shape;
    if (!shape.empty())
        shape.erase(shape.begin());
    return one(Mul, {x, weight(std::move(shape))});
}

Result<Graph> ModelPen::finish(std::vector<TensorId> outputs, TensorId loss)
{
    return m_builder.finish(std::move(outputs), loss);
}

} // namespace planloom
