#include "engine/plan/selector_index.h"

#include <algorithm>
#include <cassert>
#include <mutex>

namespace planloom {

namespace {

std::string literalOf(std::string_view glob)
{
    std::string text;
    for (std::size_t i = 0; i < glob.size(); ++i) {
        if (glob[i] == '\\' && i + 1 < glob.size())
            ++i;
        text += glob[i];
    }
    return text;
}

bool hasWildcard(std::string_view glob)
{
    for (std::size_t i = 0; i < glob.size(); ++i) {
        if (glob[i] == '\\')
            ++i;
        else if (glob[i] == '*' || glob[i] == '?')
            return true;
    }
    return false;
}

} // namespace

struct SelectorIndex::Dimensions {
    std::once_flag once {};
    DimensionClasses classes {};
};

const DimensionClasses &SelectorIndex::dimensions() const
{
    std::call_once(m_dimensions->once, [this] { m_dimensions->classes = analyseDimensions(*m_graph); });
    return m_dimensions->classes;
}

SelectorIndex::SelectorIndex(GraphSnapshot graph)
    : m_graph(std::move(graph))
    , m_dimensions(std::make_shared<Dimensions>())
    , m_uses(usesOf(*m_graph))
    , m_layers(findLayers(*m_graph))
{
    m_paths.reserve(m_graph->scopes.size());
    for (std::size_t s = 0; s < m_graph->scopes.size(); ++s)
        m_paths.push_back(planloom::pathOf(*m_graph, {static_cast<std::int32_t>(s)}));
    m_byName.reserve(m_graph->operators.size());
    m_layerOf.reserve(m_graph->operators.size());
    m_forwardInLayer.assign(m_layers.scopes.size(), 0);
    m_forwardBelow.assign(m_graph->scopes.size(), 0);
    for (const Operator &op : m_graph->operators) {
        const auto scope = static_cast<std::size_t>(op.scope.index);
        m_layerOf.push_back(op.scope.valid() ? m_layers.ofScope[scope] : -1);
        if (op.direction != Direction::Forward)
            continue;
        ++m_forwardCount;
        if (op.scope.valid())
            ++m_forwardBelow[scope];
        if (m_layerOf.back() >= 0)
            ++m_forwardInLayer[static_cast<std::size_t>(m_layerOf.back())];
    }
    for (std::size_t s = m_graph->scopes.size(); s-- > 1;) {
        if (const ScopeId parent = m_graph->scopes[s].parent; parent.valid())
            m_forwardBelow[static_cast<std::size_t>(parent.index)] += m_forwardBelow[s];
    }
    for (std::size_t i = 0; i < m_graph->operators.size(); ++i)
        m_byName.emplace(m_graph->operators[i].name, OperatorId {static_cast<std::int32_t>(i)});
}

OperatorId SelectorIndex::findOperator(std::string_view name) const
{
    const auto found = m_byName.find(name);
    return found == m_byName.end() ? OperatorId {} : found->second;
}

void SelectorIndex::markNames(const Selector &selector, Marks &marks) const
{
    if (!hasWildcard(selector.text)) {
        if (const OperatorId op = findOperator(literalOf(selector.text)); op.valid())
            marks[static_cast<std::size_t>(op.index)] = 1;
        return;
    }
    for (std::size_t i = 0; i < marks.size(); ++i)
        marks[i] = globMatches(selector.text, m_graph->operators[i].name);
}

SelectorIndex::Marks SelectorIndex::evaluate(const Selector &selector) const
{
    const auto &operators = m_graph->operators;
    Marks marks(operators.size(), 0);
    switch (selector.kind) {
    case SelectorKind::All:
        std::fill(marks.begin(), marks.end(), char {1});
        break;
    case SelectorKind::Name:
        markNames(selector, marks);
        break;
    case SelectorKind::Kind: {
        std::vector<char> kinds(static_cast<std::size_t>(kOperatorKindCount), 0);
        for (int k = 0; k < kOperatorKindCount; ++k)
            kinds[static_cast<std::size_t>(k)] =
                globMatches(selector.text, nameOf(static_cast<OperatorKind>(k)));
        for (std::size_t i = 0; i < marks.size(); ++i) {
            marks[i] = kinds[static_cast<std::size_t>(operators[i].kind)];
            if (operators[i].kind == OperatorKind::Unknown && !marks[i])
                marks[i] = globMatches(selector.text, operators[i].attributes.text("onnx_type"));
        }
        break;
    }
    case SelectorKind::In: {
        std::vector<char> inside(m_paths.size(), 0);
        for (std::size_t s = 0; s < inside.size(); ++s) {
            const ScopeId parent = m_graph->scopes[s].parent;
            inside[s] = (s > 0 && parent.valid() && inside[static_cast<std::size_t>(parent.index)])
                || globMatches(selector.text, m_paths[s]);
        }
        for (std::size_t i = 0; i < marks.size(); ++i) {
            const ScopeId scope = operators[i].scope;
            marks[i] = scope.valid() && inside[static_cast<std::size_t>(scope.index)];
        }
        break;
    }
    case SelectorKind::Layer:
        for (std::size_t i = 0; i < marks.size(); ++i) {
            const std::int32_t layer = layerOf({static_cast<std::int32_t>(i)});
            marks[i] = layer >= 0 && layer >= selector.firstLayer
                && (selector.lastLayer < 0 || layer <= selector.lastLayer);
        }
        break;
    case SelectorKind::Direction:
        for (std::size_t i = 0; i < marks.size(); ++i)
            marks[i] = operators[i].direction == selector.direction;
        break;
    case SelectorKind::Set:
        for (const std::string &name : selector.names) {
            if (const OperatorId op = findOperator(name); op.valid())
                marks[static_cast<std::size_t>(op.index)] = 1;
        }
        break;
    case SelectorKind::Weight:
        for (std::size_t t = 0; t < m_graph->tensors.size(); ++t) {
            const Tensor &tensor = m_graph->tensors[t];
            if (tensor.role != TensorRole::Weight || !globMatches(selector.text, tensor.name))
                continue;
            for (const OperatorId op : m_uses.consumers[t])
                marks[static_cast<std::size_t>(op.index)] = 1;
        }
        break;
    case SelectorKind::And:
    case SelectorKind::Or: {
        const bool all = selector.kind == SelectorKind::And;
        std::fill(marks.begin(), marks.end(), static_cast<char>(all));
        for (const Selector &child : selector.children) {
            const Marks inner = evaluate(child);
            for (std::size_t i = 0; i < marks.size(); ++i)
                marks[i] = all ? (marks[i] && inner[i]) : (marks[i] || inner[i]);
        }
        break;
    }
    case SelectorKind::Not:
        marks = evaluate(selector.children.front());
        for (char &mark : marks)
            mark = !mark;
        break;
    }
    return marks;
}

std::vector<OperatorId> SelectorIndex::select(const Selector &selector) const
{
    const Marks marks = evaluate(selector);
    std::vector<OperatorId> selected;
    for (std::size_t i = 0; i < marks.size(); ++i) {
        if (marks[i])
            selected.push_back({static_cast<std::int32_t>(i)});
    }
    return selected;
}

Result<void> SelectorIndex::check(const Selector &selector) const
{
    const auto missing = [](std::string message, std::string advice = {}) {
        return Error {ErrorCode::NotFound, std::move(message), std::move(advice), ""};
    };
    switch (selector.kind) {
    case SelectorKind::Name:
        if (!hasWildcard(selector.text) && !findOperator(literalOf(selector.text)).valid())
            return missing("no operator is called '" + literalOf(selector.text) + "'", "use * for any text");
        break;
    case SelectorKind::Set:
        for (const std::string &name : selector.names) {
            if (!findOperator(name).valid())
                return missing("no operator is called '" + name + "'");
        }
        break;
    case SelectorKind::Kind:
        if (!hasWildcard(selector.text) && !operatorKindNamed(literalOf(selector.text))) {
            const auto isType = [&](const Operator &op) {
                return op.kind == OperatorKind::Unknown
                    && op.attributes.text("onnx_type") == literalOf(selector.text);
            };
            if (std::none_of(m_graph->operators.begin(), m_graph->operators.end(), isType)) {
                return missing("there is no operator kind '" + literalOf(selector.text) + "'",
                    "kinds are written as Linear, LayerNorm, MatMul");
            }
        }
        break;
    case SelectorKind::In:
        if (!hasWildcard(selector.text)
            && std::find(m_paths.begin(), m_paths.end(), literalOf(selector.text)) == m_paths.end())
            return missing("the model has no module '" + literalOf(selector.text) + "'",
                "give the whole path, or * for any text");
        break;
    case SelectorKind::Layer: {
        const auto count = static_cast<std::int32_t>(m_layers.scopes.size());
        if (std::max(selector.firstLayer, selector.lastLayer) >= count
            && !(selector.firstLayer == 0 && selector.lastLayer < 0)) {
            return missing("the model has " + std::to_string(count)
                    + " layers, but the selector asks for layer "
                    + std::to_string(std::max(selector.firstLayer, selector.lastLayer)),
                "layers are numbered from 0");
        }
        break;
    }
    case SelectorKind::Weight:
        if (!hasWildcard(selector.text)) {
            const auto isIt = [&](const Tensor &tensor) {
                return tensor.role == TensorRole::Weight && tensor.name == literalOf(selector.text);
            };
            if (std::none_of(m_graph->tensors.begin(), m_graph->tensors.end(), isIt))
                return missing("no weight is called '" + literalOf(selector.text) + "'");
        }
        break;
    default:
        for (const Selector &child : selector.children)
            TRY_VOID(check(child));
        break;
    }
    return {};
}

std::vector<OperatorId> select(const GraphSnapshot &graph, const Selector &selector)
{
    return SelectorIndex(graph).select(selector);
}

} // namespace planloom
