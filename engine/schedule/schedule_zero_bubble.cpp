#include "engine/schedule/schedule_templates.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "engine/schedule/schedule_shapes.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// Appends blocks of micro-batches that there are.
struct RankOrder {
    std::vector<ScheduledBlock> &order;
    std::int32_t microBatches = 0;

    void add(std::int32_t stage, SegmentKind pass, std::int32_t microBatch)
    {
        if (microBatch >= 0 && microBatch < microBatches)
            order.push_back({{StageId{stage}, pass}, microBatch});
    }
};

/// 1F1B over split backward passes. Rank r of p runs 1 + `pace` (p - r - 1) forward blocks first, and the
/// gradients of weights `pace` r micro-batches late.
Schedule lateWeights(const ScheduleSetting &setting, std::int32_t pace)
{
    const std::int32_t m = setting.microBatches;
    Schedule schedule;
    for (std::int32_t rank = 0; rank < setting.rankCount; ++rank) {
        RankOrder order{schedule.ranks.emplace_back(), m};
        const std::int32_t ahead = setting.backward ? 1 + pace * (setting.rankCount - rank - 1) : m;
        for (std::int32_t i = 0; i < ahead; ++i)
            order.add(rank, SegmentKind::Forward, i);
        for (std::int32_t i = 0; setting.backward && i < m + pace * rank; ++i) {
            order.add(rank, SegmentKind::InputGradient, i);
            order.add(rank, SegmentKind::WeightGradient, i - pace * rank);
            order.add(rank, SegmentKind::Forward, ahead + i);
        }
    }
    return schedule;
}

/// All forward blocks of one wave, for plans without a backward pass.
Schedule forwardWave(const ScheduleSetting &setting)
{
    SlotTable slots(setting.rankCount);
    for (std::size_t s = 0; s < setting.rankOf.size(); ++s)
        for (std::int32_t i = 0; i < setting.microBatches; ++i)
            slots.add(setting.rankOf[s],
                static_cast<double>(s) + 2 * i + (s >= at(setting.rankCount) ? 0.5 : 0),
                {{StageId{static_cast<std::int32_t>(s)}, SegmentKind::Forward}, i});
    return slots.schedule();
}

constexpr std::int32_t kPeriod = 6; ///< Slots of a building block: F, B and W of two stages.

/// The slots of one micro-batch's blocks on one rank: F of both stages, B of the second and of the first, and
/// W likewise.
struct BuildingBlock {
    std::array<std::int32_t, 4> passes{};
    std::array<std::int32_t, 2> weights{};
    std::int32_t peak = 0; ///< The most micro-batches of its stages that are held at once.
};

/// The most that are held from F to W where the block repeats.
std::int32_t peakOf(const BuildingBlock &block)
{
    std::int32_t peak = 0;
    for (std::int32_t phase = 0; phase < kPeriod; ++phase) {
        std::int32_t held = 0;
        for (const std::size_t chunk : {0, 1}) {
            // Of micro-batch n, F starts 6 n later: count those that have, and whose W has not.
            const auto started = [&](std::int32_t slot) {
                const std::int32_t before = phase - slot % kPeriod;
                return -(slot / kPeriod) - (before < 0 ? 1 : 0);
            };
            held += started(block.passes[chunk]) - started(block.weights[1 - chunk]);
        }
        peak = std::max(peak, held);
    }
    return peak;
}

/// Puts W into the two slots that are free, whichever way holds less.
/// @return false if two passes fall into one slot
bool placeWeights(BuildingBlock &block)
{
    std::array<bool, kPeriod> taken{};
    for (const std::int32_t slot : block.passes)
        if (std::exchange(taken[at(slot % kPeriod)], true))
            return false;
    std::vector<std::int32_t> free;
    for (std::int32_t slot = 0; slot < kPeriod; ++slot)
        if (!taken[at(slot)])
            free.push_back(slot);
    const auto behind = [](std::int32_t slot, std::int32_t place) {
        return slot + 1 + (place - slot - 1 + kPeriod * (slot + 1)) % kPeriod;
    };
    BuildingBlock other = block;
    block.weights = {behind(block.passes[2], free[0]), behind(block.passes[3], free[1])};
    other.weights = {behind(block.passes[2], free[1]), behind(block.passes[3], free[0])};
    block.peak = peakOf(block);
    other.peak = peakOf(other);
    if (other.peak < block.peak)
        block = other;
    return true;
}

/// By rank, for paces (slots to the next rank, down and up) and waits where the way turns; empty if two
/// blocks of a rank would fall into one slot.
std::vector<BuildingBlock> blocksOf(
    std::int32_t ranks, std::int32_t up, const std::array<std::int32_t, 3> &waits)
{
    std::vector<BuildingBlock> blocks(at(ranks));
    std::int32_t base = 0;
    for (std::size_t leg = 0; leg < 4; ++leg) {
        const std::int32_t pace = leg % 2 == 0 ? 1 : up;
        for (std::int32_t r = 0; r < ranks; ++r)
            blocks[at(r)].passes[leg] = base + pace * (leg % 2 == 0 ? r : ranks - 1 - r);
        base += pace * (ranks - 1) + 1 + (leg < 3 ? waits[leg] : 0);
    }
    for (BuildingBlock &block : blocks)
        if (!placeWeights(block))
            return {};
    return blocks;
}

