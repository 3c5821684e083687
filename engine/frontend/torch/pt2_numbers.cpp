#include "engine/frontend/torch/pt2_numbers.h"

#include "engine/frontend/torch/pt2_arguments.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace planloom {

namespace {

struct PythonNumber {
    bool whole = true;
    std::int64_t integer = 0;
    double real = 0;
};

std::optional<PythonNumber> numberOf(const AtenValue &value)
{
    if (const auto *integer = std::get_if<std::int64_t>(&value))
        return PythonNumber{true, *integer, static_cast<double>(*integer)};
    if (const auto *flag = std::get_if<bool>(&value))
        return PythonNumber{true, *flag ? 1 : 0, *flag ? 1.0 : 0.0};
    if (const auto *real = std::get_if<double>(&value))
        return PythonNumber{false, 0, *real};
    return std::nullopt;
}

std::optional<AtenValue> wholeOf(double value)
{
    constexpr double kLargest = 9007199254740992.0; // 2^53: doubles below it are exact
    if (!(std::abs(value) < kLargest))
        return std::nullopt;
    return AtenValue(static_cast<std::int64_t>(value));
}

AtenValue sameNumber(const PythonNumber &x)
{
    if (x.whole)
        return x.integer;
    return x.real;
}

std::optional<AtenValue> ofOne(std::string_view name, const PythonNumber &x)
{
    if (name == "neg")
        return x.whole ? wholeOf(-x.real) : AtenValue(-x.real);
    if (name == "pos")
        return sameNumber(x);
    if (name == "not_" || name == "sym_not")
        return AtenValue(x.real == 0);
    if (name == "ceil")
        return wholeOf(std::ceil(x.real));
    if (name == "floor")
        return wholeOf(std::floor(x.real));
    if (name == "trunc" || name == "sym_int")
        return wholeOf(std::trunc(x.real));
    if (name == "sym_float")
        return AtenValue(x.real);
    if (name == "sqrt" || name == "sym_sqrt" || name == "_sym_sqrt")
        return AtenValue(std::sqrt(x.real));
    return std::nullopt;
}

/// What Python computes of two numbers, integers where both are.
std::optional<AtenValue> ofTwo(std::string_view name, const PythonNumber &a, const PythonNumber &b)
{
    const bool whole = a.whole && b.whole;
    const auto made = [whole](double value) { return whole ? wholeOf(value) : AtenValue(value); };
    if (name == "add")
        return made(a.real + b.real);
    if (name == "sub")
        return made(a.real - b.real);
    if (name == "mul")
        return made(a.real * b.real);
    if (name == "pow" || name == "pow_by_natural")
        return made(std::pow(a.real, b.real));
    if (name == "sym_max")
        return made(std::max(a.real, b.real));
    if (name == "sym_min")
        return made(std::min(a.real, b.real));
    const bool divides = name == "floordiv" || name == "truediv" || name == "mod";
    if (divides && b.real == 0)
        return std::nullopt;
    if (name == "floordiv")
        return made(std::floor(a.real / b.real));
    if (name == "truediv")
        return AtenValue(a.real / b.real);
    if (name == "mod")
        return made(a.real - b.real * std::floor(a.real / b.real));
    if (name == "eq")
        return AtenValue(a.real == b.real);
    if (name == "ne")
        return AtenValue(a.real != b.real);
    if (name == "lt")
        return AtenValue(a.real < b.real);
    if (name == "le")
        return AtenValue(a.real <= b.real);
    if (name == "gt")
        return AtenValue(a.real > b.real);
    if (name == "ge")
        return AtenValue(a.real >= b.real);
    if (name == "and_")
        return AtenValue(a.real != 0 && b.real != 0);
    if (name == "or_")
        return AtenValue(a.real != 0 || b.real != 0);
    return std::nullopt;
}

/// The only element of known values.
std::optional<AtenValue> itemOf(const std::shared_ptr<const TensorData> &data)
{
    if (!data || elementCount(data->type.shape) != 1)
        return std::nullopt;
    if (data->type.dataType == DataType::Bool)
        return AtenValue(integersOf(*data).front() != 0);
    if (isFloating(data->type.dataType))
        return AtenValue(realsOf(*data).front());
    return AtenValue(integersOf(*data).front());
}

} // namespace

