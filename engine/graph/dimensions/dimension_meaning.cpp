#include "engine/graph/dimensions/dimension_meaning.h"

#include "engine/graph/annotation/annotation_builder.h"
#include "engine/graph/operators/class_axis.h"

#include <algorithm>
#include <cstddef>

namespace planloom {

namespace {

bool holds(const std::vector<std::int32_t> &list, std::int32_t value)
{
    return std::find(list.begin(), list.end(), value) != list.end();
}

bool isProduct(OperatorKind kind)
{
    return kind == OperatorKind::MatMul || kind == OperatorKind::Linear || kind == OperatorKind::Einsum;
}

/// Kinds that scores pass on their way to the Softmax, and probabilities on their way from it.
bool passesOn(OperatorKind kind)
{
    return isElementwise(kind) || kind == OperatorKind::Reshape || kind == OperatorKind::Transpose
        || kind == OperatorKind::Expand;
}

} // namespace

DimensionNamer::DimensionNamer(DimensionFlow &flow)
    : m_flow(flow)
    , m_unifier(flow.unifier)
{
    // Later steps may write products anew, which makes nodes.
    m_meaning.assign(m_unifier.size(), Unknown);
    m_piece.assign(m_unifier.size(), false);
    for (std::size_t i = 0; i < graph().operators.size(); ++i) {
        if (graph().operators[i].direction == Direction::Forward)
            m_forward.push_back(OperatorId{static_cast<std::int32_t>(i)});
    }
    nameBatch();
    nameWeightProducts();
    nameAttentions();
    nameEmbeddingsAndLosses();
    nameByKind();
    propagate();
    nameFeedForward();
    nameProjections();
    nameTokens();
    propagate();
    nameFactors();
    propagate();
    nameFeatures();
}

DimensionMeaning DimensionNamer::meaningOf(Node node)
{
    return node < 0 ? Unknown : m_meaning[static_cast<std::size_t>(m_unifier.find(node))];
}

void DimensionNamer::name(Node node, DimensionMeaning meaning)
{
    if (node < 0)
        return;
    DimensionMeaning &mine = m_meaning[static_cast<std::size_t>(m_unifier.find(node))];
    if (mine == Unknown)
        mine = meaning;
}

bool DimensionNamer::isKey(Node node)
{
    node = m_unifier.find(node);
    return m_queries.count(node) == 0
        && std::any_of(m_scores.begin(), m_scores.end(),
            [&](const Scores &scores) { return m_unifier.find(scores.key) == node; });
}

bool DimensionNamer::isPiece(Node node)
{
    return node >= 0 && m_piece[static_cast<std::size_t>(m_unifier.find(node))];
}

bool DimensionNamer::isWeight(TensorId id) const
{
    return isParameter(id) || (id.valid() && m_flow.gathered[static_cast<std::size_t>(id.index)]);
}

bool DimensionNamer::isParameter(TensorId id) const
{
    return id.valid() && !m_flow.fed[static_cast<std::size_t>(id.index)];
}

std::vector<std::int32_t> DimensionNamer::identifiersOf(const Operator &op, const TensorTerms &terms) const
{
    std::vector<std::int32_t> found;
    for (const Term &term : terms.terms) {
        for (const std::int32_t factor : term.factors) {
            if (!isLiteral(op.annotation.dimensions[static_cast<std::size_t>(factor)])
                && !holds(found, factor))
                found.push_back(factor);
        }
    }
    return found;
}

void DimensionNamer::nameBatch()
{
    const BatchInfo batch = analyseBatch(graph());
    bool cut = false;
    for (const TensorId input : graph().inputs) {
        const auto index = static_cast<std::size_t>(input.index);
        if (batch.tensorRole[index] != BatchRole::Split)
            continue;
        cut = true;
        name(m_flow.at(input, static_cast<std::size_t>(batch.tensorDimension[index])), Batch);
    }
    if (cut)
        return;
    const std::vector<std::int32_t> along = inputsAlong(graph(), batchInputOf(graph()));
    for (std::size_t i = 0; i < along.size(); ++i)
        if (along[i] >= 0)
            name(m_flow.at(graph().inputs[i], static_cast<std::size_t>(along[i])), Batch);
}

void DimensionNamer::nameWeightProducts()
{
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        if (!isProduct(op.kind) || op.inputs.size() < 2 || isWeight(op.inputs[0]) == isWeight(op.inputs[1]))
            continue;
        const std::size_t weight = isWeight(op.inputs[0]) ? 0 : 1;
        const auto ofWeight = identifiersOf(op, op.annotation.inputs[weight]);
        const auto ofActivation = identifiersOf(op, op.annotation.inputs[1 - weight]);
        const auto ofResult = identifiersOf(op, op.annotation.outputs[0]);
        WeightProduct product;
        for (const std::int32_t i : ofWeight) {
            const Node node = m_flow.of(id, i);
            if (!holds(ofActivation, i))
                product.makes.push_back(node);
            else if (!holds(ofResult, i))
                product.sums.push_back(node);
            else if (isParameter(op.inputs[weight]))
                m_experts.push_back(node);
        }
        if (op.kind == OperatorKind::Linear && op.annotation.inputs[weight].terms.size() == 3)
            product.parts = product.makes.empty() ? -1 : product.makes.front();
        m_products.push_back(std::move(product));
    }
}

