#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/import_onnx.h"
#include "engine/graph/graph.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Reads a model file of any format that Planloom opens, by its content: an ONNX model (`importOnnxFile`) or
/// a program of torch.export.save (`importPt2File`).
/// @return as they
Result<Graph> importModelFile(const std::filesystem::path &path, const ImportOptions &options = {});

/// The same from memory.
/// @param path  where the bytes came from: weights may lie beside it
Result<Graph> importModelBytes(
    std::string_view bytes, const std::filesystem::path &path, const ImportOptions &options = {});

/// The sizes that a model file's inputs leave open; those that `options.dimensions` does not give are 0.
/// Cheaper than an import: for those who have to be asked. @return as `onnxFileDimensions`,
/// `pt2FileDimensions`
Result<std::vector<InputDimension>> modelFileDimensions(
    const std::filesystem::path &path, const ImportOptions &options = {});
Result<std::vector<InputDimension>> modelDimensions(
    std::string_view bytes, const std::filesystem::path &path, const ImportOptions &options = {});

/// What a session keeps of a model file, for `importModelBytes` to open again: the file, but for the values
/// of a large archive's weights, which stay where they are. @return as `readFile`; ResourceLimit beyond
/// `most` bytes
Result<std::string> keptModelContent(const std::filesystem::path &path, std::uint64_t most);

} // namespace planloom
