#include "sessions/session_reader.h"

#include "engine/base/digest.h"
#include "sessions/compress.h"
#include "sessions/session_database.h"
#include "sessions/session_schema.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostDevices = 65536;

std::string textAt(SQLite::Statement &query, int column)
{
    return query.getColumn(column).getString();
}

/// The expression for the model's name.
std::string sourceColumn(SQLite::Database &database)
{
    return modelSourceColumn(database.execAndGet("PRAGMA user_version").getInt());
}

/// A step's id as it is written in "meta".
std::optional<StepId> stepIn(const std::optional<std::string> &text)
{
    StepId id = 0;
    const char *end = text ? text->data() + text->size() : nullptr;
    if (!text || std::from_chars(text->data(), end, id).ptr != end || text->empty())
        return std::nullopt;
    return id;
}

/// Pieces of different kinds as one text that only they give.
class Fingerprint
{
public:
    void add(std::int64_t number) { m_bytes += std::to_string(number) + ";"; }
    void add(const std::string &text)
    {
        add(static_cast<std::int64_t>(text.size()));
        m_bytes += text;
    }
    void add(const std::optional<std::string> &text)
    {
        if (text)
            add(*text);
        else
            m_bytes += "-";
    }
    std::int64_t checksum() const { return planloom::checksum(m_bytes); }

private:
    std::string m_bytes{};
};

/// Reads the parts of one session, and gathers what is lost.
class Reader
{
public:
    Reader(SQLite::Database &database, const std::filesystem::path &path)
        : m_database(database)
        , m_path(path)
    {
    }

    ReadSession read()
    {
        bool isOld = false;
        part("its tables",
            [&] { isOld = !hasTable(m_database, "step") && hasTable(m_database, "constraint_row"); });
        part("the model", [&] { readModel(); });
        part("the model's options", [&] {
            if (isTable("model_option"))
                contents().model.options = readMap(m_database, "model_option");
        });
        if (isOld) {
            readVersion1();
        } else {
            readHistory();
            part("the cluster", [&] { readMeta(); });
            part("runs", [&] { readRuns(); });
            part("the picture", [&] { readThumbnail(); });
        }
        part("the view", [&] {
            if (isTable("view_state"))
                contents().view = readMap(m_database, "view_state");
        });
        return std::move(m_result);
    }

private:
    SessionContents &contents() { return m_result.contents; }
    void lose(const std::string &what, const std::string &why)
    {
        m_result.losses.push_back(what + ": " + why);
    }

    /// @return whether all of it was read
    bool part(const std::string &what, const std::function<void()> &read)
    {
        try {
            read();
            return true;
        } catch (const SQLite::Exception &failure) {
            lose(what, failure.what());
            return false;
        }
    }

    /// Says so if the table is missing.
    bool isTable(const std::string &table)
    {
        if (hasTable(m_database, table))
            return true;
        lose("the table \"" + table + "\"", "it is missing");
        return false;
    }

    void readModel()
    {
        if (!isTable("model"))
            return;
        SQLite::Statement query(
            m_database, "SELECT " + sourceColumn(m_database) + ", content, content_size, sha256 FROM model");
        if (!query.executeStep())
            return;
        SessionModel &model = contents().model;
        model.source = foundSource(textAt(query, 0), m_path);
        const std::int64_t size = query.getColumn(2).getInt64();
        auto content = inflated(textAt(query, 1),
            size < 0 ? kMostContentBytes + 1 : static_cast<std::size_t>(size), kMostContentBytes);
        if (!content) {
            lose("the model",
                "its bytes are lost (" + content.error().message + "); its name is " + model.source);
        } else if (textAt(query, 3) != sha256(*content)) {
            lose("the model",
                "its bytes do not match their digest and were left out; its name is " + model.source);
        } else {
            model.content = *std::move(content);
            model.sha256 = textAt(query, 3);
        }
    }

