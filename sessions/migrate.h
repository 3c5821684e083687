#pragma once

#include "engine/base/result.h"

#include <vector>

namespace SQLite {
class Database;
}

namespace planloom {

/// Takes a database from version `from` to `from + 1`.
struct Migration {
    int from = 0;
    const char *sql = ""; ///< One or more statements; must not begin or end transactions.
};

/// PRAGMA user_version. @return Io with SQLite's words
Result<int> schemaVersion(SQLite::Database &database);

/// Runs the migrations that `database` lacks, all of them in one transaction: it ends at the last version or
/// is as it was.
///
/// @param migrations  without gaps, starting from 0; the last one's `from + 1` is the newest version
/// @return how many ran; NotSupported if the file's version is newer than the newest, InvalidInput if a
/// migration
///   fails on what is in the file, Io if it can't be written
Result<int> migrate(SQLite::Database &database, const std::vector<Migration> &migrations);

} // namespace planloom
