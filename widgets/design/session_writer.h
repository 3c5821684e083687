#pragma once

#include <QtCore/QObject>
#include <QtCore/QString>

#include "sessions/session_store.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace planloom {

/// Writes a session on a thread of its own, and tells when what was asked for is on the disk.
///
///     edits    ──► in order, one transaction each ────────► acknowledged: all of them are on the disk
///                    │ the disk refuses (Io)   stays first in line, is tried again, and all edits behind it
///                    wait │ the store refuses it    `refused`; set aside: those behind it are written, and
///                    then all of the ▼                         session anew (`Whole`), which brings back
///                    what was set aside
///     derived  ──► figures, pictures, views: what follows from edits, or can be made again. Written when no
///     edit waits, the
///                  newest of each key; one that fails never holds anything back and never counts as unsaved
///                  work
///
/// Lives on the GUI thread, never waits there unless asked to (`waitForEdits`).
class SessionWriter : public QObject
{
    Q_OBJECT
public:
    using Write = std::function<Result<void>(SessionStore &)>;
    using Make = std::function<Result<SessionStore>()>;
    /// Asked on the GUI thread: what writes all of the session as it is by then.
    using Whole = std::function<Write()>;

    /// @param make  opens or creates the store, on the worker, before the first write; tried again until it
    /// works
    /// @param whole  may be empty: then what the store refuses stays missing, and nothing is acknowledged any
    /// more
    explicit SessionWriter(Make make, Whole whole = {}, QObject *parent = nullptr);
    /// Writes what can be written, with one try for each write, and closes the file.
    ~SessionWriter() override;

    /// Closes the file once all is written, however long the disk refuses it; `finished` follows. Nothing may
    /// be posted any more.
    void finish();
    /// Ready once the file is closed, for whoever waits on another thread.
    const std::shared_future<void> &ended() const { return m_ended; }

    /// An edit.
    void post(Write write);
    /// What follows from edits. It takes the place of an older one with its key that still waits.
    void postDerived(const std::string &key, Write write);
    /// Forgets what waits under `key`: an edit has made it wrong.
    void dropDerived(const std::string &key);

    /// All edits posted so far are on the disk.
    bool isAcknowledged() const { return m_posted == m_done && !hasFailed(); }
    /// Edits are not on the disk, and will not be by waiting a moment: the disk refuses, or the store refused
    /// one and all of the session could not be written anew.
    bool hasFailed() const { return m_failed || m_lacking; }
    /// How many edits the store has refused since the beginning.
    std::uint64_t refusals() const { return m_refusals; }
    /// Waits until all edits are on the disk or one fails. @return whether they are
    bool waitForEdits(std::chrono::nanoseconds patience);

Q_SIGNALS:
    void opened(QString path); ///< The store was opened or made; `path` is where.
    void acknowledged(); ///< All edits.
    void settled(); ///< Nothing waits: derived things are written, too, or given up.
    void failed(planloom::Error error); ///< Once for each time it stops working.
    void refused(planloom::Error error); ///< An edit; set aside.
    void derivedFailed(planloom::Error error); ///< Nothing of anybody's work.
    void finished(); ///< After `finish`.

private:
    using Clock = std::chrono::steady_clock;
    static constexpr int kRetryMilliseconds = 2000;

    struct Edit {
        Write write{};
        std::uint64_t number = 0; ///< From 1.
        bool isWhole = false;
    };
    struct Derived {
        std::string key{};
        Write write{};
    };
    struct Report {
        std::uint64_t done = 0;
        bool lacking = false;
        std::optional<Error> failure{};
    };

    void postEdit(Write write, bool isWhole);
    void work(const std::stop_token &stop);
    /// The next thing to do; nothing if there is none any more.
    bool takeNext(const std::stop_token &stop, std::optional<Edit> &edit, std::optional<Derived> &derived);
    Result<void> makeStore();
    /// @return whether the next edit may be tried at once
    bool writeEdit(const Edit &edit);
    void writeDerived(const std::stop_token &stop, Derived derived);
    void tell(std::optional<Error> failure);
    void report(const Report &report);
    void onRefused(std::uint64_t number, const Error &error);

    Make m_make;
    Whole m_whole;
    // The worker's.
    std::optional<SessionStore> m_store;
    std::uint64_t m_written = 0; ///< Edits that are on the disk or set aside.
    bool m_isLacking = false; ///< One was set aside, and nothing made up for it yet.
    bool m_isFailing = false;
    Clock::time_point m_derivedFrom{}; ///< No derived write is tried before: the disk refused one.

    std::mutex m_mutex;
    std::condition_variable_any m_wake; ///< Of the worker.
    std::condition_variable m_change; ///< Of `waitForEdits`.
    // Guarded by m_mutex.
    std::deque<Edit> m_edits; ///< The first one stays until it is done.
    std::map<std::string, Write> m_derived;
    std::string m_derivedInWork; ///< Empty once it was dropped.
    bool m_isFinishing = false;
    bool m_editFails = false; ///< The last try of the first edit failed, or edits are missing.

    // The GUI thread's.
    std::uint64_t m_posted = 0;
    std::uint64_t m_done = 0;
    std::uint64_t m_wholePosted = 0; ///< Number of the newest `Whole`; 0 for none.
    std::uint64_t m_refusals = 0;
    bool m_failed = false;
    bool m_lacking = false;

    std::promise<void> m_end; ///< Set by the worker.
    std::shared_future<void> m_ended;
    std::jthread m_thread; ///< Last: it ends first.
};

} // namespace planloom
