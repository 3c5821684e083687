#include "widgets/scene/queue_tracks.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

QueueSet setOf(std::initializer_list<QueueKind> queues)
{
    QueueSet set;
    for (const QueueKind queue : queues)
        set.add(queue);
    return set;
}

TEST(QueueTracks, ALoneQueueHasTheWholeStrip)
{
    EXPECT_EQ(trackIn(setOf({QueueKind::Data}), QueueKind::Data, 40, 13), (TrackPlace{40, 13}));
    EXPECT_EQ(trackIn(setOf({QueueKind::Data}), QueueKind::Tensor, 40, 13), std::nullopt);
    EXPECT_EQ(trackIn(setOf({QueueKind::Data}), QueueKind::Data, 40, 0), std::nullopt) << "it is hidden";
}

TEST(QueueTracks, SeveralStandOneBelowTheOtherWithAirBetweenThem)
{
    const QueueSet queues = setOf({QueueKind::Pipeline, QueueKind::Tensor, QueueKind::Data});
    EXPECT_EQ(queues.count(), 3);
    EXPECT_EQ(trackIn(queues, QueueKind::Tensor, 100, 33), (TrackPlace{100, 10}));
    EXPECT_EQ(trackIn(queues, QueueKind::Data, 100, 33), (TrackPlace{111, 10}));
    EXPECT_EQ(trackIn(queues, QueueKind::Pipeline, 100, 33), (TrackPlace{122, 10}));
}

/// However high the strip and whoever shares it: what is hit is what is drawn there, or just above.
TEST(QueueTracks, EveryRowOfPixelsIsOfTheTrackThatIsDrawnThere)
{
    for (unsigned bits = 1; bits < 1U << static_cast<unsigned>(kQueueCount); ++bits) {
        QueueSet queues;
        for (int q = 0; q < kQueueCount; ++q) {
            if ((bits >> static_cast<unsigned>(q) & 1U) != 0)
                queues.add(static_cast<QueueKind>(q));
        }
        for (int height = queues.count() * 2; height < 70; ++height) {
            EXPECT_EQ(queueAt(queues, -1, height), std::nullopt);
            EXPECT_EQ(queueAt(queues, height, height), std::nullopt);
            for (int y = 0; y < height; ++y) {
                const auto queue = queueAt(queues, y, height);
                ASSERT_TRUE(queue && queues.has(*queue));
                const auto track = trackIn(queues, *queue, 0, height);
                ASSERT_TRUE(track);
                EXPECT_LE(track->top, y);
                EXPECT_LE(y, track->top + track->height) << "its own, or the air below";
            }
        }
    }
    EXPECT_EQ(queueAt({}, 3, 13), std::nullopt) << "nobody's";
}

TEST(QueueTracks, AThinStripIsAllOfTheirs)
{
    QueueSet queues;
    queues.add(QueueKind::Tensor);
    queues.add(QueueKind::Data);
    queues.add(QueueKind::Pipeline);
    EXPECT_EQ(trackIn(queues, QueueKind::Data, 100, 4), (TrackPlace{100, 4}));
    EXPECT_EQ(trackIn(queues, QueueKind::Pipeline, 100, 4), (TrackPlace{100, 4}));
    EXPECT_EQ(trackIn(queues, QueueKind::Compute, 100, 4), std::nullopt);
    EXPECT_EQ(queueAt(queues, 2, 4), std::nullopt) << "which of them a span tells";
}

} // namespace
} // namespace planloom
