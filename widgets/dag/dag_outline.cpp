#include "widgets/dag/dag_outline.h"

#include "engine/base/ids.h"
#include "widgets/common/format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

/// A tree under construction: children are added in order, then rewritten bottom-up.
struct Draft {
    OutlineItem::Kind kind = OutlineItem::Kind::Group;
    std::string label{};
    ScopeId scope{};
    bool artificial = false;
    std::int32_t unit = -1;
    std::int32_t copyClass = -1;
    std::vector<std::int32_t> children{};
};

/// "h.12" -> "h.#": what the names of repeated layers have in common.
std::string patternOf(const std::string &name)
{
    std::string pattern;
    for (const char c : name) {
        if (std::isdigit(static_cast<unsigned char>(c)) == 0)
            pattern += c;
        else if (pattern.empty() || pattern.back() != '#')
            pattern += '#';
    }
    return pattern;
}

/// "h.#" -> "h": the name of the stack; "layer" where nothing is left.
std::string stackLabel(const std::string &pattern)
{
    std::string label;
    for (const char c : pattern) {
        if (c != '#')
            label += c;
    }
    while (!label.empty() && (label.back() == '.' || label.back() == '_' || label.back() == '-'))
        label.pop_back();
    while (!label.empty() && (label.front() == '.' || label.front() == '_'))
        label.erase(label.begin());
    return label.empty() ? "layer" : label;
}

constexpr std::int32_t kMostScopeDepth = 48;

class OutlineBuilder
{
public:
    OutlineBuilder(GraphSnapshot graph, DagMode mode)
        : m_graph(*graph)
        , m_mode(mode)
    {
        m_outline.graph = std::move(graph);
        m_outline.mode = mode;
        m_outline.unitOfOperator.assign(m_graph.operators.size(), -1);
    }

    DagOutline build()
    {
        m_drafts.emplace_back();
        m_drafts[0].scope = ScopeId{0};
        m_drafts[0].label = m_graph.name.empty() ? "model" : m_graph.name;
        if (m_mode == DagMode::Unrolled)
            addUnrolled();
        else
            addFolded();
        tidy(0);
        emit(0, -1, 0);
        renumberUnits();
        addEdges();
        numberSiblings();
        return std::move(m_outline);
    }

private:
    void numberSiblings()
    {
        std::unordered_map<std::string, std::int32_t> seen;
        for (const auto &item : m_outline.items) {
            m_outline.groups += item.kind != OutlineItem::Kind::Operator ? 1 : 0;
            m_outline.stacks += item.kind == OutlineItem::Kind::Stack ? 1 : 0;
            seen.clear();
            for (const auto child : item.children) {
                auto &inner = m_outline.items[at(child)];
                inner.number = ++seen[inner.label];
            }
        }
    }

