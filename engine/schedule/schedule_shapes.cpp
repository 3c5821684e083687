#include "engine/schedule/schedule_shapes.h"

#include "engine/base/ids.h"

#include <algorithm>

namespace planloom {

namespace {

template<typename RankOf> bool liesAs(const ScheduleSetting &setting, const RankOf &rankOf)
{
    for (std::size_t s = 0; s < setting.rankOf.size(); ++s)
        if (setting.rankOf[s] != rankOf(static_cast<std::int32_t>(s)))
            return false;
    return true;
}

} // namespace

bool isOneEach(const ScheduleSetting &setting)
{
    return static_cast<std::int32_t>(setting.rankOf.size()) == setting.rankCount && isDealtInTurn(setting);
}

bool isDealtInTurn(const ScheduleSetting &setting)
{
    const std::int32_t p = setting.rankCount;
    return setting.rankOf.size() % at(p) == 0 && liesAs(setting, [p](std::int32_t s) { return s % p; });
}

bool isInWaves(const ScheduleSetting &setting, std::int32_t waves)
{
    const std::int32_t p = setting.rankCount;
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    return stages % (2 * p) == 0 && (waves == 0 || stages == 2 * p * waves)
        && liesAs(
            setting, [p](std::int32_t s) { return s % (2 * p) < p ? s % (2 * p) : 2 * p - 1 - s % (2 * p); });
}

bool isMirrored(const ScheduleSetting &setting)
{
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    bool mirrored =
        stages % 2 == 0 && setting.rankCount == stages && setting.laneRanks.size() == setting.rankOf.size();
    for (std::int32_t s = 0; s < stages && mirrored; ++s)
        mirrored = setting.laneRanks[at(s)].size() == 2
            && setting.laneRanks[at(s)][0] == setting.laneRanks[at(stages - 1 - s)].back();
    return mirrored;
}

Result<void> requireOneLane(const ScheduleSetting &setting, ScheduleKind kind)
{
    if (setting.laneRanks.empty())
        return {};
    return Error{ErrorCode::InvalidInput,
        std::string("a schedule ") + nameOf(kind) + " takes stages without lanes",
        "use schedule 1f1b, gpipe, chimera or dualpipe, or switch the lanes row off", ""};
}

Result<void> requireOneEach(
    const ScheduleSetting &setting, ScheduleKind kind, const std::string &schedule, const std::string &other)
{
    TRY_VOID(requireOneLane(setting, kind));
    if (isOneEach(setting))
        return {};
    return Error{ErrorCode::InvalidInput, schedule + " takes one stage on each rank",
        "place every stage on devices of its own, or use schedule " + other, ""};
}

Result<void> requireOneWave(const ScheduleSetting &setting, ScheduleKind kind, const std::string &schedule)
{
    TRY_VOID(requireOneLane(setting, kind));
    if (isInWaves(setting, 1))
        return {};
    return Error{ErrorCode::InvalidInput,
        schedule
            + " takes two stages on each rank, in one wave: stage s and "
              "the one as far from the end on the same devices",
        "place stages 0 to 2p - 1 on ranks 0 to p - 1 and back to 0", ""};
}

Error notMirrored(const std::string &schedule)
{
    return {ErrorCode::InvalidInput,
        schedule
            + " takes an even number of stages in two lanes, the first stage of one and the "
              "last of the other on the same devices, the second and the last but one, and so on",
        "place stage s on devices s and S - 1 - s in 2 lanes, as the bidirectional gallery plan does", ""};
}

void SlotTable::add(std::int32_t rank, double time, const ScheduledBlock &block)
{
    m_slots[at(rank)].push_back({time, block});
}

Schedule SlotTable::schedule() const
{
    Schedule schedule;
    for (std::vector<Slot> own : m_slots) {
        std::stable_sort(
            own.begin(), own.end(), [](const Slot &a, const Slot &b) { return a.time < b.time; });
        auto &order = schedule.ranks.emplace_back();
        for (const Slot &slot : own)
            order.push_back(slot.block);
    }
    return schedule;
}

} // namespace planloom
