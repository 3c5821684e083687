#include "sessions/session_file.h"

#include "sessions/compress.h"
#include "sessions/digest.h"
#include "sessions/session_schema.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

namespace planloom {
namespace {

std::string bytesOf(const std::filesystem::path &path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const std::filesystem::path &path, const std::string &bytes)
{
    std::ofstream(path, std::ios::binary) << bytes;
}

class SessionFileTest : public testing::Test
{
protected:
    void SetUp() override
    {
        std::string pattern = (std::filesystem::temp_directory_path() / "planloom_session_XXXXXX").string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder = pattern;
        path = folder / "my plan.planloom";
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    static SessionData sample()
    {
        SessionData data;
        data.model.source = "/models/gpt.onnx";
        data.model.content = std::string("\x08\x07\0weights\xff", 11);
        data.model.sha256 = sha256(data.model.content);
        data.model.options = {{"loss", "loss"}, {"dim.batch", "8"}};
        data.cluster = {"dgx-a100", "", 4};
        data.tableText = "# two by two\nmesh dp=2 tp=2\n\nsplit all : batch over dp\nsplit nonsense here\n";
        data.plan = SessionPlan{sha256(data.tableText), R"({"step_seconds":0.0412})", R"({"version":1})"};
        data.view = {{"theme", "dark"}, {"timeline.begin", "12.5"}};
        return data;
    }

    std::filesystem::path folder;
    std::filesystem::path path;
};

TEST_F(SessionFileTest, GivesBackWhatWasSaved)
{
    ASSERT_TRUE(saveSession(path, sample()));
    const auto file = SessionFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const auto data = file->load();
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(*data, sample());
}

TEST_F(SessionFileTest, SavesOverWhatWasThere)
{
    ASSERT_TRUE(saveSession(path, sample()));
    SessionData other;
    other.model.source = "zoo:mlp";
    other.model.sha256 = sha256("");
    other.tableText = "micro-batches 2\n";
    ASSERT_TRUE(saveSession(path, other));
    const auto file = SessionFile::open(path);
    ASSERT_TRUE(file);
    const auto data = file->load();
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(*data, other);
}

TEST_F(SessionFileTest, ANewSessionIsEmptyMarkedAndInWriteAheadMode)
{
    {
        const auto file = SessionFile::create(path);
        ASSERT_TRUE(file) << file.error().message;
        const auto data = file->load();
        ASSERT_TRUE(data) << data.error().message;
        EXPECT_EQ(*data, SessionData{});
    }
    SQLite::Database database(path.string(), SQLite::OPEN_READONLY);
    EXPECT_EQ(database.execAndGet("PRAGMA application_id").getInt(), kSessionApplicationId);
    EXPECT_EQ(
        database.execAndGet("PRAGMA user_version").getInt(), static_cast<int>(sessionMigrations().size()));
    EXPECT_EQ(database.execAndGet("PRAGMA journal_mode").getString(), "wal");
    EXPECT_TRUE(looksLikeSession(path));
}

TEST_F(SessionFileTest, NeverReplacesAFileWhenCreating)
{
    write(path, "precious");
    const auto file = SessionFile::create(path);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::InvalidInput);
    EXPECT_EQ(bytesOf(path), "precious");
}

TEST_F(SessionFileTest, RefusesWhatIsNoSessionAndLeavesItAlone)
{
    EXPECT_EQ(SessionFile::open(folder / "missing").error().code, ErrorCode::NotFound);
    EXPECT_EQ(SessionFile::open(folder).error().code, ErrorCode::InvalidInput);
    for (const std::string &bytes : {std::string{}, std::string("SQLite format 3"), std::string(5000, 'x')}) {
        write(path, bytes);
        const auto file = SessionFile::open(path);
        ASSERT_FALSE(file);
        EXPECT_EQ(file.error().code, ErrorCode::InvalidInput);
        EXPECT_FALSE(file.error().advice.empty());
        EXPECT_EQ(bytesOf(path), bytes);
        EXPECT_FALSE(saveSession(path, sample()));
        EXPECT_EQ(bytesOf(path), bytes);
    }
}

TEST_F(SessionFileTest, RefusesDatabasesOfOtherPrograms)
{
    {
        SQLite::Database database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        database.exec("CREATE TABLE bookmarks (url TEXT)");
    }
    const std::string before = bytesOf(path);
    const auto file = SessionFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_NE(file.error().message.find("not a Planloom session"), std::string::npos);
    EXPECT_EQ(bytesOf(path), before);
}

TEST_F(SessionFileTest, RefusesSessionsOfTheFutureAndSaysSo)
{
    ASSERT_TRUE(saveSession(path, sample()));
    {
        SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
        database.exec("PRAGMA user_version = 99");
    }
    const std::string before = bytesOf(path);
    const auto file = SessionFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::NotSupported);
    EXPECT_NE(file.error().message.find("99"), std::string::npos);
    EXPECT_NE(file.error().advice.find("newer"), std::string::npos);
    EXPECT_EQ(bytesOf(path), before);
}

TEST_F(SessionFileTest, RefusesSchemasThatAreNotItsOwn)
{
    ASSERT_TRUE(saveSession(path, sample()));
    {
        SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
        database.exec("CREATE TRIGGER bad AFTER INSERT ON model BEGIN DELETE FROM constraint_row; END");
    }
    const auto file = SessionFile::open(path);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::InvalidInput);
}