    void addFolded()
    {
        std::map<std::int32_t, std::int32_t> groups{{0, 0}};
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const auto &op = m_graph.operators[i];
            const OperatorId id{static_cast<std::int32_t>(i)};
            if (op.direction == Direction::Forward) {
                addUnit(id, 0, groups);
                continue;
            }
            if (m_mode == DagMode::ForwardOnly)
                continue;
            const std::int32_t owner = op.direction == Direction::Backward ? mirrorUnit(op) : weightOwner(op);
            if (owner < 0) {
                addUnit(id, 0, groups);
                continue;
            }
            auto &unit = m_units[at(owner)];
            m_outline.unitOfOperator[i] = owner;
            if (op.direction == Direction::Optimizer)
                unit.optimizers.push_back(id);
            else
                unit.backward = id;
        }
    }

    void addUnrolled()
    {
        static constexpr std::array<const char *, 3> kLabels{"Forward", "Backward", "Optimizer"};
        std::array<std::int32_t, 3> roots{-1, -1, -1};
        std::array<std::map<std::int32_t, std::int32_t>, 3> groups;
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const auto direction = static_cast<std::size_t>(m_graph.operators[i].direction);
            if (roots[direction] < 0) {
                roots[direction] = static_cast<std::int32_t>(m_drafts.size());
                m_drafts.emplace_back();
                m_drafts.back().label = kLabels[direction];
                m_drafts[0].children.push_back(roots[direction]);
                groups[direction] = {{0, roots[direction]}};
            }
            addUnit(OperatorId{static_cast<std::int32_t>(i)}, roots[direction], groups[direction]);
        }
    }

    /// The unit of the forward operator that a backward one mirrors, if it has no backward yet; else -1.
    std::int32_t mirrorUnit(const Operator &op) const
    {
        if (!op.mirror.valid() || m_graph.at(op.mirror).direction != Direction::Forward)
            return -1;
        const std::int32_t unit = m_outline.unitOfOperator[at(op.mirror.index)];
        return unit >= 0 && !m_units[at(unit)].backward.valid() ? unit : -1;
    }

    /// The unit of the first forward operator that reads the weight that an operator of the optimizer is for;
    /// else -1.
    std::int32_t weightOwner(const Operator &op)
    {
        if (m_firstReader.empty()) {
            m_firstReader.assign(m_graph.tensors.size(), -1);
            for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
                if (m_graph.operators[i].direction != Direction::Forward)
                    continue;
                for (const auto input : m_graph.operators[i].inputs) {
                    if (input.valid() && m_firstReader[at(input.index)] < 0)
                        m_firstReader[at(input.index)] = static_cast<std::int32_t>(i);
                }
            }
        }
        if (op.inputs.empty() || !op.inputs.front().valid())
            return -1;
        // Clipping reads the weight's gradient alone.
        const Tensor &front = m_graph.at(op.inputs.front());
        const TensorId weight = front.role == TensorRole::Gradient ? front.of : op.inputs.front();
        const std::int32_t reader = m_firstReader[at(weight.index)];
        return reader < 0 ? -1 : m_outline.unitOfOperator[at(reader)];
    }

    void addUnit(OperatorId id, std::int32_t root, std::map<std::int32_t, std::int32_t> &groups)
    {
        const auto &op = m_graph.at(id);
        const std::int32_t group =
            groupOf(boundedScope(op.scope.valid() ? op.scope : ScopeId{0}), root, groups);
        const auto unit = static_cast<std::int32_t>(m_units.size());
        m_units.push_back({.op = id});
        m_outline.unitOfOperator[at(id.index)] = unit;
        const auto draft = static_cast<std::int32_t>(m_drafts.size());
        m_drafts.emplace_back();
        m_drafts.back().kind = OutlineItem::Kind::Operator;
        m_drafts.back().label = shortName(m_graph, op);
        m_drafts.back().unit = unit;
        m_drafts[at(group)].children.push_back(draft);
    }

    /// `scope`, or its ancestor at the greatest depth that is shown: a hostile file may nest without end.
    ScopeId boundedScope(ScopeId scope)
    {
        if (m_scopeDepth.empty()) {
            for (const auto &described : m_graph.scopes)
                m_scopeDepth.push_back(
                    described.parent.valid() ? m_scopeDepth[at(described.parent.index)] + 1 : 0);
        }
        while (m_scopeDepth[at(scope.index)] > kMostScopeDepth)
            scope = m_graph.at(scope).parent;
        return scope;
    }

    std::int32_t groupOf(ScopeId scope, std::int32_t root, std::map<std::int32_t, std::int32_t> &groups)
    {
        if (const auto found = groups.find(scope.index); found != groups.end())
            return found->second;
        const auto &described = m_graph.at(scope);
        const std::int32_t parent =
            described.parent.valid() ? groupOf(boundedScope(described.parent), root, groups) : root;
        const auto draft = static_cast<std::int32_t>(m_drafts.size());
        m_drafts.emplace_back();
        m_drafts.back().label = described.name;
        m_drafts.back().scope = scope;
        m_drafts.back().copyClass = described.copyClass;
        m_drafts[at(parent)].children.push_back(draft);
        groups.emplace(scope.index, draft);
        return draft;
    }

    /// Leaves out groups of one child, makes stacks, bounds the number of children; bottom-up.
    void tidy(std::int32_t draft)
    {
        // Drafts are addressed by index: the vector grows below.
        for (std::size_t i = 0; i < m_drafts[at(draft)].children.size(); ++i) {
            const std::int32_t child = m_drafts[at(draft)].children[i];
            tidy(child);
            const auto &inner = m_drafts[at(child)];
            if (inner.kind != OutlineItem::Kind::Group || inner.children.size() != 1)
                continue;
            const std::int32_t only = inner.children.front();
            const std::string label = inner.label + "." + m_drafts[at(only)].label;
            const std::int32_t copyClass = inner.copyClass;
            auto &kept = m_drafts[at(only)];
            kept.label = label;
            if (copyClass >= 0)
                kept.copyClass = copyClass;
            m_drafts[at(draft)].children[i] = only;
        }
        makeStacks(draft);
        boundChildren(draft);
    }

    bool sameShape(std::int32_t a, std::int32_t b) const
    {
        const auto &first = m_drafts[at(a)];
        const auto &second = m_drafts[at(b)];
        if (first.kind != second.kind || first.children.size() != second.children.size())
            return false;
        if (first.kind == OutlineItem::Kind::Operator)
            return sameUnit(m_units[at(first.unit)], m_units[at(second.unit)]);
        for (std::size_t i = 0; i < first.children.size(); ++i) {
            if (!sameShape(first.children[i], second.children[i]))
                return false;
        }
        return true;
    }

    bool sameUnit(const OutlineUnit &a, const OutlineUnit &b) const
    {
        const auto &first = m_graph.at(a.op);
        const auto &second = m_graph.at(b.op);
        return first.kind == second.kind && first.direction == second.direction
            && a.backward.valid() == b.backward.valid() && a.optimizers.size() == b.optimizers.size();
    }

    void makeStacks(std::int32_t draft)
    {
        const auto children = m_drafts[at(draft)].children;
        std::vector<std::int32_t> result;
        for (std::size_t i = 0; i < children.size();) {
            const auto &first = m_drafts[at(children[i])];
            std::size_t last = i + 1;
            if (first.kind == OutlineItem::Kind::Group && first.copyClass >= 0) {
                const std::string pattern = patternOf(first.label);
                if (pattern.find('#') != std::string::npos) {
                    while (last < children.size() && last - i < DagOutline::kMostChildren
                        && m_drafts[at(children[last])].copyClass == first.copyClass
                        && patternOf(m_drafts[at(children[last])].label) == pattern
                        && sameShape(children[i], children[last]))
                        ++last;
                }
            }
            if (last - i < 2) {
                result.push_back(children[i++]);
                continue;
            }
            const auto stack = static_cast<std::int32_t>(m_drafts.size());
            Draft made;
            made.kind = OutlineItem::Kind::Stack;
            made.label = stackLabel(patternOf(first.label));
            made.children.assign(children.begin() + static_cast<std::ptrdiff_t>(i),
                children.begin() + static_cast<std::ptrdiff_t>(last));
            m_drafts.push_back(std::move(made));
            result.push_back(stack);
            i = last;
        }
        m_drafts[at(draft)].children = std::move(result);
    }

    /// Cuts a long list of children into groups of about equal length, again until it is short enough.
    void boundChildren(std::int32_t draft)
    {
        while (m_drafts[at(draft)].children.size() > DagOutline::kMostChildren) {
            const auto children = m_drafts[at(draft)].children;
            const std::size_t pieces =
                (children.size() + DagOutline::kMostChildren - 1) / DagOutline::kMostChildren;
            std::vector<std::int32_t> result;
            for (std::size_t piece = 0; piece < pieces; ++piece) {
                const std::size_t from = children.size() * piece / pieces;
                const std::size_t to = children.size() * (piece + 1) / pieces;
                const auto group = static_cast<std::int32_t>(m_drafts.size());
                Draft made;
                made.label = std::to_string(from + 1) + "–" + std::to_string(to);
                made.artificial = true;
                made.children.assign(children.begin() + static_cast<std::ptrdiff_t>(from),
                    children.begin() + static_cast<std::ptrdiff_t>(to));
                m_drafts.push_back(std::move(made));
                result.push_back(group);
            }
            m_drafts[at(draft)].children = std::move(result);
        }
    }

    /// Numbers items and units depth-first.
    std::int32_t emit(std::int32_t draft, std::int32_t parent, std::int32_t depth)
    {
        const auto item = static_cast<std::int32_t>(m_outline.items.size());
        m_outline.items.emplace_back();
        {
            auto &made = m_outline.items.back();
            auto &from = m_drafts[at(draft)];
            made.kind = from.kind;
            made.parent = parent;
            made.label = std::move(from.label);
            made.scope = from.scope;
            made.artificial = from.artificial;
            made.depth = depth;
            made.begin = static_cast<std::int32_t>(m_order.size());
            if (from.unit >= 0)
                m_order.push_back(from.unit);
        }
        std::vector<std::int32_t> children;
        for (const auto child : m_drafts[at(draft)].children)
            children.push_back(emit(child, item, depth + 1));
        auto &made = m_outline.items[at(item)];
        made.children = std::move(children);
        made.end = static_cast<std::int32_t>(m_order.size());
        if (made.kind == OutlineItem::Kind::Operator)
            m_units[at(m_order[at(made.begin)])].item = item;
        return item;
    }

    void renumberUnits()
    {
        std::vector<std::int32_t> placeOf(m_units.size());
        m_outline.units.reserve(m_units.size());
        for (std::size_t place = 0; place < m_order.size(); ++place) {
            placeOf[at(m_order[place])] = static_cast<std::int32_t>(place);
            m_outline.units.push_back(std::move(m_units[at(m_order[place])]));
        }
        for (auto &unit : m_outline.unitOfOperator) {
            if (unit >= 0)
                unit = placeOf[at(unit)];
        }
    }

    /// Producer to consumer over tensors. Folded operators' own edges mirror their forwards' and are left
    /// out.
    void addEdges()
    {
        const auto isShown = [this](std::size_t op) {
            const std::int32_t unit = m_outline.unitOfOperator[op];
            return unit >= 0 && m_outline.units[at(unit)].op.index == static_cast<std::int32_t>(op);
        };
        std::vector<std::vector<std::int32_t>> producers(m_graph.tensors.size());
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            const std::int32_t unit = m_outline.unitOfOperator[i];
            if (unit < 0)
                continue;
            for (const auto output : m_graph.operators[i].outputs) {
                if (output.valid())
                    producers[at(output.index)].push_back(unit);
            }
        }
        for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
            if (!isShown(i))
                continue;
            const std::int32_t to = m_outline.unitOfOperator[i];
            for (const auto input : m_graph.operators[i].inputs) {
                if (!input.valid())
                    continue;
                for (const auto from : producers[at(input.index)]) {
                    if (from != to)
                        m_outline.edges.push_back({from, to});
                }
            }
        }
        std::sort(m_outline.edges.begin(), m_outline.edges.end());
        m_outline.edges.erase(
            std::unique(m_outline.edges.begin(), m_outline.edges.end()), m_outline.edges.end());
        m_outline.edgesByTarget = m_outline.edges;
        std::sort(m_outline.edgesByTarget.begin(), m_outline.edgesByTarget.end(),
            [](const OutlineEdge &a, const OutlineEdge &b) {
                return a.to != b.to ? a.to < b.to : a.from < b.from;
            });
    }

    const Graph &m_graph;
    DagMode m_mode;
    DagOutline m_outline{};
    std::vector<Draft> m_drafts{};
    std::vector<OutlineUnit> m_units{};
    std::vector<std::int32_t> m_order{}; ///< Units depth-first.
    std::vector<std::int32_t> m_firstReader{}; ///< By tensor.
    std::vector<std::int32_t> m_scopeDepth{};
};

} // namespace

std::vector<OperatorId> DagOutline::operatorsOf(std::int32_t item, bool folded) const
{
    std::vector<OperatorId> result;
    for (std::int32_t i = at(item).begin; i < at(item).end; ++i) {
        const auto &unit = units[static_cast<std::size_t>(i)];
        result.push_back(unit.op);
        if (!folded)
            continue;
        if (unit.backward.valid())
            result.push_back(unit.backward);
        result.insert(result.end(), unit.optimizers.begin(), unit.optimizers.end());
    }
    std::sort(result.begin(), result.end());
    return result;
}

std::vector<std::int32_t> DagOutline::pathTo(std::int32_t item) const
{
    std::vector<std::int32_t> path;
    for (; item > 0; item = at(item).parent)
        path.push_back(item);
    std::reverse(path.begin(), path.end());
    return path;
}

DagOutline buildOutline(GraphSnapshot graph, DagMode mode)
{
    return OutlineBuilder(std::move(graph), mode).build();
}

} // namespace planloom
