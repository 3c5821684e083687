#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace planloom {

/// The model of a session. Holds the file itself, so that a session opens where the model is not.
struct SessionModel {
    /// Path of the model's file, or a zoo name ("zoo:gpt?layers=12"). A file beside the session or below its
    /// folder is found again when both are moved together.
    std::string source{};
    std::string content{}; ///< Bytes of the model's file (its graph; weights beside it stay there); empty for
                           ///< the zoo.
    std::string sha256{}; ///< Of `content`, in hexadecimal; filled in by the session.
    std::map<std::string, std::string> options{}; ///< Import options by name: "loss", "dim.batch" ...
    friend bool operator==(const SessionModel &, const SessionModel &) = default;
};

/// True if the file at `path` begins as an SQLite database does: it is a session rather than a model. Reads
/// 16 bytes.
bool looksLikeSession(const std::filesystem::path &path);

} // namespace planloom
