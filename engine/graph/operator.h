#pragma once

#include "engine/base/ids.h"
#include "engine/graph/annotation/annotation.h"
#include "engine/graph/attributes.h"
#include "engine/graph/operators/operator_kind.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// In which part of the training step an operator runs.
enum class Direction : std::uint8_t { Forward, Backward, Optimizer };

/// A node of the model file that an operator was made from.
struct SourceNode {
    std::string name{};
    std::string type{};
    friend bool operator==(const SourceNode &, const SourceNode &) = default;
};

/// One operator of the model.
///
/// A backward operator has its forward's kind and attributes, and fixed slots: inputs are the gradients of
/// the forward's outputs, then the forward's inputs, then the forward's outputs, each an invalid id where not
/// needed; outputs are the gradients of the forward's inputs, invalid where none is wanted.
struct Operator {
    std::string name{}; ///< Unique in the graph: "transformer.h.3.attn.c_attn"; backward ones end in "'".
    OperatorKind kind = OperatorKind::Unknown;
    Direction direction = Direction::Forward;
    Attributes attributes{};
    std::vector<TensorId> inputs{};
    std::vector<TensorId> outputs{};
    Annotation annotation{};
    OperatorId mirror{}; ///< Forward <-> backward; optimizer -> none.
    ScopeId scope{};
    std::vector<SourceNode> sources{}; ///< Nodes of the file it came from; several if fused.
    std::string annotationProblem{}; ///< Why it is kept whole, where it is; empty if annotated.
};

/// "my.ops::Swish" for Custom, "my.ops.Swish" for Unknown, "LayerNorm" for all others: what people and rows
/// call the operator.
std::string typeNameOf(const Operator &op);

/// True if the operator's type is no kind, but what a file calls it (`typeNameOf`): Custom, Unknown.
inline bool isNamedByFile(const Operator &op)
{
    return op.kind == OperatorKind::Custom || op.kind == OperatorKind::Unknown;
}

/// As `categoryOf(op.kind)`; of a Custom one that runs on matrix units, Product.
OperatorCategory categoryOf(const Operator &op);

} // namespace planloom
