#include "engine/plan/bound_alone.h"

#include "engine/plan/bind.h"

namespace planloom {

std::int32_t boundAlone(const SelectorIndex &index, const BatchInfo &batch, std::int32_t deviceCount,
    const ConstraintTable &table, std::size_t row)
{
    ConstraintTable alone;
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        if (i != row && table.rows[i].enabled && !hasSelector(table.rows[i].rule))
            alone.rows.push_back(table.rows[i]);
    }
    alone.rows.push_back(table.rows[row]);
    alone.rows.back().enabled = true;
    CompletionState state{index, alone};
    state.batch = batch;
    state.plan.graph = index.snapshot();
    state.plan.deviceCount = deviceCount;
    bindRows(state);
    return state.reports.back().error ? 0 : state.reports.back().bound;
}

} // namespace planloom
