#include "engine/traces/nsight/nsight_reader.h"

#include "engine/traces/trace_builder.h"

#include <sqlite3.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

namespace {

struct CloseDatabase {
    void operator()(sqlite3 *database) const { sqlite3_close(database); }
};
struct EndStatement {
    void operator()(sqlite3_stmt *statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, EndStatement>;

constexpr int kMostTextBytes = 1 << 20; ///< Of a value.
constexpr int kInstructionsBetweenStops = 100'000; ///< Of SQLite's machine.
/// NVTX_EVENTS.eventType of ranges: of one thread, and of two.
constexpr std::int64_t kPushPopRange = 59;
constexpr std::int64_t kStartEndRange = 60;

int denyAllButReading(void *, int action, const char *, const char *, const char *, const char *)
{
    return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ? SQLITE_OK
                                                                                         : SQLITE_DENY;
}

/// A row's value where it is a whole number.
std::optional<std::int64_t> integerAt(sqlite3_stmt *row, int column)
{
    if (column < 0 || sqlite3_column_type(row, column) != SQLITE_INTEGER)
        return {};
    return sqlite3_column_int64(row, column);
}

class NsightFile
{
public:
    NsightFile(const std::filesystem::path &path, const std::stop_token &stop, std::int64_t mostRows)
        : m_where(path.string())
        , m_stop(stop)
        , m_mostRows(mostRows)
        , m_builder(m_where)
    {
    }

    Result<RankTrace> read()
    {
        TRY_VOID(open());
        TRY_VOID(readSchema());
        TRY_VOID(readStrings());
        TRY_VOID(readCalls());
        TRY_VOID(readActivities("CUPTI_ACTIVITY_KIND_KERNEL", TraceKind::Compute));
        const bool hasKernels = m_builder.eventCount() > 0;
        TRY_VOID(readActivities("CUPTI_ACTIVITY_KIND_MEMCPY", TraceKind::Copy));
        TRY_VOID(readActivities("CUPTI_ACTIVITY_KIND_MEMSET", TraceKind::Copy));
        TRY_VOID(readRanges());
        if (!hasKernels)
            return Error{ErrorCode::InvalidInput,
                m_tables.count("CUPTI_ACTIVITY_KIND_KERNEL") > 0
                    ? "no row of CUPTI_ACTIVITY_KIND_KERNEL can be read"
                    : "expected the table CUPTI_ACTIVITY_KIND_KERNEL of Nsight Systems, and there is none",
                "nsys profile --trace cuda,nvtx, then nsys export --type sqlite", m_where};
        return std::move(m_builder).finish();
    }

private:
    Error failed(const std::string &what) const
    {
        if (m_stop.stop_requested())
            return cancelled();
        return {ErrorCode::InvalidInput, what + ": " + sqlite3_errmsg(m_database.get()),
            "export the report anew with nsys export --type sqlite", m_where};
    }

    Result<void> open()
    {
        sqlite3 *opened = nullptr;
        const int status = sqlite3_open_v2(m_where.c_str(), &opened,
            SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nullptr);
        m_database.reset(opened);
        if (status != SQLITE_OK)
            return Error{ErrorCode::Io, "the file cannot be opened as a database", {}, m_where};
        sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
        sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
        sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
        sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
        sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kMostTextBytes);
        sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
        sqlite3_progress_handler(
            opened, kInstructionsBetweenStops,
            [](void *stop) { return static_cast<std::stop_token *>(stop)->stop_requested() ? 1 : 0; },
            &m_stop);
        return {};
    }

    /// Calls `work` for each row of a statement.
    Result<void> forEachRow(const std::string &query, const std::function<void(sqlite3_stmt *)> &work)
    {
        sqlite3_stmt *made = nullptr;
        const int prepared = sqlite3_prepare_v2(m_database.get(), query.c_str(), -1, &made, nullptr);
        const Statement statement(made);
        if (prepared != SQLITE_OK)
            return failed("the database cannot be read");
        int status = SQLITE_ROW;
        while ((status = sqlite3_step(made)) == SQLITE_ROW)
            work(made);
        // What stands before damage is read; a database whose every table is damaged has no kernels.
        if (m_stop.stop_requested())
            return cancelled();
        if (status != SQLITE_DONE)
            m_builder.remark(std::string("a table is damaged (") + sqlite3_errmsg(m_database.get()) + ")",
                m_builder.eventCount());
        return {};
    }

    /// Tables with their columns. Views are not read: what they do is up to the file.
    Result<void> readSchema()
    {
        std::vector<std::string> names;
        TRY_VOID(forEachRow("SELECT name, type FROM sqlite_master", [&](sqlite3_stmt *row) {
            if (sqlite3_column_type(row, 0) != SQLITE_TEXT || sqlite3_column_type(row, 1) != SQLITE_TEXT)
                return;
            const std::string name = textAt(row, 0);
            if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789")
                != std::string::npos)
                return;
            const bool isWanted =
                name.starts_with("CUPTI_ACTIVITY_KIND_") || name == "NVTX_EVENTS" || name == "StringIds";
            if (textAt(row, 1) == "table")
                names.push_back(name);
            else if (isWanted)
                m_builder.remark(
                    name + " is a " + textAt(row, 1).substr(0, 16) + ", not a table, and is not read", 0);
        }));
        for (const std::string &name : names)
            TRY_VOID(forEachRow("SELECT name FROM pragma_table_info('" + name + "')", [&](sqlite3_stmt *row) {
                if (sqlite3_column_type(row, 0) == SQLITE_TEXT)
                    m_tables[name].insert(textAt(row, 0));
            }));
        sqlite3_set_authorizer(m_database.get(), denyAllButReading, nullptr);
        return {};
    }

