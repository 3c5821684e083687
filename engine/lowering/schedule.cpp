#include "engine/lowering/schedule.h"

#include "engine/base/words.h"

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
    };
    return kTemplates;
}

Result<Schedule> interleavedSchedule(const ScheduleSetting &setting)
{
    const std::int32_t p = setting.rankCount;
    const std::int32_t m = setting.microBatches;
    const auto stages = static_cast<std::int32_t>(setting.rankOf.size());
    bool dealt = stages % p == 0;
    for (std::int32_t s = 0; s < stages && dealt; ++s)
        dealt = setting.rankOf[static_cast<std::size_t>(s)] == s % p;
    if (!dealt)
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
    const auto numbered = [&](std::int32_t rank, std::int32_t k, Pass pass) {
        const std::int32_t chunk = k / p % v;
        const std::int32_t its = pass == Pass::Forward ? chunk : v - 1 - chunk;
        return ScheduledBlock{{StageId{its * p + rank}, pass}, k / (p * v) * p + k % p};
    };
    Schedule schedule;
    for (std::int32_t rank = 0; rank < p; ++rank) {
        std::vector<ScheduledBlock> &order = schedule.ranks.emplace_back();
        const std::int32_t warmUp =
            setting.backward ? std::min(2 * (p - rank - 1) + (v - 1) * p, total) : total;
        for (std::int32_t k = 0; k < warmUp; ++k)
            order.push_back(numbered(rank, k, Pass::Forward));
        for (std::int32_t k = 0; setting.backward && k < total; ++k) {
            if (warmUp + k < total)
                order.push_back(numbered(rank, warmUp + k, Pass::Forward));
            order.push_back(numbered(rank, k, Pass::Backward));
        }
    }
    return schedule;
}

} // namespace planloom