/// Building blocks over one wave, with the waits that hold least, then wait least.
/// @param up  slots from a rank to the one before; to the next it is one
Result<Schedule> buildingBlocks(const ScheduleSetting &setting, ScheduleKind kind, std::int32_t up)
{
    TRY_VOID(requireOneWave(setting, kind, std::string("a schedule ") + nameOf(kind)));
    if (!setting.backward)
        return forwardWave(setting);
    const std::int32_t p = setting.rankCount;
    // With paces of 1, and of 1 and 2, legs are as far apart on all ranks, or 2 or 3 slots farther from rank
    // to rank: there always are waits with which they never meet.
    std::vector<BuildingBlock> best;
    std::pair<std::int32_t, std::int32_t> least{};
    for (std::int32_t code = 0; code < kPeriod * kPeriod * kPeriod; ++code) {
        const std::array waits{code / kPeriod / kPeriod, code / kPeriod % kPeriod, code % kPeriod};
        std::vector<BuildingBlock> blocks = blocksOf(p, up, waits);
        if (blocks.empty())
            continue;
        std::pair<std::int32_t, std::int32_t> cost{0, waits[0] + waits[1] + waits[2]};
        for (const BuildingBlock &block : blocks)
            cost.first = std::max(cost.first, block.peak);
        if (best.empty() || cost < least) {
            least = cost;
            best = std::move(blocks);
        }
    }
    SlotTable table(p);
    for (std::int32_t r = 0; r < p; ++r) {
        const BuildingBlock &block = best[at(r)];
        const std::array stages{StageId{r}, StageId{2 * p - 1 - r}, StageId{2 * p - 1 - r}, StageId{r}};
        for (std::int32_t i = 0; i < setting.microBatches; ++i)
            for (std::size_t leg = 0; leg < 4; ++leg) {
                const SegmentKind pass = leg < 2 ? SegmentKind::Forward : SegmentKind::InputGradient;
                table.add(r, block.passes[leg] + kPeriod * i, {{stages[leg], pass}, i});
                if (leg >= 2)
                    table.add(r, block.weights[leg - 2] + kPeriod * i,
                        {{stages[leg], SegmentKind::WeightGradient}, i});
            }
    }
    return table.schedule();
}

} // namespace

Result<Schedule> zeroBubbleH1Schedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneEach(
        setting, ScheduleKind::ZeroBubbleH1, "a zb-h1 schedule", "1f1b with a split-backward row"));
    return lateWeights(setting, 1);
}

Result<Schedule> zeroBubbleH2Schedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneEach(setting, ScheduleKind::ZeroBubbleH2, "a zb-h2 schedule", "zb-v"));
    return lateWeights(setting, 2);
}

/// With rank r of p and its stages a = r and b = 2 p - 1 - r:
///
/// 1. 2 (p - r) - 1 times Fa
/// 2. r times Fb Fa
/// 3. p - r times Fb Bb Wb
/// 4. while there are forward blocks: Fa Ba Wa Fb Bb Wb
/// 5. r times Ba Bb
/// 6. p - r times Ba Wa, then what is left of Wb, and of Wa
///
/// It is made for 2 p - 1 micro-batches or more; what there are fewer of is left out.
Result<Schedule> zeroBubbleVSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneWave(setting, ScheduleKind::ZeroBubbleV, "a schedule zb-v"));
    if (!setting.backward)
        return forwardWave(setting);
    const std::int32_t p = setting.rankCount;
    const std::int32_t whole = std::max(2 * p - 1, setting.microBatches);
    Schedule schedule;
    for (std::int32_t r = 0; r < p; ++r) {
        RankOrder order{schedule.ranks.emplace_back(), setting.microBatches};
        const std::array<std::int32_t, 2> stage{r, 2 * p - 1 - r};
        std::array<std::int32_t, 2> forwards{};
        std::array<std::int32_t, 2> backwards{};
        std::array<std::int32_t, 2> weights{};
        const auto runF = [&](std::size_t chunk) {
            order.add(stage[chunk], SegmentKind::Forward, forwards[chunk]++);
        };
        const auto runB = [&](std::size_t chunk) {
            order.add(stage[chunk], SegmentKind::InputGradient, backwards[chunk]++);
        };
        const auto runW = [&](std::size_t chunk) {
            order.add(stage[chunk], SegmentKind::WeightGradient, weights[chunk]++);
        };
        for (std::int32_t i = 0; i < 2 * (p - r) - 1; ++i)
            runF(0);
        for (std::int32_t i = 0; i < r; ++i) {
            runF(1);
            runF(0);
        }
        for (std::int32_t i = 0; i < p - r; ++i) {
            runF(1);
            runB(1);
            runW(1);
        }
        while (forwards[1] < forwards[0] || forwards[0] < whole) {
            if (forwards[0] < whole)
                runF(0);
            runB(0);
            runW(0);
            runF(1);
            runB(1);
            runW(1);
        }
        for (std::int32_t i = 0; i < r; ++i) {
            runB(0);
            runB(1);
        }
        for (std::int32_t i = 0; i < p - r; ++i) {
            runB(0);
            runW(0);
        }
        while (weights[1] < backwards[1])
            runW(1);
        while (weights[0] < backwards[0])
            runW(0);
    }
    return schedule;
}

Result<Schedule> vHalfSchedule(const ScheduleSetting &setting)
{
    return buildingBlocks(setting, ScheduleKind::VHalf, 2);
}

Result<Schedule> vMinSchedule(const ScheduleSetting &setting)
{
    return buildingBlocks(setting, ScheduleKind::VMin, 1);
}

} // namespace planloom
