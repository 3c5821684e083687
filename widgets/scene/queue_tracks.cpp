#include "widgets/scene/queue_tracks.h"

#include <bit>

namespace planloom {

int QueueSet::count() const
{
    return std::popcount(m_bits);
}

int QueueSet::placeOf(QueueKind queue) const
{
    return std::popcount(static_cast<std::uint8_t>(m_bits & (bitOf(queue) - 1U)));
}

std::optional<TrackPlace> trackIn(QueueSet queues, QueueKind queue, int top, int height)
{
    if (!queues.has(queue) || height <= 0)
        return {};
    const int count = queues.count();
    const int place = queues.placeOf(queue);
    if (height < 2 * count)
        return TrackPlace{top, height}; // a thin strip is all of theirs
    const int from = height * place / count;
    const int to = height * (place + 1) / count;
    return TrackPlace{top + from, to - from - (count > 1 ? 1 : 0)};
}

std::optional<QueueKind> queueAt(QueueSet queues, int y, int height)
{
    if (y < 0 || y >= height)
        return {};
    const int count = queues.count();
    if (height < 2 * count)
        return {}; // which of them a span tells
    for (int q = 0; q < kQueueCount; ++q) {
        const auto queue = static_cast<QueueKind>(q);
        // The air below a track belongs to it: no row of pixels is nobody's.
        if (queues.has(queue) && y < height * (queues.placeOf(queue) + 1) / count)
            return queue;
    }
    return {};
}

} // namespace planloom
