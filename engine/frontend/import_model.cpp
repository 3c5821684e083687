#include "engine/frontend/import_model.h"

#include "engine/base/files.h"
#include "engine/frontend/file_kind.h"
#include "engine/frontend/torch/import_pt2.h"

#include <algorithm>
#include <array>
#include <fstream>

namespace planloom {

namespace {

constexpr std::size_t kArchiveHead = 512; ///< Bytes in which an archive names its first entry.

/// A zip archive, as a file of torch.export.save is, and not one of arrays, which says what it is itself.
bool beginsAsProgram(std::string_view bytes)
{
    const std::string_view head = bytes.substr(0, kArchiveHead);
    return head.substr(0, 4) == "PK\x03\x04" && findFileKind(head) != FileKind::Npz;
}

bool fileBeginsAsProgram(const std::filesystem::path &path)
{
    std::array<char, kArchiveHead> head{};
    std::error_code failure;
    std::ifstream file;
    if (std::filesystem::is_regular_file(path, failure))
        file.open(path, std::ios::binary);
    file.read(head.data(), head.size());
    return beginsAsProgram(
        {head.data(), static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0))});
}

} // namespace

Result<Graph> importModelFile(const std::filesystem::path &path, const ImportOptions &options)
{
    return fileBeginsAsProgram(path) ? importPt2File(path, options) : importOnnxFile(path, options);
}

Result<Graph> importModelBytes(
    std::string_view bytes, const std::filesystem::path &path, const ImportOptions &options)
{
    if (beginsAsProgram(bytes))
        return importPt2Bytes(bytes, options, path);
    return importOnnxBytes(bytes, path.parent_path(), options, path.filename().string());
}

Result<std::vector<InputDimension>> modelFileDimensions(
    const std::filesystem::path &path, const ImportOptions &options)
{
    return fileBeginsAsProgram(path) ? pt2FileDimensions(path, options) : onnxFileDimensions(path, options);
}

Result<std::vector<InputDimension>> modelDimensions(
    std::string_view bytes, const std::filesystem::path &path, const ImportOptions &options)
{
    if (beginsAsProgram(bytes))
        return pt2Dimensions(bytes, options, path);
    return onnxDimensions(bytes, path.parent_path(), options, path.filename().string());
}

Result<std::string> keptModelContent(const std::filesystem::path &path, std::uint64_t most)
{
    if (fileBeginsAsProgram(path))
        return keptPt2Content(path, most);
    auto bytes = readFile(path, {.what = "model file", .mostBytes = most});
    if (!bytes && bytes.error().code == ErrorCode::ResourceLimit)
        bytes.error().advice = "keep its weights in a file of their own (external data)";
    return bytes;
}

} // namespace planloom
