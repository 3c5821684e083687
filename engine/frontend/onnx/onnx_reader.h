#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_model.h"

#include <filesystem>
#include <string_view>

namespace planloom {

/// Decodes an ONNX file. Values of tensors inside the file are copied out, those beside it are only looked
/// up.
///
/// Memory: at most a small multiple of `bytes`: messages are counted before they are decoded, and a file that
/// consists of more of them than a real one of its size is refused.
/// @param folder   where external data may lie; if empty, external data is taken as missing
/// @param name     of the file, for error places: "model.onnx"
/// @return InvalidInput if it is no ONNX model or contradicts itself, NotSupported for element types and
/// opsets
///   Planloom does not know, ResourceLimit beyond 2 GiB (protobuf's own limit)
Result<OnnxModel> readOnnx(
    std::string_view bytes, const std::filesystem::path &folder, std::string_view name);

} // namespace planloom
