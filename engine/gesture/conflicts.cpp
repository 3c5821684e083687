#include "engine/gesture/conflicts.h"

#include "engine/gesture/hold_free.h"
#include "engine/gesture/row_edits.h"
#include "engine/gesture/split_steps.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::size_t kMostConflicts = 100;

using Pair = std::pair<std::int32_t, std::int32_t>; ///< Lines, ascending.

class Finder
{
public:
    explicit Finder(const GestureContext &context)
        : m_context(context)
    {
    }

    std::vector<RowConflict> find()
    {
        findMeetings<OpAssignRule>("place", [&](std::int32_t a, std::int32_t b, OperatorId) {
            return domainOf(m_context, std::get<OpAssignRule>(ruleAt(a)))
                != domainOf(m_context, std::get<OpAssignRule>(ruleAt(b)));
        });
        findMeetings<StageRule>("give a stage to",
            [&](std::int32_t a, std::int32_t b, OperatorId) { return ruleAt(a) != ruleAt(b); });
        findMeetings<CoshardRule>(
            "cut", [&](std::int32_t a, std::int32_t b, OperatorId) { return ruleAt(a) != ruleAt(b); });
        findMeetings<RecomputeRule>("recompute", [](std::int32_t, std::int32_t, OperatorId) { return true; });
        findMeetings<OpTransRule>("split", [&](std::int32_t a, std::int32_t b, OperatorId op) {
            return !compose(stepsAt(a, op), stepsAt(b, op));
        });
        findSplitsOutsideTheirPlace();
        findShardings();
        findTwins();
        // Preferences give way by themselves.
        std::erase_if(m_conflicts, [&](const RowConflict &conflict) {
            return std::any_of(conflict.lines.begin(), conflict.lines.end(),
                [&](std::int32_t line) { return rowAt(line).preference > 0; });
        });
        return std::move(m_conflicts);
    }

private:
    const Row &rowAt(std::int32_t line) const
    {
        return *m_context.document.lines()[static_cast<std::size_t>(line)]->row;
    }
    const Rule &ruleAt(std::int32_t line) const { return rowAt(line).rule; }

    std::vector<Split> stepsAt(std::int32_t line, OperatorId op) const
    {
        std::vector<Split> splits;
        for (const SplitStep &step : std::get<OpTransRule>(ruleAt(line)).steps) {
            if (auto split = bindStep(m_context, op, step); split && *split)
                splits.push_back(**std::move(split));
        }
        return splits;
    }

    /// As completion composes the rows of one operator.
    static bool compose(const std::vector<Split> &a, const std::vector<Split> &b)
    {
        const auto inner = [](const Split &split) { return split.axis.empty(); };
        if (a.empty() || b.empty() || a == b)
            return true;
        if (std::any_of(a.begin(), a.end(), inner) || std::any_of(b.begin(), b.end(), inner))
            return false;
        return std::all_of(a.begin(), a.end(), [&](const Split &mine) {
            return std::all_of(b.begin(), b.end(),
                [&](const Split &other) { return mine.axis != other.axis || mine == other; });
        });
    }

    /// By operator, the rows of one rule on it.
    template<typename RuleType> std::map<OperatorId, std::vector<std::int32_t>> linesOn() const
    {
        std::map<OperatorId, std::vector<std::int32_t>> lines;
        forEachRule<RuleType>(m_context, [&](std::int32_t line, const Row &row, const RuleType &) {
            for (const OperatorId op : forwardSelected(*m_context.index, row.selector))
                lines[op].push_back(line);
        });
        return lines;
    }

    template<typename RuleType, typename Clash> void findMeetings(const char *verb, Clash clash)
    {
        std::map<Pair, std::vector<OperatorId>> meetings;
        for (const auto &[op, lines] : linesOn<RuleType>()) {
            for (std::size_t i = 0; i < lines.size(); ++i) {
                for (std::size_t j = i + 1; j < lines.size() && meetings.size() < kMostConflicts; ++j) {
                    if (clash(lines[i], lines[j], op))
                        meetings[{lines[i], lines[j]}].push_back(op);
                }
            }
        }
        for (auto &[pair, operators] : meetings) {
            const auto &[a, b] = pair;
            add(pair, std::move(operators), "both " + std::string(verb) + " ",
                ": " + saying(a) + " and " + saying(b), {a, b});
        }
    }

    /// What a row says, as part of a sentence.
    std::string saying(std::int32_t line) const
    {
        const Rule &rule = ruleAt(line);
        if (const auto *assign = std::get_if<OpAssignRule>(&rule))
            return "on " + wordsFor(m_context, *assign);
        const std::string text = print(rule);
        return text.empty() ? std::string("as one") : text;
    }

