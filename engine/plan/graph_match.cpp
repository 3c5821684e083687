#include "engine/plan/graph_match.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

using Key = std::uint64_t;
using Keys = std::vector<Key>; ///< By forward operator.

constexpr std::size_t kSmallConstant = 64; ///< Bytes of constants that are compared.

Key mixed(Key a, Key b)
{
    Key x = a ^ (b + 0x9e3779b97f4a7c15U + (a << 6U) + (a >> 2U));
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

Key hashOf(std::string_view text)
{
    Key hash = 0xcbf29ce484222325U;
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return mixed(hash, text.size());
}

Key hashOf(const TensorType &type)
{
    Key hash = static_cast<Key>(type.dataType);
    for (const std::int64_t extent : type.shape)
        hash = mixed(hash, static_cast<Key>(extent));
    return mixed(hash, type.shape.size());
}

struct HashAttribute {
    Key operator()(std::int64_t value) const { return static_cast<Key>(value); }
    Key operator()(double value) const { return std::bit_cast<Key>(value); }
    Key operator()(const std::string &value) const { return hashOf(value); }
    template<typename T> Key operator()(const std::vector<T> &values) const
    {
        Key hash = values.size();
        for (const T &value : values)
            hash = mixed(hash, (*this)(value));
        return hash;
    }
};

/// What is known of one of the two models.
struct Side {
    explicit Side(const SelectorIndex &selectorIndex)
        : index(selectorIndex)
        , graph(index.graph())
        , count(index.forwardCount())
    {
        for (std::size_t i = 0; i < count; ++i) {
            for (const TensorId input : graph.operators[i].inputs) {
                if (input.valid() && graph.at(input).role == TensorRole::Weight)
                    addTo(weights, i, hashOf(graph.at(input).name));
            }
        }
        weights.resize(count, 0);
    }

    static void addTo(Keys &keys, std::size_t i, Key key)
    {
        keys.resize(std::max(keys.size(), i + 1), 0);
        keys[i] = mixed(keys[i] + 1, key);
    }

    /// The forward operator that makes `tensor`; an invalid id if none does.
    OperatorId producer(TensorId tensor) const
    {
        if (!tensor.valid())
            return {};
        const auto &producers = index.uses().producers[at(tensor)];
        return !producers.empty() && at(producers.front()) < count ? producers.front() : OperatorId{};
    }

    /// What an operator is on its own: with shapes and attributes, or (`weak`) without.
    Key ownKey(const Operator &op, bool weak) const
    {
        Key hash = mixed(static_cast<Key>(op.kind), op.inputs.size() * 64 + op.outputs.size());
        if (isNamedByFile(op))
            hash = mixed(hash, hashOf(typeNameOf(op)));
        if (weak)
            return hash;
        for (const auto &[name, value] : op.attributes.all()) {
            if (name != "seed") // numbered through the model
                hash = mixed(mixed(hash, hashOf(name)), std::visit(HashAttribute{}, value));
        }
        for (const auto *slots : {&op.inputs, &op.outputs}) {
            for (const TensorId tensor : *slots)
                hash = mixed(hash, tensor.valid() ? hashOf(graph.at(tensor).type) : 1);
        }
        return hash;
    }

    Key leafKey(TensorId id, bool weak) const
    {
        if (!id.valid())
            return 1;
        const Tensor &tensor = graph.at(id);
        Key hash = mixed(2, static_cast<Key>(tensor.role));
        if (!weak && tensor.data && tensor.data->bytes.size() <= kSmallConstant) {
            for (const std::byte byte : tensor.data->bytes)
                hash = mixed(hash, static_cast<Key>(byte));
        }
        return hash;
    }

    void computeKeys(bool weak)
    {
        own.assign(count, 0);
        up.assign(count, 0);
        down.assign(count, 0);
        in.assign(count, 0);
        out.assign(count, 0);
        both.assign(count, 0);
        for (std::size_t i = 0; i < count; ++i) {
            const Operator &op = graph.operators[i];
            own[i] = ownKey(op, weak);
            up[i] = in[i] = own[i];
            for (const TensorId input : op.inputs) {
                const OperatorId from = producer(input);
                if (!from.valid()) {
                    const Key leaf = leafKey(input, weak);
                    up[i] = mixed(up[i], leaf);
                    in[i] = mixed(in[i], leaf);
                    continue;
                }
                const auto &made = graph.at(from).outputs;
                const auto slot = static_cast<Key>(std::find(made.begin(), made.end(), input) - made.begin());
                up[i] = mixed(up[i], mixed(up[at(from)], slot));
                in[i] = mixed(in[i], mixed(own[at(from)], slot));
            }
        }
        // What tensors become: sums, as consumers have no order.
        Keys becomes(graph.tensors.size(), 0);
        Keys read(graph.tensors.size(), 0);
        for (const TensorId output : graph.outputs)
            becomes[at(output)] += 0x51ed27;
        for (std::size_t i = count; i-- > 0;) {
            const Operator &op = graph.operators[i];
            down[i] = out[i] = own[i];
            for (const TensorId output : op.outputs) {
                if (!output.valid())
                    continue;
                down[i] = mixed(down[i], becomes[at(output)]);
                out[i] = mixed(out[i], read[at(output)]);
            }
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                if (!op.inputs[slot].valid())
                    continue;
                const auto tensor = at(op.inputs[slot]);
                becomes[tensor] += mixed(down[i], slot);
                read[tensor] += mixed(own[i], slot);
            }
            both[i] = mixed(up[i], down[i]);
        }
    }

    Keys withWeights(const Keys &keys) const
    {
        Keys made(keys);
        for (std::size_t i = 0; i < count; ++i)
            made[i] = weights[i] == 0 ? 0 : std::max<Key>(mixed(keys[i], weights[i]), 1);
        return made;
    }

    const SelectorIndex &index;
    const Graph &graph;
    std::size_t count = 0; ///< Forward operators.
    Keys own{}; ///< The operator alone.
    Keys up{}; ///< With all it is computed from.
    Keys down{}; ///< With all it becomes.
    Keys both{};
    Keys in{}; ///< With what makes its inputs.
    Keys out{}; ///< With what reads its outputs.
    Keys weights{}; ///< Names of the weights it reads; 0 for none.
};

