#include "engine/analyse/graph_difference.h"

#include "engine/plan/graph_match.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <variant>

namespace planloom {

namespace {

/// Numbered through a model: no attribute that a person gives.
constexpr std::string_view kSeed = "seed";

std::string wordOf(std::int64_t value)
{
    return std::to_string(value);
}

std::string wordOf(double value)
{
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

std::string wordOf(const std::string &value)
{
    return value;
}

template<typename T> std::string wordOf(const std::vector<T> &values)
{
    std::string text = "[";
    for (const T &value : values)
        text += (text.size() > 1 ? " " : "") + wordOf(value);
    return text + "]";
}

std::string wordOf(const Tensor &tensor)
{
    return tensor.typeKnown ? std::string(nameOf(tensor.type.dataType)) + " " + toString(tensor.type.shape)
                            : "an unknown type";
}

using NamedAttributes = std::map<std::string, Attribute, std::less<>>;

NamedAttributes givenAttributes(const Operator &op)
{
    NamedAttributes given = op.attributes.all();
    given.erase(std::string(kSeed));
    return given;
}

bool sameKind(const Operator &a, const Operator &b)
{
    return a.kind == b.kind && (!isNamedByFile(a) || typeNameOf(a) == typeNameOf(b));
}

bool sameTypes(
    const Graph &a, const std::vector<TensorId> &ofA, const Graph &b, const std::vector<TensorId> &ofB)
{
    return std::equal(ofA.begin(), ofA.end(), ofB.begin(), ofB.end(), [&](TensorId one, TensorId other) {
        if (!one || !other)
            return one.valid() == other.valid();
        return a.at(one).typeKnown == b.at(other).typeKnown && a.at(one).type == b.at(other).type;
    });
}

class Comparison
{
public:
    Comparison(const SelectorIndex &a, const SelectorIndex &b, const std::stop_token &stop)
        : m_a(a)
        , m_b(b)
        , m_match(matchOperators(a, b, stop))
    {
        matchOtherKinds();
    }

    GraphDifference difference() const
    {
        GraphDifference found;
        for (std::size_t i = 0; i < m_a.forwardCount(); ++i) {
            const OperatorId one{static_cast<std::int32_t>(i)};
            const OperatorId other = m_match.after[i];
            if (!other) {
                found.removed.push_back(one);
                continue;
            }
            const ChangedOperator change = changeOf(one, other);
            if (change == ChangedOperator{one, other})
                ++found.same;
            else
                found.changed.push_back(change);
        }
        for (std::size_t i = 0; i < m_b.forwardCount(); ++i)
            if (!m_match.before[i])
                found.added.push_back({static_cast<std::int32_t>(i)});
        return found;
    }

private:
    bool isOpen(OperatorId a) const { return !m_match.after[at(a)]; }
    bool isOpenAfter(OperatorId b) const { return !m_match.before[at(b)]; }

    void pair(OperatorId a, OperatorId b)
    {
        m_match.after[at(a)] = b;
        m_match.before[at(b)] = a;
    }

    /// Counterparts of another kind: of the same name first, then at the same place.
    void matchOtherKinds()
    {
        for (std::size_t i = 0; i < m_a.forwardCount(); ++i) {
            const OperatorId a{static_cast<std::int32_t>(i)};
            const OperatorId b = m_b.findOperator(m_a.graph().at(a).name);
            if (isOpen(a) && b && at(b) < m_b.forwardCount() && isOpenAfter(b) && !neighbours(m_a, a).empty()
                && isBetween(a, b))
                pair(a, b);
        }
        for (std::size_t i = 0; i < m_a.forwardCount(); ++i) {
            const OperatorId a{static_cast<std::int32_t>(i)};
            if (!isOpen(a))
                continue;
            const OperatorId b = onlyOpenAtPlaceOf(a);
            if (b && isBetween(a, b))
                pair(a, b);
        }
    }

    /// Makers of inputs and readers of outputs, with the slot that they are met at, among forward operators.
    static std::vector<std::pair<std::int32_t, OperatorId>> neighbours(
        const SelectorIndex &index, OperatorId op)
    {
        std::vector<std::pair<std::int32_t, OperatorId>> found;
        const Operator &self = index.graph().at(op);
        for (const TensorId input : self.inputs)
            if (const OperatorId maker = makerOf(index, input))
                found.emplace_back(0, maker);
        for (const TensorId output : self.outputs) {
            if (!output)
                continue;
            for (const OperatorId reader : index.uses().consumers[at(output)])
                if (at(reader) < index.forwardCount())
                    found.emplace_back(1, reader);
        }
        return found;
    }

    static OperatorId makerOf(const SelectorIndex &index, TensorId tensor)
    {
        if (!tensor)
            return {};
        const auto &makers = index.uses().producers[at(tensor)];
        return !makers.empty() && at(makers.front()) < index.forwardCount() ? makers.front() : OperatorId{};
    }

    /// All of `a`'s neighbours that have counterparts are neighbours of `b`, on the same side, and the other
    /// way round; at least one is.
    bool isBetween(OperatorId a, OperatorId b) const
    {
        const auto counterparts = [](const auto &list, const std::vector<OperatorId> &by) {
            std::vector<std::pair<std::int32_t, OperatorId>> known;
            for (const auto &[side, op] : list)
                if (by[at(op)])
                    known.emplace_back(side, by[at(op)]);
            std::sort(known.begin(), known.end());
            return known;
        };
        auto ofA = counterparts(neighbours(m_a, a), m_match.after);
        auto ofB = neighbours(m_b, b);
        std::erase_if(ofB, [&](const auto &each) { return isOpenAfter(each.second); });
        std::sort(ofB.begin(), ofB.end());
        return !ofA.empty() && ofA == ofB;
    }

    /// The one open operator of the second model beside the counterpart of a neighbour of `a`.
    OperatorId onlyOpenAtPlaceOf(OperatorId a) const
    {
        for (const auto &[side, neighbour] : neighbours(m_a, a)) {
            const OperatorId known = m_match.after[at(neighbour)];
            if (!known)
                continue;
            OperatorId open;
            std::int32_t count = 0;
            for (const auto &[otherSide, candidate] : neighbours(m_b, known))
                if (otherSide != side && isOpenAfter(candidate) && candidate != open) {
                    open = candidate;
                    ++count;
                }
            if (count == 1)
                return open;
        }
        return {};
    }

    ChangedOperator changeOf(OperatorId a, OperatorId b) const
    {
        const Operator &one = m_a.graph().at(a);
        const Operator &other = m_b.graph().at(b);
        ChangedOperator change{a, b};
        change.renamed = one.name != other.name;
        change.kind = !sameKind(one, other);
        change.shapes = !sameTypes(m_a.graph(), one.inputs, m_b.graph(), other.inputs)
            || !sameTypes(m_a.graph(), one.outputs, m_b.graph(), other.outputs);
        change.attributes = givenAttributes(one) != givenAttributes(other);
        change.wiring = isRewired(one, other);
        return change;
    }

    bool isRewired(const Operator &one, const Operator &other) const
    {
        for (std::size_t slot = 0; slot < std::min(one.inputs.size(), other.inputs.size()); ++slot) {
            const OperatorId from = makerOf(m_a, one.inputs[slot]);
            const OperatorId to = makerOf(m_b, other.inputs[slot]);
            if (from && to && m_match.after[at(from)] && m_match.before[at(to)]
                && m_match.after[at(from)] != to)
                return true;
        }
        return false;
    }

    const SelectorIndex &m_a;
    const SelectorIndex &m_b;
    GraphMatch m_match{};
};

/// What differs between two lists of tensors, slot by slot.
void appendSlots(std::vector<std::string> &words, const char *what, const Graph &a,
    const std::vector<TensorId> &ofA, const Graph &b, const std::vector<TensorId> &ofB)
{
    const auto wordAt = [](const Graph &graph, const std::vector<TensorId> &slots, std::size_t slot) {
        return slot < slots.size() && slots[slot] ? wordOf(graph.at(slots[slot])) : std::string("none");
    };
    for (std::size_t slot = 0; slot < std::max(ofA.size(), ofB.size()); ++slot) {
        const std::string before = wordAt(a, ofA, slot);
        const std::string after = wordAt(b, ofB, slot);
        if (before != after)
            words.push_back(std::string(what) + " " + std::to_string(slot) + " " + after + ", was " + before);
    }
}

} // namespace

GraphDifference differenceOf(const SelectorIndex &a, const SelectorIndex &b, const std::stop_token &stop)
{
    return Comparison(a, b, stop).difference();
}

std::string wordsOf(const ChangedOperator &change, const Graph &a, const Graph &b)
{
    const Operator &one = a.at(change.a);
    const Operator &other = b.at(change.b);
    std::vector<std::string> words;
    if (change.kind)
        words.push_back("kind " + typeNameOf(other) + ", was " + typeNameOf(one));
    if (change.shapes) {
        appendSlots(words, "input", a, one.inputs, b, other.inputs);
        appendSlots(words, "output", a, one.outputs, b, other.outputs);
    }
    if (change.attributes) {
        const NamedAttributes before = givenAttributes(one);
        const NamedAttributes after = givenAttributes(other);
        const auto textIn = [](const NamedAttributes &list, const std::string &name) {
            const auto found = list.find(name);
            return found == list.end()
                ? std::string("none")
                : std::visit([](const auto &value) { return wordOf(value); }, found->second);
        };
        NamedAttributes all = before;
        all.insert(after.begin(), after.end());
        for (const auto &[name, value] : all)
            if (const std::string is = textIn(after, name), was = textIn(before, name); is != was)
                words.push_back("attribute " + name + " " + is + ", was " + was);
    }
    if (change.wiring)
        words.emplace_back("reads what another operator makes");
    std::string text;
    for (const std::string &each : words)
        text += (text.empty() ? "" : "; ") + each;
    return text;
}

} // namespace planloom
