#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <limits>
#include <string>
#include <string_view>

namespace planloom {

/// What of a file is read, and how a failure calls it.
struct ReadOptions {
    std::string
        what{}; ///< "cluster file", for sentences that name the file; empty leaves naming it to `where`.
    std::uintmax_t mostBytes = std::numeric_limits<std::uintmax_t>::max();
    bool pipes =
        false; ///< Also read what is no regular file, such as a shell's `<(...)`; may wait for its writer.
};

/// All bytes of a file. `where` of an error is the path. Waits for the disk.
/// @return NotFound; InvalidInput for a folder, and for what is no regular file unless `pipes`; ResourceLimit
/// beyond
///   `mostBytes`; Io
Result<std::string> readFile(const std::filesystem::path &path, const ReadOptions &options = {});

/// Replaces the file at `path` by `bytes` in one step: a full disk, or a program that ends halfway, leaves an
/// older file as it was, and readers see the one or the other. A link stays, and what it leads to is
/// replaced. What is no file, as /dev/stdout, is written to. The folder must exist. Waits for the disk.
/// @return NotFound without the folder; InvalidInput for a folder; Io
Result<void> writeFile(const std::filesystem::path &path, std::string_view bytes);

/// The same of what `write` writes to a stream; it returns false where it fails.
Result<void> writeFileBy(const std::filesystem::path &path, const std::function<bool(std::ostream &)> &write);

} // namespace planloom
