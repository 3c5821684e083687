#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostBodyBytes = std::int64_t{1} << 48; ///< Of one value.

/// Attributes of known kinds that are numbers with a fraction; all others are integers.
bool isRealAttribute(const std::string &name)
{
    static constexpr std::array kNames{"alpha", "beta", "bias", "clip", "cubic_coeff_a", "delta", "dropout",
        "epsilon", "extrapolation_value", "gamma", "masked_score", "max", "min", "off", "on", "ratio",
        "scale", "softcap", "start", "value"};
    return std::any_of(kNames.begin(), kNames.end(), [&](const char *known) { return name == known; });
}

/// A number as a scalar of a type; null for half precision, in whose place kernels compute with floats.
std::shared_ptr<const TensorData> scalarOf(DataType type, double value)
{
    auto data = std::make_shared<TensorData>();
    data->type = {type, {}};
    data->bytes.resize(static_cast<std::size_t>(sizeOf(type)));
    const auto write = [&](auto number) { std::memcpy(data->bytes.data(), &number, sizeof number); };
    const auto integer = [&]<typename Number>(Number) {
        write(static_cast<Number>(std::clamp(value, static_cast<double>(std::numeric_limits<Number>::min()),
            static_cast<double>(std::numeric_limits<Number>::max() / 2))));
    };
    switch (type) {
    case DataType::Float32:
        write(static_cast<float>(value));
        break;
    case DataType::Float64:
        write(value);
        break;
    case DataType::Int64:
        integer(std::int64_t{});
        break;
    case DataType::Int32:
        integer(std::int32_t{});
        break;
    case DataType::Int16:
        integer(std::int16_t{});
        break;
    case DataType::Int8:
        integer(std::int8_t{});
        break;
    case DataType::UInt8:
    case DataType::Bool:
        integer(std::uint8_t{});
        break;
    default:
        return nullptr;
    }
    return data;
}

/// Makes a body's steps operators, one after the other.
class BodyBuilder
{
public:
    BodyBuilder(const OperatorDefinition &definition, const Attributes &attributes, DefinedSizes part,
        const DefinedSizes *whole)
        : m_definition(definition)
        , m_attributes(attributes)
        , m_part(std::move(part))
        , m_whole(whole ? *whole : m_part)
    {
    }

    Result<Graph> build(const std::vector<TensorType> &inputs, const std::vector<bool> &present)
    {
        for (std::size_t slot = 0; slot < m_definition.inputs.size(); ++slot) {
            const std::string &name = m_definition.inputs[slot].name;
            const bool there = slot < inputs.size() && (slot >= present.size() || present[slot]);
            TensorId id;
            if (there) {
                Tensor input;
                input.name = name;
                input.type = inputs[slot];
                input.role = TensorRole::Input;
                id = add(std::move(input));
            }
            m_graph.inputs.push_back(id);
            m_values[name] = id;
        }
        for (const BodyStep &step : m_definition.body)
            TRY_VOID(addStep(step));
        for (std::size_t slot = 0; slot < m_definition.resultCount(); ++slot)
            m_graph.outputs.push_back(m_values[m_definition.result(slot).name]);
        return std::move(m_graph);
    }

private:
    TensorId add(Tensor tensor)
    {
        m_graph.tensors.push_back(std::move(tensor));
        return TensorId{static_cast<std::int32_t>(m_graph.tensors.size()) - 1};
    }

    Error wrong(const BodyStep &step, const Error &error) const
    {
        return {ErrorCode::InvalidInput,
            toString(m_definition.name) + " (" + m_definition.file + ", line " + std::to_string(step.line)
                + "): " + error.message,
            error.advice.empty() ? "change the body in the operator file" : error.advice,
            m_definition.file + ":" + std::to_string(step.line)};
    }
    Error wrong(const BodyStep &step, std::string message, std::string advice = {}) const
    {
        return wrong(step, Error{ErrorCode::InvalidInput, std::move(message), std::move(advice), {}});
    }

