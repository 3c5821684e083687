#pragma once

#include "engine/frontend/onnx_model.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace planloom {

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

/// Whether a stored tensor is trained: rules 1 and 2 of import_onnx.h.
TensorRole roleOfStored(const OnnxTensor &tensor, const OnnxUses &uses);

/// The inputs that are parameters in a file without parameters, with their roles: rule 3 of import_onnx.h.
std::unordered_map<std::string, TensorRole> parameterInputs(const OnnxGraph &graph, const OnnxUses &uses);

} // namespace planloom
