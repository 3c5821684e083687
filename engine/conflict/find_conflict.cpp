#include "engine/conflict/find_conflict.h"

#include "engine/conflict/row_logic.h"
#include "engine/conflict/row_oracle.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

namespace planloom {

namespace {

using RowSet = std::vector<std::int32_t>; ///< Ascending.
using Clock = std::chrono::steady_clock;

class ConflictFinder
{
public:
    ConflictFinder(const Model &model, std::int32_t deviceCount, const ConstraintTable &table,
        const ConflictOptions &options, const std::stop_token &stop)
        : m_options(options)
        , m_stop(stop)
        , m_start(Clock::now())
        , m_facts(factsOf(model, deviceCount, table))
        , m_oracle(model, deviceCount, table, options.completion, options.space, m_facts,
              [this] { return isOver(); })
        , m_table(table)
    {
    }

    Result<ConflictAnswer> find()
    {
        if (!m_oracle.holds(m_facts.rows)) {
            if (m_oracle.blamed().empty() && m_oracle.reason().code == ErrorCode::Cancelled)
                return m_oracle.reason();
            m_logic.emplace(m_facts, m_table, m_options.space.holds != nullptr);
            enumerate();
        }
        if (m_stop.stop_requested())
            return cancelled();
        std::stable_sort(m_answer.sets.begin(), m_answer.sets.end(),
            [](const ConflictSet &a, const ConflictSet &b) { return a.rows.size() < b.rows.size(); });
        m_answer.completions = m_oracle.completions();
        m_answer.seconds = std::chrono::duration<double>(Clock::now() - m_start).count();
        return std::move(m_answer);
    }

private:
    std::chrono::milliseconds left() const
    {
        return m_options.limit
            - std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - m_start);
    }
    bool isOver()
    {
        if (m_stop.stop_requested())
            return true;
        m_answer.timedOut = m_answer.timedOut || left().count() <= 0;
        return m_answer.timedOut;
    }

    /// Seeds: sets of rows that are as large as can be beside what is known.
    void enumerate()
    {
        RowSet seed = m_facts.rows;
        while (true) {
            if (m_answer.sets.empty() || !m_oracle.holds(seed)) {
                shrink(seed);
                if (isOver() || m_answer.sets.size() >= m_options.mostSets)
                    return;
            } else {
                m_logic->learnHolding(seed);
            }
            if (isOver())
                return;
            RowLogic::Seed next = m_logic->unexplored(m_stop, left());
            if (!next.known) {
                m_answer.all = next.none;
                return;
            }
            seed = std::move(next.rows);
        }
    }

    /// From rows that cannot hold together to a minimal set of them.
    void shrink(RowSet rows)
    {
        rows = narrowed(std::move(rows));
        const bool minimal = rows.size() <= 1 || dropOneByOne(rows);
        add(rows, minimal);
    }

    /// Fewer rows that cannot hold together either: the logic's core, what the orders name, or what is about
    /// the same operators as the rows that were refused.
    RowSet narrowed(RowSet rows)
    {
        while (m_trusted && !isOver()) {
            const auto [verdict, core] = m_logic->check(rows, m_stop, left());
            if (verdict != RowLogic::Verdict::Conflict)
                break;
            if (!m_oracle.holds(core))
                return core;
            ++m_answer.corrections;
            m_trusted = false;
        }
        if (isOver() || m_oracle.holds(rows))
            return rows;
        const RowSet blamed = m_oracle.blamed();
        std::vector<RowSet> parts;
        if (m_oracle.blamesOrders() || m_oracle.blamesSpace())
            parts.push_back(blamed);
        if (!m_oracle.blamesOrders())
            parts.push_back(around(rows, blamed));
        for (RowSet &fewer : parts) {
            std::erase_if(
                fewer, [&](std::int32_t row) { return !std::binary_search(rows.begin(), rows.end(), row); });
            std::sort(fewer.begin(), fewer.end());
            if (!fewer.empty() && fewer.size() < rows.size() && !isOver() && !m_oracle.holds(fewer)) {
                rows = std::move(fewer);
                break;
            }
        }
        return rows.size() > kFewRows ? quickXplain(rows) : rows;
    }

