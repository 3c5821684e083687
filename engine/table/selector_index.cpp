#include "engine/table/selector_index.h"

#include "engine/base/nearest_name.h"
#include "engine/table/selector_matcher.h"

#include <algorithm>
#include <iterator>
#include <mutex>

namespace planloom {

namespace {

constexpr std::size_t kMostSelected = std::size_t{1} << 22; ///< Operators kept of all selectors together.

} // namespace

struct SelectorIndex::Selected {
    std::mutex mutex{};
    std::unordered_map<std::string, std::vector<OperatorId>> byText{};
    std::size_t size = 0; ///< Operators, and one for each selector.
};

struct SelectorIndex::Dimensions {
    std::once_flag once{};
    DimensionClasses classes{};
};

const DimensionClasses &SelectorIndex::dimensions() const
{
    std::call_once(m_dimensions->once, [this] { m_dimensions->classes = analyseDimensions(*m_graph); });
    return m_dimensions->classes;
}

SelectorIndex::SelectorIndex(GraphSnapshot graph)
    : m_graph(std::move(graph))
    , m_dimensions(std::make_shared<Dimensions>())
    , m_selected(std::make_shared<Selected>())
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
        m_byName.emplace(m_graph->operators[i].name, OperatorId{static_cast<std::int32_t>(i)});
}

OperatorId SelectorIndex::findOperator(std::string_view name) const
{
    const auto found = m_byName.find(name);
    return found == m_byName.end() ? OperatorId{} : found->second;
}

std::vector<OperatorId> SelectorIndex::select(const Selector &selector) const
{
    const std::string text = toString(selector);
    {
        const std::scoped_lock lock(m_selected->mutex);
        if (const auto known = m_selected->byText.find(text); known != m_selected->byText.end())
            return known->second;
    }
    std::vector<OperatorId> operators = evaluate(selector);
    const std::scoped_lock lock(m_selected->mutex);
    m_selected->size += operators.size() + 1;
    if (m_selected->size > kMostSelected) {
        m_selected->byText.clear();
        m_selected->size = operators.size() + 1;
    }
    m_selected->byText.emplace(text, operators);
    return operators;
}

std::vector<OperatorId> SelectorIndex::evaluate(const Selector &selector) const
{
    SelectorMatcher matcher(*this, selector);
    std::vector<OperatorId> selected;
    if (const auto *candidates = matcher.candidates()) {
        std::copy_if(candidates->begin(), candidates->end(), std::back_inserter(selected),
            [&](OperatorId op) { return matcher.matches(op); });
        return selected;
    }
    for (std::size_t i = 0; i < m_graph->operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (matcher.matches(op))
            selected.push_back(op);
    }
    return selected;
}

Result<void> SelectorIndex::check(const Selector &selector) const
{
    const auto missing = [](std::string message, std::string advice = {}) {
        return Error{ErrorCode::NotFound, std::move(message), std::move(advice), ""};
    };
    const auto orElse = [](std::string advice, const std::string &otherwise) {
        return advice.empty() ? otherwise : advice;
    };
    const auto meant = [&](const std::string &name, const std::string &otherwise) {
        std::vector<std::string_view> known;
        for (const Operator &op : m_graph->operators)
            known.push_back(op.name);
        return orElse(didYouMean(name, known), otherwise);
    };
    const auto plain = plainName(selector.text);
    switch (selector.kind) {
    case SelectorKind::Name:
        if (plain && !findOperator(*plain).valid())
            return missing("no operator is called '" + *plain + "'", meant(*plain, "use * for any text"));
        break;
    case SelectorKind::Set:
        for (const std::string &name : selector.names) {
            if (!findOperator(name).valid())
                return missing("no operator is called '" + name + "'", meant(name, {}));
        }
        break;
    case SelectorKind::Kind:
        if (plain && !operatorKindNamed(*plain)) {
            const auto isType = [&](const Operator &op) {
                return isNamedByFile(op) && typeNameOf(op) == *plain;
            };
            if (std::none_of(m_graph->operators.begin(), m_graph->operators.end(), isType)) {
                return missing("there is no operator kind '" + *plain + "'",
                    "kinds are written as Linear, LayerNorm, MatMul");
            }
        }
        break;
    case SelectorKind::In:
        if (plain && std::find(m_paths.begin(), m_paths.end(), *plain) == m_paths.end())
            return missing("the model has no module '" + *plain + "'",
                orElse(didYouMean(*plain, {m_paths.begin(), m_paths.end()}),
                    "give the whole path, or * for any text"));
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
        if (plain) {
            const auto isIt = [&](const Tensor &tensor) {
                return tensor.role == TensorRole::Weight
                    && (tensor.name == *plain || nameInFiles(tensor) == *plain);
            };
            if (std::none_of(m_graph->tensors.begin(), m_graph->tensors.end(), isIt))
                return missing("no weight is called '" + *plain + "'");
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
