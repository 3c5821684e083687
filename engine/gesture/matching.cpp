#include "engine/gesture/matching.h"

#include <algorithm>

namespace planloom {

std::optional<std::string> plainName(std::string_view glob)
{
    std::string name;
    for (std::size_t i = 0; i < glob.size(); ++i) {
        if (glob[i] == '*' || glob[i] == '?')
            return std::nullopt;
        if (glob[i] == '\\' && i + 1 < glob.size())
            ++i;
        name += glob[i];
    }
    return name;
}

Glob::Glob(std::string_view glob)
    : m_glob(glob)
{
    const std::size_t star = glob.find('*');
    m_simple = star != std::string_view::npos
        && glob.find_first_of("*?\\", star + 1) == std::string_view::npos
        && glob.find_first_of("?\\") == std::string_view::npos;
    if (m_simple) {
        m_head = glob.substr(0, star);
        m_tail = glob.substr(star + 1);
    }
}

// --- Subset
// ---------------------------------------------------------------------------------------------------------

Subset::Subset(const SelectorIndex &index, std::vector<OperatorId> operators)
    : m_index(index)
    , m_operators(std::move(operators))
{
    const Graph &graph = index.graph();
    m_position.assign(graph.operators.size(), -1);
    m_scopeOf.assign(m_operators.size(), -1);
    std::vector<char> needed(graph.scopes.size(), 0);
    for (std::size_t i = 0; i < m_operators.size(); ++i) {
        m_position[static_cast<std::size_t>(m_operators[i].index)] = static_cast<std::int32_t>(i);
        for (ScopeId s = graph.at(m_operators[i]).scope;
             s.valid() && !needed[static_cast<std::size_t>(s.index)]; s = graph.at(s).parent)
            needed[static_cast<std::size_t>(s.index)] = 1;
    }
    std::vector<std::int32_t> position(graph.scopes.size(), -1);
    for (std::size_t s = 0; s < needed.size(); ++s) {
        if (!needed[s])
            continue;
        position[s] = static_cast<std::int32_t>(m_scopes.size());
        m_scopes.push_back({static_cast<std::int32_t>(s)});
        const ScopeId parent = graph.scopes[s].parent;
        m_scopeParent.push_back(
            s > 0 && parent.valid() ? position[static_cast<std::size_t>(parent.index)] : -1);
    }
    for (std::size_t i = 0; i < m_operators.size(); ++i) {
        if (const ScopeId scope = graph.at(m_operators[i]).scope; scope.valid())
            m_scopeOf[i] = position[static_cast<std::size_t>(scope.index)];
    }
}

void Subset::markScopes(const Selector &selector, Marks &marks) const
{
    const Glob glob(selector.text);
    Marks inside(m_scopes.size(), 0);
    for (std::size_t s = 0; s < inside.size(); ++s) {
        const std::int32_t parent = m_scopeParent[s];
        inside[s] = (parent >= 0 && inside[static_cast<std::size_t>(parent)])
            || glob.matches(m_index.pathOf(m_scopes[s]));
    }
    for (std::size_t i = 0; i < marks.size(); ++i)
        marks[i] = m_scopeOf[i] >= 0 && inside[static_cast<std::size_t>(m_scopeOf[i])];
}

bool Subset::mark(const Selector &selector, Marks &marks) const
{
    const Graph &graph = m_index.graph();
    const Glob glob(selector.text);
    const auto each = [&](auto matches) {
        for (std::size_t i = 0; i < marks.size(); ++i)
            marks[i] = matches(graph.at(m_operators[i]), i);
    };
    const auto named = [&](std::string_view name) {
        const OperatorId op = m_index.findOperator(name);
        if (op.valid() && positionOf(op) >= 0)
            marks[static_cast<std::size_t>(positionOf(op))] = 1;
    };
    marks.assign(m_operators.size(), 0);
    switch (selector.kind) {
    case SelectorKind::All:
        std::fill(marks.begin(), marks.end(), char{1});
        break;
    case SelectorKind::Name:
        if (const auto plain = plainName(selector.text))
            named(*plain);
        else
            each([&](const Operator &op, std::size_t) { return glob.matches(op.name); });
        break;
    case SelectorKind::Set:
        for (const std::string &name : selector.names)
            named(name);
        break;
    case SelectorKind::Kind:
        each([&](const Operator &op, std::size_t) {
            return globMatches(selector.text, nameOf(op.kind))
                || (op.kind == OperatorKind::Unknown
                    && globMatches(selector.text, op.attributes.text("onnx_type")));
        });
        break;
    case SelectorKind::In:
        markScopes(selector, marks);
        break;
    case SelectorKind::Layer:
        each([&](const Operator &, std::size_t i) {
            const std::int32_t layer = m_index.layerOf(m_operators[i]);
            return layer >= 0 && layer >= selector.firstLayer
                && (selector.lastLayer < 0 || layer <= selector.lastLayer);
        });
        break;
    case SelectorKind::Direction:
        each([&](const Operator &op, std::size_t) { return op.direction == selector.direction; });
        break;
    case SelectorKind::Weight:
        each([&](const Operator &op, std::size_t) {
            return std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
                return input.valid() && graph.at(input).role == TensorRole::Weight
                    && globMatches(selector.text, graph.at(input).name);
            });
        });
        break;
    case SelectorKind::And:
    case SelectorKind::Or: {
        const bool all = selector.kind == SelectorKind::And;
        std::fill(marks.begin(), marks.end(), static_cast<char>(all));
        Marks inner;
        for (const Selector &child : selector.children) {
            mark(child, inner);
            for (std::size_t i = 0; i < marks.size(); ++i)
                marks[i] = all ? (marks[i] && inner[i]) : (marks[i] || inner[i]);
        }
        break;
    }
    case SelectorKind::Not:
        mark(selector.children.front(), marks);
        for (char &mark : marks)
            mark = !mark;
        break;
    }
    return std::find(marks.begin(), marks.end(), char{1}) != marks.end();
}

