#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/graph/operators/attention.h"

#include <vector>

namespace planloom {

/// Output types of a forward operator from its kind, attributes and input types. Kinds whose output shape is
/// not a function of those (Reshape, Expand, Resize, Fill, Range, Slice, Unknown) are given theirs by whoever
/// builds the graph; for them this checks `declared` and returns it.
///
/// @param inputs    one per slot; an absent optional input has data type Float32, an empty shape, and
/// present[i] false
/// @param declared  output types already known; may be empty where they can be inferred
/// @return InvalidInput that says which input does not fit and what was expected
Result<std::vector<TensorType>> inferTypes(OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const std::vector<TensorType> &declared);

/// The dimension annotation of a forward or optimizer operator, computed from shapes
/// (reference-systems.md 1.3, 1.5, appendix A). Never guesses: where the kind cannot be described,
/// `wholeAnnotation` and the reason.
struct AnnotationOutcome {
    Annotation annotation{};
    std::string problem{}; ///< Empty if annotated.
};
AnnotationOutcome annotate(OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const std::vector<TensorType> &outputs);

/// What the backward operator of a kind needs and makes.
struct GradientRule {
    bool differentiable = false;
    std::vector<bool> gradientOf{}; ///< Per forward input: a gradient exists (floating, continuous).
    std::vector<bool> needsInput{}; ///< Per forward input: its value is needed in the backward pass.
    std::vector<bool> needsOutput{}; ///< Per forward output.
};
GradientRule gradientRule(const Graph &graph, const Operator &forward);

/// The same where only some inputs' gradients are wanted (`wanted[i]`, per forward input; missing entries
/// mean yes): what only the others need is not saved. `gradientOf` does not depend on `wanted`.
GradientRule gradientRule(const Graph &graph, const Operator &forward, const std::vector<bool> &wanted);

/// The annotation of a backward operator, in the slots of `Operator`: identifiers and their sizes are the
/// forward's; every Spatial one becomes Reduce, since the gradient of an input that lacks an identifier is a
/// sum over it. Its linearInputs are the saved linear inputs of the forward; under a Value split the
/// gradients of those same inputs are complete in every part, and all other gradients are summands.
///
/// @param gradients  outputs of the backward operator: where it makes none of an input that windows read, as
/// of the
///   first layer's, it needs no windows of its neighbours either. Empty: it makes all
Annotation backwardAnnotation(const Annotation &forward, const std::vector<TensorId> &gradients = {});

/// Floating-point operations and bytes of one operator, or of the part of it given by local shapes.
struct Work {
    double flops = 0; ///< Multiply and add count as two.
    double bytes = 0; ///< Read and written once each.
};
/// @param attention  whether an Attention writes its probabilities, or reads them in its backward pass
Work workOf(const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs,
    AttentionMode attention = AttentionMode::Fused);

/// Of the whole operator.
Work workOf(const Graph &graph, const Operator &op);

/// `count` products of an m x k matrix with a k x n matrix, all at once.
struct MatrixProduct {
    double m = 1;
    double n = 1;
    double k = 1;
    double count = 1;
    friend bool operator==(const MatrixProduct &, const MatrixProduct &) = default;
};
/// The matrix products that a MatMul or Linear (or the part of it given by local shapes) runs: one forward,
/// one for each wanted gradient of a factor backward. Empty for other kinds.
std::vector<MatrixProduct> matrixProductsOf(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs);

/// True if output 0 may lie in the memory of input 0 without copying: Reshape and Identity, and their
/// backward operators, which do the same to the gradient.
bool isView(const Operator &op);

} // namespace planloom
