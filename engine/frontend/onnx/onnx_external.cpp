#include "engine/frontend/onnx/onnx_external.h"

#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

namespace planloom {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 62;

Error outside(const std::string &tensor, const std::string &location, const std::string &why)
{
    return Error{ErrorCode::InvalidInput,
        "the weights of '" + tensor + "' are said to lie in '" + location + "', which " + why,
        "external data must lie in the model's own folder or below it", "tensor:" + tensor};
}

std::optional<std::int64_t> parseNumber(const std::string &text)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

} // namespace

ExternalFiles::ExternalFiles(const std::filesystem::path &folder)
{
    if (folder.empty())
        return;
    std::error_code error;
    m_folder = std::filesystem::canonical(folder, error);
    if (error)
        m_folder.clear();
}

Result<ExternalFiles::File> ExternalFiles::find(const std::string &tensor, const std::string &location)
{
    if (const auto known = m_files.find(location); known != m_files.end())
        return known->second;
    if (location.empty() || location.find('\0') != std::string::npos)
        return outside(tensor, location.substr(0, location.find('\0')), "is no file name");
    const std::filesystem::path relative(location);
    if (relative.is_absolute() || location.front() == '\\' || (location.size() > 1 && location[1] == ':'))
        return outside(tensor, location, "is an absolute path");
    for (const auto &part : relative) {
        if (part == "..")
            return outside(tensor, location, "leads out of the model's folder by '..'");
    }
    if (location.find("..\\") != std::string::npos)
        return outside(tensor, location, "leads out of the model's folder by '..'");
    File file;
    if (m_folder.empty()) {
        file.path = location;
        return m_files.emplace(location, file).first->second;
    }
    std::error_code error;
    const auto whole = std::filesystem::weakly_canonical(m_folder / relative, error);
    if (error)
        return outside(tensor, location, "cannot be resolved: " + error.message());
    const auto [inFolder, rest] = std::mismatch(m_folder.begin(), m_folder.end(), whole.begin(), whole.end());
    if (inFolder != m_folder.end() || rest == whole.end())
        return outside(tensor, location, "leads out of the model's folder through a link");
    file.path = whole.string();
    const auto status = std::filesystem::status(whole, error);
    if (std::filesystem::exists(status)) {
        if (!std::filesystem::is_regular_file(status))
            return outside(tensor, location, "is not a regular file");
        const auto size = std::filesystem::file_size(whole, error);
        if (!error)
            file.size = static_cast<std::int64_t>(std::min<std::uintmax_t>(size, kLargest));
    } else if (std::filesystem::is_symlink(std::filesystem::symlink_status(m_folder / relative, error))) {
        return outside(tensor, location, "is a link to nothing");
    }
    return m_files.emplace(location, file).first->second;
}

Result<ExternalData> ExternalFiles::locate(const std::string &tensor, const TensorType &type,
    const std::string &location, const std::string &offset, const std::string &length)
{
    const auto bytes = checkedByteCount(type);
    const auto begin = offset.empty() ? std::optional<std::int64_t>(0) : parseNumber(offset);
    const auto count = length.empty() ? bytes : parseNumber(length);
    if (!bytes || !begin || !count || *begin < 0 || *count < 0 || *begin > kLargest || *count > kLargest)
        return Error{ErrorCode::InvalidInput,
            "the weights of '" + tensor + "' have offset '" + offset + "' and length '" + length
                + "', where numbers of bytes from 0 to 2^62 were expected",
            "export the model anew", "tensor:" + tensor};
    if (*count != *bytes)
        return Error{ErrorCode::InvalidInput,
            "the weights of '" + tensor + "' should take " + std::to_string(*bytes) + " bytes ("
                + nameOf(type.dataType) + toString(type.shape) + "), but the model says "
                + std::to_string(*count),
            "export the model anew", "tensor:" + tensor};
    TRY(const File file, find(tensor, location));
    return ExternalData{file.path, *begin, *count, file.size >= 0 && *begin + *count <= file.size};
}

} // namespace planloom
