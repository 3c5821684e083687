#include "engine/base/files.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <fstream>
#include <thread>

namespace planloom {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test
{
protected:
    Files()
        : folder(fs::path(testing::TempDir())
            / (std::string("files_") + testing::UnitTest::GetInstance()->current_test_info()->name()))
    {
        fs::remove_all(folder);
        fs::create_directories(folder);
    }
    ~Files() override { fs::remove_all(folder); }
    fs::path folder;
};

TEST_F(Files, ReadBackWhatWasWritten)
{
    for (const std::string &bytes : {std::string(), std::string("a\0\r\nb", 5), std::string(200'000, 'x')}) {
        const fs::path path = folder / "file";
        const auto written = writeFile(path, bytes);
        ASSERT_TRUE(written) << describe(written.error());
        const auto read = readFile(path);
        ASSERT_TRUE(read) << describe(read.error());
        EXPECT_EQ(*read, bytes);
        EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1) << "something was left beside it";
    }
}

TEST_F(Files, SayWhatIsMissing)
{
    const std::string path = (folder / "none").string();
    const auto plain = readFile(path);
    ASSERT_FALSE(plain);
    EXPECT_EQ(plain.error(), (Error{ErrorCode::NotFound, "there is no such file", "check the path", path}));
    const auto named = readFile(path, {.what = "cluster file"});
    ASSERT_FALSE(named);
    EXPECT_EQ(named.error().message, "there is no cluster file \"" + path + "\"");
}

TEST_F(Files, RefuseFoldersAndWhatIsTooLarge)
{
    const auto none = readFile(folder);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::InvalidInput);
    ASSERT_TRUE(writeFile(folder / "five", "12345"));
    EXPECT_TRUE(readFile(folder / "five", {.mostBytes = 5}));
    const auto large = readFile(folder / "five", {.mostBytes = 4});
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().code, ErrorCode::ResourceLimit);
}

TEST_F(Files, ReadPipesOnlyIfAsked)
{
    const fs::path path = folder / "pipe";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const auto refused = readFile(path);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
    std::thread writer([&path] { std::ofstream(path) << "mesh dp=2\n"; });
    const auto read = readFile(path, {.pipes = true});
    writer.join();
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(*read, "mesh dp=2\n");
}

TEST_F(Files, AWriteKeepsLinksAndPermissionsAndWhatIsNoFile)
{
    const fs::path path = folder / "file";
    const fs::path link = folder / "link";
    ASSERT_TRUE(writeFile(path, "old"));
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    fs::create_symlink(path, link);
    ASSERT_TRUE(writeFile(link, "new"));
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_EQ(*readFile(path), "new");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);

    const fs::path device = folder / "null"; // a test that fails must not replace the real one
    fs::create_symlink("/dev/null", device);
    ASSERT_TRUE(writeFile(device, "gone"));
    EXPECT_TRUE(fs::is_symlink(device));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(Files, AWriteWithoutItsFolderNamesIt)
{
    const auto written = writeFile(folder / "no" / "such" / "folder", "x");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::NotFound);
    EXPECT_EQ(written.error().message, "there is no folder \"" + (folder / "no" / "such").string() + "\"");
    EXPECT_EQ(writeFile(folder, "x").error().code, ErrorCode::InvalidInput);
}

TEST_F(Files, AFailedWriteLeavesTheOldFile)
{
    const fs::path path = folder / "file";
    ASSERT_TRUE(writeFile(path, "old"));
    fs::create_directory(path.string() + ".part"); // what is written first can't be made
    const auto written = writeFile(path, "new");
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::Io);
    EXPECT_EQ(*readFile(path), "old");
    EXPECT_FALSE(writeFile(folder / "no" / "such" / "folder", "x"));
}

TEST_F(Files, ReadWhatClaimsToBeEmpty)
{
    const auto read = readFile("/proc/self/status");
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_NE(read->find("Name:"), std::string::npos);
}

} // namespace
} // namespace planloom
