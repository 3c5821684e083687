#pragma once

#include "engine/base/result.h"
#include "engine/frontend/torch/aten/aten_arguments.h"
#include "engine/frontend/writer/emit_functions.h"
#include "engine/frontend/writer/emit_movement.h"
#include "engine/frontend/writer/node_writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// One call of an ATen operator while it becomes operators of the graph.
class AtenContext : public AtenCall
{
public:
    /// @param inputs  the tensors among the arguments in the order of the call
    /// @param writer  of the call's node, with the names of all its results
    AtenContext(std::string name, AtenArguments arguments, std::vector<TensorId> inputs, NodeWriter &writer)
        : AtenCall(std::move(name), std::move(arguments), writer)
        , m_inputs(std::move(inputs))
    {
    }

    GraphWriter &graph() const { return writer().graph(); }
    const TensorType &typeOf(TensorId id) const { return graph().typeOf(id); }
    const Shape &shapeOf(TensorId id) const { return typeOf(id).shape; }
    std::int64_t rankOf(TensorId id) const { return static_cast<std::int64_t>(shapeOf(id).size()); }

    /// Tensors or numbers, cast to `type`.
    Result<std::vector<TensorId>> operands(std::initializer_list<std::string_view> names, DataType type);
    /// The shape that all of them broadcast to.
    Shape broadcastShape(const std::vector<TensorId> &tensors);

    /// What ATen's operator `name` makes of other arguments.
    /// @param results  how many; each is a tensor or complex
    Result<std::vector<AtenValue>> otherMany(
        const std::string &name, AtenArguments arguments, std::size_t results, std::string_view suffix);
    /// The same with one result that is a tensor.
    Result<TensorId> other(const std::string &name, AtenArguments arguments, std::string_view suffix);
    /// The same with one result that is complex.
    Result<AtenComplex> otherComplex(
        const std::string &name, AtenArguments arguments, std::string_view suffix);

    /// What a function makes that emits operators (frontend/writer), as a part of the call with its names:
    /// `context.part("rows", emitGather, x, indices, axis)`. The call's own names for an empty suffix.
    template<typename Made, typename... Parameters, typename... Given>
    Result<Made> part(
        std::string_view suffix, Result<Made> (*emit)(NodeWriter &, Parameters...), Given &&...given)
    {
        NodeWriter own = writer().part(suffix);
        return named(suffix, emit(own, std::forward<Given>(given)...));
    }
    /// The same, as the call's results.
    template<typename Made, typename... Parameters, typename... Given>
    Result<void> finishWith(Result<Made> (*emit)(NodeWriter &, Parameters...), Given &&...given)
    {
        return finish(part({}, emit, std::forward<Given>(given)...));
    }

    /// Makes an operator of the graph. @see NodeWriter
    Result<TensorId> make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {}, std::string_view suffix = {});
    Result<std::vector<TensorId>> makeMany(
        OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes, std::string_view suffix);
    /// The same, as result 0.
    Result<void> finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {});
    /// What was made, if it was, as result 0, or as the results from 0 on.
    Result<void> finish(Result<TensorId> made);
    Result<void> finish(Result<std::vector<TensorId>> made);
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
    Result<void> bind(std::size_t slot, TensorId tensor) { return writer().bind(slot, tensor); }
    /// Gives result `slot` complex numbers, both of whose parts are there.
    Result<void> bindComplex(std::size_t slot, const AtenComplex &value);
    /// Results that are complex, by slot.
    const std::map<std::size_t, AtenComplex> &complexResults() const { return m_complex; }
    /// Gives result `slot` what another operator made.
    Result<void> bindValue(std::size_t slot, const AtenValue &value);
    /// True if something reads result `slot`.
    bool wants(std::size_t slot) const { return writer().wants(slot); }
    std::size_t resultCount() const { return writer().results().size(); }
    /// Makes the operator that an operator file defines: its inputs are the arguments of their names, or,
    /// where names differ, the tensors among the arguments in their order; attributes are all other
    /// arguments.
    Result<void> makeDefined(const std::shared_ptr<const OperatorDefinition> &definition);
    /// Keeps the call as an operator that can be planned, not run. @return NotSupported, with the reason,
    /// where the file does not say what its results are
    Result<void> keepUnknown(const std::string &reason);

private:
    /// Gives what a part of the call made the part's names.
    Result<TensorId> named(std::string_view suffix, Result<TensorId> made);
    Result<std::vector<TensorId>> named(std::string_view suffix, Result<std::vector<TensorId>> made);

    std::vector<TensorId> m_inputs;
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
/// Handlers by the names of their operators without overload ("linear"), by file.
using AtenHandlers = std::map<std::string, AtenHandler, std::less<>>;
const AtenHandlers &atenActivationHandlers();
const AtenHandlers &atenBagHandlers();
const AtenHandlers &atenDiagonalHandlers();
const AtenHandlers &atenDistanceHandlers();
const AtenHandlers &atenElementwiseHandlers();
const AtenHandlers &atenFillingHandlers();
const AtenHandlers &atenFourierHandlers();
const AtenHandlers &atenIndexHandlers();
const AtenHandlers &atenLossHandlers();
const AtenHandlers &atenMarginHandlers();
const AtenHandlers &atenMovementHandlers();
const AtenHandlers &atenNetworkHandlers();
const AtenHandlers &atenNormHandlers();
const AtenHandlers &atenOrderHandlers();
const AtenHandlers &atenPoolHandlers();
const AtenHandlers &atenQuantizeHandlers();
const AtenHandlers &atenReductionHandlers();
const AtenHandlers &atenScatterHandlers();
const AtenHandlers &atenSequenceHandlers();
const AtenHandlers &atenShapeHandlers();
const AtenHandlers &atenSpecialHandlers();
const AtenHandlers &atenWindowHandlers();
/// Of operators that make complex numbers of real ones.
const AtenHandlers &atenMakingComplexHandlers();
/// Null if it is not among them.
AtenHandler findIn(const AtenHandlers &handlers, std::string_view name);
/// The handler of an operator some of whose arguments are complex (`AtenContext::isComplex`).
AtenHandler findAtenComplex(std::string_view name);

/// The handler of any of them, of real arguments; null if there is none.
AtenHandler findAtenHandler(std::string_view name);

/// True for operators whose result PyTorch lets share memory with their first argument: what is written into
/// one of the two later changes both.
bool isAtenView(std::string_view name);

} // namespace planloom