std::vector<OperatorId> Subset::selected(const Selector &selector) const
{
    std::vector<OperatorId> found;
    const auto add = [&](std::string_view name) {
        const OperatorId op = m_index.findOperator(name);
        if (op.valid() && positionOf(op) >= 0)
            found.push_back(op);
    };
    if (selector.kind == SelectorKind::All)
        return m_operators;
    if (selector.kind == SelectorKind::Set) {
        for (const std::string &name : selector.names)
            add(name);
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }
    if (selector.kind == SelectorKind::Name && selector.text.find_first_of("*?\\") == std::string::npos) {
        add(selector.text);
        return found;
    }
    Marks marks;
    if (mark(selector, marks)) {
        for (std::size_t i = 0; i < marks.size(); ++i) {
            if (marks[i])
                found.push_back(m_operators[i]);
        }
    }
    return found;
}

// --- Matcher
// --------------------------------------------------------------------------------------------------------

Matcher::Matcher(const SelectorIndex &index, const Selector &selector)
    : m_index(index)
    , m_selector(selector)
    , m_glob(selector.text)
{
    const auto add = [&](std::string_view name) {
        if (const OperatorId op = index.findOperator(name); op.valid())
            m_names->push_back(op);
    };
    if (selector.kind == SelectorKind::Set) {
        m_names.emplace();
        for (const std::string &name : selector.names)
            add(name);
        std::sort(m_names->begin(), m_names->end());
    } else if (selector.kind == SelectorKind::Name) {
        if (const auto plain = plainName(selector.text)) {
            m_names.emplace();
            add(*plain);
        }
    } else if (selector.kind == SelectorKind::In) {
        m_known.assign(index.graph().scopes.size(), 0);
    } else if (selector.kind == SelectorKind::Kind) {
        m_known.assign(static_cast<std::size_t>(kOperatorKindCount), 0);
    }
    m_children.reserve(selector.children.size());
    for (const Selector &child : selector.children)
        m_children.emplace_back(index, child);
    // An intersection matches at most what its smallest side does, a union what all sides do together.
    if (selector.kind == SelectorKind::And) {
        for (const Matcher &child : m_children) {
            if (child.m_names && (!m_names || child.m_names->size() < m_names->size()))
                m_names = child.m_names;
        }
    } else if (selector.kind == SelectorKind::Or
        && std::all_of(
            m_children.begin(), m_children.end(), [](const Matcher &m) { return m.m_names.has_value(); })) {
        m_names.emplace();
        for (const Matcher &child : m_children)
            m_names->insert(m_names->end(), child.m_names->begin(), child.m_names->end());
        std::sort(m_names->begin(), m_names->end());
    }
}

