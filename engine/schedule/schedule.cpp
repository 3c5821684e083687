#include "engine/schedule/schedule.h"

#include "engine/base/words.h"
#include "engine/schedule/schedule_shapes.h"
#include "engine/schedule/schedule_templates.h"

#include <algorithm>
#include <array>

namespace planloom {

std::span<const ScheduleTemplate> scheduleTemplates()
{
    static constexpr std::array kTemplates{
        ScheduleTemplate{ScheduleKind::Sequential,
            "every micro-batch forward then backward before the next (gradient accumulation)", "", nullptr},
        ScheduleTemplate{ScheduleKind::GPipe, "all forward blocks before any backward block",
            "GPipe, arXiv:1811.06965", nullptr},
        ScheduleTemplate{ScheduleKind::OneFOneB, "forward and backward blocks in turn",
            "PipeDream-Flush, arXiv:2104.04473", nullptr},
        ScheduleTemplate{ScheduleKind::Interleaved, "1F1B over several stages on each rank",
            "Megatron-LM, arXiv:2104.04473, section 2.2", &interleavedSchedule},
        ScheduleTemplate{ScheduleKind::CombinedOneFOneB,
            "1F1B whose forward and backward blocks run side by side, in slices",
            "DualPipe's chunks, arXiv:2412.19437, section 3.2.1", &combined1F1BSchedule},
        ScheduleTemplate{ScheduleKind::ZeroBubbleH1,
            "1F1B with the gradients of weights in a pass of their own, where ranks would wait",
            "ZB-H1, arXiv:2401.10241, section 2.1", &zeroBubbleH1Schedule},
        ScheduleTemplate{ScheduleKind::Chimera,
            "two pipelines in opposite directions, with a copy of the weights each",
            "Chimera, arXiv:2107.06925, section 3", &chimeraSchedule},
        ScheduleTemplate{ScheduleKind::Eager1F1B,
            "1F1B with twice the forward blocks ahead, so that what is sent has time to arrive",
            "Alpa's eager-1F1B, arXiv:2211.05322, section 4", &eager1F1BSchedule},
        ScheduleTemplate{ScheduleKind::BreadthFirst,
            "all micro-batches through the first stage of a rank, then through its next",
            "breadth-first, arXiv:2211.05953, section 4", &breadthFirstSchedule},
        ScheduleTemplate{ScheduleKind::OneFOneBPlus, "1F1B with stages on all devices in between",
            "SuperScaler's 1F1B+, arXiv:2301.08984, section 5", &oneFOneBPlusSchedule},
        ScheduleTemplate{ScheduleKind::Recycling,
            "several forward passes and one backward pass in turn, as with recycling",
            "3F1B, nnScaler, OSDI '24, section 2.2", &recyclingSchedule},
        ScheduleTemplate{ScheduleKind::Hanayo, "waves of stages down the devices and up again",
            "Hanayo, arXiv:2308.15762, section 3", &hanayoSchedule},
        ScheduleTemplate{ScheduleKind::ZeroBubbleH2, "no idle time, for twice the activations of 1F1B",
            "ZB-H2, arXiv:2401.10241, section 2.2", &zeroBubbleH2Schedule},
        ScheduleTemplate{ScheduleKind::ZeroBubbleV,
            "no idle time, for the activations of 1F1B, with two stages on each device",
            "ZB-V, arXiv:2401.10241, section 6", &zeroBubbleVSchedule},
        ScheduleTemplate{ScheduleKind::VHalf, "half the activations of 1F1B, with two stages on each device",
            "V-Half, arXiv:2405.15362, section 3", &vHalfSchedule},
        ScheduleTemplate{ScheduleKind::VMin,
            "a third of the activations of 1F1B, with two stages on each device",
            "V-Min, arXiv:2405.15362, section 3", &vMinSchedule},
        ScheduleTemplate{ScheduleKind::DualPipe,
            "micro-batches from both ends, forward blocks of one direction beside backward blocks of the "
            "other",
            "DualPipe, arXiv:2412.19437, section 3.2.1", &dualPipeSchedule},
        ScheduleTemplate{ScheduleKind::DualPipeV, "DualPipe folded in its middle, two stages on each device",
            "DualPipeV, deepseek-ai/DualPipe", &dualPipeVSchedule},
    };
    return kTemplates;
}

Schedule inSlices(const Schedule &schedule, const std::vector<std::int32_t> &slices)
{
    const auto slicesOf = [&](const ScheduledBlock &block) {
        const auto stage = static_cast<std::size_t>(block.block.stage.index);
        std::vector<ScheduledBlock> all(
            static_cast<std::size_t>(stage < slices.size() ? slices[stage] : 1), block);
        for (std::size_t i = 0; i < all.size(); ++i)
            all[i].block.slice =
                static_cast<std::int32_t>(block.block.pass == SegmentKind::Forward ? i : all.size() - 1 - i);
        return all;
    };
    Schedule sliced;
    for (const auto &rank : schedule.ranks) {
        auto &order = sliced.ranks.emplace_back();
        for (std::size_t i = 0; i < rank.size(); ++i) {
            const auto own = slicesOf(rank[i]);
            const bool pair = i + 1 < rank.size()
                && std::find(schedule.interleaved.begin(), schedule.interleaved.end(),
                       std::pair(rank[i], rank[i + 1]))
                    != schedule.interleaved.end();
            const auto other = pair ? slicesOf(rank[i + 1]) : std::vector<ScheduledBlock>{};
            for (std::size_t k = 0; k < std::max(own.size(), other.size()); ++k) {
                if (k < own.size())
                    order.push_back(own[k]);
                if (k < other.size())
                    order.push_back(other[k]);
                if (k < own.size() && k < other.size())
                    sliced.interleaved.emplace_back(own[k], other[k]);
            }
            i += pair ? 1 : 0;
        }
    }
    return sliced;
}

Result<Schedule> interleavedSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneLane(setting, ScheduleKind::Interleaved));
    const std::int32_t p = setting.rankCount;
    const std::int32_t m = setting.microBatches;
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    if (!isDealtInTurn(setting))
        return Error{ErrorCode::InvalidInput,
            "an interleaved schedule deals the stages out to the ranks in turn: stage s on rank s mod "
                + std::to_string(p),
            "place the stages so, or use schedule 1f1b", ""};
    if (p > 1 && m % p != 0)
        return Error{ErrorCode::InvalidInput,
            "an interleaved schedule over " + counted(p, "rank") + " needs a multiple of " + std::to_string(p)
                + " micro-batches, the plan has " + std::to_string(m),
            "choose another number of micro-batches, or use schedule 1f1b", ""};
    const std::int32_t v = stages / p;
    const std::int32_t total = m * v;
    const auto numbered = [&](std::int32_t rank, std::int32_t k, SegmentKind pass) {
        const std::int32_t chunk = k / p % v;
        const std::int32_t its = pass == SegmentKind::Forward ? chunk : v - 1 - chunk;
        return ScheduledBlock{{StageId{its * p + rank}, pass}, k / (p * v) * p + k % p};
    };
    Schedule schedule;
    for (std::int32_t rank = 0; rank < p; ++rank) {
        std::vector<ScheduledBlock> &order = schedule.ranks.emplace_back();
        const std::int32_t warmUp =
            setting.backward ? std::min(2 * (p - rank - 1) + (v - 1) * p, total) : total;
        for (std::int32_t k = 0; k < warmUp; ++k)
            order.push_back(numbered(rank, k, SegmentKind::Forward));
        for (std::int32_t k = 0; setting.backward && k < total; ++k) {
            if (warmUp + k < total)
                order.push_back(numbered(rank, warmUp + k, SegmentKind::Forward));
            order.push_back(numbered(rank, k, SegmentKind::Backward));
        }
    }
    return schedule;
}

