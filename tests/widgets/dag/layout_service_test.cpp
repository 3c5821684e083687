#include <QtTest/QtTest>

#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QTemporaryDir>

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/dag/layout_protocol.h"
#include "widgets/dag/layout_service.h"

using namespace planloom;

namespace {

double sevenPerAnyLetter(const std::string &text, bool /*bold*/)
{
    return 7.0 * static_cast<double>(text.size());
}

std::shared_ptr<const DagOutline> outlineOf(const char *spec)
{
    auto graph = buildZooModel(spec);
    if (!graph)
        qFatal("%s", describe(graph.error()).c_str());
    return std::make_shared<const DagOutline>(
        buildOutline(std::make_shared<const Graph>(std::move(*graph)), DagMode::Folded));
}

QString realHelper()
{
    return QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-layout");
}

/// A program that misbehaves as its shell script says.
QString fakeHelper(const QTemporaryDir &folder, const char *script)
{
    const QString path = folder.filePath(QStringLiteral("helper"));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        qFatal("cannot write the fake helper");
    file.write("#!/bin/sh\n");
    file.write(script);
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
}

constexpr const char *kFourLayers = "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=100";

} // namespace

class LayoutServiceTest : public QObject
{
    Q_OBJECT

private:
    /// Asks for everything open and waits; the picture that came.
    static DagPictureSnapshot layOut(LayoutService &service, const std::shared_ptr<const DagOutline> &outline)
    {
        DagPictureSnapshot picture;
        const auto connection = connect(&service, &LayoutService::ready, &service,
            [&picture](DagPictureSnapshot made) { picture = made; });
        service.setMeasure(sevenPerAnyLetter);
        service.request(outline, fullyOpen(*outline));
        [&] { QTRY_VERIFY_WITH_TIMEOUT(picture != nullptr, 8000); }();
        disconnect(connection);
        return picture;
    }

private Q_SLOTS:
    void messagesRoundTripInPieces()
    {
        LayoutRequest request{.id = 7, .graph = {}};
        request.graph.nodes = {{100.25, 30, LayeredNode::Pin::First}, {0, 0, LayeredNode::Pin::Last}};
        request.graph.edges = {{0, 1}, {1, 1}};
        const std::string text = encode(request);
        LayoutReader reader;
        bool found = false;
        for (std::size_t i = 0; i + 1 < text.size(); ++i) {
            reader.append(text.substr(i, 1));
            const auto none = reader.nextRequest(found);
            QVERIFY(none && !found);
        }
        reader.append(text.substr(text.size() - 1));
        const auto back = reader.nextRequest(found);
        QVERIFY(back && found);
        QCOMPARE(back->id, request.id);
        QVERIFY(back->graph == request.graph);

        reader = {};
        reader.append(encode(LayoutAnswer{.id = 7, .centres = {{1.5, -2}}, .failure = {}}));
        reader.append(encode(LayoutAnswer{.id = 8, .centres = {}, .failure = "too\nmuch"}));
        const auto first = reader.nextAnswer(found);
        QVERIFY(first && found);
        QVERIFY((first->centres == std::vector<LayoutPoint>{{1.5, -2}}));
        const auto second = reader.nextAnswer(found);
        QVERIFY(second && found);
        QCOMPARE(second->failure, std::string("too much"));
    }

    void malformedMessagesAreErrors()
    {
        for (const char *text : {"hello\n", "layout 1 2\n", "layout 1 -1 0 1 1\n",
                 "layout 1 999999999 0 1 1\n", "layout 1 1 0 1 1\nn 1 nan 0\n", "layout 1 1 0 1 1\nn 1 1 9\n",
                 "layout 1 1 1 1 1\nn 1 1 0\ne 0 1\n", "layout 1 1 0 1 1\nx 1 1 0\n", "layout x 1 0 1 1\n"}) {
            LayoutReader reader;
            reader.append(text);
            bool found = false;
            const auto request = reader.nextRequest(found);
            QVERIFY2(!request && !request.error().message.empty(), text);
        }
        for (const char *text : {"maybe 1 2\n", "done 1 1\np x 2\n", "done 1 999999999\n", "done 1\n"}) {
            LayoutReader reader;
            reader.append(text);
            bool found = false;
            QVERIFY2(!reader.nextAnswer(found), text);
        }
    }

