#include "engine/binding/nothing_selected.h"

#include "engine/base/nearest_name.h"
#include "engine/graph/dimensions/dimension_classes.h"

#include <set>
#include <string_view>
#include <vector>

namespace planloom {

namespace {

constexpr std::size_t kMostNames = 8;

/// What rows may call dimensions in any model.
std::vector<std::string_view> meaningNames()
{
    std::vector<std::string_view> names;
    for (int i = 1; i < kDimensionMeaningCount; ++i)
        names.emplace_back(nameOf(static_cast<DimensionMeaning>(i)));
    return names;
}

/// "a, b, c and 4 more"
std::string listed(const std::set<std::string> &names)
{
    std::string text;
    std::size_t told = 0;
    for (const std::string &name : names) {
        if (told++ == kMostNames)
            break;
        text += (text.empty() ? "" : ", ") + name;
    }
    return text
        + (names.size() > kMostNames ? " and " + std::to_string(names.size() - kMostNames) + " more" : "");
}

/// What atoms of this kind could have named.
std::set<std::string> namesFor(SelectorKind kind, const Graph &graph, const SelectorIndex &index)
{
    std::set<std::string> names;
    for (const Operator &op : graph.operators) {
        if (kind == SelectorKind::Kind)
            names.insert(typeNameOf(op));
        else if (kind == SelectorKind::In && !index.pathOf(op.scope).empty())
            names.insert(index.pathOf(op.scope));
        else if (kind == SelectorKind::Name || kind == SelectorKind::Set)
            names.insert(op.name);
        for (const TensorId id : op.inputs) {
            if (kind == SelectorKind::Weight && id && graph.at(id).role == TensorRole::Weight)
                names.insert(graph.at(id).name);
        }
    }
    return names;
}

std::string wordsOf(const Selector &atom, const Graph &graph, const SelectorIndex &index)
{
    const auto told = [&](const std::string &none, const std::string &some) {
        const auto names = namesFor(atom.kind, graph, index);
        const std::vector<std::string_view> known(names.begin(), names.end());
        const std::string nearest = didYouMean(atom.text, known);
        const std::string there = names.empty() ? "there is none at all" : "there are " + listed(names);
        return none + " '" + atom.text + "'" + some + (nearest.empty() ? ": " + there : ": " + nearest);
    };
    switch (atom.kind) {
    case SelectorKind::Kind:
        return told("no operator is of kind", "");
    case SelectorKind::Name:
        return told("no operator is called", "");
    case SelectorKind::In:
        return told("no operator lies in a module", "");
    case SelectorKind::Weight:
        return told("no operator reads a weight called", "");
    case SelectorKind::Direction:
        return "the model has no training step, so there are forward operators alone";
    case SelectorKind::Layer:
        return "the model has no layers, as nothing in it repeats";
    default:
        return "the selector names no operator of this model";
    }
}

/// The first atom that names nothing; null if each names something.
const Selector *firstIdle(const Selector &selector, const SelectorIndex &index)
{
    if (selector.children.empty())
        return index.select(selector).empty() ? &selector : nullptr;
    for (const Selector &child : selector.children) {
        if (const Selector *found = firstIdle(child, index))
            return found;
    }
    return nullptr;
}

} // namespace

std::string whyNothingSelected(const Selector &selector, const Graph &graph, const SelectorIndex &index)
{
    if (const Selector *atom = firstIdle(selector, index))
        return "the selector names no operator of this model: " + wordsOf(*atom, graph, index);
    return "the selector names no operator of this model: each of its parts names some, but none is named by "
           "all "
           "of them together";
}

std::string whyNothingBound(
    const std::string &dimension, const std::vector<OperatorId> &selected, const Graph &graph)
{
    std::set<std::string> names;
    std::set<std::string> dimensions;
    for (const OperatorId id : selected) {
        names.insert(graph.at(id).name);
        for (const Dimension &each : graph.at(id).annotation.dimensions)
            dimensions.insert(each.name);
    }
    std::string text = selected.size() == 1
        ? "the operator it selects, " + listed(names) + ", cannot take this rule"
        : "none of the " + std::to_string(selected.size()) + " operators it selects can take this rule";
    if (dimension.empty())
        return text + (selected.size() == 1 ? "" : ": " + listed(names));
    const std::string nearest = didYouMean(dimension, meaningNames());
    return text + ": it has no dimension '" + dimension + "', "
        + (nearest.empty() ? "there are " + listed(dimensions) : nearest);
}

} // namespace planloom
