#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/graph/operator_files/operator_definition.h"
#include "engine/graph/operators/catalogue.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planloom {

// What the definition of an operator of kind Custom (operator_definition.h) says once shapes are known. The
// catalogue (catalogue.h) and the kernels ask here; all others ask them.

/// Sizes of a definition's dimensions by name.
using DefinedSizes = std::map<std::string, std::int64_t>;

/// Sizes that inputs of these shapes give the dimensions, those of lines "where" included.
/// @return InvalidInput if the shapes do not fit the annotation
Result<DefinedSizes> definedSizes(const OperatorDefinition &definition, const Attributes &attributes,
    const std::vector<Shape> &inputs, const std::vector<bool> &present);

/// Adds to the sizes that inputs have those of the definition's lines "where".
/// @return InvalidInput for one that comes out as no size
Result<void> addDefinedSizes(
    const OperatorDefinition &definition, const Attributes &attributes, DefinedSizes &sizes);

/// The attributes that a node has, with those that it lacks as the definition says; of the types that the
/// definition gives them. `definition()` is set.
/// @return InvalidInput for one that is missing or of another type
Result<Attributes> completedAttributes(
    std::shared_ptr<const OperatorDefinition> definition, const Attributes &given);

/// Types of outputs and of what is saved. @return InvalidInput that says what does not fit
Result<std::vector<TensorType>> customTypes(
    const Attributes &attributes, const std::vector<TensorType> &inputs, const std::vector<bool> &present);

/// The annotation that the definition has, for these types; whole, with a reason, where it has none.
AnnotationOutcome customAnnotation(const Attributes &attributes, const std::vector<TensorType> &inputs,
    const std::vector<bool> &present, const std::vector<TensorType> &outputs);

/// @see gradientRule
GradientRule customGradientRule(const Graph &graph, const Operator &forward, const std::vector<bool> &wanted);

/// Operations of a forward or backward Custom operator, or of the part of it with these local types.
double customFlops(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs);

/// Bytes that its function needs beside inputs and outputs while it runs on sizes `part` out of `whole`.
/// @return InvalidInput if the expression comes out as no number of bytes
Result<std::int64_t> workspaceBytes(const OperatorDefinition &definition, const Attributes &attributes,
    const DefinedSizes &part, const DefinedSizes &whole);

/// The same of a forward or backward Custom operator, or of the part of it with these local types; 0 where it
/// needs none, or where the expression comes out as no number.
std::int64_t workspaceOf(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs);

/// Kinds whose types the catalogue is told (`inferTypes`), so that a step of a body has to say them.
bool needsDeclaredType(OperatorKind kind);

/// A definition's body as a graph of known operators, for inputs of these types: of a whole operator, or of a
/// part.
///
/// `Graph::inputs` are the inputs by slot, invalid where absent; `Graph::outputs` the outputs and what is
/// saved. Constants are Buffers with data (but of half precision, which no kernel computes with). Nothing is
/// validated but types: this is what kernels run.
/// @param whole  sizes in the whole operator; those of the inputs if null
/// @return InvalidInput with the line of the file, naming the step that does not fit
Result<Graph> bodyOf(const OperatorDefinition &definition, const Attributes &attributes,
    const std::vector<TensorType> &inputs, const std::vector<bool> &present,
    const DefinedSizes *whole = nullptr);

} // namespace planloom
