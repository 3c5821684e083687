#include "engine/gallery/layer_modules.h"

#include "engine/gallery/gallery_rows.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <array>

namespace planloom {

namespace {

/// The wider ones first.
constexpr std::array<std::string_view, 7> kWords{
    "moe", "mlp", "shared_experts", "core_attn", "mla_up_proj", "layernorm", "moe_act"};

constexpr std::size_t kMostBetween = 16; ///< Operators between two products of one projection.

Error wrongModules(std::string message, std::string advice = {})
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice), "modules"};
}

std::string knownWords()
{
    std::string text;
    for (const std::string_view word : kWords)
        text += (text.empty() ? "" : ", ") + std::string(word);
    return text;
}

/// What operators of layers do.
class LayerParts
{
public:
    explicit LayerParts(const SelectorIndex &index)
        : m_index(index)
        , m_graph(index.graph())
        , m_expertScope(index.layers().scopes.size())
        , m_hasExperts(index.layers().scopes.size(), false)
        , m_isRaised(index.forwardCount(), false)
    {
        findExperts();
        findRaised();
    }

    bool isOf(OperatorId op, std::string_view word) const;

private:
    bool has(OperatorId op, DimensionMeaning meaning) const;
    bool readsWeight(const Operator &op) const;
    bool isAttention(OperatorId op) const;
    bool isUpProjection(OperatorId op) const;
    bool isBelow(ScopeId scope, ScopeId top) const;
    void findExperts();
    void findRaised();

    const SelectorIndex &m_index;
    const Graph &m_graph;
    std::vector<ScopeId> m_expertScope{}; ///< By layer: the innermost module that has all its experts.
    std::vector<bool> m_hasExperts{}; ///< By layer.
    std::vector<bool> m_isRaised{}; ///< By forward operator: a product of `mla_up_proj`, or behind one.
};

bool LayerParts::has(OperatorId op, DimensionMeaning meaning) const
{
    const DimensionClasses &classes = m_index.dimensions();
    const auto &own = classes.ofOperator[at(op)];
    return std::any_of(own.begin(), own.end(),
        [&](DimensionClassId each) { return each.valid() && leadingWith(classes, each, meaning).valid(); });
}

bool LayerParts::readsWeight(const Operator &op) const
{
    return std::any_of(op.inputs.begin(), op.inputs.end(),
        [&](TensorId id) { return id.valid() && m_graph.at(id).role == TensorRole::Weight; });
}

/// One operator, or the products and the softmax that it is made of.
bool LayerParts::isAttention(OperatorId id) const
{
    const Operator &op = m_graph.at(id);
    if (op.kind == OperatorKind::Attention)
        return true;
    const bool isPart = categoryOf(op.kind) == OperatorCategory::Product || op.kind == OperatorKind::Softmax;
    return isPart && !readsWeight(op) && has(id, DimensionMeaning::Heads);
}

/// It reads what another product by weights of the layer makes, through operators of one activation each:
/// what is added up on the way (residuals) is no compressed form of something.
bool LayerParts::isUpProjection(OperatorId id) const
{
    const auto isProduct = [&](OperatorId each) {
        return categoryOf(m_graph.at(each).kind) == OperatorCategory::Product
            && readsWeight(m_graph.at(each));
    };
    if (!isProduct(id) || !has(id, DimensionMeaning::Heads))
        return false;
    OperatorId behind = id;
    for (std::size_t step = 0; step < kMostBetween; ++step) {
        std::vector<OperatorId> makers;
        for (const TensorId input : m_graph.at(behind).inputs)
            if (input.valid() && m_graph.at(input).role == TensorRole::Activation)
                for (const OperatorId maker : m_index.uses().producers[at(input)])
                    makers.push_back(maker);
        if (makers.size() != 1 || m_index.layerOf(makers.front()) != m_index.layerOf(id))
            return false;
        if (isProduct(makers.front()))
            return true;
        behind = makers.front();
    }
    return false;
}

bool LayerParts::isBelow(ScopeId scope, ScopeId top) const
{
    while (scope.valid() && scope != top)
        scope = m_graph.at(scope).parent;
    return scope.valid();
}

void LayerParts::findExperts()
{
    for (std::size_t i = 0; i < m_index.forwardCount(); ++i) {
        const OperatorId id{static_cast<std::int32_t>(i)};
        const std::int32_t layer = m_index.layerOf(id);
        if (layer < 0 || !has(id, DimensionMeaning::Expert))
            continue;
        ScopeId &common = m_expertScope[static_cast<std::size_t>(layer)];
        ScopeId scope = m_graph.operators[i].scope;
        if (m_hasExperts[static_cast<std::size_t>(layer)])
            while (scope.valid() && !isBelow(common, scope))
                scope = m_graph.at(scope).parent;
        common = scope;
        m_hasExperts[static_cast<std::size_t>(layer)] = true;
    }
}

