#pragma once

#include "engine/frontend/onnx/onnx_model.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace planloom {

/// True for names as modules' parameters have them: "h.0.attn.weight".
bool isDotted(std::string_view name);
/// True for names as the parameters of the outermost module have them: "pos_embedding", not those that tools
/// number ("val_12", "onnx::MatMul_7") or make of paths.
bool isAttributeName(std::string_view name);

/// Who reads which value of a graph of the file. Keeps references to the graph.
class OnnxUses
{
public:
    explicit OnnxUses(const OnnxGraph &graph);

    /// One reading of a value; `node` is null where an inner graph reads it.
    struct Use {
        const OnnxNode *node = nullptr;
        std::size_t slot = 0;
    };
    const std::vector<Use> &usesOf(std::string_view value) const;
    bool isOutput(std::string_view value) const { return m_outputs.count(value) != 0; }
    bool isUsed(std::string_view value) const { return isOutput(value) || !usesOf(value).empty(); }

    /// True if the value is read, and only where weights stand: weight or bias of Conv, Gemm, normalisations
    /// and recurrent operators, the table of a Gather, the second factor of a MatMul; directly or through
    /// Transpose, Identity, Cast, Reshape, Squeeze and Unsqueeze. With `rank` 1 also as a term or factor of
    /// Add and Mul.
    bool isInWeightPosition(std::string_view value, std::int64_t rank = -1, int depth = 0) const;

private:
    std::unordered_map<std::string_view, std::vector<Use>> m_uses{};
    std::unordered_set<std::string_view> m_outputs{};
};

/// All names that nodes of `graph` and of graphs inside it read.
void collectNamesRead(const OnnxGraph &graph, std::unordered_set<std::string_view> &names);

/// Tells parameters from what else a file stores, by the rules of import_onnx.h. Keeps references to the
/// graph and to its uses.
class ParameterRules
{
public:
    /// @param byHand  what a person decided, by name in the file or as `nameOf`
    ParameterRules(
        const OnnxGraph &graph, const OnnxUses &uses, const std::map<std::string, StoredAs> &byHand);

    /// What a stored tensor is, and why. O(readers of it), and its elements where their being equal matters.
    Classification classify(const StoredTensor &tensor) const;

    /// What the value of a Constant or ConstantOfShape node is, where it is stored as initializers are;
    /// nothing for what a node merely computes with.
    std::optional<Classification> classifyNode(const StoredTensor &tensor) const;

    /// What a person decided of a tensor, by its name in the file or as `nameOf`.
    std::optional<StoredAs> chosenFor(const StoredTensor &tensor) const;

    /// The name a stored tensor has in the module that was exported: that of the parameters it was folded
    /// from ("h.0.q.weight", "h.0.q.weight+h.0.k.weight"), else its own.
    std::string nameOf(const StoredTensor &tensor) const;

private:
    bool isScaleOfQuantizer(const StoredTensor &tensor) const;
    bool isOwnName(const StoredTensor &tensor) const;
    std::optional<Classification> byMetadata(const StoredTensor &tensor) const;
    std::optional<Classification> byUseAsNumber(const StoredTensor &tensor) const;
    Classification byPlainName(const StoredTensor &tensor) const;
    Classification byPosition(const StoredTensor &tensor) const;

    const OnnxGraph &m_graph;
    const OnnxUses &m_uses;
    const std::map<std::string, StoredAs> &m_byHand;
    bool m_hasDotted = false; ///< Floating initializers with dotted names.
    bool m_isInNodes = false; ///< The file keeps its weights in nodes: it has no initializer that may be one.
    std::unordered_set<std::string_view> m_dynamicScales{}; ///< Computed by DynamicQuantizeLinear.
};

/// The inputs that are parameters, with what they are: those that a person calls so, and in a file without
/// parameters those that import_onnx.h tells.
/// @param asInputs  inputs that are none, whatever else is known of them
std::unordered_map<std::string, Classification> parameterInputs(const OnnxGraph &graph, const OnnxUses &uses,
    const ParameterRules &rules, const std::set<std::string> &asInputs);

constexpr TensorRole roleOf(StoredAs as)
{
    return as == StoredAs::Parameter ? TensorRole::Weight : TensorRole::Buffer;
}

} // namespace planloom
