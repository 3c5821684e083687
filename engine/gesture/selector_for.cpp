#include "engine/gesture/gesture.h"
#include "engine/gesture/matching.h"
#include "engine/gesture/narrow.h"

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr std::size_t kMostPatterns = 16; ///< Patterns over layers that are tried: each looks at all names.

/// Covers operators by ever smaller things: layers, modules, patterns over layers, names.
class Cover
{
public:
    Cover(const SelectorIndex &index, const std::vector<OperatorId> &wanted)
        : m_index(index)
        , m_graph(index.graph())
        , m_open(m_graph.operators.size(), 0)
        , m_wantedCount(wanted.size())
    {
        for (const OperatorId op : wanted)
            m_open[static_cast<std::size_t>(op.index)] = 1;
        m_wanted = m_open;
        while (m_forwardCount < m_graph.operators.size()
            && m_graph.operators[m_forwardCount].direction == Direction::Forward)
            ++m_forwardCount;
    }

    Selector selector()
    {
        if (m_wantedCount == m_forwardCount)
            return selectAll();
        if (m_wantedCount > 1) {
            takeLayers();
            takePatternsOfModules();
            takeModules();
            takePatternsOfNames();
        }
        takeNames();
        return selectAny(std::move(m_parts));
    }

    std::size_t forwardCount() const { return m_forwardCount; }

private:
    std::size_t at(ScopeId scope) const { return static_cast<std::size_t>(scope.index); }
    std::int32_t layerOf(std::size_t op) const { return m_index.layerOf({static_cast<std::int32_t>(op)}); }

