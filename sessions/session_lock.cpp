#include "sessions/session_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

namespace planloom {

namespace {

std::string describeSelf()
{
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0)
        host = {'?', '\0'};
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm local{};
    ::localtime_r(&now, &local);
    std::array<char, 32> time{};
    std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M", &local);
    return "process " + std::to_string(::getpid()) + " on " + host.data() + " since " + time.data();
}

/// What the lock's holder wrote, as far as it is a line of text.
std::string readHolder(int descriptor)
{
    std::array<char, 400> bytes{};
    const ssize_t count = ::pread(descriptor, bytes.data(), bytes.size(), 0);
    std::string holder;
    for (ssize_t i = 0; i < count; ++i) {
        const char byte = bytes[static_cast<std::size_t>(i)];
        if (byte == '\n')
            break;
        if (static_cast<unsigned char>(byte) >= 0x20 && byte != 0x7f)
            holder += byte;
    }
    return holder.empty() ? "a process that does not say which" : holder;
}

/// True if `path` is still the file that is open.
bool isStillThere(int descriptor, const std::filesystem::path &path)
{
    struct stat open {
    };
    struct stat named {
    };
    return ::fstat(descriptor, &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_dev == named.st_dev
        && open.st_ino == named.st_ino;
}

} // namespace

SessionLock::SessionLock(std::filesystem::path path, int descriptor)
    : m_path(std::move(path))
    , m_descriptor(descriptor)
{
}

SessionLock::SessionLock(SessionLock &&other) noexcept
    : m_path(std::move(other.m_path))
    , m_descriptor(std::exchange(other.m_descriptor, -1))
{
}

SessionLock &SessionLock::operator=(SessionLock &&other) noexcept
{
    if (this != &other) {
        release();
        m_path = std::move(other.m_path);
        m_descriptor = std::exchange(other.m_descriptor, -1);
    }
    return *this;
}

SessionLock::~SessionLock()
{
    release();
}

void SessionLock::release()
{
    if (m_descriptor < 0)
        return;
    // While it is locked, so that nobody else's is taken away; `take` notices a lock on a file without a
    // name.
    if (isStillThere(m_descriptor, m_path))
        ::unlink(m_path.c_str());
    ::close(m_descriptor);
    m_descriptor = -1;
}

std::filesystem::path SessionLock::pathFor(const std::filesystem::path &session)
{
    std::error_code failure;
    std::filesystem::path path =
        std::filesystem::weakly_canonical(session, failure); // one lock, whatever the link
    if (failure)
        path = session;
    path += path.extension() == ".planloom" ? "-lock" : ".planloom-lock";
    return path;
}

SessionLock::Outcome SessionLock::take(const std::filesystem::path &session)
{
    const std::filesystem::path path = pathFor(session);
    constexpr int kMostTries = 100; // each means that another process closed the session just then
    for (int attempt = 0; attempt < kMostTries; ++attempt) {
        int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (descriptor < 0 && errno == EACCES)
            descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (descriptor < 0)
            return {std::nullopt, {}, std::strerror(errno)};
        if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
            const int reason = errno;
            if (reason == EWOULDBLOCK) {
                const std::string holder = readHolder(descriptor);
                ::close(descriptor);
                return {std::nullopt, holder, {}};
            }
            if (reason != EINTR) { // a file system without locks: writing goes on without one
                return {SessionLock(path, descriptor), {}, {}};
            }
        } else if (isStillThere(descriptor, path)) {
            const std::string self = describeSelf() + "\n";
            if (::ftruncate(descriptor, 0) == 0)
                static_cast<void>(
                    ::pwrite(descriptor, self.data(), self.size(), 0) == 0); // only who, for others
            return {SessionLock(path, descriptor), {}, {}};
        }
        ::close(descriptor);
    }
    return {std::nullopt, "a process that opens and closes it", {}};
}

} // namespace planloom
