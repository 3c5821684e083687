#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "tests/widgets/timeline/scene_for_tests.h"
#include "widgets/common/palette.h"
#include "widgets/timeline/timeline_ghost_painter.h"
#include "widgets/timeline/timeline_under.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <memory>
#include <set>

using namespace planloom;

/// Queues that run side by side, and a block that is interrupted, with a real mouse and real keys.
class TimelineQueuesTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_selection = std::make_unique<SelectionModel>();
        m_view = std::make_unique<TimelineView>(m_selection.get());
        m_view->resize(1000, 300);
        m_scene = slicedSceneForTests();
        m_view->setScene(m_scene);
        m_view->show();
        m_view->activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(m_view.get()));
        m_view->setFocus();
    }

    void cleanup()
    {
        m_view.reset();
        m_selection.reset();
    }

    void everyCommunicationIsWhereItIsDrawnAndIsHit()
    {
        const QImage image = m_view->viewport()->grab().toImage();
        const QColor colour = communicationColour(paletteFor(*m_view), InstructionKind::AllReduce);
        QRect before;
        for (std::size_t row = 15; row < 20; ++row) {
            const auto rect = m_view->rectOf(row);
            QVERIFY(rect.has_value());
            QVERIFY(rect->height() >= 8);
            // Those that follow one another may share a column of pixels.
            QVERIFY2(!before.intersects(rect->adjusted(1, 0, 0, 0)), "no two lie over each other");
            before = *rect;
            // Left of the middle, where no label is.
            QCOMPARE(image.pixelColor(rect->left() + 1, rect->center().y()), colour);
            QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, rect->center());
            QCOMPARE(m_view->focus().part, LanePart::Communication);
            QCOMPARE(m_view->focus().span, static_cast<std::int64_t>(row));
        }
        // The two that run at once.
        QVERIFY(m_view->rectOf(16)->left() < m_view->rectOf(19)->right());
        QVERIFY(m_view->rectOf(19)->left() < m_view->rectOf(16)->right());
        QVERIFY(m_view->rectOf(16)->bottom() < m_view->rectOf(19)->top());
    }

    void arrowsStayOnATrackAndStepFromTrackToTrack()
    {
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(17)->center());
        const auto after = [this](Qt::Key key) {
            QTest::keyClick(m_view.get(), key);
            return m_view->focus().span;
        };
        QCOMPARE(after(Qt::Key_Left), 17); // the first of its track, though rows come before it
        QCOMPARE(after(Qt::Key_Right), 18);
        QCOMPARE(after(Qt::Key_Right), 19);
        QCOMPARE(after(Qt::Key_Right), 19);
        QVERIFY2(m_view->focusText().endsWith(QStringLiteral("data queue")), qPrintable(m_view->focusText()));
        QCOMPARE(after(Qt::Key_Up), 16); // what is nearest on the track above
        QVERIFY(m_view->focusText().endsWith(QStringLiteral("tensor queue")));
        QCOMPARE(after(Qt::Key_Left), 15);
        QCOMPARE(after(Qt::Key_Right), 16);
        QCOMPARE(after(Qt::Key_Right), 16);
        QCOMPARE(after(Qt::Key_Down), 19);
        QCOMPARE(after(Qt::Key_Down), 19); // there is no lane below
        QCOMPARE(after(Qt::Key_Up), 16);
        after(Qt::Key_Up);
        QCOMPARE(m_view->focus().part, LanePart::Span);
        QVERIFY(m_view->focus().span < 15);
        QTest::keyClick(m_view.get(), Qt::Key_Up);
        QCOMPARE(m_view->focus().part, LanePart::Block);
    }

    void theFocusIsDrawnOnItsTrack()
    {
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(19)->center());
        m_selection->clear();
        const QImage with = m_view->viewport()->grab().toImage();
        m_view->clearFocus();
        const QImage without = m_view->viewport()->grab().toImage();
        const QRect data = m_view->rectOf(19)->adjusted(-4, -4, 4, 4);
        bool differs = false;
        for (int y = 0; y < with.height(); ++y) {
            for (int x = 0; x < with.width(); ++x) {
                if (with.pixel(x, y) == without.pixel(x, y))
                    continue;
                differs = true;
                QVERIFY2(data.contains(x, y), qPrintable(QStringLiteral("%1 %2").arg(x).arg(y)));
            }
        }
        QVERIFY(differs);
    }

    void hidingCommunicationHidesAllTracks()
    {
        const int height = m_view->rows().front().memoryTop();
        QTest::keyClick(m_view.get(), Qt::Key_X);
        m_view->findChild<QAction *>(QStringLiteral("timeline.communication"))->setChecked(false);
        QVERIFY(!m_view->rectOf(16).has_value());
        QVERIFY(!m_view->rectOf(19).has_value());
        QVERIFY(m_view->rows().front().memoryTop() < height);
        // Down from the operators there is nothing.
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, m_view->rectOf(12)->center());
        QTest::keyClick(m_view.get(), Qt::Key_Down);
        QCOMPARE(m_view->focus().span, 12);
    }

    void allThatRunsAtATimeIsListedWithItsQueue()
    {
        const TimelineCanvas canvas{m_scene.get(), &m_view->rows(), m_view->axis(), 800};
        QStringList words;
        for (const ThingUnder &thing :
            thingsUnder(canvas, m_view->axis().xOf(13'500), m_view->rows().front().operatorsTop() + 2)) {
            if (thing.kind == ThingUnder::Kind::Communication)
                words << QString::fromStdString(thing.words);
        }
        QCOMPARE(words,
            (QStringList{QStringLiteral("all-reduce, 1.00 µs, 0 B, tensor queue"),
                QStringLiteral("all-reduce, 2.00 µs, 0 B, data queue")}));
        // Where a block is interrupted, both are there, once each.
        std::vector<std::int32_t> blocks;
        for (const ThingUnder &thing :
            thingsUnder(canvas, m_view->axis().xOf(11'250), m_view->rows().front().operatorsTop() + 2)) {
            if (thing.kind == ThingUnder::Kind::Block)
                blocks.push_back(thing.focus.block);
        }
        QCOMPARE(blocks, (std::vector<std::int32_t>{3, 4}));
    }

    void thePartOfASelectionLooksAtEveryQueue()
    {
        m_selection->select({OperatorId{6}}); // reduced from 10 to 11, cut until 11.5, updated from 14 to 15
        auto part = m_view->partOfSelection();
        QVERIFY(part.has_value());
        QCOMPARE(part->begin, 10'000.0);
        QCOMPARE(part->end, 15'000.0);
        m_selection->select({OperatorId{7}});
        part = m_view->partOfSelection();
        QVERIFY(part.has_value());
        QCOMPARE(part->begin, 12'000.0);
        QCOMPARE(part->end, 16'000.0);
    }

    void anInterruptedBlockIsOneForTheMouseAndTheKeys()
    {
        const QRect whole = *m_view->rectOfBlock(0, 3);
        const auto at = [&](double time) {
            return QPoint(
                m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(time)), whole.center().y());
        };
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, at(12'500));
        QCOMPARE(m_view->focus(), (TimelineFocus{0, LanePart::Block, 3, -1}));
        QCOMPARE(
            m_selection->selected(), (std::vector<OperatorId>{OperatorId{3}, OperatorId{4}, OperatorId{5}}));
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QCOMPARE(m_view->focus(), (TimelineFocus{0, LanePart::Block, 4, -1}));
        QCOMPARE(m_selection->selected(), std::vector<OperatorId>{OperatorId{6}});
        QTest::keyClick(m_view.get(), Qt::Key_Right); // the pause begins where the block ends
        QCOMPARE(m_view->focus(), (TimelineFocus{0, LanePart::Idle, 5, -1}));
        QVERIFY2(m_view->focusText().endsWith(QStringLiteral("1.00 µs")), qPrintable(m_view->focusText()));
        QTest::keyClick(m_view.get(), Qt::Key_Right);
        QCOMPARE(m_view->focus().block, 5);
        QTest::mouseClick(m_view->viewport(), Qt::LeftButton, {}, at(11'250));
        QCOMPARE(m_view->focus().block, 4);
    }

    /// Its header is of one colour before and behind what interrupts it, which is drawn over it.
    void anInterruptedBlockIsDrawnAsOne()
    {
        const QImage image = m_view->viewport()->grab().toImage();
        const int y = m_view->rectOfBlock(0, 3)->top() + 1;
        const auto colourAt = [&](double time) {
            return image.pixelColor(m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(time)), y);
        };
        QCOMPARE(colourAt(12'500), colourAt(9200));
        QVERIFY(colourAt(11'250) != colourAt(9200));
        QCOMPARE(colourAt(11'250), colourAt(15'900)); // gradients, as the optimizer's
        // While it waits, a line joins its parts.
        const int middle = m_view->rectOfBlock(0, 3)->center().y();
        const int waits = m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(11'750));
        QVERIFY(image.pixelColor(waits, y) != colourAt(9200));
        bool joined = false;
        for (int dy = -2; dy <= 2; ++dy)
            joined = joined || image.pixelColor(waits, middle + dy) == colourAt(9200);
        QVERIFY(joined);
    }

    /// What a gesture would lead to may use other queues: what is there and what would be are then on the
    /// same tracks, and nothing else moves.
    void aGhostWithAnotherQueueLinesUpWithWhatIsThere()
    {
        const auto base = sceneForTests({.devices = 1, .microBatches = 2, .operators = 3, .span = 1000});
        const auto rows = layoutRows(*base, {});
        QCOMPARE(rows[0].queues.count(), 1);
        TimelinePicture picture;
        picture.scene = base.get();
        picture.rows = &rows;
        picture.axis = {0, 20};
        picture.size = {1000, 300};
        picture.font = m_view->font();
        picture.would = m_scene.get();
        picture.behindGhost = true;
        QImage image(picture.size, QImage::Format_RGB32);
        {
            QPainter painter(&image);
            painter.setFont(picture.font);
            const TimelineGhost none;
            paintLanes(painter, paletteFor(*m_view), picture);
            paintWouldLanes(painter, paletteFor(*m_view), picture, none);
        }
        const int top = picture.top(rows[0], rows[0].communicationTop());
        const auto both = rows[0].queues | m_scene->lanes[0].queues();
        const TrackPlace tensor = *trackIn(both, QueueKind::Tensor, top, rows[0].communication);
        const TrackPlace data = *trackIn(both, QueueKind::Data, top, rows[0].communication);
        const auto colourAt = [&](double time, const TrackPlace &track) {
            return image.pixelColor(picture.canvas().left() + static_cast<int>(picture.axis.xOf(time)),
                track.top + track.height / 2);
        };
        const QColor ground = colourAt(1000, data);
        QCOMPARE(colourAt(1000, tensor), ground);
        // There, at 6-7 and 12-13 on tensor; would be, at 6-7 and 13-14 on tensor, at 12-14 on data.
        QVERIFY(colourAt(12'500, tensor) != ground);
        QVERIFY(colourAt(13'500, tensor) != ground);
        QVERIFY(colourAt(13'500, data) != ground);
        QVERIFY(colourAt(6500, tensor) != ground);
        QCOMPARE(colourAt(6500, data), ground);
    }

    /// Spans of a measured step leave the outlines of the predicted ones on the tracks of their queues.
    void aPredictionIsOutlinedOnTheTracksOfItsQueues()
    {
        auto later = std::make_shared<Timeline>(*m_scene->timeline);
        for (std::size_t row = 15; row < 20; ++row)
            later->spans.start[row] += 2000;
        later->step = Nanoseconds{16'000};
        const auto measured = makeTimelineScene(later, m_scene->plan, m_scene->cluster);
        m_view->setMeasured(measured);
        m_view->fitAll();
        const QImage image = m_view->viewport()->grab().toImage();
        const QColor colour = communicationColour(paletteFor(*m_view), InstructionKind::AllReduce);
        for (const auto &[row, track] :
            {std::pair{std::size_t{15}, QueueKind::Tensor}, {17, QueueKind::Data}}) {
            const auto place = m_view->rows().front().placeOf(track);
            QVERIFY(place.has_value());
            const int y = m_view->lanesTop() + place->top + place->height / 2;
            const auto x = [&](std::int64_t time) {
                return m_view->axisLeft() + static_cast<int>(m_view->axis().xOf(static_cast<double>(time)));
            };
            QCOMPARE(image.pixelColor(x(later->spans.start[row]) + 2, y), colour);
            // The left edge of where it was predicted, and nothing within.
            const int left = x(m_scene->timeline->spans.start[row]);
            bool edge = false;
            for (int dx = -1; dx <= 1; ++dx)
                edge = edge || image.pixelColor(left + dx, y) != image.pixelColor(left + 6, y);
            QVERIFY(edge);
            QVERIFY(image.pixelColor(left + 6, y) != colour);
        }
    }

private:
    TimelineSceneSnapshot m_scene;
    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<TimelineView> m_view;
};

PLANLOOM_QTEST(TimelineQueuesTest)
#include "timeline_queues_test.moc"
