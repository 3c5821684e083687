#pragma once

#include "engine/base/result.h"
#include "engine/frontend/torch/pt2_program.h"

#include <map>
#include <string>
#include <string_view>

namespace planloom {

/// Where a parameter, buffer or constant lies, as a `model_weights_config.json` says it.
struct Pt2Payload {
    std::string path{}; ///< Of the entry, below the folder that the list stands in.
    bool isPickled = false;
    bool isParameter = false;
    Pt2Meta meta{};
};

/// Decodes the JSON of an exported program (`models/model.json`, `serialized_exported_program.json`).
///
/// Safe for any bytes: depth is limited, memory a small multiple of `text`.
/// @param where  named in errors
/// @return InvalidInput for text that is no such JSON, with the place of the value that is wrong;
///   NotSupported for versions of the schema that Planloom does not know
Result<Pt2Program> readPt2Program(std::string_view text, const std::string &where);

/// Decodes a list of weights or constants, by name. @return as `readPt2Program`
Result<std::map<std::string, Pt2Payload>> readPt2Payloads(std::string_view text, const std::string &where);

} // namespace planloom
