// The rules for meanings that follow from the meanings of others: between two products, in a product of
// classes, of kin.

#include "engine/graph/dimensions/dimension_meaning.h"

#include <algorithm>
#include <cstddef>

namespace planloom {

void DimensionNamer::nameFeedForward()
{
    const auto any = [&](const std::vector<Node> &nodes, DimensionMeaning meaning) {
        return std::any_of(nodes.begin(), nodes.end(), [&](Node node) { return meaningOf(node) == meaning; });
    };
    std::set<Node> made; // by any product
    std::set<Node> from; // made from Hidden
    for (const WeightProduct &product : m_products) {
        for (const Node node : product.makes) {
            made.insert(m_unifier.find(node));
            if (any(product.sums, Hidden))
                from.insert(m_unifier.find(node));
        }
    }
    for (const DimensionUnifier::Kin &kin : m_unifier.kin()) { // halves of one product: gates
        const bool first = m_unifier.extentOf(kin.a) > m_unifier.extentOf(kin.b);
        const Node whole = m_unifier.find(first ? kin.a : kin.b);
        if (kin.kinship == DimensionUnifier::Kinship::Piece && from.count(whole) != 0)
            from.insert(m_unifier.find(first ? kin.b : kin.a));
    }
    for (const WeightProduct &product : m_products) {
        for (const Node node : product.sums) {
            const Node itself = m_unifier.find(node);
            if (from.count(itself) != 0 && any(product.makes, Hidden) && m_unifier.factorsOf(itself).empty())
                name(itself, FeedForward);
        }
    }
    for (const WeightProduct &product : m_products) {
        for (const Node node : product.sums) {
            if (made.count(m_unifier.find(node)) != 0 && m_unifier.factorsOf(node).empty())
                name(node, Hidden);
        }
    }
}

void DimensionNamer::nameProjections()
{
    // By slices of a dimension of its own, (3 heads head-size), or by pieces of one.
    for (const WeightProduct &product : m_products) {
        name(product.parts, Projection);
        for (const Node node : product.makes) {
            const auto factors = node < 0 ? std::vector<Node>{} : m_unifier.factorsOf(node);
            if (factors.size() < 2 || meaningOf(factors[0]) != Unknown)
                continue;
            for (const Node factor : m_unifier.flat(node)) {
                if (meaningOf(factor) == Heads)
                    name(node, Projection);
            }
        }
    }
    const auto leads = [&](Node node) {
        for (;;) {
            const DimensionMeaning meaning = meaningOf(node);
            if (meaning != Unknown || m_unifier.factorsOf(node).empty())
                return meaning;
            node = m_unifier.factorsOf(node).front();
        }
    };
    for (const DimensionUnifier::Kin &kin : m_unifier.kin()) {
        if (kin.kinship != DimensionUnifier::Kinship::Piece)
            continue;
        const bool first = m_unifier.extentOf(kin.a) > m_unifier.extentOf(kin.b);
        const DimensionMeaning part = leads(first ? kin.b : kin.a);
        if (part == Heads || part == FeedForward)
            name(first ? kin.a : kin.b, Projection);
    }
}

/// An image as a row of tokens.
void DimensionNamer::nameTokens()
{
    for (std::size_t i = 0; i < m_meaning.size(); ++i) {
        const auto node = static_cast<Node>(i);
        if (m_unifier.find(node) != node || m_meaning[i] != Unknown)
            continue;
        const auto &factors = m_unifier.factorsOf(node);
        if (factors.size() == 2 && meaningOf(factors[0]) == Height && meaningOf(factors[1]) == Width)
            name(node, Sequence);
    }
}

void DimensionNamer::nameFactors()
{
    // Outer products first, as far down as they go.
    std::vector<Node> open;
    for (std::size_t i = 0; i < m_meaning.size(); ++i) {
        if (m_unifier.find(static_cast<Node>(i)) == static_cast<Node>(i)
            && !m_unifier.factorsOf(static_cast<Node>(i)).empty())
            open.push_back(static_cast<Node>(i));
    }
    std::stable_sort(open.begin(), open.end(),
        [&](Node a, Node b) { return m_unifier.extentOf(a) > m_unifier.extentOf(b); });
    for (const bool inner : {true, false}) {
        for (const Node node : open) {
            const DimensionMeaning meaning = meaningOf(node);
            const auto &factors = m_unifier.factorsOf(node);
            const bool place =
                meaning == Height || meaning == Width || meaning == Depth || meaning == Sequence;
            if (meaning == Unknown)
                continue;
            // Tokens are made of an image, which has meanings of its own, or of the places in a window.
            for (std::size_t i = 1; i < factors.size() && inner && place; ++i)
                name(factors[i], Window);
            if (!inner && (place || meaning == Batch || meaning == Heads))
                name(factors[0], meaning);
        }
    }
}

void DimensionNamer::nameFeatures()
{
    for (const WeightProduct &product : m_products) {
        for (const auto *side : {&product.sums, &product.makes}) {
            for (const Node node : *side) {
                if (node >= 0 && m_unifier.factorsOf(node).empty())
                    name(node, Features);
            }
        }
    }
}

/// Kin have the same meaning, if one has: breadth first, in the order in which they were met.
void DimensionNamer::propagate()
{
    const auto &kin = m_unifier.kin();
    std::vector<std::vector<Node>> neighbours(m_unifier.size());
    std::vector<Node> open;
    const auto carries = [](DimensionMeaning meaning, DimensionUnifier::Kinship kinship) {
        return kinship == DimensionUnifier::Kinship::Apart
            || (meaning != Heads && meaning != FeedForward && meaning != Projection && meaning != Vocabulary
                && meaning != Expert && meaning != Batch);
    };
    for (const DimensionUnifier::Kin &pair : kin) {
        const Node a = m_unifier.find(pair.a);
        const Node b = m_unifier.find(pair.b);
        neighbours[static_cast<std::size_t>(a)].push_back(b);
        neighbours[static_cast<std::size_t>(b)].push_back(a);
    }
    for (const DimensionUnifier::Kin &pair : kin) {
        for (const Node node : {m_unifier.find(pair.a), m_unifier.find(pair.b)}) {
            if (meaningOf(node) != Unknown)
                open.push_back(node);
        }
    }
    for (std::size_t i = 0; i < open.size(); ++i) {
        const Node node = open[i];
        const DimensionMeaning meaning = meaningOf(node);
        for (const Node other : neighbours[static_cast<std::size_t>(node)]) {
            const bool same = m_unifier.extentOf(other) == m_unifier.extentOf(node);
            if (meaningOf(other) != Unknown
                || !carries(
                    meaning, same ? DimensionUnifier::Kinship::Apart : DimensionUnifier::Kinship::Piece))
                continue;
            name(other, meaning);
            // An even part (every second row of an image) is a dimension of its own.
            m_piece[static_cast<std::size_t>(other)] =
                m_unifier.extentOf(node) % m_unifier.extentOf(other) != 0
                && m_unifier.extentOf(other) < m_unifier.extentOf(node);
            open.push_back(other);
        }
    }
}

} // namespace planloom
