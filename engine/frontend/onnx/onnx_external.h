#pragma once

#include "engine/base/result.h"
#include "engine/graph/tensor.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace planloom {

/// Resolves where weights lie beside a model file, and refuses every place outside the model's folder.
/// Looks each file up once, however many tensors lie in it.
class ExternalFiles
{
public:
    /// @param folder  the model's; empty means that no file is ever present
    explicit ExternalFiles(const std::filesystem::path &folder);

    /// @param location  relative path as the model says it, `offset` and `length` in bytes, as text; `length`
    /// may
    ///   be empty
    /// @return InvalidInput for absolute paths, "..", links that lead out of the folder, things that are no
    /// files,
    ///   numbers that do not parse, and lengths other than the tensor's
    Result<ExternalData> locate(const std::string &tensor, const TensorType &type,
        const std::string &location, const std::string &offset, const std::string &length);

private:
    struct File {
        std::string path{};
        std::int64_t size = -1; ///< -1 if missing.
    };
    Result<File> find(const std::string &tensor, const std::string &location);

    std::filesystem::path m_folder{};
    std::map<std::string, File> m_files{};
};

} // namespace planloom
