#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_model.h"
#include "engine/frontend/onnx/onnx_operators.h"
#include "engine/frontend/onnx/parameters/onnx_parameters.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// Imports the nodes of a model's graph, and of the functions and inner graphs that they call, in place.
class OnnxGraphImporter final : public OnnxScope
{
public:
    /// @param place  of errors: the file
    OnnxGraphImporter(const OnnxModel &model, GraphWriter &writer, std::string place);

    /// Begins with the model's own graph: its names can be bound from here on.
    /// @return InvalidInput if its nodes read one another in a circle
    Result<void> begin();
    /// Who uses which value of the model's graph. After `begin`.
    const OnnxUses &uses() const { return m_frame->facts->uses; }
    /// What values of its nodes are, where they are stored as initializers are.
    void setRules(const ParameterRules &rules) { m_rules = &rules; }
    /// Imports the nodes of the model's graph, whose inputs and initializers are bound.
    Result<void> importNodes() { return importNodes(m_model.graph); }

    /// Invalid if the value is no tensor, or nothing makes it.
    TensorId find(const std::string &value) const;

    bool isUsed(const std::string &value) const override { return m_frame->facts->uses.isUsed(value); }
    bool isOutput(const std::string &value) const override
    {
        return m_frame == &m_outermost && m_frame->facts->uses.isOutput(value);
    }
    std::optional<TensorType> declaredType(const std::string &value) const override;
    Result<void> bind(const std::string &value, TensorId tensor) override;
    std::int64_t opset() const override { return m_model.opset; }
    std::optional<Classification> storedByNode(const StoredTensor &value) const override
    {
        return m_frame == &m_outermost ? m_rules->classifyNode(value) : std::nullopt;
    }
    Result<std::vector<TensorId>> inlineGraph(
        const OnnxGraph &graph, const std::vector<TensorId> &inputs) override;
    const std::vector<TensorId> *findSequence(const std::string &value) const override;
    Result<void> bindSequence(const std::string &value, std::vector<TensorId> sequence) override;

private:
    /// What is known of one graph of the file, whichever time it is imported.
    struct Facts {
        explicit Facts(const OnnxGraph &graph);

        OnnxUses uses;
        std::unordered_map<std::string_view, const OnnxValue *> declared{};
        std::vector<std::size_t> order{};
    };
    /// Names of one graph while it is imported; inner graphs see those around them.
    struct Frame {
        const Facts *facts = nullptr;
        Frame *outer = nullptr;
        std::unordered_map<std::string, TensorId> values{};
        std::unordered_map<std::string, std::vector<TensorId>> sequences{};
    };

    Error error(ErrorCode code, std::string message, std::string advice) const
    {
        return Error{code, std::move(message), std::move(advice), m_place};
    }
    Result<const Facts *> factsOf(const OnnxGraph &graph);
    Result<void> importNodes(const OnnxGraph &graph);
    Result<bool> importCall(const OnnxNode &node, const std::vector<TensorId> &inputs);
    Result<std::vector<TensorId>> callFunction(
        const OnnxNode &node, const OnnxGraph &body, const std::vector<TensorId> &inputs);

    const OnnxModel &m_model;
    GraphWriter &m_writer;
    std::string m_place;
    Frame m_outermost{}; ///< Of the model's own graph.
    Frame *m_frame = &m_outermost;
    const ParameterRules *m_rules = nullptr;
    std::unordered_map<const OnnxGraph *, std::unique_ptr<Facts>> m_facts{};
    /// By domain and name.
    std::map<std::pair<std::string, std::string>, const OnnxFunction *> m_functions{};
    std::vector<std::unique_ptr<const OnnxGraph>> m_called{}; ///< Graphs of functions, one for each call.
    std::size_t m_calledNodes = 0;
    int m_functionDepth = 0;
    std::int64_t m_inlined = 0;
    std::int64_t m_nodes = 0;
};

} // namespace planloom
