#include "engine/base/ids.h"
#include "engine/gesture/gesture.h"
#include "engine/gesture/narrow.h"
#include "engine/table/selector_matcher.h"

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
        , m_wanted(wanted)
        , m_rest(wanted)
    {
    }

    Selector selector()
    {
        if (m_wanted.size() == m_index.forwardCount())
            return selectAll();
        if (m_wanted.size() > 1) {
            takeLayers();
            takePatternsOfModules();
            takeModules();
            takePatternsOfNames();
        }
        takeNames();
        return selectAny(std::move(m_parts));
    }

private:
    void takeLayers()
    {
        std::vector<std::int32_t> wanted(m_index.layers().scopes.size(), 0);
        for (const OperatorId op : m_wanted) {
            if (const std::int32_t layer = m_index.layerOf(op); layer >= 0)
                ++wanted[static_cast<std::size_t>(layer)];
        }
        const auto whole = [&](std::size_t layer) {
            return wanted[layer] > 0
                && wanted[layer] == m_index.forwardInLayer(static_cast<std::int32_t>(layer));
        };
        std::erase_if(m_rest, [&](OperatorId op) {
            const std::int32_t layer = m_index.layerOf(op);
            return layer >= 0 && whole(static_cast<std::size_t>(layer));
        });
        for (std::size_t first = 0; first < wanted.size(); ++first) {
            if (!whole(first))
                continue;
            std::size_t last = first;
            while (last + 1 < wanted.size() && whole(last + 1))
                ++last;
            m_parts.push_back(
                selectLayers(static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)));
            first = last;
        }
    }

    /// Outermost modules all of whose operators, more than one, are left.
    std::vector<ScopeId> openModules() const
    {
        std::vector<std::int32_t> left(m_graph.scopes.size(), 0);
        std::vector<ScopeId> touched;
        for (const OperatorId op : m_rest) {
            for (ScopeId s = m_graph.at(op).scope; s.valid(); s = m_graph.at(s).parent) {
                if (left[at(s)]++ == 0)
                    touched.push_back(s);
            }
        }
        std::sort(touched.begin(), touched.end());
        std::vector<char> inside(m_graph.scopes.size(), 0);
        std::vector<ScopeId> modules;
        for (const ScopeId s : touched) {
            const ScopeId parent = m_graph.at(s).parent;
            inside[at(s)] = parent.valid() && inside[at(parent)];
            if (s.index > 0 && !inside[at(s)] && left[at(s)] > 1 && left[at(s)] == m_index.forwardBelow(s)) {
                inside[at(s)] = 1;
                modules.push_back(s);
            }
        }
        return modules;
    }

    /// Text with the layer's number as a pattern: "h.*.mlp" of "h.3.mlp" in layer "h.3"; empty if it is in
    /// none.
    std::string patternOf(const std::string &text, std::int32_t layer) const
    {
        if (layer < 0)
            return {};
        const std::string &path = m_index.pathOf(m_index.layers().scopes[static_cast<std::size_t>(layer)]);
        if (text.size() <= path.size() || text.compare(0, path.size(), path) != 0 || text[path.size()] != '.')
            return {};
        const std::size_t dot = path.rfind('.');
        const std::string prefix =
            dot == std::string::npos ? std::string{} : globOf(path.substr(0, dot)) + ".";
        return prefix + "*" + globOf(text.substr(path.size()));
    }

    /// Closes what `made` selects, if it is nothing but what is wanted.
    bool take(Selector made)
    {
        if (selectsForwardBeyond(m_index, made, m_wanted))
            return false;
        const auto selected = forwardSelected(m_index, made);
        if (selected.empty())
            return false;
        m_rest = subtracted(m_rest, selected);
        m_parts.push_back(std::move(made));
        return true;
    }

    /// A pattern in all its layers, or in the run of layers where it is wanted.
    void takePattern(SelectorKind kind, const std::string &glob, const std::vector<std::int32_t> &layers)
    {
        const Selector pattern{.kind = kind, .text = glob};
        if (take(pattern))
            return;
        if (layers.back() - layers.front() + 1 != static_cast<std::int32_t>(layers.size()))
            return;
        Selector both{.kind = SelectorKind::And};
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
        for (const ScopeId s : openModules()) {
            const std::int32_t layer = m_index.layers().ofScope[at(s)];
            const std::string glob = patternOf(m_index.pathOf(s), layer);
            if (!glob.empty())
                layersOf[glob].push_back(layer);
        }
        takePatterns(SelectorKind::In, layersOf);
    }

    void takeModules()
    {
        for (const ScopeId s : openModules())
            take(selectIn(m_index.pathOf(s)));
    }

    void takePatternsOfNames()
    {
        std::map<std::string, std::vector<std::int32_t>> layersOf;
        for (const OperatorId op : m_rest) {
            const std::int32_t layer = m_index.layerOf(op);
            if (const std::string glob = patternOf(m_graph.at(op).name, layer); !glob.empty())
                layersOf[glob].push_back(layer);
        }
        takePatterns(SelectorKind::Name, layersOf);
    }

    void takeNames()
    {
        std::vector<std::string> names;
        for (const OperatorId op : m_rest)
            names.push_back(m_graph.at(op).name);
        if (names.size() == 1)
            m_parts.push_back(selectName(globOf(names.front())));
        else if (!names.empty())
            m_parts.push_back(selectSet(std::move(names)));
    }

    const SelectorIndex &m_index;
    const Graph &m_graph;
    const std::vector<OperatorId> &m_wanted;
    std::vector<OperatorId> m_rest{}; ///< Wanted and not covered yet.
    std::vector<Selector> m_parts{};
};

Selector nothing()
{
    Selector made{.kind = SelectorKind::Not};
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
    const std::size_t others = index.forwardCount() - wanted.size();
    if (others == 0 || others >= wanted.size() || selector.kind == SelectorKind::Layer)
        return selector;
    // Most of the model: all but the others may be shorter.
    std::vector<OperatorId> rest;
    for (std::size_t i = 0, w = 0; i < index.forwardCount(); ++i) {
        if (w < wanted.size() && wanted[w].index == static_cast<std::int32_t>(i))
            ++w;
        else
            rest.push_back({static_cast<std::int32_t>(i)});
    }
    Selector inverse{.kind = SelectorKind::Not};
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
        if (selector.children.front().kind != SelectorKind::Not
            && selector.children.back().kind == SelectorKind::Layer)
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
