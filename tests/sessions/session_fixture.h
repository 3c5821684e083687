#pragma once

#include "engine/base/digest.h"
#include "sessions/session_store.h"

#include "tests/sessions/history_walk.h"

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace planloom {

inline std::string bytesOf(const std::filesystem::path &path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline void writeBytes(const std::filesystem::path &path, const std::string &bytes)
{
    std::ofstream(path, std::ios::binary) << bytes;
}

inline void expectSame(const SessionContents &left, const SessionContents &right);

/// A folder for one test, and sessions to put in it.
class SessionFixture : public testing::Test
{
    static constexpr std::uintmax_t kRoom = std::uintmax_t{512} << 20;

protected:
    void SetUp() override
    {
        // In memory where that can be: a flush to disk each call is what is slow about sessions.
        std::error_code failure;
        const std::filesystem::path memory = "/dev/shm";
        const bool hasMemory =
            access(memory.c_str(), W_OK) == 0 && std::filesystem::space(memory, failure).available > kRoom;
        std::string pattern =
            ((hasMemory ? memory : std::filesystem::temp_directory_path()) / "planloom_session_XXXXXX")
                .string();
        ASSERT_NE(mkdtemp(pattern.data()), nullptr);
        folder = pattern;
        path = folder / "my plan.planloom";
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    /// Two branches, names, figures, two runs, a model and a view.
    static SessionContents sample(int edits = 12)
    {
        SessionContents contents;
        contents.model.source = "/models/gpt.onnx";
        contents.model.content = std::string("\x08\x07\0weights\xff", 11);
        contents.model.sha256 = sha256(contents.model.content);
        contents.model.options = {{"loss", "loss"}, {"dim.batch", "8"}};
        contents.clusterJson = R"({"name":"mine"})";
        RandomEditor editor(4);
        contents.history =
            History({TableDocument("# two by two\nmesh dp=2 tp=2\n\nsplit all : batch over dp\nnonsense"),
                {{"cluster", "dgx-a100"}, {"devices", "4"}}});
        for (int edit = 0; edit < edits; ++edit)
            step(contents.history, editor);
        if (edits > 4) {
            EXPECT_TRUE(contents.history.goTo(3));
            step(contents.history, editor);
            step(contents.history, editor);
            contents.history.setName("best", 4);
            contents.history.setFigures(4, {0.125, std::int64_t{3} << 40, true});
            contents.history.undo();
        }
        contents.runs = {{1, 2, 1700000000000, "4 CPU devices", "done", R"({"losses":[1.5]})", {}},
            {5, 0, 1700000001000, "again", "failed", "{}", {}}};
        contents.view = {{"theme", "dark"}, {"timeline.begin", "12.5"}};
        contents.thumbnail = std::string("\x89PNG\0\1", 6);
        contents.thumbnailStep = contents.history.current();
        contents.history.setFigures(kRootStep, {0.5, std::int64_t{2} << 40, true});
        return contents;
    }

    static StepId step(History &history, RandomEditor &editor)
    {
        const auto id = history.record("edit " + std::to_string(history.steps().size() + 1),
            editor.change(history.state()), 1700000000000);
        EXPECT_TRUE(id) << describe(id.error());
        return id.value_or(0);
    }

    /// Opens what was closed before, and expects `contents` there.
    void expectStored(const SessionContents &contents)
    {
        const auto opened = SessionStore::open(path);
        ASSERT_TRUE(opened) << describe(opened.error());
        expectSame(opened->contents, contents);
    }

    /// Runs SQL on the file as another program would.
    void sql(const std::string &statements) const
    {
        SQLite::Database(path.string(), SQLite::OPEN_READWRITE).exec(statements);
    }

    std::filesystem::path folder;
    std::filesystem::path path;
};

inline void expectSame(const History &left, const History &right)
{
    EXPECT_EQ(left.root(), right.root());
    EXPECT_EQ(left.state(), right.state());
    EXPECT_EQ(left.steps(), right.steps());
    EXPECT_EQ(left.branches(), right.branches());
    EXPECT_EQ(left.names(), right.names());
    EXPECT_EQ(left.current(), right.current());
    EXPECT_EQ(left.branch(), right.branch());
    const auto rootFigures = [](const History &history) {
        const StepFigures *figures = history.figuresOf(kRootStep);
        return figures ? std::optional(*figures) : std::nullopt;
    };
    EXPECT_EQ(rootFigures(left), rootFigures(right));
}

inline void expectSame(const SessionContents &left, const SessionContents &right)
{
    EXPECT_EQ(left.model, right.model);
    EXPECT_EQ(left.clusterJson, right.clusterJson);
    expectSame(left.history, right.history);
    EXPECT_EQ(left.runs, right.runs);
    EXPECT_EQ(left.view, right.view);
    EXPECT_EQ(left.thumbnail, right.thumbnail);
    EXPECT_EQ(left.thumbnailStep, right.thumbnailStep);
    EXPECT_EQ(left.readOnly, right.readOnly);
    EXPECT_EQ(left.remark, right.remark);
}

} // namespace planloom
