#include "widgets/scenes/scene.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

Scene someScene()
{
    Scene scene;
    scene.name = QStringLiteral("Warm-up </script> \"'& ä");
    scene.note = QStringLiteral("\n  first line\nsecond");
    scene.step = 7;
    scene.branch = 2;
    scene.timeline = R"({"fitted":false,"origin":5,"scale":2})";
    scene.span = {5.0, 205.0};
    scene.graph = QStringLiteral("1 down 0 0 1");
    scene.wholeGraph = false;
    scene.colouring = 2;
    scene.graphColouring = 3;
    scene.canvases = SceneCanvases::Timeline;
    scene.docks = {QStringLiteral("memory"), QStringLiteral("model")};
    scene.selected = {{0, 3}, {10, 1}};
    scene.moment = 123.5;
    scene.plays = true;
    scene.seconds = 90;
    return scene;
}

TEST(Scene, IsReadAsItWasWritten)
{
    const std::vector<Scene> scenes{someScene(), Scene{.name = QStringLiteral("plain")}};
    const auto read = readScenes(sceneText(scenes));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, scenes);
    const auto none = readScenes("");
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
}

TEST(Scene, RefusesWhatIsBrokenWithASentence)
{
    const std::string good = sceneText({someScene()});
    const auto replaced = [&good](const std::string &what, const std::string &by) {
        std::string text = good;
        const std::size_t at = text.find(what);
        EXPECT_NE(at, std::string::npos) << what;
        return text.replace(at, what.size(), by);
    };
    for (const auto &[text, said] : std::vector<std::pair<std::string, std::string>>{{"{", "no JSON object"},
             {"[]", "no JSON object"}, {"{}", "another version"}, {R"({"version":1,"scenes":5})", "no list"},
             {R"({"version":1,"scenes":[5]})", "scene 1 has no name"},
             {replaced("\"step\":7", "\"step\":-7"), "\"step\""},
             {replaced("\"step\":7", "\"step\":1e300"), "\"step\""},
             {replaced("\"seconds\":90", "\"seconds\":0"), "\"seconds\""},
             {replaced("\"canvases\":2", "\"canvases\":3"), "\"canvases\""},
             {replaced("[0,3,10,1]", "[10,1,0,3]"), "not in order"},
             {replaced("[0,3,10,1]", "[0,2000000000]"), "not in order"},
             {replaced("[5,205]", "[205,5]"), "ends before it begins"},
             {replaced("\"moment\":123.5", "\"moment\":-1"), "before the step"},
             {std::string(17'000'000, ' '), "larger than"}}) {
        const auto read = readScenes(text);
        ASSERT_FALSE(read) << text.substr(0, 80);
        EXPECT_NE(read.error().message.find(said), std::string::npos) << read.error().message;
        EXPECT_FALSE(read.error().advice.empty());
    }
    Scene longName = someScene();
    longName.name = QString(kMostSceneName + 1, QLatin1Char('n'));
    EXPECT_FALSE(readScenes(sceneText({longName})));
    EXPECT_FALSE(readScenes(sceneText(std::vector<Scene>(kMostScenes + 1, someScene()))));
}

TEST(Scene, IsReadOrRefusedWhateverTheBytes)
{
    const std::string good = sceneText({someScene(), someScene()});
    std::mt19937 random(5);
    for (int trial = 0; trial < 2000; ++trial) {
        std::string text = good;
        for (int i = 0; i < 3; ++i)
            text[random() % text.size()] = static_cast<char>(random() % 256);
        const auto read = readScenes(text);
        if (read) {
            for (const Scene &scene : *read)
                EXPECT_TRUE(scene.seconds >= 1 && !scene.name.trimmed().isEmpty());
        } else {
            EXPECT_FALSE(read.error().message.empty());
        }
    }
}

TEST(Scene, KeepsSelectionsAsRanges)
{
    const std::vector<OperatorId> operators{{1}, {2}, {3}, {7}, {9}, {10}};
    const auto ranges = rangesOfOperators(operators);
    EXPECT_EQ(ranges, (std::vector<std::pair<std::int32_t, std::int32_t>>{{1, 3}, {7, 1}, {9, 2}}));
    EXPECT_EQ(operatorsOfRanges(ranges, 11), operators);
    EXPECT_EQ(operatorsOfRanges(ranges, 8), (std::vector<OperatorId>{{1}, {2}, {3}, {7}}));
    EXPECT_TRUE(operatorsOfRanges({{5, 1 << 29}}, 3).empty());
}

TEST(Scene, ShowsTheSameStretchOnAnyWidth)
{
    const Scene scene = someScene();
    const std::string wide = stateOnWidth(scene, 100);
    EXPECT_NE(wide.find("\"scale\":2"), std::string::npos) << wide;
    EXPECT_NE(stateOnWidth(scene, 50).find("\"scale\":4"), std::string::npos);
    Scene whole = scene;
    whole.span.reset();
    EXPECT_EQ(stateOnWidth(whole, 50), whole.timeline);
    EXPECT_EQ(firstLineOf(scene), QStringLiteral("first line"));
}

} // namespace
} // namespace planloom
