#include "engine/gesture/conflicts.h"

#include "engine/base/words.h"
#include "engine/gesture/row_edits.h"
#include "engine/table/kinds/all_kinds.h"
#include "engine/table/kinds/beside.h"
#include "engine/table/kinds/meaning.h"
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
        forEachRow(m_context, [&](std::int32_t line, const Row &row) { read(line, row); });
        findMeetings();
        findSplitsOutsideTheirPlace();
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

    /// What a row says of an operator.
    struct Said {
        std::int32_t line = -1;
        SharedMeaning meaning{};
    };

    /// Asks the row what it says of each operator it acts on; rows that are wrong in themselves say nothing.
    void read(std::int32_t line, const Row &row)
    {
        if (!m_context.index().check(row.selector))
            return;
        const auto note = [&](OperatorId op, const Result<SharedMeaning> &meaning) {
            if (meaning && *meaning)
                m_said[op].push_back({line, *meaning});
            return true;
        };
        const auto asked = askEach(m_context, row.rule, m_context.index().select(row.selector), note);
        (void)asked; // what is wrong with the row is said elsewhere
    }

    static const char *verbOf(const Rule &rule)
    {
        return std::visit(
            []<typename RuleType>(const RuleType &) { return RuleTraits<RuleType>::verb; }, rule);
    }

    /// Pairs of rows that clash on an operator.
    void findMeetings()
    {
        std::map<Pair, std::vector<OperatorId>> meetings;
        for (const auto &[op, said] : m_said) {
            for (std::size_t i = 0; i < said.size(); ++i) {
                for (std::size_t j = i + 1; j < said.size() && meetings.size() < kMostConflicts; ++j) {
                    if (clashOf(*said[i].meaning, *said[j].meaning))
                        meetings[{said[i].line, said[j].line}].push_back(op);
                }
            }
        }
        for (auto &[pair, operators] : meetings) {
            const auto &[a, b] = pair;
            add(pair, std::move(operators), "both " + std::string(verbOf(ruleAt(a))) + " ",
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
        for (const auto &[op, said] : m_said) {
            if (meetings.size() >= kMostConflicts)
                break;
            const Said *place = nullptr; // the last
            std::vector<const Said *> splits;
            for (const Said &each : said) {
                if (each.meaning->place)
                    place = &each;
                if (each.meaning->splits())
                    splits.push_back(&each);
            }
            const Domain *domain = place ? place->meaning->place->preferred() : nullptr;
            for (const Said *split : splits) {
                if (domain && !fits(*domain, *split->meaning, splits.size() == 1))
                    meetings[std::minmax(split->line, place->line)].push_back(op);
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

    /// True if all axes reach over the place and, where nobody else splits, the parts can be dealt out to it.
    static bool fits(const Domain &domain, const OperatorMeaning &meaning, bool alone)
    {
        const auto isInDomain = [&](const AxisMeaning &each) {
            return findAxis(domain.axes, each.axis) != nullptr;
        };
        if (domain.onMesh && !std::all_of(meaning.axes.begin(), meaning.axes.end(), isInDomain))
            return false;
        if (!alone || (domain.onMesh && !meaning.axes.empty()))
            return true;
        std::int64_t parts = 1;
        for (const AxisMeaning &axis : meaning.axes) {
            if (const Split *split = axis.allowed.preferred())
                parts *= split->parts;
        }
        if (const std::vector<Split> *within = meaning.within.preferred()) {
            for (const Split &split : *within)
                parts *= split.parts;
        }
        return parts == 1 || canDealOut(parts, static_cast<std::int64_t>(domain.devices.size()));
    }

    /// Rows about the whole plan that cannot both hold.
    void findTwins()
    {
        std::vector<std::int32_t> seen;
        forEachRow(m_context, [&](std::int32_t line, const Row &row) {
            for (const std::int32_t other : seen) {
                if (besides(m_context.graph(), ruleAt(other), row.rule) != Beside::Clash)
                    continue;
                add({other, line}, {}, std::string("both say ") + nameOf(row.rule),
                    ": " + print(ruleAt(other)) + " and " + print(row.rule), {});
                break;
            }
            if (!hasSelector(row.rule))
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
            who = !forward.empty() ? wordsFor(m_context.index(), forward)
                : conflict.operators.size() == 1
                ? m_context.graph().at(conflict.operators.front()).name
                : countWords(conflict.operators.size(), "optimizer operator");
        }
        conflict.words = "Rows " + std::to_string(pair.first + 1) + " and " + std::to_string(pair.second + 1)
            + " " + verb + who + rest;
        for (const std::int32_t line : conflict.lines) {
            conflict.waysOut.push_back({.words = "switch row " + std::to_string(line + 1) + " off",
                .edit = setEnabled(m_context.document, {line}, false)});
        }
        for (const std::int32_t line : narrowed) {
            // Taking all of its operators away would be switching it off.
            if (forward.empty() || !selectsForwardBeyond(m_context.index(), rowAt(line).selector, forward))
                continue;
            RowEdits edits(m_context);
            edits.letGo(line, forward);
            Proposal without;
            edits.finish(without);
            conflict.waysOut.push_back({.words = "take " + who + " out of row " + std::to_string(line + 1),
                .edit = std::move(without.edit)});
        }
        m_conflicts.push_back(std::move(conflict));
    }

    const GestureContext &m_context;
    std::map<OperatorId, std::vector<Said>> m_said{}; ///< By operator, in the order of the table.
    std::vector<RowConflict> m_conflicts{};
};

} // namespace

std::string effectOf(const RowWayOut &way)
{
    if (!way.left.empty())
        return way.left;
    if (way.stepSeconds <= 0)
        return {};
    const std::string step = "step " + formatSeconds(way.stepSeconds);
    const std::string peak = "peak " + formatBytes(way.peak);
    if (way.overMemory == 0)
        return step + ", " + peak;
    return step + ", but " + counted(way.overMemory, "device") + (way.overMemory == 1 ? " lacks" : " lack")
        + " memory (" + peak + ")";
}

std::vector<RowConflict> findConflicts(const GestureContext &context, const Completion &completion)
{
    if (!firstError(completion))
        return {};
    return Finder(context).find();
}

} // namespace planloom
