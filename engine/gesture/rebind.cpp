#include "engine/gesture/rebind.h"

#include "engine/gesture/gesture.h"
#include "engine/gesture/narrow.h"
#include "engine/table/selector_matcher.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace planloom {

namespace {

using Operators = std::vector<OperatorId>; ///< Ascending.

Operators ofDirection(const Graph &graph, const Operators &operators, Direction direction)
{
    Operators some;
    std::copy_if(operators.begin(), operators.end(), std::back_inserter(some),
        [&](OperatorId op) { return graph.at(op).direction == direction; });
    return some;
}

/// Which of the selected operators decide what a row does: those of the first of these directions there are
/// any of.
using Directions = std::vector<Direction>;

/// The operators of a selector that count, and their direction.
struct Meant {
    Direction direction = Direction::Forward;
    Operators operators{};
};

Meant meantBy(const SelectorIndex &index, const Selector &selector, const Directions &directions)
{
    if (directions.front() == Direction::Forward) {
        if (Operators forward = forwardSelected(index, selector); !forward.empty())
            return {Direction::Forward, std::move(forward)};
    }
    const Operators all = index.select(selector);
    for (const Direction direction : directions) {
        if (Operators some = ofDirection(index.graph(), all, direction); !some.empty())
            return {direction, std::move(some)};
    }
    return {};
}

Operators selectedOf(const SelectorIndex &index, const Selector &selector, Direction direction)
{
    if (direction == Direction::Forward)
        return forwardSelected(index, selector);
    return ofDirection(index.graph(), index.select(selector), direction);
}

/// The most frequent counterpart of modules and layers, as the operators in them say.
template<typename T> class Votes
{
public:
    void add(T from, T to) { ++m_votes[from][to]; }
    std::optional<T> winner(T from) const
    {
        const auto found = m_votes.find(from);
        if (found == m_votes.end())
            return std::nullopt;
        const auto best = std::max_element(found->second.begin(), found->second.end(),
            [](const auto &a, const auto &b) { return a.second < b.second; });
        return best->first;
    }

private:
    std::map<T, std::map<T, std::int32_t>> m_votes{};
};

/// What became of a selector.
struct Rewritten {
    std::optional<Selector> selector{}; ///< Nothing if it stays.
    bool bound = false; ///< It selected something before.
    bool fewer = false;
    bool lost = false;
};

class Rebinder
{
public:
    Rebinder(const SelectorIndex &before, const SelectorIndex &after, std::stop_token stop)
        : m_before(before)
        , m_after(after)
        , m_match(matchOperators(before, after, std::move(stop)))
        , m_writer(after)
    {
        for (std::size_t a = 0; a < before.forwardCount(); ++a) {
            const OperatorId b = m_match.after[a];
            if (!b.valid())
                continue;
            const OperatorId op{static_cast<std::int32_t>(a)};
            if (before.layerOf(op) >= 0 && after.layerOf(b) >= 0)
                m_layers.add(before.layerOf(op), after.layerOf(b));
            ScopeId from = before.graph().at(op).scope;
            ScopeId to = after.graph().at(b).scope;
            while (from.valid() && to.valid() && from.index > 0 && to.index > 0) {
                m_scopes.add(from, to);
                from = before.graph().at(from).parent;
                to = after.graph().at(to).parent;
            }
        }
        for (std::size_t s = 0; s < before.graph().scopes.size(); ++s)
            m_scopeNamed.emplace(
                before.pathOf({static_cast<std::int32_t>(s)}), ScopeId{static_cast<std::int32_t>(s)});
    }

    const GraphMatch &match() const { return m_match; }

    const Rewritten &rewrite(const Selector &selector, const Directions &directions)
    {
        const auto key = std::pair(directions, toString(selector));
        auto known = m_known.find(key);
        if (known == m_known.end())
            known = m_known.emplace(key, made(selector, directions)).first;
        return known->second;
    }

private:
    OperatorId counterpart(OperatorId op) const { return m_match.after[static_cast<std::size_t>(op.index)]; }