    void takeLayers()
    {
        const std::size_t count = m_index.layers().scopes.size();
        std::vector<char> whole(count, 1);
        std::vector<char> used(count, 0);
        for (std::size_t i = 0; i < m_forwardCount; ++i) {
            if (const std::int32_t layer = layerOf(i); layer >= 0) {
                whole[static_cast<std::size_t>(layer)] &= m_wanted[i];
                used[static_cast<std::size_t>(layer)] = 1;
            }
        }
        for (std::size_t i = 0; i < m_forwardCount; ++i) {
            const std::int32_t layer = layerOf(i);
            if (m_open[i] && layer >= 0 && whole[static_cast<std::size_t>(layer)])
                m_open[i] = 0;
        }
        for (std::size_t first = 0; first < count; ++first) {
            if (!whole[first] || !used[first])
                continue;
            std::size_t last = first;
            while (last + 1 < count && whole[last + 1] && used[last + 1])
                ++last;
            m_parts.push_back(selectLayers(static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)));
            first = last;
        }
    }

    /// Operators wanted, and all, in each module with what lies in it.
    void countModules()
    {
        m_moduleSize.assign(m_graph.scopes.size(), 0);
        m_moduleOpen.assign(m_graph.scopes.size(), 0);
        for (std::size_t i = 0; i < m_forwardCount; ++i) {
            if (const ScopeId scope = m_graph.operators[i].scope; scope.valid()) {
                ++m_moduleSize[at(scope)];
                m_moduleOpen[at(scope)] += m_open[i];
            }
        }
        for (std::size_t s = m_graph.scopes.size(); s-- > 1;) {
            if (const ScopeId parent = m_graph.scopes[s].parent; parent.valid()) {
                m_moduleSize[at(parent)] += m_moduleSize[s];
                m_moduleOpen[at(parent)] += m_moduleOpen[s];
            }
        }
    }

    bool isOpenModule(std::size_t s) const { return m_moduleOpen[s] > 1 && m_moduleOpen[s] == m_moduleSize[s]; }

    /// Outermost modules all of whose operators are open.
    std::vector<std::size_t> openModules()
    {
        countModules();
        std::vector<char> inside(m_graph.scopes.size(), 0);
        std::vector<std::size_t> modules;
        for (std::size_t s = 1; s < inside.size(); ++s) {
            const ScopeId parent = m_graph.scopes[s].parent;
            inside[s] = parent.valid() && inside[at(parent)];
            if (!inside[s] && isOpenModule(s)) {
                inside[s] = 1;
                modules.push_back(s);
            }
        }
        return modules;
    }

    /// Text with the layer's number as a pattern: "h.*.mlp" of "h.3.mlp" in layer "h.3"; empty if it is in none.
    std::string patternOf(const std::string &text, std::int32_t layer) const
    {
        if (layer < 0)
            return {};
        const std::string &path = m_index.pathOf(m_index.layers().scopes[static_cast<std::size_t>(layer)]);
        if (text.size() <= path.size() || text.compare(0, path.size(), path) != 0 || text[path.size()] != '.')
            return {};
        const std::size_t dot = path.rfind('.');
        const std::string prefix = dot == std::string::npos ? std::string {} : globOf(path.substr(0, dot)) + ".";
        return prefix + "*" + globOf(text.substr(path.size()));
    }

    /// Closes what `made` selects, if it is nothing but what is wanted.
    bool take(Selector made)
    {
        const auto selected = forwardSelected(m_index, made);
        const bool exact = std::all_of(selected.begin(), selected.end(),
            [&](OperatorId op) { return m_wanted[static_cast<std::size_t>(op.index)] != 0; });
        if (!exact || selected.empty())
            return false;
        for (const OperatorId op : selected)
            m_open[static_cast<std::size_t>(op.index)] = 0;
        m_parts.push_back(std::move(made));
        return true;
    }

    /// A pattern in all its layers, or in the run of layers where it is wanted.
    void takePattern(SelectorKind kind, const std::string &glob, const std::vector<std::int32_t> &layers)
    {
        const Selector pattern {.kind = kind, .text = glob};
        if (take(pattern))
            return;
        if (layers.back() - layers.front() + 1 != static_cast<std::int32_t>(layers.size()))
            return;
        Selector both {.kind = SelectorKind::And};
        both.children.push_back(pattern);
        both.children.push_back(selectLayers(layers.front(), layers.back()));
        take(std::move(both));
    }

    void takePatterns(SelectorKind kind, const std::map<std::string, std::vector<std::int32_t>> &layersOf)
    {
        std::vector<const std::pair<const std::string, std::vector<std::int32_t>> *> order;
        for (const auto &entry : layersOf) {
            if (entry.second.size() > 1)
                order.push_back(&entry);
        }
        std::stable_sort(order.begin(), order.end(),
            [](const auto *a, const auto *b) { return a->second.size() > b->second.size(); });
        if (order.size() > kMostPatterns)
            order.resize(kMostPatterns);
        for (const auto *entry : order) {
            auto layers = entry->second;
            std::sort(layers.begin(), layers.end());
            takePattern(kind, entry->first, layers);
        }
    }

    void takePatternsOfModules()
    {
        std::map<std::string, std::vector<std::int32_t>> layersOf;
        for (const std::size_t s : openModules()) {
            const std::int32_t layer = m_index.layers().ofScope[s];
            const std::string glob = patternOf(m_index.pathOf({static_cast<std::int32_t>(s)}), layer);
            if (!glob.empty())
                layersOf[glob].push_back(layer);
        }
        takePatterns(SelectorKind::In, layersOf);
    }

    void takeModules()
    {
        for (const std::size_t s : openModules())
            take(selectIn(m_index.pathOf({static_cast<std::int32_t>(s)})));
    }

    void takePatternsOfNames()
    {
        std::map<std::string, std::vector<std::int32_t>> layersOf;
        for (std::size_t i = 0; i < m_forwardCount; ++i) {
            if (!m_open[i])
                continue;
            if (const std::string glob = patternOf(m_graph.operators[i].name, layerOf(i)); !glob.empty())
                layersOf[glob].push_back(layerOf(i));
        }
        takePatterns(SelectorKind::Name, layersOf);
    }

    void takeNames()
    {
        std::vector<std::string> names;
        for (std::size_t i = 0; i < m_forwardCount; ++i) {
            if (m_open[i])
                names.push_back(m_graph.operators[i].name);
        }
        if (names.size() == 1)
            m_parts.push_back(selectName(globOf(names.front())));
        else if (!names.empty())
            m_parts.push_back(selectSet(std::move(names)));
    }

    const SelectorIndex &m_index;
    const Graph &m_graph;
    std::vector<char> m_open {}; ///< Wanted and not covered yet.
    std::vector<char> m_wanted {};
    std::size_t m_wantedCount = 0;
    std::size_t m_forwardCount = 0;
    std::vector<std::int32_t> m_moduleSize {};
    std::vector<std::int32_t> m_moduleOpen {};
    std::vector<Selector> m_parts {};
};

