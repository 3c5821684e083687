#pragma once

#include "engine/schedule/schedule.h"

#include <string>
#include <vector>

namespace planloom {

// How stages lie on ranks, as templates ask for it.

bool isOneEach(const ScheduleSetting &setting); ///< Every rank has one stage, in order.
bool isDealtInTurn(const ScheduleSetting &setting); ///< Stage s lies on rank s mod p.
/// Stages go down the ranks and up again, `waves` times in all (0: as many as there are).
bool isInWaves(const ScheduleSetting &setting, std::int32_t waves);
/// Two lanes in opposite directions over an even number of ranks, one stage each.
bool isMirrored(const ScheduleSetting &setting);

/// InvalidInput where stages have lanes, of which most templates know one alone.
Result<void> requireOneLane(const ScheduleSetting &setting, ScheduleKind kind);
/// InvalidInput where stages have lanes, or a rank has several stages.
/// @param schedule  the template in a sentence: "a zb-h1 schedule"
/// @param other  the schedule to use in its place
Result<void> requireOneEach(
    const ScheduleSetting &setting, ScheduleKind kind, const std::string &schedule, const std::string &other);
/// InvalidInput where stages have lanes, or are not one wave.
Result<void> requireOneWave(const ScheduleSetting &setting, ScheduleKind kind, const std::string &schedule);
/// What a template over two lanes in opposite directions says of stages that lie otherwise.
Error notMirrored(const std::string &schedule);

/// Blocks at their places in time, by rank; they run in this order.
class SlotTable
{
public:
    explicit SlotTable(std::int32_t ranks)
        : m_slots(static_cast<std::size_t>(ranks))
    {
    }
    void add(std::int32_t rank, double time, const ScheduledBlock &block);
    Schedule schedule() const; ///< Blocks at the same time in the order in which they were added.

private:
    struct Slot {
        double time = 0;
        ScheduledBlock block{};
    };
    std::vector<std::vector<Slot>> m_slots{};
};

} // namespace planloom
