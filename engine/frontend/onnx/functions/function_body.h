#pragma once

#include "engine/base/result.h"
#include "engine/graph/operator_files/operator_file.h"

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The steps of a body that an ONNX file has: of one of its functions (`FunctionProto`), or, if it has none,
/// of its graph. Inputs, outputs and what is saved are the function's by their order; attributes by their
/// names.
///
/// A function does not say shapes, and a body has to hold for every part of an operator. So the function is
/// imported, as a model's is, for several choices of the annotation's dimensions and of the attributes; what
/// differs from one to the next becomes an expression of them (fitted_expression.h), and the body made so is
/// compared with the function in all of them.
///
/// @param definition  all of the operator but its body
/// @return InvalidInput or NotSupported for what such a body cannot say: inputs that may be absent or whose
///   shapes the annotation does not give, constants of several numbers, sizes that no expression was found
///   for; errors of the file. O(samples x steps).
Result<std::vector<BodyStep>> functionBody(const OperatorDefinition &definition, std::string_view bytes,
    const std::string &file, const DefinedName &function);

/// The same from a file, as `readOperatorFile` asks for it. Waits for the disk.
Result<std::vector<BodyStep>> readFunctionBody(
    const OperatorDefinition &definition, const BodySource &source);

} // namespace planloom