    void readVersion1()
    {
        DesignState root;
        std::size_t count = 0;
        std::string text;
        if (!part("rows", [&] {
                SQLite::Statement rows(m_database, "SELECT line FROM constraint_row ORDER BY position");
                for (; rows.executeStep(); ++count)
                    text += textAt(rows, 0) + "\n";
            }))
            lose("rows", "only the first " + std::to_string(count) + " can be read");
        root.table = TableDocument(text);
        part("the cluster", [&] {
            if (!isTable("cluster"))
                return;
            SQLite::Statement cluster(m_database, "SELECT name, json, device_count FROM cluster");
            if (!cluster.executeStep())
                return;
            contents().clusterJson = textAt(cluster, 1);
            root.values["cluster"] = textAt(cluster, 0);
            const std::int64_t devices = cluster.getColumn(2).getInt64();
            if (devices < 1 || devices > kMostDevices)
                lose("the cluster", "it asks for " + std::to_string(devices) + " devices");
            else
                root.values["devices"] = std::to_string(devices);
        });
        contents().history = History(std::move(root));
    }

    /// Reads rows in order; behind damage, what can still be reached from the end. @return whether all of it
    /// was read
    bool readBothWays(const std::string &what, const std::string &table, const std::string &columns,
        const std::string &order, const std::string &backwards,
        const std::function<void(SQLite::Statement &)> &take)
    {
        const std::string select = "SELECT " + columns + " FROM " + table + " ORDER BY ";
        const auto run = [&](const std::string &by) {
            SQLite::Statement query(m_database, select + by);
            while (query.executeStep())
                take(query);
        };
        bool isThere = false;
        part(what, [&] { isThere = isTable(table); });
        if (!isThere)
            return false;
        try {
            run(order);
            return true;
        } catch (const SQLite::Exception &failure) {
            lose(what, std::string("some cannot be read: ") + failure.what());
        }
        try {
            run(backwards);
        } catch (const SQLite::Exception &) {
            // The same damage, met from the other side.
        }
        return false;
    }

    void readStates(StoredHistory &stored)
    {
        std::map<StepId, std::optional<std::int64_t>> checks;
        std::map<StepId, DesignState> states;
        readBothWays("whole states", "state", "step, text, text_size, crc", "step", "step DESC",
            [&](SQLite::Statement &query) {
                const StepId id = query.getColumn(0).getInt64();
                auto text = unpacked(query, 1);
                if (!text) {
                    lose("the table after step " + std::to_string(id), text.error().message);
                    return;
                }
                states[id].table = TableDocument(*text);
                checks[id] =
                    query.isColumnNull(3) ? std::nullopt : std::optional(query.getColumn(3).getInt64());
            });
        readBothWays("values", "state_value", "step, name, value", "step, name", "step DESC, name",
            [&](SQLite::Statement &query) {
                const StepId id = query.getColumn(0).getInt64();
                if (id == 0 || states.count(id) != 0)
                    states[id].values[textAt(query, 1)] = textAt(query, 2);
            });
        for (auto &[id, state] : states) {
            const bool isSound = !checks[id] || *checks[id] == checksumOf(state);
            if (!isSound)
                lose(id == 0 ? "the first state" : "the state after step " + std::to_string(id),
                    "it was changed by damage");
            if (id == 0)
                stored.root = std::move(state); // as far as it goes: all else builds on it
            else if (isSound && checks[id])
                stored.states[id] = std::move(state);
        }
        if (states.count(0) == 0)
            lose("the first state", "it is missing");
    }