class Matching
{
public:
    Matching(const SelectorIndex &before, const SelectorIndex &after, std::stop_token stop)
        : m_before(before)
        , m_after(after)
        , m_stop(std::move(stop))
    {
        m_match.after.assign(m_before.graph.operators.size(), {});
        m_match.before.assign(m_after.graph.operators.size(), {});
        m_match.weights.assign(m_before.graph.tensors.size(), {});
    }

    GraphMatch run()
    {
        for (const bool weak : {false, true}) {
            if (m_stop.stop_requested() || isComplete())
                break;
            m_before.computeKeys(weak);
            m_after.computeKeys(weak);
            if (!weak)
                m_trusted = namesHold();
            m_familiar = std::max(m_familiar, weak ? familiar() / 2 : familiar()); // kinds alone say less
            findEvidence();
            if (weak && !isSimilar())
                keepNames();
            if (!isSimilar() || (weak && m_stop.stop_requested()))
                continue;
            if (weak && !m_guessedStrong) { // shapes have changed throughout: those that agree come first all
                                            // the same
                m_before.computeKeys(false);
                m_after.computeKeys(false);
                findRest();
                m_before.computeKeys(true);
                m_after.computeKeys(true);
            }
            findRest();
            m_guessedStrong = true;
        }
        followForward();
        return std::move(m_match);
    }

private:
    bool isOpen(std::size_t before) const { return !m_match.after[before].valid(); }
    bool isOpenAfter(std::size_t after) const { return !m_match.before[after].valid(); }

    void pair(std::size_t a, std::size_t b)
    {
        m_match.after[a] = {static_cast<std::int32_t>(b)};
        m_match.before[b] = {static_cast<std::int32_t>(a)};
        m_fresh.push_back(a);
        ++m_matched;
    }

