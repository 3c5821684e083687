#include "engine/frontend/torch/aten/aten_arguments.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// 0 Bool, 1 integral, 2 floating: types of higher categories win.
int categoryOfType(DataType type)
{
    return type == DataType::Bool ? 0 : isFloating(type) ? 2 : 1;
}

/// The type of arithmetic between two of the same category.
DataType widerType(DataType a, DataType b)
{
    if (a == b)
        return a;
    if (isFloating(a)) {
        if (a == DataType::Float64 || b == DataType::Float64)
            return DataType::Float64;
        return DataType::Float32; // also of float16 and bfloat16
    }
    constexpr std::array kOrder{
        DataType::Bool, DataType::UInt8, DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64};
    const auto rank = [&](DataType type) { return std::find(kOrder.begin(), kOrder.end(), type); };
    const auto wider = std::max(rank(a), rank(b)); // the list has all types but floating ones
    const auto narrower = std::min(rank(a), rank(b));
    // Between uint8 and int8, int16 holds both.
    return *wider == DataType::Int8 && *narrower == DataType::UInt8 ? DataType::Int16 : *wider;
}

} // namespace

std::vector<TensorId> tensorsAmong(const AtenArguments &arguments)
{
    std::vector<TensorId> tensors;
    const auto addComplex = [&](const AtenComplex &value) {
        tensors.push_back(value.real);
        tensors.push_back(value.imaginary);
    };
    for (const auto &[name, value] : arguments) {
        if (const auto *id = std::get_if<TensorId>(&value))
            tensors.push_back(*id);
        else if (const auto *ids = std::get_if<std::vector<TensorId>>(&value))
            tensors.insert(tensors.end(), ids->begin(), ids->end());
        else if (const auto *complex = std::get_if<AtenComplex>(&value))
            addComplex(*complex);
        else if (const auto *list = std::get_if<std::vector<AtenComplex>>(&value))
            std::for_each(list->begin(), list->end(), addComplex);
    }
    return tensors;
}

const AtenValue &AtenCall::value(std::string_view name) const
{
    static const AtenValue kNone;
    const auto found = m_arguments.find(std::string(name));
    return found == m_arguments.end() ? kNone : found->second;
}

bool AtenCall::given(std::string_view name) const
{
    return !std::holds_alternative<std::monostate>(value(name));
}

Error AtenCall::wrongArgument(std::string_view name, const char *expected) const
{
    return invalid("argument '" + std::string(name) + "' should be " + expected
        + (given(name) ? ", but is something else" : ", but is missing"));
}

Result<TensorId> AtenCall::tensor(std::string_view name) const
{
    if (const auto *id = std::get_if<TensorId>(&value(name)))
        return *id;
    return wrongArgument(name, "a tensor");
}

Result<TensorId> AtenCall::optionalTensor(std::string_view name) const
{
    return given(name) ? tensor(name) : Result<TensorId>(TensorId{});
}

Result<std::vector<TensorId>> AtenCall::tensors(std::string_view name) const
{
    if (const auto *ids = std::get_if<std::vector<TensorId>>(&value(name)))
        return *ids;
    return wrongArgument(name, "a list of tensors");
}

Result<std::int64_t> AtenCall::integer(std::string_view name) const
{
    if (const auto *number = std::get_if<std::int64_t>(&value(name)))
        return *number;
    if (const auto *flag = std::get_if<bool>(&value(name)))
        return std::int64_t{*flag ? 1 : 0};
    return wrongArgument(name, "an integer");
}

Result<std::int64_t> AtenCall::integer(std::string_view name, std::int64_t fallback) const
{
    return given(name) ? integer(name) : Result<std::int64_t>(fallback);
}

Result<double> AtenCall::real(std::string_view name, double fallback) const
{
    if (!given(name))
        return fallback;
    if (const auto *number = std::get_if<double>(&value(name)))
        return *number;
    TRY(const std::int64_t number, integer(name));
    return static_cast<double>(number);
}

Result<bool> AtenCall::flag(std::string_view name, bool fallback) const
{
    TRY(const std::int64_t number, integer(name, fallback ? 1 : 0));
    return number != 0;
}

Result<std::string> AtenCall::text(std::string_view name, std::string_view fallback) const
{
    if (!given(name))
        return std::string(fallback);
    if (const auto *text = std::get_if<std::string>(&value(name)))
        return *text;
    return wrongArgument(name, "a text");
}

Result<Integers> AtenCall::integers(std::string_view name) const
{
    if (const auto *list = std::get_if<Integers>(&value(name)))
        return *list;
    // An empty list of numbers says of no kind that it is.
    if (const auto *reals = std::get_if<std::vector<double>>(&value(name));
        reals != nullptr && reals->empty())
        return Integers{};
    if (const auto *number = std::get_if<std::int64_t>(&value(name)))
        return Integers{*number};
    return wrongArgument(name, "a list of integers");
}