    void readSteps(StoredHistory &stored)
    {
        std::map<StepId, HistoryStep> steps;
        std::map<StepId, std::int64_t> checks;
        readBothWays("steps", "step", "id, parent, words, created, crc, step_seconds, peak_bytes, verified",
            "id", "id DESC", [&](SQLite::Statement &query) {
                HistoryStep step;
                step.id = query.getColumn(0).getInt64();
                step.parent = query.getColumn(1).getInt64();
                step.words = textAt(query, 2);
                step.created = query.getColumn(3).getInt64();
                if (!query.isColumnNull(6)) {
                    step.figures = StepFigures{query.getColumn(5).getDouble(), query.getColumn(6).getInt64(),
                        query.getColumn(7).getInt() != 0};
                }
                checks[step.id] = query.getColumn(4).getInt64();
                steps[step.id] = std::move(step);
            });
        // By position: behind damage, rows may be met twice.
        std::map<StepId, std::map<std::int64_t, TableSplice>> splices;
        readBothWays("changes of rows", "step_splice",
            "step, position, line, removed, removed_size, inserted, inserted_size", "step, position",
            "step DESC, position", [&](SQLite::Statement &query) {
                const auto removed = unpacked(query, 3);
                const auto inserted = unpacked(query, 5);
                const std::int64_t line = query.getColumn(2).getInt64();
                if (removed && inserted && line >= 0 && line <= INT32_MAX) { // else the checksum tells
                    splices[query.getColumn(0).getInt64()][query.getColumn(1).getInt64()] = {
                        static_cast<std::int32_t>(line), linesOfText(*removed), linesOfText(*inserted)};
                }
            });
        std::map<StepId, std::map<std::int64_t, ValueChange>> values;
        readBothWays("changes of values", "step_value", "step, position, name, before, after",
            "step, position", "step DESC, position", [&](SQLite::Statement &query) {
                const auto optional = [&](int column) {
                    return query.isColumnNull(column) ? std::nullopt : std::optional(textAt(query, column));
                };
                values[query.getColumn(0).getInt64()][query.getColumn(1).getInt64()] = {
                    textAt(query, 2), optional(3), optional(4)};
            });
        for (auto &[id, step] : steps) {
            for (auto &[position, splice] : splices[id])
                step.change.table.splices.push_back(std::move(splice));
            for (auto &[position, value] : values[id])
                step.change.values.push_back(std::move(value));
        }
        std::size_t changed = 0;
        for (auto &[id, step] : steps) {
            if (checks[id] == checksumOf(step))
                stored.steps.push_back(std::move(step));
            else
                ++changed;
        }
        if (changed > 0)
            lose("steps", std::to_string(changed) + " cannot be read whole");
    }

    void readHistory()
    {
        StoredHistory stored;
        readStates(stored);
        readSteps(stored);
        readBothWays("branches", "branch", "id, name, head", "id", "id DESC", [&](SQLite::Statement &query) {
            const std::int64_t id = query.getColumn(0).getInt64();
            if (id == static_cast<std::int64_t>(stored.branches.size()))
                stored.branches.push_back(
                    {static_cast<std::int32_t>(id), textAt(query, 1), query.getColumn(2).getInt64()});
        });
        part("names of steps", [&] {
            if (!isTable("step_name"))
                return;
            SQLite::Statement query(m_database, "SELECT name, step FROM step_name");
            while (query.executeStep())
                stored.names[textAt(query, 0)] = query.getColumn(1).getInt64();
        });
        bool hasPosition = false;
        part("where it stood", [&] {
            if (!isTable("position"))
                return;
            SQLite::Statement query(m_database, "SELECT step, branch FROM position");
            hasPosition = query.executeStep();
            if (!hasPosition)
                return;
            stored.current = query.getColumn(0).getInt64();
            const std::int64_t branch = query.getColumn(1).getInt64();
            stored.branch = branch < 0 || branch > INT32_MAX ? -1 : static_cast<std::int32_t>(branch);
        });
        if (!hasPosition && !stored.steps.empty()) {
            stored.current = stored.steps.back().id; // the newest work
            stored.branch = -1;
            lose("where it stood", "it is missing");
        }
        MendedHistory mended = mendHistory(std::move(stored));
        contents().history = std::move(mended.history);
        m_result.storedIds = std::move(mended.storedIds);
        for (std::string &loss : mended.losses)
            m_result.losses.push_back(std::move(loss));
    }

    void readMeta()
    {
        if (!isTable("meta"))
            return;
        if (auto json = metaAt(m_database, kClusterJson))
            contents().clusterJson = *std::move(json);
        const auto figures = metaAt(m_database, kRootFigures);
        if (const auto known = unpackedFigures(figures.value_or("")))
            contents().history.setFigures(kRootStep, *known);
    }

