#include "sessions/session_file.h"

#include "sessions/compress.h"
#include "sessions/digest.h"
#include "sessions/session_schema.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <sqlite3.h>

#include <array>
#include <fstream>
#include <set>
#include <string_view>

namespace planloom {

namespace {

constexpr std::size_t kMostContentBytes = std::size_t{1} << 30;
constexpr std::size_t kMostRows = 1'000'000;
constexpr int kBusyMilliseconds = 2000;

/// Offsets in an SQLite file's header (sqlite.org/fileformat2.html, section 1.3).
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kApplicationIdOffset = 68;
constexpr std::string_view kMagic{"SQLite format 3\0", 16};

std::string quoted(const std::filesystem::path &path)
{
    return "\"" + path.filename().string() + "\"";
}

Error damaged(const std::filesystem::path &path, const std::string &what)
{
    return {ErrorCode::InvalidInput, "the session " + quoted(path) + " is damaged: " + what,
        "take an older copy; this file was left as it is", path.string()};
}

Error refused(const std::filesystem::path &path, const SQLite::Exception &failure, const std::string &doing)
{
    const int code = failure.getErrorCode() & 0xff; // primary result code
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
        return damaged(path, failure.what());
    std::string advice;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        advice = "another program has it open; close it there";
    else if (code == SQLITE_FULL)
        advice = "the disk is full; make room or save elsewhere";
    else if (code == SQLITE_READONLY || code == SQLITE_CANTOPEN || code == SQLITE_PERM)
        advice = "save it in a folder you may write to";
    return {ErrorCode::Io, doing + " " + quoted(path) + " failed: " + failure.what(), advice, path.string()};
}

/// "table constraint_row CREATE TABLE ...", one entry for each thing in the schema.
std::set<std::string> schemaOf(SQLite::Database &database)
{
    std::set<std::string> entries;
    SQLite::Statement query(
        database, "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master");
    while (query.executeStep())
        entries.insert(query.getColumn(0).getString());
    return entries;
}

/// What the schema of `version` must be. A file with another one (triggers, views, columns that compute)
/// could make reading it do anything.
Result<std::set<std::string>> schemaAt(int version)
{
    SQLite::Database model(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    const std::vector<Migration> &all = sessionMigrations();
    TRY_VOID(migrate(model, {all.begin(), all.begin() + version}));
    return schemaOf(model);
}

Result<void> checkHeader(const std::filesystem::path &path)
{
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::NotFound, "there is no file \"" + path.string() + "\"", {}, path.string()};
    const Error none{ErrorCode::InvalidInput, quoted(path) + " is not a Planloom session",
        "open a session file, or a model (.onnx)", path.string()};
    if (!std::filesystem::is_regular_file(status))
        return none;
    std::array<char, kHeaderBytes> header{};
    std::ifstream stream(path, std::ios::binary);
    if (!stream)
        return Error{ErrorCode::Io, "the file " + quoted(path) + " cannot be read", {}, path.string()};
    if (!stream.read(header.data(), header.size()))
        return none;
    if (std::string_view(header.data(), kMagic.size()) != kMagic)
        return none;
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < 4; ++i)
        id = id << 8 | static_cast<unsigned char>(header[kApplicationIdOffset + i]);
    if (id != static_cast<std::uint32_t>(kSessionApplicationId)) {
        return Error{ErrorCode::InvalidInput, quoted(path) + " is a database, but not a Planloom session",
            "open a session file, or a model (.onnx)", path.string()};
    }
    return {};
}

void prepare(SQLite::Database &database)
{
    database.setBusyTimeout(kBusyMilliseconds);
    sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    database.exec("PRAGMA cell_size_check = ON");
    database.exec("PRAGMA foreign_keys = ON");
}

std::string textOf(SQLite::Statement &query, int column)
{
    return query.getColumn(column).getString();
}

Result<std::string> blobOf(SQLite::Statement &query, int column, int sizeColumn)
{
    const std::string packed = query.getColumn(column).getString();
    const std::int64_t size = query.getColumn(sizeColumn).getInt64();
    if (size < 0)
        return Error{ErrorCode::InvalidInput, "a compressed entry claims a negative length"};
    return inflated(packed, static_cast<std::size_t>(size), kMostContentBytes);
}

void bindBlob(SQLite::Statement &statement, int index, const std::string &bytes)
{
    statement.bind(index, static_cast<const void *>(bytes.data()), static_cast<int>(bytes.size()));
}

std::map<std::string, std::string> mapOf(SQLite::Database &database, const std::string &table)
{
    std::map<std::string, std::string> result;
    SQLite::Statement query(database, "SELECT name, value FROM " + table);
    while (query.executeStep())
        result[textOf(query, 0)] = textOf(query, 1);
    return result;
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

void writeRows(SQLite::Database &database, std::string_view text)
{
    database.exec("DELETE FROM constraint_row");
    SQLite::Statement insert(database, "INSERT INTO constraint_row (position, line) VALUES (?, ?)");
    for (std::int64_t position = 0; !text.empty(); ++position) {
        const std::size_t end = text.find('\n');
        insert.bind(1, position);
        insert.bind(2, std::string(text.substr(0, end)));
        insert.exec();
        insert.reset();
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
}

} // namespace

struct SessionFile::Connection {
    std::filesystem::path path{};
    SQLite::Database database;
};

SessionFile::SessionFile(std::unique_ptr<Connection> connection)
    : m_connection(std::move(connection))
{
}
SessionFile::SessionFile(SessionFile &&) noexcept = default;
SessionFile &SessionFile::operator=(SessionFile &&) noexcept = default;
SessionFile::~SessionFile() = default;

const std::filesystem::path &SessionFile::path() const
{
    return m_connection->path;
}

Result<SessionFile> SessionFile::open(const std::filesystem::path &path)
{
    TRY_VOID(checkHeader(path));
    try {
        std::unique_ptr<Connection> connection(
            new Connection{path, SQLite::Database(path.string(), SQLite::OPEN_READWRITE)});
        SQLite::Database &database = connection->database;
        prepare(database);
        TRY(const int version, schemaVersion(database));
        const int newest = static_cast<int>(sessionMigrations().size());
        if (version < 0)
            return damaged(path, "its version is " + std::to_string(version));
        if (version > newest) {
            return Error{ErrorCode::NotSupported,
                "the session " + quoted(path) + " has version " + std::to_string(version)
                    + "; this Planloom reads up to version " + std::to_string(newest),
                "open it with a newer Planloom; it was left as it is", path.string()};
        }
        TRY(const auto expected, schemaAt(version));
        if (schemaOf(database) != expected)
            return damaged(path, "its tables are not those of version " + std::to_string(version));
        if (const std::string check = database.execAndGet("PRAGMA quick_check(1)").getString(); check != "ok")
            return damaged(path, check);
        if (auto migrated = migrate(database, sessionMigrations()); !migrated) {
            migrated.error().where = path.string();
            return migrated.error();
        }
        database.exec("PRAGMA journal_mode = WAL");
        database.exec("PRAGMA synchronous = FULL");
        return SessionFile(std::move(connection));
    } catch (const SQLite::Exception &failure) {
        return refused(path, failure, "opening");
    }
}

Result<SessionFile> SessionFile::create(const std::filesystem::path &path)
{
    std::error_code failure;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, failure))) {
        return Error{ErrorCode::InvalidInput, "there is already a file " + quoted(path),
            "choose another name", path.string()};
    }
    try {
        std::unique_ptr<Connection> connection(new Connection{
            path, SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)});
        SQLite::Database &database = connection->database;
        prepare(database);
        // Before WAL, so that the marks are in the file's own header, where `checkHeader` reads them.
        database.exec("PRAGMA application_id = " + std::to_string(kSessionApplicationId));
        TRY_VOID(migrate(database, sessionMigrations()));
        database.exec("PRAGMA journal_mode = WAL");
        database.exec("PRAGMA synchronous = FULL");
        return SessionFile(std::move(connection));
    } catch (const SQLite::Exception &exception) {
        return refused(path, exception, "making");
    }
}

