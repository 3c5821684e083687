#include "engine/conflict/ways_out.h"

#include "engine/conflict/looser_rows.h"
#include "engine/conflict/row_oracle.h"

#include <algorithm>

namespace planloom {

namespace {

class WayFinder
{
public:
    WayFinder(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
        const std::vector<ConflictSet> &conflicts, const WaysOutOptions &options, const std::stop_token &stop)
        : m_conflicts(conflicts)
        , m_space(options.space)
        , m_stop(stop)
        , m_until(std::chrono::steady_clock::now() + options.limit)
        , m_facts(factsOf(model, deviceCount, table))
        , m_oracle(model, deviceCount, table, options.completion, options.space, m_facts,
              [this] { return isOver(); })
        , m_table(table)
    {
        for (Row &row : m_table.rows)
            row.enabled = row.enabled && row.preference == 0;
        for (const std::int32_t row : m_facts.rows)
            if (const auto *stage = std::get_if<StageRule>(&table.rows[at(row)].rule))
                m_stageCount = std::max(m_stageCount, stage->index + 1);
    }

    Result<std::vector<std::vector<WayOut>>> find()
    {
        std::vector<std::vector<WayOut>> ways(m_conflicts.size());
        for (std::size_t c = 0; c < m_conflicts.size(); ++c)
            for (const RowId row : m_conflicts[c].rows)
                findOf(c, row, ways[c]);
        if (m_stop.stop_requested())
            return cancelled();
        return ways;
    }

private:
    bool isOver() const { return m_stop.stop_requested() || std::chrono::steady_clock::now() >= m_until; }

    void findOf(std::size_t conflict, RowId row, std::vector<WayOut> &ways)
    {
        const LooserRows looser = looserRows(m_facts.setting, m_facts.plan.microBatches, m_stageCount,
            m_table.rows[at(row)], m_space.valuesOf);
        for (const std::vector<Row> &direction : looser.directions)
            for (const Row &changed : direction) {
                if (isOver())
                    break;
                const auto same = std::find_if(ways.begin(), ways.end(),
                    [&](const WayOut &way) { return way.row == row && way.changed == changed; });
                if (same != ways.end())
                    break;
                if (auto way = tryWay(conflict, row, changed)) {
                    ways.push_back(*std::move(way));
                    break; // further ones are farther from what the row says
                }
            }
        if (isOver())
            return;
        if (auto off = tryWay(conflict, row, std::nullopt))
            ways.push_back(*std::move(off));
    }

    std::optional<WayOut> tryWay(std::size_t conflict, RowId row, const std::optional<Row> &changed)
    {
        WayOut way{.row = row, .changed = changed};
        ConstraintTable table = m_table;
        if (changed)
            table.rows[at(row)] = *changed;
        else
            table.rows[at(row)].enabled = false;
        if (!m_oracle.refusal(table)) {
            if (isOver() && m_space.holds)
                return std::nullopt; // the space may not have been asked to the end
            way.holds = true;
            return way;
        }
        // Without one row of each other conflict; a row that has changed may be in them no more.
        for (std::size_t other = 0; other < m_conflicts.size(); ++other) {
            const auto &rows = m_conflicts[other].rows;
            if (other == conflict || std::find(rows.begin(), rows.end(), row) != rows.end())
                continue;
            way.left.push_back(other);
            table.rows[at(rows.back())].enabled = false;
        }
        if (isOver())
            return std::nullopt;
        if (auto still = m_oracle.refusal(table)) {
            // A mesh in conflict hides conflicts of rows that are read by it. What is only changed may be
            // what the others are now refused for.
            const auto &own = m_conflicts[conflict].rows;
            const bool isRead = own.size() == 1 && !hasSelector(m_table.rows[at(row)].rule);
            if ((changed && (!isRead || m_oracle.refusedBySpace()))
                || std::any_of(own.begin(), own.end(),
                    [&](RowId each) { return still->where.starts_with(placeOf(each, "")); }))
                return std::nullopt;
            way.left.clear();
            way.behind = std::move(still);
        }
        return way;
    }

    const std::vector<ConflictSet> &m_conflicts;
    const SpaceQuestion &m_space;
    const std::stop_token &m_stop;
    std::chrono::steady_clock::time_point m_until{};
    RowFacts m_facts{};
    RowOracle m_oracle;
    ConstraintTable m_table; ///< With the rows alone that must hold.
    std::int32_t m_stageCount = 1;
};

} // namespace

Result<std::vector<std::vector<WayOut>>> waysOut(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const std::vector<ConflictSet> &conflicts, const WaysOutOptions &options,
    const std::stop_token &stop)
{
    return WayFinder(model, deviceCount, table, conflicts, options, stop).find();
}

} // namespace planloom