    /// The forward operator of the same name on the other side.
    static OperatorId namesake(const Side &from, std::size_t op, const Side &to)
    {
        const OperatorId found = to.index.findOperator(from.graph.operators[op].name);
        return found.valid() && at(found) < to.count ? found : OperatorId{};
    }

    /// False where operators that are certain by structure mostly bear names that others had: numbers moved
    /// on.
    bool namesHold() const
    {
        std::unordered_map<Key, std::int32_t> unique; // -1: several
        for (std::size_t b = 0; b < m_after.count; ++b) {
            const auto [at, fresh] = unique.emplace(m_after.both[b], static_cast<std::int32_t>(b));
            if (!fresh)
                at->second = -1;
        }
        std::size_t same = 0;
        std::size_t moved = 0;
        for (std::size_t a = 0; a < m_before.count; ++a) {
            const auto found = unique.find(m_before.both[a]);
            const OperatorId named = namesake(m_before, a, m_after);
            if (found != unique.end() && found->second >= 0 && named.valid())
                ++(named.index == found->second ? same : moved);
        }
        return same >= moved;
    }

    /// True unless one of the two has a namesake, equal on its own and still open, that is not the other one.
    bool mayPair(std::size_t a, std::size_t b) const
    {
        if (!m_trusted || m_before.graph.operators[a].name == m_after.graph.operators[b].name)
            return true;
        const OperatorId other = namesake(m_before, a, m_after);
        if (other.valid() && isOpenAfter(at(other)) && m_after.own[at(other)] == m_before.own[a])
            return false;
        const OperatorId another = namesake(m_after, b, m_before);
        return !(another.valid() && isOpen(at(another)) && m_before.own[at(another)] == m_after.own[b]);
    }

    /// Open operators of the same name and key.
    void matchNames(const Keys &before, const Keys &after)
    {
        if (!m_trusted)
            return;
        for (std::size_t a = 0; a < m_before.count; ++a) {
            if (!isOpen(a))
                continue;
            const OperatorId b = namesake(m_before, a, m_after);
            if (b.valid() && isOpenAfter(at(b)) && before[a] == after[at(b)])
                pair(a, at(b));
        }
    }

    enum class Among : std::uint8_t {
        Certain, ///< As Unique, whatever their names say.
        Unique, ///< Only where a key has one open operator on either side.
        Equals, ///< In order, where it has equally many.
        Any, ///< In order, as many as there are.
    };

    /// Open operators of the same key; key 0 is none.
    void matchKeys(const Keys &before, const Keys &after, Among among)
    {
        using Entry = std::pair<Key, std::size_t>;
        std::vector<Entry> left;
        std::vector<Entry> right;
        for (std::size_t a = 0; a < m_before.count; ++a) {
            if (isOpen(a) && before[a] != 0)
                left.emplace_back(before[a], a);
        }
        for (std::size_t b = 0; b < m_after.count; ++b) {
            if (isOpenAfter(b) && after[b] != 0)
                right.emplace_back(after[b], b);
        }
        pairEntries(left, right, among);
    }

    void pairEntries(std::vector<std::pair<Key, std::size_t>> &left,
        std::vector<std::pair<Key, std::size_t>> &right, Among among)
    {
        std::sort(left.begin(), left.end());
        std::sort(right.begin(), right.end());
        auto r = right.begin();
        for (auto l = left.begin(); l != left.end() && r != right.end();) {
            if (l->first != r->first) {
                l->first < r->first ? static_cast<void>(++l) : static_cast<void>(++r);
                continue;
            }
            const Key key = l->first;
            const auto endsGroup = [key](const auto &entry) { return entry.first != key; };
            const auto leftEnd = std::find_if(l, left.end(), endsGroup);
            const auto rightEnd = std::find_if(r, right.end(), endsGroup);
            const auto size = leftEnd - l;
            const bool fits =
                among == Among::Any || (size == rightEnd - r && (among == Among::Equals || size == 1));
            for (; fits && l != leftEnd && r != rightEnd; ++l, ++r) {
                if (among == Among::Certain || mayPair(l->second, r->second))
                    pair(l->second, r->second);
            }
            l = leftEnd;
            r = rightEnd;
        }
    }

