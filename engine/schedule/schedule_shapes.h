#pragma once

#include "engine/schedule/schedule.h"

#include <optional>
#include <vector>

namespace planloom {

// How stages lie on ranks, as templates ask for it.

bool isOneEach(const ScheduleSetting &setting); ///< Every rank has one stage, in order.
bool isDealtInTurn(const ScheduleSetting &setting); ///< Stage s lies on rank s mod p.
/// Stages go down the ranks and up again, `waves` times in all (0: as many as there are).
bool isInWaves(const ScheduleSetting &setting, std::int32_t waves);
/// Two lanes in opposite directions over an even number of ranks, one stage each.
bool isMirrored(const ScheduleSetting &setting);

/// What templates say that know one lane alone, and stages on one rank each.
std::optional<Error> refusedLanes(const ScheduleSetting &setting, ScheduleKind kind);

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