    std::optional<double> numberNamed(const std::string &name, bool isWhole) const
    {
        const DefinedSizes &sizes = isWhole ? m_whole : m_part;
        if (const auto size = sizes.find(name); size != sizes.end())
            return static_cast<double>(size->second);
        const auto found = m_attributes.all().find(name);
        if (isWhole || found == m_attributes.all().end())
            return std::nullopt;
        if (const auto *integer = std::get_if<std::int64_t>(&found->second))
            return static_cast<double>(*integer);
        const auto *real = std::get_if<double>(&found->second);
        return real ? std::optional(*real) : std::nullopt;
    }
    NumberLookup lookup() const
    {
        return [this](const std::string &name, bool isWhole) { return numberNamed(name, isWhole); };
    }

    Result<std::int64_t> integerOf(const SizeExpression &expression, const std::string &name) const
    {
        TRY(const double number, evaluate(expression, lookup()));
        if (number != std::floor(number) || std::fabs(number) > 9e15)
            return Error{ErrorCode::InvalidInput,
                "the attribute '" + name + "' comes out as " + textOfNumber(number)
                    + ", where a whole number was expected",
                {}, {}};
        return static_cast<std::int64_t>(number);
    }

    Result<Attribute> valueOf(const std::string &name, const StepAttribute &written) const
    {
        if (const auto *text = std::get_if<std::string>(&written))
            return Attribute(*text);
        if (const auto *number = std::get_if<SizeExpression>(&written)) {
            if (isRealAttribute(name)) {
                TRY(const double real, evaluate(*number, lookup()));
                return Attribute(real);
            }
            TRY(const std::int64_t integer, integerOf(*number, name));
            return Attribute(integer);
        }
        std::vector<std::int64_t> integers;
        for (const SizeExpression &number : std::get<std::vector<SizeExpression>>(written)) {
            TRY(const std::int64_t integer, integerOf(number, name));
            integers.push_back(integer);
        }
        return Attribute(std::move(integers));
    }

    /// Axes counted from the end become ones counted from the begin; a mean's count is that of the part,
    /// unless it is said.
    Result<Attributes> attributesOf(const BodyStep &step, const std::vector<TensorType> &inputs) const
    {
        Attributes attributes;
        for (const auto &[name, written] : step.attributes) {
            TRY(Attribute value, valueOf(name, written));
            attributes.set(name, std::move(value));
        }
        const auto rank = static_cast<std::int64_t>(inputs.empty() ? 0 : inputs.front().shape.size());
        if (attributes.has("axis") && attributes.integer("axis") < 0)
            attributes.set("axis", attributes.integer("axis") + rank);
        std::vector<std::int64_t> axes = attributes.integers("axes");
        for (std::int64_t &axis : axes)
            axis += axis < 0 ? rank : 0;
        if (attributes.has("axes"))
            attributes.set("axes", axes);
        if (step.kind == OperatorKind::ReduceMean && !attributes.has("count")) {
            std::int64_t count = 1;
            for (const std::int64_t axis : axes)
                if (axis >= 0 && axis < rank)
                    count *= inputs.front().shape[static_cast<std::size_t>(axis)];
            attributes.set("count", count);
        }
        return attributes;
    }

    /// The tensors that a step reads: values, attributes and numbers, which take the first value's type.
    Result<std::vector<TensorId>> operandsOf(const BodyStep &step)
    {
        DataType type = DataType::Float32;
        for (const auto &input : step.inputs) {
            const auto *name = std::get_if<std::string>(&input);
            const auto known = name ? m_values.find(*name) : m_values.end();
            if (known != m_values.end() && known->second) {
                type = m_graph.at(known->second).type.dataType;
                break;
            }
        }
        std::vector<TensorId> operands;
        for (const auto &input : step.inputs) {
            const auto *name = std::get_if<std::string>(&input);
            if (name && m_values.count(*name) != 0) {
                operands.push_back(m_values[*name]);
                continue;
            }
            const auto number = name ? numberNamed(*name, false) : std::optional(std::get<double>(input));
            if (!number)
                return wrong(step, "the attribute '" + *name + "' is no number");
            Tensor constant;
            constant.name = "constant_" + std::to_string(m_graph.tensors.size());
            constant.type = {type, {}};
            constant.role = TensorRole::Buffer;
            constant.data = scalarOf(type, *number);
            operands.push_back(add(std::move(constant)));
        }
        while (!operands.empty() && !operands.back())
            operands.pop_back(); // absent optional inputs at the end
        return operands;
    }

