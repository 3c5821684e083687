#include "engine/frontend/finish_import.h"

#include <algorithm>
#include <set>
#include <utility>

namespace planloom {

namespace {

constexpr const char *kLossName = "loss"; ///< Of an output that is trained on unless told otherwise.

bool isFloatingScalar(const Tensor &tensor)
{
    return tensor.typeKnown && isFloating(tensor.type.dataType) && tensor.type.shape.empty();
}

/// True for an output that is trained on, so far as a name says it.
bool isWantedLoss(const ReturnedValue &value, const std::string &wanted)
{
    return wanted.empty() ? value.isLoss || value.name == kLossName : value.name == wanted;
}

/// The same value as a scalar that has its name, where it is floating and of one element: so losses are.
/// All others as they are.
Result<TensorId> scalarOf(GraphWriter &writer, TensorId id, const std::string &name)
{
    const Tensor &tensor = writer.at(id);
    const TensorType type = tensor.type;
    if (!tensor.typeKnown || !isFloating(type.dataType) || type.shape.empty()
        || elementCount(type.shape) != 1)
        return id;
    if (tensor.name == name && tensor.role == TensorRole::Activation)
        writer.unname(id);
    TRY(const auto scalar,
        writer.emit(name + "_scalar", {"", "Reshape"}, OperatorKind::Reshape, {}, {id}, {{type.dataType, {}}},
            false));
    writer.nameTensor(scalar.front(), name);
    return scalar.front();
}

/// A returned value has an operator that makes it, even if it is a constant or an input.
Result<TensorId> madeByOperator(GraphWriter &writer, TensorId id, const std::string &value)
{
    if (writer.at(id).role == TensorRole::Activation)
        return id;
    if (writer.at(id).role == TensorRole::Buffer)
        writer.unname(id);
    const std::string name = "output." + value;
    const SourceNode source{"", "Identity"};
    auto copy = writer.emit(name, source, OperatorKind::Identity, {}, {id}, {}, false);
    if (!copy && !writer.maySkip(copy.error()))
        return std::move(copy).error();
    const TensorId made =
        copy ? copy->front() : writer.emitOpaque(name, source, {id}, 1, &copy.error()).front();
    writer.nameTensor(made, value);
    return made;
}

/// The graph's outputs, and which of them the file calls the loss.
struct Outputs {
    std::vector<TensorId> tensors{};
    TensorId loss{};
};

Result<Outputs> outputsOf(GraphWriter &writer, const ReturnedValues &returned, const std::string &place)
{
    const std::string &wanted = writer.options().lossOutput;
    Outputs outputs;
    std::set<TensorId> seen;
    for (const ReturnedValue &value : returned.values) {
        TensorId id = value.tensor;
        if (elementCount(writer.typeOf(id).shape) == 0) {
            writer.note("the output '" + value.name + "' has no elements ("
                + toString(writer.typeOf(id).shape) + "), and is left out");
            continue;
        }
        const bool isNamed = isWantedLoss(value, wanted);
        if (isNamed || (returned.isSingle && wanted.empty())) {
            TRY(id, scalarOf(writer, value.tensor, value.name));
            if (id != value.tensor && !isNamed)
                writer.note("the only output, '" + value.name
                    + "', has one element and was taken as the loss; --inference plans the forward pass "
                      "alone");
        }
        TRY(id, madeByOperator(writer, id, value.name));
        if (value.isLoss)
            outputs.loss = id;
        if (seen.insert(id).second)
            outputs.tensors.push_back(id);
    }
    if (outputs.tensors.empty())
        return Error{ErrorCode::InvalidInput, "no output of the model has elements",
            "give larger sizes to its open dimensions, with --dim", place};
    return outputs;
}

/// @return NotSupported if outputs have rows that data choose, and none is a number that may be a loss: then
/// these rows are what the model is for
Result<void> checkChosen(GraphWriter &writer, const std::vector<TensorId> &outputs)
{
    const bool hasLoss = std::any_of(outputs.begin(), outputs.end(), [&](TensorId id) {
        return writer.typeOf(id).shape.empty() && isFloating(writer.typeOf(id).dataType);
    });
    for (const TensorId id : outputs) {
        if (writer.chosen().rows(id) == nullptr)
            continue;
        const std::string what = "the output '" + writer.at(id).name
            + "' has as many rows as there is room for: those that data choose, and behind them some of no "
              "meaning";
        if (!hasLoss)
            return Error{ErrorCode::NotSupported, what,
                "return a loss, or values of a shape that does not depend on data", {}};
        writer.note(what);
    }
    return {};
}

Result<void> chooseLoss(Graph &graph, const ImportOptions &options, TensorId signedLoss,
    bool onlyScalarIsLoss, const std::string &place)
{
    const std::string wanted = !options.lossOutput.empty() ? options.lossOutput
        : signedLoss                                       ? graph.at(signedLoss).name
                                                           : std::string();
    std::string names;
    std::vector<TensorId> scalars;
    bool isMisfit = false;
    for (const TensorId id : graph.outputs) {
        const Tensor &tensor = graph.at(id);
        names += (names.empty() ? "'" : ", '") + tensor.name + "'";
        if (isFloatingScalar(tensor))
            scalars.push_back(id);
        if (!tensor.typeKnown || tensor.name != (wanted.empty() ? kLossName : wanted))
            continue;
        if (isFloatingScalar(tensor)) {
            graph.loss = id;
            return {};
        }
        if (!wanted.empty())
            return Error{ErrorCode::InvalidInput,
                "the output '" + wanted + "' is " + nameOf(tensor.type.dataType) + toString(tensor.type.shape)
                    + ", where a loss must be a floating scalar",
                "name another output with --loss", place};
        isMisfit = true;
    }
    if (!wanted.empty() && !options.look)
        return Error{ErrorCode::NotFound, "the model has no output '" + wanted + "' to train on",
            "its outputs are " + names, place};
    if (onlyScalarIsLoss && scalars.size() == 1)
        graph.loss = scalars.front();
    else if (onlyScalarIsLoss && scalars.size() > 1)
        graph.notes.push_back(
            "several outputs are scalars, so the model has no loss: name one with --loss (" + names + ")");
    else if (isMisfit)
        graph.notes.push_back("the output 'loss' is no scalar number, so the model has no loss");
    return {};
}

} // namespace

Result<Graph> finishImport(GraphWriter &writer, const ReturnedValues &returned,
    const std::vector<std::string> &notes, const std::string &place)
{
    TRY(Outputs outputs, outputsOf(writer, returned, place));
    TRY_VOID(checkChosen(writer, outputs.tensors));
    for (const std::string &note : notes)
        writer.note(note);
    Graph graph = writer.take(std::move(outputs.tensors));
    TRY_VOID(chooseLoss(graph, writer.options(), outputs.loss, returned.onlyScalarIsLoss, place));
    return graph;
}

} // namespace planloom
