#include "engine/conflict/row_logic.h"

#include "engine/binding/bound_table.h"
#include "engine/table/kinds/beside.h"

#include <z3++.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>

namespace planloom {

namespace {

using RowSet = std::vector<std::int32_t>; ///< Ascending.

constexpr std::size_t kMostSetsOfClass = 6;
constexpr std::size_t kMostRowsOfClass = 32; ///< Of more, only where one row meets another is found.
constexpr std::size_t kMostConflicts = 1'000; ///< Of which Z3 is told; further ones are learned.
constexpr std::size_t kMostStageRows = 512;
constexpr std::size_t kMostPairs = 512; ///< Of order rows; what further ones say is left to the completion.
constexpr std::size_t kMostMoments = 4096;
constexpr std::size_t kMostLinks = 400'000;
constexpr std::size_t kMostLinksOnCycles = 2'000; ///< Of which Z3 is told; further ones are learned.

/// `t(pair, microBatch)` before `t(pair, microBatch)`, if both rows hold.
struct MomentLink {
    std::size_t from = 0; ///< pair x micro-batches + micro-batch.
    std::size_t to = 0;
    friend auto operator<=>(const MomentLink &, const MomentLink &) = default;
};

/// Calls Z3. @return false if that was interrupted, or ran out of something
template<typename Call> bool withoutExceptions(const Call &call)
{
    try {
        call();
        return true;
    } catch (const z3::exception &) {
        return false;
    }
}

} // namespace

/// What the rows of a table say together, before it is written down for Z3.
class RowLogic::Constraints
{
public:
    Constraints(const RowFacts &facts, const ConstraintTable &table, bool leavesMesh)
        : m_facts(facts)
        , m_table(table)
        , m_leavesMesh(leavesMesh && !facts.plan.meshRow.valid())
    {
        addWrong();
        addTwins();
        addClasses();
        addStages();
        addOrders();
    }

    std::set<RowSet> conflicts{}; ///< Rows that cannot all hold.
    std::vector<MomentLink> links{}; ///< Those that stand on a cycle.
    std::size_t microBatches = 1; ///< Of moments.

private:
    const Rule &ruleOf(std::int32_t row) const { return m_table.rows[at(row)].rule; }

    /// @param withMicroBatches  what is said of them depends on their number
    /// @param withClasses  it was found with what the mesh has
    void forbid(RowSet rows, bool withMicroBatches, bool withClasses = false)
    {
        const auto any = [&](const auto &needs) {
            return std::any_of(
                rows.begin(), rows.end(), [&](std::int32_t row) { return needs(ruleOf(row)); });
        };
        if (m_leavesMesh && any(dependsOnMesh))
            return;
        if (m_facts.plan.meshRow.valid() && any(rows.size() > 1 || withClasses ? dependsOnMesh : needsMesh))
            rows.push_back(m_facts.plan.meshRow.index);
        if (m_facts.plan.microBatchesRow.valid() && (withMicroBatches || any(needsMicroBatches)))
            rows.push_back(m_facts.plan.microBatchesRow.index);
        std::sort(rows.begin(), rows.end());
        rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
        if (conflicts.size() < kMostConflicts)
            conflicts.insert(std::move(rows));
    }

    void addWrong()
    {
        for (const std::int32_t row : m_facts.rows)
            if (m_facts.wrong[at(row)])
                forbid({row}, false);
    }

    /// Rows about the whole plan that cannot both hold.
    void addTwins()
    {
        RowSet plan;
        for (const std::int32_t row : m_facts.rows)
            if (!hasSelector(ruleOf(row)))
                plan.push_back(row);
        for (std::size_t i = 0; i < plan.size(); ++i)
            for (std::size_t j = i + 1; j < plan.size(); ++j)
                if (besides(m_facts.setting.graph(), ruleOf(plan[i]), ruleOf(plan[j])) == Beside::Clash)
                    forbid({plan[i], plan[j]}, false);
    }

