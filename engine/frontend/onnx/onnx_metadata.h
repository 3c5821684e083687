#pragma once

#include "engine/frontend/onnx/onnx_model.h"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// What exporters write beside a graph (`metadata_props`, IR version 10 on), as texts. It helps, but a file
// need not have it, and whoever wrote the file chose it: what is not well formed counts as missing.

constexpr std::string_view kNameScopesKey = "pkg.torch.onnx.name_scopes"; ///< Of nodes.
constexpr std::string_view kSpecKindKey = "pkg.torch.export.graph_signature.InputSpec.kind"; ///< Of values.
constexpr std::string_view kFoldedFromKey = "pkg.onnxscript.optimizer.folded_from"; ///< Of values.
constexpr std::string_view kSignatureKey = "pkg.torch.export.ExportedProgram.graph_signature"; ///< Of graphs.

constexpr std::size_t kMostNameBytes = 1024; ///< Of one name in metadata.
constexpr std::size_t kMostListed = 4096; ///< Names in one list.

/// True if `name` can stand in a line for people: UTF-8 without control characters, not empty, at most
/// `kMostNameBytes` long.
bool isPlainName(std::string_view name);

/// The texts of a list as Python writes it: "['', 'model', "it's"]". Nothing if `text` is no such list, or
/// has more than `kMostListed` elements. O(length).
std::optional<std::vector<std::string>> parseTextList(std::string_view text);

/// "PARAMETER", "BUFFER", "CONSTANT_TENSOR" and "USER_INPUT", with or without "InputKind." before them.
std::optional<OnnxSpecKind> specKindNamed(std::string_view name);

/// The modules around a node (`OnnxNode::modules`) from its name scopes: without the model itself, which
/// stands first with an empty name, and the operator, which stands last. Nothing for a list that does not
/// look so, or is deeper than 64 modules.
std::optional<std::vector<std::string>> modulesOf(std::string_view nameScopes);

/// `OnnxGraph::signature` from the text of a graph's signature, which has a line for each input: "p_w:
/// PARAMETER target='model.w'". Other lines are passed by. O(length).
std::map<std::string, OnnxSpecKind, std::less<>> signatureOf(std::string_view text);

/// Gives the nodes of a graph whose metadata say so the names that they would have had from exporters that
/// write the path of modules into names: "/model/layers.0/mlp/node_linear_3". A node without metadata
/// (an optimizer of graphs made it) lies where those that make its inputs and read its outputs all lie.
/// Does nothing in graphs without such metadata. O(nodes x depth).
void nameByModules(OnnxGraph &graph);

} // namespace planloom
