#pragma once

#include "engine/frontend/writer/stored_tensor.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace planloom {

// An ONNX file as plain values: what `onnx_reader` makes of the protobuf messages and the importer works on.
// Names and meanings are those of ONNX's own IR specification (onnx/docs/IR.md).

struct OnnxGraph;

/// A value an attribute may have; `Unreadable` says why a value of another kind could not be taken.
struct OnnxUnreadable {
    std::string reason{};
};
/// Inside a function: the value of the calling node's attribute of this name.
struct OnnxReference {
    std::string attribute{};
};
using OnnxAttribute = std::variant<OnnxUnreadable, std::int64_t, float, std::string,
    std::vector<std::int64_t>, std::vector<float>, std::vector<std::string>, StoredTensor,
    std::shared_ptr<const OnnxGraph>, OnnxReference>;

struct OnnxNode {
    std::string name{}; ///< As in the file; may be empty.
    std::string type{};
    std::string domain{}; ///< Empty for ai.onnx.
    std::vector<std::string> inputs{}; ///< An empty name is an absent optional input.
    std::vector<std::string> outputs{};
    std::map<std::string, OnnxAttribute, std::less<>> attributes{};
    /// Where the exporter met it, if it says so: dotted names of the modules around it, the outermost first,
    /// without the model itself ("model", "model.layers.0", "model.layers.0.mlp").
    std::optional<std::vector<std::string>> modules{};
};

/// One dimension of a declared shape: a size, a symbol, or (neither) unknown.
struct OnnxDimension {
    std::optional<std::int64_t> size{};
    std::string symbol{};
};

/// A declared value. `dataType` is missing if Planloom has no such type; `reason` then says which it was.
struct OnnxValue {
    std::string name{};
    std::optional<DataType> dataType{};
    std::optional<std::vector<OnnxDimension>> shape{};
    std::string reason{};
};

/// What a value is to the module that was exported: `InputSpec.kind` of torch.export's signature.
enum class OnnxSpecKind : std::uint8_t { Parameter, Buffer, ConstantTensor, UserInput };

/// What the exporter says of how a value came about.
struct OnnxProvenance {
    std::optional<OnnxSpecKind> kind{};
    std::vector<std::string> foldedFrom{}; ///< Values that it was computed from when the file was written.
    /// Parameters that are lost, because this is trained in their place: see `Classification::insteadOf`.
    std::vector<std::string> insteadOf{};
};

struct OnnxGraph {
    std::string name{};
    std::vector<OnnxNode> nodes{};
    std::vector<StoredTensor> initializers{};
    std::vector<OnnxValue> inputs{};
    std::vector<OnnxValue> outputs{};
    std::vector<OnnxValue> values{}; ///< value_info.
    std::map<std::string, OnnxProvenance, std::less<>> provenance{}; ///< By value, where there is any.
    /// Parameters, buffers and constants of the exported module by their dotted names, those that the file
    /// holds under other names or not at all included. Empty if the file does not say.
    std::map<std::string, OnnxSpecKind, std::less<>> signature{};
    std::int64_t unreadMetadata = 0; ///< Entries that were passed by, because they are not well formed.
};

/// An operator that the file defines by a graph of others.
struct OnnxFunction {
    std::string name{};
    std::string domain{};
    OnnxGraph graph{}; ///< Its inputs and outputs have names alone.
    /// Of its attributes: what nodes that call it without them mean.
    std::map<std::string, OnnxAttribute, std::less<>> defaults{};
};

struct OnnxModel {
    std::string producer{};
    std::int64_t irVersion = 0;
    std::int64_t opset = 0; ///< Of ai.onnx.
    OnnxGraph graph{};
    std::vector<OnnxFunction> functions{};
};

} // namespace planloom