void LayerParts::findRaised()
{
    std::vector<bool> leads(m_index.forwardCount(), false); // to an attention
    const auto reader = [&](std::size_t i, auto is) {
        for (const TensorId output : m_graph.operators[i].outputs)
            if (output)
                for (const OperatorId user : m_index.uses().consumers[at(output)])
                    if (at(user) < leads.size() && is(user))
                        return true;
        return false;
    };
    for (std::size_t i = leads.size(); i-- > 0;) {
        const OperatorId id{static_cast<std::int32_t>(i)};
        leads[i] = !isAttention(id) && m_index.layerOf(id) >= 0 && reader(i, [&](OperatorId user) {
            return m_index.layerOf(user) == m_index.layerOf(id) && (isAttention(user) || leads[at(user)]);
        });
    }
    for (std::size_t i = 0; i < leads.size(); ++i) {
        const OperatorId id{static_cast<std::int32_t>(i)};
        if (!leads[i])
            continue;
        bool isBehind = false;
        for (const TensorId input : m_graph.operators[i].inputs)
            if (input)
                for (const OperatorId maker : m_index.uses().producers[at(input)])
                    isBehind = isBehind || (at(maker) < leads.size() && m_isRaised[at(maker)]);
        m_isRaised[i] = isBehind || isUpProjection(id);
    }
}

bool LayerParts::isOf(OperatorId id, std::string_view word) const
{
    const Operator &op = m_graph.at(id);
    const std::int32_t layer = m_index.layerOf(id);
    if (layer < 0)
        return false;
    const bool isMixture = m_hasExperts[static_cast<std::size_t>(layer)];
    const bool isExpert = has(id, DimensionMeaning::Expert);
    const bool isFeedForward = has(id, DimensionMeaning::FeedForward);
    if (word == "core_attn")
        return isAttention(id);
    if (word == "mla_up_proj")
        return m_isRaised[at(id)];
    if (word == "layernorm")
        return categoryOf(op.kind) == OperatorCategory::Normalization && has(id, DimensionMeaning::Hidden);
    if (word == "mlp")
        return !isMixture && isFeedForward;
    if (word == "shared_experts")
        return isMixture && isFeedForward && !isExpert;
    if (word == "moe_act")
        return isExpert && isFeedForward && !readsWeight(op) && !isView(op);
    const ScopeId scope = m_expertScope[static_cast<std::size_t>(layer)];
    const bool isModule = scope != m_index.layers().scopes[static_cast<std::size_t>(layer)];
    return isMixture && (isExpert || (isModule && isBelow(op.scope, scope)));
}

} // namespace

std::span<const std::string_view> layerModuleWords()
{
    return kWords;
}

Result<std::vector<std::string>> readLayerModules(std::string_view text)
{
    std::vector<std::string> words;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("+, "), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty())
            continue;
        if (std::find(kWords.begin(), kWords.end(), word) == kWords.end())
            return wrongModules(
                "expected a module of layers, found '" + std::string(word.substr(0, 40)) + "'",
                "none, full, or some of " + knownWords() + ", joined by +");
        if (std::find(words.begin(), words.end(), word) == words.end())
            words.emplace_back(word);
    }
    if (words.empty())
        return wrongModules("expected modules of layers, found nothing", knownWords());
    return words;
}

namespace {

/// A row for each word, of what no word before it has.
/// @param ruleOf  (word) -> the row's rule
template<typename RuleOf>
Result<ConstraintTable> moduleRows(const Model &model, std::string_view text, RuleOf ruleOf)
{
    TRY(const auto words, readLayerModules(text));
    const SelectorIndex &index = *model.index;
    const LayerParts parts(index);
    std::vector<bool> isTaken(index.forwardCount(), false);
    ConstraintTable table;
    for (const std::string_view word : kWords) {
        if (std::find(words.begin(), words.end(), word) == words.end())
            continue;
        std::vector<OperatorId> members;
        bool any = false;
        for (std::size_t i = 0; i < index.forwardCount(); ++i) {
            const OperatorId op{static_cast<std::int32_t>(i)};
            if (!parts.isOf(op, word))
                continue;
            any = true;
            if (!isTaken[i])
                members.push_back(op);
            isTaken[i] = true;
        }
        if (!any)
            return wrongModules("no layer of the model has what " + std::string(word) + " names",
                "leave it out, or write a row that selects what is meant");
        if (members.empty())
            continue;
        table.rows.push_back(
            templateRow(selectAny(selectorsByName(index, members)), ruleOf(word), std::string(word)));
    }
    return table;
}

} // namespace

Result<ConstraintTable> recomputedModuleRows(const Model &model, std::string_view text)
{
    return moduleRows(model, text, [](std::string_view word) {
        // Normalisations lie at both ends of a layer: together, one would wait for the other.
        return RecomputeRule{word == "layernorm" ? RecomputePer::Operator : RecomputePer::Layer};
    });
}

Result<ConstraintTable> offloadedModuleRows(const Model &model, std::string_view text)
{
    return moduleRows(model, text, [](std::string_view) { return OffloadRule{OffloadedKind::Activations}; });
}

} // namespace planloom
