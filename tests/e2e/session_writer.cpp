// Edits a session as fast as it can until it is killed, and tells what it was promised; or checks that the
// promise was kept. For kill_sessions.sh.
//
//   session_writer write FILE LOG SEED    makes FILE or opens it, and edits it at random without end. LOG
//   gets a line "try
//                                         N DIGEST" before each write and "ack N DIGEST" once it was
//                                         acknowledged, with the digest of all that the session then holds
//   session_writer check FILE LOG         status 0 if FILE is sound and holds what the last "ack" says, or
//   what the "try"
//                                         after it says; 1 and a sentence otherwise

#include "sessions/digest.h"
#include "sessions/session_store.h"

#include "tests/sessions/history_walk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>

using namespace planloom;

namespace {

[[noreturn]] void fail(const std::string &message)
{
    std::fprintf(stderr, "session_writer: %s\n", message.c_str());
    std::exit(1);
}

void require(const Result<void> &done)
{
    if (!done)
        fail(describe(done.error()));
}

/// All that a session holds, as text that only it gives.
std::string fingerprint(const SessionContents &contents)
{
    std::ostringstream text;
    const auto put = [&](const std::string &piece) { text << piece.size() << ':' << piece << ';'; };
    const auto putState = [&](const DesignState &state) {
        put(state.table.text());
        for (const auto &[name, value] : state.values) {
            put(name);
            put(value);
        }
    };
    const History &history = contents.history;
    putState(history.root());
    putState(history.state());
    text << history.current() << ' ' << history.branch() << ' ';
    for (const HistoryStep &step : history.steps()) {
        text << step.id << ' ' << step.parent << ' ' << step.created << ' ';
        put(step.words);
        for (const TableSplice &splice : step.change.table.splices) {
            text << splice.line << ' ' << splice.removed.size() << ' ';
            for (const std::string &line : splice.removed)
                put(line);
            for (const std::string &line : splice.inserted)
                put(line);
        }
        for (const ValueChange &value : step.change.values) {
            put(value.name);
            put(value.before.value_or("none"));
            put(value.after.value_or("none"));
        }
        if (step.figures)
            text << step.figures->stepSeconds << ' ' << step.figures->peakBytes << ' '
                 << step.figures->verified;
    }
    for (const Branch &branch : history.branches()) {
        text << branch.id << ' ' << branch.head << ' ';
        put(branch.name);
    }
    for (const auto &[name, step] : history.names()) {
        text << step << ' ';
        put(name);
    }
    for (const SessionRun &run : contents.runs) {
        text << run.id << ' ' << run.step << ' ';
        put(run.title);
        put(run.state);
    }
    for (const auto &[name, value] : contents.view) {
        put(name);
        put(value);
    }
    return sha256(text.str());
}

/// Appends to the log with one write each: what is written outlives the process.
class Log
{
public:
    explicit Log(const char *path)
        : m_descriptor(::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644))
    {
        if (m_descriptor < 0)
            fail(std::string("the log cannot be written: ") + std::strerror(errno));
    }
    void line(const char *what, long number, const std::string &digest) const
    {
        const std::string text = std::string(what) + " " + std::to_string(number) + " " + digest + "\n";
        if (::write(m_descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
            fail(std::string("the log cannot be written: ") + std::strerror(errno));
    }

private:
    int m_descriptor;
};

/// One random edit: in memory, and what writes it.
std::function<Result<void>(SessionStore &)> edit(SessionContents &contents, RandomEditor &editor)
{
    History &history = contents.history;
    const auto position = [&] {
        return [current = history.current(), branches = history.branches(), branch = history.branch()](
                   SessionStore &store) { return store.setPosition(current, branches, branch); };
    };
    switch (editor.below(16)) {
    case 0:
        history.undo();
        return position();
    case 1:
        history.redo();
        return position();
    case 2:
        require(history.goTo(static_cast<StepId>(editor.below(history.steps().size() + 1))));
        return position();
    case 3:
        history.addBranch({});
        return position();
    case 4:
        require(history.switchBranch(static_cast<std::int32_t>(editor.below(history.branches().size()))));
        return position();
    case 5:
        history.setName("name " + std::to_string(editor.below(4)), history.current());
        return [names = history.names()](SessionStore &store) { return store.setNames(names); };
    case 6:
        if (history.current() == 0)
            break;
        history.setFigures(history.current(), {static_cast<double>(editor.below(1000)), 7, true});
        return [step = history.current(), figures = *history.find(history.current())->figures](
                   SessionStore &store) { return store.setFigures(step, figures); };
    case 7:
        contents.view["zoom"] = std::to_string(editor.below(1000));
        return [view = contents.view](SessionStore &store) { return store.setView(view); };
    case 8: {
        SessionRun run{contents.runs.empty() ? 1 : contents.runs.back().id + 1, history.current(), 1, "a run",
            "running", "{}", {}};
        contents.runs.push_back(run);
        run.timeline = std::string(3000, '.');
        return [run](SessionStore &store) -> Result<void> {
            TRY(const std::int64_t id, store.addRun(run));
            if (id != run.id)
                fail("a run got the id " + std::to_string(id));
            return {};
        };
    }
    case 9:
        return [step = history.current()](
                   SessionStore &store) { return store.cachePlan(step, std::string(20'000, 'p')); };
    case 10: {
        const auto amended = history.amend("amended", editor.change(history.state()));
        if (!amended)
            fail(describe(amended.error()));
        if (!*amended)
            break;
        return [step = *history.find(history.current())](
                   SessionStore &store) { return store.replaceStep(step); };
    }
    default:
        break;
    }
    const auto id = history.record("an edit", editor.change(history.state()), 1700000000000);
    if (!id)
        fail(describe(id.error()));
    return [step = *history.find(*id), current = history.current(), branches = history.branches(),
               branch = history.branch()](
               SessionStore &store) { return store.addStep(step, current, branches, branch); };
}

int write(const char *path, const char *logPath, std::uint32_t seed)
{
    const Log log(logPath);
    RandomEditor editor(seed);
    SessionContents contents;
    std::optional<SessionStore> store;
    if (std::filesystem::exists(path)) {
        auto opened = SessionStore::open(path);
        if (!opened)
            fail(describe(opened.error()));
        if (opened->contents.readOnly)
            fail(opened->contents.remark);
        contents = std::move(opened->contents);
        store = std::move(opened->store);
        log.line("ack", 0, fingerprint(contents)); // what was there before counts as promised
    } else {
        contents.history = History({TableDocument(editor.text(50)), {{"devices", "4"}}});
        log.line("try", 0, fingerprint(contents));
        auto created = SessionStore::create(path, contents);
        if (!created)
            fail(describe(created.error()));
        store = *std::move(created);
        log.line("ack", 0, fingerprint(contents));
    }
    for (long number = 1;; ++number) {
        const auto carryOut = edit(contents, editor);
        const std::string digest = fingerprint(contents);
        log.line("try", number, digest);
        require(carryOut(*store));
        log.line("ack", number, digest);
    }
}

int check(const char *path, const char *logPath)
{
    std::ifstream stream(logPath);
    std::string acknowledged;
    std::string tried; // after the last acknowledged one
    long count = 0;
    std::string what;
    std::string digest;
    long number = 0;
    while (stream >> what >> number >> digest) {
        (what == "ack" ? acknowledged : tried) = digest;
        if (what == "ack") {
            tried.clear();
            ++count;
        }
    }
    if (!std::filesystem::exists(path)) {
        if (!acknowledged.empty())
            fail("the session is gone");
        std::puts("nothing was promised yet");
        return 0;
    }
    const auto problems = checkSession(path);
    if (!problems)
        fail(describe(problems.error()));
    if (!problems->empty())
        fail("the session is not sound: " + problems->front());
    const auto opened = SessionStore::open(path);
    if (!opened)
        fail(describe(opened.error()));
    if (opened->contents.readOnly)
        fail("it opens read-only: " + opened->contents.remark);
    const std::string found = fingerprint(opened->contents);
    if (found != acknowledged && found != tried)
        fail("the session is neither as acknowledged nor as the next write would have left it");
    std::printf("%ld acknowledged, %zu steps%s\n", count, opened->contents.history.steps().size(),
        found == acknowledged ? "" : ", and the one after it");
    return 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 5 && std::strcmp(argv[1], "write") == 0)
        return write(argv[2], argv[3], static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)));
    if (argc == 4 && std::strcmp(argv[1], "check") == 0)
        return check(argv[2], argv[3]);
    std::fputs("session_writer write FILE LOG SEED | check FILE LOG\n", stderr);
    return 2;
}
