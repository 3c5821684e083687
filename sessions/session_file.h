#pragma once

#include "engine/base/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// The model of a session. Holds the file itself, so that a session opens where the model is not.
struct SessionModel {
    std::string source{}; ///< Path of the .onnx file, or a zoo name ("zoo:gpt?layers=12").
    std::string content{}; ///< Bytes of the .onnx file (its graph; weights beside it stay there); empty for the zoo.
    std::string sha256{}; ///< Of `content`, in hexadecimal; filled in by `save`.
    std::map<std::string, std::string> options{}; ///< Import options by name: "loss", "dim.batch" ...
    friend bool operator==(const SessionModel &, const SessionModel &) = default;
};

/// The cluster that is planned for.
struct SessionCluster {
    std::string name{}; ///< Profile ("dgx-a100") or the path of the file it came from.
    std::string json{}; ///< The cluster itself, for files; empty for profiles.
    std::int32_t deviceCount = 1; ///< At least 1.
    friend bool operator==(const SessionCluster &, const SessionCluster &) = default;
};

/// The last plan that was made of the rows.
struct SessionPlan {
    std::string tableSha256{}; ///< Of the table's text: tells whether the plan is that of the rows.
    std::string summary{}; ///< JSON object of figures: "step_seconds", "peak_bytes" ...
    std::string execution{}; ///< The execution plan as JSON (execution_plan_json.h); may be empty.
    friend bool operator==(const SessionPlan &, const SessionPlan &) = default;
};

/// Everything a session holds.
struct SessionData {
    SessionModel model{};
    SessionCluster cluster{};
    /// The constraint table as text (table_text.h), kept line by line exactly as written; lines end in "\n".
    std::string tableText{};
    std::optional<SessionPlan> plan{};
    std::map<std::string, std::string> view{}; ///< View state by name: "theme", "dag.expanded" ...
    friend bool operator==(const SessionData &, const SessionData &) = default;
};

/// An open session: one SQLite database in WAL mode, marked by `application_id` and versioned by `user_version`.
///
/// Writes are transactions: after a crash the file holds the last save as a whole. Each connection belongs to one
/// thread; the object may be moved to another thread between calls.
class SessionFile
{
public:
    SessionFile(SessionFile &&) noexcept;
    SessionFile &operator=(SessionFile &&) noexcept;
    ~SessionFile();

    /// Opens an existing session, bringing older versions up to date.
    /// @return NotFound; InvalidInput for files that are no session or are damaged (they are not changed);
    ///   NotSupported for versions of the future; Io
    static Result<SessionFile> open(const std::filesystem::path &path);

    /// Makes a new, empty session file.
    /// @return InvalidInput if something with that name exists; Io
    static Result<SessionFile> create(const std::filesystem::path &path);

    /// Everything in it. @return InvalidInput if it is damaged: what is missing or wrong; Io
    Result<SessionData> load() const;

    /// Replaces everything by `data`, in one transaction.
    /// @return InvalidInput for a device count below 1; Io (disk full, read-only, locked): the file is as before
    Result<void> save(const SessionData &data);

    const std::filesystem::path &path() const;

private:
    struct Connection;
    explicit SessionFile(std::unique_ptr<Connection> connection);
    std::unique_ptr<Connection> m_connection;
};

/// What could be read of a damaged session, and what could not.
struct SalvagedSession {
    SessionData data{};
    std::vector<std::string> losses{}; ///< A sentence each; empty if nothing was lost.
};

/// Reads as much of the session at `path` as can be read, part by part: rows up to the first damaged one, then model,
/// cluster, plan and view each on its own. The file is opened read-only and stays as it is.
/// @return NotFound; InvalidInput if it is no session at all; Io
Result<SalvagedSession> salvageSession(const std::filesystem::path &path);

/// True if the file at `path` begins as an SQLite database does: it is a session rather than a model. Reads 16 bytes.
bool looksLikeSession(const std::filesystem::path &path);

/// Opens the session at `path` if there is one, makes it otherwise, and saves `data` into it.
Result<void> saveSession(const std::filesystem::path &path, const SessionData &data);

} // namespace planloom