OperatorId DimensionNamer::findScores(TensorId tensor, Node axis, bool &routed)
{
    constexpr std::size_t kMostSteps = 48; // Far beyond what lies between scores and their Softmax.
    std::vector<TensorId> open{tensor};
    std::vector<TensorId> seen;
    while (!open.empty() && seen.size() < kMostSteps) {
        const TensorId next = open.back();
        open.pop_back();
        const OperatorId made = m_flow.producer[static_cast<std::size_t>(next.index)];
        if (!made || std::find(seen.begin(), seen.end(), next) != seen.end())
            continue;
        seen.push_back(next);
        const Operator &op = at(made);
        if (isProduct(op.kind)) {
            const bool weighed = isWeight(op.inputs[0]) || isWeight(op.inputs[1]);
            if (!weighed)
                return made;
            routed = true;
            continue;
        }
        if (!passesOn(op.kind))
            continue;
        // The first input is looked at first: the scores, rather than their mask.
        for (std::size_t slot = op.inputs.size(); slot-- > 0;) {
            if (!op.inputs[slot])
                continue;
            const std::size_t rank = graph().at(op.inputs[slot]).type.shape.size();
            for (std::size_t d = 0; d < rank; ++d) {
                if (m_flow.at(op.inputs[slot], d) == m_unifier.find(axis)) {
                    open.push_back(op.inputs[slot]);
                    break;
                }
            }
        }
    }
    return {};
}

void DimensionNamer::nameAttentions()
{
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        if (op.kind == OperatorKind::Attention)
            nameFused(id);
        const bool chooses = op.kind == OperatorKind::TopK || op.kind == OperatorKind::ArgMax;
        if ((op.kind != OperatorKind::Softmax && !chooses) || !op.inputs[0])
            continue;
        const Node axis = m_flow.at(op.inputs[0], static_cast<std::size_t>(op.attributes.integer("axis")));
        if (axis < 0)
            continue;
        bool routed = false;
        const OperatorId scores = findScores(op.inputs[0], axis, routed);
        if (scores && !chooses)
            nameScores(scores, axis);
        const bool result = std::any_of(graph().outputs.begin(), graph().outputs.end(),
            [&](TensorId output) { return output == op.outputs[0]; });
        if (!scores && routed && !result)
            m_experts.push_back(axis);
    }
    nameValues();
    nameHeads();
    for (const Node node : m_heads) {
        if (node >= 0 && m_unifier.factorsOf(node).empty())
            name(node, Heads);
    }
    for (const Node node : m_groups)
        name(node, Heads);
    for (const Scores &scores : m_scores) {
        name(scores.query, Sequence);
        name(scores.key, Sequence);
    }
    for (const Node node : m_experts)
        name(node, Expert);
    for (const Node node : m_both) {
        if (node >= 0 && m_unifier.factorsOf(node).empty())
            name(node, Sequence);
    }
}

