#include <QtWidgets/QLineEdit>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_tag.h"

using namespace planloom;

/// Dragging where other rows are in the way: said before the release, and what the key O does about it.
class TimelineRowsInTheWayTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        openModels();
        // As much memory as the pipeline takes, so that both stages on one device are too much.
        const std::int64_t kibibytes = m_pipeline->summary.largestPeak.count / 1024 * 21 / 20;
        m_text = m_pipeline->table.text();
        if (!m_text.ends_with('\n'))
            m_text += '\n';
        m_limit = "limit memory " + std::to_string(kibibytes) + "KiB";
        m_row = static_cast<std::int32_t>(std::count(m_text.begin(), m_text.end(), '\n'));
        m_limited = planned(m_model, m_text + m_limit + "\n", {}, kDevices);
        QVERIFY(m_limited);
        QCOMPARE(m_limited->errorCount(), std::size_t{0});
    }
    void init() { show(m_limited); }
    void cleanup() { close(); }

    void theTagNamesTheRowBeforeTheRelease()
    {
        dragTheStage();
        QVERIFY(!tag().lines.join(QLatin1Char('\n')).contains(QStringLiteral("in the way"))); // nothing is
                                                                                              // known yet
        const QImage waiting = m_view->viewport()->grab().toImage();
        m_host->answerPreview();
        const TimelineTag blocked = tag();
        QCOMPARE(blocked.state, TimelineTag::State::Yielding);
        const QString said = blocked.lines.join(QLatin1Char('\n'));
        QVERIFY2(said.contains(QStringLiteral("in the way: row %1").arg(m_row + 1)), qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("limit memory")), qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("O switches it off too")), qPrintable(said));
        if (const QByteArray folder = qgetenv("PLANLOOM_TEST_PICTURES"); !folder.isEmpty())
            m_view->grab().save(QString::fromLocal8Bit(folder) + QStringLiteral("/in_the_way.png"));
        // Amber, in tag and lane.
        const QImage amber = m_view->viewport()->grab().toImage();
        QVERIFY(count(waiting, paletteFor(*m_view).warning.rgb()) + 100
            < count(amber, paletteFor(*m_view).warning.rgb()));
        // Letting go is allowed all the same.
        release(m_to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY(hasRow("place"));
        QVERIFY(hasRow(("\n" + m_limit).c_str()));
    }

    void oSwitchesTheRowOffInTheSameStep()
    {
        const std::string before = m_host->text();
        dragTheStage();
        m_host->answerPreview();
        QTest::keyClick(m_view.get(), Qt::Key_O);
        QVERIFY(m_view->gestures().rowsInTheWay().wished());
        QVERIFY2(tag()
                     .lines.join(QLatin1Char('\n'))
                     .contains(QStringLiteral("row %1 is switched off").arg(m_row + 1)),
            qPrintable(tag().lines.join(QLatin1Char('\n'))));
        QVERIFY(tag().lines.back().contains(QStringLiteral("O leaves it on")));
        m_host->answerPreview();
        QCOMPARE(moodOf(*m_host->currentPreview()), GhostMood::Holds);
        QCOMPARE(m_host->text(), before);
        release(m_to);
        QCOMPARE(m_host->commits.size(), std::size_t{1}); // one step
        QVERIFY(hasRow("place"));
        QVERIFY2(hasRow(("off " + m_limit).c_str()), m_host->text().c_str());
        const auto after = m_host->replanned();
        QVERIFY(after);
        QCOMPARE(after->errorCount(), std::size_t{0});
    }

    void oBeforeTheAnswerCountsOnceItIsThere()
    {
        dragTheStage();
        QTest::keyClick(m_view.get(), Qt::Key_O);
        QVERIFY(tag().lines.back().contains(QStringLiteral("O: rows in the way are switched off too")));
        m_host->answerPreview(); // blocked: at once, what is wished is proposed
        QCOMPARE(m_view->gestures().rowsInTheWay().lines(), std::vector<std::int32_t>{m_row});
        QVERIFY(m_view->gestures().proposal()->words.find("off") != std::string::npos);
        QCOMPARE(m_host->currentPreview()->proposal.edit, m_view->gestures().proposal()->edit);
    }

    void oAgainLeavesItOn()
    {
        dragTheStage();
        m_host->answerPreview();
        const TableEdit alone = m_view->gestures().proposal()->edit;
        QTest::keyClick(m_view.get(), Qt::Key_O);
        QVERIFY(m_view->gestures().proposal()->edit != alone);
        QTest::keyClick(m_view.get(), Qt::Key_O);
        QCOMPARE(m_view->gestures().proposal()->edit, alone);
        release(m_to);
        QVERIFY(hasRow(("\n" + m_limit).c_str()));
    }

    void theWishGoesAlongAndEndsWithTheDrag()
    {
        dragTheStage();
        m_host->answerPreview();
        QTest::keyClick(m_view.get(), Qt::Key_O);
        m_host->answerPreview();
        moveTo(m_from + QPoint(0, 7)); // home: nothing is proposed
        QVERIFY(!m_host->currentPreview());
        QVERIFY(m_view->gestures().ghost().atHome);
        moveTo(m_to); // and there again, with the row off
        QVERIFY(m_view->gestures().proposal()->words.find("off") != std::string::npos);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
        nothingIsLeft();
        release(m_to);
        nothingIsLeft();
        QVERIFY(!m_view->gestures().rowsInTheWay().wished());
        dragTheStage();
        m_host->answerPreview();
        QVERIFY(!m_view->gestures().rowsInTheWay().wished());
        QVERIFY(m_view->gestures().proposal()->words.find("off") == std::string::npos);
        QTest::keyClick(m_view.get(), Qt::Key_Escape);
    }

    void aTypedLineHasAltO()
    {
        m_selection->select(operatorsOfStage(*m_host->gestureContext(), StageId{0}));
        m_view->setFocus();
        QTest::keyClick(m_view.get(), Qt::Key_G);
        auto *edit = m_view->findChild<QLineEdit *>(QStringLiteral("timeline.line.place"));
        QVERIFY(edit && edit->isVisible());
        QTest::keyClicks(edit, QStringLiteral("1"));
        m_host->answerPreview();
        QVERIFY2(tag().lines.back().contains(QStringLiteral("Alt+O")), qPrintable(tag().lines.back()));
        QTest::keyClick(edit, Qt::Key_O, Qt::AltModifier);
        QCOMPARE(edit->text(), QStringLiteral("1"));
        QVERIFY(m_view->gestures().rowsInTheWay().wished());
        QTest::keyClick(edit, Qt::Key_Return);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        QVERIFY2(hasRow(("off " + m_limit).c_str()), m_host->text().c_str());
    }

private:
    void dragTheStage()
    {
        m_from = m_view->rectOfBlock(0, 0)->center();
        m_to = QPoint(m_from.x(), laneMiddle(1));
        drag(m_from, m_to);
        QVERIFY(m_view->gestures().proposal() && m_view->gestures().proposal()->accepted());
    }
    TimelineTag tag() const
    {
        return tagFor(m_view->gestures().ghost(), m_view->gestures().proposal(),
            m_host->currentPreview().get(), &m_view->gestures().rowsInTheWay());
    }
    static int count(const QImage &image, QRgb colour)
    {
        int found = 0;
        for (int y = 0; y < image.height(); ++y) {
            for (int x = 0; x < image.width(); ++x)
                found += image.pixel(x, y) == colour ? 1 : 0;
        }
        return found;
    }

    PlanUpdateSnapshot m_limited;
    std::string m_text;
    std::string m_limit;
    std::int32_t m_row = 0; ///< Line of the limit, from 0.
    QPoint m_from;
    QPoint m_to;
};

PLANLOOM_QTEST(TimelineRowsInTheWayTest)
#include "timeline_rows_in_the_way_test.moc"