    /// What stands at the same place beside operators found: makers of their inputs, readers of their
    /// outputs.
    void propagate()
    {
        while (!m_fresh.empty()) {
            const std::size_t a = m_fresh.back();
            m_fresh.pop_back();
            const Operator &one = m_before.graph.operators[a];
            const Operator &other = m_after.graph.at(m_match.after[a]);
            for (std::size_t slot = 0; slot < std::min(one.inputs.size(), other.inputs.size()); ++slot) {
                const OperatorId from = m_before.producer(one.inputs[slot]);
                const OperatorId to = m_after.producer(other.inputs[slot]);
                if (from.valid() && to.valid())
                    pairIfEqual(at(from), at(to));
            }
            for (std::size_t slot = 0; slot < std::min(one.outputs.size(), other.outputs.size()); ++slot)
                pairReaders(one.outputs[slot], other.outputs[slot]);
        }
    }

    void pairIfEqual(std::size_t a, std::size_t b)
    {
        if (isOpen(a) && isOpenAfter(b) && m_before.own[a] == m_after.own[b] && mayPair(a, b))
            pair(a, b);
    }

    static std::vector<std::pair<Key, std::size_t>> openReaders(
        const Side &side, TensorId tensor, const std::vector<OperatorId> &found)
    {
        std::vector<std::pair<Key, std::size_t>> readers;
        for (const OperatorId op : side.index.uses().consumers[at(tensor)]) {
            const auto i = at(op);
            if (i >= side.count || found[i].valid())
                continue;
            const auto &inputs = side.graph.at(op).inputs;
            const auto slot = std::find(inputs.begin(), inputs.end(), tensor) - inputs.begin();
            readers.emplace_back(mixed(side.own[i], static_cast<Key>(slot)), i);
        }
        return readers;
    }

    void pairReaders(TensorId before, TensorId after)
    {
        if (!before.valid() || !after.valid())
            return;
        auto left = openReaders(m_before, before, m_match.after);
        auto right = openReaders(m_after, after, m_match.before);
        if (left.empty() || right.empty())
            return;
        pairEntries(left, right, Among::Equals);
    }

    /// Between the same operators found, in the models' order.
    void matchGaps(Among among)
    {
        Keys before(m_before.count, 0);
        Keys after(m_after.count, 0);
        Key last = 1;
        for (std::size_t a = 0; a < m_before.count; ++a) {
            if (!isOpen(a))
                last = static_cast<Key>(m_match.after[a].index) + 2;
            else
                before[a] = mixed(m_before.own[a], last);
        }
        last = 1;
        for (std::size_t b = 0; b < m_after.count; ++b) {
            if (!isOpenAfter(b))
                last = static_cast<Key>(b) + 2;
            else
                after[b] = mixed(m_after.own[b], last);
        }
        matchKeys(before, after, among);
    }

    bool isComplete() const { return m_matched == std::min(m_before.count, m_after.count); }

    /// Enough is known again for the rest to be found by place.
    bool isSimilar() const { return m_familiar * 4 >= std::min(m_before.count, m_after.count); }

    /// Operators of the first model of which the second has one with the same origins, outcome or name.
    std::size_t familiar() const
    {
        const auto sorted = [](Keys keys) {
            std::sort(keys.begin(), keys.end());
            return keys;
        };
        const Keys up = sorted(m_after.up);
        const Keys down = sorted(m_after.down);
        std::size_t count = 0;
        for (std::size_t a = 0; a < m_before.count; ++a) {
            const OperatorId named = namesake(m_before, a, m_after);
            const auto b = at(named);
            count += std::binary_search(up.begin(), up.end(), m_before.up[a])
                    || std::binary_search(down.begin(), down.end(), m_before.down[a])
                    || (m_trusted && named.valid()
                        && (m_before.in[a] == m_after.in[b] || m_before.out[a] == m_after.out[b]))
                ? 1
                : 0;
        }
        return count;
    }

