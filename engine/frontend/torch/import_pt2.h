#pragma once

#include "engine/base/result.h"
#include "engine/frontend/import_options.h"
#include "engine/graph/graph.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Reads a program that PyTorch's `torch.export.save` wrote (.pt2) as a forward graph, of the same operators
/// as the same model's ONNX file becomes: what `importOnnxFile` says of types, folding, fusing and checking
/// holds here as well.
///
/// Programs are read as PyTorch exports them (the training IR, with operators such as linear and batch_norm)
/// and after `run_decompositions` (core ATen). What is written in place into a tensor, or into a slice of
/// one, counts for all that read it afterwards.
///
/// Names. Weights and buffers have their names in the module ("transformer.h.0.attn.weight"), inputs those of
/// the program, operators those of the program behind the path of their module.
///
/// What is a weight. The program's signature says it: parameters that want a gradient (`requires_grad`).
/// Parameters that want none, buffers and constants are Buffers. Parameters that share memory are one weight.
///
/// Dimensions. Each symbol of the inputs' shapes is an open dimension and needs a size within its range
/// (`ImportOptions::dimensions`).
///
/// The loss is what `ImportOptions::lossOutput` names; else the output that the signature calls the loss, one
/// called "loss", or the only output that is a floating scalar.
///
/// Values stay in the file and are found again by `loadTensorData`; small buffers and constants are read.
/// Archives of PyTorch 2.6 and 2.7 keep values in pickles, which are programs and are not run: their models
/// can be planned, not run with their own weights.
///
/// @return as `importOnnxFile`; NotSupported naming the operator, the reason and a way out
/// O(nodes log nodes). Thread-safe: reads nothing but its arguments and the file.
Result<Graph> importPt2File(const std::filesystem::path &path, const ImportOptions &options = {});

/// The same from memory; all values are read.
/// @param path  of the file they came from: errors give its name as their place, and values that
///   `keptPt2Content` left out are found in it, where it is still there
Result<Graph> importPt2Bytes(std::string_view bytes, const ImportOptions &options = {},
    const std::filesystem::path &path = "model.pt2");

/// The sizes that the program's inputs leave open, with their ranges; those that `options.dimensions` does
/// not give are 0. @return as `importPt2File`, of what is wrong with the file as such or with the sizes
Result<std::vector<InputDimension>> pt2FileDimensions(
    const std::filesystem::path &path, const ImportOptions &options = {});
/// The same from memory; parameters as of `importPt2Bytes`.
Result<std::vector<InputDimension>> pt2Dimensions(std::string_view bytes, const ImportOptions &options = {},
    const std::filesystem::path &path = "model.pt2");

/// What to keep of a file so that it opens again: all of it, or all but the values of its weights if that is
/// more than 32 MiB. @return as `importPt2File`; ResourceLimit beyond `most` bytes
Result<std::string> keptPt2Content(const std::filesystem::path &path, std::uint64_t most);

} // namespace planloom
