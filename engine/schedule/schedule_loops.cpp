#include "engine/schedule/schedule_templates.h"

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "engine/schedule/schedule_shapes.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

ScheduledBlock blockAt(std::int32_t stage, SegmentKind pass, std::int32_t microBatch)
{
    return {{StageId{stage}, pass}, microBatch};
}

} // namespace

Schedule inTurnSchedule(const ScheduleSetting &setting, const std::vector<std::int32_t> &ahead)
{
    Schedule schedule;
    const std::int32_t m = setting.microBatches;
    for (std::int32_t rank = 0; rank < setting.rankCount; ++rank) {
        auto &order = schedule.ranks.emplace_back();
        std::int32_t next = 0;
        for (; next < (setting.backward ? std::min(ahead[at(rank)], m) : m); ++next)
            order.push_back(blockAt(rank, SegmentKind::Forward, next));
        for (std::int32_t done = 0; setting.backward && done < m; ++done) {
            order.push_back(blockAt(rank, SegmentKind::Backward, done));
            if (next < m)
                order.push_back(blockAt(rank, SegmentKind::Forward, next++));
        }
    }
    return schedule;
}

Result<Schedule> makeSchedule(ScheduleKind kind, const ScheduleSetting &setting)
{
    if (kind == ScheduleKind::Listed)
        return Error{ErrorCode::InvalidInput, "a listed schedule has no template", {}, ""};
    const ScheduleTemplate &its = scheduleTemplates()[static_cast<std::size_t>(kind)];
    if (its.make)
        return its.make(setting);
    TRY_VOID(requireOneLane(setting, kind));
    if (!isOneEach(setting) || (kind == ScheduleKind::Sequential && setting.rankCount > 1))
        return Error{ErrorCode::InvalidInput,
            std::string("a schedule ") + nameOf(kind)
                + (kind == ScheduleKind::Sequential ? " has an order of its own on one rank alone"
                                                    : " takes one stage on each rank"),
            "choose interleaved or breadth-first for several stages on each rank", ""};
    std::vector<std::int32_t> ahead;
    for (std::int32_t rank = 0; rank < setting.rankCount; ++rank)
        ahead.push_back(kind == ScheduleKind::GPipe ? setting.microBatches : setting.rankCount - rank);
    return inTurnSchedule(setting, ahead);
}

Result<Schedule> eager1F1BSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneEach(setting, ScheduleKind::Eager1F1B, "an eager-1f1b schedule", "interleaved"));
    std::vector<std::int32_t> ahead;
    for (std::int32_t rank = 0; rank < setting.rankCount; ++rank)
        ahead.push_back(2 * (setting.rankCount - rank) - 1);
    return inTurnSchedule(setting, ahead);
}

Result<Schedule> breadthFirstSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneLane(setting, ScheduleKind::BreadthFirst));
    const std::int32_t p = setting.rankCount;
    const std::int32_t m = setting.microBatches;
    if (!isDealtInTurn(setting))
        return Error{ErrorCode::InvalidInput,
            "a breadth-first schedule deals the stages out to the ranks in turn: stage s on rank s mod "
                + std::to_string(p),
            "place the stages so, or use schedule gpipe", ""};
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    if (m < p && stages > p)
        return Error{ErrorCode::InvalidInput,
            "a breadth-first schedule over " + counted(p, "rank")
                + " needs as many micro-batches, the plan has " + std::to_string(m),
            "choose more micro-batches", ""};
    Schedule schedule;
    for (std::int32_t rank = 0; rank < p; ++rank) {
        auto &order = schedule.ranks.emplace_back();
        for (std::int32_t s = rank; s < stages; s += p)
            for (std::int32_t i = 0; i < m; ++i)
                order.push_back(blockAt(s, SegmentKind::Forward, i));
        for (std::int32_t s = stages - p + rank; setting.backward && s >= 0; s -= p)
            for (std::int32_t i = 0; i < m; ++i)
                order.push_back(blockAt(s, SegmentKind::Backward, i));
    }
    return schedule;
}

Result<Schedule> oneFOneBPlusSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneLane(setting, ScheduleKind::OneFOneBPlus));
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    std::vector<std::int32_t> narrow; // in order
    bool inOrder = true;
    for (std::int32_t s = 0; s < stages; ++s)
        if (!setting.isWide(s)) {
            inOrder = inOrder && setting.rankOf[at(s)] == static_cast<std::int32_t>(narrow.size());
            narrow.push_back(s);
        }
    const auto p = static_cast<std::int32_t>(narrow.size());
    if (p == 0 || !inOrder || p != setting.rankCount)
        return Error{ErrorCode::InvalidInput,
            "a 1f1b-plus schedule takes stages on devices of their own, in order, and others on the devices "
            "of "
            "all of them",
            "place the stages so", ""};
    // Steps of 1F1B: 2 m + 2 (p - 1) of them.
    const auto forwardStep = [&](std::int32_t x, std::int32_t i) { return static_cast<double>(x + 2 * i); };
    const auto backwardStep = [&](std::int32_t x, std::int32_t i) {
        return static_cast<double>(2 * p - 1 - x + 2 * i);
    };
    SlotTable slots(p);
    for (std::int32_t x = 0; x < p; ++x)
        for (std::int32_t i = 0; i < setting.microBatches; ++i) {
            slots.add(x, forwardStep(x, i), blockAt(narrow[at(x)], SegmentKind::Forward, i));
            if (setting.backward)
                slots.add(x, backwardStep(x, i), blockAt(narrow[at(x)], SegmentKind::Backward, i));
        }
    for (std::int32_t s = 0; s < stages; ++s) {
        if (!setting.isWide(s))
            continue;
        const auto follows = std::upper_bound(narrow.begin(), narrow.end(), s) - narrow.begin();
        const bool isLast = follows == p;
        const auto x = static_cast<std::int32_t>(isLast ? p - 1 : follows);
        // Several at one place keep their order: a share of the half step each.
        const double share = static_cast<double>(s + 1) / (3.0 * (stages + 1));
        for (std::int32_t i = 0; i < setting.microBatches; ++i) {
            const double forward = forwardStep(x, i) + (isLast ? share : share - 0.5);
            const double backward = isLast ? backwardStep(x, i) - share : backwardStep(x, i) + 0.5 - share;
            for (std::int32_t rank = 0; rank < p; ++rank) {
                slots.add(rank, forward, blockAt(s, SegmentKind::Forward, i));
                if (setting.backward)
                    slots.add(rank, backward, blockAt(s, SegmentKind::Backward, i));
            }
        }
    }
    return slots.schedule();
}

