#pragma once

#include "engine/base/result.h"
#include "engine/check/trial.h"
#include "engine/graph/operator_files/operator_definition.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// What was tried out of one operator.
struct CheckedOperator {
    std::string name{}; ///< "MatMul [4 6] [6 8]", "my.ops::Swish".
    AnnotationTrial trial{};
};

/// Tries out the operators that Planloom knows, on the examples of `examplesOfEveryKind`.
/// @param name  a kind, or an ONNX operator that becomes such; letters of either case; empty for all
/// @return NotFound for a name that is neither
Result<std::vector<CheckedOperator>> checkKnownOperators(std::string_view name);

/// On what an operator of a file is tried out.
struct DefinitionTrialOptions {
    std::map<std::string, std::int64_t> sizes{}; ///< By dimension; others are 4, 6, 8, 10, ...
    std::map<std::string, Shape> shapes{}; ///< Of inputs whose dimensions the annotation does not give ("?").
    std::map<std::string, std::pair<double, double>> ranges{}; ///< Of inputs; [-1, 1) for others.
    Attributes attributes{}; ///< Those that the definition has no value for.
    std::optional<DataType> type{}; ///< Of inputs whose type the file leaves open: Float64 for bodies,
                                    ///< Float32 for libraries.
    std::uint64_t seed = 1;
    std::optional<double> tolerance{}; ///< 1e-10 for Float64, 1e-5 for Float32.
    /// Libraries that may be loaded, by absolute path.
    std::vector<std::string> libraries{};
};

/// Tries out an operator of a file, with its optional inputs and, if it has any, without.
/// @return NotSupported if it has neither a body nor a library that may be loaded; InvalidInput that says
/// what does not fit; errors of the whole operator
Result<std::vector<CheckedOperator>> checkDefinition(
    const std::shared_ptr<const OperatorDefinition> &definition, const DefinitionTrialOptions &options = {});

} // namespace planloom
