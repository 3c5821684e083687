#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_operators.h"
#include "engine/frontend/torch/pt2_program.h"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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

/// One call of an ATen operator while it becomes operators of the graph.
///
/// What an operator of ONNX means as well is made by that operator's handler (`onnx`), so that both formats
/// become the same graph; only what ONNX has not, or says otherwise, is written out here.
class AtenContext
{
public:
    /// @param target     "aten.linear.default"
    /// @param name       of the operator that is made, without overload: "linear"
    /// @param arguments  by the names of the operator's schema
    /// @param node       the call as a node of the graph that is imported, with the names of all its results
    /// @param declared   of each result, what the file says of its type; null where it says nothing
    AtenContext(std::string target, std::string name, AtenArguments arguments, OnnxNodeContext &node,
        std::vector<const OnnxValue *> declared);

    const std::string &target() const { return m_target; }
    const std::string &name() const { return m_name; }
    const AtenArguments &arguments() const { return m_arguments; }
    OnnxBuilder &builder() { return m_node.builder(); }
    const TensorType &typeOf(TensorId id) { return m_node.builder().typeOf(id); }
    const Shape &shapeOf(TensorId id) { return typeOf(id).shape; }
    std::int64_t rankOf(TensorId id) { return static_cast<std::int64_t>(shapeOf(id).size()); }

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

    /// Tensors or numbers, cast to `type`.
    Result<std::vector<TensorId>> operands(std::initializer_list<std::string_view> names, DataType type);
    /// The shape that all of them broadcast to.
    Shape broadcastShape(const std::vector<TensorId> &tensors);

    /// Makes the operator that ONNX calls `type` (of the newest operator set), with as many results as it
    /// has. `suffix` is added to the call's name; empty for its main operator.
    Result<std::vector<TensorId>> onnxMany(const std::string &type, std::vector<TensorId> inputs,
        std::map<std::string, OnnxAttribute, std::less<>> attributes, std::size_t results,
        std::string_view suffix = {});
    Result<TensorId> onnx(const std::string &type, std::vector<TensorId> inputs,
        std::map<std::string, OnnxAttribute, std::less<>> attributes = {}, std::string_view suffix = {});
    /// The same, as result 0.
    Result<void> finishOnnx(const std::string &type, std::vector<TensorId> inputs,
        std::map<std::string, OnnxAttribute, std::less<>> attributes = {});

    /// True if an argument is complex, or the element type that is asked for.
    bool isComplex() const;
    /// What ATen's operator `name` makes of other arguments.
    /// @param results  how many; each is a tensor or complex
    Result<std::vector<AtenValue>> otherMany(
        const std::string &name, AtenArguments arguments, std::size_t results, std::string_view suffix);
    /// The same with one result that is a tensor.
    Result<TensorId> other(const std::string &name, AtenArguments arguments, std::string_view suffix);
    /// The same with one result that is complex.
    Result<AtenComplex> otherComplex(
        const std::string &name, AtenArguments arguments, std::string_view suffix);

