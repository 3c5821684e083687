#include "sessions/session_database.h"

#include "sessions/compress.h"
#include "sessions/migrate.h"
#include "sessions/session_schema.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <nlohmann/json.hpp>
#include <sqlite3.h>

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace planloom {

namespace {

/// Others hold the file for moments only; a person waits no longer than this.
constexpr int kBusyMilliseconds = 1000;
/// Shorter texts are kept as they are.
constexpr std::size_t kLeastPackedBytes = 1024;

/// Offsets in an SQLite file's header (sqlite.org/fileformat2.html, section 1.3).
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kApplicationIdOffset = 68;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

constexpr std::string_view kBeside = "./";

bool isZooName(const std::string &source)
{
    return source.rfind("zoo:", 0) == 0;
}

} // namespace

std::string quotedName(const std::filesystem::path &path)
{
    return "\"" + path.filename().string() + "\"";
}

Error damagedSession(const std::filesystem::path &path, const std::string &what)
{
    return {ErrorCode::InvalidInput, "the session " + quotedName(path) + " is damaged: " + what,
        "take an older copy; this file was left as it is", path.string()};
}

Error sessionFailure(
    const std::filesystem::path &path, const SQLite::Exception &failure, const std::string &doing)
{
    const int code = failure.getErrorCode() & 0xff; // primary result code
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return damagedSession(path, failure.what());
    const std::string head = doing + " " + quotedName(path) + " failed: ";
    switch (code) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return {ErrorCode::Io, head + "it is locked (" + failure.what() + ")",
            "another program has it open; close it there", path.string()};
    case SQLITE_FULL:
        return {ErrorCode::Io, head + "the disk is full (" + failure.what() + ")",
            "make room, or save a copy elsewhere", path.string()};
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return {ErrorCode::Io, head + "it may not be written there (" + failure.what() + ")",
            "save a copy in a folder you may write to", path.string()};
    case SQLITE_IOERR:
        return {ErrorCode::Io, head + "the disk refused it (" + failure.what() + ")",
            "look whether the disk is full or was taken away; save a copy elsewhere", path.string()};
    case SQLITE_CONSTRAINT:
        return {ErrorCode::InvalidInput, head + failure.what(), {}, path.string()};
    default:
        return {ErrorCode::Io, head + failure.what(), {}, path.string()};
    }
}

Result<void> checkSessionHeader(const std::filesystem::path &path)
{
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::NotFound, "there is no file \"" + path.string() + "\"", {}, path.string()};
    const Error none{ErrorCode::InvalidInput, quotedName(path) + " is not a Planloom session",
        "open a session file, or a model (.onnx, .pt2)", path.string()};
    if (!std::filesystem::is_regular_file(status))
        return none;
    std::array<char, kHeaderBytes> header{};
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        return Error{ErrorCode::Io, "the file " + quotedName(path) + " cannot be read", {}, path.string()};
    if (!stream.read(header.data(), header.size()))
        return none;
    if (std::string_view(header.data(), kMagic.size()) != kMagic)
        return none;
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < 4; ++i)
        id = id << 8 | static_cast<unsigned char>(header[kApplicationIdOffset + i]);
    if (id != static_cast<std::uint32_t>(kSessionApplicationId)) {
        return Error{ErrorCode::InvalidInput, quotedName(path) + " is a database, but not a Planloom session",
            "open a session file, or a model (.onnx, .pt2)", path.string()};
    }
    return {};
}

Result<void> checkSessionMark(SQLite::Database &database, const std::filesystem::path &path)
{
    if (database.execAndGet("PRAGMA application_id").getInt() == kSessionApplicationId)
        return {};
    return Error{ErrorCode::InvalidInput, quotedName(path) + " is a database, but not a Planloom session",
        "open a session file, or a model (.onnx, .pt2)", path.string()};
}

void hardenConnection(SQLite::Database &database)
{
    database.setBusyTimeout(kBusyMilliseconds);
    sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    database.exec("PRAGMA cell_size_check = ON");
}

