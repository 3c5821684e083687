#include <QtCore/QMimeData>
#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtGui/QDropEvent>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QMenuBar>

#include "widgets/main/application_style.h"
#include "widgets/main/constraint_panel.h"
#include "widgets/main/gallery_bar.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/main_window.h"
#include "widgets/main/problems_panel.h"
#include "widgets/main/start_page.h"
#include "widgets/main/status_pill.h"

#include <set>

using namespace planloom;

namespace {

constexpr int kLong = 60'000; ///< ms

Sample small()
{
    return {"small", "A small one", "For tests", "zoo:gpt?layers=3&hidden=64&heads=4&seq=16&vocab=100&batch=8",
        "dgx-a100", 4, "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4"};
}

void collect(const QMenu *menu, std::vector<QAction *> &actions)
{
    for (QAction *action : menu->actions()) {
        if (action->menu())
            collect(action->menu(), actions);
        else if (!action->isSeparator())
            actions.push_back(action);
    }
}

} // namespace

class MainWindowTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_window = std::make_unique<MainWindow>();
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
    }

    void cleanup() { m_window.reset(); }

    void theStartPageOpensASampleWithOneClick()
    {
        const auto cards = m_window->findChildren<SampleCard *>();
        QCOMPARE(cards.size(), 6);
        QTest::mouseClick(cards.front(), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QCOMPARE(m_window->workspace().deviceCount(), 4);
        QVERIFY(m_window->timeline()->scene() != nullptr);
        QVERIFY(m_window->timeline()->isVisible());
        QVERIFY(!m_window->grab().isNull());
    }

    void aPlanFromTheGalleryIsOneChoiceAway()
    {
        m_window->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QComboBox *combo = m_window->gallery()->combo();
        const int index = combo->findData(QStringLiteral("data-parallel"));
        QVERIFY(index >= 0);
        Q_EMIT combo->activated(index);
        QTRY_VERIFY_WITH_TIMEOUT(
            proven() && m_window->constraints()->editor()->toPlainText().contains(QStringLiteral("mesh dp=4")), kLong);
    }

    void typingInTheTableReplansAndMarksErrors()
    {
        m_window->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        ConstraintEditor *editor = m_window->constraints()->editor();
        editor->moveCursor(QTextCursor::End);
        QTest::keyClicks(editor, "split nonsense");
        QTRY_COMPARE_WITH_TIMEOUT(m_window->pill()->mood(), StatusPill::Mood::Wrong, kLong);
        QCOMPARE(m_window->problems()->count(), 1);
        QVERIFY(!editor->extraSelections().isEmpty());
        QVERIFY(m_window->timeline()->scene() != nullptr); // the last plan stays
        for (int i = 0; i < 14; ++i)
            QTest::keyClick(editor, Qt::Key_Backspace);
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QCOMPARE(m_window->problems()->count(), 0);
    }

    void aClickInTheTimelineSelectsInAllViews()
    {
        m_window->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(proven() && m_window->isSettled(), kLong);
        TimelineView *timeline = m_window->timeline();
        // The longest span in sight.
        const SpanColumns &spans = timeline->scene()->timeline->spans;
        std::size_t longest = 0;
        for (std::size_t row = 0; row < spans.size(); ++row) {
            if (spans.stream[row] == StreamKind::Compute && spans.duration[row] > spans.duration[longest])
                longest = row;
        }
        const auto rect = timeline->rectOf(longest);
        QVERIFY(rect.has_value());
        QTest::mouseClick(timeline->viewport(), Qt::LeftButton, {}, rect->center());
        QCOMPARE(m_window->selection().selected().size(), std::size_t{1});
        const OperatorId op = m_window->selection().selected().front();
        const Graph &graph = *m_window->workspace().model()->graph;
        QVERIFY(m_window->inspector()->toPlainText().contains(QString::fromStdString(nameOf(graph.at(op).kind))));
        QVERIFY(m_window->dag()->selectionModel()->contains(op));
    }

    void devicesAndClusterReplan()
    {
        Sample sample = small();
        sample.gallery = "data-parallel";
        m_window->openSample(sample);
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        const double before = m_window->workspace().latest()->summary.stepSeconds;
        m_window->workspace().setCluster("dgx2-v100");
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QVERIFY(m_window->workspace().latest()->summary.stepSeconds != before);
    }

    void aDroppedSessionOpens()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("a.planloom"));
        m_window->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        m_window->workspace().save(path);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().path() == path, kLong);
        MainWindow other;
        other.show();
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        QDragEnterEvent enter({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&other, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&other, &drop);
        QTRY_VERIFY_WITH_TIMEOUT(other.workspace().latest() && other.workspace().latest()->verdict, kLong);
        QCOMPARE(other.workspace().path(), path);
    }

    void aFileThatDoesNotOpenSaysSoOnTheStartPage()
    {
        m_window->workspace().openAny(QStringLiteral("/no/such/file.onnx"));
        QTRY_COMPARE_WITH_TIMEOUT(m_window->problems()->count(), 1, kLong);
        QCOMPARE(m_window->workspace().model(), nullptr);
        QVERIFY(m_window->findChild<StartPage *>()->isVisible());
    }

    void noTwoActionsShareAShortcutAndAllHaveNames()
    {
        std::vector<QAction *> actions;
        for (QAction *top : m_window->menuBar()->actions())
            collect(top->menu(), actions);
        QVERIFY(actions.size() > 30);
        std::set<QString> shortcuts;
        for (const QAction *action : actions) {
            QVERIFY(!action->text().isEmpty());
            for (const QKeySequence &shortcut : action->shortcuts())
                QVERIFY2(shortcuts.insert(shortcut.toString()).second, qPrintable(shortcut.toString()));
        }
    }

    void bothThemesAndAllColouringsPaint()
    {
        m_window->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        for (const bool dark : {true, false}) {
            m_window->setDark(dark);
            for (const auto colouring : {TimelineColouring::Direction, TimelineColouring::MicroBatch,
                     TimelineColouring::Stage, TimelineColouring::Device, TimelineColouring::Kind, TimelineColouring::Time}) {
                m_window->setColouring(colouring);
                QCOMPARE(m_window->timeline()->colouring(), colouring);
            }
            QVERIFY(!m_window->grab().isNull());
        }
    }

private:
    bool proven() const
    {
        return m_window->pill()->mood() == StatusPill::Mood::Proven && !m_window->workspace().isStale();
    }

    std::unique_ptr<MainWindow> m_window;
};

QTEST_MAIN(MainWindowTest)
#include "main_window_test.moc"