Selector nothing()
{
    Selector made {.kind = SelectorKind::Not};
    made.children.push_back(selectAll());
    return made;
}

std::string layerRange(const Selector &layers)
{
    if (layers.firstLayer == layers.lastLayer)
        return std::to_string(layers.firstLayer);
    return std::to_string(layers.firstLayer) + "-"
        + (layers.lastLayer < 0 ? std::string("end") : std::to_string(layers.lastLayer));
}

std::string operatorsText(std::size_t count)
{
    return std::to_string(count) + (count == 1 ? " operator" : " operators");
}

} // namespace

Selector selectorFor(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    const auto wanted = forwardOnes(index.graph(), operators);
    if (wanted.empty())
        return nothing();
    Cover cover(index, wanted);
    Selector selector = cover.selector();
    const std::size_t others = cover.forwardCount() - wanted.size();
    if (others == 0 || others >= wanted.size() || selector.kind == SelectorKind::Layer)
        return selector;
    // Most of the model: all but the others may be shorter.
    std::vector<OperatorId> rest;
    for (std::size_t i = 0, w = 0; i < cover.forwardCount(); ++i) {
        if (w < wanted.size() && wanted[w].index == static_cast<std::int32_t>(i))
            ++w;
        else
            rest.push_back({static_cast<std::int32_t>(i)});
    }
    Selector inverse {.kind = SelectorKind::Not};
    inverse.children.push_back(Cover(index, rest).selector());
    return toString(inverse).size() < toString(selector).size() ? inverse : selector;
}

std::string wordsFor(const SelectorIndex &index, const std::vector<OperatorId> &operators)
{
    const auto wanted = forwardOnes(index.graph(), operators);
    if (wanted.empty())
        return "no operators";
    if (wanted.size() == 1)
        return index.graph().at(wanted.front()).name;
    const Selector selector = selectorFor(index, wanted);
    switch (selector.kind) {
    case SelectorKind::All:
        return "all operators";
    case SelectorKind::Layer:
        return (selector.firstLayer == selector.lastLayer ? "layer " : "layers ") + layerRange(selector);
    case SelectorKind::In:
    case SelectorKind::Name:
        if (const auto name = plainName(selector.text))
            return *name;
        return selector.text + " (" + operatorsText(wanted.size()) + ")";
    case SelectorKind::And:
        if (selector.children.front().kind != SelectorKind::Not && selector.children.back().kind == SelectorKind::Layer)
            return selector.children.front().text + " of layers " + layerRange(selector.children.back());
        break;
    case SelectorKind::Or:
        if (std::all_of(selector.children.begin(), selector.children.end(),
                [](const Selector &s) { return s.kind == SelectorKind::Layer; })) {
            std::string text = "layers ";
            for (std::size_t i = 0; i < selector.children.size(); ++i)
                text += (i > 0 ? ", " : "") + layerRange(selector.children[i]);
            return text;
        }
        break;
    default:
        break;
    }
    return operatorsText(wanted.size());
}

} // namespace planloom
