#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_graph_importer.h"
#include "engine/frontend/onnx/parameters/onnx_parameters.h"
#include "engine/frontend/open_dimensions.h"

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// The sizes that a graph's inputs leave open.
OpenDimensions openDimensionsOf(const OnnxGraph &graph);

/// Makes tensors of what a model's graph begins with: its inputs, and the tensors that it stores.
class OnnxInputs
{
public:
    /// @param graph  loses the values of its initializers, which tensors take
    /// @param sizes  of open dimensions, by name
    /// @param place  of errors: the file
    OnnxInputs(OnnxGraph &graph, const ParameterRules &rules, std::map<std::string, std::int64_t> sizes,
        GraphWriter &writer, OnnxGraphImporter &nodes, std::string place)
        : m_graph(graph)
        , m_rules(rules)
        , m_sizes(std::move(sizes))
        , m_writer(writer)
        , m_nodes(nodes)
        , m_place(std::move(place))
    {
    }

    /// @return InvalidInput, NotSupported for inputs that cannot be had; NotFound where a person decided
    /// about a tensor that is not there
    Result<void> add();
    /// What people should know of the values.
    std::vector<std::string> notes() const;

private:
    Error error(ErrorCode code, std::string message, std::string advice) const
    {
        return Error{code, std::move(message), std::move(advice), m_place};
    }
    Result<TensorType> typeOfInput(const OnnxValue &input);
    Result<void> addInputs();
    Result<void> addInput(
        const OnnxValue &input, const std::unordered_map<std::string, Classification> &parameters);
    Result<void> addInitializers();
    Result<void> addInitializer(StoredTensor &tensor, const std::string &own);
    Result<void> checkStoredAs(const std::vector<std::string> &original) const;
    void noteStored(const StoredTensor &tensor);

    OnnxGraph &m_graph;
    const ParameterRules &m_rules;
    std::map<std::string, std::int64_t> m_sizes;
    GraphWriter &m_writer;
    OnnxGraphImporter &m_nodes;
    std::string m_place;
    std::vector<std::string> m_nonFinite{};
    std::map<std::string, std::int64_t> m_missing{}; ///< Tensors by missing file.
};

} // namespace planloom
