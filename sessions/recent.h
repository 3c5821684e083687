#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace planloom {

/// A session that was open lately. What its plan is like, its own file says (`readSummary`): the list never
/// knows better than what was saved.
struct RecentSession {
    std::filesystem::path path{}; ///< Absolute.
    std::string model{};
    std::int64_t opened = 0; ///< Milliseconds since 1970, UTC.
    bool missing = false; ///< There is no such file now. Not stored.
    friend bool operator==(const RecentSession &, const RecentSession &) = default;
};

/// How many sessions the list holds.
constexpr std::size_t kMostRecentSessions = 20;

/// The recent list of a folder ("recent.json"), newest first. What can't be read is left out: a list is no
/// work of anybody's, so it never fails. O(files).
std::vector<RecentSession> loadRecent(const std::filesystem::path &folder);

/// Puts `session` at the head of the list (in the place of an older entry with its path) and cuts the list.
/// Makes the folder if needed; removes the pictures that older versions kept there. The list is replaced as a
/// whole: whoever reads it meanwhile gets the old or the new one.
/// @return Io
Result<void> addRecent(const std::filesystem::path &folder, RecentSession session);

/// Takes a session off the list. @return Io
Result<void> removeRecent(const std::filesystem::path &folder, const std::filesystem::path &session);

} // namespace planloom
