#pragma once

#include "engine/base/result.h"
#include "engine/graph/operator_files/operator_definition.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

constexpr const char *kOperatorFileEnding = ".ops";
constexpr std::size_t kMostOperatorFileBytes = std::size_t{1} << 20;

/// Where a body stands that is written in no operator file: body "swish.onnx" my.functions::Swish.
struct BodySource {
    std::string path{}; ///< Absolute if the operator file was read from a folder.
    DefinedName function{}; ///< Without a type: the one that the file has.
};

/// The steps that such a body has for an operator of which all other lines are read.
/// @return why there are none; `where` is not looked at
using BodyReader =
    std::function<Result<std::vector<BodyStep>>(const OperatorDefinition &, const BodySource &)>;

/// Why operators of this kind cannot stand in a body; null for all others.
const char *whyNotInBody(OperatorKind kind);
constexpr std::size_t kMostBodySteps = 1'000;

/// Reads an operator file: what resources/operators.md describes. An example:
///
///     planloom-operators 1
///
///     operator my.ops::ScaledSwish
///     inputs x, scale
///     outputs y
///     attribute beta = 1.0
///     annotation b s h, h -> b s h
///     flops 14 * b * s * h
///     body
///         g = Sigmoid(x * beta) ...
///     end
///
/// Every definition is checked as far as that can be done without shapes: names, the form of the annotation,
/// the body's values in their order, the derivative's operator, which stands in the same file.
///
/// @param name    of the file, for errors and `OperatorDefinition::file`
/// @param folder  that relative paths of libraries and bodies are taken from; empty leaves them as they are
/// @param bodies  reads bodies that stand in other files; without it they are refused
/// @return InvalidInput, `where` "name:LINE:COLUMN" counted from 1: what was found, what was expected, what
/// to do. Memory: a small multiple of the text, of which more than `kMostOperatorFileBytes` are refused.
/// Thread-safe.
Result<std::vector<std::shared_ptr<const OperatorDefinition>>> readOperatorFile(std::string_view text,
    const std::string &name, const std::string &folder = {}, const BodyReader &bodies = {});

/// Definitions as a file: `readOperatorFile` makes equal ones of it. The operators of derivatives are
/// included.
std::string printOperatorFile(const std::vector<std::shared_ptr<const OperatorDefinition>> &definitions);

} // namespace planloom
