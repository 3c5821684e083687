#include "engine/search/space_probe.h"

#include "engine/base/place.h"
#include "engine/search/plan_trials.h"
#include "engine/search/search_rows.h"
#include "engine/search/time/step_estimate.h"
#include "engine/table/table_text.h"

#include <set>
#include <utility>

namespace planloom {

namespace {

/// A row that is refused beside those of a configuration has these named by numbers that nobody sees.
Error saidOf(Error problem, const Configuration &configuration, const ConstraintTable &rows)
{
    const Place place = placeOf(problem);
    const auto *refused = std::get_if<RowPlace>(&place);
    if (!refused)
        return problem;
    const bool isAsked = at(refused->row) < rows.rows.size();
    return {ErrorCode::InvalidInput,
        "no configuration of the search goes with the rows: with " + toString(configuration) + ", "
            + (isAsked ? "'" + print(rows.rows[at(refused->row)]) + "' does not hold"
                       : "they leave no room for how it would partition operators"),
        "loosen one of the rows, or switch it off", "search"};
}

} // namespace

SpaceProbe::SpaceProbe(const Model &model, const Cluster &cluster, std::int32_t deviceCount, CostModel costs,
    PrecisionPreset precision)
    : m_model(model)
    , m_cluster(cluster)
    , m_deviceCount(deviceCount)
    , m_costs(std::move(costs))
    , m_precision(precision)
{
}

Result<void> SpaceProbe::findsPlan(const ConstraintTable &rows, const std::function<bool()> &isOver) const
{
    if (auto nothing = nothingToSearch(m_model, rows))
        return Error{ErrorCode::InvalidInput, *std::move(nothing), {}, "search"};
    TRY(const SearchSpace space, searchSpaceOf(m_model, m_cluster, m_deviceCount, rows));
    TRY(const auto estimator,
        StepEstimator::make(m_model, m_cluster, m_deviceCount, rows, space, m_costs, m_precision));
    std::optional<Error> problem;
    const auto plan = [&](const Configuration &configuration) -> Result<void> {
        TRY(const StepEstimate estimate, estimator->estimate(configuration, 0, {}));
        TRY(const ConstraintTable found,
            rowsOf(estimate, estimator->problemOf(configuration), estimator->placedIn(configuration), m_model,
                space, rows));
        TRY_VOID(completedWith(m_model, m_cluster, m_deviceCount, rows, found, m_precision));
        return {};
    };
    for (const Configuration &configuration : space.configurations) {
        if (isOver && isOver())
            return cancelled();
        auto planned = plan(configuration);
        if (planned)
            return {};
        if (!problem)
            problem = saidOf(std::move(planned).error(), configuration, rows);
    }
    return *problem; // a space is not empty
}

std::vector<std::int32_t> SpaceProbe::valuesOf(Degree degree) const
{
    if (!m_all) {
        auto space = searchSpaceOf(m_model, m_cluster, m_deviceCount, {});
        m_all = space ? std::move(space->configurations) : std::vector<Configuration>{};
    }
    std::set<std::int32_t> values;
    for (const Configuration &configuration : *m_all)
        if (const auto value = degreeOf(configuration, degree))
            values.insert(*value);
    return {values.begin(), values.end()};
}

} // namespace planloom
