#pragma once

#include "engine/base/result.h"
#include "sessions/history.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace SQLite {
class Database;
class Exception;
class Statement;
}

namespace planloom {

// What all readers and writers of session files share. For `sessions/` alone.

/// The longest single thing a session holds: a model's file, a plan.
constexpr std::size_t kMostContentBytes = std::size_t{1} << 30;

/// The file's name in quotation marks, for sentences.
std::string quotedName(const std::filesystem::path &path);

Error damagedSession(const std::filesystem::path &path, const std::string &what);

/// SQLite's failure as an error: "`doing` "NAME" failed: ...", with advice.
Error sessionFailure(
    const std::filesystem::path &path, const SQLite::Exception &failure, const std::string &doing);

/// Reads the first 100 bytes. @return NotFound; InvalidInput if it is no session; Io
/// Opens and closes the file, which lets go of the locks that this process holds on it through SQLite: not
/// for files it may have open (sqlite.org/howtocorrupt.html, section 2.2).
Result<void> checkSessionHeader(const std::filesystem::path &path);

/// The same, of a file that was opened. @return InvalidInput if it is no session
Result<void> checkSessionMark(SQLite::Database &database, const std::filesystem::path &path);

/// Settings of every connection: nothing the file says is trusted.
void hardenConnection(SQLite::Database &database);

/// "table step CREATE TABLE ...", one entry for each thing in the schema.
std::set<std::string> schemaOf(SQLite::Database &database);

/// What the schema of `version` must be. A file with another one (triggers, views, columns that compute)
/// could make reading it do anything.
Result<std::set<std::string>> schemaAt(int version);

/// True if `table` is an ordinary table of the database (not a view, not a virtual one).
bool hasTable(SQLite::Database &database, const std::string &table);

std::map<std::string, std::string> readMap(SQLite::Database &database, const std::string &table);
/// Replaces all of `table`, which has the columns name and value.
/// Single values of the table "meta".
constexpr const char *kClusterJson = "cluster_json"; ///< `SessionContents::clusterJson`
constexpr const char *kRootFigures =
    "root_figures"; ///< Figures of the first state, which has no row in "step".
constexpr const char *kThumbnailStep = "thumbnail_step"; ///< Whose plan the thumbnail shows.
std::optional<std::string> metaAt(SQLite::Database &database, const std::string &name);
void writeMeta(SQLite::Database &database, const std::string &name, const std::string &value);
void removeMeta(SQLite::Database &database, const std::string &name);

/// Figures as one text, exact both ways. @return nothing if it is none
std::string packedFigures(const StepFigures &figures);
std::optional<StepFigures> unpackedFigures(const std::string &text);

void writeMap(
    SQLite::Database &database, const std::string &table, const std::map<std::string, std::string> &values);

void bindBlob(SQLite::Statement &statement, int index, std::string_view bytes);
/// Binds `text` at `index`, as it is or deflated (as a blob), and its length at `index + 1`.
Result<void> bindPacked(SQLite::Statement &statement, int index, const std::string &text);
/// Inverse: the text of `column`, whose length is in `column + 1`. @return InvalidInput, ResourceLimit
Result<std::string> unpacked(SQLite::Statement &query, int column);

/// `path` of a user's file as a session at `session` keeps it: "./..." from the session's folder if it lies
/// there or below, as it is otherwise (zoo names too).
std::string storedSource(const std::string &source, const std::filesystem::path &session);
/// Inverse, for the place where the session is now.
std::string foundSource(const std::string &stored, const std::filesystem::path &session);

/// Moves a finished file to its name, which must be free. @return InvalidInput if it is not; Io
Result<void> publishFile(const std::filesystem::path &from, const std::filesystem::path &to);

} // namespace planloom
