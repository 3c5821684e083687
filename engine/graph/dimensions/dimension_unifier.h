#pragma once

// Private to the graph room: the classes of dimension_classes.h while they are being found.

#include "engine/graph/graph.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace planloom {

/// A disjoint-set forest over dimensions, some of which are products of others, that never puts two
/// identifiers of one operator into one set.
class DimensionUnifier
{
public:
    /// A dimension on its way to its class; -1 for those of size 1, which have none.
    using Node = std::int32_t;

    enum class Kinship : std::uint8_t {
        Apart, ///< Would be one class, but for an operator that has both.
        Piece, ///< One is a piece of the other.
    };
    struct Kin {
        Node a = -1;
        Node b = -1; ///< Of Piece: the whole, if `a` is shorter.
        Kinship kinship = Kinship::Apart;
    };

    explicit DimensionUnifier(const Graph &graph);

    Node fresh(std::int64_t extent);
    std::vector<Node> freshAll(const Shape &shape);
    /// The node that stands for the class.
    Node find(Node node);
    std::int64_t extentOf(Node node) const { return m_extent[static_cast<std::size_t>(node)]; }
    std::size_t size() const { return m_parent.size(); }
    const std::vector<Kin> &kin() const { return m_kin; }

    /// Joins two classes of the same extent, and their factors. Makes them kin where an operator has both.
    void unify(Node a, Node b);
    /// Joins equals, and makes kin of others.
    void relate(Node piece, Node whole);

    /// The class that is the product of these, outermost first; one there is already, if any.
    Node product(const std::vector<Node> &factors);
    /// Empty if it isn't known to be a product.
    const std::vector<Node> &factorsOf(Node node) { return m_factors[index(find(node))]; }
    /// What `node` is made of, as far down as is known; the node itself if it isn't a product.
    std::vector<Node> flat(Node node);
    /// The outermost `extent` of a class; a new class if it has no such factors.
    Node prefix(Node node, std::int64_t extent);
    /// The dimensions of a tensor after its elements were regrouped to `to`.
    std::vector<Node> regroup(const std::vector<Node> &nodes, const Shape &from, const Shape &to);

    /// The class of an operator's identifier; -1 until `bind`.
    Node of(std::size_t op, std::int32_t identifier);
    /// Says that an operator's identifier is of this class: it takes it, or joins it with its own.
    void bind(std::size_t op, std::int32_t identifier, Node node);

private:
    static std::size_t index(std::int32_t value) { return static_cast<std::size_t>(value); }
    bool clash(Node a, Node b);
    std::vector<Node> regroupFactors(
        const std::vector<Node> &nodes, std::size_t begin, std::size_t end, const Shape &to);
    void setFactors(Node node, std::vector<Node> factors);
    void align(std::vector<Node> a, std::vector<Node> b);
    void addMember(Node root, std::int32_t slot);
    void takeFrom(std::vector<Node> &stack, std::int64_t extent, std::vector<Node> &taken, bool &held);

    std::vector<Node> m_parent;
    std::vector<std::int64_t> m_extent;
    std::vector<std::vector<Node>> m_factors; ///< Of roots.
    std::vector<std::vector<Node>> m_ledBy; ///< Of roots: products whose outermost atom they are.

    // Identifiers by slot: those of operator i begin at m_begin[i].
    std::vector<std::int32_t> m_begin;
    std::vector<std::int32_t> m_operator; ///< By slot.
    std::vector<Node> m_node; ///< By slot.
    std::vector<std::int32_t> m_next; ///< By slot: the next one in the same class.
    struct Members {
        std::int32_t first = -1;
        std::int32_t last = -1;
        std::int32_t count = 0;
    };
    std::vector<Members> m_members; ///< Of roots.
    /// Pairs of roots that one operator has both of: classes of sequences and keys meet in every layer.
    std::unordered_set<std::uint64_t> m_apart;
    std::vector<Kin> m_kin;
};

} // namespace planloom
