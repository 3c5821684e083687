#include "planloom_paths.h"
#include "sessions/session_store.h"

#include "sessions/compress.h"
#include "sessions/session_lock.h"
#include "sessions/session_schema.h"

#include "tests/sessions/session_fixture.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>

namespace planloom {
namespace {

using SessionStoreTest = SessionFixture;

TEST_F(SessionStoreTest, GivesBackWhatItWasMadeWith)
{
    {
        const auto store = SessionStore::create(path, sample());
        ASSERT_TRUE(store) << describe(store.error());
        EXPECT_FALSE(store->isReadOnly());
        EXPECT_EQ(store->path(), path);
    }
    expectStored(sample());
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        names.push_back(entry.path().filename().string());
    EXPECT_EQ(names, std::vector<std::string>{"my plan.planloom"}); // no lock, no log, no part
    SQLite::Database database(path.string(), SQLite::OPEN_READONLY);
    EXPECT_EQ(database.execAndGet("PRAGMA application_id").getInt(), kSessionApplicationId);
    EXPECT_EQ(database.execAndGet("PRAGMA user_version").getInt(), 3);
    EXPECT_EQ(database.execAndGet("PRAGMA journal_mode").getString(), "wal");
    EXPECT_TRUE(looksLikeSession(path));
}

TEST_F(SessionStoreTest, EveryCallIsThereAfterReopening)
{
    SessionContents contents;
    contents.history = History({TableDocument("a\nb"), {}});
    ASSERT_TRUE(SessionStore::create(path, contents));
    contents.model.sha256 = sha256("");
    RandomEditor editor(9);
    // Each round reopens, makes one call, closes, and looks whether all is as it should be.
    for (int round = 0; round < 84; ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        {
            auto opened = SessionStore::open(path);
            ASSERT_TRUE(opened) << describe(opened.error());
            SessionStore &store = opened->store;
            History &history = contents.history;
            const auto position = [&] {
                return store.setPosition(history.current(), history.branches(), history.branch());
            };
            Result<void> done;
            switch (round % 14) {
            case 0:
            case 1:
            case 2: {
                const StepId id = step(history, editor);
                done =
                    store.addStep(*history.find(id), history.current(), history.branches(), history.branch());
                break;
            }
            case 3: {
                const auto amended = history.amend("amended", editor.change(history.state()));
                ASSERT_TRUE(amended);
                if (*amended)
                    done = store.replaceStep(*history.find(history.current()));
                break;
            }
            case 4:
                history.undo();
                history.undo();
                done = position();
                break;
            case 5:
                history.redo();
                done = position();
                break;
            case 6:
                ASSERT_TRUE(history.goTo(static_cast<StepId>(editor.below(history.steps().size() + 1))));
                done = position();
                break;
            case 7:
                ASSERT_TRUE(history.renameBranch(history.branch(), "renamed " + std::to_string(round)));
                done = position();
                break;
            case 8:
                history.setName("name " + std::to_string(editor.below(3)), history.current());
                done = store.setNames(history.names());
                break;
            case 9:
                for (const StepId step : {kRootStep, StepId{1}}) {
                    history.setFigures(step, {0.5 + round, 7, round % 2 == 0});
                    done = store.setFigures(step, *history.figuresOf(step));
                    ASSERT_TRUE(done) << describe(done.error());
                }
                break;
            case 10:
                contents.view["zoom"] = std::to_string(round);
                contents.view.erase("gone");
                done = store.setView(contents.view);
                break;
            case 11: {
                SessionRun run{0, history.current(), round, "run", "running", "{}", R"({"spans":[]})"};
                const auto id = store.addRun(run);
                ASSERT_TRUE(id) << describe(id.error());
                run.id = *id;
                run.timeline.clear();
                contents.runs.push_back(run);
                EXPECT_EQ(store.loadRunTimeline(*id).value_or("?"), R"({"spans":[]})");
                break;
            }
            case 12:
                contents.runs.back().state = "done";
                done = store.updateRun(contents.runs.back());
                EXPECT_EQ(store.loadRunTimeline(contents.runs.back().id).value_or("?"), R"({"spans":[]})");
                break;
            default:
                contents.model = {"zoo:mlp?layers=" + std::to_string(round), {}, sha256(""), {{"loss", "y"}}};
                contents.clusterJson = std::string(5000, 'c') + std::to_string(round);
                contents.thumbnail = std::string(3000, static_cast<char>(round));
                done = store.setModel(contents.model);
                ASSERT_TRUE(done) << describe(done.error());
                ASSERT_TRUE(store.setClusterJson(contents.clusterJson));
                contents.thumbnailStep = history.current();
                ASSERT_TRUE(store.setThumbnail(history.current(), contents.thumbnail));
                if (contents.runs.size() > 2) {
                    ASSERT_TRUE(store.removeRun(contents.runs.front().id));
                    contents.runs.erase(contents.runs.begin());
                }
                break;
            }
            ASSERT_TRUE(done) << describe(done.error());
        }
        ASSERT_NO_FATAL_FAILURE(expectStored(contents));
    }
    EXPECT_GT(contents.history.branches().size(), 3U);
}

TEST_F(SessionStoreTest, RefusesWhatDoesNotFitAndChangesNothing)
{
    ASSERT_TRUE(SessionStore::create(path, sample()));
    {
        auto opened = SessionStore::open(path);
        ASSERT_TRUE(opened);
        SessionStore &store = opened->store;
        const History &history = opened->contents.history;
        HistoryStep orphan = *history.find(2);
        orphan.id = 1000;
        orphan.parent = 999;
        EXPECT_EQ(store.addStep(orphan, 1000, history.branches(), 0).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(
            store.addStep(*history.find(2), 2, history.branches(), 0).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.replaceStep(orphan).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setPosition(99, history.branches(), 0).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setPosition(0, history.branches(), 7).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setPosition(0, {{0, "main", 99}}, 0).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setNames({{"x", 99}}).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setNames({{"x", kRootStep}}).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setFigures(99, {}).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.setThumbnail(99, "x").error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.addRun({5, 0, 0, {}, {}, {}, {}}).error().code, ErrorCode::InvalidInput);
        HistoryStep root;
        EXPECT_EQ(store.replaceStep(root).error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.cachePlan(99, "{}").error().code, ErrorCode::InvalidInput);
        EXPECT_EQ(store.updateRun({77, 0, 0, {}, {}, {}, {}}).error().code, ErrorCode::NotFound);
        EXPECT_EQ(store.loadRunTimeline(77).value_or("?"), "");
    }
    expectStored(sample());
}

TEST_F(SessionStoreTest, NeverReplacesAFile)
{
    writeBytes(path, "precious");
    EXPECT_EQ(SessionStore::create(path, sample()).error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(bytesOf(path), "precious");
    const auto other = SessionStore::create(folder / "other.planloom", sample());
    ASSERT_TRUE(other);
    EXPECT_EQ(other->copyTo(path).error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(bytesOf(path), "precious");
}

TEST_F(SessionStoreTest, RefusesWhatIsNoSessionAndLeavesItAlone)
{
    EXPECT_EQ(SessionStore::open(folder / "missing").error().code, ErrorCode::NotFound);
    EXPECT_EQ(readSummary(folder / "missing").error().code, ErrorCode::NotFound);
    EXPECT_EQ(SessionStore::open(folder).error().code, ErrorCode::InvalidInput);
    for (const std::string &bytes : {std::string{}, std::string("SQLite format 3"), std::string(5000, 'x')}) {
        writeBytes(path, bytes);
        const auto opened = SessionStore::open(path);
        ASSERT_FALSE(opened);
        EXPECT_EQ(opened.error().code, ErrorCode::InvalidInput);
        EXPECT_FALSE(opened.error().advice.empty());
        EXPECT_EQ(bytesOf(path), bytes);
    }
    std::filesystem::remove(path);
    SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec("CREATE TABLE bookmarks (url)");
    const std::string before = bytesOf(path);
    EXPECT_NE(SessionStore::open(path).error().message.find("not a Planloom session"), std::string::npos);
    EXPECT_EQ(bytesOf(path), before);
}

TEST_F(SessionStoreTest, BringsVersion1UpToDate)
{
    SQLite::Database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
        .exec(bytesOf(std::string(PLANLOOM_SOURCE_DIR) + "/tests/sessions/version1.sql"));
    const auto old = readSummary(path);
    ASSERT_TRUE(old) << describe(old.error());
    EXPECT_EQ(old->model, "/models/gpt.onnx");
    EXPECT_EQ(old->cluster, "dgx-a100");
    EXPECT_EQ(old->devices, 4);
    EXPECT_EQ(old->stepSeconds, 0.0412);
    SessionContents expected;
    expected.model.source = "/models/gpt.onnx";
    expected.model.content = std::string("\x08\x07\0weights\xff", 11);
    expected.model.sha256 = sha256(expected.model.content);
    expected.model.options = {{"loss", "loss"}, {"dim.batch", "8"}};
    expected.history = History({TableDocument("# two by two\nmesh dp=2 tp=2\n\nsplit all : batch over dp\n"
                                              "split nonsense here\nit's \"quoted\" \xc3\xa9\n"),
        {{"cluster", "dgx-a100"}, {"devices", "4"}}});
    expected.view = {{"theme", "dark"}, {"timeline.begin", "12.5"}};
    expectStored(expected);
    {
        auto opened = SessionStore::open(path); // of version 3 by now
        ASSERT_TRUE(opened);
        RandomEditor editor(2);
        const StepId id = step(expected.history, editor);
        ASSERT_TRUE(opened->store.addStep(*expected.history.find(id), id, expected.history.branches(), 0));
    }
    expectStored(expected);
    EXPECT_EQ(readSummary(path)->steps, 1);
}

TEST_F(SessionStoreTest, GptsOfSessionsBeforeVersion3KeepQueriesKeysAndValuesApart)
{
    const std::pair<const char *, const char *> names[] = {{"zoo:gpt", "zoo:gpt?fused=0"},
        {"zoo:gpt?layers=2", "zoo:gpt?layers=2&fused=0"}, {"zoo:llama?layers=2", "zoo:llama?layers=2"},
        {"/models/zoo:gpt", "/models/zoo:gpt"}};
    for (const auto &[before, today] : names) {
        SCOPED_TRACE(before);
        std::filesystem::remove(path);
        SessionContents contents;
        contents.model.source = before;
        ASSERT_TRUE(SessionStore::create(path, contents));
        sql("PRAGMA user_version = 2");
        const auto summary = readSummary(path); // as it is
        ASSERT_TRUE(summary) << describe(summary.error());
        EXPECT_EQ(summary->model, today);
        for (int times = 0; times < 2; ++times) { // brought up to date once
            const auto opened = SessionStore::open(path);
            ASSERT_TRUE(opened) << describe(opened.error());
            EXPECT_FALSE(opened->store.isReadOnly());
            EXPECT_EQ(opened->contents.model.source, today);
        }
    }
}

TEST_F(SessionStoreTest, OpensSessionsOfTheFutureReadOnlyAsFarAsItKnowsThem)
{
    ASSERT_TRUE(SessionStore::create(path, sample()));
    sql("CREATE TABLE novelty (x); ALTER TABLE run ADD COLUMN mood TEXT; PRAGMA user_version = 4");
    const std::string before = bytesOf(path);
    {
        auto opened = SessionStore::open(path);
        ASSERT_TRUE(opened) << describe(opened.error());
        EXPECT_TRUE(opened->store.isReadOnly());
        EXPECT_NE(opened->contents.remark.find("newer Planloom (version 4"), std::string::npos);
        const auto saved = opened->store.setView({});
        ASSERT_FALSE(saved);
        EXPECT_EQ(saved.error().code, ErrorCode::InvalidInput);
        SessionContents expected = sample();
        expected.readOnly = true;
        expected.remark = opened->contents.remark;
        expectSame(opened->contents, expected);
        EXPECT_TRUE(readSummary(path));
    }
    EXPECT_EQ(bytesOf(path), before);
    sql("DROP TABLE run");
    const auto opened = SessionStore::open(path);
    ASSERT_TRUE(opened);
    EXPECT_TRUE(opened->contents.runs.empty());
    EXPECT_NE(opened->contents.remark.find("\"run\": it is missing"), std::string::npos)
        << opened->contents.remark;
    expectSame(opened->contents.history, sample().history);
}

TEST_F(SessionStoreTest, ASecondWindowReadsOnlyAndSaysWhoHasIt)
{
    auto first = SessionStore::create(path, sample());
    ASSERT_TRUE(first);
    {
        auto second = SessionStore::open(path);
        ASSERT_TRUE(second) << describe(second.error());
        EXPECT_TRUE(second->contents.readOnly);
        const std::string expected =
            "it is open in another window (process " + std::to_string(getpid()) + " on ";
        EXPECT_EQ(second->contents.remark.rfind(expected, 0), 0U) << second->contents.remark;
        expectSame(second->contents.history, sample().history);
        EXPECT_EQ(second->store.setThumbnail(0, "x").error().code, ErrorCode::InvalidInput);
        ASSERT_TRUE(first->setView({{"changed", "1"}})); // the second does not hinder it
        const std::filesystem::path link = folder / "link.planloom";
        std::filesystem::create_symlink(path, link);
        EXPECT_TRUE(SessionStore::open(link)->contents.readOnly); // the same session by another name
    }
    {
        auto closing = *std::move(first);
    }
    const auto again = SessionStore::open(path);
    ASSERT_TRUE(again);
    EXPECT_FALSE(again->contents.readOnly);
    EXPECT_EQ(again->contents.view, (std::map<std::string, std::string>{{"changed", "1"}}));
}

TEST_F(SessionStoreTest, TheLockDiesWithItsProcess)
{
    ASSERT_TRUE(SessionStore::create(path, sample()));
    int ready[2] = {};
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        auto opened = SessionStore::open(path);
        const bool works = opened && !opened->contents.readOnly && opened->store.setView({{"by", "child"}});
        const char answer = works ? 'y' : 'n';
        static_cast<void>(::write(ready[1], &answer, 1) == 1);
        pause();
        _exit(0);
    }
    char answer = 0;
    ASSERT_EQ(read(ready[0], &answer, 1), 1);
    close(ready[0]);
    close(ready[1]);
    EXPECT_EQ(answer, 'y');
    {
        const auto second = SessionStore::open(path);
        ASSERT_TRUE(second);
        EXPECT_NE(second->contents.remark.find("process " + std::to_string(child)), std::string::npos);
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(std::filesystem::exists(SessionLock::pathFor(path)));
    {
        const auto after = SessionStore::open(path);
        ASSERT_TRUE(after) << describe(after.error());
        EXPECT_FALSE(after->contents.readOnly);
        EXPECT_NE(after->contents.remark.find("cut off"), std::string::npos) << after->contents.remark;
        EXPECT_EQ(after->contents.view, (std::map<std::string, std::string>{{"by", "child"}}));
    }
    EXPECT_FALSE(std::filesystem::exists(SessionLock::pathFor(path)));
    EXPECT_EQ(SessionStore::open(path)->contents.remark, "");
}

TEST_F(SessionStoreTest, SaysWhenTheFileIsGoneOrReplacedAndACopySavesTheWork)
{
    auto store = SessionStore::create(path, sample());
    ASSERT_TRUE(store);
    ASSERT_TRUE(store->setView({{"last", "words"}}));
    std::filesystem::remove(path);
    const auto gone = store->setView({});
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, ErrorCode::Io);
    EXPECT_NE(gone.error().message.find("removed or replaced"), std::string::npos);
    ASSERT_TRUE(store->copyTo(folder / "rescued.planloom"));
    writeBytes(path, "something else");
    EXPECT_EQ(store->setView({}).error().code, ErrorCode::Io);
    const auto rescued = SessionStore::open(folder / "rescued.planloom");
    ASSERT_TRUE(rescued) << describe(rescued.error());
    SessionContents expected = sample();
    expected.view = {{"last", "words"}};
    expectSame(rescued->contents, expected);
    EXPECT_EQ(bytesOf(path), "something else");
}

TEST_F(SessionStoreTest, ALockedDatabaseIsAnErrorThatPasses)
{
    auto store = SessionStore::create(path, sample());
    ASSERT_TRUE(store);
    {
        SQLite::Database other(path.string(), SQLite::OPEN_READWRITE);
        other.exec("BEGIN IMMEDIATE");
        const auto refused = store->setView({});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, ErrorCode::Io);
        EXPECT_NE(refused.error().message.find("locked"), std::string::npos);
        EXPECT_FALSE(refused.error().advice.empty());
        other.exec("ROLLBACK");
    }
    EXPECT_TRUE(store->setView({{"a", "b"}}));
}

/// Lets no file grow beyond `bytes` while it lives: what a full disk does.
class SmallDisk
{
public:
    explicit SmallDisk(rlim_t bytes)
    {
        m_handler = std::signal(SIGXFSZ, SIG_IGN);
        getrlimit(RLIMIT_FSIZE, &m_before);
        const rlimit limit{bytes, m_before.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    SmallDisk(const SmallDisk &) = delete;
    SmallDisk &operator=(const SmallDisk &) = delete;
    ~SmallDisk()
    {
        setrlimit(RLIMIT_FSIZE, &m_before);
        std::signal(SIGXFSZ, m_handler);
    }

private:
    rlimit m_before{};
    void (*m_handler)(int) = nullptr;
};

TEST_F(SessionStoreTest, AFullDiskIsAnErrorAndNothingIsChanged)
{
    SessionContents contents = sample();
    {
        auto store = SessionStore::create(path, contents);
        ASSERT_TRUE(store);
        {
            const SmallDisk disk(16384); // less than the file has
            const auto refused = store->setThumbnail(0, std::string(100'000, 'x'));
            ASSERT_FALSE(refused);
            EXPECT_EQ(refused.error().code, ErrorCode::Io);
            EXPECT_NE(refused.error().message.find("disk"), std::string::npos) << describe(refused.error());
            EXPECT_FALSE(refused.error().advice.empty());
            const auto none = SessionStore::create(folder / "new.planloom", contents);
            ASSERT_FALSE(none);
            EXPECT_EQ(none.error().code, ErrorCode::Io);
            EXPECT_FALSE(store->copyTo(folder / "copy.planloom"));
        }
        contents.view = {{"room", "again"}};
        const auto stored = store->setView(contents.view);
        EXPECT_TRUE(stored) << describe(stored.error());
        for (const char *name : {"new.planloom", "copy.planloom"})
            EXPECT_FALSE(std::filesystem::exists(folder / name));
    }
    expectStored(contents);
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        EXPECT_EQ(entry.path(), path); // nothing half-made is left
}

/// Without a superuser's rights while it lives.
class AsNobody
{
public:
    AsNobody()
    {
        if (m_isRoot) {
            EXPECT_EQ(setegid(65534), 0);
            EXPECT_EQ(seteuid(65534), 0);
        }
    }
    AsNobody(const AsNobody &) = delete;
    AsNobody &operator=(const AsNobody &) = delete;
    ~AsNobody()
    {
        if (m_isRoot) {
            EXPECT_EQ(seteuid(0), 0);
            EXPECT_EQ(setegid(0), 0);
        }
    }

private:
    bool m_isRoot = geteuid() == 0;
};

TEST_F(SessionStoreTest, AReadOnlyFolderCanBeReadAndSaysSo)
{
    ASSERT_TRUE(SessionStore::create(path, sample()));
    std::filesystem::copy_file(path, folder / "cut off.planloom");
    {
        // Work that is still in the log, as after a crash.
        auto store = SessionStore::open(path);
        ASSERT_TRUE(store);
        ASSERT_TRUE(store->store.setView({{"in", "the log"}}));
        std::filesystem::copy_file(
            path, folder / "cut off.planloom", std::filesystem::copy_options::overwrite_existing);
        std::filesystem::copy_file(path.string() + "-wal", folder / "cut off.planloom-wal");
    }
    using std::filesystem::perms;
    std::filesystem::permissions(
        folder, perms::owner_read | perms::owner_exec | perms::others_read | perms::others_exec);
    for (const auto &entry : std::filesystem::directory_iterator(folder))
        std::filesystem::permissions(entry.path(), perms::owner_read | perms::others_read);
    {
        const AsNobody nobody;
        for (const std::filesystem::path &each : {path, folder / "cut off.planloom"}) {
            SCOPED_TRACE(each);
            auto opened = SessionStore::open(each);
            ASSERT_TRUE(opened) << describe(opened.error());
            EXPECT_TRUE(opened->contents.readOnly);
            EXPECT_NE(opened->contents.remark.find("may not be written"), std::string::npos)
                << opened->contents.remark;
            EXPECT_EQ(opened->contents.view, (std::map<std::string, std::string>{{"in", "the log"}}));
            expectSame(opened->contents.history, sample().history);
            EXPECT_EQ(opened->store.setView({}).error().code, ErrorCode::InvalidInput);
            const auto made = SessionStore::create(folder / "x.planloom", sample());
            ASSERT_FALSE(made);
            EXPECT_EQ(made.error().code, ErrorCode::Io);
            EXPECT_FALSE(made.error().advice.empty());
            const auto summary = readSummary(each);
            ASSERT_TRUE(summary) << describe(summary.error());
        }
    }
    std::filesystem::permissions(folder, perms::owner_all);
}

TEST_F(SessionStoreTest, FindsTheModelBesideItAgainWhenBothAreMoved)
{
    std::filesystem::create_directories(folder / "a" / "models");
    std::filesystem::create_directories(folder / "b");
    const std::filesystem::path from = folder / "a" / "s.planloom";
    SessionContents contents;
    contents.model.source = (folder / "a" / "models" / "gpt.onnx").string();
    ASSERT_TRUE(SessionStore::create(from, contents));
    EXPECT_EQ(bytesOf(from).find(folder.string()), std::string::npos); // no absolute path inside
    {
        const auto store = SessionStore::open(from);
        ASSERT_TRUE(store);
        EXPECT_EQ(store->contents.model.source, contents.model.source);
        ASSERT_TRUE(store->store.copyTo(folder / "b" / "copy.planloom"));
        ASSERT_TRUE(store->store.copyTo(folder / "a" / "models" / "copy.planloom"));
    }
    EXPECT_EQ(
        SessionStore::open(folder / "b" / "copy.planloom")->contents.model.source, contents.model.source);
    EXPECT_EQ(SessionStore::open(folder / "a" / "models" / "copy.planloom")->contents.model.source,
        contents.model.source);
    std::filesystem::rename(folder / "a", folder / "c");
    EXPECT_EQ(SessionStore::open(folder / "c" / "s.planloom")->contents.model.source,
        (folder / "c" / "models" / "gpt.onnx").string());
    EXPECT_EQ(
        readSummary(folder / "c" / "s.planloom")->model, (folder / "c" / "models" / "gpt.onnx").string());
    // Elsewhere, and zoo names: as they are.
    for (const std::string &source :
        {std::string("/models/gpt.onnx"), std::string("zoo:mlp?layers=2"), std::string{}}) {
        SessionContents other;
        other.model.source = source;
        std::filesystem::remove(path);
        ASSERT_TRUE(SessionStore::create(path, other));
        EXPECT_EQ(SessionStore::open(path)->contents.model.source, source);
    }
}

TEST_F(SessionStoreTest, TheSummarySaysWhereItStands)
{
    SessionContents contents = sample();
    ASSERT_TRUE(contents.history.goTo(4));
    DesignChange change;
    change.values = {{"devices", "4", "64"}};
    ASSERT_TRUE(contents.history.record("64 devices", change, 1));
    contents.history.setFigures(contents.history.current(), {0.25, 1, false});
    contents.thumbnailStep = contents.history.current();
    auto store = SessionStore::create(path, contents);
    ASSERT_TRUE(store);
    const auto summary = readSummary(path); // while it is open
    ASSERT_TRUE(summary) << describe(summary.error());
    EXPECT_EQ(summary->model, "/models/gpt.onnx");
    EXPECT_EQ(summary->cluster, "dgx-a100");
    EXPECT_EQ(summary->devices, 64);
    EXPECT_EQ(summary->stepSeconds, 0.25);
    EXPECT_EQ(summary->steps, static_cast<std::int64_t>(contents.history.steps().size()));
    EXPECT_EQ(summary->thumbnail, contents.thumbnail);
    contents.history.undo();
    ASSERT_TRUE(store->setPosition(
        contents.history.current(), contents.history.branches(), contents.history.branch()));
    EXPECT_EQ(readSummary(path)->devices, 4);
    EXPECT_EQ(readSummary(path)->stepSeconds, 0.125);
    EXPECT_EQ(readSummary(path)->thumbnail, ""); // it shows another step
}

TEST_F(SessionStoreTest, KeepsTheLatestUsedPlansUpToItsLimit)
{
    auto store = SessionStore::create(path, sample());
    ASSERT_TRUE(store);
    EXPECT_EQ(store->loadPlan(1).value_or("?"), "");
    std::mt19937 random(1);
    const auto incompressible = [&](std::size_t size) {
        std::string bytes(size, '\0');
        for (std::size_t i = 0; i + 4 <= size; i += 4) {
            const auto word = static_cast<std::uint32_t>(random());
            std::copy_n(
                reinterpret_cast<const char *>(&word), 4, bytes.begin() + static_cast<std::ptrdiff_t>(i));
        }
        return bytes;
    };
    const auto holds = [&](StepId step, const std::string &plan) {
        return store->loadPlan(step).value_or("?") == plan;
    };
    std::vector<std::string> plans(6);
    for (const std::size_t step : {1, 2, 3, 5})
        plans[step] = incompressible(20'000);
    for (const StepId step : {1, 2, 3})
        ASSERT_TRUE(store->cachePlan(step, plans[static_cast<std::size_t>(step)]));
    EXPECT_TRUE(holds(1, plans[1])); // used: stays
    // A large one that leaves just enough room for these three.
    sql("INSERT INTO plan_cache (step, used, execution, execution_size) VALUES (4, 1000, zeroblob((64 << 20) "
        "- 61000), 0)");
    ASSERT_TRUE(store->cachePlan(5, plans[5]));
    EXPECT_TRUE(holds(1, plans[1]));
    EXPECT_TRUE(holds(2, {}));
    EXPECT_TRUE(holds(3, plans[3]));
    EXPECT_TRUE(holds(5, plans[5]));
    ASSERT_TRUE(store->cachePlan(0, std::string(1 << 20, 'z'))); // short once it is compressed, but too much
    EXPECT_TRUE(holds(0, std::string(1 << 20, 'z')));
    EXPECT_TRUE(holds(1, plans[1]));
    const auto left = [&](const std::string &what) {
        return SQLite::Database(path.string(), SQLite::OPEN_READONLY)
            .execAndGet("SELECT " + what + " FROM plan_cache")
            .getInt64();
    };
    EXPECT_LE(left("sum(length(CAST(execution AS BLOB)))"), 64 << 20);
    EXPECT_GE(left("count(*)"), 4);
}

TEST_F(SessionStoreTest, AmendedStepsForgetTheirPlan)
{
    SessionContents contents;
    auto store = SessionStore::create(path, contents);
    ASSERT_TRUE(store);
    History &history = contents.history;
    ASSERT_TRUE(history.record("a", {{}, {{"x", std::nullopt, "1"}}}, 1));
    ASSERT_TRUE(store->addStep(*history.find(1), 1, history.branches(), 0));
    ASSERT_TRUE(store->cachePlan(1, "{}"));
    EXPECT_EQ(store->loadPlan(1).value_or("?"), "{}");
    ASSERT_TRUE(*history.amend("b", {{}, {{"x", "1", "2"}}}));
    ASSERT_TRUE(store->replaceStep(*history.find(1)));
    EXPECT_EQ(store->loadPlan(1).value_or("?"), "");
}

TEST_F(SessionStoreTest, OpensALongHistoryQuickly)
{
    RandomEditor editor(3);
    SessionContents contents;
    contents.history = History({TableDocument(editor.text(1000)), {}});
    for (int i = 0; i < 10'000; ++i)
        step(contents.history, editor);
    ASSERT_TRUE(SessionStore::create(path, contents));
    const auto begin = std::chrono::steady_clock::now();
    const auto opened = SessionStore::open(path);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(opened) << describe(opened.error());
    RecordProperty("seconds", std::to_string(took.count()));
    std::printf("10,000 steps of 1,000 lines: opened in %.3f s\n", took.count());
    EXPECT_EQ(opened->contents.history.steps().size(), 10'000U);
    EXPECT_EQ(opened->contents.history.state(), contents.history.state());
}

} // namespace
} // namespace planloom
