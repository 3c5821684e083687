#include "engine/graph/dimensions/dimension_unifier.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace planloom {

namespace {

void push(std::vector<std::int32_t> &stack, const std::vector<std::int32_t> &nodes)
{
    stack.insert(stack.end(), nodes.rbegin(), nodes.rend());
}

} // namespace

DimensionUnifier::DimensionUnifier(const Graph &graph)
{
    m_begin.reserve(graph.operators.size() + 1);
    m_begin.push_back(0);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const std::size_t count = graph.operators[i].annotation.dimensions.size();
        m_begin.push_back(m_begin.back() + static_cast<std::int32_t>(count));
        m_operator.insert(m_operator.end(), count, static_cast<std::int32_t>(i));
    }
    m_node.assign(m_operator.size(), -1);
    m_next.assign(m_operator.size(), -1);
}

DimensionUnifier::Node DimensionUnifier::fresh(std::int64_t extent)
{
    if (extent <= 1)
        return -1;
    const auto node = static_cast<Node>(m_parent.size());
    m_parent.push_back(node);
    m_extent.push_back(extent);
    m_factors.emplace_back();
    m_ledBy.emplace_back();
    m_members.emplace_back();
    return node;
}

std::vector<DimensionUnifier::Node> DimensionUnifier::freshAll(const Shape &shape)
{
    std::vector<Node> nodes;
    nodes.reserve(shape.size());
    for (const std::int64_t extent : shape)
        nodes.push_back(fresh(extent));
    return nodes;
}

DimensionUnifier::Node DimensionUnifier::find(Node node)
{
    if (node < 0)
        return -1;
    while (m_parent[index(node)] != node) {
        m_parent[index(node)] = m_parent[index(m_parent[index(node)])];
        node = m_parent[index(node)];
    }
    return node;
}

DimensionUnifier::Node DimensionUnifier::of(std::size_t op, std::int32_t identifier)
{
    return find(m_node[index(m_begin[op] + identifier)]);
}

void DimensionUnifier::addMember(Node root, std::int32_t slot)
{
    Members &members = m_members[index(root)];
    if (members.last >= 0)
        m_next[index(members.last)] = slot;
    else
        members.first = slot;
    members.last = slot;
    ++members.count;
}

void DimensionUnifier::bind(std::size_t op, std::int32_t identifier, Node node)
{
    const std::int32_t slot = m_begin[op] + identifier;
    node = find(node);
    if (node < 0)
        return;
    if (m_node[index(slot)] >= 0)
        return unify(m_node[index(slot)], node);
    for (std::int32_t other = m_begin[op]; other < m_begin[op + 1]; ++other) {
        if (find(m_node[index(other)]) != node)
            continue;
        const Node mine = fresh(extentOf(node));
        m_kin.push_back({mine, node, Kinship::Apart});
        node = mine;
        break;
    }
    m_node[index(slot)] = node;
    addMember(node, slot);
}

/// Walks the smaller class, once: what clashes goes on to.
bool DimensionUnifier::clash(Node a, Node b)
{
    const auto low = static_cast<std::uint64_t>(std::min(a, b));
    const std::uint64_t pair = low << 32U | static_cast<std::uint64_t>(std::max(a, b));
    if (m_apart.count(pair) != 0)
        return true;
    if (m_members[index(a)].count < m_members[index(b)].count)
        std::swap(a, b);
    for (std::int32_t slot = m_members[index(b)].first; slot >= 0; slot = m_next[index(slot)]) {
        const auto op = index(m_operator[index(slot)]);
        for (std::int32_t other = m_begin[op]; other < m_begin[op + 1]; ++other) {
            if (other == slot || find(m_node[index(other)]) != a)
                continue;
            m_apart.insert(pair);
            return true;
        }
    }
    return false;
}