Result<Integers> AtenCall::integers(std::string_view name, const Integers &fallback) const
{
    return given(name) ? integers(name) : Result<Integers>(fallback);
}

Result<Integers> AtenCall::perDimension(std::string_view name, std::size_t count, std::int64_t fallback) const
{
    TRY(Integers list, integers(name, {}));
    if (list.empty())
        list = {fallback};
    if (list.size() == 1)
        list.assign(count, list.front());
    if (list.size() != count)
        return invalid("argument '" + std::string(name) + "' is " + toString(list) + ", where "
            + std::to_string(count) + " numbers were expected");
    return list;
}

Result<DataType> AtenCall::dataType(DataType fallback) const
{
    if (!given("dtype"))
        return fallback;
    const auto *type = std::get_if<Pt2DataType>(&value("dtype"));
    if (type == nullptr)
        return wrongArgument("dtype", "an element type");
    if (!type->type)
        return unsupported("it makes " + type->name + ", which Planloom does not compute with",
            "use float or integer types that Planloom has");
    return *type->type;
}

Result<TensorId> AtenCall::operand(std::string_view name, DataType type) const
{
    const AtenValue &given = value(name);
    if (const auto *id = std::get_if<TensorId>(&given))
        return *id;
    GraphWriter &graph = m_writer.graph();
    if (const auto *number = std::get_if<std::int64_t>(&given)) {
        if (type == DataType::Int64)
            return graph.addConstant(integerTensor({*number}, {}));
        return graph.addConstant(scalarTensor(type, static_cast<double>(*number)));
    }
    if (const auto *number = std::get_if<double>(&given))
        return graph.addConstant(scalarTensor(type, *number));
    if (const auto *flag = std::get_if<bool>(&given))
        return graph.addConstant(scalarTensor(type, *flag ? 1 : 0));
    return wrongArgument(name, "a tensor or a number");
}

Result<std::int64_t> AtenCall::dimension(
    std::string_view name, std::int64_t rank, std::int64_t fallback) const
{
    TRY(const std::int64_t written, integer(name, fallback));
    // A scalar has one dimension to name.
    return m_writer.axis(written, std::max<std::int64_t>(rank, 1));
}

Result<Integers> AtenCall::dimensions(
    std::string_view name, std::int64_t rank, const Integers &fallback) const
{
    TRY(const Integers written, integers(name, {}));
    if (written.empty())
        return fallback;
    Integers result;
    for (const std::int64_t value : written) {
        TRY(const std::int64_t axis, m_writer.axis(value, std::max<std::int64_t>(rank, 1)));
        if (rank > 0 && std::find(result.begin(), result.end(), axis) == result.end())
            result.push_back(axis);
    }
    return result;
}

Result<DataType> AtenCall::promotedType(std::initializer_list<std::string_view> names) const
{
    // By priority: tensors with dimensions, tensors without, numbers.
    std::array<std::optional<DataType>, 3> types{};
    const auto join = [&](std::size_t priority, DataType type) {
        auto &joined = types[priority];
        if (!joined || categoryOfType(type) > categoryOfType(*joined))
            joined = type;
        else if (categoryOfType(type) == categoryOfType(*joined))
            joined = widerType(*joined, type);
    };
    for (const std::string_view name : names) {
        const AtenValue &argument = value(name);
        if (const auto *id = std::get_if<TensorId>(&argument)) {
            const TensorType &type = m_writer.graph().typeOf(*id);
            join(type.shape.empty() ? 1 : 0, type.dataType);
        } else if (std::holds_alternative<double>(argument)) {
            join(2, DataType::Float32);
        } else if (std::holds_alternative<std::int64_t>(argument)) {
            join(2, DataType::Int64);
        } else if (std::holds_alternative<bool>(argument)) {
            join(2, DataType::Bool);
        } else {
            return wrongArgument(name, "a tensor or a number");
        }
    }
    std::optional<DataType> result;
    for (const auto &type : types) {
        if (type && (!result || categoryOfType(*type) > categoryOfType(*result)))
            result = type;
    }
    return *result;
}

bool AtenCall::isComplex() const
{
    return std::any_of(m_arguments.begin(), m_arguments.end(), [](const auto &argument) {
        const auto *type = std::get_if<Pt2DataType>(&argument.second);
        return std::holds_alternative<AtenComplex>(argument.second)
            || std::holds_alternative<std::vector<AtenComplex>>(argument.second)
            || std::holds_alternative<std::complex<double>>(argument.second)
            || (type != nullptr && type->partType.has_value());
    });
}

} // namespace planloom