    void addClasses()
    {
        const PlanMeaning &plan = m_facts.plan;
        const std::int32_t cuts = plan.wholeBatches || !plan.microBatchesRow.valid() ? 0 : plan.microBatches;
        for (const OperatorClass &operators : m_facts.classes) {
            if (operators.said.size() > kMostRowsOfClass) {
                addMeetings(operators);
                continue;
            }
            std::vector<std::size_t> which(operators.said.size());
            for (std::size_t i = 0; i < which.size(); ++i)
                which[i] = i;
            for (std::size_t found = 0; found < kMostSetsOfClass; ++found) {
                if (canHold(m_facts.setting, operators, which, cuts))
                    break;
                std::vector<std::size_t> least = which;
                for (const std::size_t i : which) {
                    std::vector<std::size_t> fewer = least;
                    std::erase(fewer, i);
                    if (!canHold(m_facts.setting, operators, fewer, cuts))
                        least = std::move(fewer);
                }
                RowSet rows;
                for (const std::size_t i : least)
                    rows.push_back(operators.said[i].row);
                forbid(std::move(rows), cuts > 1 && canHold(m_facts.setting, operators, least, 0), true);
                if (least.empty())
                    break;
                std::erase(which, least.back());
            }
        }
    }

    /// Rows that cannot hold with one before them.
    void addMeetings(const OperatorClass &operators)
    {
        OperatorBinding binding;
        for (const OperatorClass::Said &said : operators.said)
            if (const auto clash = join(binding, *said.meaning, said.row, m_facts.setting.mesh))
                forbid({clash->other, said.row}, false);
    }

    /// Stages do not decrease along the data flow.
    void addStages()
    {
        std::map<std::int32_t, RowSet, std::greater<>> rowsOf; // by stage, the last first
        std::vector<RowSet> saidOf(m_facts.setting.graph().operators.size());
        std::size_t count = 0;
        for (const std::int32_t row : m_facts.rows) {
            const auto *rule = std::get_if<StageRule>(&ruleOf(row));
            if (!rule)
                continue;
            if (++count > kMostStageRows)
                break;
            rowsOf[rule->index].push_back(row);
            for (const OperatorId op : m_facts.operators[at(row)])
                saidOf[at(op)].push_back(row);
        }
        if (rowsOf.size() < 2)
            return;
        for (const auto &[stage, rows] : rowsOf) {
            for (const std::int32_t row : rows) {
                std::set<std::int32_t> earlier; // rows with a lower stage that it reaches
                reach(m_facts.operators[at(row)], [&, stage = stage](OperatorId op) {
                    for (const std::int32_t other : saidOf[at(op)])
                        if (std::get<StageRule>(ruleOf(other)).index < stage)
                            earlier.insert(other);
                });
                for (const std::int32_t other : earlier)
                    forbid({row, other}, false);
            }
        }
    }

    /// Calls `visit` for `from` and what is computed from them in the same micro-batch.
    /// @param furthest  nothing behind it is asked for
    template<typename Visit>
    void reach(const std::vector<OperatorId> &from, Visit visit,
        std::int32_t furthest = std::numeric_limits<std::int32_t>::max())
    {
        const Graph &graph = m_facts.setting.graph();
        m_seen.assign(graph.operators.size(), false);
        std::vector<OperatorId> open;
        const auto add = [&](OperatorId op) {
            if (m_seen[at(op)] || op.index > furthest || !runsInMicroBatches(op))
                return;
            m_seen[at(op)] = true;
            open.push_back(op);
        };
        for (const OperatorId op : from)
            add(op);
        while (!open.empty()) {
            const OperatorId op = open.back();
            open.pop_back();
            visit(op);
            for (const TensorId output : graph.at(op).outputs)
                if (output)
                    for (const OperatorId user : m_facts.setting.index().uses().consumers[at(output)])
                        add(user);
        }
    }

    bool runsInMicroBatches(OperatorId op) const
    {
        return m_facts.setting.graph().at(op).direction != Direction::Optimizer
            && !m_facts.setting.batch().oncePerStep[at(op)];
    }