TEST_F(SessionFileTest, BringsAVersion0FileUpToDate)
{
    {
        SQLite::Database database(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
        database.exec("PRAGMA application_id = " + std::to_string(kSessionApplicationId));
    }
    const auto file = SessionFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    const auto data = file->load();
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(*data, SessionData{});
}

TEST_F(SessionFileTest, TellsDamageOrReadsTheTruthWhateverByteIsWrong)
{
    ASSERT_TRUE(saveSession(path, sample()));
    const std::string good = bytesOf(path);
    std::mt19937 random(7);
    for (int trial = 0; trial < 150; ++trial) {
        std::string bad = good;
        if (trial % 3 == 0) {
            bad.resize(random() % bad.size());
        } else {
            for (int change = 0; change < 1 + trial % 20; ++change)
                bad[random() % bad.size()] = static_cast<char>(random());
        }
        SCOPED_TRACE(testing::Message() << "trial " << trial);
        write(path, bad);
        std::filesystem::remove(path.string() + "-wal");
        std::filesystem::remove(path.string() + "-shm");
        const auto file = SessionFile::open(path);
        if (!file) {
            EXPECT_FALSE(file.error().message.empty());
            EXPECT_EQ(bytesOf(path), bad);
            continue;
        }
        const auto data = file->load();
        if (data)
            EXPECT_EQ(data->model.sha256, sha256(data->model.content));
        else
            EXPECT_NE(data.error().message.find("damaged"), std::string::npos) << data.error().message;
    }
}

TEST_F(SessionFileTest, SalvageOfASoundSessionLosesNothing)
{
    ASSERT_TRUE(saveSession(path, sample()));
    const auto expected = SessionFile::open(path)->load();
    const auto salvaged = salvageSession(path);
    ASSERT_TRUE(salvaged) << describe(salvaged.error());
    EXPECT_TRUE(salvaged->losses.empty());
    SessionData data = salvaged->data;
    data.model.sha256 = expected->model.sha256; // filled in by saving
    EXPECT_EQ(data, *expected);
}

TEST_F(SessionFileTest, SalvageReadsWhatIsLeftAndChangesNothing)
{
    ASSERT_TRUE(saveSession(path, sample()));
    const std::string good = bytesOf(path);
    std::mt19937 random(3);
    int salvagedRows = 0;
    for (int trial = 0; trial < 60; ++trial) {
        std::string bad = good;
        for (int change = 0; change < 40; ++change) // behind the header, which says what the file is
            bad[200 + random() % (bad.size() - 200)] = static_cast<char>(random());
        write(path, bad);
        std::filesystem::remove(path.string() + "-wal");
        std::filesystem::remove(path.string() + "-shm");
        const auto salvaged = salvageSession(path);
        if (!salvaged) {
            EXPECT_FALSE(salvaged.error().message.empty());
            continue;
        }
        for (const std::string &loss : salvaged->losses)
            EXPECT_FALSE(loss.empty());
        salvagedRows += salvaged->data.tableText.empty() ? 0 : 1;
        EXPECT_EQ(bytesOf(path), bad);
    }
    EXPECT_GT(salvagedRows, 0);
}

TEST_F(SessionFileTest, AFailedSaveChangesNothing)
{
    ASSERT_TRUE(saveSession(path, sample()));
    auto file = SessionFile::open(path);
    ASSERT_TRUE(file);
    {
        // Another program holds the write lock.
        SQLite::Database other(path.string(), SQLite::OPEN_READWRITE);
        other.exec("BEGIN IMMEDIATE");
        SessionData changed = sample();
        changed.tableText = "micro-batches 8\n";
        const auto saved = file->save(changed);
        ASSERT_FALSE(saved);
        EXPECT_EQ(saved.error().code, ErrorCode::Io);
        EXPECT_FALSE(saved.error().advice.empty());
        other.exec("ROLLBACK");
    }
    SessionData wrong = sample();
    wrong.cluster.deviceCount = 0;
    EXPECT_EQ(file->save(wrong).error().code, ErrorCode::InvalidInput);
    const auto data = file->load();
    ASSERT_TRUE(data) << data.error().message;
    EXPECT_EQ(*data, sample());
}

TEST(Digest, IsSha256)
{
    // Vectors of FIPS 180-4's examples.
    EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Compress, RoundTripsAndRefusesLies)
{
    for (const std::string &text : {std::string{}, std::string("a"), std::string(100'000, 'b')}) {
        const auto packed = deflated(text);
        ASSERT_TRUE(packed);
        const auto back = inflated(*packed, text.size(), 1 << 20);
        ASSERT_TRUE(back) << back.error().message;
        EXPECT_EQ(*back, text);
        EXPECT_FALSE(inflated(*packed, text.size() + 1, 1 << 20));
        EXPECT_EQ(inflated(*packed, std::size_t{1} << 40, 1 << 20).error().code, ErrorCode::ResourceLimit);
    }
    EXPECT_FALSE(inflated("rubbish", 7, 1 << 20));
    EXPECT_FALSE(inflated("x", 1 << 19, 1 << 20));
}

} // namespace
} // namespace planloom