Result<SessionData> SessionFile::load() const
{
    SQLite::Database &database = m_connection->database;
    const std::filesystem::path &path = m_connection->path;
    try {
        SessionData data;
        SQLite::Transaction transaction(database); // one state, whatever others write meanwhile
        SQLite::Statement model(database, "SELECT source, content, content_size, sha256 FROM model");
        if (model.executeStep()) {
            data.model.source = textOf(model, 0);
            auto content = blobOf(model, 1, 2);
            if (!content)
                return damaged(path, "the model: " + content.error().message);
            data.model.content = *std::move(content);
            data.model.sha256 = textOf(model, 3);
            if (data.model.sha256 != sha256(data.model.content))
                return damaged(path, "the model's bytes do not match their digest");
        }
        data.model.options = mapOf(database, "model_option");
        SQLite::Statement cluster(database, "SELECT name, json, device_count FROM cluster");
        if (cluster.executeStep()) {
            data.cluster.name = textOf(cluster, 0);
            data.cluster.json = textOf(cluster, 1);
            const std::int64_t count = cluster.getColumn(2).getInt64();
            if (count < 1 || count > 65536)
                return damaged(path, "it asks for " + std::to_string(count) + " devices");
            data.cluster.deviceCount = static_cast<std::int32_t>(count);
        }
        SQLite::Statement rows(database, "SELECT line FROM constraint_row ORDER BY position");
        for (std::size_t row = 0; rows.executeStep(); ++row) {
            if (row >= kMostRows)
                return damaged(path, "it has more than " + std::to_string(kMostRows) + " rows");
            data.tableText += textOf(rows, 0) + "\n";
        }
        SQLite::Statement plan(database, "SELECT table_sha256, summary, execution, execution_size FROM plan");
        if (plan.executeStep()) {
            auto execution = blobOf(plan, 2, 3);
            if (!execution)
                return damaged(path, "the plan: " + execution.error().message);
            data.plan = SessionPlan{textOf(plan, 0), textOf(plan, 1), *std::move(execution)};
        }
        data.view = mapOf(database, "view_state");
        return data;
    } catch (const SQLite::Exception &failure) {
        return refused(path, failure, "reading");
    }
}

