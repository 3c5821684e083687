#pragma once

// Private to the graph room: what the classes of a graph mean.

#include "engine/graph/dimensions/batch.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "engine/graph/dimensions/dimension_flow.h"

#include <cstdint>
#include <set>
#include <vector>

namespace planloom {

/// Applies the rules for meanings of dimension_classes.h.
class DimensionNamer
{
public:
    using Node = DimensionUnifier::Node;

    explicit DimensionNamer(DimensionFlow &flow);

    DimensionMeaning meaningOf(Node node);
    /// True for what keys and values alone are along, in self-attention: "key sequence".
    bool isKey(Node node);
    /// True for what has its meaning from something longer that it is a piece of.
    bool isPiece(Node node);

private:
    using enum DimensionMeaning;

    struct Scores { ///< One product of queries and keys, or an Attention.
        OperatorId op{};
        Node query = -1;
        Node key = -1;
    };
    /// What a product by a parameter sums over and makes.
    struct WeightProduct {
        std::vector<Node> sums{};
        std::vector<Node> makes{};
        Node parts = -1; ///< Of a projection in parts: which of them.
    };

    void nameBatch();
    void nameAttentions();
    void nameScores(OperatorId op, Node key);
    void nameFused(OperatorId op);
    void nameValues();
    void nameHeads();
    void nameEmbeddingsAndLosses();
    void nameByKind();
    void nameWeightProducts();
    void nameFeedForward();
    void nameProjections();
    void nameTokens();
    void nameFactors();
    void nameFeatures();
    void propagate();

    const Graph &graph() const { return m_flow.graph; }
    const Operator &at(OperatorId id) const { return graph().at(id); }
    /// Names a class that has no name yet.
    void name(Node node, DimensionMeaning meaning);
    bool isParameter(TensorId id) const;
    bool isWeight(TensorId id) const; ///< A parameter, or a set of parameters that was chosen.
    bool isProbability(TensorId id) const;
    /// Identifiers of one tensor of an operator, without literals, each once.
    std::vector<std::int32_t> identifiersOf(const Operator &op, const TensorTerms &terms) const;
    /// The product of activations whose result reaches dimension `axis` of `tensor`.
    OperatorId findScores(TensorId tensor, Node axis, bool &routed);

    DimensionFlow &m_flow;
    DimensionUnifier &m_unifier;
    std::vector<DimensionMeaning> m_meaning{}; ///< By root.
    std::vector<bool> m_piece{}; ///< By root.
    std::vector<OperatorId> m_forward{};
    std::vector<Scores> m_scores{};
    std::vector<WeightProduct> m_products{};
    std::vector<Node> m_both{}; ///< What queries, keys and scores all have.
    std::vector<Node>
        m_heads{}; ///< Of Attentions: the dimension that stands for heads, of keys if they are fewer.
    std::vector<Node> m_groups{}; ///< Of Attentions: that of the heads of queries that share heads of keys.
    std::vector<Node> m_experts{}; ///< Routed among, or had by activation, weight and result.
    std::set<Node> m_queries{};
};

} // namespace planloom