std::set<std::string> schemaOf(SQLite::Database &database)
{
    std::set<std::string> entries;
    SQLite::Statement query(
        database, "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master");
    while (query.executeStep())
        entries.insert(query.getColumn(0).getString());
    return entries;
}

Result<std::set<std::string>> schemaAt(int version)
{
    SQLite::Database model(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    const std::vector<Migration> &all = sessionMigrations();
    TRY_VOID(migrate(model, {all.begin(), all.begin() + version}));
    return schemaOf(model);
}

bool hasTable(SQLite::Database &database, const std::string &table)
{
    SQLite::Statement query(
        database, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ? AND rootpage > 0");
    query.bind(1, table);
    return query.executeStep() && query.getColumn(0).getInt() == 1;
}

std::map<std::string, std::string> readMap(SQLite::Database &database, const std::string &table)
{
    std::map<std::string, std::string> result;
    SQLite::Statement query(database, "SELECT name, value FROM " + table);
    while (query.executeStep())
        result[query.getColumn(0).getString()] = query.getColumn(1).getString();
    return result;
}

std::optional<std::string> metaAt(SQLite::Database &database, const std::string &name)
{
    SQLite::Statement query(database, "SELECT value FROM meta WHERE name = ?");
    query.bind(1, name);
    return query.executeStep() ? std::optional(query.getColumn(0).getString()) : std::nullopt;
}

void writeMeta(SQLite::Database &database, const std::string &name, const std::string &value)
{
    SQLite::Statement store(database, "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)");
    store.bind(1, name);
    store.bind(2, value);
    store.exec();
}

void removeMeta(SQLite::Database &database, const std::string &name)
{
    SQLite::Statement remove(database, "DELETE FROM meta WHERE name = ?");
    remove.bind(1, name);
    remove.exec();
}

std::string packedFigures(const StepFigures &figures)
{
    const double seconds = figures.stepSeconds;
    const nlohmann::json kept = std::isfinite(seconds) ? nlohmann::json(seconds)
        : std::isnan(seconds)                          ? nlohmann::json("nan")
                                                       : nlohmann::json(seconds < 0 ? "-inf" : "inf");
    return nlohmann::json{
        {"step_seconds", kept}, {"peak_bytes", figures.peakBytes}, {"verified", figures.verified}}
        .dump();
}

std::optional<StepFigures> unpackedFigures(const std::string &text)
{
    const auto figures = nlohmann::json::parse(text, nullptr, false);
    if (!figures.is_object())
        return std::nullopt;
    const auto kept = figures.find("step_seconds");
    const auto peak = figures.find("peak_bytes");
    const auto verified = figures.find("verified");
    const auto end = figures.end();
    if (kept == end || peak == end || !peak->is_number_integer() || verified == end
        || !verified->is_boolean())
        return std::nullopt;
    // JSON has no infinity and no NaN: these are words, which `strtod` reads.
    const std::string word = kept->is_string() ? kept->get<std::string>() : std::string{};
    if (!kept->is_number() && word != "inf" && word != "-inf" && word != "nan")
        return std::nullopt;
    const double seconds = word.empty() ? kept->get<double>() : std::strtod(word.c_str(), nullptr);
    return StepFigures{seconds, peak->get<std::int64_t>(), verified->get<bool>()};
}

void writeMap(
    SQLite::Database &database, const std::string &table, const std::map<std::string, std::string> &values)
{
    database.exec("DELETE FROM " + table);
    SQLite::Statement insert(database, "INSERT INTO " + table + " (name, value) VALUES (?, ?)");
    for (const auto &[name, value] : values) {
        insert.bind(1, name);
        insert.bind(2, value);
        insert.exec();
        insert.reset();
    }
}

void bindBlob(SQLite::Statement &statement, int index, std::string_view bytes)
{
    // An empty blob needs a pointer of its own: SQLite takes a null one for NULL.
    statement.bind(
        index, bytes.empty() ? static_cast<const void *>("") : bytes.data(), static_cast<int>(bytes.size()));
}

Result<void> bindPacked(SQLite::Statement &statement, int index, const std::string &text)
{
    if (text.size() > kMostContentBytes) {
        return Error{ErrorCode::ResourceLimit,
            "it has " + std::to_string(text.size()) + " bytes; a session holds up to "
                + std::to_string(kMostContentBytes)};
    }
    statement.bind(index + 1, static_cast<std::int64_t>(text.size()));
    if (text.size() >= kLeastPackedBytes) {
        TRY(const std::string packed, deflated(text));
        if (packed.size() < text.size()) {
            bindBlob(statement, index, packed);
            return {};
        }
    }
    statement.bind(index, text);
    return {};
}

Result<std::string> unpacked(SQLite::Statement &query, int column)
{
    const SQLite::Column value = query.getColumn(column);
    const std::int64_t size = query.getColumn(column + 1).getInt64();
    std::string bytes = value.getString();
    if (size < 0)
        return Error{ErrorCode::InvalidInput, "an entry claims a negative length"};
    if (value.isBlob())
        return inflated(bytes, static_cast<std::size_t>(size), kMostContentBytes);
    if (bytes.size() != static_cast<std::size_t>(size))
        return Error{ErrorCode::InvalidInput, "an entry has not the length it claims"};
    return bytes;
}

std::string storedSource(const std::string &source, const std::filesystem::path &session)
{
    if (source.empty() || isZooName(source))
        return source;
    std::error_code failure;
    const std::filesystem::path file = std::filesystem::absolute(source, failure).lexically_normal();
    const std::filesystem::path folder =
        std::filesystem::absolute(session, failure).lexically_normal().parent_path();
    const std::filesystem::path relative = file.lexically_relative(folder);
    const bool isBeside = !relative.empty() && *relative.begin() != "..";
    if (isBeside && (std::filesystem::path(source).is_absolute() || std::filesystem::exists(file, failure)))
        return std::string(kBeside) + relative.generic_string();
    // What looks like a path from the session's folder must be one; and a path from the working folder would
    // not be found again.
    if (source.rfind(kBeside, 0) == 0 || std::filesystem::exists(file, failure))
        return file.string();
    return source;
}

std::string foundSource(const std::string &stored, const std::filesystem::path &session)
{
    if (stored.rfind(kBeside, 0) != 0)
        return stored;
    std::error_code failure;
    const std::filesystem::path folder =
        std::filesystem::absolute(session, failure).lexically_normal().parent_path();
    return (folder / stored.substr(kBeside.size())).lexically_normal().string();
}

Result<void> publishFile(const std::filesystem::path &from, const std::filesystem::path &to)
{
    // A second name and then one less never replaces a file; where a file system knows no second names, look
    // first.
    bool isThere = ::link(from.c_str(), to.c_str()) == 0;
    int reason = isThere ? 0 : errno;
    if (!isThere && reason != EEXIST) {
        std::error_code failure;
        if (std::filesystem::exists(std::filesystem::symlink_status(to, failure))) {
            reason = EEXIST;
        } else {
            isThere = ::rename(from.c_str(), to.c_str()) == 0;
            reason = isThere ? 0 : errno;
        }
    }
    ::unlink(from.c_str());
    if (reason == EEXIST) {
        return Error{ErrorCode::InvalidInput, "there is already a file " + quotedName(to),
            "choose another name", to.string()};
    }
    if (!isThere) {
        return Error{ErrorCode::Io, "making " + quotedName(to) + " failed: " + std::strerror(reason),
            "save it in a folder you may write to", to.string()};
    }
    // The name itself must survive a power cut.
    const std::filesystem::path parent = to.parent_path();
    if (const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        folder >= 0) {
        ::fsync(folder);
        ::close(folder);
    }
    return {};
}

} // namespace planloom