    void findSplitsOutsideTheirPlace()
    {
        std::map<Pair, std::vector<OperatorId>> meetings;
        const auto places = linesOn<OpAssignRule>();
        for (const auto &[op, lines] : linesOn<OpTransRule>()) {
            const auto place = places.find(op);
            if (place == places.end() || meetings.size() >= kMostConflicts)
                continue;
            const std::int32_t at = place->second.back();
            const auto domain = domainOf(m_context, std::get<OpAssignRule>(ruleAt(at)));
            for (const std::int32_t line : lines) {
                std::vector<BoundStep> steps;
                for (Split &split : stepsAt(line, op))
                    steps.push_back({line, {}, std::move(split)});
                if (domain
                    && (!spans(*domain, steps)
                        || (lines.size() == 1 && checkDealing(m_context, op, steps, *domain))))
                    meetings[std::minmax(line, at)].push_back(op);
            }
        }
        for (auto &[pair, operators] : meetings) {
            const bool firstSplits = std::holds_alternative<OpTransRule>(ruleAt(pair.first));
            const std::int32_t split = firstSplits ? pair.first : pair.second;
            const std::int32_t place = firstSplits ? pair.second : pair.first;
            // Out of the place row, the operators would follow their neighbours to where it puts these.
            add(pair, std::move(operators), "don't fit together on ",
                ": " + saying(split) + " is not possible " + saying(place), {split});
        }
    }

    void findShardings()
    {
        std::map<OperatorId, std::vector<std::int32_t>> lines;
        forEachRule<OptimizerShardingRule>(
            m_context, [&](std::int32_t line, const Row &row, const OptimizerShardingRule &) {
                const auto selected = m_context.index->select(row.selector);
                std::vector<OperatorId> steps;
                for (const OperatorId op : selected) {
                    if (m_context.graph().at(op).direction == Direction::Optimizer)
                        steps.push_back(op);
                }
                if (steps.empty())
                    steps = optimizersOf(*m_context.index, forwardOnes(m_context.graph(), selected));
                for (const OperatorId op : steps)
                    lines[op].push_back(line);
            });
        std::map<Pair, std::vector<OperatorId>> meetings;
        for (const auto &[op, rows] : lines) {
            for (std::size_t i = 0; i + 1 < rows.size() && meetings.size() < kMostConflicts; ++i) {
                if (ruleAt(rows[i]) != ruleAt(rows[i + 1]))
                    meetings[{rows[i], rows[i + 1]}].push_back(op);
            }
        }
        for (auto &[pair, operators] : meetings)
            add(pair, std::move(operators), "shard differently ", "", {});
    }

    /// Rows of which a table can have only one.
    void findTwins()
    {
        std::vector<std::int32_t> seen;
        forEachRow(m_context, [&](std::int32_t line, const Row &row) {
            if (hasSelector(row.rule) || std::holds_alternative<LimitRule>(row.rule))
                return;
            for (const std::int32_t other : seen) {
                const auto *mine = std::get_if<InFlightRule>(&row.rule);
                const auto *theirs = std::get_if<InFlightRule>(&ruleAt(other));
                const bool together = mine && theirs
                    && (mine->count == theirs->count
                        || (mine->stage >= 0 && theirs->stage >= 0 && mine->stage != theirs->stage));
                if (ruleAt(other).index() == row.rule.index() && !together) {
                    add({other, line}, {}, std::string("both say ") + nameOf(row.rule),
                        ": " + print(ruleAt(other)) + " and " + print(row.rule), {});
                    break;
                }
            }
            seen.push_back(line);
        });
    }

    /// @param narrowed  rows that may let go of the operators instead
    void add(Pair pair, std::vector<OperatorId> operators, const std::string &verb, const std::string &rest,
        const std::vector<std::int32_t> &narrowed)
    {
        if (m_conflicts.size() >= kMostConflicts)
            return;
        RowConflict conflict;
        conflict.lines = {pair.first, pair.second};
        const auto rows = m_context.document.rowLines();
        for (const std::int32_t line : conflict.lines) {
            const auto at = std::lower_bound(rows.begin(), rows.end(), line) - rows.begin();
            conflict.rows.push_back({static_cast<std::int32_t>(at)});
        }
        std::sort(operators.begin(), operators.end());
        conflict.operators = std::move(operators);
        const auto forward = forwardOnes(m_context.graph(), conflict.operators);
        std::string who;
        if (!conflict.operators.empty()) {
            who = !forward.empty() ? wordsFor(*m_context.index, forward)
                : conflict.operators.size() == 1
                ? m_context.graph().at(conflict.operators.front()).name
                : countWords(conflict.operators.size(), "optimizer operator");
        }
        conflict.words = "Rows " + std::to_string(pair.first + 1) + " and " + std::to_string(pair.second + 1)
            + " " + verb + who + rest;
        for (const std::int32_t line : conflict.lines) {
            conflict.waysOut.emplace_back("switch row " + std::to_string(line + 1) + " off",
                setEnabled(m_context.document, {line}, false));
        }
        for (const std::int32_t line : narrowed) {
            // Taking all of its operators away would be switching it off.
            if (forward.empty() || !selectsForwardBeyond(*m_context.index, rowAt(line).selector, forward))
                continue;
            RowEdits edits(m_context);
            edits.letGo(line, forward);
            Proposal without;
            edits.finish(without);
            conflict.waysOut.emplace_back(
                "take " + who + " out of row " + std::to_string(line + 1), std::move(without.edit));
        }
        m_conflicts.push_back(std::move(conflict));
    }

    const GestureContext &m_context;
    std::vector<RowConflict> m_conflicts{};
};

} // namespace

std::vector<RowConflict> findConflicts(const GestureContext &context, const Completion &completion)
{
    if (!firstError(completion))
        return {};
    return Finder(context).find();
}

} // namespace planloom