    /// This is another model: operators that happen to be called alike, and nothing else.
    void keepNames()
    {
        std::fill(m_match.after.begin(), m_match.after.end(), OperatorId{});
        std::fill(m_match.before.begin(), m_match.before.end(), OperatorId{});
        m_matched = 0;
        matchNames(m_before.own, m_after.own);
        m_fresh.clear();
    }

    /// By all that operators are computed from or become, by name together with neighbours, and by weights.
    void findEvidence()
    {
        const Side &one = m_before;
        const Side &other = m_after;
        matchNames(one.both, other.both);
        matchKeys(one.withWeights(one.both), other.withWeights(other.both), Among::Certain);
        matchKeys(one.both, other.both, Among::Certain);
        propagate();
        matchKeys(one.both, other.both, Among::Equals);
        matchNames(one.in, other.in);
        matchNames(one.out, other.out);
        matchKeys(one.withWeights(one.own), other.withWeights(other.own), Among::Unique);
        if (isSimilar())
            propagate();
        matchNames(one.up, other.up);
        matchKeys(one.up, other.up, Among::Equals);
        matchNames(one.down, other.down);
        matchKeys(one.down, other.down, Among::Equals);
    }

    /// By neighbours, by place between those found, by name.
    void findRest()
    {
        propagate();
        matchGaps(Among::Equals);
        propagate();
        matchNames(m_before.own, m_after.own);
        propagate();
        matchGaps(Among::Any);
        propagate();
    }

    /// Weights, and the operators that come with the training step.
    void followForward()
    {
        for (std::size_t a = 0; a < m_before.count; ++a) {
            if (isOpen(a))
                continue;
            const Operator &one = m_before.graph.operators[a];
            const Operator &other = m_after.graph.at(m_match.after[a]);
            for (std::size_t slot = 0; slot < std::min(one.inputs.size(), other.inputs.size()); ++slot) {
                const TensorId from = one.inputs[slot];
                const TensorId to = other.inputs[slot];
                if (from.valid() && to.valid() && m_before.graph.at(from).role == TensorRole::Weight
                    && m_after.graph.at(to).role == TensorRole::Weight)
                    m_match.weights[at(from)] = to;
            }
            if (one.mirror.valid() && other.mirror.valid())
                follow(one.mirror, other.mirror);
        }
        for (std::size_t i = m_before.count; i < m_before.graph.operators.size(); ++i) {
            const Operator &op = m_before.graph.operators[i];
            if (op.direction != Direction::Optimizer || op.inputs.empty() || !op.inputs.front().valid())
                continue;
            const TensorId weight = m_match.weights[at(op.inputs.front())];
            if (!weight.valid())
                continue;
            for (const OperatorId reader : m_after.index.uses().consumers[at(weight)]) {
                if (m_after.graph.at(reader).direction == Direction::Optimizer)
                    follow({static_cast<std::int32_t>(i)}, reader);
            }
        }
    }

    void follow(OperatorId before, OperatorId after)
    {
        if (!isOpen(at(before)) || !isOpenAfter(at(after)))
            return;
        m_match.after[at(before)] = after;
        m_match.before[at(after)] = before;
    }

    Side m_before;
    Side m_after;
    std::stop_token m_stop{};
    GraphMatch m_match{};
    std::vector<std::size_t> m_fresh{}; ///< Found, and their neighbours not looked at yet.
    std::size_t m_matched = 0; ///< Forward operators.
    std::size_t m_familiar = 0;
    bool m_trusted = true; ///< Names mean what they meant.
    bool m_guessedStrong = false; ///< Operators of equal shapes were matched by their place.
};

} // namespace

GraphMatch matchOperators(const SelectorIndex &before, const SelectorIndex &after, std::stop_token stop)
{
    return Matching(before, after, std::move(stop)).run();
}

} // namespace planloom
