#pragma once

#include "sessions/mend_history.h"
#include "sessions/session_store.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace SQLite {
class Database;
}

namespace planloom {

/// What could be read of a session.
struct ReadSession {
    SessionContents contents{};
    std::vector<StepId> storedIds{}; ///< As in `MendedHistory`.
    std::vector<std::string> losses{}; ///< A sentence each; empty if all of it was read.
};

/// Reads all that can be read, part by part: what one part cannot give does not take the others along. Knows
/// the tables of version 1 and those since version 2, whatever version the file claims. Reads one state,
/// whatever others write meanwhile.
ReadSession readSession(SQLite::Database &database, const std::filesystem::path &path);

/// The few things a recent list shows. @throw SQLite::Exception
SessionSummary readSessionSummary(SQLite::Database &database, const std::filesystem::path &path);

/// The state after step `id`, from the nearest state that is stored whole. @return InvalidInput if it does
/// not fit together
/// @throw SQLite::Exception
Result<DesignState> storedState(SQLite::Database &database, StepId id);

/// What guards a step and a whole state against damage.
std::int64_t checksumOf(const HistoryStep &step);
std::int64_t checksumOf(const DesignState &state);

/// Lines as a session stores them, each with its line end; and back.
std::string textOfLines(const std::vector<std::string> &lines);
std::vector<std::string> linesOfText(std::string_view text);

} // namespace planloom
