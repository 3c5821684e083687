#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/functions/fitted_expression.h"
#include "engine/frontend/onnx/onnx_model.h"
#include "engine/graph/graph.h"
#include "engine/graph/operator_files/operator_definition.h"

#include <string>
#include <vector>

namespace planloom {

// Private to the reader of bodies in ONNX files (function_body.h): what a function is for several choices of
// sizes.

/// What helps where a function cannot be a body.
inline constexpr const char *kWriteBodyOut = "write the body out in the operator file, down to 'end'";
Error wrongBody(std::string message, std::string advice = kWriteBodyOut);

/// One choice of sizes and attributes, and what the function is under it.
struct BodySample {
    NumberSample numbers{}; ///< Of dimensions and attributes.
    Attributes attributes{};
    std::vector<TensorType> inputs{};
    Graph graph{};
};

/// The function of `model` called `name` (the only one, or that of the operator, where `name` has no type;
/// the model's graph where it has no functions), imported for several choices of the dimensions of the
/// definition's annotation and of its attributes: prime sizes, or multiples of them where the function takes
/// no others.
/// @param file  for errors
/// @return at least seven samples: three for the unknowns of an expression, the others to try it on;
/// InvalidInput or
///   NotSupported for a function that does not fit the operator, or is imported for none of these choices
Result<std::vector<BodySample>> sampleFunction(
    const OperatorDefinition &definition, OnnxModel model, const std::string &file, const DefinedName &name);

} // namespace planloom
