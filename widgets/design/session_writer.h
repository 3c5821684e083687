#pragma once

#include <QtCore/QObject>
#include <QtCore/QString>

#include "sessions/session_store.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

namespace planloom {

/// Writes a session on a thread of its own, in order, and tells when what was asked for is on the disk.
///
/// What fails stays first in line and is tried again with the next write, or after a while, so that nothing is lost while a
/// disk is full. Lives on the GUI thread, never waits there; the destructor finishes what can be written.
class SessionWriter : public QObject
{
    Q_OBJECT
public:
    using Write = std::function<Result<void>(SessionStore &)>;
    using Make = std::function<Result<SessionStore>()>;

    /// `make` opens or creates the store, on the worker, as the first write.
    explicit SessionWriter(Make make, QObject *parent = nullptr);
    ~SessionWriter() override;

    /// Writes what was asked for, closes the file, and ends: `finished` follows. Nothing may be posted any more.
    void finish();
    /// Ready once the file is closed, for whoever waits on another thread.
    const std::shared_future<void> &ended() const { return m_ended; }

    void post(Write write);
    /// Everything posted so far is on the disk.
    bool isAcknowledged() const { return m_posted == m_done && !m_failed; }
    bool hasFailed() const { return m_failed; }

Q_SIGNALS:
    void acknowledged(); ///< All of it.
    void failed(planloom::Error error); ///< Once for each time it stops working.
    void finished(); ///< After `finish`.

private:
    static constexpr int kRetryMilliseconds = 2000;

    void work(std::stop_token stop);
    void report(std::uint64_t done, const std::optional<Error> &error);

    Make m_make;
    std::optional<SessionStore> m_store; ///< The worker's.
    std::mutex m_mutex;
    std::condition_variable_any m_wake;
    std::deque<Write> m_queue; ///< Guarded by m_mutex.
    std::uint64_t m_posted = 0; ///< GUI thread.
    std::uint64_t m_done = 0; ///< GUI thread.
    bool m_failed = false; ///< GUI thread.
    std::promise<void> m_end; ///< Set by the worker.
    std::shared_future<void> m_ended;
    std::jthread m_thread; ///< Last: it ends first.
};

} // namespace planloom