Result<void> SessionFile::save(const SessionData &data)
{
    if (data.cluster.deviceCount < 1) {
        return Error{ErrorCode::InvalidInput,
            "a session has at least 1 device, not " + std::to_string(data.cluster.deviceCount)};
    }
    if (data.model.content.size() > kMostContentBytes) {
        return Error{ErrorCode::ResourceLimit,
            "the model file has " + std::to_string(data.model.content.size())
                + " bytes; a session holds up to " + std::to_string(kMostContentBytes),
            "keep its weights in a file of their own (external data)", data.model.source};
    }
    TRY(const std::string content, deflated(data.model.content));
    TRY(const std::string execution, deflated(data.plan ? data.plan->execution : std::string{}));
    SQLite::Database &database = m_connection->database;
    try {
        SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
        database.exec("DELETE FROM model; DELETE FROM cluster; DELETE FROM plan");
        SQLite::Statement model(
            database, "INSERT INTO model (id, source, content, content_size, sha256) VALUES (1, ?, ?, ?, ?)");
        model.bind(1, data.model.source);
        bindBlob(model, 2, content);
        model.bind(3, static_cast<std::int64_t>(data.model.content.size()));
        model.bind(4, sha256(data.model.content));
        model.exec();
        writeMap(database, "model_option", data.model.options);
        SQLite::Statement cluster(
            database, "INSERT INTO cluster (id, name, json, device_count) VALUES (1, ?, ?, ?)");
        cluster.bind(1, data.cluster.name);
        cluster.bind(2, data.cluster.json);
        cluster.bind(3, data.cluster.deviceCount);
        cluster.exec();
        writeRows(database, data.tableText);
        if (data.plan) {
            SQLite::Statement plan(database,
                "INSERT INTO plan (id, table_sha256, summary, execution, execution_size) VALUES (1, ?, ?, ?, "
                "?)");
            plan.bind(1, data.plan->tableSha256);
            plan.bind(2, data.plan->summary);
            bindBlob(plan, 3, execution);
            plan.bind(4, static_cast<std::int64_t>(data.plan->execution.size()));
            plan.exec();
        }
        writeMap(database, "view_state", data.view);
        transaction.commit();
    } catch (const SQLite::Exception &failure) {
        return refused(m_connection->path, failure, "saving");
    }
    return {};
}