void DimensionUnifier::unify(Node a, Node b)
{
    a = find(a);
    b = find(b);
    if (a < 0 || b < 0 || a == b || extentOf(a) != extentOf(b))
        return;
    if (clash(a, b)) {
        m_kin.push_back({a, b, Kinship::Apart});
        return;
    }
    if (m_members[index(a)].count < m_members[index(b)].count)
        std::swap(a, b);
    m_parent[index(b)] = a;
    Members &to = m_members[index(a)];
    const Members from = m_members[index(b)];
    if (from.count > 0) {
        if (to.last >= 0)
            m_next[index(to.last)] = from.first;
        else
            to.first = from.first;
        to.last = from.last;
        to.count += from.count;
    }
    auto &led = m_ledBy[index(a)];
    led.insert(led.end(), m_ledBy[index(b)].begin(), m_ledBy[index(b)].end());
    m_ledBy[index(b)].clear();
    std::vector<Node> mine = m_factors[index(a)];
    std::vector<Node> theirs = std::move(m_factors[index(b)]);
    m_factors[index(b)].clear();
    if (mine.empty() && !theirs.empty())
        setFactors(a, std::move(theirs));
    else if (!mine.empty() && !theirs.empty())
        align(std::move(mine), std::move(theirs));
}

void DimensionUnifier::relate(Node piece, Node whole)
{
    if (piece < 0 || whole < 0)
        return;
    if (extentOf(piece) == extentOf(whole))
        unify(piece, whole);
    else
        m_kin.push_back({piece, whole, Kinship::Piece});
}

void DimensionUnifier::setFactors(Node node, std::vector<Node> factors)
{
    m_factors[index(node)] = std::move(factors);
    const Node first = flat(node).front();
    if (first == node)
        return;
    std::vector<Node> led = std::move(m_ledBy[index(node)]);
    m_ledBy[index(node)].clear();
    led.push_back(node);
    auto &to = m_ledBy[index(first)];
    to.insert(to.end(), led.begin(), led.end());
}

/// Two ways to write one class as a product, walked together: what is equal is joined, what is longer
/// divided.
void DimensionUnifier::align(std::vector<Node> a, std::vector<Node> b)
{
    std::reverse(a.begin(), a.end());
    std::reverse(b.begin(), b.end());
    while (!a.empty() && !b.empty()) {
        const Node x = find(a.back());
        const Node y = find(b.back());
        if (extentOf(x) == extentOf(y)) {
            a.pop_back();
            b.pop_back();
            unify(x, y);
            continue;
        }
        const bool first = extentOf(x) > extentOf(y);
        const Node longer = first ? x : y;
        const Node shorter = first ? y : x;
        if (factorsOf(longer).empty()) {
            if (extentOf(longer) % extentOf(shorter) != 0)
                return;
            const Node outer = fresh(extentOf(shorter));
            setFactors(longer, {outer, fresh(extentOf(longer) / extentOf(shorter))});
        }
        auto &stack = first ? a : b;
        stack.pop_back();
        push(stack, factorsOf(longer));
    }
}

std::vector<DimensionUnifier::Node> DimensionUnifier::flat(Node node)
{
    std::vector<Node> atoms;
    std::vector<Node> open{find(node)};
    while (!open.empty()) {
        const Node next = find(open.back());
        open.pop_back();
        if (m_factors[index(next)].empty())
            atoms.push_back(next);
        else
            push(open, m_factors[index(next)]);
    }
    return atoms;
}

DimensionUnifier::Node DimensionUnifier::product(const std::vector<Node> &all)
{
    std::vector<Node> factors;
    std::vector<Node> atoms;
    std::int64_t extent = 1;
    for (const Node node : all) {
        if (node < 0)
            continue;
        factors.push_back(find(node));
        const auto more = flat(node);
        atoms.insert(atoms.end(), more.begin(), more.end());
        extent *= extentOf(node);
    }
    if (factors.size() < 2)
        return factors.empty() ? -1 : factors[0];
    for (const Node known : m_ledBy[index(atoms[0])]) {
        if (extentOf(known) == extent && flat(known) == atoms)
            return find(known);
    }
    const Node made = fresh(extent);
    setFactors(made, std::move(factors));
    return made;
}

