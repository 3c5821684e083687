#include "tests/qt_test.h"
#include "tests/widgets/timeline/hands_for_tests.h"
#include "widgets/timeline/timeline_text.h"

using namespace planloom;

/// Gestures on a pipeline that runs both ways: each device has a lane of either stage.
class TimelineLanesTest : public TimelineHandsForTests
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        openModels();
        m_bothWays = planned(m_model, {}, "bidirectional:micro-batches=4", kDevices);
        QVERIFY(m_bothWays);
    }
    void init() { show(m_bothWays); }
    void cleanup() { close(); }

    void blocksSayTheirLane()
    {
        for (const DeviceLane &lane : m_scene->lanes) {
            int ordered = 0;
            for (std::size_t block = 0; block < lane.blocks.size(); ++block) {
                const TimelineBlock &each = lane.blocks[block];
                if (!each.isOrdered())
                    continue;
                ++ordered;
                // Stage 0 begins with lane 0 on device 0, stage 1 with it on device 1.
                const bool own = each.stage.index == lane.device.index;
                QCOMPARE(each.part.lane, own ? 0 : 1);
                QVERIFY(QString::fromStdString(labelOf(each)).endsWith(QLatin1Char(own ? 'a' : 'b')));
                const QString sentence = QString::fromStdString(sentenceOf(*m_scene, lane, block));
                QVERIFY2(sentence.contains(own ? "lane 0" : "lane 1"), qPrintable(sentence));
            }
            QCOMPARE(ordered, 2 * 2 * 4);
        }
    }

    void aBlockIsOrderedApartFromTheOtherLane()
    {
        const auto &blocks = m_scene->lanes[0].blocks;
        // The second micro-batch of one lane, before what the other lane runs ahead of it.
        std::size_t own = 0;
        while (blocks[own].kind != SegmentKind::Forward || blocks[own].microBatch != 1
            || blocks[own].part.lane != 0)
            ++own;
        std::size_t other = own - 1;
        while (!blocks[other].isOrdered() || blocks[other].part.lane != 1)
            --other;
        const TimelineBlock moved = blocks[own];
        const TimelineBlock passed = blocks[other];
        const QPoint from = m_view->rectOfBlock(0, own)->center();
        const QPoint to(m_view->rectOfBlock(0, other)->left() + 2, from.y());
        drag(from, to);
        QCOMPARE(m_view->gestures().ghost().drag, TimelineDrag::Order);
        QVERIFY(!m_view->gestures().proposal()->refusal);
        release(to);
        QCOMPARE(m_host->commits.size(), std::size_t{1});
        const QString text = QString::fromStdString(m_host->text());
        QVERIFY2(text.contains(QStringLiteral(" in lane %1 before ").arg(moved.part.lane)), qPrintable(text));
        QVERIFY2(text.contains(QStringLiteral(" in lane %1").arg(passed.part.lane)), qPrintable(text));
        const auto after = m_host->replanned();
        QVERIFY2(after, qPrintable(text));
        const auto &now = after->scene->lanes[0].blocks;
        const auto place = [&](const TimelineBlock &block) {
            return std::find_if(now.begin(), now.end(), [&](const TimelineBlock &other) {
                return other.kind == block.kind && other.microBatch == block.microBatch
                    && other.stage == block.stage && other.part == block.part;
            }) - now.begin();
        };
        QVERIFY(place(moved) < place(passed));
    }

private:
    PlanUpdateSnapshot m_bothWays;
};

PLANLOOM_QTEST(TimelineLanesTest)
#include "timeline_lanes_test.moc"
