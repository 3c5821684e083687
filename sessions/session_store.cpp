#include "sessions/session_store.h"

#include "sessions/session_connection.h"
#include "sessions/session_database.h"
#include "sessions/session_reader.h"
#include "sessions/session_schema.h"

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <sqlite3.h>

#include <unistd.h>

#include <cstdlib>

namespace planloom {

namespace {

namespace fs = std::filesystem;

/// Statements of a file that is not trusted may not run for longer: some seconds.
constexpr int kStepsBetweenLooks = 100'000;
constexpr std::int64_t kMostLooks = 3'000;

int newestVersion()
{
    return static_cast<int>(sessionMigrations().size());
}

/// `path` with `suffix` behind its name.
fs::path beside(const fs::path &path, const std::string &suffix)
{
    fs::path result = path;
    result += suffix;
    return result;
}

/// True if a process has the file open, or was cut off while it had.
bool hasLog(const fs::path &path)
{
    std::error_code failure;
    return fs::exists(beside(path, "-wal"), failure);
}

/// True if there are changes beside the file.
bool hasLoggedChanges(const fs::path &path)
{
    std::error_code failure;
    const auto size = fs::file_size(beside(path, "-wal"), failure);
    return !failure && size > 0;
}

/// `path` as SQLite's URI for a file that does not change, with what a URI has other uses for escaped.
std::string immutableUri(const fs::path &path)
{
    static constexpr char kDigits[] = "0123456789abcdef";
    std::error_code failure;
    std::string uri = "file:";
    for (const char c : fs::absolute(path, failure).string()) {
        const auto byte = static_cast<unsigned char>(c);
        if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_')
            uri += c;
        else
            (uri += '%') += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return uri + "?immutable=1";
}

/// Stops statements that run for too long; keep it as long as the connection.
void limitWork(SQLite::Database &database, std::int64_t &looks)
{
    sqlite3_progress_handler(
        database.getHandle(), kStepsBetweenLooks,
        [](void *count) { return ++*static_cast<std::int64_t *>(count) > kMostLooks ? 1 : 0; }, &looks);
}

/// @param isTolerant  read what is there even if the file is cut short or its schema is malformed; only for
/// reading
std::unique_ptr<SQLite::Database> opened(const std::string &name, int flags, bool isTolerant = false)
{
    auto database = std::make_unique<SQLite::Database>(name, flags);
    hardenConnection(*database);
    if (isTolerant) {
        sqlite3_db_config(database->getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
        sqlite3_db_config(database->getHandle(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
    }
    static_cast<void>(
        database->execAndGet("PRAGMA schema_version")); // reads the file: whether that can be done
    return database;
}

struct Reading {
    std::unique_ptr<TemporaryFolder> folder{}; ///< Behind the database, so that it goes last.
    std::unique_ptr<SQLite::Database> database{};
};

/// Reads a copy of the file and its log: where the log can't be read in its place.
Reading openCopy(const fs::path &path, bool isTolerant)
{
    Reading reading;
    std::error_code problem;
    std::string pattern = (fs::temp_directory_path(problem) / "planloom_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr)
        throw SQLite::Exception("no room for a copy", SQLITE_CANTOPEN);
    reading.folder = std::make_unique<TemporaryFolder>(pattern);
    const fs::path copy = reading.folder->path() / "session";
    if (!fs::copy_file(path, copy, problem)
        || !fs::copy_file(beside(path, "-wal"), beside(copy, "-wal"), problem))
        throw SQLite::Exception("it cannot be copied: " + problem.message(), SQLITE_CANTOPEN);
    reading.database = opened(copy.string(), SQLite::OPEN_READWRITE, isTolerant);
    return reading;
}

/// Opens for reading, whatever state the file and its folder are in; leaves both as they are.
Result<Reading> openForReading(const fs::path &path)
{
    const auto open = [&](bool isTolerant) {
        Reading reading;
        if (!hasLog(path)) { // nobody writes; this way no files appear beside it
            reading.database =
                opened(immutableUri(path), SQLite::OPEN_READONLY | SQLite::OPEN_URI, isTolerant);
            return reading;
        }
        try {
            reading.database = opened(path.string(), SQLite::OPEN_READONLY, isTolerant);
            return reading;
        } catch (const SQLite::Exception &failure) {
            const int code = failure.getErrorCode() & 0xff;
            if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY && code != SQLITE_IOERR)
                throw;
        }
        return openCopy(path, isTolerant);
    };
    try {
        try {
            return open(false);
        } catch (const SQLite::Exception &failure) {
            if ((failure.getErrorCode() & 0xff) != SQLITE_CORRUPT)
                throw;
            return open(true);
        }
    } catch (const SQLite::Exception &failure) {
        return sessionFailure(path, failure, "opening");
    }
}

/// The sentences about what is lost, as many as can be read.
std::string summaryOf(const std::vector<std::string> &losses)
{
    constexpr std::size_t kMostSentences = 8;
    std::string text;
    for (std::size_t i = 0; i < losses.size() && i < kMostSentences; ++i)
        text += (i == 0 ? "" : "; ") + losses[i];
    if (losses.size() > kMostSentences)
        text += "; and " + std::to_string(losses.size() - kMostSentences) + " more";
    return text;
}

/// A session that can be written; or why it can't.
struct Writability {
    std::unique_ptr<SQLite::Database> database{}; ///< Null if it can't.
    ReadSession read{};
    std::string reason{}; ///< Why not, as a sentence.
    bool isDamaged = false; ///< Then `reason` is what SQLite or the schema says.
};

Writability openForWriting(const fs::path &path)
{
    Writability result;
    try {
        result.database = opened(path.string(), SQLite::OPEN_READWRITE);
        SQLite::Database &database = *result.database;
        const auto refuse = [&](std::string reason, bool isDamaged) {
            result.database.reset();
            result.reason = std::move(reason);
            result.isDamaged = isDamaged;
        };
        const int version = database.execAndGet("PRAGMA user_version").getInt();
        if (version > newestVersion()) {
            refuse("it was made by a newer Planloom (version " + std::to_string(version)
                    + "; this one knows up to " + std::to_string(newestVersion())
                    + ") and is shown as far as this one understands it",
                false);
            return result;
        }
        if (version < 0) {
            refuse("its version is " + std::to_string(version), true);
            return result;
        }
        const auto expected = schemaAt(version);
        if (!expected || schemaOf(database) != *expected) {
            refuse("its tables are not those of version " + std::to_string(version), true);
            return result;
        }
        if (const std::string check = database.execAndGet("PRAGMA quick_check(1)").getString();
            check != "ok") {
            refuse(check, true);
            return result;
        }
        if (sqlite3_db_readonly(database.getHandle(), "main") == 1) {
            refuse("it may not be written (a read-only file or folder)", false);
            return result;
        }
        result.read = readSession(database, path); // before anything is written
        if (!result.read.losses.empty()) {
            refuse({}, true); // whoever reads it again says what is lost
            return result;
        }
        if (version < newestVersion())
            result.read = {};
        if (const auto migrated = migrate(database, sessionMigrations()); !migrated) {
            refuse(migrated.error().message, migrated.error().code != ErrorCode::Io);
            return result;
        }
        database.exec("PRAGMA journal_mode = WAL");
        database.exec("PRAGMA synchronous = FULL");
        // Whether it can really be written shows only now.
        SQLite::Transaction(database, SQLite::TransactionBehavior::IMMEDIATE).commit();
        if (version < newestVersion())
            result.read = readSession(database, path);
    } catch (const SQLite::Exception &failure) {
        result.database.reset();
        const int code = failure.getErrorCode() & 0xff;
        result.isDamaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
        const bool isRefused = code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM;
        result.reason =
            isRefused ? "it may not be written (a read-only file or folder)" : std::string(failure.what());
    }
    return result;
}

/// Where a session is made before it gets its name. Whoever holds the lock of `path` may write and remove it.
fs::path unfinished(const fs::path &path)
{
    return beside(path, path.extension() == ".planloom" ? "-part" : ".planloom-part");
}

/// The lock of a file that is to be made.
Result<std::optional<SessionLock>> lockNew(const fs::path &path)
{
    auto lock = SessionLock::take(path);
    if (lock.holder.empty())
        return std::move(lock.lock); // none where the folder can't be written: making the file says so better
    return Error{ErrorCode::Io,
        quotedName(path) + " is being written by another window (" + lock.holder + ")", "choose another name",
        path.string()};
}

Result<void> checkFree(const fs::path &path)
{
    std::error_code failure;
    if (!fs::exists(fs::symlink_status(path, failure)))
        return {};
    return Error{ErrorCode::InvalidInput, "there is already a file " + quotedName(path),
        "choose another name", path.string()};
}

void removeDatabase(const fs::path &path)
{
    std::error_code ignored;
    for (const char *suffix : {"", "-wal", "-shm", "-journal"})
        fs::remove(beside(path, suffix), ignored);
}

} // namespace

SessionStore::SessionStore(std::unique_ptr<Connection> connection)
    : m_connection(std::move(connection))
{
}
SessionStore::SessionStore(SessionStore &&) noexcept = default;
SessionStore &SessionStore::operator=(SessionStore &&) noexcept = default;
SessionStore::~SessionStore() = default;

bool SessionStore::isReadOnly() const
{
    return m_connection->readOnly;
}

const std::filesystem::path &SessionStore::path() const
{
    return m_connection->path;
}

Result<SessionStore> SessionStore::create(const std::filesystem::path &path, const SessionContents &contents)
{
    TRY_VOID(checkFree(path));
    auto connection = std::make_unique<Connection>();
    connection->path = path;
    TRY(connection->lock, lockNew(path));
    // Made under another name: a session is there as a whole or not at all.
    const fs::path part = unfinished(path);
    removeDatabase(part);
    bool isPublished = false;
    const auto fill = [&]() -> Result<void> {
        SQLite::Database database(part.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        hardenConnection(database);
        // Before WAL, so that the marks are in the file's own header, where `checkSessionHeader` reads them.
        database.exec("PRAGMA application_id = " + std::to_string(kSessionApplicationId));
        if (auto migrated = migrate(database, sessionMigrations()); !migrated) {
            Error &error = migrated.error();
            return Error{error.code, "making " + quotedName(path) + " failed: " + error.message, error.advice,
                path.string()};
        }
        SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
        TRY_VOID(writeContents(database, contents, path));
        transaction.commit();
        return {};
    };
    try {
        if (auto filled = fill(); !filled) {
            removeDatabase(part);
            return std::move(filled).error();
        }
        TRY_VOID(publishFile(part, path));
        isPublished = true;
        connection->database = opened(path.string(), SQLite::OPEN_READWRITE);
        connection->database->exec("PRAGMA journal_mode = WAL");
        connection->database->exec("PRAGMA synchronous = FULL");
    } catch (const SQLite::Exception &failure) {
        connection->database.reset();
        removeDatabase(part);
        if (isPublished)
            removeDatabase(path); // ours alone, under the lock: the next try finds its name free
        return sessionFailure(path, failure, "making");
    }
    connection->recognize();
    return SessionStore(std::move(connection));
}

Result<SessionStore::Opened> SessionStore::open(const std::filesystem::path &path)
{
    TRY_VOID(checkSessionHeader(path));
    auto lock = SessionLock::take(path);
    if (!lock.lock) {
        return openReadOnly(path,
            lock.holder.empty() ? "it may not be written (" + lock.problem + ")"
                                : "it is open in another window (" + lock.holder + ")",
            false);
    }
    removeDatabase(unfinished(path)); // of a process that was cut off
    const bool wasCutOff = hasLoggedChanges(path);
    auto writing = openForWriting(path);
    if (!writing.database)
        return openReadOnly(path, writing.reason, writing.isDamaged);
    auto connection = std::make_unique<Connection>();
    connection->path = path;
    connection->lock = std::move(lock.lock);
    connection->database = std::move(writing.database);
    connection->recognize();
    if (wasCutOff)
        writing.read.contents.remark = "it was cut off when it was last open; all that was kept is here";
    return Opened{SessionStore(std::move(connection)), std::move(writing.read.contents)};
}

Result<SessionStore::Opened> SessionStore::openToLook(const std::filesystem::path &path)
{
    TRY_VOID(checkSessionHeader(path));
    return openReadOnly(path, {}, false);
}

Result<SessionStore::Opened> SessionStore::openReadOnly(
    const std::filesystem::path &path, const std::string &reason, bool isDamaged)
{
    TRY(auto reading, openForReading(path));
    auto connection = std::make_unique<Connection>();
    connection->path = path;
    connection->folder = std::move(reading.folder);
    connection->database = std::move(reading.database);
    connection->readOnly = true;
    std::int64_t looks = 0;
    limitWork(*connection->database, looks);
    ReadSession read = readSession(*connection->database, path);
    sqlite3_progress_handler(connection->database->getHandle(), 0, nullptr, nullptr);
    std::string remark = isDamaged || (reason.empty() && !read.losses.empty())
        ? "it is damaged and shown as far as it can be read"
        : std::string{};
    if (!reason.empty())
        remark += (remark.empty() ? "" : ": ") + reason;
    if (!read.losses.empty())
        remark += (remark.empty() ? "" : "; ") + summaryOf(read.losses);
    connection->remark = remark;
    connection->storedIds = std::move(read.storedIds);
    connection->recognize();
    read.contents.readOnly = true;
    read.contents.remark = std::move(remark);
    return Opened{SessionStore(std::move(connection)), std::move(read.contents)};
}

Result<std::vector<std::string>> checkSession(const std::filesystem::path &path)
{
    TRY_VOID(checkSessionHeader(path));
    TRY(const auto reading, openForReading(path));
    std::vector<std::string> problems;
    try {
        SQLite::Statement check(*reading.database, "PRAGMA integrity_check");
        while (check.executeStep()) {
            if (const std::string line = check.getColumn(0).getString(); line != "ok")
                problems.push_back(line);
        }
        const int version = reading.database->execAndGet("PRAGMA user_version").getInt();
        if (version < 0 || version > newestVersion()) {
            problems.push_back("its version is " + std::to_string(version) + "; this Planloom knows up to "
                + std::to_string(newestVersion()));
        } else if (const auto expected = schemaAt(version);
                   expected && schemaOf(*reading.database) != *expected) {
            problems.push_back("its tables are not those of version " + std::to_string(version));
        }
    } catch (const SQLite::Exception &failure) {
        problems.push_back(failure.what());
    }
    std::int64_t looks = 0;
    limitWork(*reading.database, looks);
    for (std::string &loss : readSession(*reading.database, path).losses)
        problems.push_back(std::move(loss));
    return problems;
}

Result<void> SessionStore::copyTo(const std::filesystem::path &path) const
{
    TRY_VOID(checkFree(path));
    TRY(const auto lock, lockNew(path));
    const fs::path part = unfinished(path);
    removeDatabase(part);
    try {
        {
            SQLite::Database copy(part.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
            SQLite::Backup(copy, *m_connection->database).executeStep(-1);
            if (!m_connection->readOnly) { // else it stays as it is, damage and all
                copy.exec("PRAGMA journal_mode = DELETE");
                // Where the model lies, seen from the copy.
                SQLite::Statement query(copy, "SELECT source FROM model");
                if (query.executeStep()) {
                    const std::string source =
                        foundSource(query.getColumn(0).getString(), m_connection->path);
                    query.reset();
                    SQLite::Statement update(copy, "UPDATE model SET source = ?");
                    update.bind(1, storedSource(source, path));
                    update.exec();
                }
            }
        }
    } catch (const SQLite::Exception &failure) {
        removeDatabase(part);
        return sessionFailure(path, failure, "copying to");
    }
    return publishFile(part, path);
}

Result<SessionSummary> readSummary(const std::filesystem::path &path)
{
    // Through SQLite alone: a window reads the summary of the session it has open, too.
    std::error_code failure;
    if (const auto status = fs::status(path, failure); !fs::exists(status))
        return Error{ErrorCode::NotFound, "there is no file \"" + path.string() + "\"", {}, path.string()};
    else if (!fs::is_regular_file(status))
        return Error{ErrorCode::InvalidInput, quotedName(path) + " is not a Planloom session",
            "open a session file, or a model (.onnx, .pt2)", path.string()};
    TRY(const auto reading, openForReading(path));
    std::int64_t looks = 0;
    limitWork(*reading.database, looks);
    try {
        TRY_VOID(checkSessionMark(*reading.database, path));
        const SQLite::Transaction transaction(*reading.database); // one state, whatever is written meanwhile
        return readSessionSummary(*reading.database, path);
    } catch (const SQLite::Exception &failure) {
        return sessionFailure(path, failure, "reading");
    }
}

} // namespace planloom