    void worksWithoutAHelper()
    {
        LayoutService service;
        const auto picture = layOut(service, outlineOf(kFourLayers));
        QVERIFY(picture->visible.frames.size() > 4);
        QCOMPARE(service.helperAnswers(), 0);
        QCOMPARE(service.helperFailures(), 0);
    }

    void theHelperLaysOutGroupsAndIsAskedOnce()
    {
        if (!QFileInfo::exists(realHelper()))
            QSKIP("planloom-layout is not built");
        LayoutService service;
        service.setHelper(realHelper());
        const auto outline = outlineOf(kFourLayers);
        const auto picture = layOut(service, outline);
        QCOMPARE(service.helperFailures(), 0);
        const int answers = service.helperAnswers();
        QVERIFY(answers > 0);
        QVERIFY(answers < static_cast<int>(picture->visible.frames.size())); // copies share theirs
        const auto again = layOut(service, outline);
        QCOMPARE(service.helperAnswers(), answers);
        QVERIFY(again->scene.rects == picture->scene.rects);
        for (const auto &frame : picture->visible.frames) {
            const auto &children = picture->visible.at(frame.box).children;
            for (std::size_t i = 0; i < children.size(); ++i) {
                for (std::size_t j = 0; j < i; ++j)
                    QVERIFY(!picture->scene.rects[static_cast<std::size_t>(children[i])].intersects(
                        picture->scene.rects[static_cast<std::size_t>(children[j])]));
            }
        }
    }

    void aMissingHelperIsDoneWithout()
    {
        LayoutService service;
        service.setHelper(QStringLiteral("/nowhere/planloom-layout"));
        const auto picture = layOut(service, outlineOf(kFourLayers));
        QVERIFY(picture->visible.frames.size() > 4);
        QCOMPARE(service.helperAnswers(), 0);
        QVERIFY(service.helperFailures() >= 1);
    }

    void aHelperThatHangsIsKilled()
    {
        QTemporaryDir folder;
        LayoutService service;
        service.setHelper(fakeHelper(folder, "exec sleep 60\n"));
        QVERIFY(layOut(service, outlineOf("zoo:mlp?layers=3")));
        QVERIFY(service.helperFailures() >= 1);
    }

    void aHelperThatCrashesIsDoneWithout()
    {
        QTemporaryDir folder;
        LayoutService service;
        service.setHelper(fakeHelper(folder, "read line\nkill -SEGV $$\n"));
        QVERIFY(layOut(service, outlineOf("zoo:mlp?layers=3")));
        QVERIFY(service.helperFailures() >= 1);
    }

    void aHelperThatTalksNonsenseIsDoneWithout()
    {
        QTemporaryDir folder;
        LayoutService service;
        service.setHelper(fakeHelper(folder, "while read line; do echo what a nice graph; done\n"));
        QVERIFY(layOut(service, outlineOf("zoo:mlp?layers=3")));
        QVERIFY(service.helperFailures() >= 1);
    }

    void theNewestRequestWins()
    {
        LayoutService service;
        service.setMeasure(sevenPerAnyLetter);
        if (QFileInfo::exists(realHelper()))
            service.setHelper(realHelper());
        const auto outline = outlineOf(kFourLayers);
        DagPictureSnapshot last;
        connect(&service, &LayoutService::ready, &service, [&last](DagPictureSnapshot made) { last = made; });
        for (int round = 0; round < 5; ++round) {
            service.request(outline, fullyOpen(*outline));
            service.request(outline, DagState{});
        }
        QTRY_VERIFY(!service.isBusy());
        QVERIFY(last && last->state == DagState{});
    }

    void theServiceMayGoWhileAtWork()
    {
        const auto outline = outlineOf(kFourLayers);
        for (int round = 0; round < 3; ++round) {
            LayoutService service;
            service.setMeasure(sevenPerAnyLetter);
            if (QFileInfo::exists(realHelper()))
                service.setHelper(realHelper());
            service.request(outline, fullyOpen(*outline));
            if (round > 0)
                QTest::qWait(5 * round);
        }
    }
};

PLANLOOM_QTEST(LayoutServiceTest)
#include "layout_service_test.moc"