void DimensionNamer::nameScores(OperatorId id, Node key)
{
    const Operator &op = at(id);
    Scores scores{id, -1, m_unifier.find(key)};
    const auto left = identifiersOf(op, op.annotation.inputs[0]);
    const auto right = identifiersOf(op, op.annotation.inputs[1]);
    const auto made = identifiersOf(op, op.annotation.outputs[0]);
    std::vector<std::int32_t> all = left;
    all.insert(all.end(), right.begin(), right.end());
    for (const std::int32_t i : all) {
        const Node node = m_flow.of(id, i);
        const bool inBoth = holds(left, i) && holds(right, i);
        if (!holds(made, i))
            name(node, HeadSize);
        else if (inBoth)
            m_both.push_back(node);
        else if (node != scores.key && scores.query < 0)
            scores.query = node;
    }
    if (scores.query >= 0)
        m_queries.insert(m_unifier.find(scores.query));
    m_scores.push_back(scores);
}

/// (q [.. H s e], k [.. G t e], v [.. G t f]): as products and a Softmax would tell, but for H itself, which
/// may have no other sign.
void DimensionNamer::nameFused(OperatorId id)
{
    const Operator &op = at(id);
    if (!op.annotationProblem.empty())
        return;
    const auto &inputs = op.annotation.inputs;
    const std::size_t rank = inputs[0].terms.size();
    const auto nodeAt = [&](std::size_t slot, std::size_t dimension) {
        const std::int32_t leading = inputs[slot].terms[dimension].factors[0];
        return isLiteral(op.annotation.dimensions[static_cast<std::size_t>(leading)])
            ? -1
            : m_unifier.find(m_flow.of(id, leading));
    };
    for (std::size_t d = 0; d + 2 < rank; ++d)
        m_both.push_back(nodeAt(0, d));
    m_heads.push_back(m_both.back());
    if (inputs[0].terms[rank - 3].factors.size() > 1)
        m_groups.push_back(m_flow.at(op.inputs[0], rank - 3));
    for (const auto &[slot, dimension] : {std::pair{0, rank - 1}, {1, rank - 1}, {2, rank - 1}})
        name(nodeAt(static_cast<std::size_t>(slot), dimension), HeadSize);
    const Scores scores{id, nodeAt(0, rank - 2), nodeAt(1, rank - 2)};
    if (scores.query >= 0)
        m_queries.insert(scores.query);
    if (scores.key >= 0)
        m_scores.push_back(scores);
    else
        name(scores.query, Sequence);
}

/// True for what comes from a Softmax, but for a mask, a cast, a dropout.
bool DimensionNamer::isProbability(TensorId tensor) const
{
    for (int steps = 0; steps < 16 && tensor; ++steps) {
        const OperatorId made = m_flow.producer[static_cast<std::size_t>(tensor.index)];
        if (!made)
            return false;
        const Operator &op = at(made);
        if (op.kind == OperatorKind::Softmax)
            return true;
        if (!passesOn(op.kind))
            return false;
        const auto from = std::find_if(op.inputs.begin(), op.inputs.end(), [&](TensorId input) {
            return input && m_flow.fed[static_cast<std::size_t>(input.index)]
                && isFloating(graph().at(input).type.dataType);
        });
        tensor = from == op.inputs.end() ? TensorId{} : *from;
    }
    return false;
}

/// Products of probabilities and values: they sum over the keys, and keep the queries.
void DimensionNamer::nameValues()
{
    std::set<std::pair<Node, Node>> attentions;
    for (const Scores &scores : m_scores)
        attentions.insert({m_unifier.find(scores.key), m_unifier.find(scores.query)});
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        if (!isProduct(op.kind) || attentions.empty() || op.inputs.size() < 2) // an Einsum may read but one
            continue;
        if (isWeight(op.inputs[0]) || isWeight(op.inputs[1]))
            continue;
        const auto made = identifiersOf(op, op.annotation.outputs[0]);
        for (std::size_t side = 0; side < 2; ++side) {
            const auto weights = identifiersOf(op, op.annotation.inputs[side]);
            const auto values = identifiersOf(op, op.annotation.inputs[1 - side]);
            const auto sum = std::find_if(weights.begin(), weights.end(),
                [&](std::int32_t i) { return !holds(made, i) && holds(values, i); });
            const auto query = std::find_if(weights.begin(), weights.end(),
                [&](std::int32_t i) { return holds(made, i) && !holds(values, i) && m_flow.of(id, i) >= 0; });
            if (sum == weights.end() || !isProbability(op.inputs[side])
                || attentions.count(
                       {m_flow.of(id, *sum), query == weights.end() ? -1 : m_flow.of(id, *query)})
                    == 0)
                continue;
            for (const std::int32_t i : values) {
                if (holds(made, i) && !holds(weights, i))
                    name(m_flow.of(id, i), HeadSize);
            }
        }
    }
}

