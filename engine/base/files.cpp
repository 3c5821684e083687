#include "engine/base/files.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

namespace planloom {

namespace {

Error tooLarge(const std::filesystem::path &path, const ReadOptions &options, const std::string &found)
{
    return {ErrorCode::ResourceLimit,
        "a " + (options.what.empty() ? "file" : options.what) + " may have "
            + std::to_string(options.mostBytes) + " bytes at most, this one has " + found,
        {}, path.string()};
}

} // namespace

Result<std::string> readFile(const std::filesystem::path &path, const ReadOptions &options)
{
    const std::string where = path.string();
    const auto sentence = [&](const char *unnamed, const std::string &before, const char *behind) {
        return options.what.empty() ? std::string(unnamed)
                                    : before + options.what + " \"" + where + "\"" + behind;
    };
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::NotFound, sentence("there is no such file", "there is no ", ""),
            "check the path", where};
    if (std::filesystem::is_directory(status))
        return Error{ErrorCode::InvalidInput,
            sentence("expected a file, found a folder", "the ", " is a folder"), {}, where};
    const bool regular = std::filesystem::is_regular_file(status);
    if (!regular && !options.pipes)
        return Error{ErrorCode::InvalidInput,
            sentence("expected a regular file", "the ", " is not a regular file"), {}, where};
    const Error unreadable{
        ErrorCode::Io, sentence("cannot be read", "the ", " cannot be read"), "check its permissions", where};

    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        return unreadable;
    std::string bytes;
    if (regular) {
        const auto size = std::filesystem::file_size(path, failure);
        if (failure)
            return unreadable;
        if (size > options.mostBytes)
            return tooLarge(path, options, std::to_string(size));
        bytes.resize(static_cast<std::size_t>(size));
        stream.read(bytes.data(), static_cast<std::streamsize>(size));
        if (stream.gcount() == static_cast<std::streamsize>(size) && !stream.bad() && size > 0)
            return bytes;
        // Files of /proc say that they are empty, and a file may shrink while it is read.
        if (stream.bad())
            return unreadable;
        bytes.resize(static_cast<std::size_t>(stream.gcount()));
        stream.clear();
    }
    std::array<char, 1 << 16> piece;
    while (stream.read(piece.data(), piece.size()), stream.gcount() > 0) {
        bytes.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
        if (bytes.size() > options.mostBytes)
            return tooLarge(path, options, "more");
    }
    if (stream.bad())
        return unreadable;
    return bytes;
}

Result<void> writeFile(const std::filesystem::path &path, std::string_view bytes)
{
    return writeFileBy(path, [bytes](std::ostream &stream) {
        return static_cast<bool>(stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size())));
    });
}

Result<void> writeFileBy(const std::filesystem::path &path, const std::function<bool(std::ostream &)> &write)
{
    namespace fs = std::filesystem;
    std::error_code failure;
    const auto status = fs::status(path, failure);
    if (fs::is_directory(status))
        return Error{ErrorCode::InvalidInput, "expected a file to write, found a folder", "name a file in it",
            path.string()};
    if (const fs::path folder = path.parent_path(); !folder.empty() && !fs::is_directory(folder, failure))
        return Error{ErrorCode::NotFound, "there is no folder \"" + folder.string() + "\"",
            "make it, or name another one", path.string()};
    const bool isFile = !fs::exists(status) || fs::is_regular_file(status);
    fs::path target = path;
    if (isFile && fs::is_symlink(fs::symlink_status(path, failure)))
        target = fs::weakly_canonical(path, failure);
    const fs::path fresh = isFile ? fs::path(target.string() + ".part") : target;
    errno = 0;
    std::ofstream stream(fresh, std::ios::binary | std::ios::trunc);
    const bool isWritten = stream && write(stream);
    stream.close();
    if (isWritten && stream && isFile) {
        if (fs::exists(status))
            fs::permissions(
                fresh, status.permissions(), failure); // a file system without them has none to keep
        fs::rename(fresh, target, failure);
        if (failure)
            errno = failure.value();
    }
    if (isWritten && stream && !failure)
        return {};
    const std::string reason = errno == 0 ? "" : ": " + std::generic_category().message(errno);
    if (isFile)
        fs::remove(fresh, failure);
    return Error{ErrorCode::Io, "cannot be written" + reason,
        "check that its folder can be written to and has room", path.string()};
}

} // namespace planloom