Result<Schedule> combined1F1BSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneEach(setting, ScheduleKind::CombinedOneFOneB, "a combined-1f1b schedule", "1f1b"));
    const std::int32_t p = setting.rankCount;
    std::vector<std::int32_t> ahead;
    for (std::int32_t rank = 0; rank < p; ++rank)
        ahead.push_back(p - rank + 1);
    Schedule schedule = inTurnSchedule(setting, ahead);
    for (std::int32_t rank = 0; rank < p; ++rank) {
        const auto &order = schedule.ranks[at(rank)];
        for (std::size_t i = 1; i < order.size(); ++i) // a forward block, and the backward block behind it
            if (order[i - 1].microBatch - order[i].microBatch == p - rank)
                schedule.interleaved.emplace_back(order[i - 1], order[i]);
    }
    return schedule;
}

std::optional<Schedule> interlacedSchedule(const ScheduleSetting &setting)
{
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    if (setting.wide.empty() || !setting.laneRanks.empty())
        return std::nullopt;
    const auto isWide = [&](std::int32_t s) {
        return static_cast<bool>(setting.wide[static_cast<std::size_t>(s)]);
    };
    std::int32_t begin = 0; // of the stages between the wide ones
    std::int32_t end = stages;
    while (begin < stages && isWide(begin))
        ++begin;
    while (end > begin && isWide(end - 1))
        --end;
    std::vector<std::int32_t> ranks(
        setting.rankOf.begin() + begin, setting.rankOf.begin() + end); // each once
    std::sort(ranks.begin(), ranks.end());
    if (begin == end || (begin == 0 && end == stages)
        || std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
        return std::nullopt;
    for (std::int32_t s = begin; s < end; ++s)
        if (isWide(s))
            return std::nullopt;
    const std::int32_t p = end - begin;
    const std::int32_t m = setting.microBatches;
    Schedule schedule;
    for (std::int32_t rank = 0; rank < p; ++rank) {
        std::vector<ScheduledBlock> &order = schedule.ranks.emplace_back();
        const auto run = [&](std::int32_t stage, SegmentKind pass, std::int32_t microBatch) {
            if (microBatch >= 0 && microBatch < m && (pass == SegmentKind::Forward || setting.backward))
                order.push_back({{StageId{stage}, pass}, microBatch});
        };
        for (std::int32_t period = 0; period < m + 2 * p; ++period) {
            for (std::int32_t s = 0; s < begin; ++s)
                run(s, SegmentKind::Forward, period);
            for (std::int32_t s = end; s < stages; ++s)
                run(s, SegmentKind::Forward, period - p);
            for (std::int32_t s = stages; s-- > end;)
                run(s, SegmentKind::Backward, period - p);
            for (std::int32_t s = begin; s-- > 0;)
                run(s, SegmentKind::Backward, period - 2 * p);
            run(begin + rank, SegmentKind::Backward, period - 2 * p + 1 + rank);
            run(begin + rank, SegmentKind::Forward, period - rank);
        }
    }
    return schedule;
}

Result<Schedule> chimeraSchedule(const ScheduleSetting &setting)
{
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    const bool lanes = !setting.laneRanks.empty();
    bool mirrored = lanes ? isMirrored(setting) : stages % 2 == 0 && setting.rankCount == stages / 2;
    for (std::int32_t s = 0; s < stages && mirrored && !lanes; ++s)
        mirrored = setting.rankOf[static_cast<std::size_t>(s)] == std::min(s, stages - 1 - s);
    if (!mirrored)
        return notMirrored("a chimera schedule");
    SlotTable slots(setting.rankCount);
    const auto add = [&](std::int32_t rank, std::int32_t s, std::int32_t lane) {
        for (std::int32_t i = 0; i < setting.microBatches; ++i) {
            const std::int32_t unit = i / (stages / 2); // of S / 2 micro-batches
            const std::int32_t first = 2 * stages * unit + 2 * (i % (stages / 2));
            slots.add(rank, first + s, {{StageId{s}, SegmentKind::Forward, 0, lane}, i});
            if (setting.backward)
                slots.add(
                    rank, first + 2 * stages - 1 - s, {{StageId{s}, SegmentKind::Backward, 0, lane}, i});
        }
    };
    for (std::int32_t s = 0; s < stages; ++s) {
        const auto stage = static_cast<std::size_t>(s);
        if (!lanes)
            add(setting.rankOf[stage], s, 0);
        for (std::size_t lane = 0; lanes && lane < 2; ++lane)
            add(setting.laneRanks[stage][lane], s, static_cast<std::int32_t>(lane));
    }
    return slots.schedule();
}

} // namespace planloom
