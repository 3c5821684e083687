#pragma once

#include "engine/base/result.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace planloom {

/// What the modules of a model are in PyTorch: "my_package.SelfAttention", by path ("h.3.attn"; the model
/// itself is "").
using ModuleClasses = std::map<std::string, std::string>;

/// Those that a program of torch.export.save says; empty for other files, which say none.
/// @param content  of the file, where it is at hand; empty reads `path`
/// @return what is wrong with the file
Result<ModuleClasses> moduleClassesOf(const std::filesystem::path &path, std::string_view content = {});

} // namespace planloom
