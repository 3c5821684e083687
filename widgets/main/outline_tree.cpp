#include "widgets/main/outline_tree.h"

#include "engine/base/ids.h"
#include "engine/base/text.h"
#include "widgets/common/format.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kNodesBetweenLooks = 4096; ///< At the stop token.

class Builder
{
public:
    Builder(const GraphSnapshot &graph, const std::string &filter)
        : m_tree(std::make_shared<OutlineTree>())
        , m_graph(*graph)
        , m_filter(filter)
        , m_scopeNode(graph->scopes.size(), -1)
        , m_scopeHit(graph->scopes.size(), kUnknown)
    {
        m_tree->graph = graph;
        m_tree->filter = filter;
        m_tree->nodes.resize(1);
        m_tree->nodeOfOperator.assign(graph->operators.size(), -1);
        if (!m_scopeNode.empty())
            m_scopeNode.front() = 0;
    }

    OutlineTreeSnapshot build(const std::stop_token &stop)
    {
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            if (i % kNodesBetweenLooks == 0 && stop.stop_requested())
                return nullptr;
            const Operator &op = m_graph.operators[i];
            if (op.direction != Direction::Forward || !isHit(op))
                continue;
            const std::int32_t parent = nodeOfScope(op.scope);
            m_tree->nodeOfOperator[i] = addNode(parent, {}, OperatorId{static_cast<std::int32_t>(i)});
            for (std::int32_t node = parent; node >= 0; node = m_tree->nodes[at(node)].parent)
                ++m_tree->nodes[at(node)].operators;
        }
        placeChildren();
        return std::move(m_tree);
    }

private:
    enum : std::int8_t { kUnknown = -1, kMiss, kHit };

    bool has(const std::string &text) const { return containsLetters(text, m_filter); }

    /// The scope, or one around it, is named so. Without recursion: scopes nest as deep as files say.
    bool isHit(ScopeId scope)
    {
        std::vector<ScopeId> open;
        std::int8_t hit = kMiss;
        for (; scope.valid(); scope = m_graph.at(scope).parent) {
            if (m_scopeHit[at(scope.index)] != kUnknown) {
                hit = m_scopeHit[at(scope.index)];
                break;
            }
            open.push_back(scope);
        }
        for (auto inner = open.rbegin(); inner != open.rend(); ++inner) {
            if (hit == kMiss && has(m_graph.at(*inner).name))
                hit = kHit;
            m_scopeHit[at(inner->index)] = hit;
        }
        return hit == kHit;
    }

    bool isHit(const Operator &op)
    {
        return m_filter.empty() || isHit(op.scope) || has(shortName(m_graph, op))
            || has(std::string(typeNameOf(op)));
    }

    std::int32_t addNode(std::int32_t parent, ScopeId scope, OperatorId op)
    {
        const auto index = static_cast<std::int32_t>(m_tree->nodes.size());
        OutlineTree::Node node;
        node.parent = parent;
        node.row = m_tree->nodes[at(parent)].childrenEnd++; // counted first, placed at the end
        node.scope = scope;
        node.op = op;
        m_tree->nodes.push_back(node);
        return index;
    }

    std::int32_t nodeOfScope(ScopeId scope)
    {
        // Outermost missing ancestor first.
        std::vector<ScopeId> missing;
        while (scope.valid() && m_scopeNode[at(scope.index)] < 0) {
            missing.push_back(scope);
            scope = m_graph.at(scope).parent;
        }
        std::int32_t node = scope.valid() ? m_scopeNode[at(scope.index)] : 0;
        for (auto next = missing.rbegin(); next != missing.rend(); ++next) {
            node = addNode(node, *next, {});
            m_scopeNode[at(next->index)] = node;
        }
        return node;
    }

    void placeChildren()
    {
        std::int32_t begin = 0;
        for (OutlineTree::Node &node : m_tree->nodes) {
            const std::int32_t count = node.childrenEnd;
            node.childrenBegin = begin;
            begin += count;
            node.childrenEnd = begin;
        }
        m_tree->children.resize(m_tree->nodes.size() - 1);
        for (std::size_t i = 1; i < m_tree->nodes.size(); ++i) {
            const OutlineTree::Node &node = m_tree->nodes[i];
            m_tree->children[at(m_tree->nodes[at(node.parent)].childrenBegin + node.row)] =
                static_cast<std::int32_t>(i);
        }
    }

    std::shared_ptr<OutlineTree> m_tree;
    const Graph &m_graph;
    std::string m_filter;
    std::vector<std::int32_t> m_scopeNode; ///< By scope; -1 if not shown.
    std::vector<std::int8_t> m_scopeHit;
};

} // namespace

OutlineTreeSnapshot makeOutlineTree(
    const GraphSnapshot &graph, const std::string &filter, std::stop_token stop)
{
    return graph ? Builder(graph, filter).build(stop) : std::make_shared<const OutlineTree>();
}

} // namespace planloom
