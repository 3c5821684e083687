// What the ranks of a run have in common, in real processes.

#include "engine/runtime/processes/process_world.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <set>

#include <sys/wait.h>
#include <unistd.h>

using namespace planloom;

namespace {

/// Forks a process for each rank, and says whether `body` was true in all of them.
bool inProcesses(RankLayout layout, std::vector<std::vector<DeviceId>> groups,
    const std::function<bool(RankEnd &)> &body, const RankEnd::Handlers &handlers = {})
{
    const auto world = ProcessWorld::make(layout, std::move(groups));
    if (!world)
        return false;
    std::vector<pid_t> processes;
    for (std::int32_t rank = 0; rank < layout.ranks; ++rank) {
        processes.push_back(::fork());
        if (processes.back() != 0)
            continue;
        (*world)->becomeRank(rank);
        bool ok = false;
        {
            WorkPool pool(2);
            const auto end = (*world)->enter(rank, pool);
            end->start(handlers);
            ok = body(*end);
        }
        ::_exit(ok ? 0 : 1);
    }
    bool all = true;
    for (const pid_t process : processes) {
        int status = 0;
        all =
            ::waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0 && all;
    }
    return all;
}

Result<void> joinAndWait(Communicator &device, const CollectiveCall &call)
{
    std::promise<Result<void>> promise;
    device.join(call, [&](Result<void> outcome) { promise.set_value(std::move(outcome)); });
    return promise.get_future().get();
}

} // namespace

TEST(RankLayout, GivesEveryDeviceToOneRankAsEvenlyAsCanBe)
{
    for (std::int32_t devices = 1; devices <= 17; ++devices) {
        for (std::int32_t ranks = 1; ranks <= devices; ++ranks) {
            const RankLayout layout{devices, ranks};
            EXPECT_EQ(layout.first(0), 0);
            EXPECT_EQ(layout.end(ranks - 1), devices);
            for (std::int32_t rank = 0; rank < ranks; ++rank) {
                const std::int32_t held = layout.end(rank) - layout.first(rank);
                EXPECT_GE(held, devices / ranks);
                EXPECT_LE(held, devices / ranks + 1);
                for (std::int32_t d = layout.first(rank); d < layout.end(rank); ++d)
                    EXPECT_EQ(layout.rankOf({d}), rank) << devices << " devices, " << ranks << " ranks";
            }
        }
    }
}

TEST(SharedMemory, HandsOutEachPieceOnce)
{
    SharedMemory memory;
    ASSERT_TRUE(memory.valid());
    std::set<std::byte *> pieces;
    for (int i = 0; i < 100; ++i) {
        std::byte *const piece = memory.take(static_cast<std::size_t>(i));
        ASSERT_NE(piece, nullptr);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % 64, 0U);
        EXPECT_TRUE(memory.holds(piece));
        std::memset(piece, 0x5a, static_cast<std::size_t>(i));
        pieces.insert(piece);
    }
    EXPECT_GE(pieces.size(), 99U); // one of no bytes may lie where the next does
    EXPECT_EQ(memory.take(std::size_t{1} << 62U), nullptr);
    const int there = 0;
    EXPECT_FALSE(memory.holds(reinterpret_cast<const std::byte *>(&there)));
}

TEST(ProcessWorld, RanksReduceWhatLiesInSharedMemoryAndWhatDoesNot)
{
    std::vector<DeviceId> everyone;
    for (std::int32_t d = 0; d < 5; ++d)
        everyone.push_back({d});
    EXPECT_TRUE(inProcesses({5, 3}, {everyone}, [](RankEnd &end) {
        constexpr std::int64_t kCount = 5000;
        std::vector<std::vector<float>> values;
        std::vector<std::future<Result<void>>> joined;
        std::vector<std::unique_ptr<Communicator>> devices;
        std::vector<float *> at;
        for (std::int32_t d = end.layout().first(end.rank()); d < end.layout().end(end.rank()); ++d) {
            std::vector<float> &mine = values.emplace_back(kCount);
            for (std::int64_t i = 0; i < kCount; ++i)
                mine[static_cast<std::size_t>(i)] = static_cast<float>(d * 1000 + i);
            at.push_back(mine.data());
            if (d % 2 == 0) {
                auto *const shared = reinterpret_cast<float *>(end.memory().take(kCount * sizeof(float)));
                std::copy(mine.begin(), mine.end(), shared);
                at.back() = shared;
            }
            devices.push_back(end.communicator({d}));
        }
        for (std::size_t k = 0; k < devices.size(); ++k) {
            const CollectiveBuffer buffer{reinterpret_cast<std::byte *>(at[k]), DataType::Float32, {kCount}};
            joined.push_back(std::async(std::launch::async, [&, k, buffer] {
                return joinAndWait(*devices[k], {InstructionKind::AllReduce, 0, 0, buffer, buffer});
            }));
        }
        bool ok = true;
        for (auto &each : joined)
            ok = each.get() && ok;
        for (const float *sums : at)
            for (std::int64_t i = 0; i < kCount; ++i)
                ok = ok && sums[i] == static_cast<float>(10000 + 5 * i);
        return ok;
    }));
}