    /// A moment for every pair of an order row and micro-batch: when its first operators are done and its
    /// second ones have not begun. Where what runs behind one moment leads to what runs before another, the
    /// one comes first.
    void addOrders()
    {
        std::vector<const OrderPair *> pairs;
        std::int32_t furthest = -1;
        for (const OrderPair &pair : m_facts.orders) {
            const auto all = [&](const std::vector<OperatorId> &side) {
                return std::all_of(
                    side.begin(), side.end(), [&](OperatorId op) { return runsInMicroBatches(op); });
            };
            if (pairs.size() >= kMostPairs || m_facts.wrong[at(pair.row)] || !all(pair.first)
                || !all(pair.second))
                continue;
            pairs.push_back(&pair);
            furthest = std::max(furthest, pair.first.back().index);
        }
        if (pairs.empty())
            return;
        std::vector<std::vector<std::size_t>> firstsAt(m_facts.setting.graph().operators.size());
        for (std::size_t p = 0; p < pairs.size(); ++p)
            for (const OperatorId op : pairs[p]->first)
                firstsAt[at(op)].push_back(p);
        std::set<std::pair<std::size_t, std::size_t>> leads;
        for (std::size_t p = 0; p < pairs.size(); ++p)
            reach(
                pairs[p]->second,
                [&](OperatorId op) {
                    for (const std::size_t other : firstsAt[at(op)])
                        leads.emplace(p, other);
                },
                furthest);
        microBatches = static_cast<std::size_t>(std::max(m_facts.plan.microBatches, 1));
        microBatches = std::min({microBatches, std::max<std::size_t>(kMostMoments / pairs.size(), 1),
            std::max<std::size_t>(kMostLinks / std::max<std::size_t>(leads.size(), 1), 1)});
        for (const auto &[from, to] : leads) {
            const OrderPair &pair = *pairs[from];
            for (std::size_t i = 0; i < microBatches; ++i) {
                const std::int64_t later = static_cast<std::int64_t>(i) + pair.offset;
                const auto runs = [](const OrderPair &each, std::int64_t microBatch) {
                    return each.microBatch < 0 || each.microBatch == microBatch;
                };
                if (later >= 0 && later < static_cast<std::int64_t>(microBatches)
                    && runs(pair, static_cast<std::int64_t>(i)) && runs(*pairs[to], later))
                    links.push_back(
                        {from * microBatches + i, to * microBatches + static_cast<std::size_t>(later)});
            }
        }
        keepCycles(pairs.size() * microBatches);
        for (const OrderPair *pair : pairs)
            rowOfPair.push_back(pair->row);
    }

    /// Leaves out what leads to no cycle, or from none.
    void keepCycles(std::size_t moments)
    {
        for (bool forward : {true, false}) {
            std::vector<std::vector<std::size_t>> next(moments);
            std::vector<std::size_t> waiting(moments, 0);
            for (const MomentLink &link : links) {
                next[forward ? link.from : link.to].push_back(forward ? link.to : link.from);
                ++waiting[forward ? link.to : link.from];
            }
            std::vector<std::size_t> ready;
            std::vector<bool> done(moments, false);
            for (std::size_t i = 0; i < moments; ++i)
                if (waiting[i] == 0)
                    ready.push_back(i);
            while (!ready.empty()) {
                const std::size_t i = ready.back();
                ready.pop_back();
                done[i] = true;
                for (const std::size_t n : next[i])
                    if (--waiting[n] == 0)
                        ready.push_back(n);
            }
            std::erase_if(links, [&](const MomentLink &link) { return done[link.from] || done[link.to]; });
        }
        links.resize(std::min(links.size(), kMostLinksOnCycles));
    }

    const RowFacts &m_facts;
    const ConstraintTable &m_table;
    bool m_leavesMesh = false;
    std::vector<bool> m_seen{};

public:
    std::vector<std::int32_t> rowOfPair{};
};

struct RowLogic::Solvers {
    z3::context context{};
    z3::solver logic{context};
    z3::solver map{context}; ///< Which sets of rows have been looked at.
    std::vector<std::int32_t> rows{};
    std::map<std::int32_t, z3::expr> literals{}; ///< By row.
    std::vector<RowSet> conflicts{}; ///< That were learned.

    const z3::expr &literal(std::int32_t row) const { return literals.at(row); }
    z3::expr notAll(const RowSet &set)
    {
        z3::expr_vector either(context);
        for (const std::int32_t row : set)
            either.push_back(!literal(row));
        return z3::mk_or(either);
    }

