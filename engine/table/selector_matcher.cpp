#include "engine/table/selector_matcher.h"

#include <algorithm>
#include <iterator>

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

SelectorMatcher::SelectorMatcher(const SelectorIndex &index, const Selector &selector)
    : m_index(index)
    , m_selector(selector)
    , m_glob(selector.text)
{
    if (selector.kind == SelectorKind::In)
        m_known.assign(index.graph().scopes.size(), Known::NotAsked);
    else if (selector.kind == SelectorKind::Kind)
        m_known.assign(static_cast<std::size_t>(kOperatorKindCount), Known::NotAsked);
    else if (selector.kind == SelectorKind::Weight)
        m_known.assign(index.graph().tensors.size(), Known::NotAsked);
    m_children.reserve(selector.children.size());
    for (const Selector &child : selector.children)
        m_children.emplace_back(index, child);
    nameCandidates();
}

void SelectorMatcher::nameCandidates()
{
    const auto add = [&](std::string_view name) {
        if (const OperatorId op = m_index.findOperator(name); op.valid())
            m_names->push_back(op);
    };
    switch (m_selector.kind) {
    case SelectorKind::Set:
        m_names.emplace();
        for (const std::string &name : m_selector.names)
            add(name);
        break;
    case SelectorKind::Name:
        if (const auto plain = plainName(m_selector.text)) {
            m_names.emplace();
            add(*plain);
        }
        break;
    case SelectorKind::And: // at most what its smallest side matches
        for (const SelectorMatcher &child : m_children) {
            if (child.m_names && (!m_names || child.m_names->size() < m_names->size()))
                m_names = child.m_names;
        }
        break;
    case SelectorKind::Or: // what all sides do together
        if (!std::all_of(m_children.begin(), m_children.end(),
                [](const SelectorMatcher &child) { return child.m_names.has_value(); }))
            return;
        m_names.emplace();
        for (const SelectorMatcher &child : m_children)
            m_names->insert(m_names->end(), child.m_names->begin(), child.m_names->end());
        break;
    default:
        return;
    }
    if (m_names) {
        std::sort(m_names->begin(), m_names->end());
        m_names->erase(std::unique(m_names->begin(), m_names->end()), m_names->end());
    }
}

bool SelectorMatcher::inScope(ScopeId scope)
{
    if (!scope.valid())
        return false;
    Known &known = m_known[static_cast<std::size_t>(scope.index)];
    if (known == Known::NotAsked) {
        const ScopeId parent = m_index.graph().at(scope).parent;
        const bool inside = m_glob.matches(m_index.pathOf(scope)) || (scope.index > 0 && inScope(parent));
        known = inside ? Known::Yes : Known::No;
    }
    return known == Known::Yes;
}

bool SelectorMatcher::isWeight(TensorId tensor)
{
    if (!tensor.valid())
        return false;
    Known &known = m_known[static_cast<std::size_t>(tensor.index)];
    if (known == Known::NotAsked) {
        const Tensor &itself = m_index.graph().at(tensor);
        known = itself.role == TensorRole::Weight
                && (m_glob.matches(itself.name) || m_glob.matches(nameInFiles(itself)))
            ? Known::Yes
            : Known::No;
    }
    return known == Known::Yes;
}

bool SelectorMatcher::matchesKind(const Operator &op)
{
    Known &known = m_known[static_cast<std::size_t>(op.kind)];
    // Rows from when a cross-entropy was one operator speak of both that it is made of.
    const bool ofEntropy = op.kind == OperatorKind::ClassStatistics || op.kind == OperatorKind::ClassLoss;
    if (known == Known::NotAsked)
        known = m_glob.matches(nameOf(op.kind))
                || (ofEntropy && m_glob.matches(nameOf(OperatorKind::CrossEntropy)))
            ? Known::Yes
            : Known::No;
    return known == Known::Yes || (isNamedByFile(op) && m_glob.matches(typeNameOf(op)));
}

bool SelectorMatcher::matches(OperatorId id)
{
    const auto op = [&]() -> const Operator & { return m_index.graph().at(id); };
    const auto matchesIt = [&](SelectorMatcher &child) { return child.matches(id); };
    switch (m_selector.kind) {
    case SelectorKind::All:
        return true;
    case SelectorKind::Layer: {
        const std::int32_t layer = m_index.layerOf(id);
        return layer >= 0 && layer >= m_selector.firstLayer
            && (m_selector.lastLayer < 0 || layer <= m_selector.lastLayer);
    }
    case SelectorKind::Name:
        return m_names ? !m_names->empty() && m_names->front() == id : m_glob.matches(op().name);
    case SelectorKind::Set:
        return std::binary_search(m_names->begin(), m_names->end(), id);
    case SelectorKind::Kind:
        return matchesKind(op());
    case SelectorKind::In:
        return inScope(op().scope);
    case SelectorKind::Direction:
        return op().direction == m_selector.direction;
    case SelectorKind::Weight: {
        const auto &inputs = op().inputs;
        return std::any_of(inputs.begin(), inputs.end(), [&](TensorId input) { return isWeight(input); });
    }
    case SelectorKind::And:
        return std::all_of(m_children.begin(), m_children.end(), matchesIt);
    case SelectorKind::Or:
        return std::any_of(m_children.begin(), m_children.end(), matchesIt);
    case SelectorKind::Not:
        return !m_children.front().matches(id);
    }
    return false;
}

Subset::Subset(const SelectorIndex &index, std::vector<OperatorId> operators)
    : m_index(index)
    , m_operators(std::move(operators))
{
}

std::int32_t Subset::positionOf(OperatorId op) const
{
    const auto found = std::lower_bound(m_operators.begin(), m_operators.end(), op);
    return found != m_operators.end() && *found == op ? static_cast<std::int32_t>(found - m_operators.begin())
                                                      : -1;
}

std::vector<OperatorId> Subset::selected(const Selector &selector) const
{
    if (selector.kind == SelectorKind::All)
        return m_operators;
    SelectorMatcher matcher(m_index, selector);
    std::vector<OperatorId> found;
    // Whichever are fewer are looked at one by one.
    if (const auto *candidates = matcher.candidates();
        candidates && candidates->size() < m_operators.size()) {
        for (const OperatorId op : *candidates) {
            if (positionOf(op) >= 0 && matcher.matches(op))
                found.push_back(op);
        }
        return found;
    }
    std::copy_if(m_operators.begin(), m_operators.end(), std::back_inserter(found),
        [&](OperatorId op) { return matcher.matches(op); });
    return found;
}

namespace {

/// Calls `visit` for selected forward operators until it says stop (false).
template<typename Visit>
void forEachForward(const SelectorIndex &index, const Selector &selector, Visit visit)
{
    SelectorMatcher matcher(index, selector);
    const Graph &graph = index.graph();
    if (const auto *candidates = matcher.candidates()) {
        for (const OperatorId op : *candidates) {
            if (graph.at(op).direction == Direction::Forward && matcher.matches(op) && !visit(op))
                return;
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
