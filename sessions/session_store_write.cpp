#include "engine/base/digest.h"
#include "sessions/compress.h"
#include "sessions/session_connection.h"
#include "sessions/session_database.h"
#include "sessions/session_reader.h"

#include <SQLiteCpp/Statement.h>
#include <sqlite3.h>

#include <sys/stat.h>

#include <algorithm>

namespace planloom {

namespace {

/// A state is stored whole after so many steps of a line of work.
constexpr std::int64_t kStepsBetweenStates = 256;
constexpr std::int64_t kMostCachedBytes = std::int64_t{64} << 20;

Error unknownStep(StepId id)
{
    return {ErrorCode::InvalidInput, "the session has no step " + std::to_string(id)};
}

/// Whether `id` is a step of the session. The root is one, though only the others have a row in the table
/// "step".
bool holdsStep(SQLite::Database &database, StepId id)
{
    if (id == kRootStep)
        return true;
    SQLite::Statement query(database, "SELECT 1 FROM step WHERE id = ?");
    query.bind(1, id);
    return query.executeStep();
}

Result<void> writeState(SQLite::Database &database, StepId id, const DesignState &state)
{
    SQLite::Statement text(
        database, "INSERT OR REPLACE INTO state (step, text, text_size, crc) VALUES (?, ?, ?, ?)");
    text.bind(1, id);
    TRY_VOID(bindPacked(text, 2, state.table.text()));
    text.bind(4, checksumOf(state));
    text.exec();
    SQLite::Statement clear(database, "DELETE FROM state_value WHERE step = ?");
    clear.bind(1, id);
    clear.exec();
    SQLite::Statement insert(database, "INSERT INTO state_value (step, name, value) VALUES (?, ?, ?)");
    for (const auto &[name, value] : state.values) {
        insert.bind(1, id);
        insert.bind(2, name);
        insert.bind(3, value);
        insert.exec();
        insert.reset();
    }
    return {};
}

void bindFigures(SQLite::Statement &statement, int index, const std::optional<StepFigures> &figures)
{
    if (figures) {
        statement.bind(index, figures->stepSeconds);
        statement.bind(index + 1, figures->peakBytes);
        statement.bind(index + 2, figures->verified ? 1 : 0);
    } else {
        for (int i = 0; i < 3; ++i)
            statement.bind(index + i);
    }
}

/// The statements that write steps, made once for many.
class StepWriter
{
public:
    explicit StepWriter(SQLite::Database &database)
        : m_database(database)
        , m_depth(database, "SELECT depth FROM step WHERE id = ?")
        , m_insert(database,
              "INSERT INTO step (id, parent, depth, words, created, crc, step_seconds, peak_bytes, verified) "
              "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
        , m_splice(database,
              "INSERT INTO step_splice (step, position, line, removed, removed_size, inserted, "
              "inserted_size) "
              "VALUES (?, ?, ?, ?, ?, ?, ?)")
        , m_value(
              database, "INSERT INTO step_value (step, position, name, before, after) VALUES (?, ?, ?, ?, ?)")
    {
    }

    Result<void> write(const HistoryStep &step)
    {
        std::int64_t depth = 1;
        if (step.parent != kRootStep) {
            m_depth.reset();
            m_depth.bind(1, step.parent);
            if (!m_depth.executeStep())
                return unknownStep(step.parent);
            depth += m_depth.getColumn(0).getInt64();
        }
        m_insert.reset();
        m_insert.bind(1, step.id);
        m_insert.bind(2, step.parent);
        m_insert.bind(3, depth);
        m_insert.bind(4, step.words);
        m_insert.bind(5, step.created);
        m_insert.bind(6, checksumOf(step));
        bindFigures(m_insert, 7, step.figures);
        m_insert.exec();
        std::int64_t position = 0;
        for (const TableSplice &splice : step.change.table.splices) {
            m_splice.reset();
            m_splice.bind(1, step.id);
            m_splice.bind(2, position++);
            m_splice.bind(3, splice.line);
            TRY_VOID(bindPacked(m_splice, 4, textOfLines(splice.removed)));
            TRY_VOID(bindPacked(m_splice, 6, textOfLines(splice.inserted)));
            m_splice.exec();
        }
        position = 0;
        for (const ValueChange &value : step.change.values) {
            m_value.reset();
            m_value.bind(1, step.id);
            m_value.bind(2, position++);
            m_value.bind(3, value.name);
            const auto bindOptional = [&](int index, const std::optional<std::string> &text) {
                if (text)
                    m_value.bind(index, *text);
                else
                    m_value.bind(index);
            };
            bindOptional(4, value.before);
            bindOptional(5, value.after);
            m_value.exec();
        }
        if (depth % kStepsBetweenStates == 0) {
            TRY(const DesignState state, storedState(m_database, step.id));
            TRY_VOID(writeState(m_database, step.id, state));
        }
        return {};
    }

private:
    SQLite::Database &m_database;
    SQLite::Statement m_depth;
    SQLite::Statement m_insert;
    SQLite::Statement m_splice;
    SQLite::Statement m_value;
};

Result<void> writePosition(
    SQLite::Database &database, StepId current, const std::vector<Branch> &branches, std::int32_t branch)
{
    // A step in between that was refused once is no reason to refuse all that comes later.
    const StepId last = database.execAndGet("SELECT coalesce(max(id), 0) FROM step").getInt64();
    if (current < kRootStep || current > last)
        return unknownStep(current);
    for (std::size_t i = 0; i < branches.size(); ++i) {
        if (branches[i].head < kRootStep || branches[i].head > last)
            return unknownStep(branches[i].head);
        if (branches[i].id != static_cast<std::int32_t>(i))
            return Error{ErrorCode::InvalidInput, "the branches are not numbered from 0"};
    }
    if (branch < 0 || branch >= static_cast<std::int32_t>(branches.size()))
        return Error{ErrorCode::InvalidInput, "the session has no branch " + std::to_string(branch)};
    SQLite::Statement store(database,
        "INSERT INTO branch (id, name, head) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
        "SET name = excluded.name, head = excluded.head WHERE name <> excluded.name OR head <> "
        "excluded.head");
    for (const Branch &each : branches) {
        store.reset();
        store.bind(1, each.id);
        store.bind(2, each.name);
        store.bind(3, each.head);
        store.exec();
    }
    SQLite::Statement rest(database, "DELETE FROM branch WHERE id >= ?");
    rest.bind(1, static_cast<std::int64_t>(branches.size()));
    rest.exec();
    SQLite::Statement position(
        database, "INSERT OR REPLACE INTO position (id, step, branch) VALUES (1, ?, ?)");
    position.bind(1, current);
    position.bind(2, branch);
    position.exec();
    return {};
}

Result<void> writeNames(SQLite::Database &database, const std::map<std::string, StepId> &names)
{
    database.exec("DELETE FROM step_name");
    SQLite::Statement insert(database, "INSERT INTO step_name (name, step) VALUES (?, ?)");
    for (const auto &[name, step] : names) {
        if (!holdsStep(database, step))
            return unknownStep(step);
        if (step == kRootStep)
            return Error{ErrorCode::InvalidInput, "the first state takes no name"};
        insert.reset();
        insert.bind(1, name);
        insert.bind(2, step);
        insert.exec();
    }
    return {};
}

Result<void> writeModel(
    SQLite::Database &database, const SessionModel &model, const std::filesystem::path &path)
{
    if (model.content.size() > kMostContentBytes) {
        return Error{ErrorCode::ResourceLimit,
            "the model file has " + std::to_string(model.content.size()) + " bytes; a session holds up to "
                + std::to_string(kMostContentBytes),
            "keep its weights in a file of their own (external data)", model.source};
    }
    TRY(const std::string content, deflated(model.content));
    SQLite::Statement store(database,
        "INSERT OR REPLACE INTO model (id, source, content, content_size, sha256) VALUES (1, ?, ?, ?, ?)");
    store.bind(1, storedSource(model.source, path));
    bindBlob(store, 2, content);
    store.bind(3, static_cast<std::int64_t>(model.content.size()));
    store.bind(4, sha256(model.content));
    store.exec();
    writeMap(database, "model_option", model.options);
    return {};
}

void writeClusterJson(SQLite::Database &database, const std::string &json)
{
    writeMeta(database, kClusterJson, json);
}

void writeThumbnail(SQLite::Database &database, std::optional<StepId> step, const std::string &png)
{
    SQLite::Statement store(database, "INSERT OR REPLACE INTO thumbnail (id, png) VALUES (1, ?)");
    bindBlob(store, 1, png);
    store.exec();
    if (step)
        writeMeta(database, kThumbnailStep, std::to_string(*step));
    else
        removeMeta(database, kThumbnailStep);
}

/// @return whether there is such a step
bool writeFigures(SQLite::Database &database, StepId step, const StepFigures &figures)
{
    if (step == kRootStep) { // has no row of its own
        writeMeta(database, kRootFigures, packedFigures(figures));
        return true;
    }
    SQLite::Statement update(
        database, "UPDATE step SET step_seconds = ?, peak_bytes = ?, verified = ? WHERE id = ?");
    bindFigures(update, 1, figures);
    update.bind(4, step);
    return update.exec() > 0;
}

/// All of a history, into tables that hold none.
Result<void> writeHistory(SQLite::Database &database, const History &history)
{
    TRY_VOID(writeState(database, kRootStep, history.root()));
    if (const StepFigures *figures = history.figuresOf(kRootStep))
        writeFigures(database, kRootStep, *figures);
    StepWriter steps(database);
    for (const HistoryStep &step : history.steps())
        TRY_VOID(steps.write(step));
    TRY_VOID(writePosition(database, history.current(), history.branches(), history.branch()));
    return writeNames(database, history.names());
}

/// @return its id
Result<std::int64_t> writeRun(SQLite::Database &database, const SessionRun &run)
{
    SQLite::Statement store(database,
        "INSERT OR REPLACE INTO run (id, step, created, title, state, details) VALUES (?, ?, ?, ?, ?, ?)");
    if (run.id > 0)
        store.bind(1, run.id);
    else
        store.bind(1); // SQLite gives the next
    store.bind(2, run.step);
    store.bind(3, run.created);
    store.bind(4, run.title);
    store.bind(5, run.state);
    store.bind(6, run.details);
    store.exec();
    const std::int64_t id = run.id > 0 ? run.id : database.getLastInsertRowid();
    if (!run.timeline.empty()) {
        SQLite::Statement timeline(
            database, "INSERT OR REPLACE INTO run_timeline (run, spans, spans_size) VALUES (?, ?, ?)");
        timeline.bind(1, id);
        TRY_VOID(bindPacked(timeline, 2, run.timeline));
        timeline.exec();
    }
    return id;
}

void removeRow(SQLite::Database &database, const std::string &table, const std::string &key, std::int64_t id)
{
    SQLite::Statement remove(database, "DELETE FROM " + table + " WHERE " + key + " = ?");
    remove.bind(1, id);
    remove.exec();
}

bool holdsRun(SQLite::Database &database, std::int64_t id)
{
    SQLite::Statement query(database, "SELECT 1 FROM run WHERE id = ?");
    query.bind(1, id);
    return query.executeStep();
}

/// Whether what SQLite says is about the statement and its values, and so will be said again.
bool isOfStatement(const SQLite::Exception &failure)
{
    switch (failure.getErrorCode() & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_INTERNAL:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
        return true;
    default:
        return false;
    }
}

/// Drops the cached plans that were not used for longest.
void shrinkCache(SQLite::Database &database)
{
    // Of a text, `length` would give the characters.
    const std::string bytes =
        "CASE typeof(execution) WHEN 'blob' THEN length(execution) ELSE execution_size END";
    std::int64_t size =
        database.execAndGet("SELECT coalesce(sum(" + bytes + "), 0) FROM plan_cache").getInt64();
    while (size > kMostCachedBytes) {
        SQLite::Statement oldest(
            database, "SELECT step, " + bytes + " FROM plan_cache ORDER BY used, step LIMIT 1");
        if (!oldest.executeStep())
            return;
        size -= oldest.getColumn(1).getInt64();
        const StepId step = oldest.getColumn(0).getInt64();
        oldest.reset();
        removeRow(database, "plan_cache", "step", step);
    }
}

} // namespace

Result<void> writeContents(
    SQLite::Database &database, const SessionContents &contents, const std::filesystem::path &path)
{
    TRY_VOID(writeHistory(database, contents.history));
    TRY_VOID(writeModel(database, contents.model, path));
    writeClusterJson(database, contents.clusterJson);
    writeMap(database, "view_state", contents.view);
    writeThumbnail(database, contents.thumbnailStep, contents.thumbnail);
    for (const SessionRun &run : contents.runs)
        TRY_VOID(writeRun(database, run));
    return {};
}

void SessionStore::Connection::recognize()
{
    struct stat status {
    };
    if (::stat(path.c_str(), &status) == 0) {
        device = status.st_dev;
        inode = status.st_ino;
    }
}

StepId SessionStore::Connection::storedId(StepId step) const
{
    if (storedIds.empty())
        return step;
    return step < 1 || step > static_cast<StepId>(storedIds.size())
        ? 0
        : storedIds[static_cast<std::size_t>(step - 1)];
}

Result<void> SessionStore::Connection::transaction(
    const std::string &doing, const std::function<Result<void>(SQLite::Database &)> &write)
{
    if (readOnly) {
        return Error{ErrorCode::InvalidInput,
            "the session " + quotedName(path) + " is open read-only: " + remark, "save a copy to work on",
            path.string()};
    }
    struct stat status {
    };
    if (::stat(path.c_str(), &status) != 0 || status.st_dev != device || status.st_ino != inode) {
        return Error{ErrorCode::Io,
            doing + " " + quotedName(path) + " failed: the file was removed or replaced",
            "save a copy: all of it is still here", path.string()};
    }
    try {
        SQLite::Transaction transaction(*database, SQLite::TransactionBehavior::IMMEDIATE);
        TRY_VOID(write(*database));
        transaction.commit();
    } catch (const SQLite::Exception &failure) {
        Error error = sessionFailure(path, failure, doing);
        if (isOfStatement(failure))
            error.code = ErrorCode::Internal; // the disk has nothing to do with it
        return error;
    }
    return {};
}

Result<void> SessionStore::addStep(
    const HistoryStep &step, StepId current, const std::vector<Branch> &branches, std::int32_t branch)
{
    return m_connection->transaction("adding a step to", [&](SQLite::Database &database) -> Result<void> {
        TRY_VOID(StepWriter(database).write(step));
        return writePosition(database, current, branches, branch);
    });
}

Result<void> SessionStore::replaceStep(const HistoryStep &step)
{
    return m_connection->transaction("changing a step of", [&](SQLite::Database &database) -> Result<void> {
        if (step.id == kRootStep || !holdsStep(database, step.id))
            return unknownStep(step.id);
        if (metaAt(database, kThumbnailStep) == std::to_string(step.id))
            removeMeta(database, kThumbnailStep); // it shows what the step was
        removeRow(database, "step", "id", step.id);
        for (const char *table : {"step_splice", "step_value", "state", "state_value", "plan_cache"})
            removeRow(database, table, "step", step.id);
        return StepWriter(database).write(step);
    });
}

Result<void> SessionStore::setPosition(
    StepId current, const std::vector<Branch> &branches, std::int32_t branch)
{
    return m_connection->transaction("keeping the place in",
        [&](SQLite::Database &database) { return writePosition(database, current, branches, branch); });
}

Result<void> SessionStore::setNames(const std::map<std::string, StepId> &names)
{
    return m_connection->transaction(
        "naming a step of", [&](SQLite::Database &database) { return writeNames(database, names); });
}

Result<void> SessionStore::setFigures(StepId step, const StepFigures &figures)
{
    return m_connection->transaction("keeping figures in", [&](SQLite::Database &database) -> Result<void> {
        if (!writeFigures(database, step, figures))
            return unknownStep(step);
        return {};
    });
}

Result<void> SessionStore::setModel(const SessionModel &model)
{
    return m_connection->transaction("keeping the model in",
        [&](SQLite::Database &database) { return writeModel(database, model, m_connection->path); });
}

Result<void> SessionStore::setClusterJson(const std::string &json)
{
    return m_connection->transaction(
        "keeping the cluster in", [&](SQLite::Database &database) -> Result<void> {
            writeClusterJson(database, json);
            return {};
        });
}

Result<void> SessionStore::setView(const std::map<std::string, std::string> &view)
{
    return m_connection->transaction("keeping the view in", [&](SQLite::Database &database) -> Result<void> {
        writeMap(database, "view_state", view);
        return {};
    });
}

Result<void> SessionStore::setThumbnail(StepId step, const std::string &png)
{
    return m_connection->transaction(
        "keeping the picture in", [&](SQLite::Database &database) -> Result<void> {
            if (!holdsStep(database, step))
                return unknownStep(step);
            writeThumbnail(database, step, png);
            return {};
        });
}

Result<void> SessionStore::rewrite(const SessionContents &contents)
{
    return m_connection->transaction("writing all of", [&](SQLite::Database &database) -> Result<void> {
        for (const char *table : {"step", "step_splice", "step_value", "state", "state_value", "branch",
                 "step_name", "position", "plan_cache", "run"})
            database.exec(std::string("DELETE FROM ") + table);
        removeMeta(database, kRootFigures);
        TRY_VOID(writeHistory(database, contents.history));
        TRY_VOID(writeModel(database, contents.model, m_connection->path));
        writeClusterJson(database, contents.clusterJson);
        for (const SessionRun &run : contents.runs)
            TRY_VOID(writeRun(database, run));
        database.exec("DELETE FROM run_timeline WHERE run NOT IN (SELECT id FROM run)");
        return {};
    });
}

Result<std::int64_t> SessionStore::addRun(const SessionRun &run)
{
    std::int64_t id = 0;
    TRY_VOID(m_connection->transaction("adding a run to", [&](SQLite::Database &database) -> Result<void> {
        if (run.id != 0 && holdsRun(database, run.id))
            return Error{ErrorCode::InvalidInput, "the session has a run " + std::to_string(run.id)};
        TRY(id, writeRun(database, run));
        return {};
    }));
    return id;
}

Result<void> SessionStore::updateRun(const SessionRun &run)
{
    return m_connection->transaction("changing a run of", [&](SQLite::Database &database) -> Result<void> {
        if (!holdsRun(database, run.id))
            return Error{ErrorCode::NotFound, "the session has no run " + std::to_string(run.id)};
        TRY_VOID(writeRun(database, run));
        return {};
    });
}

Result<void> SessionStore::removeRun(std::int64_t id)
{
    return m_connection->transaction("removing a run of", [&](SQLite::Database &database) -> Result<void> {
        removeRow(database, "run", "id", id);
        removeRow(database, "run_timeline", "run", id);
        return {};
    });
}

Result<std::string> SessionStore::loadRunTimeline(std::int64_t id) const
{
    try {
        SQLite::Statement query(
            *m_connection->database, "SELECT spans, spans_size FROM run_timeline WHERE run = ?");
        query.bind(1, id);
        if (!query.executeStep())
            return std::string{};
        auto spans = unpacked(query, 0);
        if (!spans)
            return damagedSession(m_connection->path,
                "the timeline of run " + std::to_string(id) + ": " + spans.error().message);
        return spans;
    } catch (const SQLite::Exception &failure) {
        return sessionFailure(m_connection->path, failure, "reading");
    }
}

Result<void> SessionStore::cachePlan(StepId step, const std::string &executionJson)
{
    const std::set<StepId> used = m_connection->usedPlans;
    TRY_VOID(m_connection->transaction("keeping a plan in", [&](SQLite::Database &database) -> Result<void> {
        if (!holdsStep(database, step))
            return unknownStep(step);
        std::int64_t now = database.execAndGet("SELECT coalesce(max(used), 0) FROM plan_cache").getInt64();
        SQLite::Statement touch(database, "UPDATE plan_cache SET used = ? WHERE step = ?");
        for (const StepId each : used) {
            touch.reset();
            touch.bind(1, now + 1);
            touch.bind(2, each);
            touch.exec();
        }
        SQLite::Statement store(database,
            "INSERT OR REPLACE INTO plan_cache (step, used, execution, execution_size) VALUES (?, ?, ?, ?)");
        store.bind(1, step);
        store.bind(2, now + 2);
        TRY_VOID(bindPacked(store, 3, executionJson));
        store.exec();
        shrinkCache(database);
        return {};
    }));
    m_connection->usedPlans.clear();
    return {};
}

Result<std::string> SessionStore::loadPlan(StepId step) const
{
    const StepId stored = m_connection->storedId(step);
    if (stored == kRootStep && step != kRootStep)
        return std::string{};
    try {
        SQLite::Statement query(
            *m_connection->database, "SELECT execution, execution_size FROM plan_cache WHERE step = ?");
        query.bind(1, stored);
        if (!query.executeStep())
            return std::string{};
        auto plan = unpacked(query, 0);
        if (!plan)
            return std::string{}; // damaged: it is made anew
        m_connection->usedPlans.insert(stored);
        return plan;
    } catch (const SQLite::Exception &failure) {
        return sessionFailure(m_connection->path, failure, "reading");
    }
}

} // namespace planloom