    /// Makes an operator of the graph. @see OnnxNodeContext
    Result<TensorId> make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {}, std::string_view suffix = {});
    Result<std::vector<TensorId>> makeMany(
        OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes, std::string_view suffix);
    /// The same, as result 0.
    Result<void> finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {});

    Result<TensorId> cast(TensorId x, DataType type, std::string_view suffix = "cast");
    Result<TensorId> reshape(TensorId x, Shape shape, std::string_view suffix = "shape");
    Result<TensorId> permute(TensorId x, std::vector<std::int64_t> order, std::string_view suffix);
    /// The same, as result 0.
    Result<void> finishPermuted(TensorId x, std::vector<std::int64_t> order);
    /// Elements `begin`, `begin` + `step`, .. below `end` along a dimension.
    Result<TensorId> slice(TensorId x, std::int64_t axis, std::int64_t begin, std::int64_t end,
        std::int64_t step = 1, std::string_view suffix = "slice");
    /// Broadcasts; -1 keeps an extent.
    Result<TensorId> expand(TensorId x, const Shape &shape, std::string_view suffix = "expand");
    Result<TensorId> concat(std::vector<TensorId> parts, std::int64_t axis, std::string_view suffix);
    /// The places of what is true in a mask, one list of indices [c] for each of its dimensions; as many as
    /// there is room for, where its values are not known.
    Result<std::vector<TensorId>> placesIn(TensorId mask);
    TensorId scalar(DataType type, double value);
    TensorId integerScalar(std::int64_t value);
    TensorId list(std::vector<std::int64_t> values);
    /// All elements equal to `value`.
    Result<TensorId> filled(const TensorType &type, const AtenValue &value, std::string_view suffix);

    /// Gives result `slot` its tensor; results beyond those that the file names are left out.
    Result<void> bind(std::size_t slot, TensorId tensor) { return m_node.bind(slot, tensor); }
    /// Gives result `slot` complex numbers, both of whose parts are there.
    Result<void> bindComplex(std::size_t slot, const AtenComplex &value);
    /// Results that are complex, by slot.
    const std::map<std::size_t, AtenComplex> &complexResults() const { return m_complex; }
    /// Gives result `slot` what another operator made.
    Result<void> bindValue(std::size_t slot, const AtenValue &value);
    /// True if something reads result `slot`.
    bool wants(std::size_t slot) const { return m_node.wants(slot); }
    std::size_t resultCount() const { return m_node.node().outputs.size(); }
    /// Makes the operator that an operator file defines: its inputs are the arguments of their names, or,
    /// where names differ, the tensors among the arguments in their order; attributes are all other
    /// arguments.
    Result<void> makeDefined(const std::shared_ptr<const OperatorDefinition> &definition);
    /// Keeps the call as an operator that can be planned, not run. @return NotSupported, with the reason,
    /// where the file does not say what its results are
    Result<void> keepUnknown(const std::string &reason);

    Error invalid(std::string message) const { return m_node.invalid(std::move(message)); }
    Error unsupported(std::string message, std::string advice = {}) const
    {
        return m_node.unsupported(std::move(message), std::move(advice));
    }
    /// The argument as it is; monostate if it is missing.
    const AtenValue &value(std::string_view name) const;

private:
    Error wrongArgument(std::string_view name, const char *expected) const;

    std::string m_target;
    std::string m_name;
    AtenArguments m_arguments;
    OnnxNodeContext &m_node;
    std::vector<const OnnxValue *> m_declared;
    std::map<std::size_t, AtenComplex> m_complex{};
};

/// A dimension, counted from 0, as an index.
inline std::size_t axisIndex(std::int64_t axis)
{
    return static_cast<std::size_t>(axis);
}

/// The floating type in which a function of `type` is computed.
inline DataType floatingTypeOf(DataType type)
{
    return isFloating(type) ? type : DataType::Float32;
}

using AtenHandler = Result<void> (*)(AtenContext &);
/// The handler of an operator by its name without overload ("linear"), by file; null if it is not there.
AtenHandler findAtenActivation(std::string_view name);
AtenHandler findAtenBag(std::string_view name);
AtenHandler findAtenDistance(std::string_view name);
AtenHandler findAtenElementwise(std::string_view name);
AtenHandler findAtenFilling(std::string_view name);
AtenHandler findAtenFourier(std::string_view name);
AtenHandler findAtenIndex(std::string_view name);
AtenHandler findAtenLoss(std::string_view name);
AtenHandler findAtenMargin(std::string_view name);
AtenHandler findAtenMovement(std::string_view name);
AtenHandler findAtenNetwork(std::string_view name);
AtenHandler findAtenNorm(std::string_view name);
AtenHandler findAtenOrder(std::string_view name);
AtenHandler findAtenPool(std::string_view name);
AtenHandler findAtenQuantize(std::string_view name);
AtenHandler findAtenReduction(std::string_view name);
AtenHandler findAtenScatter(std::string_view name);
AtenHandler findAtenSequence(std::string_view name);
AtenHandler findAtenShape(std::string_view name);
AtenHandler findAtenSpecial(std::string_view name);
AtenHandler findAtenWindow(std::string_view name);
/// Of operators that make complex numbers of real ones.
AtenHandler findAtenMakingComplex(std::string_view name);
/// Of operators some of whose arguments are complex (`AtenContext::isComplex`).
AtenHandler findAtenComplex(std::string_view name);

/// The handler of any of them, of real arguments.
AtenHandler findAtenHandler(std::string_view name);

/// True for operators whose result PyTorch lets share memory with their first argument: what is written into
/// one of the two later changes both.
bool isAtenView(std::string_view name);

} // namespace planloom