bool Matcher::inScope(ScopeId scope)
{
    if (!scope.valid())
        return false;
    char &known = m_known[static_cast<std::size_t>(scope.index)];
    if (known == 0) {
        const ScopeId parent = m_index.graph().at(scope).parent;
        known = m_glob.matches(m_index.pathOf(scope)) || (scope.index > 0 && inScope(parent)) ? 2 : 1;
    }
    return known == 2;
}

bool Matcher::matches(OperatorId id)
{
    if (m_selector.kind == SelectorKind::All)
        return true;
    if (m_selector.kind == SelectorKind::Layer) {
        const std::int32_t layer = m_index.layerOf(id);
        return layer >= 0 && layer >= m_selector.firstLayer
            && (m_selector.lastLayer < 0 || layer <= m_selector.lastLayer);
    }
    const Operator &op = m_index.graph().at(id);
    switch (m_selector.kind) {
    case SelectorKind::All:
    case SelectorKind::Layer:
        return true; // answered above
    case SelectorKind::Name:
        return m_names ? !m_names->empty() && m_names->front() == id : m_glob.matches(op.name);
    case SelectorKind::Set:
        return std::binary_search(m_names->begin(), m_names->end(), id);
    case SelectorKind::Kind: {
        char &known = m_known[static_cast<std::size_t>(op.kind)];
        if (known == 0)
            known = globMatches(m_selector.text, nameOf(op.kind)) ? 2 : 1;
        return known == 2
            || (op.kind == OperatorKind::Unknown
                && globMatches(m_selector.text, op.attributes.text("onnx_type")));
    }
    case SelectorKind::In:
        return inScope(op.scope);
    case SelectorKind::Direction:
        return op.direction == m_selector.direction;
    case SelectorKind::Weight:
        return std::any_of(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
            return input.valid() && m_index.graph().at(input).role == TensorRole::Weight
                && globMatches(m_selector.text, m_index.graph().at(input).name);
        });
    case SelectorKind::And:
        return std::all_of(m_children.begin(), m_children.end(), [&](Matcher &m) { return m.matches(id); });
    case SelectorKind::Or:
        return std::any_of(m_children.begin(), m_children.end(), [&](Matcher &m) { return m.matches(id); });
    case SelectorKind::Not:
        return !m_children.front().matches(id);
    }
    return false;
}

namespace {

/// Calls `visit` for selected forward operators until it says stop (false).
template<typename Visit>
void forEachForward(const SelectorIndex &index, const Selector &selector, Visit visit)
{
    Matcher matcher(index, selector);
    const Graph &graph = index.graph();
    if (const auto *candidates = matcher.candidates()) {
        OperatorId last;
        for (const OperatorId op : *candidates) {
            if (op != last && graph.at(op).direction == Direction::Forward && matcher.matches(op)
                && !visit(op))
                return;
            last = op;
        }
        return;
    }
    for (std::size_t i = 0; i < index.forwardCount(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (matcher.matches(op) && !visit(op))
            return;
    }
}

} // namespace

std::vector<OperatorId> forwardSelected(const SelectorIndex &index, const Selector &selector)
{
    std::vector<OperatorId> selected;
    forEachForward(index, selector, [&](OperatorId op) {
        selected.push_back(op);
        return true;
    });
    return selected;
}

bool selectsForwardBeyond(
    const SelectorIndex &index, const Selector &selector, const std::vector<OperatorId> &operators)
{
    if (selector.kind == SelectorKind::All)
        return index.forwardCount() > operators.size();
    bool beyond = false;
    forEachForward(index, selector, [&](OperatorId op) {
        beyond = !std::binary_search(operators.begin(), operators.end(), op);
        return !beyond;
    });
    return beyond;
}

std::vector<OperatorId> forwardOnes(const Graph &graph, std::vector<OperatorId> operators)
{
    std::erase_if(operators, [&](OperatorId op) {
        return op.index < 0 || static_cast<std::size_t>(op.index) >= graph.operators.size()
            || graph.at(op).direction != Direction::Forward;
    });
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    return operators;
}

} // namespace planloom
