#include "engine/gesture/narrow.h"

#include "engine/gesture/gesture.h"
#include "engine/table/selector_matcher.h"

#include <algorithm>
#include <iterator>

namespace planloom {

namespace {

Selector negated(Selector selector)
{
    Selector made{.kind = SelectorKind::Not};
    made.children.push_back(std::move(selector));
    return made;
}

/// `selector & !dropped`, joining what a trailing negation excludes already.
Selector excluding(SelectorWriter &writer, const Selector &selector, const std::vector<OperatorId> &dropped)
{
    const SelectorIndex &index = writer.index();
    if (selector.kind == SelectorKind::All)
        return negated(writer.write(dropped));
    if (selector.kind == SelectorKind::Not) {
        return negated(writer.write(united(forwardSelected(index, selector.children.front()), dropped)));
    }
    Selector made{.kind = SelectorKind::And};
    if (selector.kind == SelectorKind::And)
        made.children = selector.children;
    else
        made.children.push_back(selector);
    if (made.children.back().kind == SelectorKind::Not && made.children.size() > 1)
        made.children.back() = excluding(writer, made.children.back(), dropped);
    else
        made.children.push_back(negated(writer.write(dropped)));
    return made;
}

/// The ranges of a layer selector that stay where whole layers go; what is dropped besides is excluded.
Selector cutLayers(SelectorWriter &writer, const Selector &selector, std::vector<OperatorId> dropped)
{
    const SelectorIndex &index = writer.index();
    const auto count = static_cast<std::int32_t>(index.layers().scopes.size());
    const std::int32_t last = selector.lastLayer < 0 ? count - 1 : std::min(selector.lastLayer, count - 1);
    std::vector<std::int32_t> left; // forward operators of each layer
    for (std::int32_t layer = 0; layer < count; ++layer)
        left.push_back(index.forwardInLayer(layer));
    for (const OperatorId op : dropped)
        --left[static_cast<std::size_t>(index.layerOf(op))];
    std::vector<Selector> ranges;
    for (std::int32_t first = selector.firstLayer; first <= last; ++first) {
        if (left[static_cast<std::size_t>(first)] == 0)
            continue;
        std::int32_t end = first;
        while (end < last && left[static_cast<std::size_t>(end + 1)] > 0)
            ++end;
        const bool openEnd = selector.lastLayer < 0 && end == last;
        ranges.push_back(selectLayers(first, openEnd ? -1 : end));
        first = end;
    }
    std::erase_if(
        dropped, [&](OperatorId op) { return left[static_cast<std::size_t>(index.layerOf(op))] == 0; });
    Selector made = selectAny(std::move(ranges));
    return dropped.empty() ? made : excluding(writer, made, dropped);
}

} // namespace

std::vector<OperatorId> united(const std::vector<OperatorId> &a, const std::vector<OperatorId> &b)
{
    std::vector<OperatorId> all;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
    return all;
}

std::vector<OperatorId> subtracted(const std::vector<OperatorId> &a, const std::vector<OperatorId> &b)
{
    std::vector<OperatorId> rest;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(rest));
    return rest;
}

std::optional<Selector> without(
    const SelectorIndex &index, const Selector &selector, const std::vector<OperatorId> &dropped)
{
    SelectorWriter writer(index);
    return without(writer, selector, dropped);
}

const Selector &SelectorWriter::write(const std::vector<OperatorId> &operators)
{
    auto known = m_known.find(operators);
    if (known == m_known.end())
        known = m_known.emplace(operators, selectorFor(m_index, operators)).first;
    return known->second;
}

std::optional<Selector> without(
    SelectorWriter &writer, const Selector &selector, const std::vector<OperatorId> &dropped)
{
    const SelectorIndex &index = writer.index();
    if (dropped.empty())
        return selector;
    if (!selectsForwardBeyond(index, selector, dropped))
        return std::nullopt;
    switch (selector.kind) {
    case SelectorKind::Set: {
        Selector made = selector;
        std::erase_if(made.names, [&](const std::string &name) {
            return std::binary_search(dropped.begin(), dropped.end(), index.findOperator(name));
        });
        return made;
    }
    case SelectorKind::Layer:
        return cutLayers(writer, selector, dropped);
    case SelectorKind::Or: {
        const Subset subset(index, dropped);
        std::vector<Selector> kept;
        for (const Selector &child : selector.children) {
            auto rest = without(writer, child, subset.selected(child));
            if (!rest)
                continue;
            if (rest->kind == SelectorKind::Or)
                std::move(rest->children.begin(), rest->children.end(), std::back_inserter(kept));
            else
                kept.push_back(*std::move(rest));
        }
        return selectAny(std::move(kept));
    }
    default:
        return excluding(writer, selector, dropped);
    }
}

} // namespace planloom
