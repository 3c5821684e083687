#pragma once

#include "engine/table/selector_index.h"

#include <map>
#include <optional>
#include <vector>

namespace planloom {

/// Writes selectors (`selectorFor`), each once.
class SelectorWriter
{
public:
    explicit SelectorWriter(const SelectorIndex &index)
        : m_index(index)
    {
    }

    const SelectorIndex &index() const { return m_index; }
    const Selector &write(const std::vector<OperatorId> &operators);
    /// `write(operators)` is `selector`, as somebody named them so.
    void name(const std::vector<OperatorId> &operators, const Selector &selector)
    {
        m_known.insert_or_assign(operators, selector);
    }

private:
    const SelectorIndex &m_index;
    std::map<std::vector<OperatorId>, Selector> m_known{};
};

/// `selector` without some of the forward operators it selects, as a person would write it: layer ranges are
/// cut, names leave sets, alternatives that select nothing more go; what is left is `selector & !(...)`.
/// @param dropped  forward operators, ascending; all of them selected by `selector`
/// @return nothing if no forward operator is left
std::optional<Selector> without(
    const SelectorIndex &index, const Selector &selector, const std::vector<OperatorId> &dropped);

std::optional<Selector> without(
    SelectorWriter &writer, const Selector &selector, const std::vector<OperatorId> &dropped);

/// The ascending operators of both.
std::vector<OperatorId> united(const std::vector<OperatorId> &a, const std::vector<OperatorId> &b);
/// The ascending operators of `a` that are not in `b`.
std::vector<OperatorId> subtracted(const std::vector<OperatorId> &a, const std::vector<OperatorId> &b);

} // namespace planloom