    void readRuns()
    {
        std::map<std::int64_t, SessionRun> runs;
        readBothWays("runs", "run", "id, step, created, title, state, details", "id", "id DESC",
            [&](SQLite::Statement &query) {
                const std::int64_t id = query.getColumn(0).getInt64();
                runs[id] = {id, query.getColumn(1).getInt64(), query.getColumn(2).getInt64(),
                    textAt(query, 3), textAt(query, 4), textAt(query, 5), {}};
            });
        std::map<StepId, StepId> newIds;
        for (std::size_t i = 0; i < m_result.storedIds.size(); ++i)
            newIds[m_result.storedIds[i]] = static_cast<StepId>(i) + 1;
        for (auto &[id, run] : runs) {
            if (!newIds.empty()) {
                const auto found = newIds.find(run.step);
                run.step = found == newIds.end() ? 0 : found->second;
            }
            contents().runs.push_back(std::move(run));
        }
    }

    void readThumbnail()
    {
        if (!isTable("thumbnail"))
            return;
        SQLite::Statement query(m_database, "SELECT png FROM thumbnail");
        if (query.executeStep())
            contents().thumbnail = textAt(query, 0);
        if (!hasTable(m_database, "meta") || !m_result.storedIds.empty())
            return; // the steps have other ids now
        const auto step = stepIn(metaAt(m_database, kThumbnailStep));
        if (step && contents().history.holds(*step))
            contents().thumbnailStep = step;
    }

    SQLite::Database &m_database;
    const std::filesystem::path &m_path;
    ReadSession m_result{};
};

} // namespace

std::string textOfLines(const std::vector<std::string> &lines)
{
    std::string text;
    for (const std::string &line : lines)
        text += line + "\n";
    return text;
}