void DimensionNamer::nameHeads()
{
    std::set<Node> both;
    std::vector<Node> open = m_both;
    while (!open.empty()) {
        const Node node = m_unifier.find(open.back());
        open.pop_back();
        if (node < 0 || !both.insert(node).second)
            continue;
        const auto &factors = m_unifier.factorsOf(node);
        open.insert(open.end(), factors.begin(), factors.end());
    }
    const auto isHeads = [&](Node node) { return both.count(node) != 0 && meaningOf(node) != Batch; };
    for (std::size_t i = 0; i < m_unifier.size(); ++i) {
        const auto node = static_cast<Node>(i);
        if (m_unifier.find(node) != node)
            continue;
        const auto &factors = m_unifier.factorsOf(node);
        if (std::none_of(
                factors.begin(), factors.end(), [&](Node factor) { return meaningOf(factor) == HeadSize; }))
            continue;
        for (const Node factor : factors) {
            if (isHeads(m_unifier.find(factor)))
                name(factor, Heads);
        }
    }
    for (const WeightProduct &product : m_products) {
        for (const auto *side : {&product.sums, &product.makes}) {
            for (const Node node : *side) {
                if (isHeads(m_unifier.find(node)))
                    name(node, Heads);
            }
        }
    }
}

void DimensionNamer::nameEmbeddingsAndLosses()
{
    std::vector<std::pair<Node, OperatorId>> tables;
    std::int64_t longest = 0;
    // The columns of a table are Hidden, but for what stands beside the scores (biases by distance).
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        const bool gather = op.kind == OperatorKind::Gather && op.attributes.integer("axis") == 0
            && op.inputs[0] && graph().at(op.inputs[0]).role == TensorRole::Weight
            && graph().at(op.inputs[0]).type.shape.size() == 2;
        if (op.kind != OperatorKind::Embedding && !gather)
            continue;
        // What the indices are made of: an input of the model, but for its type and shape?
        TensorId from = op.inputs[1];
        for (OperatorId made = m_flow.producer[static_cast<std::size_t>(from.index)];
             made && (passesOn(at(made).kind) && at(made).inputs.size() == 1);
             made = m_flow.producer[static_cast<std::size_t>(from.index)])
            from = at(made).inputs[0];
        const Node rows = m_flow.at(op.inputs[0], 0);
        if (graph().at(from).role == TensorRole::Input) {
            tables.push_back({rows, id});
            longest = std::max(longest, rows < 0 ? 0 : m_unifier.extentOf(rows));
        } else if (m_flow.at(op.inputs[0], 1) >= 0) {
            name(rows, Positions);
        }
    }
    std::vector<Node> losses;
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        if (op.kind == OperatorKind::CrossEntropy || op.kind == OperatorKind::NegativeLogLikelihood
            || op.kind == OperatorKind::ClassStatistics)
            losses.push_back(m_flow.at(
                op.inputs[0], classAxis(op.attributes, graph().at(op.inputs[0]).type.shape.size())));
    }
    const auto isLoss = [&](Node rows) {
        return std::any_of(losses.begin(), losses.end(),
            [&](Node node) { return node >= 0 && m_unifier.extentOf(node) == m_unifier.extentOf(rows); });
    };
    const bool anyLoss = std::any_of(
        tables.begin(), tables.end(), [&](auto &table) { return table.first >= 0 && isLoss(table.first); });
    std::vector<std::int64_t> vocabularies;
    for (const auto &[rows, id] : tables) {
        if (rows < 0)
            continue;
        const bool tokens = anyLoss ? isLoss(rows) : m_unifier.extentOf(rows) == longest && losses.empty();
        name(rows, tokens ? Vocabulary : Positions);
        if (!tokens)
            continue;
        vocabularies.push_back(m_unifier.extentOf(rows));
        const TensorId indices = at(id).inputs[1];
        for (std::size_t d = 1; d < graph().at(indices).type.shape.size(); ++d)
            name(m_flow.at(indices, d), Sequence);
    }
    const auto isVocabulary = [&](Node node) {
        return std::find(vocabularies.begin(), vocabularies.end(), m_unifier.extentOf(node))
            != vocabularies.end();
    };
    for (const Node node : losses) {
        if (node >= 0)
            name(node, isVocabulary(node) ? Vocabulary : Classes);
    }
    for (const TensorId output : graph().outputs) { // logits of a model without a loss
        const Shape &shape = graph().at(output).type.shape;
        if (shape.empty())
            continue;
        const Node node = m_flow.at(output, shape.size() - 1);
        const bool made =
            std::any_of(m_products.begin(), m_products.end(), [&](const WeightProduct &product) {
                return std::any_of(product.makes.begin(), product.makes.end(),
                    [&](Node n) { return m_unifier.find(n) == node; });
            });
        if (made && node >= 0 && (isVocabulary(node) || (losses.empty() && shape.size() == 2)))
            name(node, isVocabulary(node) ? Vocabulary : Classes);
    }
}