Result<Schedule> recyclingSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneLane(setting, ScheduleKind::Recycling));
    const std::int32_t p = setting.rankCount;
    if (!isDealtInTurn(setting))
        return Error{ErrorCode::InvalidInput,
            "a 3f1b schedule deals the stages of its forward passes out to the ranks in turn: stage s on "
            "rank "
            "s mod "
                + std::to_string(p),
            "place the stages so", ""};
    const std::int32_t passes = static_cast<std::int32_t>(setting.rankOf.size()) / p;
    const std::int32_t period = passes + 1;
    std::vector<bool> taken(at(period), false);
    // The first slot from `least` on whose place in the period is free.
    const auto firstFree = [&](std::int32_t least, std::int32_t behind) {
        std::int32_t slot = least;
        while (taken[at((slot - behind + period * p) % period)])
            ++slot;
        taken[at((slot - behind + period * p) % period)] = true;
        return slot;
    };
    SlotTable slots(p);
    std::int32_t base = 0;
    for (std::int32_t pass = 0; pass < passes; ++pass) {
        base = firstFree(base, 0);
        for (std::int32_t rank = 0; rank < p; ++rank)
            for (std::int32_t i = 0; i < setting.microBatches; ++i)
                slots.add(rank, base + rank + period * i, blockAt(pass * p + rank, SegmentKind::Forward, i));
        base += p;
    }
    // On rank r it is (p - 1 - r) passes slots later, which is r - (p - 1) in the period.
    base = firstFree(base, p - 1);
    for (std::int32_t rank = 0; rank < p && setting.backward; ++rank)
        for (std::int32_t i = 0; i < setting.microBatches; ++i)
            slots.add(rank, base + (p - 1 - rank) * passes + period * i,
                blockAt((passes - 1) * p + rank, SegmentKind::Backward, i));
    return slots.schedule();
}

Result<Schedule> hanayoSchedule(const ScheduleSetting &setting)
{
    TRY_VOID(requireOneLane(setting, ScheduleKind::Hanayo));
    const std::int32_t p = setting.rankCount;
    const std::int32_t m = setting.microBatches;
    if (!isInWaves(setting, 0))
        return Error{ErrorCode::InvalidInput,
            "a hanayo schedule takes stages in waves: down all ranks and up again, once or more often",
            "place stage s on rank s mod 2p, or 2p - 1 - s mod 2p where that is no rank", ""};
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    // Steps of a micro-batch: forward through all stages, then backward.
    const std::int32_t steps = setting.backward ? 2 * stages : stages;
    const auto stageOf = [&](std::int32_t step) { return step < stages ? step : 2 * stages - 1 - step; };
    std::vector<std::int32_t> step(at(m), 0);
    std::vector<std::int32_t> readyAt(at(m), 0);
    std::vector<std::int32_t> freeAt(at(p), 0);
    Schedule schedule{.ranks = std::vector<std::vector<ScheduledBlock>>(at(p))};
    std::int32_t done = 0;
    for (std::int32_t now = 0; done < m;) {
        std::int32_t next = std::numeric_limits<std::int32_t>::max();
        for (std::int32_t rank = 0; rank < p; ++rank) {
            if (freeAt[at(rank)] > now) {
                next = std::min(next, freeAt[at(rank)]);
                continue;
            }
            std::int32_t best = -1;
            for (std::int32_t i = 0; i < std::min(m, done + p); ++i) {
                if (step[at(i)] == steps || setting.rankOf[at(stageOf(step[at(i)]))] != rank)
                    continue;
                if (readyAt[at(i)] > now)
                    next = std::min(next, readyAt[at(i)]);
                else if (best < 0 || step[at(i)] > step[at(best)])
                    best = i; // that which is furthest, backward blocks thus first
            }
            if (best < 0)
                continue;
            const std::int32_t own = step[at(best)]++;
            schedule.ranks[at(rank)].push_back(
                blockAt(stageOf(own), own < stages ? SegmentKind::Forward : SegmentKind::Backward, best));
            const std::int32_t end = now + (own < stages ? 1 : 2);
            freeAt[at(rank)] = end;
            readyAt[at(best)] = end;
            done += own + 1 == steps ? 1 : 0;
            next = std::min(next, end);
        }
        now = next;
    }
    return schedule;
}

} // namespace planloom
