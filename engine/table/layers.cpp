#include "engine/table/layers.h"

#include "engine/base/text.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

/// "h" of "h.12", "" of "12"; nothing if `name` does not end in a number of its own.
bool stemOf(std::string_view name, std::string_view &stem)
{
    std::size_t end = name.size();
    while (end > 0 && isDigit(name[end - 1]))
        --end;
    if (end == name.size() || (end > 0 && name[end - 1] != '.'))
        return false;
    stem = name.substr(0, end > 0 ? end - 1 : 0);
    return true;
}

/// Whether two different members share a copy class, themselves or somewhere below.
bool haveCopies(const Graph &graph, const std::vector<std::int32_t> &memberOf)
{
    std::map<std::int32_t, std::int32_t> firstMember; // by copy class
    for (std::size_t s = 0; s < graph.scopes.size(); ++s) {
        const std::int32_t copyClass = graph.scopes[s].copyClass;
        if (copyClass < 0 || memberOf[s] < 0)
            continue;
        const auto [found, isNew] = firstMember.emplace(copyClass, memberOf[s]);
        if (!isNew && found->second != memberOf[s])
            return true;
    }
    return false;
}

/// By scope: the given ancestor (or itself) it lies in, -1 if in none. Parents stand before their children.
std::vector<std::int32_t> insideOf(const Graph &graph, const std::vector<ScopeId> &ancestors)
{
    std::vector<std::int32_t> inside(graph.scopes.size(), -1);
    for (const ScopeId scope : ancestors)
        inside[static_cast<std::size_t>(scope.index)] = scope.index;
    for (std::size_t s = 1; s < graph.scopes.size(); ++s) {
        const ScopeId parent = graph.scopes[s].parent;
        if (inside[s] < 0 && parent.valid())
            inside[s] = inside[static_cast<std::size_t>(parent.index)];
    }
    return inside;
}

std::vector<ScopeId> numberedLayers(const Graph &graph)
{
    using Family = std::pair<std::int32_t, std::string_view>; // parent and stem
    std::map<Family, std::vector<ScopeId>> families;
    std::vector<Family> order;
    for (std::size_t s = 1; s < graph.scopes.size(); ++s) {
        std::string_view stem;
        if (!stemOf(graph.scopes[s].name, stem))
            continue;
        auto &members = families[{graph.scopes[s].parent.index, stem}];
        if (members.empty())
            order.emplace_back(graph.scopes[s].parent.index, stem);
        members.push_back({static_cast<std::int32_t>(s)});
    }
    std::vector<ScopeId> layers;
    std::vector<std::int32_t> taken(graph.scopes.size(), -1);
    for (const Family &family : order) { // outer families come first, since parents do
        const auto &members = families[family];
        // Lies in a layer already?
        bool nested = false;
        for (std::int32_t s = family.first; s > 0; s = graph.scopes[static_cast<std::size_t>(s)].parent.index)
            nested = nested || taken[static_cast<std::size_t>(s)] >= 0;
        if (nested || members.size() < 2 || !haveCopies(graph, insideOf(graph, members)))
            continue;
        for (const ScopeId scope : members) {
            taken[static_cast<std::size_t>(scope.index)] = scope.index;
            layers.push_back(scope);
        }
    }
    return layers;
}

std::vector<ScopeId> mostRepeated(const Graph &graph)
{
    std::map<std::int32_t, std::vector<ScopeId>> copies;
    std::vector<bool> repeated(graph.scopes.size(), false); // it or an ancestor has a class
    for (std::size_t s = 1; s < graph.scopes.size(); ++s) {
        const ScopeId parent = graph.scopes[s].parent;
        const bool inner = parent.valid() && repeated[static_cast<std::size_t>(parent.index)];
        repeated[s] = inner || graph.scopes[s].copyClass >= 0;
        if (!inner && graph.scopes[s].copyClass >= 0)
            copies[graph.scopes[s].copyClass].push_back({static_cast<std::int32_t>(s)});
    }
    std::vector<ScopeId> best;
    for (const auto &[copyClass, scopes] : copies) {
        if (scopes.size() > std::max<std::size_t>(best.size(), 1))
            best = scopes;
    }
    return best;
}

} // namespace

Layers findLayers(const Graph &graph)
{
    Layers layers;
    layers.scopes = numberedLayers(graph);
    if (layers.scopes.empty())
        layers.scopes = mostRepeated(graph);

    // In the order in which their first operators run.
    const auto inside = insideOf(graph, layers.scopes);
    std::vector<std::int32_t> first(graph.scopes.size(), static_cast<std::int32_t>(graph.operators.size()));
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward || !op.scope.valid())
            continue;
        const std::int32_t scope = inside[static_cast<std::size_t>(op.scope.index)];
        if (scope >= 0)
            first[static_cast<std::size_t>(scope)] = static_cast<std::int32_t>(i);
    }
    // Several stacks keep together: a stack is the run of layers with one parent.
    std::map<std::int32_t, std::int32_t> stackStart;
    const auto parentOf = [&](ScopeId s) { return graph.at(s).parent.index; };
    for (const ScopeId scope : layers.scopes) {
        const std::int32_t start = first[static_cast<std::size_t>(scope.index)];
        const auto [found, isNew] = stackStart.emplace(parentOf(scope), start);
        if (!isNew)
            found->second = std::min(found->second, start);
    }
    std::stable_sort(layers.scopes.begin(), layers.scopes.end(), [&](ScopeId a, ScopeId b) {
        const std::pair left{stackStart[parentOf(a)], first[static_cast<std::size_t>(a.index)]};
        const std::pair right{stackStart[parentOf(b)], first[static_cast<std::size_t>(b.index)]};
        return left < right;
    });

    std::vector<std::int32_t> number(graph.scopes.size(), -1);
    for (std::size_t i = 0; i < layers.scopes.size(); ++i)
        number[static_cast<std::size_t>(layers.scopes[i].index)] = static_cast<std::int32_t>(i);
    layers.ofScope.assign(graph.scopes.size(), -1);
    for (std::size_t s = 0; s < graph.scopes.size(); ++s) {
        if (inside[s] >= 0)
            layers.ofScope[s] = number[static_cast<std::size_t>(inside[s])];
    }
    return layers;
}

} // namespace planloom