    Rewritten made(const Selector &selector, const Directions &directions)
    {
        Rewritten outcome;
        const Meant meant = meantBy(m_before, selector, directions);
        if (meant.operators.empty())
            return outcome;
        outcome.bound = true;
        Operators wanted;
        for (const OperatorId op : meant.operators) {
            if (const OperatorId other = counterpart(op); other.valid())
                wanted.push_back(other);
        }
        std::sort(wanted.begin(), wanted.end());
        outcome.lost = wanted.empty();
        outcome.fewer = !outcome.lost && wanted.size() < meant.operators.size();
        if (outcome.lost || fits(selector, meant.direction, wanted))
            return outcome;
        if (auto renamed = withNewNames(selector); renamed && fits(*renamed, meant.direction, wanted)) {
            outcome.selector = std::move(renamed);
            return outcome;
        }
        Selector shortest = named(meant.direction, wanted);
        if (auto mended = mend(selector, meant.direction, wanted);
            mended && toString(*mended).size() < toString(shortest).size())
            shortest = *std::move(mended);
        outcome.selector = std::move(shortest);
        return outcome;
    }

    /// `selector` holds in the new model, and selects `wanted` and nothing else but new operators.
    bool fits(const Selector &selector, Direction direction, const Operators &wanted) const
    {
        if (!m_after.check(selector))
            return false;
        const Operators selected = selectedOf(m_after, selector, direction);
        if (!std::includes(selected.begin(), selected.end(), wanted.begin(), wanted.end()))
            return false;
        const Operators extra = subtracted(selected, wanted);
        return std::none_of(extra.begin(), extra.end(),
            [&](OperatorId op) { return m_match.before[static_cast<std::size_t>(op.index)].valid(); });
    }

    Selector named(Direction direction, const Operators &operators)
    {
        if (direction == Direction::Forward)
            return m_writer.write(operators);
        std::vector<std::string> names;
        for (const OperatorId op : operators)
            names.push_back(m_after.graph().at(op).name);
        return names.size() == 1 ? selectName(globOf(names.front())) : selectSet(std::move(names));
    }

    /// The selector as it is, with what it lacks, without what it has too much.
    std::optional<Selector> mend(const Selector &selector, Direction direction, const Operators &wanted)
    {
        Selector base = selector;
        if (!m_after.check(base)) {
            auto renamed = withNewNames(selector);
            if (!renamed || !m_after.check(*renamed))
                return std::nullopt;
            base = *std::move(renamed);
        }
        const Operators selected = selectedOf(m_after, base, direction);
        Operators extra = subtracted(selected, wanted);
        std::erase_if(extra,
            [&](OperatorId op) { return !m_match.before[static_cast<std::size_t>(op.index)].valid(); });
        if (!extra.empty()) {
            if (direction != Direction::Forward)
                return std::nullopt;
            auto rest = without(m_writer, base, extra);
            if (!rest)
                return std::nullopt;
            base = *std::move(rest);
        }
        const Operators missing = subtracted(wanted, selected);
        if (!missing.empty()) {
            std::vector<Selector> parts;
            for (Selector part : {std::move(base), named(direction, missing)}) {
                if (part.kind == SelectorKind::Or)
                    parts.insert(parts.end(), part.children.begin(), part.children.end());
                else
                    parts.push_back(std::move(part));
            }
            base = selectAny(std::move(parts));
        }
        return fits(base, direction, wanted) ? std::optional(std::move(base)) : std::nullopt;
    }

    /// The same selector with the names that things have now; nothing if nothing is left of it.
    std::optional<Selector> withNewNames(const Selector &selector) const
    {
        Selector made = selector;
        switch (selector.kind) {
        case SelectorKind::Name:
            if (const auto name = plainName(selector.text)) {
                const auto now = nameNow(*name);
                if (!now)
                    return std::nullopt;
                made.text = globOf(*now);
            }
            break;
        case SelectorKind::Set: {
            made.names.clear();
            for (const std::string &name : selector.names) {
                if (auto now = nameNow(name))
                    made.names.push_back(*std::move(now));
            }
            if (made.names.empty())
                return std::nullopt;
            if (made.names.size() == 1)
                return selectName(globOf(made.names.front()));
            break;
        }
        case SelectorKind::In:
            if (const auto path = plainName(selector.text)) {
                const auto scope = m_scopeNamed.find(*path);
                const auto now = scope == m_scopeNamed.end() ? std::nullopt : m_scopes.winner(scope->second);
                if (!now)
                    return std::nullopt;
                made.text = globOf(m_after.pathOf(*now));
            }
            break;
        case SelectorKind::Layer:
            if (const auto first = m_layers.winner(selector.firstLayer))
                made.firstLayer = *first;
            if (selector.lastLayer >= 0) {
                if (const auto last = m_layers.winner(selector.lastLayer))
                    made.lastLayer = *last;
                if (made.lastLayer < made.firstLayer)
                    return std::nullopt;
            }
            break;
        case SelectorKind::Weight:
            if (const auto name = plainName(selector.text)) {
                const auto now = weightNow(*name);
                if (!now)
                    return std::nullopt;
                made.text = globOf(*now);
            }
            break;
        default:
            made.children.clear();
            for (const Selector &child : selector.children) {
                auto now = withNewNames(child);
                if (now)
                    made.children.push_back(*std::move(now));
                else if (selector.kind != SelectorKind::Or)
                    return std::nullopt;
            }
            if (!selector.children.empty() && made.children.empty())
                return std::nullopt;
            if (selector.kind == SelectorKind::Or && made.children.size() == 1)
                return Selector(std::move(made.children.front()));
            break;
        }
        return made;
    }

