#include "engine/plan/interleaves.h"

namespace planloom {

bool mayInterleave(const Plan &plan)
{
    return !plan.interleaved.empty() || !plan.order.interleaved.empty()
        || plan.schedule == ScheduleKind::CombinedOneFOneB || plan.schedule == ScheduleKind::DualPipe
        || plan.schedule == ScheduleKind::DualPipeV;
}

} // namespace planloom
