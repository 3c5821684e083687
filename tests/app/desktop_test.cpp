// The designer's program as a shell starts it.

#include "planloom_paths.h"
#include "sessions/session_store.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace planloom {
namespace {

struct Ended {
    int status = -1;
    std::string said{};
};

class Desktop : public testing::Test
{
protected:
    void SetUp() override
    {
        // Neither all letters are ASCII nor is there no space.
        m_folder = std::filesystem::path(testing::TempDir()) / ("pläne für alle " + std::to_string(getpid()));
        std::filesystem::create_directories(m_folder);
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }

    std::string pathOf(const std::string &name) const { return (m_folder / name).string(); }
    std::string quoted(const std::string &name) const { return "'" + pathOf(name) + "'"; }

    static Ended run(const std::string &words)
    {
        Ended outcome;
        FILE *pipe = popen(
            ("QT_QPA_PLATFORM=offscreen '" PLANLOOM_BINARY_DIR "/bin/planloom' " + words + " 2>&1 </dev/null")
                .c_str(),
            "r");
        if (!pipe)
            return outcome;
        std::array<char, 4096> chunk{};
        while (const std::size_t n = fread(chunk.data(), 1, chunk.size(), pipe))
            outcome.said.append(chunk.data(), n);
        const int status = pclose(pipe);
        outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return outcome;
    }

    std::filesystem::path m_folder{};
};

TEST_F(Desktop, OpensASessionByItsOption)
{
    SessionContents contents;
    contents.model.source = "zoo:mlp?layers=2&hidden=32&batch=8";
    DesignState root;
    root.table = TableDocument("mesh dp=2\n");
    root.values = {{"cluster", "dgx-a100"}, {"devices", "2"}};
    contents.history = History(std::move(root));
    ASSERT_TRUE(SessionStore::create(pathOf("mine.planloom"), contents));
    for (const char *option : {"--session ", "--session="}) {
        const std::string picture = option == std::string("--session ") ? "a.png" : "b.png";
        const Ended outcome = run(option + quoted("mine.planloom") + " --screenshot " + quoted(picture));
        EXPECT_EQ(outcome.status, 0) << outcome.said;
        EXPECT_GT(std::filesystem::file_size(pathOf(picture)), 10'000u);
    }
    // That it is the session which is shown: with nothing open there is less to see.
    ASSERT_EQ(run("--screenshot " + quoted("start.png")).status, 0);
    EXPECT_NE(std::filesystem::file_size(pathOf("a.png")), std::filesystem::file_size(pathOf("start.png")));
}

TEST_F(Desktop, PresentsASession)
{
    SessionContents contents;
    contents.model.source = "zoo:mlp?layers=2&hidden=32&batch=8";
    DesignState root;
    root.table = TableDocument("mesh dp=2\n");
    root.values = {{"cluster", "dgx-a100"}, {"devices", "2"}};
    contents.history = History(std::move(root));
    contents.view["scenes"] =
        R"({"version":1,"scenes":[{"name":"one","step":0,"branch":0,"colouring":2,"graphColouring":1,)"
        R"("canvases":2,"seconds":60}]})";
    ASSERT_TRUE(SessionStore::create(pathOf("talk.planloom"), contents));
    const Ended shown = run("--session " + quoted("talk.planloom") + " --screenshot " + quoted("window.png"));
    EXPECT_EQ(shown.status, 0) << shown.said;
    const Ended outcome = run("--present " + quoted("talk.planloom") + " --screenshot " + quoted("talk.png"));
    EXPECT_EQ(outcome.status, 0) << outcome.said;
    // Nothing but the timeline in full screen: another picture than that of the window.
    EXPECT_GT(std::filesystem::file_size(pathOf("talk.png")), 10'000u);
    EXPECT_NE(
        std::filesystem::file_size(pathOf("talk.png")), std::filesystem::file_size(pathOf("window.png")));
    std::ofstream(pathOf("plain.planloom")) << "not a session";
    const Ended plain = run("--present " + quoted("plain.planloom"));
    EXPECT_EQ(plain.status, 2);
    EXPECT_NE(plain.said.find("scenes are kept in sessions"), std::string::npos) << plain.said;
    EXPECT_EQ(run("--present").status, 2);
    EXPECT_NE(run("--help").said.find("--present SESSION"), std::string::npos);
}

TEST_F(Desktop, SaysThatAFileIsMissing)
{
    for (const std::string &words : {"--session " + quoted("none.planloom"),
             "--session=" + quoted("none.planloom"), quoted("none.onnx")}) {
        const Ended outcome = run(words);
        EXPECT_EQ(outcome.status, 2) << words;
        EXPECT_NE(outcome.said.find("there is no file \"" + m_folder.string()), std::string::npos)
            << outcome.said;
    }
    EXPECT_EQ(run("--session").status, 2);
    std::ofstream(pathOf("plain.planloom")) << "not a session";
    const Ended plain = run("--session " + quoted("plain.planloom"));
    EXPECT_EQ(plain.status, 2);
    EXPECT_NE(plain.said.find("is not a session"), std::string::npos) << plain.said;
}

TEST_F(Desktop, KeepsTheConventionsOfCommandLines)
{
    const Ended help = run("--help");
    EXPECT_EQ(help.status, 0);
    EXPECT_EQ(run("-h").said, help.said);
    EXPECT_NE(help.said.find("Example:\n  planloom "), std::string::npos) << help.said;
    EXPECT_TRUE(run("--version").said.starts_with("planloom "));
    const Ended option = run("--scrennshot x.png");
    EXPECT_EQ(option.status, 2);
    EXPECT_NE(option.said.find("did you mean --screenshot?"), std::string::npos) << option.said;
    const Ended file = run("-- --version");
    EXPECT_EQ(file.status, 2);
    EXPECT_NE(file.said.find("there is no file \"--version\""), std::string::npos) << file.said;
    EXPECT_EQ(run("--help >/dev/full").status, 1);
}

} // namespace
} // namespace planloom
