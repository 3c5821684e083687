#include "engine/schedule/play_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace planloom {
namespace {

using Player = BlockPlayer<std::int64_t>;

/// Run by run, with its start: "0@0 1@2"
std::string played(Player &player, const std::vector<std::int64_t> &times,
    const std::vector<std::int32_t> &priorities, bool timeCounts = true)
{
    std::string text;
    while (const auto next = player.next([&](std::size_t run) { return priorities[run]; },
               [](std::size_t) { return true; }, timeCounts)) {
        const std::int64_t start = player.startOf(*next);
        text += (text.empty() ? "" : " ") + std::to_string(*next) + "@" + std::to_string(start);
        player.run(*next, start + times[*next]);
    }
    return text;
}

TEST(BlockPlayer, TakesWhatCanStartFirstThenTheLeastPriorityThenWhatWasReadyFirst)
{
    // Runs 0 and 1 share a queue, 2 has one of its own and waits for 0.
    const auto player = [] { return Player({{0, 0}, {0, 0}, {1, 0}}, {{0, 2}}, {{0}, {1}}); };
    auto alike = player();
    EXPECT_EQ(played(alike, {3, 4, 1}, {0, 0, 0}), "0@0 1@3 2@3");
    auto second = player();
    EXPECT_EQ(played(second, {3, 4, 1}, {1, 0, 0}), "1@0 0@4 2@7");
    auto third = player();
    EXPECT_EQ(played(third, {3, 4, 1}, {0, 1, 0}), "0@0 2@3 1@3");
}

TEST(BlockPlayer, LooksAtPrioritiesAloneWhereTimeDoesNotCount)
{
    Player player({{0, 0}, {0, 0}, {1, 0}}, {{0, 2}}, {{0}, {1}});
    EXPECT_EQ(played(player, {3, 4, 1}, {0, 1, 2}, false), "0@0 1@3 2@3");
}

TEST(BlockPlayer, ARunWaitsForEveryLinkAndEveryRelease)
{
    Player player({{0, 0}, {0, 0}, {0, 1}}, {{0, 2}, {1, 2}}, {{}});
    EXPECT_EQ(played(player, {5, 2, 1}, {0, 0, 0}), "0@0 1@0") << "nobody released the last one";
    EXPECT_TRUE(player.isWaiting(2));
    player.release(2);
    EXPECT_FALSE(player.isWaiting(2));
    EXPECT_EQ(played(player, {5, 2, 1}, {0, 0, 0}), "2@5");
}

TEST(BlockPlayer, WhatMayNotRunIsPassedOver)
{
    Player player({{0, 0}, {0, 0}}, {}, {{0}});
    const auto first = [](std::size_t run) { return static_cast<std::int32_t>(run); };
    EXPECT_EQ(player.next(first, [](std::size_t run) { return run == 1; }), std::size_t{1});
    EXPECT_EQ(player.next(first, [](std::size_t) { return false; }), std::nullopt);
}

TEST(BlockPlayer, NoQueueRunsTwoAtOnceAndNothingStartsBeforeWhatItWaitsFor)
{
    std::mt19937 random(3);
    const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    for (int round = 0; round < 200; ++round) {
        const int count = 1 + below(12);
        std::vector<Player::Run> runs;
        std::vector<std::int64_t> times;
        std::vector<Player::Link> links;
        const std::vector<std::vector<std::int32_t>> queues{{0}, {1}, {0, 2}, {}};
        for (int i = 0; i < count; ++i) {
            runs.push_back({below(4), 0});
            times.push_back(below(5));
            for (int j = 0; j < i; ++j)
                if (below(4) == 0)
                    links.emplace_back(j, i);
        }
        Player player(runs, links, queues);
        std::vector<std::int64_t> ends(runs.size(), -1);
        std::map<std::int32_t, std::int64_t> freeAt;
        int ran = 0;
        while (
            const auto next = player.next([](std::size_t) { return 0; }, [](std::size_t) { return true; })) {
            std::int64_t earliest = 0;
            for (const auto &[from, to] : links)
                if (at(to) == *next) {
                    ASSERT_GE(ends[at(from)], 0);
                    earliest = std::max(earliest, ends[at(from)]);
                }
            for (const std::int32_t queue : queues[at(runs[*next].queues)])
                earliest = std::max(earliest, freeAt[queue]);
            EXPECT_EQ(player.startOf(*next), earliest) << "no later than it can, either";
            ends[*next] = earliest + times[*next];
            for (const std::int32_t queue : queues[at(runs[*next].queues)])
                freeAt[queue] = ends[*next];
            player.run(*next, ends[*next]);
            ++ran;
        }
        EXPECT_EQ(ran, count);
    }
}

} // namespace
} // namespace planloom
