#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/graph/capacity.h"
#include "engine/graph/dimensions/input_dimension.h"
#include "engine/graph/operator.h"
#include "engine/graph/tensor.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// A module of the model ("transformer.h.3.attn"); scope 0 is the model itself, with an empty name.
struct Scope {
    std::string name{}; ///< Last part of the path: "attn".
    ScopeId parent{};
    /// Scopes with the same class are structural copies of one another (repeated layers); -1 if unique.
    std::int32_t copyClass = -1;
};

/// An operator that an importer could not read: where, why, and what helps.
struct Obstacle {
    std::string op{}; ///< Name of the operator, of kind Unknown.
    std::string message{};
    std::string advice{}; ///< May be empty.
};

/// Whether a recurrence (Lstm, Gru, Rnn) is the operators of its steps.
struct RecurrenceChoice {
    bool isUnrolled = false;
    std::string problem{}; ///< Why it cannot be; empty if it can.
};

/// A model, or a model with its training step. Immutable once built; shared as `GraphSnapshot`.
///
/// Operators stand in a topological order: forward, then backward, then optimizer. Backward operators run
/// over the forward ones in reverse. A Gradient tensor may have several producers, one per consumer of the
/// tensor it belongs to; its value is the sum of what they produce.
struct Graph {
    std::string name{};
    std::vector<Tensor> tensors{};
    std::vector<Operator> operators{};
    std::vector<Scope> scopes{Scope{}};
    /// Sizes that were chosen when the model was opened, in the order of the inputs; those that the file
    /// fixes are not among them.
    std::vector<InputDimension> dimensions{};
    /// Room for what data choose, by the operators that find it; "all" is that of all which were given none
    /// of their own. Empty where data choose nothing. A row (`capacity all = 1.25x`) makes it a knob of the
    /// design.
    std::map<std::string, Capacity> rooms{};
    std::map<std::string, RecurrenceChoice>
        recurrences{}; ///< By operator. A row (`unroll all`) unrolls them.
    std::vector<TensorId> inputs{}; ///< Role Input, in the file's order.
    std::vector<TensorId> outputs{}; ///< Values the model returns, in the file's order; includes the loss.
    TensorId loss{}; ///< Scalar; invalid for a model without one (inference only).
    std::vector<std::string> notes{}; ///< What the importer wants the user to know.
    /// If not empty, the model can be looked at, not planned: what could not be read of it. What these
    /// operators make, and all that is made of it, has no known type.
    std::vector<Obstacle> obstacles{};

    const Tensor &at(TensorId id) const { return tensors[static_cast<std::size_t>(id.index)]; }
    Tensor &at(TensorId id) { return tensors[static_cast<std::size_t>(id.index)]; }
    const Operator &at(OperatorId id) const { return operators[static_cast<std::size_t>(id.index)]; }
    Operator &at(OperatorId id) { return operators[static_cast<std::size_t>(id.index)]; }
    const Scope &at(ScopeId id) const { return scopes[static_cast<std::size_t>(id.index)]; }
};

using GraphSnapshot = std::shared_ptr<const Graph>;

/// Who makes and who uses each pTensor, by tensor index. O(operators) to build.
struct Uses {
    std::vector<std::vector<OperatorId>> producers{}; ///< At most one but for Gradients.
    std::vector<std::vector<OperatorId>> consumers{}; ///< In operator order, each operator once.
};
Uses usesOf(const Graph &graph);

/// How the parts of each pTensor's value are combined where its producer makes it in parts, by tensor index.
/// O(operators).
std::vector<Combination> combinationsOf(const Graph &graph);

/// The pTensor by whose logarithms the parts of each pTensor are weighed, by tensor index; invalid for those
/// that are not. O(operators).
std::vector<TensorId> weightTensorsOf(const Graph &graph);

/// "transformer.h.3.attn"; empty for the model itself.
std::string pathOf(const Graph &graph, ScopeId scope);

/// Checks every invariant stated above: ids in range, topological order, unique names, annotations that fit
/// the shapes, slots of backward operators. @return Internal naming the first operator or tensor that breaks
/// one
Result<void> validate(const Graph &graph);

/// The shape by which files know a tensor's values: that of its type, or the file's own
/// (`Tensor::fileShape`), also for the gradient and the optimizer states of such a weight.
const Shape &shapeInFiles(const Graph &graph, TensorId id);

/// The name by which files know a tensor: its own, or that of what it is a part of.
const std::string &nameInFiles(const Tensor &tensor);

/// False if `Tensor::filePart` is none of a tensor of this shape: other dimensions, or beyond the end.
bool fitsFilePart(const Tensor &tensor);

/// How the values of a tensor lie in what files have: `count` runs of `length` elements, the first of them
/// `first` elements after the begin, each `stride` after the one before. All of it in one run for a tensor
/// that is no part of another.
struct FileRuns {
    std::int64_t count = 1;
    std::int64_t length = 0;
    std::int64_t first = 0;
    std::int64_t stride = 0;
};
FileRuns runsInFile(const Tensor &tensor);

/// The tensors that a file stored and an importer had to tell apart (`Tensor::classification`), in the order
/// of the graph.
std::vector<TensorId> storedTensors(const Graph &graph);

/// Of each tensor; an empty one for an id that names none.
std::vector<TensorType> typesOf(const Graph &graph, const std::vector<TensorId> &tensors);
/// By place: whether an id names a tensor.
std::vector<bool> presentAmong(const std::vector<TensorId> &tensors);

} // namespace planloom