    Result<std::vector<TensorType>> declaredOf(
        const BodyStep &step, const std::vector<TensorType> &inputs) const
    {
        if (!step.type && !step.shape)
            return std::vector<TensorType>{};
        TensorType type;
        type.dataType = step.type.value_or(inputs.empty() ? DataType::Float32 : inputs.front().dataType);
        if (!step.shape && !inputs.empty())
            type.shape = inputs.front().shape;
        if (step.shape) {
            for (const SizeExpression &extent : *step.shape) {
                TRY(const std::int64_t size, evaluateSize(extent, lookup()));
                type.shape.push_back(size);
            }
        }
        return std::vector<TensorType>{std::move(type)};
    }

    Result<void> addStep(const BodyStep &step)
    {
        Operator op;
        op.name = toString(m_definition.name) + ".line" + std::to_string(step.line) + "."
            + std::to_string(m_graph.operators.size());
        op.kind = step.kind;
        TRY(op.inputs, operandsOf(step));
        const std::vector<TensorType> inputs = typesOf(m_graph, op.inputs);
        const std::vector<bool> present = presentAmong(op.inputs);
        auto attributes = attributesOf(step, inputs);
        if (!attributes)
            return wrong(step, attributes.error());
        op.attributes = *std::move(attributes);
        auto declared = declaredOf(step, inputs);
        if (!declared)
            return wrong(step, declared.error());
        if (declared->empty() && needsDeclaredType(step.kind))
            return wrong(step, std::string(nameOf(step.kind)) + " does not say what it makes",
                step.kind == OperatorKind::Cast ? "add the type, as in: y = Cast(x) : float32"
                                                : "add the shape, as in: y = Reshape(x) : [b * s, h]");
        auto types = inferTypes(step.kind, op.attributes, inputs, present, *declared);
        if (!types)
            return wrong(step, types.error());
        if (!declared->empty() && types->front() != declared->front())
            return wrong(step,
                "'" + step.outputs.front() + "' is " + nameOf(types->front().dataType)
                    + toString(types->front().shape) + ", not " + nameOf(declared->front().dataType)
                    + toString(declared->front().shape));
        if (types->size() < step.outputs.size())
            return wrong(step,
                std::string(nameOf(step.kind)) + " makes " + std::to_string(types->size()) + " values, not "
                    + std::to_string(step.outputs.size()));
        op.annotation = annotate(step.kind, op.attributes, inputs, present, *types).annotation;
        for (std::size_t slot = 0; slot < types->size(); ++slot) {
            const TensorType &type = (*types)[slot];
            std::int64_t bytes = sizeOf(type.dataType);
            for (const std::int64_t extent : type.shape)
                if (extent < 0 || __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)
                    || bytes > kMostBodyBytes)
                    return wrong(step, "a value of shape " + toString(type.shape) + " is too large");
            const std::string name =
                slot < step.outputs.size() ? step.outputs[slot] : op.name + "." + std::to_string(slot);
            Tensor tensor;
            tensor.name = name;
            tensor.type = type;
            op.outputs.push_back(add(std::move(tensor)));
            if (slot < step.outputs.size())
                m_values[name] = op.outputs.back();
        }
        m_graph.operators.push_back(std::move(op));
        return {};
    }

    const OperatorDefinition &m_definition;
    const Attributes &m_attributes;
    DefinedSizes m_part;
    DefinedSizes m_whole;
    Graph m_graph;
    std::map<std::string, TensorId> m_values; ///< Inputs and what steps made; invalid where absent.
};

} // namespace

bool needsDeclaredType(OperatorKind kind)
{
    return entryOf(kind).marks.isDeclared;
}

Result<Graph> bodyOf(const OperatorDefinition &definition, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present, const DefinedSizes *whole)
{
    std::vector<Shape> shapes;
    for (const TensorType &type : inputs)
        shapes.push_back(type.shape);
    TRY(DefinedSizes sizes, definedSizes(definition, attributes, shapes, present));
    return BodyBuilder(definition, attributes, std::move(sizes), whole).build(inputs, present);
}

} // namespace planloom
