#include "engine/simulate/memory_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

namespace planloom {
namespace {

/// By definition: what is held from each time on, where that changes.
std::map<std::int64_t, std::array<std::int64_t, kMemoryKindCount>> heldBy(
    const std::vector<MemoryEvent> &events)
{
    std::map<std::int64_t, std::array<std::int64_t, kMemoryKindCount>> changes;
    for (const MemoryEvent &event : events)
        changes[event.time][static_cast<std::size_t>(event.kind)] += event.bytes;
    std::array<std::int64_t, kMemoryKindCount> now{};
    for (auto change = changes.begin(); change != changes.end();) {
        auto next = now;
        for (std::size_t kind = 0; kind < next.size(); ++kind)
            next[kind] += change->second[kind];
        change->second = next;
        change = next == now ? changes.erase(change) : std::next(change);
        now = next;
    }
    return changes;
}

TEST(MemoryLog, EventsOfAllQueuesMakeTheCurveOfTheirDefinition)
{
    std::mt19937 random(7);
    const auto below = [&random](std::int64_t end) {
        return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random);
    };
    for (int round = 0; round < 300; ++round) {
        std::array<MemoryLog, kQueueCount> queues;
        std::vector<MemoryEvent> all;
        std::deque<std::vector<MemoryEvent>> pieces; // that logs refer to
        for (MemoryLog &queue : queues) {
            std::int64_t time = 0;
            for (std::int64_t left = below(30); left > 0; --left) {
                time += below(3);
                if (below(6) == 0) {
                    auto &piece = pieces.emplace_back();
                    std::int64_t in = 0;
                    for (std::int64_t more = below(5); more > 0; --more) {
                        in += below(3);
                        piece.push_back(
                            {in, below(21) - 10, static_cast<MemoryKind>(below(kMemoryKindCount))});
                        all.push_back({time + in, piece.back().bytes, piece.back().kind});
                    }
                    queue.add(piece, time);
                    time += in;
                }
                // Some are given back later than what follows.
                const MemoryEvent event{time + (below(4) == 0 ? below(10) : 0), below(21) - 10,
                    static_cast<MemoryKind>(below(kMemoryKindCount))};
                queue.add(event);
                all.push_back(event);
            }
        }
        std::shuffle(all.begin(), all.end(), random);
        const auto expected = heldBy(all);
        std::int64_t peak = 0;
        for (const auto &[time, bytes] : expected) {
            std::int64_t total = 0;
            for (const std::int64_t each : bytes)
                total += each;
            peak = std::max(peak, total);
        }
        for (const MemoryCurve &curve : {memoryCurve(queues, true), memoryCurve(all, true)}) {
            ASSERT_EQ(curve.time.size(), expected.size()) << "round " << round;
            std::size_t point = 0;
            for (const auto &[time, bytes] : expected) {
                EXPECT_EQ(curve.time[point], time);
                EXPECT_EQ(curve.bytes[point++], bytes);
            }
            EXPECT_EQ(curve.peak.count, peak);
        }
        const MemoryCurve figures = memoryCurve(queues, false);
        EXPECT_TRUE(figures.time.empty());
        EXPECT_EQ(figures.peak.count, peak);
        EXPECT_EQ(figures.atPeak, memoryCurve(queues, true).atPeak);
    }
}

TEST(MemoryLog, KeepsWhatHappensAtOneTimeAsOneEventOfEachKind)
{
    MemoryLog log;
    log.add({5, 10, MemoryKind::Activation});
    log.add({5, 3, MemoryKind::Weight});
    log.add({5, -4, MemoryKind::Activation});
    log.add({4, 1, MemoryKind::Weight}); // late
    ASSERT_EQ(log.own().size(), 2u);
    EXPECT_EQ(log.own()[0].bytes, 6);
    ASSERT_EQ(log.late().size(), 1u);
}

} // namespace
} // namespace planloom