    std::optional<std::string> nameNow(std::string_view name) const
    {
        const OperatorId op = m_before.findOperator(name);
        const OperatorId now = op.valid() ? counterpart(op) : OperatorId{};
        if (!now.valid())
            return std::nullopt;
        return m_after.graph().at(now).name;
    }

    std::optional<std::string> weightNow(const std::string &name) const
    {
        if (m_weightNamed.empty()) {
            for (std::size_t t = 0; t < m_before.graph().tensors.size(); ++t)
                m_weightNamed.emplace(m_before.graph().tensors[t].name, m_match.weights[t]);
        }
        const auto found = m_weightNamed.find(name);
        if (found == m_weightNamed.end() || !found->second.valid())
            return std::nullopt;
        return m_after.graph().at(found->second).name;
    }

    const SelectorIndex &m_before;
    const SelectorIndex &m_after;
    GraphMatch m_match{};
    SelectorWriter m_writer;
    Votes<std::int32_t> m_layers{};
    Votes<ScopeId> m_scopes{};
    std::map<std::string, ScopeId, std::less<>> m_scopeNamed{};
    mutable std::map<std::string, TensorId>
        m_weightNamed{}; ///< Counterparts of weights; made when asked for.
    std::map<std::pair<Directions, std::string>, Rewritten> m_known{};
};

Directions directionsOf(const Rule &rule)
{
    if (std::holds_alternative<OptimizerShardingRule>(rule))
        return {Direction::Optimizer, Direction::Forward};
    if (secondSelectorOf(rule))
        return {Direction::Forward, Direction::Backward, Direction::Optimizer};
    return {Direction::Forward, Direction::Optimizer};
}

} // namespace

Rebinding rebind(const SelectorIndex &before, const SelectorIndex &after, const TableDocument &document,
    std::stop_token stop)
{
    Rebinder rebinder(before, after, stop);
    Rebinding outcome;
    for (std::size_t a = 0; a < before.forwardCount(); ++a)
        outcome.gone += rebinder.match().after[a].valid() ? 0 : 1;
    for (std::size_t b = 0; b < after.forwardCount(); ++b)
        outcome.fresh += rebinder.match().before[b].valid() ? 0 : 1;
    for (std::int32_t line = 0; line < document.lineCount(); ++line) {
        if (stop.stop_requested())
            return {};
        const auto &row = document.lines()[static_cast<std::size_t>(line)]->row;
        if (!row || !hasSelector(row->rule))
            continue;
        const Directions directions = directionsOf(row->rule);
        std::vector<Rewritten> parts{rebinder.rewrite(row->selector, directions)};
        Row written = *row;
        if (parts.front().selector)
            written.selector = *parts.front().selector;
        if (Selector *second = secondSelectorOf(written.rule)) {
            parts.push_back(rebinder.rewrite(*second, directions));
            if (parts.back().selector)
                *second = *parts.back().selector;
        }
        const auto any = [&parts](bool Rewritten::*flag) {
            return std::any_of(
                parts.begin(), parts.end(), [flag](const Rewritten &part) { return part.*flag; });
        };
        if (!std::all_of(parts.begin(), parts.end(), [](const Rewritten &part) { return part.bound; }))
            continue; // it did not bind before
        ++outcome.bound;
        if (any(&Rewritten::lost)) {
            outcome.lost.push_back(line);
            continue;
        }
        if (any(&Rewritten::fewer))
            outcome.fewer.push_back(line);
        if (written == *row)
            continue;
        outcome.rewritten.push_back(line);
        const TableEdit edit =
            replaceRow(document, line, written); // one line for one line: the others keep their numbers
        outcome.edit.splices.insert(outcome.edit.splices.end(), edit.splices.begin(), edit.splices.end());
    }
    return outcome;
}

} // namespace planloom