    static std::string textAt(sqlite3_stmt *row, int column)
    {
        const auto *text = reinterpret_cast<const char *>(sqlite3_column_text(row, column)); // bytes of UTF-8
        return text ? std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(row, column)))
                    : std::string();
    }

    /// "start, end" as far as the table has them, and the index of each; missing ones are NULL.
    std::string columnsOf(const std::string &table, const std::vector<std::string> &wanted) const
    {
        std::string list;
        const std::set<std::string> &has = m_tables.at(table);
        for (const std::string &column : wanted)
            list += (list.empty() ? "" : ", ")
                + (has.count(column) > 0 ? "\"" + column + "\"" : std::string("NULL"));
        return list;
    }

    Result<void> forEachRowOf(const std::string &table, const std::vector<std::string> &columns,
        const std::function<void(sqlite3_stmt *)> &work)
    {
        if (m_tables.count(table) == 0)
            return {};
        return forEachRow(
            "SELECT " + columnsOf(table, columns) + " FROM " + table + " LIMIT " + std::to_string(m_mostRows),
            work);
    }

    Result<void> readStrings()
    {
        return forEachRowOf("StringIds", {"id", "value"}, [&](sqlite3_stmt *row) {
            const auto id = integerAt(row, 0);
            if (id && sqlite3_column_type(row, 1) == SQLITE_TEXT)
                m_strings.emplace(*id, textAt(row, 1).substr(0, kMostTraceName));
        });
    }

    Result<void> readCalls()
    {
        TRY_VOID(
            forEachRowOf("CUPTI_ACTIVITY_KIND_RUNTIME", {"correlationId", "start"}, [&](sqlite3_stmt *row) {
                const auto correlation = integerAt(row, 0);
                const auto start = integerAt(row, 1);
                if (correlation && start)
                    m_calls.emplace_back(*correlation, *start);
            }));
        std::sort(m_calls.begin(), m_calls.end());
        return {};
    }

    std::string nameAt(sqlite3_stmt *row, int column) const
    {
        if (sqlite3_column_type(row, column) == SQLITE_TEXT)
            return textAt(row, column);
        const auto id = integerAt(row, column);
        const auto found = id ? m_strings.find(*id) : m_strings.end();
        return found == m_strings.end() ? std::string() : found->second;
    }

    /// Start and duration, or a remark.
    bool readTimes(sqlite3_stmt *row, TraceEvent &event, std::uint64_t number)
    {
        const auto start = integerAt(row, 0);
        const auto end = integerAt(row, 1);
        if (!start || !end)
            m_builder.remark("start or end is no whole number", number);
        else if (*start < -kMostTraceTime || *start > kMostTraceTime || *end < -kMostTraceTime
            || *end > kMostTraceTime)
            m_builder.remark("the time is out of range", number);
        else {
            event.start = *start;
            event.duration = *end - *start;
            return true;
        }
        return false;
    }

    Result<void> readActivities(const std::string &table, TraceKind kind)
    {
        std::uint64_t number = 0;
        return forEachRowOf(table,
            {"start", "end", "deviceId", "streamId", "correlationId", "demangledName", "shortName"},
            [&](sqlite3_stmt *row) {
                TraceEvent event;
                if (!readTimes(row, event, ++number))
                    return;
                const auto device = integerAt(row, 2);
                const auto stream = integerAt(row, 3);
                if (!stream) {
                    m_builder.remark("streamId is no whole number", number);
                    return;
                }
                event.kind = kind;
                std::string name = nameAt(row, 5);
                if (name.empty())
                    name = nameAt(row, 6);
                if (name.empty())
                    name = kind == TraceKind::Copy ? "memory copy" : "kernel without a name";
                const std::string shortName = nameAt(row, 6);
                if (kind == TraceKind::Compute && isNcclKernel(shortName.empty() ? name : shortName)) {
                    event.kind = communicationNamed(shortName.empty() ? name : shortName);
                    event.link = m_builder.collective({});
                }
                event.name = m_builder.name(name);
                event.lane =
                    m_builder.lane((device.value_or(0) > 0 ? "device " + std::to_string(*device) + " " : "")
                            + "stream " + std::to_string(*stream),
                        false);
                const auto correlation = integerAt(row, 4);
                const auto call = std::lower_bound(
                    m_calls.begin(), m_calls.end(), std::pair(correlation.value_or(-1), kNoTime));
                if (correlation && call != m_calls.end() && call->first == *correlation
                    && call->second <= event.start && call->second >= event.start - kMostTraceExtent)
                    event.launch = call->second;
                m_builder.add(event, number);
            });
    }

    static bool isNcclKernel(const std::string &name)
    {
        return name.starts_with("nccl") || name.find("ncclDevKernel") != std::string::npos
            || name.find("ncclKernel") != std::string::npos;
    }

    Result<void> readRanges()
    {
        std::uint64_t number = 0;
        return forEachRowOf(
            "NVTX_EVENTS", {"start", "end", "eventType", "text", "textId"}, [&](sqlite3_stmt *row) {
                ++number;
                const auto type = integerAt(row, 2);
                if (type && *type != kPushPopRange && *type != kStartEndRange)
                    return;
                if (sqlite3_column_type(row, 1) == SQLITE_NULL) // a mark, or a range that was never ended
                    return;
                TraceEvent event;
                if (!readTimes(row, event, number))
                    return;
                std::string name = nameAt(row, 3);
                if (name.empty())
                    name = nameAt(row, 4);
                const auto step = stepNumberIn(name);
                event.kind = step ? TraceKind::Step : TraceKind::Annotation;
                event.link = step.value_or(kNoLink);
                event.name = m_builder.name(name);
                event.lane = m_builder.lane(step ? "steps" : "annotations", true);
                m_builder.add(event, number);
            });
    }

    std::string m_where;
    std::stop_token m_stop;
    std::int64_t m_mostRows;
    RankTraceBuilder m_builder;
    std::unique_ptr<sqlite3, CloseDatabase> m_database{};
    std::map<std::string, std::set<std::string>> m_tables{};
    std::map<std::int64_t, std::string> m_strings{};
    std::vector<std::pair<std::int64_t, std::int64_t>> m_calls{}; ///< Correlation and start.
};

} // namespace

bool isSqlite(std::string_view beginning)
{
    return beginning.starts_with(std::string_view("SQLite format 3\0", 16));
}

Result<RankTrace> readNsight(
    const std::filesystem::path &path, const std::stop_token &stop, std::int64_t mostRows)
{
    return NsightFile(path, stop, mostRows).read();
}

} // namespace planloom
