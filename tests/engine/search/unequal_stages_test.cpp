#include "engine/search/stages/unequal_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace planloom {
namespace {

/// Pieces that take so many seconds on one device, with nothing else to pay for.
std::vector<PieceCost> piecesOf(const std::vector<double> &seconds, std::int32_t devices)
{
    std::vector<PieceCost> pieces;
    for (const double each : seconds)
        pieces.push_back({.seconds = each / devices, .fill = each / devices});
    return pieces;
}

/// Groups of one, two, ... devices that share all work evenly, anywhere.
UnequalSetting evenGroups(const std::vector<double> &seconds, std::int32_t devices, std::int32_t microBatches)
{
    UnequalSetting setting;
    setting.microBatches = microBatches;
    setting.startsAt.resize(static_cast<std::size_t>(devices));
    for (std::int32_t size = 1; size <= devices; ++size) {
        setting.kinds.push_back({size, piecesOf(seconds, size)});
        for (std::int32_t first = 0; first + size <= devices; ++first)
            setting.startsAt[static_cast<std::size_t>(first)].push_back(size - 1);
    }
    return setting;
}

/// The least seconds of all stages on all groups.
double leastOfAll(const UnequalSetting &setting)
{
    double least = setting.most;
    const std::size_t pieces = setting.kinds.front().pieces.size();
    std::vector<UnequalStage> stages;
    const std::function<void(std::size_t, std::size_t)> goOn = [&](std::size_t piece, std::size_t device) {
        for (std::size_t f = device; f < setting.startsAt.size(); ++f)
            for (const std::int32_t kind : setting.startsAt[f]) {
                const auto size =
                    static_cast<std::size_t>(setting.kinds[static_cast<std::size_t>(kind)].devices);
                if (f + size > setting.startsAt.size())
                    continue;
                stages.push_back({static_cast<std::int32_t>(piece), kind, static_cast<std::int32_t>(f)});
                if (static_cast<std::int32_t>(stages.size()) <= setting.mostStages) {
                    least = std::min(least, unequalSeconds(setting, stages));
                    for (std::size_t next = piece + 1; next < pieces; ++next)
                        goOn(next, f + size);
                }
                stages.pop_back();
            }
    };
    goOn(0, 0);
    return least;
}

TEST(UnequalStages, GiveAHeavyPieceMoreDevices)
{
    // Seconds of a micro-batch: 1 on one device, 3 on three others.
    const UnequalSetting setting = evenGroups({1, 3}, 4, 16);
    const std::vector<UnequalStage> one{{0, 3, 0}};
    const std::vector<UnequalStage> two{{0, 0, 0}, {1, 2, 1}};
    EXPECT_DOUBLE_EQ(unequalSeconds(setting, two), 2 + 15);
    EXPECT_DOUBLE_EQ(unequalSeconds(setting, one), 1 + 15);
    EXPECT_EQ(unequalStages(setting), one); // work is shared without any loss

    UnequalSetting alone = setting; // no group is of all devices
    alone.startsAt.front().pop_back();
    EXPECT_EQ(unequalStages(alone), two);
}

TEST(UnequalStages, LeaveIdleWhatDoesNotHelp)
{
    UnequalSetting setting = evenGroups({2, 2}, 3, 8);
    for (auto &starts : setting.startsAt)
        std::erase_if(starts, [](std::int32_t kind) { return kind > 0; });
    const std::vector<UnequalStage> stages = unequalStages(setting);
    ASSERT_EQ(stages.size(), 2u); // there are only two pieces
    EXPECT_DOUBLE_EQ(unequalSeconds(setting, stages), 4 + 7 * 2);
}

TEST(UnequalStages, KeepToTheRoom)
{
    UnequalSetting setting = evenGroups({1, 1, 1, 1}, 2, 8);
    for (auto &starts : setting.startsAt)
        std::erase_if(starts, [](std::int32_t kind) { return kind > 0; });
    for (GroupKind &kind : setting.kinds)
        for (PieceCost &piece : kind.pieces)
            piece.kept = 1;
    const auto cutAt = [&](double room) {
        setting.room = room;
        const auto stages = unequalStages(setting);
        return stages.size() < 2 ? -1 : stages[1].firstPiece;
    };
    EXPECT_EQ(cutAt(4), 2);
    EXPECT_EQ(cutAt(3), 1); // the first of two stages keeps two micro-batches
    EXPECT_EQ(cutAt(2), -1);
}

TEST(UnequalStages, FindNothingThatTakesAsLong)
{
    UnequalSetting setting = evenGroups({1, 2, 3}, 3, 4);
    const double least = unequalSeconds(setting, unequalStages(setting));
    setting.most = least * (1 - 1e-6);
    EXPECT_TRUE(unequalStages(setting).empty());
    setting.most = least * (1 + 1e-6);
    EXPECT_FALSE(unequalStages(setting).empty());
}

/// Kinds are of several classes of devices, begin where it is said, and take what they take.
TEST(UnequalStages, AreTheBestOfAll)
{
    std::mt19937 random(17);
    const auto number = [&](double most) { return std::uniform_real_distribution<double>(0, most)(random); };
    const auto count = [&](int least, int most) {
        return std::uniform_int_distribution<int>(least, most)(random);
    };
    for (int round = 0; round < 300; ++round) {
        SCOPED_TRACE(round);
        UnequalSetting setting;
        setting.microBatches = count(1, 6);
        setting.mostStages = count(0, 3) == 0 ? 2 : 100;
        setting.room = count(0, 1) == 0 ? std::numeric_limits<double>::infinity() : number(12);
        setting.startsAt.resize(static_cast<std::size_t>(count(1, 5)));
        const int pieces = count(1, 5);
        for (int k = count(1, 4); k > 0; --k) {
            GroupKind &kind = setting.kinds.emplace_back();
            kind.devices = count(1, 3);
            for (int p = 0; p < pieces; ++p) {
                PieceCost &piece = kind.pieces.emplace_back();
                piece.seconds = number(4) / kind.devices;
                piece.fill = piece.seconds * number(1);
                piece.hiding = piece.seconds * number(1);
                piece.reduction = number(2);
                piece.update = number(0.5);
                piece.sent = number(0.5);
                piece.bytes = number(2);
                piece.kept = number(1);
            }
            for (auto &starts : setting.startsAt)
                if (count(0, 3) > 0)
                    starts.push_back(static_cast<std::int32_t>(setting.kinds.size()) - 1);
        }
        const double least = leastOfAll(setting);
        const std::vector<UnequalStage> stages = unequalStages(setting);
        ASSERT_EQ(stages.empty(), !std::isfinite(least));
        if (stages.empty())
            continue;
        EXPECT_NEAR(unequalSeconds(setting, stages), least, 1e-6 * least);
        setting.tolerance = 0.05;
        EXPECT_LE(unequalSeconds(setting, unequalStages(setting)), least * (1 + 0.06));
    }
}

} // namespace
} // namespace planloom
