#include "sessions/recent.h"

#include "tests/sessions/session_fixture.h"

#include <thread>

namespace planloom {
namespace {

class RecentTest : public SessionFixture
{
protected:
    RecentSession entry(const std::string &name, std::int64_t opened = 1) const
    {
        return {folder / name, "zoo:mlp", opened, true};
    }
    std::filesystem::path lists() const { return folder / "config" / "planloom"; }
    std::vector<std::string> names() const
    {
        std::vector<std::string> result;
        for (const RecentSession &session : loadRecent(lists()))
            result.push_back(session.path.filename().string());
        return result;
    }
};

TEST_F(RecentTest, TheNewestIsFirstAndEachPathIsThereOnce)
{
    EXPECT_TRUE(loadRecent(lists()).empty());
    ASSERT_TRUE(addRecent(lists(), entry("a", 1)));
    ASSERT_TRUE(addRecent(lists(), entry("b", 2)));
    ASSERT_TRUE(addRecent(lists(), entry("x/../a", 3)));
    EXPECT_EQ(loadRecent(lists()), (std::vector<RecentSession>{entry("a", 3), entry("b", 2)}));
    ASSERT_TRUE(removeRecent(lists(), folder / "b"));
    EXPECT_EQ(names(), std::vector<std::string>{"a"});
}

TEST_F(RecentTest, HoldsTwenty)
{
    for (int i = 0; i < 25; ++i)
        ASSERT_TRUE(addRecent(lists(), entry(std::to_string(i))));
    EXPECT_EQ(names().size(), 20U);
    EXPECT_EQ(names().front(), "24");
    EXPECT_EQ(names().back(), "5");
}

TEST_F(RecentTest, MissingFilesStayListedAndSaySo)
{
    writeBytes(folder / "here", "x");
    ASSERT_TRUE(addRecent(lists(), entry("gone")));
    ASSERT_TRUE(addRecent(lists(), entry("here")));
    EXPECT_EQ(names(), (std::vector<std::string>{"here", "gone"}));
    EXPECT_FALSE(loadRecent(lists())[0].missing);
    EXPECT_TRUE(loadRecent(lists())[1].missing);
    std::filesystem::remove(folder / "here");
    EXPECT_TRUE(loadRecent(lists())[0].missing);
}

TEST_F(RecentTest, PicturesOfOlderVersionsGoAndNothingElse)
{
    std::filesystem::create_directories(lists());
    for (const char *name : {"recent-0123.png", "my.png", "recent.txt"})
        writeBytes(lists() / name, "x");
    ASSERT_TRUE(addRecent(lists(), entry("a")));
    EXPECT_FALSE(std::filesystem::exists(lists() / "recent-0123.png"));
    EXPECT_TRUE(std::filesystem::exists(lists() / "my.png"));
    EXPECT_TRUE(std::filesystem::exists(lists() / "recent.txt"));
}

TEST_F(RecentTest, HostileListsGiveWhatIsUsable)
{
    std::filesystem::create_directories(lists());
    const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
    for (const std::string &text :
        {std::string{}, std::string("null"), std::string("[1,2]"), std::string("{\"sessions\":7}"),
            std::string("{\"sessions\":[1,null,{},{\"path\":5},{\"path\":\"\"},{\"path\":\"a\\u0000b\"}]}"),
            deep, "{\"sessions\":" + deep + "}", std::string("{\"sessions\":[{\"path\":"),
            std::string("\xff\xfe\0{", 4), std::string(2 << 20, ' ')}) {
        writeBytes(lists() / "recent.json", text);
        EXPECT_TRUE(loadRecent(lists()).empty()) << text.substr(0, 60);
    }
    writeBytes(lists() / "recent.json",
        R"({"sessions":[{"path":"/s","devices":1e300,"step_seconds":-4,"opened":"x","thumbnail":"../../etc/passwd","model":[]},)"
        R"({"path":"/s","devices":2}, {"path":"/t","devices":2,"unknown":{}}]})");
    EXPECT_EQ(loadRecent(lists()), (std::vector<RecentSession>{{"/s", {}, 0, true}, {"/t", {}, 0, true}}));
    ASSERT_TRUE(addRecent(lists(), entry("a"))); // and it goes on from there
    EXPECT_EQ(names(), (std::vector<std::string>{"a", "s", "t"}));
    RecentSession odd = entry("\xff\xfe");
    odd.model = "\xc3";
    ASSERT_TRUE(addRecent(lists(), odd)); // no UTF-8: written as well as it goes
    EXPECT_EQ(names().size(), 4U);
}

TEST_F(RecentTest, AFolderThatCannotBeMadeIsAnError)
{
    writeBytes(folder / "file", "x");
    const auto added = addRecent(folder / "file" / "list", entry("a"));
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, ErrorCode::Io);
    EXPECT_FALSE(added.error().advice.empty());
    EXPECT_TRUE(loadRecent(folder / "file" / "list").empty());
}

TEST_F(RecentTest, TwoWindowsLoseNothingOfEachOther)
{
    const auto add = [&](int first) {
        for (int i = 0; i < 8; ++i)
            EXPECT_TRUE(addRecent(lists(), entry(std::to_string(first + i))));
    };
    std::filesystem::create_directories(lists());
    std::thread other(add, 100);
    add(0);
    other.join();
    EXPECT_EQ(names().size(), 16U);
}

} // namespace
} // namespace planloom
