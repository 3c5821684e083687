#pragma once

#include "engine/base/result.h"
#include "engine/frontend/torch/pt2_program.h"
#include "engine/frontend/writer/node_writer.h"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace planloom {

/// A tensor of complex numbers: its real and its imaginary parts, of one type. Nothing behind the importer
/// knows complex numbers.
struct AtenComplex {
    TensorId real{};
    TensorId imaginary{}; ///< Invalid while an operator is made if it is 0 everywhere.
};

/// An argument of a call of an ATen operator once names are looked up: sizes are numbers, since all
/// dimensions have sizes by then. An invalid id in a list is an absent tensor; a list with a complex tensor
/// is one of complex tensors.
using AtenValue = std::variant<std::monostate, TensorId, std::vector<TensorId>, std::int64_t, double, bool,
    std::string, std::vector<std::int64_t>, std::vector<double>, Pt2DataType, AtenComplex,
    std::vector<AtenComplex>, std::complex<double>>;
using AtenArguments = std::map<std::string, AtenValue>;

/// The tensors among arguments, in the order of their names; a complex one is two.
std::vector<TensorId> tensorsAmong(const AtenArguments &arguments);

/// What a call of an ATen operator is given: its arguments, read with errors in the name of the call's node.
class AtenCall
{
public:
    /// @param name       of the operator, without overload: "linear"
    /// @param arguments  by the names of the operator's schema
    /// @param writer     of the call's node
    AtenCall(std::string name, AtenArguments arguments, NodeWriter &writer)
        : m_name(std::move(name))
        , m_arguments(std::move(arguments))
        , m_writer(writer)
    {
    }

    /// "aten.linear.default"
    const std::string &target() const { return m_writer.source().type; }
    const std::string &name() const { return m_name; }
    const AtenArguments &arguments() const { return m_arguments; }
    /// The argument as it is; monostate if it is missing.
    const AtenValue &value(std::string_view name) const;
    /// True if an argument is complex, or the element type that is asked for.
    bool isComplex() const;

    /// True if the argument is there and is not None.
    bool given(std::string_view name) const;
    Result<TensorId> tensor(std::string_view name) const;
    /// Invalid if it is not given. @return InvalidInput if it is given and is no tensor
    Result<TensorId> optionalTensor(std::string_view name) const;
    Result<std::vector<TensorId>> tensors(std::string_view name) const;
    Result<std::int64_t> integer(std::string_view name) const;
    Result<std::int64_t> integer(std::string_view name, std::int64_t fallback) const;
    Result<double> real(std::string_view name, double fallback) const;
    Result<bool> flag(std::string_view name, bool fallback) const;
    Result<std::string> text(std::string_view name, std::string_view fallback) const;
    /// A single number counts as a list of one.
    Result<std::vector<std::int64_t>> integers(std::string_view name) const;
    /// The same; `fallback` where it is not given.
    Result<std::vector<std::int64_t>> integers(
        std::string_view name, const std::vector<std::int64_t> &fallback) const;
    /// One number for each of `count` dimensions, where a single one counts for all of them.
    Result<std::vector<std::int64_t>> perDimension(
        std::string_view name, std::size_t count, std::int64_t fallback) const;
    /// Argument "dtype", or `fallback`. @return NotSupported for types that Planloom has not
    Result<DataType> dataType(DataType fallback) const;
    /// A tensor or number: a known scalar of `type` for a number. Tensors keep their types.
    Result<TensorId> operand(std::string_view name, DataType type) const;
    /// Argument `name` as a dimension of something with `rank` dimensions, counted from 0.
    Result<std::int64_t> dimension(std::string_view name, std::int64_t rank, std::int64_t fallback) const;
    /// The same for a list; none given means `fallback`.
    Result<std::vector<std::int64_t>> dimensions(
        std::string_view name, std::int64_t rank, const std::vector<std::int64_t> &fallback) const;

    /// The element type that PyTorch's arithmetic has of these arguments, tensors or numbers: by category
    /// (floating before integral before Bool), then tensors with dimensions before scalars before numbers.
    Result<DataType> promotedType(std::initializer_list<std::string_view> names) const;

    Error invalid(std::string message) const { return m_writer.invalid(std::move(message)); }
    Error unsupported(std::string message, std::string advice = {}) const
    {
        return m_writer.unsupported(std::move(message), std::move(advice));
    }

protected:
    NodeWriter &writer() const { return m_writer; }
    Error wrongArgument(std::string_view name, const char *expected) const;

private:
    std::string m_name;
    AtenArguments m_arguments;
    NodeWriter &m_writer;
};

} // namespace planloom
