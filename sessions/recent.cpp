#include "sessions/recent.h"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

namespace planloom {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostListBytes = std::size_t{1} << 20;
constexpr std::size_t kMostTextBytes = 4096;
constexpr const char *kListName = "recent.json";
constexpr const char *kThumbnailPrefix = "recent-";
constexpr const char *kThumbnailSuffix = ".png";

Error refused(const fs::path &path, int reason)
{
    return {ErrorCode::Io,
        "the list of recent sessions cannot be kept: " + std::string(std::strerror(reason)),
        "look whether the folder may be written and the disk has room", path.string()};
}

/// Replaces `path` by a file with `bytes`, in one step.
Result<void> replaceFile(const fs::path &path, const std::string &bytes)
{
    std::string name = path.string() + ".XXXXXX";
    const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
    if (descriptor < 0)
        return refused(path, errno);
    int reason = 0;
    for (std::size_t done = 0; done < bytes.size() && reason == 0;) {
        const ssize_t count = ::write(descriptor, bytes.data() + done, bytes.size() - done);
        if (count >= 0)
            done += static_cast<std::size_t>(count);
        else if (errno != EINTR)
            reason = errno;
    }
    if (reason == 0 && ::fsync(descriptor) != 0)
        reason = errno;
    ::close(descriptor);
    if (reason == 0 && ::rename(name.c_str(), path.c_str()) != 0)
        reason = errno;
    if (reason != 0) {
        ::unlink(name.c_str());
        return refused(path, reason);
    }
    return {};
}

/// Lets one process at a time change the list; waits for the other, which is quick.
class ListLock
{
public:
    explicit ListLock(const fs::path &folder)
        : m_descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
    {
        while (m_descriptor >= 0 && ::flock(m_descriptor, LOCK_EX) != 0 && errno == EINTR) { }
    }
    ListLock(const ListLock &) = delete;
    ListLock &operator=(const ListLock &) = delete;
    ~ListLock()
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
    }

private:
    int m_descriptor;
};

std::string textOf(const json &entry, const char *name)
{
    const auto found = entry.find(name);
    if (found == entry.end() || !found->is_string())
        return {};
    const auto &text = found->get_ref<const std::string &>();
    const bool isUsable = text.size() <= kMostTextBytes && text.find('\0') == std::string::npos;
    return isUsable ? text : std::string{};
}

double numberOf(const json &entry, const char *name, double most)
{
    const auto found = entry.find(name);
    const double value = found != entry.end() && found->is_number() ? found->get<double>() : 0;
    return std::isfinite(value) && value >= 0 && value <= most ? value : 0;
}

/// True for pictures that older versions kept beside the list.
bool isThumbnailName(const std::string &name)
{
    const std::string_view prefix = kThumbnailPrefix;
    return name.rfind(prefix, 0) == 0 && fs::path(name).extension() == kThumbnailSuffix;
}

fs::path normalized(const fs::path &path)
{
    std::error_code failure;
    const fs::path absolute = fs::absolute(path, failure);
    return (failure ? path : absolute).lexically_normal();
}

Result<void> store(const fs::path &folder, const std::vector<RecentSession> &sessions)
{
    json list = json::array();
    for (const RecentSession &session : sessions) {
        list.push_back(
            {{"path", session.path.string()}, {"model", session.model}, {"opened", session.opened}});
    }
    const json document{{"version", 1}, {"sessions", list}};
    TRY_VOID(
        replaceFile(folder / kListName, document.dump(2, ' ', false, json::error_handler_t::replace) + "\n"));
    std::error_code failure;
    for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        if (isThumbnailName(entry->path().filename().string())) {
            std::error_code ignored;
            fs::remove(entry->path(), ignored);
        }
    }
    return {};
}

Result<void> makeFolder(const fs::path &folder)
{
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure)
        return refused(folder, failure.value());
    return {};
}

void removePath(std::vector<RecentSession> &sessions, const fs::path &path)
{
    sessions.erase(std::remove_if(sessions.begin(), sessions.end(),
                       [&](const RecentSession &session) { return session.path == path; }),
        sessions.end());
}

} // namespace

std::vector<RecentSession> loadRecent(const fs::path &folder)
{
    std::error_code failure;
    const fs::path path = folder / kListName;
    const auto size = fs::file_size(path, failure);
    if (failure || size > kMostListBytes)
        return {};
    std::ifstream stream(path, std::ios::binary);
    std::string bytes(static_cast<std::size_t>(size), '\0');
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const json document = json::parse(bytes, nullptr, false);
    if (!document.is_object() || !document.contains("sessions") || !document["sessions"].is_array())
        return {};
    std::vector<RecentSession> sessions;
    for (const json &entry : document["sessions"]) {
        if (sessions.size() == kMostRecentSessions)
            break;
        if (!entry.is_object())
            continue;
        RecentSession session;
        session.path = normalized(textOf(entry, "path"));
        if (textOf(entry, "path").empty() || session.path.empty())
            continue;
        session.model = textOf(entry, "model");
        session.opened = static_cast<std::int64_t>(numberOf(entry, "opened", 1e15));
        session.missing = !fs::is_regular_file(session.path, failure);
        const bool isTwice = std::any_of(sessions.begin(), sessions.end(),
            [&](const RecentSession &earlier) { return earlier.path == session.path; });
        if (!isTwice)
            sessions.push_back(std::move(session));
    }
    return sessions;
}

Result<void> addRecent(const fs::path &folder, RecentSession session)
{
    TRY_VOID(makeFolder(folder));
    const ListLock lock(folder);
    session.path = normalized(session.path);
    std::vector<RecentSession> sessions = loadRecent(folder);
    removePath(sessions, session.path);
    sessions.insert(sessions.begin(), std::move(session));
    if (sessions.size() > kMostRecentSessions)
        sessions.resize(kMostRecentSessions);
    return store(folder, sessions);
}

Result<void> removeRecent(const fs::path &folder, const fs::path &session)
{
    TRY_VOID(makeFolder(folder));
    const ListLock lock(folder);
    std::vector<RecentSession> sessions = loadRecent(folder);
    removePath(sessions, normalized(session));
    return store(folder, sessions);
}

} // namespace planloom
