#pragma once

#include "engine/base/result.h"
#include "sessions/history.h"
#include "sessions/session_file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// A run of a plan, as the session keeps it.
struct SessionRun {
    std::int64_t id = 0; ///< From 1; 0 for one not stored yet.
    StepId step = 0; ///< Whose plan ran.
    std::int64_t created = 0; ///< Milliseconds since 1970, UTC.
    std::string title{}; ///< "4 CPU devices, 3 steps"
    std::string state{}; ///< "done", "failed", "stopped", "interrupted" (by the end of the program), or under
                         ///< way: "running".
    std::string details{}; ///< JSON: options, losses, step seconds, check, error, predicted figures.
    std::string timeline{}; ///< Measured spans, as JSON (run_timeline.h); may be empty.
    friend bool operator==(const SessionRun &, const SessionRun &) = default;
};

/// All that a session holds.
struct SessionContents {
    SessionModel model{};
    std::string clusterJson{}; ///< Of a cluster that came from a file; empty for profiles.
    History history{};
    std::vector<SessionRun>
        runs{}; ///< Ascending by id; `timeline` is left out (see `SessionStore::loadRunTimeline`).
    std::map<std::string, std::string> view{}; ///< View state: what is open, zooms, docks. Not undone.
    std::string thumbnail{}; ///< PNG; may be empty.
    std::optional<StepId> thumbnailStep{}; ///< Whose plan it shows; unknown in files of older versions.
    /// How it was opened.
    bool readOnly = false; ///< From the future, damaged, on a read-only place, or open elsewhere.
    std::string remark{}; ///< Why it is read-only, or what was recovered or lost, in sentences; may be empty.
};

/// What the recent list shows of a session without opening all of it: of the step it stands at, or nothing.
struct SessionSummary {
    std::string model{};
    std::string cluster{};
    std::int32_t devices = 0;
    double stepSeconds = 0; ///< Of the current step's plan; 0 if unknown.
    std::int64_t steps = 0; ///< Without the root.
    std::string
        thumbnail{}; ///< PNG of the current step's plan; empty if there is none, or only one of another step.
    friend bool operator==(const SessionSummary &, const SessionSummary &) = default;
};
/// Quick: reads single rows, takes no lock. @return NotFound; InvalidInput if it is no session; Io
Result<SessionSummary> readSummary(const std::filesystem::path &path);

/// Reads all of the session and runs SQLite's integrity check. Takes no lock, changes nothing.
/// @return what is wrong, a sentence each; as `SessionStore::open` if it can't be opened at all
Result<std::vector<std::string>> checkSession(const std::filesystem::path &path);

/// A session that is written as people work: every call is one transaction, durable when it returns (WAL,
/// synchronous=FULL), so that an acknowledged edit survives any crash. Belongs to one thread at a time; slow
/// (a disk flush a call), so the window calls it on a worker.
///
/// While it is open a lock file beside the session ("NAME.planloom-lock", flock) tells others; it dies with
/// the process.
class SessionStore
{
public:
    SessionStore(SessionStore &&) noexcept;
    SessionStore &operator=(SessionStore &&) noexcept;
    ~SessionStore();

    /// Makes a new session with `contents`. @return InvalidInput if the file exists; Io
    static Result<SessionStore> create(const std::filesystem::path &path, const SessionContents &contents);

    /// What `open` found.
    struct Opened;
    /// Opens a session of any version up to this one's (older ones are brought up to date; version 1's table
    /// becomes the root of a history). Opens read-only, and says why in `contents.remark`: files of newer
    /// versions (as far as their tables are known), damaged ones (as far as can be read; what was lost is
    /// said), those that can't be written, and those open elsewhere. In read-only ones the calls below fail
    /// with InvalidInput.
    /// @return NotFound; InvalidInput if it is no session at all; Io
    static Result<Opened> open(const std::filesystem::path &path);

    /// Opens a session read-only, without taking the lock and without changing anything (older versions stay
    /// what they are). `contents.remark` is empty unless something was lost. @return as `open`
    static Result<Opened> openToLook(const std::filesystem::path &path);

    bool isReadOnly() const;
    const std::filesystem::path &path() const;

    // Each one transaction; where it fails, nothing was changed. @return Io with SQLite's words if the disk
    // or whoever guards it refused (full, read-only, locked): the same write may succeed later. Any other
    // error is of the write itself, which then never succeeds: it names what the session does not hold, or is
    // too large. Steps are the root or those that were added.
    /// A new step, and where the history then stands.
    Result<void> addStep(
        const HistoryStep &step, StepId current, const std::vector<Branch> &branches, std::int32_t branch);
    /// The last step was amended.
    Result<void> replaceStep(const HistoryStep &step);
    Result<void> setPosition(StepId current, const std::vector<Branch> &branches, std::int32_t branch);
    Result<void> setNames(const std::map<std::string, StepId> &names);
    Result<void> setFigures(StepId step, const StepFigures &figures); ///< Of any step, the root too.
    Result<void> setModel(const SessionModel &model);
    Result<void> setClusterJson(const std::string &json);
    Result<void> setView(const std::map<std::string, std::string> &view);
    Result<void> setThumbnail(StepId step, const std::string &png); ///< A picture of the step's plan.
    /// Model, history, cluster and runs anew, as `contents` has them, whatever the file holds: the way out
    /// where it lacks an edit. View, thumbnail and the spans of runs stay as they are.
    Result<void> rewrite(const SessionContents &contents);
    /// @return its id: `run.id`, or the next one if that is 0; InvalidInput if there is such a run
    Result<std::int64_t> addRun(const SessionRun &run);
    /// An empty `timeline` leaves the stored one. @return NotFound
    Result<void> updateRun(const SessionRun &run);
    Result<void> removeRun(std::int64_t id);
    Result<std::string> loadRunTimeline(std::int64_t id) const;
    /// The execution plan of a step, compressed: the session's cache. At most 64 MiB of them are kept, the
    /// latest used ones.
    Result<void> cachePlan(StepId step, const std::string &executionJson);
    Result<std::string> loadPlan(StepId step) const; ///< Empty if it is not there.
    /// A copy as a file of its own, whole at any moment. @return Io; InvalidInput if the file exists
    Result<void> copyTo(const std::filesystem::path &path) const;

private:
    struct Connection;
    static Result<Opened> openReadOnly(
        const std::filesystem::path &path, const std::string &reason, bool isDamaged);
    explicit SessionStore(std::unique_ptr<Connection> connection);
    std::unique_ptr<Connection> m_connection;
};

struct SessionStore::Opened {
    SessionStore store;
    SessionContents contents;
};

} // namespace planloom