bool isPt2Arithmetic(std::string_view target)
{
    for (const std::string_view prefix : {"_operator.", "operator.", "math.", "torch.sym_", "torch._sym_"}) {
        if (target.substr(0, prefix.size()) == prefix)
            return true;
    }
    return false;
}

std::optional<AtenValue> computePt2Number(std::string_view target, const std::vector<AtenValue> &arguments)
{
    const std::string_view name = target.substr(target.rfind('.') + 1);
    std::vector<PythonNumber> numbers;
    for (const AtenValue &argument : arguments) {
        const auto number = numberOf(argument);
        if (!number)
            return std::nullopt;
        numbers.push_back(*number);
    }
    if (numbers.size() == 1)
        return ofOne(name, numbers[0]);
    if (numbers.size() == 2)
        return ofTwo(name, numbers[0], numbers[1]);
    if (numbers.size() == 3 && name == "sym_ite")
        return arguments[numbers[0].real != 0 ? 1 : 2];
    return std::nullopt;
}

Result<bool> Pt2Numbers::import(const Pt2Node &node, Pt2Frame &frame)
{
    const std::string target = pt2ShortTarget(node.target);
    const bool arithmetic = isPt2Arithmetic(target);
    const bool size = target == "aten.sym_size.int" || target == "aten.sym_numel.default";
    const bool item = target == "aten.item.default" || target == "aten._local_scalar_dense.default";
    if (!arithmetic && !size && !item)
        return false;
    std::vector<AtenValue> arguments;
    for (const Pt2NamedArgument &input : node.inputs) {
        TRY(AtenValue value, pt2Argument(frame, input.value, node));
        arguments.push_back(std::move(value));
    }
    const bool chosen = size ? hasChosenRows(node, arguments) : readsChosenSize(node);
    std::optional<AtenValue> result;
    if (arithmetic) {
        result = computePt2Number(target, arguments);
    } else if (const auto *tensor = arguments.empty() ? nullptr : std::get_if<TensorId>(&arguments[0])) {
        const Shape &shape = m_writer.typeOf(*tensor).shape;
        const auto *axis = arguments.size() < 2 ? nullptr : std::get_if<std::int64_t>(&arguments[1]);
        const auto rank = static_cast<std::int64_t>(shape.size());
        if (item)
            result = itemOf(m_writer.valuesOf(*tensor));
        else if (target == "aten.sym_numel.default")
            result = AtenValue(elementCount(shape));
        else if (axis != nullptr && *axis >= -rank && *axis < rank)
            result = AtenValue(shape[static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis)]);
    }
    if (!result && item)
        return pt2Error(node, ErrorCode::NotSupported,
            "it takes a number out of a tensor whose values are not known before a run",
            "write the module without it: keep the value in a tensor, or make it a constant");
    if (!result)
        return pt2Error(node, ErrorCode::NotSupported,
            "it computes with a size in a way that Planloom does not know",
            "export the model with static shapes");
    if (node.outputs.empty())
        return true;
    const auto *symbol = std::get_if<Pt2Symbol>(&node.outputs.front());
    const std::string &name = symbol != nullptr ? symbol->name : node.name;
    if (chosen && !std::holds_alternative<bool>(*result))
        m_chosenSizes.insert(name);
    TRY_VOID(pt2SetOnce(frame, name, *std::move(result), node));
    return true;
}

/// True if the size that the node asks for is one that data choose.
bool Pt2Numbers::hasChosenRows(const Pt2Node &node, const std::vector<AtenValue> &arguments) const
{
    const auto *tensor = arguments.empty() ? nullptr : std::get_if<TensorId>(&arguments[0]);
    const ChosenRows *rows = tensor == nullptr ? nullptr : m_writer.chosen().rows(*tensor);
    if (rows == nullptr)
        return false;
    const auto *axis = arguments.size() < 2 ? nullptr : std::get_if<std::int64_t>(&arguments[1]);
    const auto rank = static_cast<std::int64_t>(m_writer.typeOf(*tensor).shape.size());
    return axis == nullptr || pt2ShortTarget(node.target) == "aten.sym_numel.default"
        || static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis) == rows->dimension;
}

bool Pt2Numbers::readsChosenSize(const Pt2Node &node) const
{
    return std::any_of(node.inputs.begin(), node.inputs.end(), [this](const Pt2NamedArgument &input) {
        const auto *symbol = std::get_if<Pt2Symbol>(&input.value);
        return symbol != nullptr && m_chosenSizes.count(symbol->name) != 0;
    });
}

} // namespace planloom
