#pragma once

#include "engine/base/result.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Writes the operators that take the place of one: they lie in its scope, come from its nodes, and are
/// called "<its name>_<suffix>". Types that do not fit are a failure to be looked for at the end; what is
/// written then stands for nothing.
class ReplacementWriter
{
public:
    /// @param graph  gets the tensors that are made
    ReplacementWriter(Graph &graph, const Operator &op, UniqueNames &tensorNames, UniqueNames &operatorNames);

    /// An operator with as many outputs as its kind has.
    std::vector<TensorId> add(const std::string &suffix, OperatorKind kind, std::vector<TensorId> inputs,
        Attributes attributes = {}, std::vector<TensorType> declared = {});
    /// The same with one output.
    TensorId one(const std::string &suffix, OperatorKind kind, std::vector<TensorId> inputs,
        Attributes attributes = {}, std::vector<TensorType> declared = {});
    /// x itself where the shape is that already.
    TensorId reshape(const std::string &suffix, TensorId x, Shape shape);
    /// x itself for a single part.
    std::vector<TensorId> split(
        const std::string &suffix, TensorId x, std::size_t axis, std::vector<std::int64_t> sizes);
    TensorId concat(const std::string &suffix, std::vector<TensorId> parts, std::size_t axis);
    /// The other one where one of them is invalid.
    TensorId sum(const std::string &suffix, TensorId a, TensorId b);

    std::vector<Operator> &operators() { return m_operators; }
    /// The first failure, if there was any.
    const std::optional<Error> &failure() const { return m_failure; }
    void fail(Error error);

private:
    Graph &m_graph;
    std::string m_name;
    ScopeId m_scope{};
    std::vector<SourceNode> m_sources;
    UniqueNames &m_tensorNames;
    UniqueNames &m_operatorNames;
    std::vector<Operator> m_operators{};
    std::optional<Error> m_failure{};
};

} // namespace planloom
