#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtGui/QMovie>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "tests/widgets/present/talk_window.h"
#include "widgets/present/talk_animation.h"
#include "widgets/present/talk_maker.h"

#include <optional>

using namespace planloom;

namespace {

/// The plans of all scenes, as an export gathers them.
PlansBySteps gathered(const TalkWindow &at)
{
    TalkPlans plans(&at.window->workspace(), at.scenes()->scenes());
    std::optional<PlansBySteps> found;
    QObject::connect(
        &plans, &TalkPlans::gathered, &plans, [&found](const PlansBySteps &made) { found = made; });
    plans.start();
    [&] { QTRY_VERIFY_WITH_TIMEOUT(found.has_value(), kLong); }();
    return found.value_or(PlansBySteps{});
}

} // namespace

/// Talks as files: web pages and animations.
class TalkFilesTest : public QObject
{
    Q_OBJECT

private:
    static void makeTwo(TalkWindow &at)
    {
        at.openPipeline();
        at.makeScene(QStringLiteral("1F1B <b>"));
        at.window->setColouring(TimelineColouring::Stage);
        at.makeScene(QStringLiteral("stages"));
        at.window->setColouring(TimelineColouring::Direction);
        at.workspace().applyGallery("pipeline:schedule=gpipe,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().history().current() != kRootStep, kLong);
        at.makeScene(QStringLiteral("GPipe"));
        at.scenes()->change(2, {}, [](Scene &scene) {
            scene.moment = 1000;
            scene.plays = true;
            scene.seconds = 2;
            scene.note = QStringLiteral("all forward first");
            scene.canvases = SceneCanvases::Timeline;
        });
    }

private Q_SLOTS:
    void aTalkHasEachPlanOnceAndTheWindowsColours()
    {
        TalkWindow at;
        makeTwo(at);
        const StepId step = at.workspace().history().current();
        const PlansBySteps plans = gathered(at);
        QCOMPARE(plans.size(), std::size_t(2));
        QCOMPARE(at.workspace().history().current(), step);
        const Talk talk = makeTalk("a talk", at.scenes()->scenes(), plans);
        QCOMPARE(talk.plans.size(), std::size_t(2));
        QCOMPARE(*talk.scenes[0].plan, *talk.scenes[1].plan);
        QVERIFY(*talk.scenes[2].plan != *talk.scenes[0].plan);
        QCOMPARE(talk.plans[0].colourings.size(), std::size_t(2));
        QVERIFY(talk.scenes[2].plays && !talk.scenes[2].graph && talk.scenes[2].timeline);
        const std::string html = htmlOf(talk);
        QVERIFY(html.find("1F1B &lt;b&gt;") != std::string::npos);
        QVERIFY(html.find("all forward first") != std::string::npos);
        QVERIFY(html.find("\"Forward\"") != std::string::npos); // the legend
        QVERIFY(html.find("\"stage 0\"") != std::string::npos);
        QVERIFY(html.find("\"F0\"") != std::string::npos); // blocks have their names
        const QString forward = directionColour(lightPalette(), Direction::Forward).name();
        QVERIFY(html.find(forward.toStdString()) != std::string::npos);
        QVERIFY(html.size() < 1'000'000);
    }

    void aSceneWithoutAPlanSaysWhy()
    {
        Scene scene;
        scene.name = QStringLiteral("gone");
        scene.step = 77;
        const Talk talk = makeTalk("t", {scene}, {{77, nullptr}});
        QVERIFY(!talk.scenes[0].plan);
        QVERIFY(htmlOf(talk).find("a step that the session does not have") != std::string::npos);
    }

    void anAnimationIsWrittenWholeOrNotAtAll()
    {
        const auto ffmpeg = findFfmpeg();
        if (!ffmpeg)
            QSKIP("ffmpeg is not installed");
        TalkWindow at;
        makeTwo(at);
        const PlansBySteps plans = gathered(at);
        const QTemporaryDir folder;
        const auto make = [&](const QString &path, const QString &program, bool cancels) {
            const AnimationFormat format{path, program, {640, 360}, lightPalette(), at.window->font()};
            TalkAnimation animation(at.scenes()->scenes(), plans, format, at.window.get());
            std::optional<bool> written;
            connect(&animation, &TalkAnimation::finished, &animation,
                [&written](const Result<void> &outcome) { written = static_cast<bool>(outcome); });
            if (cancels)
                animation.cancel();
            [&] { QTRY_VERIFY_WITH_TIMEOUT(written.has_value(), kLong); }();
            return written.value_or(false);
        };
        const QString gif = folder.filePath(QStringLiteral("talk.gif"));
        QVERIFY(make(gif, *ffmpeg, false));
        QMovie movie(gif);
        QVERIFY(movie.isValid());
        QVERIFY(movie.jumpToFrame(0));
        QCOMPARE(movie.currentImage().size(), QSize(640, 360));
        QVERIFY(movie.frameCount() > 10);
        const QString webm = folder.filePath(QStringLiteral("talk.webm"));
        QVERIFY(make(webm, *ffmpeg, false));
        QFile video(webm);
        QVERIFY(video.open(QIODevice::ReadOnly));
        QCOMPARE(video.read(4).toHex(), QByteArray("1a45dfa3")); // the magic of Matroska
        const QString none = folder.filePath(QStringLiteral("none.gif"));
        QVERIFY(!make(none, *ffmpeg, true));
        QVERIFY(!make(folder.filePath(QStringLiteral("no/folder.gif")), *ffmpeg, false));
        QVERIFY(!make(none, QStringLiteral("/bin/false"), false));
        QVERIFY(!QFileInfo::exists(none) && !QFileInfo::exists(none + QStringLiteral(".part")));
        QCOMPARE(at.window->isVisible(), true);
    }

    void ffmpegThatIsMissingIsSaid()
    {
        const QByteArray path = qgetenv("PATH");
        qputenv("PATH", "/nowhere");
        const auto found = findFfmpeg();
        qputenv("PATH", path);
        QVERIFY(!found);
        QVERIFY(found.error().advice.find("apt install ffmpeg") != std::string::npos);
    }
};

PLANLOOM_QTEST(TalkFilesTest)
#include "talk_files_test.moc"
