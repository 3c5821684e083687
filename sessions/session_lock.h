#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace planloom {

/// The right to write a session, held as long as the object lives: a file beside the session, locked with
/// flock, so that it dies with the process however that ends.
class SessionLock
{
public:
    SessionLock(SessionLock &&other) noexcept;
    SessionLock &operator=(SessionLock &&other) noexcept;
    ~SessionLock();

    struct Outcome;
    /// Never waits.
    static Outcome take(const std::filesystem::path &session);

    /// Where the lock of a session lies.
    static std::filesystem::path pathFor(const std::filesystem::path &session);

private:
    SessionLock(std::filesystem::path path, int descriptor);
    void release();
    std::filesystem::path m_path;
    int m_descriptor = -1;
};

struct SessionLock::Outcome {
    std::optional<SessionLock> lock{};
    std::string holder{}; ///< Who has it: "process 12 on HOST since 2026-11-21 03:05"; empty if nobody.
    std::string problem{}; ///< Why there can't be one here; empty if there could.
};

} // namespace planloom
