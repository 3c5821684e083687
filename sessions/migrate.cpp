#include "sessions/migrate.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Transaction.h>
#include <sqlite3.h>

#include <string>

namespace planloom {

Result<int> schemaVersion(SQLite::Database &database)
{
    try {
        return database.execAndGet("PRAGMA user_version").getInt();
    } catch (const SQLite::Exception &failure) {
        return Error{ErrorCode::Io, std::string("the session's version cannot be read: ") + failure.what()};
    }
}

Result<int> migrate(SQLite::Database &database, const std::vector<Migration> &migrations)
{
    TRY(const int version, schemaVersion(database));
    const int newest = static_cast<int>(migrations.size());
    if (version > newest) {
        return Error{ErrorCode::NotSupported,
            "the session has version " + std::to_string(version) + "; this Planloom reads up to "
                + std::to_string(newest),
            "open it with a newer Planloom"};
    }
    if (version < 0)
        return Error{
            ErrorCode::InvalidInput, "the session has the impossible version " + std::to_string(version)};
    if (version == newest)
        return 0;
    try {
        SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
        for (int from = version; from < newest; ++from) {
            database.exec(migrations[static_cast<std::size_t>(from)].sql);
            database.exec("PRAGMA user_version = " + std::to_string(from + 1));
        }
        transaction.commit();
    } catch (const SQLite::Exception &failure) {
        const int code = failure.getErrorCode() & 0xff; // primary result code
        const bool isRefused = code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_READONLY
            || code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_BUSY || code == SQLITE_LOCKED;
        return Error{isRefused ? ErrorCode::Io : ErrorCode::InvalidInput,
            "the session of version " + std::to_string(version)
                + " cannot be brought up to date: " + failure.what(),
            code == SQLITE_FULL || code == SQLITE_IOERR
                ? "look whether the disk is full; it was left as it is"
                : "it was left as it is"};
    }
    return newest - version;
}

} // namespace planloom
