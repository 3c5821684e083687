#pragma once

#include "engine/frontend/onnx/onnx_model.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// What the names of values tell of how the exporter computed another one from them (`folded_from`): they are
// those of operators of PyTorch, "embedding_12", "exp", or "val_7" inside of one.

/// The parameters among `names`: by the graph's signature, by what is said of the value, else (in a file
/// without a signature) by a dotted name.
std::vector<std::string> parametersAmong(const OnnxGraph &graph, const std::vector<std::string> &names);

/// Names of what modules keep beside their parameters: "layers.0.attn_mask", "h.1.running_mean".
bool isBufferName(std::string_view name);

/// "'a', 'b', 'c' and 4 more".
std::string namesInWords(const std::vector<std::string> &names);

/// Of a value that was computed when the file was written. Views point to the names it was made from.
struct FoldedSteps {
    std::vector<std::string> parameters{};
    std::vector<std::string> stored{}; ///< Buffers and constants of the module.
    std::set<std::string_view> stems{}; ///< Of other values, and of its own name where that tells something.
    std::string_view last{}; ///< The stem of its own name: "embedding" of "embedding_12".

    bool has(std::string_view stem) const { return stems.count(stem) != 0; }
    /// True if one of them chooses elements, or may write one more than once.
    bool mayRepeat() const;
};

/// @param name, provenance  of the value, which must outlast the result
FoldedSteps stepsOf(const OnnxGraph &graph, const std::string &name, const OnnxProvenance &provenance);

/// Operators of PyTorch that give the elements of their input back, in other places.
bool movesElements(std::string_view stem);
/// Those of them that choose elements by places.
bool selectsElements(std::string_view stem);

/// True if each element of the value is an element of its parameters, but for constants that were added.
bool isMovedOnly(const FoldedSteps &steps);

} // namespace planloom