std::vector<std::string> linesOfText(std::string_view text)
{
    std::vector<std::string> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

std::int64_t checksumOf(const HistoryStep &step)
{
    Fingerprint print;
    print.add(step.id);
    print.add(step.parent);
    print.add(step.created);
    print.add(step.words);
    for (const TableSplice &splice : step.change.table.splices) {
        print.add(splice.line);
        print.add(textOfLines(splice.removed));
        print.add(textOfLines(splice.inserted));
    }
    for (const ValueChange &value : step.change.values) {
        print.add(value.name);
        print.add(value.before);
        print.add(value.after);
    }
    return print.checksum();
}

std::int64_t checksumOf(const DesignState &state)
{
    Fingerprint print;
    print.add(state.table.text());
    for (const auto &[name, value] : state.values) {
        print.add(name);
        print.add(value);
    }
    return print.checksum();
}

ReadSession readSession(SQLite::Database &database, const std::filesystem::path &path)
{
    try {
        SQLite::Transaction transaction(database); // one state, whatever others write meanwhile
        return Reader(database, path).read();
    } catch (const SQLite::Exception &) {
        return Reader(database, path).read(); // says itself what it can't read
    }
}

namespace {

/// The value `name` at the step the session stands at. @return empty if there is none
std::string currentValue(SQLite::Database &database, const std::string &name)
{
    // Up from the current step to the first one that sets the value. A parent comes before its step, so it
    // ends.
    SQLite::Statement up(database,
        "WITH RECURSIVE way(id) AS (SELECT step FROM position UNION "
        "SELECT step.parent FROM step JOIN way ON step.id = way.id WHERE step.parent < step.id) "
        "SELECT after FROM way JOIN step_value ON step_value.step = way.id WHERE name = ? "
        "ORDER BY way.id DESC, step_value.position DESC LIMIT 1");
    up.bind(1, name);
    if (up.executeStep())
        return textAt(up, 0);
    SQLite::Statement root(database, "SELECT value FROM state_value WHERE step = 0 AND name = ?");
    root.bind(1, name);
    return root.executeStep() ? textAt(root, 0) : std::string{};
}

std::int32_t deviceCount(const std::string &text)
{
    char *end = nullptr;
    const long count = std::strtol(text.c_str(), &end, 10);
    return count >= 1 && count <= kMostDevices ? static_cast<std::int32_t>(count) : 0;
}

} // namespace

SessionSummary readSessionSummary(SQLite::Database &database, const std::filesystem::path &path)
{
    SessionSummary summary;
    SQLite::Statement model(database, "SELECT " + sourceColumn(database) + " FROM model");
    if (model.executeStep())
        summary.model = foundSource(textAt(model, 0), path);
    if (!hasTable(database, "step")) {
        SQLite::Statement cluster(database, "SELECT name, CAST(device_count AS TEXT) FROM cluster");
        if (cluster.executeStep()) {
            summary.cluster = textAt(cluster, 0);
            summary.devices = deviceCount(textAt(cluster, 1));
        }
        SQLite::Statement plan(database, "SELECT summary FROM plan");
        if (plan.executeStep()) {
            const auto figures = nlohmann::json::parse(textAt(plan, 0), nullptr, false);
            if (figures.is_object() && figures.contains("step_seconds")
                && figures["step_seconds"].is_number())
                summary.stepSeconds = figures["step_seconds"].get<double>();
        }
        return summary;
    }
    summary.cluster = currentValue(database, "cluster");
    summary.devices = deviceCount(currentValue(database, "devices"));
    SQLite::Statement position(database, "SELECT step FROM position");
    const StepId current = position.executeStep() ? position.getColumn(0).getInt64() : kRootStep;
    double seconds = 0;
    if (current == kRootStep) {
        const auto figures = unpackedFigures(metaAt(database, kRootFigures).value_or(""));
        seconds = figures ? figures->stepSeconds : 0;
    } else {
        SQLite::Statement figures(
            database, "SELECT step_seconds FROM step WHERE id = ? AND peak_bytes NOT NULL");
        figures.bind(1, current);
        if (figures.executeStep())
            seconds = figures.getColumn(0).getDouble();
    }
    summary.stepSeconds = std::isfinite(seconds) && seconds > 0 ? seconds : 0;
    summary.steps = database.execAndGet("SELECT count(*) FROM step").getInt64();
    SQLite::Statement thumbnail(database, "SELECT png FROM thumbnail");
    if (stepIn(metaAt(database, kThumbnailStep)) == current && thumbnail.executeStep())
        summary.thumbnail = textAt(thumbnail, 0);
    return summary;
}

Result<DesignState> storedState(SQLite::Database &database, StepId id)
{
    const Error misfit{ErrorCode::InvalidInput, "the history does not lead to step " + std::to_string(id)};
    SQLite::Statement state(database, "SELECT text, text_size FROM state WHERE step = ?");
    SQLite::Statement parent(database, "SELECT parent FROM step WHERE id = ?");
    std::vector<StepId> way;
    for (;; state.reset()) {
        state.bind(1, id);
        if (state.executeStep())
            break;
        parent.reset();
        parent.bind(1, id);
        if (id <= 0 || !parent.executeStep() || parent.getColumn(0).getInt64() >= id)
            return misfit;
        way.push_back(id);
        id = parent.getColumn(0).getInt64();
    }
    DesignState result;
    TRY(const std::string text, unpacked(state, 0));
    result.table = TableDocument(text);
    SQLite::Statement values(database, "SELECT name, value FROM state_value WHERE step = ?");
    values.bind(1, id);
    while (values.executeStep())
        result.values[textAt(values, 0)] = textAt(values, 1);
    SQLite::Statement splices(database,
        "SELECT line, removed, removed_size, inserted, inserted_size FROM step_splice WHERE step = ? ORDER "
        "BY position");
    SQLite::Statement changes(
        database, "SELECT name, before, after FROM step_value WHERE step = ? ORDER BY position");
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
        DesignChange change;
        splices.reset();
        splices.bind(1, *step);
        while (splices.executeStep()) {
            TRY(const std::string removed, unpacked(splices, 1));
            TRY(const std::string inserted, unpacked(splices, 3));
            change.table.splices.push_back(
                {splices.getColumn(0).getInt(), linesOfText(removed), linesOfText(inserted)});
        }
        changes.reset();
        changes.bind(1, *step);
        while (changes.executeStep()) {
            const auto optional = [&](int column) {
                return changes.isColumnNull(column) ? std::nullopt : std::optional(textAt(changes, column));
            };
            change.values.push_back({textAt(changes, 0), optional(1), optional(2)});
        }
        TRY_VOID(apply(result, change));
    }
    return result;
}

} // namespace planloom
