// Edits a session file as fast as it can until it is killed, below the window; or checks that what it was
// promised was kept. For kill_sessions.sh; session_promise.h says what is in the log.
//
//   session_writer write FOLDER LOG SEED    makes FOLDER's session or opens it, and edits it at random
//   without end session_writer check FOLDER LOG         status 0 if it is sound and as the log says; 1 and a
//   sentence otherwise

#include "tests/e2e/session_promise.h"
#include "tests/sessions/history_walk.h"

#include <functional>

using namespace planloom;

namespace {

void require(const Result<void> &done)
{
    if (!done)
        fail(describe(done.error()));
}

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
    case 6: // of the root, too
        history.setFigures(history.current(), {static_cast<double>(editor.below(1000)), 7, true});
        return [step = history.current(), figures = *history.figuresOf(history.current())](
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

int write(const std::string &folder, const char *logPath, std::uint32_t seed)
{
    const PromiseLog log(logPath);
    RandomEditor editor(seed);
    SessionContents contents;
    std::optional<SessionStore> store;
    const auto digest = [&] { return digestOf(contents.history, contents.runs); };
    if (const std::filesystem::path path = sessionIn(folder); !path.empty()) {
        auto opened = SessionStore::open(path);
        if (!opened)
            fail(describe(opened.error()));
        if (opened->contents.readOnly)
            fail(opened->contents.remark);
        contents = std::move(opened->contents);
        store = std::move(opened->store);
        log.line("open", "0", digest());
    } else {
        contents.history = History({TableDocument(editor.text(50)), {{"devices", "4"}}});
        log.line("try", "0", digest());
        auto created = SessionStore::create(std::filesystem::path(folder) / "s.planloom", contents);
        if (!created)
            fail(describe(created.error()));
        store = *std::move(created);
        log.line("ack", "0", digest());
    }
    std::puts("ready");
    std::fflush(stdout);
    for (long number = 1;; ++number) {
        const auto carryOut = edit(contents, editor);
        const std::string wanted = digest();
        log.line("try", std::to_string(number), wanted);
        require(carryOut(*store));
        log.line("ack", std::to_string(number), wanted);
    }
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 5 && std::strcmp(argv[1], "write") == 0)
        return write(argv[2], argv[3], static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)));
    if (argc == 4 && std::strcmp(argv[1], "check") == 0)
        return checkPromise(argv[2], argv[3]);
    std::fputs("session_writer write FOLDER LOG SEED | check FOLDER LOG\n", stderr);
    return 2;
}
