#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_model.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What the importer does with one attribute of an operator.
struct OnnxAttributeRule {
    std::string name{};
    /// Values that are carried out, as text. Empty: every value that the operator itself does not refuse.
    std::vector<std::string> taken{};
    /// Values that the standard has besides, which are refused; all of them if `isRefused`.
    std::vector<std::string> refused{};
    bool isRefused = false;
    std::int64_t since = 0; ///< First operator set that has the attribute.
    std::int64_t until = INT64_MAX; ///< And the last.
};

/// The attributes of operator `type` ("Resize"; "com.microsoft.FusedMatMul" outside of ai.onnx) that the
/// importer knows of, by name. Those of operators that it does not import are not in it. Thread-safe.
const std::vector<OnnxAttributeRule> &onnxAttributeRules(std::string_view type);

/// Names the attribute that the importer would not carry out as ONNX defines it, and what it takes instead.
///
/// @return the sentence's rest behind "node 'x' (Resize): "; empty if all attributes are carried out
std::string attributeProblem(const OnnxNode &node, std::int64_t opset);

} // namespace planloom
