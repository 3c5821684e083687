// Sessions as earlier versions of the program wrote them, and numbers that JSON has no words for.

#include "planloom_paths.h"
#include "sessions/session_store.h"

#include "tests/sessions/session_fixture.h"

#include <cmath>
#include <limits>

namespace planloom {
namespace {

using OlderSessions = SessionFixture;

TEST_F(OlderSessions, OfVersion3Open)
{
    // Written by 4fd8d027, for a cluster from a file.
    std::filesystem::copy_file(
        std::filesystem::path(PLANLOOM_SOURCE_DIR) / "tests/sessions/files/v3.planloom", path);
    const auto opened = SessionStore::open(path);
    ASSERT_TRUE(opened) << describe(opened.error());
    const SessionContents &contents = opened->contents;
    EXPECT_FALSE(contents.readOnly) << contents.remark;
    EXPECT_EQ(contents.model.source, "zoo:mlp?layers=2&hidden=8&batch=4");
    EXPECT_EQ(contents.model.options.at("stored.w"), "constant");
    EXPECT_NE(contents.clusterJson.find("my-a40"), std::string::npos);
    EXPECT_EQ(contents.history.state().table.text(), "mesh dp=2\nsplit all : batch over dp\n");
    ASSERT_EQ(contents.history.steps().size(), 1U);
    ASSERT_TRUE(contents.history.steps().front().figures);
    EXPECT_EQ(contents.history.steps().front().figures->stepSeconds, 0.001);
    EXPECT_EQ(contents.history.names().at("first"), 1);
    ASSERT_EQ(contents.runs.size(), 1U);
    EXPECT_EQ(contents.view.at("zoom"), "1.5");
    EXPECT_TRUE(checkSession(path)->empty());
}

TEST_F(OlderSessions, FiguresThatAreNoNumbersAreReadBack)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double seconds : {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(), -0.0,
             std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max()}) {
        SCOPED_TRACE(seconds);
        std::filesystem::remove(path);
        SessionContents contents;
        contents.history = History({TableDocument("mesh dp=2\n"), {}});
        contents.history.setFigures(contents.history.current(), {seconds, 1, false});
        ASSERT_TRUE(SessionStore::create(path, contents));
        const auto opened = SessionStore::open(path);
        ASSERT_TRUE(opened) << describe(opened.error());
        const StepFigures *figures = opened->contents.history.figuresOf(opened->contents.history.current());
        ASSERT_NE(figures, nullptr);
        EXPECT_TRUE(
            figures->stepSeconds == seconds || (std::isnan(seconds) && std::isnan(figures->stepSeconds)));
        EXPECT_EQ(std::signbit(figures->stepSeconds), std::signbit(seconds));
    }
}

} // namespace
} // namespace planloom
