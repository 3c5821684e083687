#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/graph/operator_files/operator_definition.h"
#include "engine/kernels/planloom_operator.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// Shared libraries of operator files, loaded. Loading one runs its code, so nobody makes this but a run that
/// was allowed to (`RunOptions::libraries`). Libraries stay loaded until the last copy is gone.
class OperatorLibraries
{
public:
    /// Loads what the operators of `graph` name, as far as `allowed` has it.
    /// @param allowed  absolute paths, as operator definitions have them
    /// @return NotSupported for an operator that has neither an allowed library nor a body; NotFound for a
    /// library or function that is not there; InvalidInput for one of another version
    static Result<std::shared_ptr<const OperatorLibraries>> load(
        const Graph &graph, const std::vector<std::string> &allowed);

    /// Null if it was not loaded.
    planloom_operator_function find(const DefinedLibrary &library) const;

private:
    std::vector<std::shared_ptr<void>> m_handles{};
    std::map<std::pair<std::string, std::string>, planloom_operator_function> m_functions{};
};

/// The definition that computes `op`: its own, or the derivative's; null where a body is run backwards, or
/// where the operator is of no file.
const OperatorDefinition *computedBy(const Operator &op);

/// By absolute path, the libraries that operators of `graph` name, each once.
std::vector<std::string> librariesOf(const Graph &graph);

} // namespace planloom
