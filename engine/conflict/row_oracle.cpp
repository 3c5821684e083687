#include "engine/conflict/row_oracle.h"

#include "engine/base/place.h"
#include "engine/conflict/order_cycle.h"
#include "engine/plan/plan_degrees.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>

namespace planloom {

namespace {

constexpr int kMostTries = 5; ///< Of supporting rows.
constexpr int kMostTriesOfFew = 24; ///< In a table of few rows.
constexpr std::size_t kFewRows = 24;

bool includes(const std::vector<std::int32_t> &all, const std::vector<std::int32_t> &some)
{
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::vector<std::int32_t> united(const std::vector<std::int32_t> &a, const std::vector<std::int32_t> &b)
{
    std::vector<std::int32_t> both;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
}

/// Rows that say which configurations a search looks at, apart from those about operators.
bool shapesSpace(const Rule &rule)
{
    return std::holds_alternative<DegreeRule>(rule) || std::holds_alternative<MeshRule>(rule)
        || std::holds_alternative<MicroBatchesRule>(rule) || std::holds_alternative<ScheduleRule>(rule)
        || std::holds_alternative<StageRule>(rule) || std::holds_alternative<LayoutRule>(rule);
}

/// Whether rows that are refused may hold with a mesh that others leave to the search.
bool leavesMesh(const ConstraintTable &table, const std::vector<std::int32_t> &refused)
{
    return std::none_of(table.rows.begin(), table.rows.end(), [](const Row &row) {
        return row.enabled && std::holds_alternative<MeshRule>(row.rule);
    }) && std::all_of(refused.begin(), refused.end(), [&](std::int32_t row) {
        const Rule &rule = table.rows[at(row)].rule;
        return dependsOnMesh(rule) || std::holds_alternative<DegreeRule>(rule);
    });
}

} // namespace

RowOracle::RowOracle(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
    const CompletionOptions &options, const SpaceQuestion &space, const RowFacts &facts,
    std::function<bool()> isOver)
    : m_model(model)
    , m_deviceCount(deviceCount)
    , m_table(table)
    , m_options(options)
    , m_space(space)
    , m_facts(facts)
    , m_isOver(std::move(isOver))
{
    // What names nothing does so whatever others say.
    for (const std::int32_t row : facts.rows)
        if (const auto &wrong = facts.wrong[at(row)];
            wrong && !needsMesh(table.rows[at(row)].rule) && !needsMicroBatches(table.rows[at(row)].rule)) {
            Error reason = *wrong;
            reason.where = placeOf(RowId{row}, "rule");
            m_refused.push_back({{row}, {row}, std::move(reason), Refuser::Completion});
        }
}

RowOracle::Trial RowOracle::carryOut(const ConstraintTable &table)
{
    ++m_completions;
    Trial trial;
    auto completion = completePlan(m_model, m_deviceCount, table, m_options);
    if (!completion) {
        trial.reason = std::move(completion).error();
        return trial;
    }
    for (std::size_t row = 0; row < completion->rows.size(); ++row) {
        if (!completion->rows[row].error)
            continue;
        if (trial.blamed.empty())
            trial.reason = *completion->rows[row].error;
        trial.blamed.push_back(static_cast<std::int32_t>(row));
    }
    if (!trial.blamed.empty() || !completion->plan.graph) {
        if (!m_space.holds || !leavesMesh(table, trial.blamed))
            return trial;
        Trial searched = askSpace(table);
        const bool boundsSpace = std::any_of(table.rows.begin(), table.rows.end(),
            [](const Row &row) { return row.enabled && std::holds_alternative<DegreeRule>(row.rule); });
        return searched.holds || boundsSpace ? searched : trial;
    }
    const auto batch = batchOf(completion->plan);
    const auto cycle = orderCycle(completion->plan, m_facts.setting.index(), *batch);
    for (const RowId row : cycle)
        trial.blamed.push_back(row.index);
    if (cycle.empty() && m_space.holds && !brokenDegrees(completion->plan, table).empty())
        return askSpace(table);
    trial.holds = trial.blamed.empty();
    if (trial.holds)
        return trial;
    trial.by = Refuser::Orders;
    trial.reason = orderCycleError(completion->plan, cycle.front(), cycle.size() > 1);
    return trial;
}

RowOracle::Trial RowOracle::askSpace(const ConstraintTable &table)
{
    Trial trial;
    auto answer = m_space.holds(table, m_isOver);
    trial.holds = answer || answer.error().code == ErrorCode::Cancelled;
    if (trial.holds)
        return trial;
    trial.by = Refuser::Space;
    trial.reason = std::move(answer).error();
    const Place place = placeOf(trial.reason);
    const auto *about = std::get_if<OperatorPlace>(&place);
    const auto isAbout = [&](std::size_t row) {
        if (!about || row >= m_facts.operators.size())
            return false;
        const auto &operators = m_facts.operators[row];
        return std::any_of(operators.begin(), operators.end(),
            [&](OperatorId op) { return m_facts.setting.graph().at(op).name == about->name; });
    };
    for (std::size_t row = 0; row < table.rows.size(); ++row)
        if (table.rows[row].enabled && (shapesSpace(table.rows[row].rule) || isAbout(row)))
            trial.blamed.push_back(static_cast<std::int32_t>(row));
    return trial;
}

std::optional<Error> RowOracle::refusal(const ConstraintTable &table)
{
    Trial trial = carryOut(table);
    m_refusedBySpace = !trial.holds && trial.by == Refuser::Space;
    if (trial.holds)
        return std::nullopt;
    return std::move(trial.reason);
}

std::optional<MeshRule> RowOracle::smallestMesh(const RowSet &rows) const
{
    if (!m_facts.plan.meshRow.valid())
        return std::nullopt;
    MeshRule mesh{m_facts.plan.mesh};
    for (MeshAxis &axis : mesh.axes) {
        axis.size = 1;
        for (const std::int32_t row : rows) {
            const Rule &rule = m_table.rows[at(row)].rule;
            if (const auto *place = std::get_if<OpAssignRule>(&rule))
                for (const AxisCoordinate &coordinate : place->coordinates)
                    if (coordinate.axis == axis.name)
                        axis.size = std::max(axis.size, coordinate.index + 1);
            if (const auto *split = std::get_if<OpTransRule>(&rule))
                for (const SplitStep &step : split->steps)
                    if (step.axis == axis.name)
                        axis.size = std::max(axis.size, step.parts);
        }
    }
    return mesh;
}

RowOracle::Trial RowOracle::tryRows(const RowSet &rows, bool withSmallestMesh)
{
    ConstraintTable table = m_table;
    for (Row &row : table.rows)
        row.enabled = false;
    for (const std::int32_t row : rows)
        table.rows[at(row)].enabled = true;
    if (withSmallestMesh)
        if (auto mesh = smallestMesh(rows))
            table.rows.push_back({.rule = *std::move(mesh)});
    return carryOut(table);
}

/// Rows that others need beside them to be carried out.
RowOracle::RowSet RowOracle::supportOf(const RowSet &rows, const std::vector<std::int32_t> &blamed) const
{
    std::vector<bool> touched(m_facts.setting.graph().operators.size(), false);
    bool stages = false;
    for (const std::int32_t row : blamed) {
        if (at(row) >= m_table.rows.size())
            continue;
        // Rows may make what a search would have to.
        stages = stages || namesStage(m_table.rows[at(row)].rule)
            || std::holds_alternative<DegreeRule>(m_table.rows[at(row)].rule)
            || std::holds_alternative<ScheduleRule>(m_table.rows[at(row)].rule);
        for (const OperatorId op : m_facts.operators[at(row)])
            touched[at(op)] = true;
    }
    RowSet support;
    for (const std::int32_t row : m_facts.rows) {
        const Rule &rule = m_table.rows[at(row)].rule;
        if (std::binary_search(rows.begin(), rows.end(), row))
            continue;
        const bool places = std::holds_alternative<StageRule>(rule)
            || std::holds_alternative<LayoutRule>(rule) || std::holds_alternative<OpAssignRule>(rule)
            || std::holds_alternative<OpTransRule>(rule);
        const auto &operators = m_facts.operators[at(row)];
        if ((stages && places) || RowId{row} == m_facts.plan.meshRow
            || RowId{row} == m_facts.plan.microBatchesRow
            || std::any_of(
                operators.begin(), operators.end(), [&](OperatorId op) { return touched[at(op)]; }))
            support.push_back(row);
    }
    return support;
}

bool RowOracle::knownToHold(const RowSet &rows) const
{
    return std::any_of(
        m_holding.begin(), m_holding.end(), [&](const RowSet &set) { return includes(set, rows); });
}

const RowOracle::Refused *RowOracle::knownNotTo(const RowSet &rows) const
{
    const auto found = std::find_if(m_refused.begin(), m_refused.end(),
        [&](const Refused &refused) { return includes(rows, refused.rows); });
    return found == m_refused.end() ? nullptr : &*found;
}

/// What else gives the names in `rows` their meaning: meshes and micro-batches to try, the table's own last.
std::vector<RowOracle::Naming> RowOracle::namingsOf(const RowSet &rows) const
{
    const auto any = [&](const auto &has) {
        return std::any_of(
            rows.begin(), rows.end(), [&](std::int32_t row) { return has(m_table.rows[at(row)].rule); });
    };
    const auto holdsRule = []<typename RuleType>(const RuleType *) {
        return [](const Rule &rule) { return std::holds_alternative<RuleType>(rule); };
    };
    std::vector<Naming> meshes;
    const RowId meshRow = m_facts.plan.meshRow;
    if (!meshRow.valid() || any(holdsRule(static_cast<const MeshRule *>(nullptr)))) {
        meshes = {{}};
    } else {
        if (!any(needsMesh) || m_space.holds) // a search finds its own
            meshes.push_back({});
        // What bounds the sizes of axes is not to be got round with axes of one device.
        if (!m_space.holds || !any(holdsRule(static_cast<const DegreeRule *>(nullptr))))
            meshes.push_back({.smallestMesh = true});
        meshes.push_back({.rows = {meshRow.index}});
    }
    const RowId microBatchesRow = m_facts.plan.microBatchesRow;
    std::vector<Naming> namings = meshes;
    if (microBatchesRow.valid() && any(needsMicroBatches)
        && !any(holdsRule(static_cast<const MicroBatchesRule *>(nullptr))))
        for (Naming mesh : meshes) {
            mesh.rows = united(mesh.rows, {microBatchesRow.index});
            namings.push_back(std::move(mesh));
        }
    return namings;
}

std::optional<RowOracle::Refused> RowOracle::findHolding(const RowSet &rows)
{
    Trial last;
    RowSet named = rows;
    for (const Naming &naming : namingsOf(rows)) {
        RowSet more = united(rows, naming.rows);
        if (more != rows && knownNotTo(more))
            continue;
        Trial trial = tryRows(more, naming.smallestMesh);
        if (trial.holds) {
            if (!naming.smallestMesh)
                m_holding.push_back(std::move(more));
            return std::nullopt;
        }
        if (naming.smallestMesh && !last.blamed.empty())
            continue;
        last = std::move(trial);
        named = std::move(more);
    }
    // What a row needs beside it: of what is about the same operators, then of all there is, what is not
    // refused.
    RowSet all;
    std::set_difference(
        m_facts.rows.begin(), m_facts.rows.end(), named.begin(), named.end(), std::back_inserter(all));
    const RowSet near = supportOf(rows, last.blamed);
    auto found = withSupport(named, near);
    // What leaves the search nothing does not leave it more beside others.
    const bool mayBeHelped = last.by != Refuser::Space;
    if (!found && mayBeHelped)
        found = withSupport(named, all);
    if (!found && mayBeHelped && named != rows && m_facts.rows.size() <= kFewRows)
        found = withSupport(rows, all);
    if (found) {
        m_holding.push_back(*std::move(found));
        return std::nullopt;
    }
    return Refused{rows, std::move(last.blamed), std::move(last.reason), last.by};
}

/// `rows` and of `support` what is not refused beside them; nothing if none is found. Of rows that are
/// refused together all give way, or one of them.
std::optional<RowOracle::RowSet> RowOracle::withSupport(const RowSet &rows, RowSet support)
{
    std::erase_if(support, [&](std::int32_t row) { return knownNotTo({row}) != nullptr; });
    const int mostTries = m_facts.rows.size() <= kFewRows ? kMostTriesOfFew : kMostTries;
    std::deque<RowSet> open{std::move(support)};
    std::set<RowSet> seen;
    for (int tries = 0; tries < mostTries && !open.empty() && !m_isOver();) {
        const RowSet with = std::move(open.front());
        open.pop_front();
        if (with.empty() || !seen.insert(with).second)
            continue;
        RowSet more = united(rows, with);
        RowSet blamed;
        const auto gives = [&](std::int32_t row) {
            return std::binary_search(with.begin(), with.end(), row);
        };
        if (const Refused *known = knownNotTo(more)) {
            blamed = known->blamed;
            if (std::none_of(blamed.begin(), blamed.end(), gives))
                blamed = known->rows;
        } else {
            ++tries;
            Trial trial = tryRows(more, false);
            if (trial.holds)
                return more;
            blamed = std::move(trial.blamed);
        }
        std::erase_if(blamed, [&](std::int32_t row) { return !gives(row); });
        if (blamed.empty())
            continue;
        const auto without = [&](const RowSet &some) {
            RowSet fewer;
            std::set_difference(
                with.begin(), with.end(), some.begin(), some.end(), std::back_inserter(fewer));
            return fewer;
        };
        std::sort(blamed.begin(), blamed.end());
        open.push_front(without(blamed));
        for (std::size_t i = 0; blamed.size() > 1 && i < blamed.size(); ++i)
            open.push_back(without({blamed[i]}));
    }
    return std::nullopt;
}

bool RowOracle::holds(const std::vector<std::int32_t> &rows)
{
    if (knownToHold(rows))
        return true;
    if (const Refused *known = knownNotTo(rows)) {
        m_last = *known;
        return false;
    }
    auto refused = findHolding(rows);
    if (!refused)
        return true;
    m_last = *refused;
    m_refused.push_back(*std::move(refused));
    return false;
}

Error RowOracle::reasonFor(const std::vector<std::int32_t> &rows)
{
    const auto same = std::find_if(
        m_refused.begin(), m_refused.end(), [&](const Refused &refused) { return refused.rows == rows; });
    if (same != m_refused.end())
        return same->reason;
    const auto refused = findHolding(rows);
    return refused ? refused->reason : Error{};
}

} // namespace planloom
