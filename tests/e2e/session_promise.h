#pragma once

// What a program that edits a session until it is killed was promised, and whether the promise was kept. For
// the writers of kill_sessions.sh. The log is text, a line each:
//
//   found 0 DIGEST    the session as the checker found it after the last kill
//   open 0 DIGEST     the session as the program read it
//   try N DIGEST      what the session is to hold from now on; it may not be in the file yet
//   ack N DIGEST      what was acknowledged: it is in the file
//   plan DESIGN SECONDS    the step time of a design's plan
//
// After a kill the file holds what the last "ack" says, or one of the "try"s after it: each edit is one
// transaction, in order.

#include "engine/base/digest.h"
#include "sessions/session_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace planloom {

[[noreturn]] inline void fail(const std::string &message)
{
    std::fprintf(stderr, "%s\n", message.c_str());
    std::_Exit(1);
}

/// Text that only its pieces give.
class Pieces
{
public:
    void put(const std::string &piece) { m_text << piece.size() << ':' << piece << ';'; }
    void put(std::int64_t number) { m_text << number << ';'; }
    void put(const DesignState &state)
    {
        put(state.table.text());
        for (const auto &[name, value] : state.values) {
            put(name);
            put(value);
        }
    }
    std::string digest() const { return sha256(m_text.str()); }

private:
    std::ostringstream m_text{};
};

inline std::string digestOf(const DesignState &state)
{
    Pieces pieces;
    pieces.put(state);
    return pieces.digest();
}

/// All that people did in a session: rows and values at each step, where it stands, branches, names, runs.
/// Without what follows from that: figures, pictures, views. A run that was under way is one that was
/// interrupted: that is what opening makes of it.
inline std::string digestOf(const History &history, const std::vector<SessionRun> &runs)
{
    Pieces pieces;
    pieces.put(history.root());
    pieces.put(history.state());
    pieces.put(history.current());
    pieces.put(history.branch());
    for (const HistoryStep &step : history.steps()) {
        pieces.put(step.id);
        pieces.put(step.parent);
        pieces.put(step.created);
        pieces.put(step.words);
        for (const TableSplice &splice : step.change.table.splices) {
            pieces.put(splice.line);
            pieces.put(static_cast<std::int64_t>(splice.removed.size()));
            for (const std::string &line : splice.removed)
                pieces.put(line);
            for (const std::string &line : splice.inserted)
                pieces.put(line);
        }
        for (const ValueChange &value : step.change.values) {
            pieces.put(value.name);
            pieces.put(value.before.value_or("none"));
            pieces.put(value.after.value_or("none"));
        }
    }
    for (const Branch &branch : history.branches()) {
        pieces.put(branch.id);
        pieces.put(branch.head);
        pieces.put(branch.name);
    }
    for (const auto &[name, step] : history.names()) {
        pieces.put(step);
        pieces.put(name);
    }
    for (const SessionRun &run : runs) {
        pieces.put(run.id);
        pieces.put(run.step);
        pieces.put(run.title);
        const bool isOver = run.state == "done" || run.state == "failed" || run.state == "stopped";
        pieces.put(isOver ? run.state : "interrupted");
    }
    return pieces.digest();
}

/// Appends to the log with one write each: what is written outlives the process.
class PromiseLog
{
public:
    explicit PromiseLog(const std::string &path)
        : m_descriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644))
    {
        if (m_descriptor < 0)
            fail(std::string("the log cannot be written: ") + std::strerror(errno));
    }
    void line(const std::string &what, const std::string &first, const std::string &second) const
    {
        const std::string text = what + " " + first + " " + second + "\n";
        if (::write(m_descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            fail(std::string("the log cannot be written: ") + std::strerror(errno));
    }

private:
    int m_descriptor;
};

/// While it lives, kill_sessions.sh waits with its kill: what happens meanwhile is in the log before the
/// program can be killed.
class NoKill
{
public:
    explicit NoKill(const std::string &path)
        : m_descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644))
    {
        while (::flock(m_descriptor, LOCK_EX) != 0) {
            if (errno != EINTR)
                fail(std::string("the lock cannot be taken: ") + std::strerror(errno));
        }
    }
    NoKill(const NoKill &) = delete;
    NoKill &operator=(const NoKill &) = delete;
    ~NoKill() { ::close(m_descriptor); }

private:
    int m_descriptor;
};

/// The session of a folder; empty if there is none.
inline std::filesystem::path sessionIn(const std::filesystem::path &folder)
{
    std::filesystem::path found;
    for (const auto &entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() != ".planloom")
            continue;
        if (!found.empty())
            fail("there are two sessions: " + found.string() + " and " + entry.path().string());
        found = entry.path();
    }
    return found;
}

/// Whether the session of `folder` is as the log says. Prints what it found, or fails.
inline int checkPromise(const std::string &folder, const std::string &logPath)
{
    std::optional<std::string> acknowledged;
    std::set<std::string> tried; // after the last acknowledged one
    std::map<std::string, std::set<std::string>> plans;
    std::size_t count = 0;
    {
        std::ifstream stream(logPath);
        for (std::string what, first, second; stream >> what >> first >> second;) {
            if (what == "plan") {
                plans[first].insert(second);
            } else if (what == "try") {
                tried.insert(second);
            } else if (what == "open") {
                if (second != acknowledged)
                    fail("the program shows another session than the file holds");
            } else {
                acknowledged = second;
                tried.clear();
                count += what == "ack" ? 1 : 0;
            }
        }
    }
    const std::filesystem::path path = sessionIn(folder);
    if (path.empty()) {
        if (acknowledged)
            fail("the session is gone");
        std::puts("nothing was promised yet");
        return 0;
    }
    const auto problems = checkSession(path);
    if (!problems)
        fail(describe(problems.error()));
    if (!problems->empty())
        fail("the session is not sound: " + problems->front());
    const auto summary = readSummary(path);
    if (!summary)
        fail("the start page cannot read it: " + describe(summary.error()));
    const auto opened = SessionStore::open(path);
    if (!opened)
        fail(describe(opened.error()));
    if (opened->contents.readOnly)
        fail("it opens read-only: " + opened->contents.remark);
    const History &history = opened->contents.history;
    const std::string found = digestOf(history, opened->contents.runs);
    if (found != acknowledged && tried.count(found) == 0)
        fail("the session is neither as acknowledged nor as one of the writes after that would have left it");
    // What the start page shows is what opens.
    if (summary->stepSeconds > 0 && !plans.empty()) {
        char seconds[64];
        std::snprintf(seconds, sizeof seconds, "%.17g", summary->stepSeconds);
        if (plans[digestOf(history.state())].count(seconds) == 0)
            fail("the start page shows the step time of another plan");
    }
    PromiseLog(logPath).line("found", "0", found);
    std::printf("%zu acknowledged, %zu steps, %zu branches, %zu runs%s%s\n", count, history.steps().size(),
        history.branches().size(), opened->contents.runs.size(),
        found == acknowledged ? "" : ", and more than was acknowledged",
        summary->stepSeconds > 0 ? ", planned" : "");
    return 0;
}

} // namespace planloom