/// Takes factors of product `extent` from the top of `stack`, dividing the last if it must.
void DimensionUnifier::takeFrom(
    std::vector<Node> &stack, std::int64_t extent, std::vector<Node> &taken, bool &held)
{
    while (held && extent > 1) {
        if (stack.empty()) {
            held = false;
            return;
        }
        const Node next = find(stack.back());
        const std::int64_t size = extentOf(next);
        if (extent % size == 0) {
            taken.push_back(next);
            stack.pop_back();
            extent /= size;
            continue;
        }
        if (factorsOf(next).empty()) {
            if (size % extent != 0) {
                held = false;
                return;
            }
            const Node outer = fresh(extent);
            setFactors(next, {outer, fresh(size / extent)});
        }
        stack.pop_back();
        push(stack, factorsOf(next));
    }
}

DimensionUnifier::Node DimensionUnifier::prefix(Node node, std::int64_t extent)
{
    node = find(node);
    if (node < 0 || extentOf(node) == extent)
        return node;
    std::vector<Node> taken;
    std::int64_t left = extent;
    for (const Node atom : flat(node)) {
        if (left == 1 || left % extentOf(atom) != 0)
            break;
        taken.push_back(atom);
        left /= extentOf(atom);
    }
    return left == 1 ? product(taken) : fresh(extent);
}

std::vector<DimensionUnifier::Node> DimensionUnifier::regroup(
    const std::vector<Node> &nodes, const Shape &from, const Shape &to)
{
    std::vector<Node> made(to.size(), -1);
    std::size_t i = 0;
    std::size_t o = 0;
    const auto skipOnes = [](const Shape &shape, std::size_t &at) {
        while (at < shape.size() && shape[at] == 1)
            ++at;
    };
    for (;;) {
        skipOnes(from, i);
        skipOnes(to, o);
        if (i >= from.size() || o >= to.size())
            return made;
        // The smallest run of dimensions with the same product on both sides.
        std::int64_t left = from[i];
        std::int64_t right = to[o];
        std::size_t endIn = i + 1;
        std::size_t endOut = o + 1;
        while (left != right) {
            if (left < right && endIn < from.size())
                left *= from[endIn++];
            else if (left > right && endOut < to.size())
                right *= to[endOut++];
            else
                return made; // no elements
        }
        std::vector<Node> stack;
        for (std::size_t at = endIn; at-- > i;) {
            if (nodes[at] >= 0)
                stack.push_back(nodes[at]);
        }
        const std::size_t first = o;
        bool held = true;
        for (; o < endOut; ++o) {
            std::vector<Node> taken;
            takeFrom(stack, to[o], taken, held);
            made[o] = held ? product(taken) : fresh(to[o]);
        }
        if (!held) {
            const auto again = regroupFactors(nodes, i, endIn,
                Shape(to.begin() + static_cast<std::ptrdiff_t>(first),
                    to.begin() + static_cast<std::ptrdiff_t>(endOut)));
            std::copy(again.begin(), again.end(), made.begin() + static_cast<std::ptrdiff_t>(first));
        }
        i = endIn;
    }
}

/// A run that could not be regrouped as a whole: in the smaller runs of what it is made of, if there are any.
std::vector<DimensionUnifier::Node> DimensionUnifier::regroupFactors(
    const std::vector<Node> &nodes, std::size_t begin, std::size_t end, const Shape &to)
{
    std::vector<Node> factors;
    std::set<std::int64_t> boundaries;
    std::int64_t inside = 1;
    for (std::size_t i = begin; i < end; ++i) {
        const Node node = find(nodes[i]);
        if (node < 0)
            continue;
        for (const Node atom : flat(node))
            boundaries.insert(inside *= extentOf(atom));
        if (factorsOf(node).empty())
            factors.push_back(node);
        else
            factors.insert(factors.end(), factorsOf(node).begin(), factorsOf(node).end());
    }
    std::int64_t made = 1;
    bool smaller = false;
    for (const std::int64_t extent : to) {
        made *= extent;
        smaller = smaller || (made > 1 && made < inside && boundaries.count(made) != 0);
    }
    if (!smaller) {
        // Extents that do not divide each other's: the outermost is still one of the other's.
        std::vector<Node> fresh = freshAll(to);
        const auto first = std::find_if(fresh.begin(), fresh.end(), [](Node node) { return node >= 0; });
        if (first != fresh.end())
            relate(*first, nodes[begin]);
        return fresh;
    }
    Shape from;
    for (const Node node : factors)
        from.push_back(extentOf(node));
    return regroup(factors, from, to);
}

} // namespace planloom
