// Opens damaged and hostile sessions: no crash, no hang, and what is opened read-only is left as it is.
//
// An input that begins as an SQLite file is taken as the session itself. Any other one says what to do to the
// tables of a sound session: each three bytes choose a column, a row and a hostile value for it.

#include "sessions/session_store.h"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

using namespace planloom;
namespace fs = std::filesystem;

/// One folder a process, so that parallel fuzzing jobs do not meet.
const fs::path &folder()
{
    static const fs::path kFolder = [] {
        const auto path = fs::temp_directory_path() / ("planloom_session_fuzz_" + std::to_string(getpid()));
        fs::create_directories(path);
        std::atexit([] {
            std::error_code ignored;
            fs::remove_all(
                fs::temp_directory_path() / ("planloom_session_fuzz_" + std::to_string(getpid())), ignored);
        });
        return path;
    }();
    return kFolder;
}

std::string bytesOf(const fs::path &path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const fs::path &path, std::string_view bytes)
{
    std::error_code ignored;
    for (const char *suffix : {"-wal", "-shm", "-journal"})
        fs::remove(path.string() + suffix, ignored);
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

/// A session with all kinds of things in it.
const std::string &soundSession()
{
    static const std::string kBytes = [] {
        SessionContents contents;
        contents.model.source = "./gpt.onnx";
        contents.model.content = std::string(3000, 'm');
        contents.history =
            History({TableDocument("mesh dp=2\nsplit all : batch by 2\n"), {{"devices", "2"}}});
        for (int i = 0; i < 8; ++i) {
            History &history = contents.history;
            if (i == 4 && !history.goTo(2))
                std::abort();
            if (!history.record("edit", {insertText(history.state().table, i % 3, "micro-batches 2"), {}}, i)
                || !history.record("value", {{}, {{"v" + std::to_string(i), std::nullopt, "1"}}}, i))
                std::abort();
        }
        contents.history.setName("best", 3);
        contents.history.setFigures(3, {0.5, 7, true});
        contents.runs = {{1, 3, 0, "run", "done", "{}", std::string(2000, '[')}};
        contents.view = {{"theme", "dark"}};
        const fs::path path = folder() / "sound";
        auto store = SessionStore::create(path, contents);
        if (!store || !store->cachePlan(3, std::string(2000, '{')))
            std::abort();
        {
            auto closing = *std::move(store);
        }
        return bytesOf(path);
    }();
    return kBytes;
}

constexpr std::array<std::array<const char *, 2>, 38> kColumns{{{"state", "step"}, {"state", "text"},
    {"state", "text_size"}, {"state", "crc"}, {"state_value", "name"}, {"state_value", "value"},
    {"step", "id"}, {"step", "parent"}, {"step", "depth"}, {"step", "words"}, {"step", "created"},
    {"step", "crc"}, {"step", "step_seconds"}, {"step", "peak_bytes"}, {"step", "verified"},
    {"step_splice", "step"}, {"step_splice", "position"}, {"step_splice", "line"}, {"step_splice", "removed"},
    {"step_splice", "removed_size"}, {"step_splice", "inserted"}, {"step_splice", "inserted_size"},
    {"step_value", "step"}, {"step_value", "name"}, {"step_value", "before"}, {"step_value", "after"},
    {"branch", "id"}, {"branch", "head"}, {"step_name", "step"}, {"position", "step"}, {"position", "branch"},
    {"run", "id"}, {"run", "step"}, {"run", "details"}, {"run_timeline", "spans_size"},
    {"plan_cache", "execution_size"}, {"model", "content_size"}, {"model", "content"}}};

constexpr std::array<const char *, 20> kValues{"NULL", "0", "-1", "1", "2", "9223372036854775807",
    "-9223372036854775808", "2147483648", "1e308", "9e999", "'text'", "''", "x'78'", "x''", "zeroblob(70000)",
    "replace(hex(zeroblob(20000)), '0', '[')", "replace(hex(zeroblob(20000)), '0', '{\"a\":')",
    "char(10, 10, 0, 10)", "CAST(x'ff00fe0a' AS TEXT)", "'./../../../../etc/passwd'"};

void harm(const fs::path &path, const std::uint8_t *data, std::size_t size)
{
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON; BEGIN");
    for (std::size_t i = 0; i + 2 < size && i < 120; i += 3) {
        const auto &column = kColumns[data[i] % kColumns.size()];
        const std::string table = column[0];
        const std::string row = std::to_string(data[i + 1] % 32);
        const std::size_t value = data[i + 2] % (kValues.size() + 2);
        const std::string name = column[1];
        const std::string expression =
            value < kValues.size() ? kValues[value] : name + (value % 2 == 0 ? " + 1" : " - 1");
        try {
            const bool hasRowIds = table != "state_value" && table != "step_splice" && table != "step_value"
                && table != "step_name";
            database.exec("UPDATE OR REPLACE " + table + " SET " + name + " = " + expression
                + (hasRowIds ? " WHERE rowid = " + row : " WHERE step = " + row));
        } catch (const SQLite::Exception &) {
            // A type the column does not take.
        }
    }
    database.exec("COMMIT");
}

void require(bool holds)
{
    if (!holds)
        std::abort();
}

/// What must hold of anything that was read.
void lookAt(const SessionStore &store, const SessionContents &contents)
{
    const History &history = contents.history;
    require(History::restore(history.root(), history.steps(), history.branches(), history.names(),
        history.current(), history.branch())
                .has_value());
    for (const SessionRun &run : contents.runs)
        static_cast<void>(store.loadRunTimeline(run.id).has_value());
    for (StepId step = 0; step <= static_cast<StepId>(history.steps().size()) && step < 50; ++step)
        static_cast<void>(store.loadPlan(step).has_value());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const fs::path path = folder() / "session";
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    if (bytes.substr(0, 6) == "SQLite") {
        write(path, bytes);
    } else {
        write(path, soundSession());
        harm(path, data, size);
    }
    const std::string before = bytesOf(path);
    static_cast<void>(readSummary(path).has_value());
    static_cast<void>(checkSession(path).has_value());
    if (const auto looked = SessionStore::openToLook(path))
        lookAt(looked->store, looked->contents);
    require(bytesOf(path) == before);
    auto opened = SessionStore::open(path);
    if (!opened)
        return 0;
    lookAt(opened->store, opened->contents);
    if (opened->contents.readOnly) {
        require(!opened->contents.remark.empty());
        require(!opened->store.setView({}));
        require(bytesOf(path) == before);
        return 0;
    }
    // What can be written goes on to work.
    History &history = opened->contents.history;
    if (const auto id = history.record("more", {{}, {{"new value", std::nullopt, "1"}}}, 1)) {
        static_cast<void>(
            opened->store.addStep(*history.find(*id), *id, history.branches(), history.branch()).has_value());
    }
    static_cast<void>(opened->store.copyTo(folder() / "copy").has_value());
    std::error_code ignored;
    fs::remove(folder() / "copy", ignored);
    return 0;
}
