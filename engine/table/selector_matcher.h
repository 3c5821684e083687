#pragma once

#include "engine/table/selector_index.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The text that a pattern without wildcards names; nothing for a pattern with some.
std::optional<std::string> plainName(std::string_view glob);

/// `globMatches` for one pattern and many texts. The pattern's text must outlive it.
class Glob
{
public:
    explicit Glob(std::string_view glob);
    bool matches(std::string_view text) const
    {
        if (!m_simple)
            return globMatches(m_glob, text);
        return text.size() >= m_head.size() + m_tail.size()
            && text.substr(text.size() - m_tail.size()) == m_tail && text.substr(0, m_head.size()) == m_head;
    }

private:
    std::string_view m_glob{};
    bool m_simple = false; ///< A single wildcard, `*`: text between a head and a tail.
    std::string_view m_head{};
    std::string_view m_tail{};
};

/// A selector made ready for asking about one operator after the other: the one place that says what a
/// selector selects. Index and selector must outlive it. Not thread-safe: remembers what it was asked.
class SelectorMatcher
{
public:
    SelectorMatcher(const SelectorIndex &index, const Selector &selector);

    bool matches(OperatorId op);
    /// Operators it can match at all, ascending, if that is known without looking at them.
    const std::vector<OperatorId> *candidates() const { return m_names ? &*m_names : nullptr; }

private:
    enum class Known : char { NotAsked, No, Yes };

    bool inScope(ScopeId scope);
    bool isWeight(TensorId tensor);
    bool matchesKind(const Operator &op);
    void nameCandidates();

    const SelectorIndex &m_index;
    const Selector &m_selector;
    std::optional<std::vector<OperatorId>> m_names{}; ///< Of sets and plain names, ascending.
    Glob m_glob;
    std::vector<Known> m_known{}; ///< By scope, kind or tensor.
    std::vector<SelectorMatcher> m_children{};
};

/// A few operators among which selectors are evaluated, where `SelectorIndex::select` would look at all of
/// the graph. The index must outlive it. Thread-safe to read.
class Subset
{
public:
    /// @param operators  any, in ascending order, each once
    Subset(const SelectorIndex &index, std::vector<OperatorId> operators);

    const std::vector<OperatorId> &operators() const { return m_operators; }
    /// Those that `selector` selects, ascending. O(operators x size of the selector); a name is looked up.
    std::vector<OperatorId> selected(const Selector &selector) const;
    /// Position of `op` in `operators()`; -1 if it is none of them. O(log operators).
    std::int32_t positionOf(OperatorId op) const;

private:
    const SelectorIndex &m_index;
    std::vector<OperatorId> m_operators{};
};

/// Forward operators that `selector` selects, ascending. O(operators x size of the selector) at most.
std::vector<OperatorId> forwardSelected(const SelectorIndex &index, const Selector &selector);

/// True if `selector` selects a forward operator that is none of `operators` (ascending). Stops at the first.
bool selectsForwardBeyond(
    const SelectorIndex &index, const Selector &selector, const std::vector<OperatorId> &operators);

/// The forward operators of `operators`, ascending, each once; those out of range are left out.
std::vector<OperatorId> forwardOnes(const Graph &graph, std::vector<OperatorId> operators);

} // namespace planloom