TEST(ProcessWorld, BytesOfRank0ReachAllAndThoseOfAllReachRank0)
{
    EXPECT_TRUE(inProcesses({4, 4}, {}, [](RankEnd &end) {
        for (int repeat = 0; repeat < 200; ++repeat) {
            const std::string id = "id " + std::string(static_cast<std::size_t>(repeat * 37), 'x');
            const auto got = end.broadcastBytes(end.rank() == 0 ? id : std::string{});
            if (!got || *got != id)
                return false;
            const auto all = end.gatherBytes("from " + std::to_string(end.rank()));
            if (!all || all->size() != (end.rank() == 0 ? 4U : 0U))
                return false;
            for (std::size_t rank = 0; rank < all->size(); ++rank)
                if ((*all)[rank] != "from " + std::to_string(rank))
                    return false;
        }
        return true;
    }));
}

TEST(ProcessWorld, WhatIsPostedArrivesInOrderAndBeforeWhatIsGatheredLater)
{
    // Handlers of rank 0 alone are called: each process has its own copy.
    std::array<std::int32_t, 3> next{};
    bool ordered = true;
    RankEnd::Handlers handlers;
    handlers.posted = [&](std::span<const std::byte> bytes) {
        std::array<std::int32_t, 2> message{}; // rank, number
        std::memcpy(message.data(), bytes.data(), sizeof(message));
        ordered = ordered && bytes.size() == sizeof(message) + 1000
            && next[static_cast<std::size_t>(message[0])]++ == message[1];
    };
    EXPECT_TRUE(inProcesses(
        {3, 3}, {},
        [&](RankEnd &end) {
            constexpr std::int32_t kMessages = 500;
            const std::vector<std::byte> body(1000);
            for (std::int32_t i = 0; end.rank() != 0 && i < kMessages; ++i) {
                const std::array<std::int32_t, 2> head{end.rank(), i};
                if (!end.post(std::as_bytes(std::span{head}), body))
                    return false;
            }
            return end.gatherBytes({}) && ordered
                && (end.rank() != 0 || next == std::array<std::int32_t, 3>{0, kMessages, kMessages});
        },
        handlers));
}

TEST(ProcessWorld, AFailureEndsTheWaitOfAllRanksAndTellsThemWhy)
{
    std::mutex mutex;
    std::condition_variable changed;
    std::string told;
    RankEnd::Handlers handlers;
    handlers.failed = [&](const Error &error) {
        const std::lock_guard lock{mutex};
        told = error.message + "|" + error.where;
        changed.notify_all();
    };
    EXPECT_TRUE(inProcesses(
        {3, 3}, {{{0}, {1}, {2}}},
        [&](RankEnd &end) {
            if (end.rank() == 2) {
                end.fail({ErrorCode::CheckFailed, "it broke", {}, "operator:3"});
                return !end.gatherBytes({});
            }
            const auto device = end.communicator({end.rank()});
            float value = 1;
            const CollectiveBuffer buffer{reinterpret_cast<std::byte *>(&value), DataType::Float32, {1}};
            const auto outcome = joinAndWait(*device, {InstructionKind::AllReduce, 0, 0, buffer, buffer});
            const auto waited =
                end.rank() == 0 ? end.gatherBytes({}).error() : end.broadcastBytes({}).error();
            std::unique_lock lock{mutex};
            changed.wait(lock, [&] { return !told.empty(); });
            return !outcome && outcome.error().code == ErrorCode::Cancelled
                && waited.code == ErrorCode::Cancelled && told == "it broke|operator:3";
        },
        handlers));
}