void DimensionNamer::nameByKind()
{
    // Hidden before Channels: the patches of an image become the model's width.
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        if ((op.kind == OperatorKind::LayerNorm || op.kind == OperatorKind::RmsNorm) && op.inputs[0]) {
            const auto axis = static_cast<std::size_t>(op.attributes.integer("axis"));
            const std::size_t rank = graph().at(op.inputs[0]).type.shape.size();
            if (axis + 1 == rank)
                name(m_flow.at(op.inputs[0], axis), Hidden);
        } else if (op.kind == OperatorKind::Embedding) {
            name(m_flow.at(op.inputs[0], 1), Hidden);
        } else if (categoryOf(op.kind) == OperatorCategory::Recurrent && op.outputs[0]) {
            const std::size_t rank = graph().at(op.outputs[0]).type.shape.size();
            if (rank == 4) {
                name(m_flow.at(op.inputs[0], op.attributes.integer("layout") == 1 ? 1 : 0), Sequence);
                name(m_flow.at(op.outputs[0], 3), Hidden);
            }
        }
    }
    static constexpr DimensionMeaning kSpatial[] = {Depth, Height, Width};
    const auto nameImage = [&](TensorId tensor, bool spatial) {
        if (!tensor)
            return;
        const std::size_t rank = graph().at(tensor).type.shape.size();
        if (rank >= 2)
            name(m_flow.at(tensor, 1), Channels);
        if (rank == 3 && spatial)
            name(m_flow.at(tensor, 2), Sequence);
        for (std::size_t i = 2; i < rank && rank > 3 && rank <= 5; ++i)
            name(m_flow.at(tensor, i), kSpatial[i + 3 - rank]);
    };
    for (const OperatorId id : m_forward) {
        const Operator &op = at(id);
        switch (op.kind) {
        case OperatorKind::Conv:
        case OperatorKind::ConvTranspose:
        case OperatorKind::MaxPool:
        case OperatorKind::AveragePool:
        case OperatorKind::LpPool:
        case OperatorKind::BatchNormalize:
        case OperatorKind::BatchMean:
        case OperatorKind::BatchVariance:
        case OperatorKind::InstanceNorm:
            nameImage(op.inputs[0], true);
            if (op.kind != OperatorKind::BatchMean && op.kind != OperatorKind::BatchVariance)
                nameImage(op.outputs[0], true);
            else if (op.outputs[0] && graph().at(op.outputs[0]).type.shape.size() == 1)
                name(m_flow.at(op.outputs[0], 0), Channels);
            break;
        default:
            break;
        }
    }
}

} // namespace planloom