Result<SalvagedSession> salvageSession(const std::filesystem::path &path)
{
    TRY_VOID(checkHeader(path));
    SalvagedSession salvaged;
    SessionData &data = salvaged.data;
    // Each part on its own: what one cannot give does not take the others along.
    const auto part = [&](const std::string &what, const auto &read) {
        try {
            if (const std::string problem = read(); !problem.empty())
                salvaged.losses.push_back(what + ": " + problem);
        } catch (const SQLite::Exception &failure) {
            salvaged.losses.push_back(what + ": " + failure.what());
        }
    };
    try {
        SQLite::Database database(path.string(), SQLite::OPEN_READONLY);
        database.setBusyTimeout(kBusyMilliseconds);
        sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
        sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
        std::size_t rowCount = 0;
        part("rows", [&]() -> std::string {
            try {
                SQLite::Statement rows(database, "SELECT line FROM constraint_row ORDER BY position");
                for (; rowCount < kMostRows && rows.executeStep(); ++rowCount)
                    data.tableText += textOf(rows, 0) + "\n";
            } catch (const SQLite::Exception &failure) {
                return "only the first " + std::to_string(rowCount) + " can be read: " + failure.what();
            }
            return {};
        });
        part("the model", [&]() -> std::string {
            SQLite::Statement model(database, "SELECT source, content, content_size, sha256 FROM model");
            if (!model.executeStep())
                return "there is none";
            data.model.source = textOf(model, 0);
            auto content = blobOf(model, 1, 2);
            if (!content)
                return "its bytes are lost (" + content.error().message + "); its name is "
                    + data.model.source;
            if (textOf(model, 3) != sha256(*content))
                return "its bytes do not match their digest and were left out; its name is "
                    + data.model.source;
            data.model.content = *std::move(content);
            return {};
        });
        part("the model's options", [&]() -> std::string {
            data.model.options = mapOf(database, "model_option");
            return {};
        });
        part("the cluster", [&]() -> std::string {
            SQLite::Statement cluster(database, "SELECT name, json, device_count FROM cluster");
            if (!cluster.executeStep())
                return "there is none";
            const std::int64_t count = cluster.getColumn(2).getInt64();
            if (count < 1 || count > 65536)
                return "it asks for " + std::to_string(count) + " devices";
            data.cluster = {textOf(cluster, 0), textOf(cluster, 1), static_cast<std::int32_t>(count)};
            return {};
        });
        part("the plan", [&]() -> std::string {
            SQLite::Statement plan(
                database, "SELECT table_sha256, summary, execution, execution_size FROM plan");
            if (!plan.executeStep())
                return {};
            auto execution = blobOf(plan, 2, 3);
            if (!execution)
                return execution.error().message + "; it can be solved again";
            data.plan = SessionPlan{textOf(plan, 0), textOf(plan, 1), *std::move(execution)};
            return {};
        });
        part("the view", [&]() -> std::string {
            data.view = mapOf(database, "view_state");
            return {};
        });
    } catch (const SQLite::Exception &failure) {
        return refused(path, failure, "reading");
    }
    return salvaged;
}

bool looksLikeSession(const std::filesystem::path &path)
{
    std::array<char, 16> head{};
    std::ifstream stream(path, std::ios::binary);
    return stream.read(head.data(), head.size()) && std::string_view(head.data(), head.size()) == kMagic;
}

Result<void> saveSession(const std::filesystem::path &path, const SessionData &data)
{
    std::error_code failure;
    auto file = std::filesystem::exists(path, failure) ? SessionFile::open(path) : SessionFile::create(path);
    if (!file)
        return std::move(file).error();
    return file->save(data);
}

} // namespace planloom