    /// Of `rows`: those blamed, and those that act on an operator of theirs.
    RowSet around(const RowSet &rows, const std::vector<std::int32_t> &blamed) const
    {
        std::vector<bool> touched(m_facts.setting.graph().operators.size(), false);
        for (const std::int32_t row : blamed)
            if (at(row) < m_facts.operators.size())
                for (const OperatorId op : m_facts.operators[at(row)])
                    touched[at(op)] = true;
        RowSet near;
        for (const std::int32_t row : rows) {
            const auto &operators = m_facts.operators[at(row)];
            if (!hasSelector(m_table.rows[at(row)].rule)
                || std::find(blamed.begin(), blamed.end(), row) != blamed.end()
                || std::any_of(
                    operators.begin(), operators.end(), [&](OperatorId op) { return touched[at(op)]; }))
                near.push_back(row);
        }
        return near;
    }

    /// A minimal set by halves (Junker, AAAI 2004): for k rows of n about 2 k log(n / k) questions.
    RowSet quickXplain(const RowSet &rows)
    {
        RowSet found = quickXplain({}, rows, false);
        std::sort(found.begin(), found.end());
        return isOver() || found.empty() ? rows : found;
    }
    RowSet quickXplain(const RowSet &background, const RowSet &rows, bool changed)
    {
        if (isOver())
            return rows;
        if (changed && !m_oracle.holds(background))
            return {};
        if (rows.size() == 1)
            return rows;
        const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
        const RowSet first(rows.begin(), middle);
        const RowSet second(middle, rows.end());
        const RowSet ofSecond = quickXplain(united(background, first), second, !first.empty());
        RowSet ofFirst = quickXplain(united(background, ofSecond), first, !ofSecond.empty());
        ofFirst.insert(ofFirst.end(), ofSecond.begin(), ofSecond.end());
        std::sort(ofFirst.begin(), ofFirst.end());
        return ofFirst;
    }
    static RowSet united(const RowSet &a, const RowSet &b)
    {
        RowSet both;
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
        return both;
    }

    /// @return false if time was over before every row was tried
    bool dropOneByOne(RowSet &rows)
    {
        const RowSet all = rows;
        for (const std::int32_t row : all) {
            if (isOver())
                return false;
            if (rows.size() == 1)
                break;
            RowSet fewer = rows;
            std::erase(fewer, row);
            if (!m_oracle.holds(fewer))
                rows = std::move(fewer);
        }
        return true;
    }

    void add(const RowSet &rows, bool minimal)
    {
        ConflictSet set{.minimal = minimal, .reason = m_oracle.reasonFor(rows)};
        std::map<OperatorId, std::size_t> times;
        std::size_t acting = 0;
        for (const std::int32_t row : rows) {
            set.rows.push_back(RowId{row});
            acting += m_facts.operators[at(row)].empty() ? 0 : 1;
            for (const OperatorId op : m_facts.operators[at(row)])
                ++times[op];
        }
        for (const bool common : {true, false}) {
            for (const auto &[op, count] : times)
                if (!common || count == acting)
                    set.operators.push_back(op);
            if (!set.operators.empty())
                break;
        }
        m_logic->learnConflict(rows);
        m_answer.sets.push_back(std::move(set));
    }

    static constexpr std::size_t kFewRows = 8;

    const ConflictOptions &m_options;
    const std::stop_token &m_stop;
    Clock::time_point m_start{};
    RowFacts m_facts{};
    RowOracle m_oracle;
    const ConstraintTable &m_table;
    std::optional<RowLogic> m_logic{};
    bool m_trusted = true; ///< The logic has refused nothing that can be carried out.
    ConflictAnswer m_answer{};
};

} // namespace

Result<ConflictAnswer> findConflict(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const ConflictOptions &options, const std::stop_token &stop)
{
    if (!model)
        return Error{ErrorCode::InvalidInput, "there is no model to plan", "", "plan"};
    return ConflictFinder(model, deviceCount, table, options, stop).find();
}

} // namespace planloom