    z3::check_result run(z3::solver &solver, z3::expr_vector *assumptions, const std::stop_token &stop,
        std::chrono::milliseconds limit)
    {
        if (stop.stop_requested() || limit.count() <= 0)
            return z3::unknown;
        z3::params params(context);
        params.set("timeout", static_cast<unsigned>(limit.count()));
        solver.set(params);
        // An interrupt that comes before the check is lost: the time limit holds then. One that comes behind
        // it makes a call of Z3 fail, which `withoutExceptions` takes.
        const std::stop_callback interrupt(stop, [this] { context.interrupt(); });
        return assumptions ? solver.check(*assumptions) : solver.check();
    }
};

RowLogic::RowLogic(const RowFacts &facts, const ConstraintTable &table, bool leavesMesh)
    : m_solvers(std::make_unique<Solvers>())
{
    const Constraints constraints(facts, table, leavesMesh);
    withoutExceptions([&] { write(constraints, facts, table); });
}

void RowLogic::write(const Constraints &constraints, const RowFacts &facts, const ConstraintTable &table)
{
    Solvers &s = *m_solvers;
    s.rows = facts.rows;
    z3::params params(s.context);
    params.set("core.minimize", true);
    s.logic.set(params);
    for (const std::int32_t row : facts.rows)
        s.literals.emplace(row, s.context.bool_const(("row" + std::to_string(row)).c_str()));
    for (const RowSet &set : constraints.conflicts)
        s.logic.add(s.notAll(set));
    std::map<std::size_t, z3::expr> moments;
    const auto momentOf = [&](std::size_t moment) {
        return moments.try_emplace(moment, s.context.int_const(("t" + std::to_string(moment)).c_str()))
            .first->second;
    };
    for (const MomentLink &link : constraints.links) {
        const std::int32_t from = constraints.rowOfPair[link.from / constraints.microBatches];
        const std::int32_t to = constraints.rowOfPair[link.to / constraints.microBatches];
        z3::expr both = s.literal(from) && s.literal(to);
        const RowId microBatches = facts.plan.microBatchesRow;
        if (microBatches.valid()
            && (needsMicroBatches(table.rows[at(from)].rule) || needsMicroBatches(table.rows[at(to)].rule)))
            both = both && s.literal(microBatches.index);
        s.logic.add(z3::implies(both, momentOf(link.from) + 1 <= momentOf(link.to)));
    }
}

RowLogic::~RowLogic() = default;

RowLogic::Answer RowLogic::check(
    const std::vector<std::int32_t> &rows, const std::stop_token &stop, std::chrono::milliseconds limit)
{
    Solvers &s = *m_solvers;
    z3::expr_vector assumptions(s.context);
    for (const std::int32_t row : rows)
        assumptions.push_back(s.literal(row));
    Answer answer;
    std::set<std::string> names;
    const bool answered = withoutExceptions([&] {
        const z3::check_result result = s.run(s.logic, &assumptions, stop, limit);
        if (result == z3::sat)
            answer.verdict = Verdict::Hold;
        if (result != z3::unsat)
            return;
        const z3::expr_vector core = s.logic.unsat_core();
        for (unsigned i = 0; i < core.size(); ++i)
            names.insert(core[static_cast<int>(i)].decl().name().str());
        answer.verdict = Verdict::Conflict;
    });
    if (!answered || answer.verdict != Verdict::Conflict)
        return answered ? answer : Answer{};
    for (const std::int32_t row : rows)
        if (names.contains("row" + std::to_string(row)))
            answer.core.push_back(row);
    return answer;
}

void RowLogic::learnConflict(const std::vector<std::int32_t> &rows)
{
    m_solvers->conflicts.push_back(rows);
    withoutExceptions([&] {
        m_solvers->logic.add(m_solvers->notAll(rows));
        m_solvers->map.add(m_solvers->notAll(rows));
    });
}

void RowLogic::learnHolding(const std::vector<std::int32_t> &rows)
{
    Solvers &s = *m_solvers;
    withoutExceptions([&] {
        z3::expr_vector other(s.context);
        for (const std::int32_t row : s.rows)
            if (!std::binary_search(rows.begin(), rows.end(), row))
                other.push_back(s.literal(row));
        s.map.add(z3::mk_or(other));
    });
}

RowLogic::Seed RowLogic::unexplored(const std::stop_token &stop, std::chrono::milliseconds limit)
{
    Solvers &s = *m_solvers;
    std::set<std::int32_t> seed;
    Seed found;
    const bool answered = withoutExceptions([&] {
        const z3::check_result result = s.run(s.map, nullptr, stop, limit);
        found.none = result == z3::unsat;
        if (result != z3::sat)
            return;
        const z3::model model = s.map.get_model();
        for (const std::int32_t row : s.rows)
            if (!model.eval(s.literal(row)).is_false())
                seed.insert(row);
        found.known = true;
    });
    if (!answered || !found.known)
        return {.none = answered && found.none};
    const auto fits = [&] {
        return std::none_of(s.conflicts.begin(), s.conflicts.end(), [&](const RowSet &set) {
            return std::includes(seed.begin(), seed.end(), set.begin(), set.end());
        });
    };
    for (const std::int32_t row : s.rows)
        if (seed.insert(row).second && !fits())
            seed.erase(row);
    found.rows.assign(seed.begin(), seed.end());
    return found;
}

} // namespace planloom
