#pragma once

#include "sessions/session_lock.h"
#include "sessions/session_store.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <SQLiteCpp/Transaction.h>

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace planloom {

/// A folder that goes with the object; holds a copy of a session that can't be read in its place.
class TemporaryFolder
{
public:
    explicit TemporaryFolder(std::filesystem::path path)
        : m_path(std::move(path))
    {
    }
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;
    ~TemporaryFolder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }
    const std::filesystem::path &path() const { return m_path; }

private:
    std::filesystem::path m_path;
};

/// What an open session consists of. For `sessions/` alone.
struct SessionStore::Connection {
    std::filesystem::path path{};
    std::optional<SessionLock> lock{}; ///< Released last, when the database is closed.
    std::unique_ptr<TemporaryFolder> folder{};
    std::unique_ptr<SQLite::Database> database{};
    bool readOnly = false;
    std::string remark{}; ///< Why it is read-only.
    std::vector<StepId> storedIds{}; ///< As in `MendedHistory`.
    dev_t device = 0; ///< With `inode`: by which a file that was removed or replaced is noticed.
    ino_t inode = 0;
    std::set<StepId> usedPlans{}; ///< Read since the last write to the cache.

    /// Carries `write` out in one transaction. @return its error, or why nothing can be written
    Result<void> transaction(
        const std::string &doing, const std::function<Result<void>(SQLite::Database &)> &write);

    /// Remembers which file `path` is.
    void recognize();

    /// The id in the file of a step of the history as it was given out; 0 if it has none.
    StepId storedId(StepId step) const;
};

/// Writes all of `contents` into a database that has only its tables.
Result<void> writeContents(
    SQLite::Database &database, const SessionContents &contents, const std::filesystem::path &path);

} // namespace planloom
